"""What a whole LaTeX document shares while it is read: macros, numbers, labels, footnotes, citations, limits."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .._common.write import note, words
from .source import Macros, TexSource
from .words import HEADINGS, THEOREMS

_MARK: Final = re.compile("\ue000([RCB])([^\ue001]*)\ue001")
_MAX_FILES: Final = 200


@dataclass(slots=True)
class TexState:
    """Grows while a document is read; what is known only at its end is written as marks, filled in by ``finish``.

    :param read: returns the text of a file that the document names, or None.
    :param handlers: what reads a command, by its name; each is given the reader and the source.
    """

    read: Callable[[str], str | None]
    handlers: Mapping[str, Callable[[Any, TexSource], None]]
    macros: Macros
    deadline: float
    letters: int
    cells: int
    job: str = ""
    chapters: bool = False
    title: str = ""
    author: str = ""
    date: str = ""
    began: bool = False
    shown_title: bool = False
    appendix: bool = False
    last: str = ""
    files: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    theorems: dict[str, str] = field(default_factory=lambda: dict(THEOREMS))
    footnotes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cited: dict[str, None] = field(default_factory=dict)
    cite_all: bool = False
    bibliography: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    items: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The entries of a ``thebibliography`` by key: label and HTML."""

    def over(self) -> bool:
        """Tell whether the time is up; then the page says so."""
        if time.monotonic() <= self.deadline:
            return False
        self.remark("The document took too long to read; the rest of it is left out.")
        return True

    def remark(self, text: str) -> None:
        """Say once what was left out."""
        if text not in self.notes and len(self.notes) < 50:
            self.notes.append(text)

    def file(self, name: str) -> str | None:
        """Return the text of a file, within the limits; a remark where it is not read."""
        self.files += 1
        text = self.read(name) if self.files <= _MAX_FILES else None
        if text is not None:
            self.letters -= len(text)
            if self.letters >= 0:
                return text
        return None

    def step(self, name: str, inside: tuple[str, ...] = ()) -> str:
        """Count a section, figure, table or equation; those inside begin anew. Returns its number."""
        self.counters[name] = self.counters.get(name, 0) + 1
        for other in inside:
            self.counters[other] = 0
        self.last = str(self.counters[name])
        return self.last

    def heading_number(self, name: str) -> str:
        """Count a heading and return its whole number, as ``2.1``; '' for those that LaTeX does not number."""
        place = HEADINGS.index(name)
        top = 1 if self.chapters else 2
        if name == "part" or place > top + 2 or place < top:
            return ""
        self.step(name, HEADINGS[place + 1 :])
        numbers = [str(self.counters.get(one, 0)) for one in HEADINGS[top : place + 1]]
        if self.appendix and numbers[0].isdigit() and 0 < int(numbers[0]) <= 26:
            numbers[0] = chr(64 + int(numbers[0]))
        self.last = ".".join(numbers)
        return self.last

    def finish(self, markup: str, inline: Callable[[str], str], as_latex: Callable[[Mapping[str, str]], str]) -> str:
        """Fill in references, citations and the bibliography."""
        keys = list(self.bibliography) if self.cite_all else [key for key in self.cited if key in self.bibliography]
        numbers = {key: str(place) for place, key in enumerate(keys, 1)}
        for place, (key, (label, _)) in enumerate(self.items.items(), 1):
            numbers.setdefault(key, label or str(place))

        def fill(found: re.Match[str]) -> str:
            kind, text = found[1], found[2]
            if kind == "R":
                return words(self.labels.get(text, "")) or text
            if kind == "C":
                given, _, extra = text.partition("\ue002")
                inside = [words(numbers.get(key, key)) for key in given.split(",")]
                return "[" + ", ".join([*inside, *([extra] if extra else [])]) + "]"
            entries = [f"<li>{inline(as_latex(self.bibliography[key]))}</li>" for key in keys]
            return f"<section><h2>References</h2><ol>{''.join(entries)}</ol></section>" if entries else ""

        filled = _MARK.sub(fill, markup)
        feet = "".join(f"<li>{one}</li>" for one in self.footnotes)
        feet = _MARK.sub(fill, f"<section><ol>{feet}</ol></section>") if feet else ""
        return filled + feet + "".join(note(one) for one in self.notes)
