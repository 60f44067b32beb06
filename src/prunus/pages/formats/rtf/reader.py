"""Read RTF token by token: groups, control words, and text in its code pages."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field, replace
from html import escape
from typing import Final

from ....core.text.numbers import bounded_int
from ...asides import comment
from .._common.allowance import Allowance
from .._common.symbols import is_symbol_font, symbols
from .story import MAX_TABLES, Look, Paragraph, RowShape, Story

MAX_DEPTH: Final = 1000
"""Nesting depth of groups."""

_TOKEN: Final = re.compile(
    rb"\\(?P<word>[a-zA-Z]{1,32})(?P<value>-?\d{1,10})? ?"
    rb"|\\'(?P<hex>[0-9a-fA-F]{2})"
    rb"|\\(?P<sign>[^a-zA-Z])"
    rb"|(?P<brace>[{}])"
    rb"|(?P<text>[^\\{}\r\n]+)"
    rb"|[\r\n]+|\\",
    re.DOTALL,
)
_LINK: Final = re.compile(r'\s*HYPERLINK\s+"?([^"\s]+)"?', re.IGNORECASE)

_SKIPPED: Final = frozenset(
    """objdata objclass objname objalias objsect header headerl headerr headerf footer footerl footerr footerf
    colortbl listtable listoverridetable revtbl rsidtbl generator themedata colorschememapping latentstyles datastore
    xmlnstbl nonshppict private ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn atnid atrfstart
    atrfend bkmkstart bkmkend filetbl template comment keywords operator company category doccomm nextfile xe tc
    rxe txe pgdsctbl fname datafield formfield pgptbl listpicture docvar userprops background do
    shprslt mmathPict blipuid picw stextflow nonesttables""".split()
)
"""Groups that show nothing, repeat on every page, or duplicate other content."""

_COLLECTED: Final = frozenset("title author atnauthor fldinst listtext pntext sn sv".split())
"""Groups whose text is collected as metadata, a link target, a list marker or a shape property."""

_QUIET: Final = frozenset("fonttbl stylesheet info creatim pict object".split())
"""Groups whose direct text is ignored, while the groups inside them are read."""

_STARRED: Final = frozenset(
    """fldinst shpinst shppict picprop sn sv sp mmath moMath moMathPara footnote nesttableprops annotation
    atnauthor""".split()
)
"""Groups marked with ``\\*`` (a reader may ignore them) that are read."""

_OF_ROWS: Final = frozenset("trowd trhdr cellx clmrg clvmgf clvmrg".split())
"""Words that describe the row of a table."""

_CHARACTERS: Final = {
    "page": " ", "column": " ", "softline": " ",
    "tab": "\t", "line": "\v", "lbr": "\v", "emdash": "—", "endash": "–", "emspace": "\u2003", "enspace": "\u2002",
    "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "zwj": "\u200d", "zwnj": "\u200c",
}  # fmt: skip
_SIGNS: Final = {b"~": "\u00a0", b"_": "\u2011", b"\\": "\\", b"{": "{", b"}": "}"}
_CHARSETS: Final = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "cp936", 136: "cp950", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250",
}  # fmt: skip


@dataclass(slots=True)
class RtfState:
    """The state of a group. An inner group starts with a copy of the outer group's state.

    :param into: destination of the text: ``body``, ``skip``, or the name of the group.
    :param ends: action at the end of the group, by name; '' for none.
    :param text: collected text that does not go to the body.
    :param skip: characters after a ``\\u`` that repeat it for old readers and are dropped.
    """

    story: Story
    into: str = "body"
    ends: str = ""
    text: list[str] = field(default_factory=list)
    look: Look = field(default_factory=Look)
    paragraph: Paragraph = field(default_factory=Paragraph)
    nested: bool = False  # inside the description of a row of an inner table
    hidden: bool = False
    deleted: bool = False
    font: int = 0
    skip: int = 1
    style: int = 0


class TooDeep(Exception):
    """Groups are nested deeper than ``MAX_DEPTH``."""


class RtfReader:
    """Reads one document. Call :meth:`read`, then use ``story``, ``notes`` and ``metadata``."""

    def __init__(self, content: bytes, allowance: Allowance) -> None:
        self.content = content
        self.allowance = allowance
        self.story = Story(allowance)
        self.state = RtfState(self.story)
        self.stack: list[RtfState] = []
        self.notes: list[str] = []
        self.metadata: dict[str, str] = {}
        self.codec = "cp1252"
        self.fonts: dict[int, str] = {}
        self.symbol_fonts: dict[int, str] = {}
        self.styles: dict[int, str] = {}
        self.rows = {False: RowShape(), True: RowShape()}  # of the outer table, and of inner tables
        self._bytes = bytearray()  # bytes that wait to be decoded together
        self._starred = False
        self._left = 0  # fallback characters of the last \\u that are still to be dropped
        self._high = 0  # first half of a surrogate pair
        self._property = ""
        self._commenter = ""  # author of the next comment

    def read(self) -> None:
        """Read the whole document.

        :raises TooDeep: groups are nested deeper than ``MAX_DEPTH``.
        """
        position, size, match = 0, len(self.content), _TOKEN.match
        while position < size:
            token = match(self.content, position)
            if token is None:
                break
            position = token.end()
            kind = token.lastgroup
            if kind == "text":
                self._add_bytes(token[0])
            elif kind == "hex":
                self._add_bytes(bytes.fromhex(token["hex"].decode()))
            elif kind in ("word", "value"):
                number = bounded_int((token["value"] or b"").decode(), None, least=-(2**31), most=2**31)
                if token["word"] == b"bin":
                    position += min(max(number or 0, 0), size)  # skip binary data, which may hold braces
                else:
                    self._flush()
                    self._word(token["word"].decode(), number)
            elif kind is not None:
                self._flush()
                self._mark(token[0])
        self._flush()
        while self.stack:
            self._close()

    def _mark(self, mark: bytes) -> None:
        """Handle a brace or a control symbol."""
        if mark == b"{":
            if len(self.stack) >= MAX_DEPTH:
                raise TooDeep
            self.stack.append(self.state)
            self.state = replace(self.state, ends="", paragraph=replace(self.state.paragraph))
            if self.state.into == "stylesheet":
                self.state.ends, self.state.text, self.state.style = "style", [], 0
            self._starred = False
        elif mark == b"}":
            self._close()
        elif mark == b"\\*":
            self._starred = True
        elif mark in (b"\\\n", b"\\\r"):
            self._word("par", None)
        elif mark[1:] in _SIGNS:
            self._add_text(_SIGNS[mark[1:]])

    def _close(self) -> None:
        """End a group, and use the text that it collected."""
        if not self.stack:
            return
        ended, self.state = self.state, self.stack.pop()
        self._left = 0
        text = "".join(ended.text) if ended.ends else ""
        if ended.ends == "style":
            self.styles[ended.style] = text.partition(";")[0].strip()
        elif ended.ends in ("title", "author"):
            self.metadata[ended.ends] = " ".join(text.split())
        elif ended.ends in ("listtext", "pntext"):
            ended.story.marker = text.strip() or ended.story.marker
        elif ended.ends == "fldinst":
            match = _LINK.match(text)
            self.state.look = replace(self.state.look, href=match[1] if match else "")
        elif ended.ends == "sn":
            self._property = text.strip()
        elif ended.ends == "sv":
            if self._property == "wzDescription" and text.strip():
                ended.story.beside.append(f'<figure><img alt="{escape(" ".join(text.split()))}"></figure>')
        elif ended.ends == "footnote":
            self.notes.append(ended.story.html())
            self.state.story.write(f"[{len(self.notes)}]", replace(self.state.look, raised="sup"))
        elif ended.ends == "atnauthor":
            self._commenter = " ".join(text.split())
        elif ended.ends == "annotation":
            said = comment(ended.story.html(), escape(self._commenter, quote=False))
            self.state.story.beside += [said] if said else []
            self._commenter = ""
        elif ended.ends == "shptxt":
            self.state.story.beside.append(ended.story.html())

    def _word(self, word: str, number: int | None) -> None:
        """Handle a control word."""
        state = self.state
        starred, self._starred = self._starred, False
        if state.into == "skip":
            return
        if word in _SKIPPED or (starred and word not in _STARRED):
            state.into, state.ends = "skip", ""
        elif word in _COLLECTED:
            state.into = state.ends = word
            state.text = []
        elif word in _QUIET:
            state.into = word
        elif word in ("footnote", "shptxt", "annotation"):
            state.into, state.ends, state.story = "body", word, Story(self.allowance)
            state.paragraph, state.look, state.hidden = Paragraph(), Look(), False
        elif word == "result":
            state.into = "body"
        elif word in _CHARACTERS:
            self._add_text(_CHARACTERS[word])
        elif word == "u":
            self._unicode(number or 0)
        elif state.into == "body":
            if not self._change_look(state, word, number):
                self._change_paragraph(state, word, number)
        else:
            self._record_definition(state, word, number)

    def _change_look(self, state: RtfState, word: str, number: int | None) -> bool:
        """Apply a control word that changes the look of the following text; return False for any other word."""
        on = number != 0
        if word == "b":
            state.look = replace(state.look, bold=on)
        elif word == "i":
            state.look = replace(state.look, italic=on)
        elif word in ("strike", "striked"):
            state.look = replace(state.look, struck=on)
        elif word in ("super", "sub"):
            state.look = replace(state.look, raised=("sup" if word == "super" else "sub") if on else "")
        elif word in ("up", "dn") and not state.paragraph.is_drop_cap:
            state.look = replace(state.look, raised=("sup" if word == "up" else "sub") if on else "")
        elif word == "nosupersub":
            state.look = replace(state.look, raised="")
        elif word == "v":
            state.hidden = on
        elif word == "deleted":
            state.deleted = on
        elif word == "plain":
            state.look, state.hidden, state.font = Look(href=state.look.href), False, 0
        elif word == "f":
            state.font = number or 0
        elif word == "uc":
            state.skip = min(max(number or 0, 0), 100)
        elif word == "ansicpg":
            self.codec = _codec(f"cp{number}", self.codec)
        elif word in ("mac", "pc", "pca"):
            self.codec = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
        else:
            return False
        return True

    def _change_paragraph(self, state: RtfState, word: str, number: int | None) -> None:
        """End paragraphs, cells and rows, and set the properties of the next ones."""
        props = state.paragraph
        if word in ("par", "sect"):
            state.story.end_paragraph(props)
        elif word == "pard":
            state.paragraph = Paragraph()
        elif word == "s":
            props.style = self.styles.get(number or 0, "")
        elif word == "outlinelevel":
            props.outline = number if number is not None and 0 <= number < 9 else 9
        elif word == "dropcapli":
            props.is_drop_cap = bool(number)
        elif word == "ls":
            props.listed = bool(number)
        elif word == "ilvl":
            props.level = min(max(number or 0, 0), 8)
        elif word == "intbl":
            props.depth = max(props.depth, 1)
        elif word == "itap":
            props.depth = min(max(number or 0, 0), MAX_TABLES)
        elif word in ("cell", "nestcell"):
            state.story.end_cell(props, 1 if word == "cell" else max(props.depth, 2))
        elif word in ("row", "nestrow"):
            state.story.end_row(self.rows[state.nested], 1 if word == "row" else max(props.depth, 2))
        elif word == "nesttableprops":
            state.nested = True
        elif word in _OF_ROWS:
            self._describe_row(state, word, number)

    def _describe_row(self, state: RtfState, word: str, number: int | None) -> None:
        """Record the edges and merges of the cells of a row."""
        row = self.rows[state.nested]
        if word == "trowd":
            self.rows[state.nested] = RowShape()
        elif word == "trhdr":
            row.head = True
        elif word == "cellx":
            row.close_cell(number or 0)
        elif word == "clmrg":
            row.pending.merges_left = True
        elif word in ("clvmgf", "clvmrg"):
            row.pending.vertical_merge = "start" if word == "clvmgf" else "on"

    def _record_definition(self, state: RtfState, word: str, number: int | None) -> None:
        """Record fonts, styles and dates."""
        if state.into == "fonttbl":
            if word == "f":
                state.font = number or 0
            elif word == "fcharset" and number is not None and number in _CHARSETS and number:
                self.fonts[state.font] = _CHARSETS[number]
        elif state.into == "stylesheet" and word == "s":
            state.style = number or 0
        elif state.into == "creatim" and word in ("yr", "mo", "dy") and number is not None:
            before = self.metadata.get("published", "")[:7]  # year and month
            self.metadata["published"] = f"{number:04d}" if word == "yr" else f"{before}-{number:02d}"
        elif word == "f" and state.into in _COLLECTED:
            state.font = number or 0

    # --- text ---------------------------------------------------------------------------------

    def _add_bytes(self, data: bytes) -> None:
        """Add undecoded bytes; drop the fallback characters after a ``\\u``."""
        if self._left:
            dropped = min(self._left, len(data))
            self._left -= dropped
            data = data[dropped:]
        if self.state.into != "skip":
            self._bytes += data

    def _flush(self) -> None:
        """Decode the waiting bytes."""
        if self._bytes:
            font = self.symbol_fonts.get(self.state.font, "") if self.state.into != "fonttbl" else ""
            text = self._bytes.decode("latin-1" if font else self.fonts.get(self.state.font, self.codec), "replace")
            self._bytes.clear()
            self._add_text(symbols(font, text) if font else text)

    def _unicode(self, number: int) -> None:
        code = number + 65536 if number < 0 else number
        self._left = self.state.skip
        if 0xD800 <= code < 0xDC00:
            self._high = code
        elif 0xDC00 <= code < 0xE000:
            if self._high:
                self._add_text(chr(0x10000 + ((self._high - 0xD800) << 10) + code - 0xDC00))
            self._high = 0
        elif 0 < code < 0x110000:
            font = self.symbol_fonts.get(self.state.font, "")
            if font or 0xF000 <= code <= 0xF0FF:
                self._add_text(symbols(font, chr(code)) if font else "•")
            else:
                self._add_text(chr(code))

    def _add_text(self, text: str) -> None:
        """Send decoded text to the destination of the group."""
        state = self.state
        if state.into == "body":
            if not state.hidden and not state.deleted:
                state.story.write(text.replace("\0", ""), state.look)
        elif state.into == "fonttbl" and is_symbol_font(text):
            self.symbol_fonts[state.font] = text.strip(" ;")
        elif state.into in _COLLECTED or state.ends == "style":
            state.text.append(text)


def _codec(name: str, default: str) -> str:
    """Return a codec that Python knows, or ``default``."""
    try:
        result = codecs.lookup({"cp65001": "utf-8", "cp10000": "mac_roman", "cp0": default}.get(name, name))
    except LookupError:
        return default
    return result.name if result._is_text_encoding else default
