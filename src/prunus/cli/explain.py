"""``prunus prune --explain``: the ranked blocks of a pruned page as a table for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from ..core.types import BlockRecord
from ..evidence.context import Context
from .output import one_line

BELOW: Final = 20
"""Dropped blocks that are shown below the last kept block."""

MOST: Final = 60
"""Blocks that are shown at most."""

_PATH: Final = 34
_TEXT: Final = 48


def ranking(context: Context) -> str:
    """Return the blocks by score as a table: score, fate, role, words, path, first words.

    After two stages, the blocks that the second stage scored come first: the two stages' scores have different scales.
    """
    ranked = sorted(context.blocks, key=lambda block: (-block.stage, -block.score, block.index))
    last = max((place for place, block in enumerate(ranked) if block.kept), default=-1)
    shown = ranked[: min(last + 1 + BELOW, MOST)]
    lines = [f"{'score':>9}  {'':7}  {'role':6}  {'words':>5}  {'path':{_PATH}}  first words"]
    for place, block in enumerate(shown):
        if place and block.stage != shown[place - 1].stage:
            lines.append(f"{'':9}  the score of the first stage from here on:")
        lines.append(_row(block))
    if len(shown) < len(ranked):
        kept = sum(block.kept for block in ranked[len(shown) :])
        more = f", {kept:,} of them kept" if kept else ""
        lines.append(
            f"… and {len(ranked) - len(shown):,} blocks with lower scores{more}; --json and --report show them all"
        )
    return "\n".join(lines)


def _row(block: BlockRecord) -> str:
    path = block.path if len(block.path) <= _PATH else "…" + block.path[1 - _PATH :]
    fate = "kept" if block.kept else "dropped"
    text = shorten(block.text, _TEXT)
    return f"{block.score:9.4f}  {fate:7}  {block.role:6}  {block.words:5}  {path:{_PATH}}  {text}"


def shorten(text: str, columns: int) -> str:
    """Cut text to a width in columns of a terminal, where a wide East Asian letter takes two columns."""
    line = one_line(text[: columns * 4])  # a block may be long: only its start can be shown
    widths: Sequence[int] = [2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line]
    if sum(widths) <= columns and len(line) >= len(one_line(text[: columns * 8])):
        return line
    used = 0
    for place, width in enumerate(widths):
        used += width
        if used > columns - 1:
            return line[:place] + "…"
    return line + "…"
