"""``markdown``: CommonMark with tables, task lists, footnotes, definition lists, math and front matter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ...core.types import Page
from ._common.allowance import Allowance
from ._common.write import document, escape_text, note, page_error, preformatted, text_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MAX_NESTING: Final = 100
"""Nesting depth of quotes and lists; deeper content is left out with a note."""

_MAX_PIECE: Final = 200_000
"""Code points; a longer paragraph is not searched for emphasis and links."""

_LINES: Final = 200  # lines between two looks at the clock

_FRONT: Final = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.{0,65536}?)\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_FIELD: Final = re.compile(r"([A-Za-z_][\w -]{0,60}?)[ \t]*+[:=](.*)")
_FIRST_HEADING: Final = re.compile(r"<h1[\s>]")
_TASK: Final = re.compile(r"\[([ xX])\](?=\s)")


class Engine:
    """Markdown as web pages show it. Raw HTML in it is passed on and cleaned like any page.

    :param max_chars: code points of a file; default 8 Mi.
    :param seconds: time limit; default 30. The rest stays plain text, with a note.
    """

    name = "markdown"
    media_types = ("text/markdown", "text/x-markdown")
    suffixes = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd")

    def __init__(self, max_chars: int = 8 << 20, seconds: float = 30.0) -> None:
        self._max_chars, self._seconds = max_chars, seconds

    def to_html(self, page: Page) -> str:
        """Return the text as HTML.

        :raises BadPage: the content is empty or binary, or is longer than ``max_chars``.
        """
        text = text_of(page, "Markdown").replace("\r\n", "\n").replace("\r", "\n")
        if len(text) > self._max_chars:
            raise page_error(
                page, f"{len(text):,} characters are over the limit of {self._max_chars:,}; split the file"
            )
        fields, body = front_matter(text)
        markup = Converter(self._seconds).to_markup(body)
        title = fields.get("title", "")
        if title and not _FIRST_HEADING.search(markup):
            markup = f"<h1>{escape_text(title)}</h1>{markup}"
        return document(
            [markup], title, fields.get("lang", fields.get("language", "")), published=fields.get("date", "")
        )


def front_matter(text: str) -> tuple[Mapping[str, str], str]:
    """Split a text into its front matter, between ``---`` or ``+++``, and the rest.

    Only fields of one line are read. Keys are in lower case. Without front matter the fields are empty.
    """
    match = _FRONT.match(text)
    if not match:
        return {}, text
    fields: dict[str, str] = {}
    for line in match[2].split("\n"):
        field = _FIELD.fullmatch(line.rstrip())
        if field:
            fields[field[1].lower()] = field[2].strip().strip("\"'")
        elif line.strip() and not line.startswith((" ", "\t", "-", "#", "[", "]", "}")):
            return {}, text  # a paragraph between two rules
    return (fields, text[match.end() :]) if fields else ({}, text)


class _Late(Exception):
    """The time is up."""


class Converter:
    """Converts several Markdown texts to HTML within one time limit.

    :param seconds: time limit, also inside a paragraph or a table; after it, text stays as written, with a note.
    """

    def __init__(self, seconds: float) -> None:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.deflist import deflist_plugin
        from mdit_py_plugins.dollarmath import dollarmath_plugin
        from mdit_py_plugins.footnote import footnote_plugin

        reader = MarkdownIt("commonmark", {"html": True, "maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
        reader.use(deflist_plugin).use(footnote_plugin)
        reader.use(dollarmath_plugin, allow_space=False, allow_digits=False, allow_labels=False)
        reader.core.ruler.at("block", self._block)
        reader.core.ruler.at("inline", self._inline)
        inside = ["paragraph", "reference", "blockquote", "list"]  # the blocks that ask other rules at each line
        reader.block.ruler.before("table", "clock", self._check_block, {"alt": inside})
        reader.inline.ruler.before("text", "clock", self._check_inline)
        _set_render_rules(reader)
        self._reader = reader
        self._allowance = Allowance("", seconds)
        self._plain = 0
        self._lines = self._written = self._begin = 0  # lines seen; tokens before the latest block, and its place
        self._rest = ""  # lines that were left when the time was up

    def to_markup(self, text: str) -> str:
        """Return a text as HTML blocks."""
        environment: dict[str, Any] = {}
        self._plain, self._rest = 0, ""
        tokens = self._reader.parse(text, environment)
        notes = []
        if self._plain:
            notes.append(
                f"{self._plain:,} paragraphs were too long to read their emphasis and links; they stand as written."
            )
        if any(token.level >= MAX_NESTING - 1 for token in tokens):
            notes.append(f"Quotes and lists that are nested more than {MAX_NESTING} deep are left out.")
        if self._rest:
            notes.append("The text took too long to read; its rest stands as written.")
        markup = self._reader.renderer.render(tokens, self._reader.options, environment)
        return str(markup) + preformatted(self._rest) + "".join(map(note, notes))

    def _check_block(self, state: StateBlock, line: int, end: int, silent: bool) -> bool:
        """Look at the clock every few lines; this rule matches nothing.

        :param silent: whether a block that began before asks whether it ends at this line.
        """
        if not silent:
            self._written, self._begin = len(state.tokens), state.bMarks[line]
        self._lines += 1
        if self._lines % _LINES == 0 and self._allowance.is_late():
            del state.tokens[self._written :]
            self._rest = state.src[self._begin :]
            raise _Late
        return False

    def _check_inline(self, state: StateInline, silent: bool) -> bool:
        """Look at the clock before each piece of a paragraph; this rule matches nothing."""
        if self._allowance.is_late():
            raise _Late
        return False

    def _block(self, state: StateCore) -> None:
        """Split a text into blocks, until the time is up."""
        with suppress(_Late):
            state.md.block.parse(state.src, state.md, state.env, state.tokens)

    def _inline(self, state: StateCore) -> None:
        """Parse emphasis and links paragraph by paragraph, until the time is up."""
        from markdown_it.token import Token

        for index, token in enumerate(state.tokens):
            if token.type != "inline":
                continue
            children = token.children = []
            task = _TASK.match(token.content) if state.tokens[index - 2].type == "list_item_open" else None
            text = token.content[task.end() :] if task else token.content
            try:
                if len(text) > _MAX_PIECE:
                    raise _Late
                state.md.inline.parse(text, state.md, state.env, children)
                if not self._allowance.take("letters", sum(map(_address_length, children))):
                    raise _Late  # many links may share one long address
            except _Late:
                children[:] = [Token("text", "", 0, content=text)]
                self._plain += 1
            if task:
                checked = "" if task[1] == " " else " checked"
                children.insert(0, Token("html_inline", "", 0, content=f'<input type="checkbox" disabled{checked}>'))


def _address_length(token: Token) -> int:
    return sum(len(str(value)) for value in token.attrs.values())


def _set_render_rules(reader: MarkdownIt) -> None:
    """Render math as TeX in ``<code>``, and footnotes without back links."""
    renderer: Any = reader.renderer
    rules = renderer.rules
    fence = rules["fence"]

    def inline_math(tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return f'<code class="math">{escape_text(tokens[index].content.strip())}</code>'

    def display_math(tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        return f"<p>{inline_math(tokens, index, options, env)}</p>\n"

    def code(tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        if tokens[index].info.strip() == "math":
            return display_math(tokens, index, options, env)
        return str(fence(tokens, index, options, env))

    def reference(tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
        number = tokens[index].meta["id"] + 1
        return f'<sup><a href="#fn{number}">[{number}]</a></sup>'

    rules.update(math_inline=inline_math, math_inline_double=display_math, math_block=display_math, fence=code)
    rules.update(footnote_ref=reference, footnote_open=lambda *_: "<li>", footnote_anchor=lambda *_: "")
    rules.update(footnote_block_open=lambda *_: "<section><ol>\n")
