"""The system ``htmlrag`` does what the algorithms of the paper say, held against deletion one after another."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("lxml")
import lxml.html
from tests.strategies import Made, worded_documents

import prunus
from prunus_evals.systems.htmlrag import HtmlBlock, block_tree, pruned_html


def tree(page: str) -> Any:
    return lxml.html.document_fromstring(page)


def letters(root: Any) -> str:
    return "".join("".join(root.itertext()).split())


def deleted(root: Any, gone: list[HtmlBlock]) -> str:
    """Return the letters that are left when blocks are deleted from a copy of a tree, one after another (Algorithm 2)."""
    twin = copy.deepcopy(root)
    of = dict(zip(root.iter(), twin.iter(), strict=True))
    for block in gone:
        element = of[block.element]
        if block.leaf:
            for node in [*element.iter()]:
                node.text = None
                if node is not element:
                    node.tail = None
        else:
            element.text = None
            for child in element:
                child.tail = None
    return letters(twin)


def test_small_elements_are_blocks_and_so_is_the_text_beside_the_children_of_larger_ones() -> None:
    root = tree("<div>one two <p>three four</p> five <section><p>six seven</p><p>eight nine</p></section></div>")
    blocks = [(block.element.tag, block.leaf, block.text) for block in block_tree(root, words=4)]
    assert blocks == [
        ("div", False, "one two five"),
        ("p", True, "three four"),
        ("p", True, "six seven"),
        ("p", True, "eight nine"),
    ]
    assert [block.element.tag for block in block_tree(root, words=100)] == ["html"]


@pytest.mark.parametrize(
    ("kept", "html"),
    [
        ([0], "<div>one two  five </div>"),
        ([2], "<p>six seven</p>"),
        ([2, 3], "<section><p>six seven</p><p>eight nine</p></section>"),
        ([0, 1], "<div>one two <p>three four</p> five </div>"),
        ([], ""),
    ],
)
def test_empty_elements_go_and_one_that_only_holds_another_is_replaced_by_it(kept: list[int], html: str) -> None:
    root = tree("<div>one two <p>three four</p> five <section><p>six seven</p><p>eight nine</p></section></div>")
    blocks = block_tree(root, words=4)
    assert pruned_html([root], [blocks[place] for place in kept]) == html


@given(worded_documents, st.integers(2, 30), st.data())
def test_what_is_left_is_what_deletion_one_after_another_leaves(made: Made, words: int, data: st.DataObject) -> None:
    root = tree(prunus.clean(made.html, style=prunus.LEAN))
    blocks = block_tree(root, words)
    kept = data.draw(st.lists(st.sampled_from(range(len(blocks))), unique=True)) if blocks else []
    gone = [block for place, block in enumerate(blocks) if place not in kept]
    left = pruned_html([root], [blocks[place] for place in kept])
    assert letters(tree(f"<div>{left}</div>")) == deleted(root, gone)
    whole = "".join(text + " " for text in root.itertext()).split()
    assert sorted(word for block in blocks for word in block.text.split()) == sorted(whole)
