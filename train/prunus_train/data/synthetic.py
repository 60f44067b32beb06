"""Questions made from the blocks of a page, because real questions are few.

Each kind trains one ability of a pruner: to find words (keywords, with noise), to find a statement with a missing part
(cloze), and to find a value in a table by its row and column (lookup). Real questions are trained beside them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from prunus import sentences
from prunus.evidence.blocks import Blocks
from prunus.pages.grid import row_cells, table_rows
from prunus.pages.tree import Tree

WORD = re.compile(r"[^\W_]+(?:[.,'’-][^\W_]+)*")
COMMON = frozenset(
    "a an the of in on at to for from by with and or as is are was were be been it its this that these those he she "
    "they his her their which who what when where how has have had not but than then also into over after before "
    "between during about up out all one two first can will would may more most other some such no".split()
)
OPENINGS = (
    "what", "what is", "what was", "who", "who was", "who is", "which", "when", "when did", "when was", "where",
    "where is", "how many", "how much", "how", "why", "name the", "in which", "what year", "tell me", "on what date",
)  # fmt: skip
AFTER = ("next", "after", "following", "below", "listed after")
BEFORE = ("before", "previous to", "above", "listed before", "prior to")

LOOKUPS = (
    "what is the {wanted} of {value}?",
    "what was the {wanted} for {value}?",
    "what {wanted} has {key} {value}?",
    "which {wanted} had a {key} of {value}?",
    "which {wanted} is listed with {value}?",
    "{value} {wanted}",
    "who was the {wanted} when the {key} was {value}?",
    "what is the {wanted} listed for the {key} {value}?",
    "when {value} was the {key}, what was the {wanted}?",
    "how many {wanted} did {value} have?",
)
NEIGHBOURS = (
    "which {key} comes {near} {value}?",
    "what is the {key} {near} {value}?",
    "who is listed {near} {value}?",
    "name the {key} {near} {value}.",
)

Maker = Callable[[Blocks, int, random.Random], str]


def question(blocks: Blocks, index: int, chance: random.Random) -> str:
    """Return a question that the block answers; '' where none can be made."""
    makers: list[Maker] = [keywords, cloze, lookup, lookup, lookup]
    chance.shuffle(makers)
    for make in makers:
        found = make(blocks, index, chance)
        if found:
            return found
    return ""


def keywords(blocks: Blocks, index: int, chance: random.Random) -> str:
    """Return some of the block's rarer words with noise, sometimes after a question word; '' for too few words."""
    words = WORD.findall(blocks.texts[index])
    size = chance.choice((6, 10, 20, 60))
    start = chance.randrange(max(1, len(words) - size + 1))
    near = [word for word in words[start : start + size] if word.lower() not in COMMON]
    if len(near) < 2:
        return ""
    count = min(len(near), chance.randint(2, 7))
    chosen = sorted(chance.sample(range(len(near)), count))
    picked = [bent(near[place], chance) for place in chosen]
    picked += _above(blocks, index, chance) if chance.random() < 0.3 else []
    if chance.random() < 0.2:  # words of another block, so that the majority of the words must decide
        other = WORD.findall(blocks.texts[chance.randrange(len(blocks))])
        picked += chance.sample(other, min(len(other), max(1, count // 3)))
    if chance.random() < 0.4:
        chance.shuffle(picked)
    opening = [chance.choice(OPENINGS)] if chance.random() < 0.6 else []
    return " ".join([*opening, *picked])


def cloze(blocks: Blocks, index: int, chance: random.Random) -> str:
    """Return a sentence of the block with a part left out; '' where no sentence has a fitting length."""
    known = [part.strip() for part in sentences(blocks.texts[index])]
    known = [part for part in known if 6 <= part.count(" ") + 1 <= 45]
    if not known:
        return ""
    words = chance.choice(known).rstrip(".!?").split()
    gap = chance.randint(1, min(4, len(words) // 3))
    at = chance.randrange(len(words) - gap + 1)
    drop = chance.choice((0.0, 0.15, 0.4))
    left = [word for word in words[:at] + words[at + gap :] if chance.random() >= drop]
    longest = chance.choice((8, 14, 30))
    left = [bent(word, chance) for word in left[:longest]]
    return f"{chance.choice(OPENINGS)} {' '.join(left)}?" if len(left) > 3 else ""


def lookup(blocks: Blocks, index: int, chance: random.Random) -> str:
    """Return a question about a cell of the block's table, by its row and column; '' without a fitting table."""
    block = blocks.blocks[index]
    tree = blocks.trees[block.document]
    table = blocks.contexts[index].table
    if table < 0:
        table = next((node for node in range(block.lo, block.hi) if tree.tag[node] == "table"), -1)
    if table < 0:
        return ""
    rows = table_rows(tree, table)
    inside = [place for place, row in enumerate(rows) if place and block.lo <= row < block.hi]
    if not inside:
        return ""
    place = chance.choice(inside)
    heads, cells = cell_texts(tree, rows[0]), cell_texts(tree, rows[place])
    columns = [column for column in range(min(len(heads), len(cells))) if heads[column] and cells[column]]
    if len(columns) < 2:
        return ""
    key, wanted = chance.sample(columns, 2)
    words = {"key": heads[key], "wanted": heads[wanted], "value": cells[key]}
    if chance.random() < 0.25 and len(inside) > 2 and place not in (inside[0], inside[-1]):
        words["near"] = chance.choice(AFTER + BEFORE)
        return _short(chance.choice(NEIGHBOURS).format(**words))
    made = chance.choice(LOOKUPS).format(**words)
    above = " ".join(_above(blocks, index, chance)) if chance.random() < 0.3 else ""
    return _short(f"{made} {above}".strip())


def cell_texts(tree: Tree, row: int) -> list[str]:
    """Return the first eight words of each cell of a row."""
    found = []
    for cell in row_cells(tree, row):
        text = " ".join(filter(None, tree.text[cell : tree.end[cell]]))
        found.append(" ".join(text.split()[:8]))
    return found


def bent(word: str, chance: random.Random) -> str:
    """Return a word, sometimes with another ending, as people ask with other forms of a word."""
    if len(word) < 5 or not word.isalpha() or chance.random() > 0.15:
        return word
    for ending in ("ing", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            return word[: -len(ending)]
    return word + chance.choice(("s", "ed", "ing"))


def _above(blocks: Blocks, index: int, chance: random.Random) -> list[str]:
    """Return one or two words of the headings and the lead above a block."""
    context, tree = blocks.contexts[index], blocks.trees[blocks.blocks[index].document]
    texts = [context.lead, *(" ".join(tree.text[node : tree.end[node]]) for node in context.headings)]
    words = [word for text in texts for word in WORD.findall(text) if word.lower() not in COMMON]
    return chance.sample(words, min(len(words), chance.randint(1, 2)))


def _short(text: str) -> str:
    return " ".join(text.split()[:40])


def weights(blocks: Blocks) -> Sequence[float]:
    """Return the weight of each block for drawing: the square root of its words, up to 120 words; 0 for two or less."""
    return [min(block.words, 120) ** 0.5 if block.words > 2 else 0.0 for block in blocks.blocks]
