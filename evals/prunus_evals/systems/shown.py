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
from typing import Final

import prunus
from prunus_evals.errors import UnknownName
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems._documents import read
from prunus_evals.tokens import NAME, Counter

Way = Callable[[prunus.Context], str]

_OPTIONS: Final = prunus.Options(scorer="trees", embedder="static", tokenizer=NAME)
_MARK: Final = "\u2026"
_KNOWN: Final = 40
"""Letters and digits by which a block is found in the Markdown."""
_SHORTER: Final = 0.9
"""The next budget of pruning, where a way of showing needs more tokens than the budget."""


def _unmarked(context: prunus.Context) -> str:
    lines = []
    for line in context.markdown.split("\n"):
        bare = line.replace(f" {_MARK}", "").replace(f"{_MARK} ", "")
        if _MARK not in line or bare.strip(f"|{_MARK} "):
            lines.append(bare)
    return "\n".join(lines)


def _by_score(context: prunus.Context) -> str:
    scored = [(block.score, _letters(block.text)[:_KNOWN]) for block in context.kept if block.role != "header"]
    above: list[str] = []  # the headings that stand above the part at hand
    parts: list[tuple[float, list[str]]] = []
    for part in re.split(r"\n{2,}", context.markdown):
        if part.startswith("#"):
            above = [heading for heading in above if _level(heading) < _level(part)] + [part]
            continue
        said = _letters(part)
        best = max((score for score, letters in scored if letters and letters in said), default=-math.inf)
        parts.append((best, [*above, part]))
    ordered = [piece for _, pieces in sorted(parts, key=lambda one: -one[0]) for piece in pieces]
    return "\n\n".join(dict.fromkeys(ordered))  # a heading stands once, above the best of its parts


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


def _labels(context: prunus.Context) -> str:
    result: list[str] = []
    header: list[str] | None = None
    for line in context.markdown.split("\n"):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] if line.startswith("|") else None
        if cells is None:
            header = None
            result.append(line)
        elif header is None:
            header = cells
        elif any(cell.strip("-: ") for cell in cells):
            pairs = [f"{name}: {cell}" if name else cell for name, cell in zip(header, cells, strict=False) if cell]
            result.append("; ".join(pairs))
    return "\n".join(result)


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
