"""Texts of cells whose parts look different: raised or lowered (``10⁶``, ``H₂O``), or struck through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from .._common.symbols import is_symbol_font, symbols
from .._common.write import escape_text

_SCRIPTS: Final = {"superscript": "sup", "subscript": "sub"}


class CellLook(NamedTuple):
    """The look of a part of a text.

    :param script: ``sup``, ``sub`` or ''.
    """

    script: str = ""
    struck: bool = False


Runs: TypeAlias = Sequence[tuple[str, CellLook | None]]
"""Parts of a text. A part without a look of its own has that of its cell."""


class RunCollector:
    """Collects the parts of a text of a workbook."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, CellLook | None]] = []
        self._look: CellLook | None = None
        self._font = ""

    def clear(self) -> None:
        """Begin a text."""
        self.runs, self._look, self._font = [], None, ""

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Begin a part, or record how it looks."""
        if name == "r":
            self._look, self._font = None, ""
        elif name == "rPr":
            self._look = CellLook()  # it states the whole font: nothing comes from the cell any more
        elif self._look is not None and name == "rFont":
            self._font = attrs.get("val", "")
        elif self._look is not None and name == "vertAlign":
            self._look = self._look._replace(script=_SCRIPTS.get(attrs.get("val", ""), ""))
        elif self._look is not None and name == "strike":
            self._look = self._look._replace(struck=is_on(attrs))

    def add(self, text: str) -> None:
        """Add the words of a part."""
        if text:
            self.runs.append((symbols(self._font, text) if is_symbol_font(self._font) else text, self._look))


def is_on(attrs: Mapping[str, str]) -> bool:
    """Tell whether a switch such as ``<strike/>`` is on."""
    return attrs.get("val", "1") not in ("0", "false")


def rich_markup(text: str, runs: Runs, of_cell: CellLook) -> str:
    """Return a text as HTML where a part of it looks different; '' where the plain text says it all."""
    if all(look is None for _, look in runs):
        runs = [(text, of_cell)]
    seen = [(part, of_cell if look is None else look) for part, look in runs]
    if not any(any(look) for _, look in seen) or not text.strip():
        return ""
    html = ""
    for is_struck, struck in groupby(seen, lambda run: run[1].struck):
        inner = ""
        for script, parts in groupby(struck, lambda run: run[1].script):
            inner += _within(script, escape_text("".join(part for part, _ in parts)))
        html += _within("s" if is_struck else "", inner)
    return html.strip("\n").replace("\n", "<br>")


def _within(tag: str, html: str) -> str:
    """Return HTML inside an element; spaces at its ends stay outside."""
    core = html.strip()
    if not core or not tag:
        return html
    return f"{html[: len(html) - len(html.lstrip())]}<{tag}>{core}</{tag}>{html[len(html.rstrip()) :]}"
