"""The Markdown of ``prunus:trees:markdown``, shown to a model in other ways: ``shown:WAY``.

========== ==========================================================================
``unmarked`` without the marks ("…") of what was left out
``score``    the parts in the order of their best block's score, each below its headings
``labels``   the rows of tables as "column: value; column: value"
========== ==========================================================================

What comes out longer than the budget is pruned further first, so that the tokens are equal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final

import prunus
from prunus_evals.errors import UnknownName
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems._documents import read
from prunus_evals.tokens import NAME, Counter

Way = Callable[[prunus.Context], str]

_OPTIONS: Final = prunus.Options(scorer="trees", embedder="static", tokenizer=NAME)
_MARK: Final = "\u2026"
_SURE: Final = 20
"""Letters and digits from which on a line of a block is found inside a line of the Markdown, too."""
_TAG: Final = re.compile(r"<[^>]*>")
_LEFT_ROW: Final = re.compile(f"<tr><td[^>]*>{_MARK}(?=<|$)")
_ROW: Final = re.compile(r"<tr[^>]*>")
_SHORTER: Final = 0.9
"""The next budget of pruning, where a way of showing needs more tokens than the budget."""


def _unmarked(context: prunus.Context) -> str:
    lines = []
    for line in context.markdown.split("\n"):
        bare = _LEFT_ROW.sub("", line).replace(f" {_MARK}", "").replace(f"{_MARK} ", "")
        if _MARK not in line or bare.strip(f"|{_MARK} "):
            lines.append(bare)
    return "\n".join(lines)


def _by_score(context: prunus.Context) -> str:
    scores: dict[str, float] = {}  # of the lines of blocks, by their letters
    for block in context.kept:
        for line in map(_letters, block.text.split("\n")):
            scores[line] = max(block.score, scores.get(line, -math.inf))
    above: list[str] = []  # the headings that stand above the part at hand
    parts: list[tuple[float, list[str]]] = []
    for part in re.split(r"\n{2,}", context.markdown):
        if part.startswith("#"):
            above = [heading for heading in above if _level(heading) < _level(part)] + [part]
            continue
        bare = _TAG.sub("", _ROW.sub("\n", part))
        lines, said = {*map(_letters, bare.split("\n"))}, _letters(bare)
        known = [score for line, score in scores.items() if line in lines or (len(line) > _SURE and line in said)]
        parts.append((max(known, default=-math.inf), [*above, part]))
    ordered = [piece for _, pieces in sorted(parts, key=lambda one: -one[0]) for piece in pieces]
    return "\n\n".join(dict.fromkeys(ordered))  # a heading stands once, above the best of its parts


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


def _labels(context: prunus.Context) -> str:
    result: list[str] = []
    for part in context.markdown.split("\n\n"):
        header, *rows = _table(part) or [[]]
        pairs = [[f"{name}: {cell}" if name else cell for name, cell in zip_longest(header, row, fillvalue="") if cell]
                 for row in rows]  # fmt: skip
        result.append("\n".join("; ".join(row) for row in pairs if row) if rows else part)
    return "\n\n".join(result)


def _table(part: str) -> list[list[str]]:
    """Return the rows of a table, which Markdown has as lines of pipes, or as HTML where cells are merged; [] for none.

    A merged cell stands in each of its columns. A table inside a table is left as it is.
    """
    if part.startswith("|"):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in part.split("\n")]
        return [row for place, row in enumerate(rows) if place != 1]  # the rule below the header
    if not part.startswith("<table") or part.count("<table") > 1:
        return []
    found = []
    for row in _ROW.split(part)[1:]:
        cells = re.findall(r"<t[hd]((?:[^>]*))>((?:(?!<t[hd]).)*)", row, re.DOTALL)
        found.append([
            " ".join(_TAG.sub(" ", text).split())
            for attributes, text in cells
            for _ in range(_spanned(attributes))
        ])  # fmt: skip
    return found


def _spanned(attributes: str) -> int:
    """Return how many columns a cell stands in."""
    found = re.search(r"colspan=\"?(\d{1,2})", attributes)
    return int(found[1]) if found else 1


WAYS: Final[dict[str, Way]] = {"unmarked": _unmarked, "score": _by_score, "labels": _labels}
VARIANTS: Final = tuple(WAYS)


class Shown:
    """Prunes into Markdown, and shows it in one way."""

    def __init__(self, way: str, counter: Counter) -> None:
        self.name = f"shown:{way}"
        self._way, self._counter = WAYS[way], counter

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Clean the pages once."""
        return _Asker(read(documents), self._way, self._counter)


class _Asker:
    def __init__(self, pages: prunus.Documents | None, way: Way, counter: Counter) -> None:
        self._pages, self._way, self._counter = pages, way, counter

    def ask(self, question: str, budget: int) -> Reply:
        tokens = budget
        while self._pages is not None and tokens:
            try:
                context = prunus.prune(self._pages, question, tokens, "markdown", _OPTIONS)
            except prunus.BadBudget:
                break
            text = self._way(context)
            if self._counter.count([text])[0] <= budget:
                return Reply(text, "markdown")
            tokens = int(tokens * _SHORTER)
        return Reply("", "markdown")


def make(counter: Counter, variant: str) -> System:
    """Return the system of a way.

    :raises UnknownName: there is no such way.
    """
    if variant not in WAYS:
        raise UnknownName.among("way", variant, list(WAYS))
    return Shown(variant, counter)
