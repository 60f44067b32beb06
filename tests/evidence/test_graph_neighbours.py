"""In a graph a block is scored also by the blocks that name its node; other documents are scored as without graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import prunus
from prunus.core.types import Page
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.score import hybrid
from prunus.evidence.score._graph import neighbours_of
from prunus.models.embed.static import Engine as Static
from prunus.pages.clean.walk import clean_tree
from prunus.pages.formats.graph.engine import Engine as Graph

SITE = Path(__file__).parents[2] / "examples" / "site"

LINES = [f':x{n} a :Ship ; :name "Vessel {n}" ; :tonnage {n}77 .' for n in range(30)]
LINES[15:15] = [':pell a :Harbour ; :name "Pell Harbour" ; :operator :linden .']
LINES += [':linden a :Trust ; :name "Linden" ; :telephone "0451 77" ; :chair :ines .', ':ines :name "Ines Tarrowby" .']
PORTS = "\n".join(["@prefix : <http://a.org/> .", *LINES])
QUESTION = "Who answers the phone for the operator of Pell Harbour?"


def blocks_of(*pages: str | bytes, words: int = 30) -> Blocks:
    trees = [
        clean_tree(Graph().to_html(Page(page)) if isinstance(page, str) and page[0] == "@" else page) for page in pages
    ]
    return cut(trees, words)


def score(blocks: Blocks, linked: float = hybrid.HybridWeights().linked) -> NDArray[np.float64]:
    return hybrid.Engine(Static(), hybrid.HybridWeights(linked=linked)).score(QUESTION, blocks)


def place(blocks: Blocks, text: str) -> int:
    return next(index for index, shown in enumerate(blocks.texts) if text in shown)


def test_a_node_is_scored_by_the_best_block_that_names_it() -> None:
    blocks = blocks_of(PORTS)
    assert len(blocks) == 33, "one block a node"
    found = neighbours_of(blocks)
    assert found is not None
    values = np.zeros(len(blocks))
    values[place(blocks, "Pell Harbour")] = 0.7
    expected = np.zeros(len(blocks))
    expected[place(blocks, "0451 77")] = 0.7
    assert (found.named(values) == expected).all(), "the trust is named by the harbour; nothing else is"


def test_what_the_named_node_names_rises_in_the_ranking() -> None:
    blocks = blocks_of(PORTS)
    trust = place(blocks, "0451 77")
    before, after = score(blocks, 0.0), score(blocks)
    assert sorted(-after).index(-after[trust]) == 1 < sorted(-before).index(-before[trust])
    context = prunus.prune(Page(PORTS.encode(), url="a.ttl"), QUESTION, budget=80)
    assert "0451 77" in str(context)


def test_a_node_of_several_blocks_is_one_neighbour() -> None:
    long = "".join(f' ; :note "{"word " * 20}{n}"' for n in range(9))
    blocks = blocks_of(PORTS.replace(':telephone "0451 77"', f':telephone "0451 77"{long}'))
    found = neighbours_of(blocks)
    assert found is not None
    values = np.zeros(len(blocks))
    values[place(blocks, "Pell Harbour")] = 1.0
    assert found.named(values).sum() > 3, "all blocks of the trust"


def test_other_documents_are_scored_as_they_are_without_graphs() -> None:
    pages = [path.read_bytes() for path in sorted(SITE.glob("*.html"))[:4]]
    alone = blocks_of(*pages)
    assert neighbours_of(alone) is None
    assert (score(alone) == score(alone, 0.0)).all()
    mixed = blocks_of(*pages, PORTS)
    is_page = np.array([block.document < len(pages) for block in mixed.blocks])
    assert (score(mixed)[is_page] == score(mixed, 0.0)[is_page]).all()
    found = neighbours_of(mixed)
    assert found is not None and (found.inside == ~is_page).all()


@pytest.mark.parametrize("number", ["0", "9", "x", "-1", "1" * 40, "²"])
def test_links_that_lead_nowhere_are_no_neighbours(number: str) -> None:
    page = f"<section><h2>a</h2><p>x<a href='#graph-node-{number}'>b</a></section><section><h2>b</h2><p>y</section>"
    assert neighbours_of(blocks_of(page, words=1)) is None
