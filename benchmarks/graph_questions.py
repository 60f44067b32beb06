"""How often the evidence of a graph survives pruning, by the weight of its links: graphs and questions are generated.

    python -m benchmarks.graph_questions                 # the dev half: seeds 0 to 19
    python -m benchmarks.graph_questions --half report   # seeds 100 to 119

Each graph is about harbours, trusts, people and ships with made-up names. A question asks for a value of a node that
it names (``direct``), of a node that the named one names (``named``), or of a node that names it (``naming``). A gold
value counts where it stands in one of the best blocks, which are all about as long.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
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
        f':{key} a :Person ; :name "{said}" ; :birthPlace "{at}" ; :birthYear {in_} .' for key, said, at, in_ in people
    ]
    lines += [
        f':{key} a :Trust ; :name "{said}" ; :chair :{by[0]} ; :telephone "{at}" .' for key, said, by, at in trusts
    ]
    lines += [
        f':{key} a :Harbour ; :name "{said}" ; :operatedBy :{by[0]} ; :maximumDepth {m} .' for key, said, by, m in ports
    ]
    lines += [
        f':{key} a :Ship ; :name "{said}" ; :homePort :{at[0]} ; :tonnage {tons} .' for key, said, at, tons in ships
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
    parser.add_argument("--weights", default="0,0.2,0.4,0.6,0.7,0.8,0.9,1")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    first = 0 if given.half == "dev" else 100
    worlds = []
    for seed in range(first, first + given.graphs):
        text, asked = world(seed)
        tree = clean_tree(formats().to_html(prunus.Page(text.encode(), url="x.ttl")))
        worlds.append((cut([tree], 40), asked))
    table = {}
    for weight in map(float, given.weights.split(",")):
        engine = Engine(Static(), HybridWeights(linked=weight))
        found: dict[str, list[int]] = defaultdict(list)
        for blocks, asked in worlds:
            for kind, question, evidence in asked:
                found[kind].append(ranks(blocks, question, evidence, engine))
        table[f"{weight:g}"] = {kind: shares(found[kind]) for kind in sorted(found)}
        if not given.json:
            counts = {kind: len(found[kind]) for kind in sorted(found)}
            print(f"linked {weight:g}, questions {counts}: {table[f'{weight:g}']}", flush=True)
    if given.json:
        print(json.dumps({"among": BLOCKS, "share": table}))


def shares(found: list[int]) -> list[float]:
    """Return the share of ranks within each number of blocks."""
    return [round(sum(rank <= most for rank in found) / len(found), 3) for most in BLOCKS]


if __name__ == "__main__":
    main()
