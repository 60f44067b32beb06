"""Texts of cells whose parts look different: raised or lowered (``10⁶``, ``H₂O``), or struck through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from .._common.write import escape_lines, escape_text

_SCRIPTS: Final = {"superscript": "sup", "subscript": "sub"}


class Look(NamedTuple):
    """The look of a part of a text.

    :param script: ``sup``, ``sub`` or ''.
    """

    script: str = ""
    struck: bool = False


Runs: TypeAlias = Sequence[tuple[str, Look | None]]
"""Parts of a text. A part without a look of its own has that of its cell."""


class RunCollector:
    """Collects the parts of a text of a workbook."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, Look | None]] = []
        self._look: Look | None = None

    def clear(self) -> None:
        """Begin a text."""
        self.runs, self._look = [], None

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Begin a part, or record how it looks."""
        if name == "r":
            self._look = None
        elif name == "rPr":
            self._look = Look()  # it states the whole font: nothing comes from the cell any more
        elif self._look is not None and name == "vertAlign":
            self._look = self._look._replace(script=_SCRIPTS.get(attrs.get("val", ""), ""))
        elif self._look is not None and name == "strike":
            self._look = self._look._replace(struck=is_on(attrs))

    def add(self, text: str) -> None:
        """Add the words of a part."""
        if text:
            self.runs.append((text, self._look))


def is_on(attrs: Mapping[str, str]) -> bool:
    """Tell whether a switch such as ``<strike/>`` is on."""
    return attrs.get("val", "1") not in ("0", "false")


def rich_markup(text: str, runs: Runs, of_cell: Look) -> str:
    """Return a text as HTML where a part of it looks different; '' where the plain text says it all."""
    if all(look is None for _, look in runs):
        return _marked(escape_lines(text), of_cell) if any(of_cell) and text.strip() else ""
    if not any(any(of_cell if look is None else look) for _, look in runs):
        return ""
    joined = "".join(_marked(escape_text(part), of_cell if look is None else look) for part, look in _joined(runs))
    return joined.strip("\n").replace("\n", "<br>")


def _joined(runs: Runs) -> Iterable[tuple[str, Look | None]]:
    """Yield the parts; neighbours that look the same as one."""
    parts, latest = [], None
    for text, look in runs:
        if parts and look != latest:
            yield "".join(parts), latest
            parts = []
        parts.append(text)
        latest = look
    yield "".join(parts), latest


def _marked(html: str, look: Look) -> str:
    """Return HTML in the elements of its look; spaces at its ends stay outside."""
    core = html.strip()
    if not core or not any(look):
        return html
    before, after = html[: len(html) - len(html.lstrip())], html[len(html.rstrip()) :]
    core = f"<{look.script}>{core}</{look.script}>" if look.script else core
    return f"{before}<s>{core}</s>{after}" if look.struck else before + core + after
