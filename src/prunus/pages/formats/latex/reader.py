"""Convert LaTeX to HTML in one pass over the tokens. Arguments and environments get inner readers."""

from __future__ import annotations

import re
from typing import Final

from .._common.write import escape_text, preformatted, without_first_paragraph
from . import words as vocabulary
from .source import TexSource, define, expand
from .state import TexState
from .table import to_markup as table_markup

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
            self.push_expansion(expand(macro, source, macros), source)
        elif name in _DEFINING:
            define(base, source, macros)
        elif base in vocabulary.STYLES:
            tag = vocabulary.STYLES[base]
            inner = self.inline(source.argument(), literal=tag == "code")
            self.line.append(f"<{tag}>{inner}</{tag}>" if inner else "")
        elif base in vocabulary.HEADINGS:
            self._heading(base, name != base, source)
        elif base in vocabulary.CITES:
            self._cite(base, source)
        elif base in vocabulary.REFERENCES:
            keys = source.argument()
            mark = f"\ue000R{keys}\ue001"
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
                self._unknown(source)

    def push_expansion(self, text: str | None, source: TexSource) -> None:
        """Read the expansion of a macro next. Beyond the limit on expansion, record a note instead."""
        if text is None or not source.push(text):
            self.state.remark("Macros of this document grow without end; from some point on they stand for nothing.")

    def _unknown(self, source: TexSource) -> None:
        """Drop an unknown command and its option. The text of its arguments is kept."""
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

    def table(self, body: str, caption: str = "") -> None:
        """Add the body of a ``tabular`` as a table."""
        estimate = body.count("&") + body.count("\\\\")
        allowed = max(self.state.cells, 0)
        self.state.cells -= estimate
        self.block(table_markup(body, self.inline, allowed, caption))

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
