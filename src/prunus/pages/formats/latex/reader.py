"""Convert LaTeX to HTML in one pass over the tokens. Arguments and environments get inner readers.

The state of a document (macros, counters, labels, footnotes, citations, limits) is shared by all its readers. A
``tabular`` becomes a table; ``\\multicolumn`` and ``\\multirow`` become spans.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ....core.text.numbers import bounded_int
from .._common.write import Cell, escape_text, note, preformatted, table, without_first_paragraph
from .._sheets.grid import has_header
from . import words as vocabulary
from .columns import Column, RawCell, dressed
from .source import Abbreviation, Enumeration, Macros, TexSource, define, define_document, expand
from .words import HEADINGS, THEOREMS

_SPLIT: Final = re.compile(r"\\\\\*?|\\tabularnewline\b|\\cr\b|\\(?:begin|end)\s*\{[^{}]*\}|\\[\s\S]|[{}&]|%[^\n]*\n?")
_RULE: Final = re.compile(
    r"\s*\\(hline|toprule|midrule|bottomrule|endhead|endfirsthead|endfoot|endlastfoot|specialrule(?:\{[^}]*\}){3}"
    r"|c(?:line|midrule)\s*+(?:\([^)]*\))?\s*+\{[^}]*\}|addlinespace(?:\[[^\]]*\])?|hhline\s*\{[^}]*\}"
    r"|rowcolor\s*(?:\[[^\]]*\])?\{[^}]*\}|noalign\s*\{[^}]*\}|morecmidrules|\[[^\]]*\])"
)
_SKIP: Final = re.compile(r"\s*\[[-\d.\s]*(?:pt|em|ex|cm|mm|in)\]")
_SPAN: Final = re.compile(r"\s*\\(multicolumn|multirow)(?![a-zA-Z])\*?")
_TAG: Final = re.compile(r"<sup>\[[^<>]{0,99}\]</sup>|<[^<>]*>")  # a note makes a number no title
_MAX_SPAN: Final = 1000  # columns or rows of a cell


@dataclass(slots=True)
class Grid:
    """The rows of a table as raw LaTeX.

    :param headers: number of header rows above the first separating rule; -1 without such a rule.
    :param left_out: number of cells beyond the limit.
    """

    rows: list[list[str]]
    headers: int
    left_out: int


def split(body: str, max_cells: int) -> Grid:
    """Split the body of a table at ``\\\\`` and ``&``, outside braces and inner environments."""
    rows: list[list[str]] = [[]]
    start = depth = nesting = cells = left_out = 0
    header_end, hlines = -1, []

    def end_cell(end: int) -> None:
        nonlocal cells, left_out
        cells += 1
        if cells <= max_cells:
            rows[-1].append(body[start:end])
        else:
            left_out += 1

    for match in _SPLIT.finditer(body):
        mark = match[0]
        if mark in "{}":
            depth = max(0, depth + (1 if mark == "{" else -1))
        elif mark.startswith(("\\begin", "\\end")) and mark.endswith("}"):
            nesting = max(0, nesting + (1 if mark[1] == "b" else -1))
        elif depth or nesting or mark[0] == "%":
            continue
        elif mark == "&":
            end_cell(match.start())
            start = match.end()
        elif mark.startswith("\\\\") or mark in ("\\tabularnewline", "\\cr"):
            end_cell(match.start())
            start = match.end()
            rows.append([])
    end_cell(len(body))
    kept: list[list[str]] = []
    for row in rows:
        if not row:
            continue
        row[0], rules = _without_rules(row[0])
        if kept and ({"midrule", "endhead", "endfirsthead"} & set(rules)) and header_end < 0:
            header_end = len(kept)
        hlines += [len(kept)] * rules.count("hline")
        if any(text.strip() for text in row):
            kept.append(row)
    if header_end < 0 and len(kept) > 2 and {0, 1} <= set(hlines) <= {0, 1, len(kept)}:
        header_end = 1  # a line above and below the first row, and at most one at the end
    return Grid(kept, header_end if header_end <= 4 else -1, left_out)


def _without_rules(text: str) -> tuple[str, list[str]]:
    """Remove the rules at the start of a row; return the rest and the names of the rules."""
    rules: list[str] = []
    skip = _SKIP.match(text)
    position = skip.end() if skip else 0
    while match := _RULE.match(text, position):
        rules.append(re.split(r"[^a-z]", match[1], maxsplit=1)[0])
        position = match.end()
    return text[position:], rules


def to_markup(
    body: str, inline: Callable[[str], str], max_cells: int, caption: str = "", columns: Sequence[Column] = ()
) -> str:
    """Return the body of a ``tabular`` as an HTML table.

    :param inline: converts the LaTeX of a cell to HTML.
    :param columns: what the columns write beside their cells.
    :param max_cells: cells that are shown; a note gives the number of further cells.
    """
    grid = split(body, max_cells)
    covered_rows: dict[int, int] = {}  # column → number of further rows that a cell above covers
    places = 2 * max_cells  # columns that the cells of the table may cover; further cells have one column each
    rows: list[list[str | Cell]] = []
    for raw in grid.rows:
        row: list[str | Cell] = []
        column = 0
        for colspan, rowspan, inner, _ in dressed([_spans(text) for text in raw], columns):
            places -= colspan
            colspan = colspan if places >= 0 else 1
            markup = inline(inner)
            covered = all(covered_rows.get(index, 0) for index in range(column, column + colspan))
            if covered and not markup.strip():
                for index in range(column, column + colspan):
                    covered_rows[index] -= 1
                column += colspan
                continue
            for index in range(column, column + colspan):
                covered_rows[index] = rowspan - 1
            row.append(Cell(markup, colspan, rowspan) if colspan > 1 or rowspan > 1 else markup)
            column += colspan
        rows.append(row)
    headers = grid.headers
    if headers < 0:
        texts = [[_TAG.sub("", cell if isinstance(cell, str) else cell.markup) for cell in row] for row in rows[:200]]
        headers = int(has_header(texts))
    left = note(f"{grid.left_out:,} cells of this table are not shown.") if grid.left_out else ""
    return table(rows, headers, caption) + left if rows else ""


def _spans(text: str) -> RawCell:
    """Return a cell with the number of columns and rows that it covers."""
    colspan = rowspan = 1
    alone = False
    for _ in range(2):
        match = _SPAN.match(text)
        if not match:
            break
        source = TexSource(text[match.end() :])
        if match[1] == "multirow":
            source.option()
        size = source.argument().strip().lstrip("-=")
        number = bounded_int(size, 1, least=1, most=_MAX_SPAN)
        if match[1] == "multirow":
            source.option()
            source.argument()
            source.option()
            rowspan = number
        else:
            source.argument()
            colspan, alone = number, True
        text = source.argument()
    return RawCell(colspan, rowspan, text, alone)


_MARK: Final = re.compile("\ue000([RCB])([^\ue001]*)\ue001")
_KINDS: Final = {
    **dict.fromkeys(HEADINGS, "section"), "chapter": "chapter", "figure": "figure", "SCfigure": "figure",
    "table": "table", "equation": "equation", "algorithm": "algorithm", "listing": "listing",
}  # fmt: skip
"""What references call the things that are counted."""

_LONGEST_KIND: Final = 60
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
    :param quotes: quotations that are open.
    :param last: latest number of a section, figure, table or equation, for the next ``\\label``.
    :param job: file name without suffix; '' for a page that is no local file.
    """

    read: Callable[[str], str | None]
    handlers: Mapping[str, Callable[[Any, TexSource], object]]
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
    labels: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """What has a label: its number, its kind, and the heading above it as HTML."""
    lists: list[Enumeration | None] = field(default_factory=list)
    """The open lists; None for one without numbers."""
    resumed: dict[str, int] = field(default_factory=dict)
    list_options: dict[str, str] = field(default_factory=dict)
    list_names: dict[str, str] = field(default_factory=dict)
    last_kind: str = ""
    last_title: str = ""
    theorems: dict[str, str] = field(default_factory=lambda: dict(THEOREMS))
    footnotes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cited: dict[str, None] = field(default_factory=dict)
    cite_all: bool = False
    quotes: int = 0
    abbreviations: dict[str, Abbreviation] = field(default_factory=dict)
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
        title = _TAG.sub("", self.theorems.get(name, ""))[:_LONGEST_KIND].lower()
        self.last, self.last_kind = str(self.counters[name]), _KINDS.get(name, title)
        return self.last

    def heading_number(self, name: str) -> str:
        """Count a heading and return its full number, such as ``2.1``; '' for headings that LaTeX does not number."""
        position = HEADINGS.index(name)
        top = 1 if self.chapters else 2
        deepest = self.counters.get("secnumdepth", top) + 1 if "secnumdepth" in self.counters else top + 2
        if name == "part" or position > deepest or position < top:
            return ""
        self.step(name, HEADINGS[position + 1 :])
        counted = [self.counters.get(heading, 0) for heading in HEADINGS[top : position + 1]]
        numbers = [str(count) for count in counted]
        if self.appendix and 0 < counted[0] <= 26:
            numbers[0] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[counted[0] - 1]
        self.last = ".".join(numbers)
        return self.last

    def set_label(self, key: str, number: str, kind: str | None = None) -> None:
        """Give a number a label, by which the document refers to it."""
        self.labels[key] = number, self.last_kind if kind is None else kind, self.last_title

    def _reference(self, text: str) -> str:
        """Return what a reference shows; the label itself where nothing has it."""
        command, _, keys = text.partition("\ue002")
        if command in ("pageref", "vpageref"):
            return "??"  # pages are not known
        is_named = command in ("cref", "Cref", "autoref")
        shown = []
        for key in keys.split(",") if is_named else [keys]:
            number, kind, title = self.labels.get(key.strip(), ("", "", ""))
            if command == "nameref":
                number = _TAG.sub("", _MARK.sub("", title)) or number
            elif is_named and number and kind:
                is_small = command == "cref" or (command == "autoref" and kind in ("section", "item"))
                number = f"{kind if is_small else kind.capitalize()} {number}"
            number = number if command == "nameref" else escape_text(number)
            shown.append(number if number and self.macros.spend(len(number)) else key.strip())
        return ", ".join(shown[:-1]) + (" and " if len(shown) > 1 else "") + shown[-1]

    def finish(self, markup: str, inline: Callable[[str], str], as_latex: Callable[[Mapping[str, str]], str]) -> str:
        """Return the document with references, citations, bibliography, footnotes and notes filled in."""
        keys = list(self.bibliography) if self.cite_all else [key for key in self.cited if key in self.bibliography]
        numbers = {key: str(index) for index, key in enumerate(keys, 1)}
        for index, (key, (label, _)) in enumerate(self.items.items(), 1):
            numbers.setdefault(key, label or str(index))

        listed: list[str] = []

        def fill(found: re.Match[str]) -> str:
            kind, text = found[1], found[2]
            if kind == "R":
                return self._reference(text)
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


