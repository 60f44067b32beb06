"""Baselines for comparison (Internet-SAG §5.1): the same plan, pages and prompt, but other evidence.

``naive`` gives the model the text of every page, one after the other; ``clean`` the cleaned pages, unpruned, as
compact HTML; ``vector`` the chunks that are most similar to the question, each with its neighbours. All three stop at
the token budget; ``naive`` and ``clean`` cut the last page there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core.errors import BadInput
from ..core.ports import Embedder, TokenCounter
from ..core.types import Passage, Span
from ..pages.tree import Tree
from ..pages.write.style import LEAN
from ..pages.write.whole import render_tree

MODES: Final = ("default", "naive", "vector", "clean")

CHUNK: Final = 512
OVERLAP: Final = 128
TOP: Final = 12
NEIGHBOURS: Final = 1
"""Internet-SAG §5.1: tokens of a chunk, tokens that it shares with the next, chunks retrieved, chunks beside each."""

_STRIDE: Final = 64
"""Code points of a piece. Tokens are counted piece by piece, because a count per word would be slow."""


@dataclass(frozen=True, slots=True)
class Material:
    """The part of one page that the model is given.

    :param passages: the part as slices of the page.
    :param text: the part in the format that the model is shown.
    """

    tree: Tree
    passages: tuple[Passage, ...]
    text: str


def gather(
    mode: str, trees: Sequence[Tree], question: str, budget: int, engines: tuple[TokenCounter, Embedder]
) -> list[Material]:
    """Return the parts of the pages that a baseline shows the model, in the order of the pages.

    :param mode: ``naive``, ``clean`` or ``vector``.
    :param budget: tokens of all parts together.
    :raises BadInput: the mode is unknown.
    """
    counter, embedder = engines
    if mode == "vector":
        return _vector(trees, question, budget, counter, embedder)
    if mode not in ("naive", "clean"):
        raise BadInput(f"no mode is called {mode!r}; there are: {', '.join(MODES)}", subject="mode")
    found: list[Material] = []
    left = budget
    for tree in trees:
        whole = tree.canonical if mode == "naive" else render_tree(tree, "html", LEAN)
        size = int(counter.count([whole])[0])
        text = whole if size <= left else cut_to(whole, left, counter)
        share = len(tree.canonical) if text == whole else int(len(tree.canonical) * len(text) / max(1, len(whole)))
        if text.strip():
            span = Span(tree.document, 0, share)
            found.append(Material(tree, (Passage(tree.canonical[:share], (span,)),), text))
        left -= size
        if left <= 0:
            break
    return found


def cut_to(text: str, budget: int, counter: TokenCounter) -> str:
    """Return the longest beginning of a text that has at most ``budget`` tokens, by binary search."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if int(counter.count([text[:middle]])[0]) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def chunks_of(text: str, counter: TokenCounter, size: int = CHUNK, overlap: int = OVERLAP) -> list[tuple[int, int]]:
    """Cut a text into (start, end) slices of about ``size`` tokens; neighbours overlap by about ``overlap`` tokens.

    Slices begin and end between words where the text has white space.
    """
    pieces = _pieces(text)
    counts = counter.count([text[start:end] for start, end in pieces]).tolist() if pieces else []
    found: list[tuple[int, int]] = []
    first = 0
    while first < len(pieces):
        last, tokens = first, 0
        while last < len(pieces) and (last == first or tokens + counts[last] <= size):
            tokens += counts[last]
            last += 1
        found.append((pieces[first][0], pieces[last - 1][1]))
        if last == len(pieces):
            break
        back, shared = last, 0
        while back > first + 1 and shared + counts[back - 1] <= overlap:
            back -= 1
            shared += counts[back]
        first = back
    return found


def _pieces(text: str) -> list[tuple[int, int]]:
    """Cut a text into slices of at most ``_STRIDE`` code points, after white space where there is any."""
    found = []
    start = 0
    while start < len(text):
        end = min(len(text), start + _STRIDE)
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space + 1 if space > start else end
        found.append((start, end))
        start = end
    return found


def _vector(
    trees: Sequence[Tree], question: str, budget: int, counter: TokenCounter, embedder: Embedder
) -> list[Material]:
    """Return the chunks of all pages that are most similar to the question (exact search), with their neighbours."""
    places = [
        (page, chunk, slice_)
        for page, tree in enumerate(trees)
        for chunk, slice_ in enumerate(chunks_of(tree.canonical, counter))
    ]
    if not places:
        return []
    texts = [trees[page].canonical[start:end] for page, _, (start, end) in places]
    cosines = embedder.embed(texts, "document") @ embedder.embed([question], "query")[0]
    best = np.argsort(-cosines, kind="stable")[:TOP].tolist()
    spans: dict[int, dict[int, tuple[int, int]]] = {}
    left = budget
    by_place = {(page, chunk): slice_ for page, chunk, slice_ in places}
    for number in best:
        page, chunk, _ = places[number]
        for neighbour in (chunk, *(chunk + step * side for step in range(1, NEIGHBOURS + 1) for side in (-1, 1))):
            taken = spans.setdefault(page, {})
            if neighbour in taken or (page, neighbour) not in by_place:
                continue
            start, end = by_place[page, neighbour]
            size = int(counter.count([trees[page].canonical[start:end]])[0])
            if size <= left:
                taken[neighbour] = (start, end)
                left -= size
    return [
        _material(trees[page], [spans[page][chunk] for chunk in sorted(spans[page])])
        for page in sorted(spans)
        if spans[page]
    ]


def _material(tree: Tree, slices: Sequence[tuple[int, int]]) -> Material:
    """Return slices of a page as material; overlapping slices are joined, so that no word is shown twice."""
    joined: list[tuple[int, int]] = []
    for start, end in slices:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    passages = tuple(Passage(tree.canonical[start:end], (Span(tree.document, start, end),)) for start, end in joined)
    return Material(tree, passages, "\n\n".join(passage.text for passage in passages))
