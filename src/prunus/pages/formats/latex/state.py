"""The state of a LaTeX document while it is read: macros, counters, labels, footnotes, citations, limits."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .._common.write import escape_text, note
from .source import Macros, TexSource
from .words import HEADINGS, THEOREMS

_MARK: Final = re.compile("\ue000([RCB])([^\ue001]*)\ue001")
_MAX_FILES: Final = 200  # included files; files may include each other without end


@dataclass(slots=True)
class TexState:
    """The shared state of all readers of one document.

    References and citations are known only at the end of the document. Until then they are marks in private-use
    characters, which :meth:`finish` replaces.

    :param read: returns the text of an included file, or None.
    :param handlers: handlers of commands by name; each receives the reader and the source.
    :param letters: characters of included files that may still be read.
    :param cells: table cells that may still be shown.
    :param last: latest number of a section, figure, table or equation, for the next ``\\label``.
    :param job: file name without suffix; '' for a page that is no local file.
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

    def is_time_over(self) -> bool:
        """Tell whether the time is up, and record a note if so."""
        if time.monotonic() <= self.deadline:
            return False
        self.remark("The document took too long to read; the rest of it is left out.")
        return True

    def remark(self, text: str) -> None:
        """Record a note about left-out content, once."""
        if text not in self.notes and len(self.notes) < 50:
            self.notes.append(text)

    def file(self, name: str) -> str | None:
        """Return the text of an included file; None where it is missing, may not be read, or exceeds a limit."""
        self.files += 1
        text = self.read(name) if self.files <= _MAX_FILES else None
        if text is not None:
            self.letters -= len(text)
            if self.letters >= 0:
                return text
        return None

    def step(self, name: str, inside: tuple[str, ...] = ()) -> str:
        """Count a section, figure, table or equation, reset the counters ``inside`` it, and return its number."""
        self.counters[name] = self.counters.get(name, 0) + 1
        for inner in inside:
            self.counters[inner] = 0
        self.last = str(self.counters[name])
        return self.last

    def heading_number(self, name: str) -> str:
        """Count a heading and return its full number, such as ``2.1``; '' for headings that LaTeX does not number."""
        place = HEADINGS.index(name)
        top = 1 if self.chapters else 2
        if name == "part" or place > top + 2 or place < top:
            return ""
        self.step(name, HEADINGS[place + 1 :])
        counted = [self.counters.get(heading, 0) for heading in HEADINGS[top : place + 1]]
        numbers = [str(count) for count in counted]
        if self.appendix and 0 < counted[0] <= 26:
            numbers[0] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[counted[0] - 1]
        self.last = ".".join(numbers)
        return self.last

    def finish(self, markup: str, inline: Callable[[str], str], as_latex: Callable[[Mapping[str, str]], str]) -> str:
        """Return the document with references, citations, bibliography, footnotes and notes filled in."""
        keys = list(self.bibliography) if self.cite_all else [key for key in self.cited if key in self.bibliography]
        numbers = {key: str(place) for place, key in enumerate(keys, 1)}
        for place, (key, (label, _)) in enumerate(self.items.items(), 1):
            numbers.setdefault(key, label or str(place))

        listed: list[str] = []

        def fill(found: re.Match[str]) -> str:
            kind, text = found[1], found[2]
            if kind == "R":
                return escape_text(self.labels.get(text, "")) or text
            if kind == "C":
                cited_keys, _, extra = text.partition("\ue002")
                inside = [escape_text(numbers.get(key, key)) for key in cited_keys.split(",")]
                return "[" + ", ".join([*inside, *([extra] if extra else [])]) + "]"
            if listed:  # the list of references stands where it is asked for first
                return ""
            listed.append(text)
            entries = [f"<li>{inline(as_latex(self.bibliography[key]))}</li>" for key in keys]
            return f"<section><h2>References</h2><ol>{''.join(entries)}</ol></section>" if entries else ""

        filled = _MARK.sub(fill, markup)
        feet = "".join(f"<li>{footnote}</li>" for footnote in self.footnotes)
        feet = _MARK.sub(fill, f"<section><ol>{feet}</ol></section>") if feet else ""
        return filled + feet + "".join(map(note, self.notes))