MAX_DEPTH: Final = 40
"""Nesting depth of environments and arguments; deeper LaTeX is kept as plain text."""

_CHECK: Final = 500  # tokens between two checks of the time
_LIGATURES: Final = (("---", "—"), ("--", "–"), ("``", "“"), ("''", "”"), ("`", "‘"), ("'", "’"))
_COMMAND: Final = re.compile(r"\\[a-zA-Z@]+\*?|[{}]")
_LABEL: Final = re.compile(r"\\label\s*\{([^{}]*)\}")
_SPACE: Final = re.compile(r"[ \t\n]+")
_DEFINING: Final = frozenset(
    """newcommand renewcommand providecommand DeclareRobustCommand newenvironment renewenvironment def gdef edef xdef
    newcommand* renewcommand* providecommand* newenvironment* renewenvironment*""".split()
)
_DOCUMENT_DEFINING: Final = frozenset(
    f"{how}{what}"
    for how in ("New", "Renew", "Provide", "Declare")
    for what in ("DocumentCommand", "ExpandableDocumentCommand", "DocumentEnvironment")
)


class TexReader:
    """Reads one text. The result is in ``parts`` (finished blocks) and ``line`` (the open paragraph).

    :param flat: write inline HTML only, without paragraphs.
    :param literal: keep quotes and dashes as written, as in code.
    """

    def __init__(self, state: TexState, depth: int = 0, *, flat: bool = False, literal: bool = False) -> None:
        self.state, self._depth = state, depth
        self._flat, self._literal = flat, literal
        self.parts: list[str] = []
        self.line: list[str] = []
        self.items: list[tuple[str, str]] | None = None  # items of a list: label and HTML
        self.caption = ""
        self.label = ""
        self.inside_float = False

    # --- output ----------------------------------------------------------------------------

    def flush(self) -> None:
        """End the paragraph."""
        if self._flat:
            self.line.append(" ")
            return
        text = _SPACE.sub(" ", "".join(self.line)).strip()
        self.line.clear()
        if text.replace("<br>", "").strip():
            self.parts.append(f"<p>{text}</p>")

    def block(self, markup: str) -> None:
        """End the paragraph, and add a block."""
        if self._flat:
            self.line.append(markup)
        else:
            self.flush()
            self.parts.append(markup)

    def markup(self) -> str:
        """Return the HTML of everything that was read."""
        if self._flat:
            return _SPACE.sub(" ", "".join(self.line)).strip()
        self.flush()
        return "".join(self.parts)

    def inline(self, latex: str, *, literal: bool = False) -> str:
        """Return LaTeX as inline HTML."""
        if self._depth >= MAX_DEPTH:
            return escape_text(_COMMAND.sub(" ", latex))
        inner = TexReader(self.state, self._depth + 1, flat=True, literal=literal or self._literal)
        inner.run(TexSource(latex))
        return inner.markup()

    def inner(self, latex: str, *, is_float: bool = False) -> TexReader:
        """Return a reader that has read the body of an environment; in a float, captions are kept aside."""
        reader = TexReader(self.state, self._depth + 1)
        reader.inside_float = is_float
        if self._depth >= MAX_DEPTH:
            reader.line.append(escape_text(_COMMAND.sub(" ", latex)))
        else:
            reader.run(TexSource(latex))
        return reader

    # --- reading ----------------------------------------------------------------------------------

    def run(self, source: TexSource) -> None:
        """Read to the end, or until the time is up."""
        count = 0
        while True:
            kind, text = source.next()
            count += 1
            if kind == "end" or (count % _CHECK == 0 and self.state.is_time_over()):
                return
            if kind == "text":
                self._add_words(text)
            elif kind == "command":
                if text == "end" and self._ends_document(source):
                    return
                self._command(text, source)
            elif kind == "par":
                self.flush()
            elif kind == "math":
                self.math(source.until(text), display=text == "$$")
            elif text == "~":
                self.line.append("\u00a0")
            elif text in "#^_":
                self.line.append(text)
            elif text == "&":
                self.line.append(" ")

    def _add_words(self, text: str) -> None:
        if not self._literal:
            for written, shown in _LIGATURES:
                text = text.replace(written, shown)
        self.line.append(escape_text(text))

    def math(self, tex: str, *, display: bool = False, number: str = "") -> None:
        """Add a formula, inline or as a paragraph (``display``)."""
        tex = " ".join(_LABEL.sub("", tex).split())
        if not tex:
            return
        code = f'<code class="math">{escape_text(tex)}</code>' + (f" ({number})" if number else "")
        if display:
            self.block(f"<p>{code}</p>")
        else:
            self.line.append(code)

    def _ends_document(self, source: TexSource) -> bool:
        """Read the name after ``\\end``; return True at the end of the document."""
        return source.argument().strip() == "document"

    def _command(self, name: str, source: TexSource) -> None:
        macros = self.state.macros
        base = name.rstrip("*") if name[0].isalpha() else name
        macro = macros.commands.get(name) or macros.commands.get(base)
        if macro is not None:
            self.push_expansion(expand(macro, source, macros, starred=name.endswith("*")), source)
        elif name in _DEFINING:
            define(base, source, macros)
        elif base in _DOCUMENT_DEFINING:
            define_document(base, source, macros)
        elif base in vocabulary.STYLES:
            tag = vocabulary.STYLES[base]
            inner = self.inline(source.argument(), literal=tag == "code")
            self.line.append(f"<{tag}>{inner}</{tag}>" if inner else "")
        elif base in vocabulary.HEADINGS:
            self._heading(base, name != base, source)
        elif base in vocabulary.CITES:
            self._cite(base, source)
        elif base in vocabulary.REFERENCES:
            mark = f"\ue000R{base}\ue002{source.argument()}\ue001"
            self.line.append(f"({mark})" if base == "eqref" else mark)
        elif name in vocabulary.ACCENTS and (not name.isalpha() or source.peek() not in ("", " ")):
            self._accent(name, source)
        elif name in vocabulary.SYMBOLS:
            self.line.append(escape_text(vocabulary.SYMBOLS[name]))
        elif base in vocabulary.DROPPED:
            source.option()
            for _ in range(vocabulary.DROPPED[base]):
                source.argument()
        else:
            handler = self.state.handlers.get(base)
            if handler is not None:
                handler(self, source)
            else:
                self._unknown(name, source)

    def push_expansion(self, text: str | None, source: TexSource) -> None:
        """Read the expansion of a macro next. Beyond the limit on expansion, record a note instead."""
        if text is None or not source.push(text):
            self.state.remark("Macros of this document grow without end; from some point on they stand for nothing.")

    def _unknown(self, name: str, source: TexSource) -> None:
        """Drop an unknown command and its option. The text of its arguments is kept; a counter is written."""
        if name.startswith("the") and name[3:] in self.state.counters:
            self.line.append(str(self.state.counters[name[3:]]))
            return
        option = source.option()
        if option is not None and source.peek() != "{":
            self.line.append(escape_text(f"[{option}]"))

    def _accent(self, name: str, source: TexSource) -> None:
        letter = self.inline(source.argument())
        self.line.append(vocabulary.add_accent(name, letter) if letter[:1].isalpha() else letter)

    def _heading(self, name: str, starred: bool, source: TexSource) -> None:
        source.option()
        text = self.inline(source.argument())
        number = "" if starred else self.state.heading_number(name)
        level = vocabulary.HEADINGS.index(name) - (0 if self.state.chapters else 1)
        level = 2 if name == "part" else min(6, max(2, level + 1))
        self.state.last_title = text
        self.block(f"<h{level}>{f'{number} ' if number else ''}{text}</h{level}>" if text else "")

    def _cite(self, name: str, source: TexSource) -> None:
        options = [option for option in (source.option(), source.option()) if option is not None]
        keys = [key.strip() for key in source.argument().split(",") if key.strip()]
        if name == "nocite":
            self.state.cite_all = self.state.cite_all or keys == ["*"]
        self.state.cited.update(dict.fromkeys(keys))
        if name != "nocite" and keys:
            extra = self.inline(options[-1]) if options else ""
            self.line.append(
                f"\ue000C{','.join(map(escape_text, keys))}\ue002{extra}\ue001".replace("\ue002\ue001", "\ue001")
            )

    # --- used by commands and environments -------------------------------------------------------------------

    def list_inner(self, latex: str) -> list[tuple[str, str]]:
        """Return the items of a list: label and HTML."""
        reader = TexReader(self.state, self._depth + 1)
        reader.items = []
        if self._depth >= MAX_DEPTH:
            return [("", escape_text(_COMMAND.sub(" ", latex)))]
        reader.run(TexSource(latex))
        reader.close_item()
        return reader.items

    def table(self, body: str, caption: str = "", columns: Sequence[Column] = ()) -> None:
        """Add the body of a ``tabular`` as a table."""
        estimate = body.count("&") + body.count("\\\\")
        allowed = max(self.state.cells, 0)
        self.state.cells -= estimate
        self.block(to_markup(body, self.inline, allowed, caption, columns))

    def code(self, text: str, language: str = "") -> None:
        """Add code with its white space."""
        self.block(preformatted(text.strip("\n"), language))

    def display(self, tex: str, number: str = "") -> None:
        """Add a formula as a separate paragraph."""
        self.math(tex, display=True, number=number)

    def close_item(self) -> None:
        """Put everything that was read since ``\\item`` into that item."""
        if self.items:
            self.items[-1] = (self.label, without_first_paragraph(self.markup()))
        self.parts.clear()
        self.line.clear()
