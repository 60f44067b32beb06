"""How often the evidence of a graph survives pruning, by the weight of its links: graphs and questions are generated.

    python -m benchmarks.graph_questions                 # the dev half: seeds 0 to 19
    python -m benchmarks.graph_questions --half report   # seeds 100 to 119

Each graph is about harbours, trusts, people and ships with made-up names. A question asks for a value of a node that it
names (``direct``), of a node that the named one names (``named``), or of a node that names it (``naming``).
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from itertools import product
from random import Random

import prunus
from prunus.engines import formats
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.score.hybrid import Engine, HybridWeights
from prunus.models.embed.static import Engine as Static
from prunus.pages.clean.walk import clean_tree

SYLLABLES = "bel dar fen gor hil kel lum mar nor pel rin sol tam vel wick yar".split()
BLOCKS = (1, 2, 4, 8)
"""Numbers of the best blocks among which the evidence is looked for."""


def name(chance: Random, tail: str = "") -> str:
    """Return a made-up name."""
    return "".join(chance.choice(SYLLABLES) for _ in range(3)).title() + tail


def world(seed: int) -> tuple[str, list[tuple[str, str, str]]]:
    """Return a graph as Turtle, and (kind, question, evidence) of its questions."""
    chance = Random(seed)
    people = [(f"p{n}", f"{name(chance)} {name(chance)}", name(chance), chance.randint(1900, 1999)) for n in range(25)]
    trusts = [
        (f"t{n}", name(chance, " Trust"), chance.choice(people), f"0{chance.randint(10**8, 10**9)}") for n in range(15)
    ]
    ports = [
        (f"h{n}", name(chance, " Harbour"), chance.choice(trusts), chance.randint(100, 999) / 10) for n in range(40)
    ]
    ships = [
        (f"s{n}", f"{name(chance)} {name(chance)}", chance.choice(ports), chance.randint(1000, 9999)) for n in range(40)
    ]
    lines = [
        f':{key} a :Person ; :name "{said}" ; :birthPlace "{place}" ; :birthYear {year} .'
        for key, said, place, year in people
    ]
    lines += [
        f':{key} a :Trust ; :name "{said}" ; :chair :{chair[0]} ; :telephone "{phone}" .'
        for key, said, chair, phone in trusts
    ]
    lines += [
        f':{key} a :Harbour ; :name "{said}" ; :operatedBy :{by[0]} ; :maximumDepth {depth} .'
        for key, said, by, depth in ports
    ]
    lines += [
        f':{key} a :Ship ; :name "{said}" ; :homePort :{port[0]} ; :tonnage {tons} .' for key, said, port, tons in ships
    ]
    chance.shuffle(lines)
    asked = [("direct", f"How deep is {port[1]}?", str(port[3])) for port in chance.sample(ports, 5)]
    asked += [("direct", f"What is the tonnage of the {ship[1]}?", str(ship[3])) for ship in chance.sample(ships, 5)]
    for port in chance.sample(ports, 5):
        asked.append(("named", f"What is the phone number of the operator of {port[1]}?", port[2][3]))
    for trust in chance.sample(trusts, 5):
        asked.append(("named", f"In which town was the head of the {trust[1]} born?", trust[2][2]))
    for ship in chance.sample(ships, 5):
        asked.append(("named", f"How deep is the harbour where the {ship[1]} is at home?", str(ship[2][3])))
    for port in ports:
        at = [ship for ship in ships if ship[2] is port]
        if len(at) == 1:
            asked.append(("naming", f"How much tonnage has the vessel that is at home in {port[1]}?", str(at[0][3])))
    return "@prefix : <http://graphs.example/> .\n" + "\n".join(lines), asked


def ranks(blocks: Blocks, question: str, evidence: str, engine: Engine) -> int:
    """Return the rank of the best block that holds the evidence, 1 for the first."""
    scores = engine.score(question, blocks)
    order = sorted(range(len(blocks)), key=lambda place: -scores[place])
    return next(rank for rank, place in enumerate(order, 1) if evidence in blocks.texts[place])


def main() -> None:
    """Print the share of questions whose evidence is among the best blocks, for each weight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["dev", "report"], default="dev")
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--weights", default="0,0.1,0.2,0.3,0.5,0.8,1.2")
    parser.add_argument("--back", default="1")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    first = 0 if given.half == "dev" else 100
    worlds = []
    for seed in range(first, first + given.graphs):
        text, asked = world(seed)
        tree = clean_tree(formats().to_html(prunus.Page(text.encode(), url="x.ttl")))
        worlds.append((cut([tree], 40), asked))
    table = {}
    for weight, back in product(map(float, given.weights.split(",")), map(float, given.back.split(","))):
        engine = Engine(Static(), HybridWeights(linked=weight, named=back))
        found: dict[str, list[int]] = defaultdict(list)
        for blocks, asked in worlds:
            for kind, question, evidence in asked:
                found[kind].append(ranks(blocks, question, evidence, engine))
        table[f"{weight:g} {back:g}"] = {
            kind: [round(sum(rank <= most for rank in list_of) / len(list_of), 3) for most in BLOCKS]
            for kind, list_of in sorted(found.items())
        }
        if not given.json:
            print(f"linked {weight:g}, named {back:g}:", table[f"{weight:g} {back:g}"], flush=True)
    if given.json:
        print(
            json.dumps(
                {"questions": {kind: len(list_of) for kind, list_of in found.items()}, "among": BLOCKS, "share": table}
            )
        )


if __name__ == "__main__":
    main()
