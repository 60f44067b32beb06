"""Make a piece of a line of Markdown safe: no picture, no HTML, no address but those of the sources.

The CommonMark parser finds what must go. What it leaves is then searched for what another line could complete, and for
addresses that renderers turn into links.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, autolink, backtick, entity, escape, html_inline, image, link

from ...core.text.numbers import bounded_int

LEFT_OUT: Final = "(address left out)"
"""What stands in the place of an address."""

BARE: Final = re.compile(r"[\s>*+\-\d.)|:]*")
"""The start of a line before its words: the marks of quotes, lists and tables."""

_ROUNDS: Final = 12
"""What is taken out may join its neighbours to something new; after this many rounds only words are kept."""

_HOT: Final = re.compile(r"[\\`<\[\]&@【]|~~~|\.\w|:\S|//")
"""A piece without any of these needs no change."""

_LITERAL: Final = re.compile(r"[^\\`&\[!<]+")
_RULES: Final = {
    "\\": (escape,), "`": (backtick,), "&": (entity,), "[": (link,), "!": (image,), "<": (autolink, html_inline),
}  # fmt: skip

_TAG: Final = re.compile(r"<(?:[!?]|/?[a-z][a-z0-9-]*(?:[\s/>]|\Z)|[a-z][a-z0-9+.-]{1,31}:|[^\s<>]+@)", re.I)
"""What may begin a tag or an address, of which the end is missing here."""

_DEFINITION: Final = re.compile(
    r"\[(?:\\.|[^\[\]\\])+\]:[ \t]*(?:<[^<>]*>|(?:[a-z][a-z0-9+.-]*:(?!\d)|www\.|[/#.])\S*)", re.I
)
_PLAIN_LINK: Final = re.compile(r"(?:\[[^\[\]!<`&\\|]*\]\(([^\s()<>\\&|\"'`]*)\)|<([^\s()<>\\&|\"'`]*)>)")
"""A link without anything in it that two parsers could read differently."""

_ADDRESS: Final = re.compile(
    r"""(?: [a-z][a-z0-9+.-]{0,30}://
          | (?<![a-z0-9])(?:javascript|vbscript|data|file|blob|mailto|xmpp):(?=\S)
          | (?<![a-z0-9])www\.(?=\w)
          | //(?=localhost|[\w-]+\.[\w-]) )
        [^\s<>"')\]\0。，、；：？！）】》」』]*""",
    re.I | re.X,
)
_HOST: Final = re.compile(r"[\w.%+@-]+")
_MAIL: Final = re.compile(r"[\w.+-]@[^@.]*\.\w")
_PATH: Final = re.compile(r"(?::\d+)?(?:[/?#][^\s<>\"')\]`\0]*)?")
_TOP_LEVEL: Final = re.compile(
    r"""\w\.(?:biz|com|edu|gov|net|org|pro|web|xxx|aero|asia|coop|info|museum|name|shop|рф|xn--[\w-]+
    |a[cdefgilmnoqrstuwxz]|b[abdefghijmnorstvwyz]|c[acdfghiklmnoruvwxyz]|d[ejkmoz]|e[cegrstu]|f[ijkmor]
    |g[abdefghilmnpqrstuwy]|h[kmnrtu]|i[delmnoqrst]|j[emop]|k[eghimnprwyz]|l[abcikrstuvy]|m[acdeghklmnopqrstuvwxyz]
    |n[acefgilopruz]|om|p[aefghklmnrstwy]|qa|r[eosuw]|s[abcdeghijklmnortuvxyz]|t[cdfghjklmnortvwz]|u[agksyz]|v[aceginu]
    |w[fs]|y[et]|z[amw])(?![^\W_])""",
    re.I | re.X,
)
"""The last parts of the names that renderers turn into links; of the newer ones they know few."""

_RISKY: Final = re.compile(r"<[a-z/!?]|\]\(|//|\bwww\.", re.I)
_NUMBERS: Final = r"\d++(?:\s?[-\u2013]\s?\d++)?+"
_MARK: Final = re.compile(
    rf"([ \t]?)\\?[\[【]\s?(?:\^|sources?\s)?\s?({_NUMBERS}(?:\s?[,;]\s?{_NUMBERS}){{0,99}})"
    r"(?:†[^\]】]{0,99})?\s?\\?[\]】]",
    re.I,
)
_REFERENCE: Final = re.compile(r"(?<!\\)!\[(?!\s?\d)[^\[\]]*\](?:(\[\d+\])|\[[^\[\]]*\])")


class _Part(NamedTuple):
    """A part of a piece: as written, and as a reader sees it, ``\\0`` where that is no text that could be linked."""

    raw: str
    seen: str


_Edit = tuple[int, int, str]
"""A slice of a piece, and what is written in its place."""


class Inline:
    """Makes the pieces of an answer safe.

    :param numbers: the numbers of the sources; citations of other numbers are removed.
    :param addresses: the addresses of the sources; all others are removed.
    """

    def __init__(self, numbers: Collection[int], addresses: Collection[str]) -> None:
        self._numbers, self._addresses = sorted(numbers), frozenset(addresses)
        self.parser = MarkdownIt("commonmark", {"html": True})
        self.parser.validateLink = lambda url: True  # type: ignore[method-assign]
        self.parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
        self.refused = 0
        """How many pictures, links, addresses, tags and citations were removed."""
        self.bars = False
        """Whether code was kept that must not be split by the columns of a table."""

    def safe(self, text: str, start: str | None, in_table: bool = False) -> str:
        """Return a piece without what is not allowed; a piece in which all is allowed is returned as it is.

        :param start: what is written of the line so far; None where that is more than marks.
        :param in_table: the line may be the row of a table, in which bars split code, too.
        """
        if not _HOT.search(text):
            return text
        for _ in range(_ROUNDS):
            safe = self._round(text, start, in_table)
            if safe == text:
                return text
            text = safe
        return re.sub(r"[^\w\s]", "", text)

    def _round(self, text: str, start: str | None, in_table: bool) -> str:
        parts = list(self._parts(text, in_table))
        without = "".join(part.raw for part in parts)
        if without != text:
            return without
        if start is not None and (found := BARE.match(text)):
            lead, rest = found[0], text[found.end() :]
            if rest.startswith("~~~"):
                return f"{lead}\\{rest}"
            if definition := _DEFINITION.match(rest):
                self.refused += 1
                return lead + rest[definition.end() :]
        edits = self._openings_in(text, parts, start) or self._addresses_in(text, parts)
        return _edited(text, edits) if edits else self._with_known_marks(parts)

    # -- what the parser finds ----------------------------------------------------------------------

    def _parts(self, text: str, in_table: bool) -> Iterator[_Part]:
        """Split a piece as the parser reads it; a part that is not allowed has lost what is not."""
        state = self._state(text)
        while state.pos < len(text):
            at = state.pos
            if plain := _LITERAL.match(text, at):
                state.pos = plain.end()
                yield _Part(plain[0], plain[0])
                continue
            state.tokens.clear()
            state.pending = ""
            found = any(rule(state, False) for rule in _RULES[text[at]])
            state.pos = state.pos if found else at + 1
            yield self._part(text[at : state.pos], state.tokens[0] if found and state.tokens else None, in_table)

    def _state(self, text: str) -> StateInline:
        return StateInline(text, self.parser, {}, [])

    def _part(self, raw: str, token: Any, in_table: bool) -> _Part:
        """Return what is kept of something that the parser read as one; None is a mark that stands for itself."""
        if token is None:
            return _Part("\\`" * len(raw), "") if raw[0] == "`" else _Part(raw, raw)  # no code ends on another line
        if token.type == "text_special":
            return _Part(raw, token.content)
        if token.type == "code_inline":
            if "|" in raw and (_RISKY.search(raw) or any(_hosts(raw))):
                if in_table:
                    return _Part(raw.strip("`"), "")
                self.bars = True
            return _Part(raw, "\0")
        plain = _PLAIN_LINK.fullmatch(raw)
        if token.type == "link_open":
            label = raw[1 : self.parser.helpers.parseLinkLabel(self._state(raw), 0)] if raw[0] == "[" else ""
            if _MARK.fullmatch(f"[{label.strip()}]"):
                return _Part(f"[{label.strip()}]", "")
            if plain and (plain[1] or plain[2]) in self._addresses:
                return _Part(raw, "\0")
            self.refused += 1
            return _Part(label if raw[0] == "[" else LEFT_OUT, "")
        self.refused += 1
        return _Part("", "")

    # -- what other parsers may find ----------------------------------------------------------------

    def _addresses_in(self, text: str, parts: Sequence[_Part]) -> list[_Edit]:
        """Find addresses that stand in the text; names of hosts are written as code, which no renderer links."""
        seen, apart = "", ""  # with escapes and references, and without: renderers differ
        places: list[tuple[int, int]] = []  # the slice of the text for each letter that is seen
        at = 0
        for raw, shown in parts:
            plain, end = raw == shown, at + len(raw)
            seen += shown
            apart += shown if plain else "\0" * len(shown)
            places += zip(range(at, end), range(at + 1, end + 1), strict=True) if plain else [(at, end)] * len(shown)
            at = end
        edits: list[_Edit] = []
        for found in _ADDRESS.finditer(seen):
            address = found[0].rstrip(".,;:!?*_~")
            allowed = address in self._addresses and _PLAIN_LINK.fullmatch(f"<{address}>")
            self.refused += not allowed
            first, last = places[found.start()][0], places[found.start() + len(address) - 1][1]
            edits.append((first, last, f"<{address}>" if allowed else LEFT_OUT))
        for start, end in () if edits else (*_hosts(seen),) or (*_hosts(apart),):
            first, last = places[start][0], places[end - 1][1]
            touches = text[first - 1 : first] in ("\\", "`") or text[last : last + 1] == "`"
            edits.append((first, last, LEFT_OUT if touches else f"`{seen[start:end]}`"))
        return edits

    def _openings_in(self, text: str, parts: Sequence[_Part], start: str | None) -> list[_Edit]:
        """Find what may be completed by another line, or completes what another line began."""
        edits: list[_Edit] = []
        opened: list[int] = []
        at = done = 0
        for raw, seen in parts:
            for place in range(max(at, done), at + len(raw) if raw == seen else at):
                letter, after = text[place], text[place + 1 : place + 2]
                if letter == "<" and _TAG.match(text, place):
                    edits.append((place, place, "\\"))
                elif letter == "[":
                    opened.append(place)
                    if after == "^":  # a footnote; where there is none, some renderers link addresses in its code
                        edits.append((place, place, "\\"))
                elif letter == "]":
                    opening = opened.pop() if opened else -1
                    if after == "(":
                        done = place + self._target_length(text[place:])
                        edits.append((place + 1, done, "") if done > place else (place + 1, place + 1, "\\"))
                    elif after == ":" and (opening < 0 or (start is not None and BARE.fullmatch(text[:opening]))):
                        edits.append((place + 1, place + 1, "\\"))
            at += len(raw)
        return edits

    def _target_length(self, text: str) -> int:
        """Return where a link ends of which the label began on another line; 0 where this is no link."""
        state = self._state(f"[{text}")
        if not link(state, True):
            return 0
        self.refused += 1
        return state.pos - 1

    # -- citations ----------------------------------------------------------------------------------

    def _with_known_marks(self, parts: Sequence[_Part]) -> str:
        """Write citations as [1][2], without numbers that no source has."""
        out, text = "", ""
        for raw, seen in [*parts, _Part("", "\0")]:
            if seen != "\0":
                text += raw
                continue
            without, count = _REFERENCE.subn(r"\1", text)
            self.refused += count
            out += _MARK.sub(self._mark, without) + raw
            text = ""
        return out

    def _mark(self, match: re.Match[str]) -> str:
        known: dict[int, None] = {}
        for cited in re.split("[,;]", match[2]):
            ends = [bounded_int(number, 0, most=10**9) for number in re.findall("[0-9]+", cited)] or [0]
            numbers = [number for number in self._numbers if ends[0] <= number <= ends[-1]]
            self.refused += not numbers
            known |= dict.fromkeys(numbers)
        return match[1] * bool(known) + "".join(f"[{number}]" for number in known)


def _hosts(seen: str) -> Iterator[tuple[int, int]]:
    """Yield the places of what a renderer could take for an e-mail address or a name of a host, with its path."""
    reached = 0
    for found in _HOST.finditer(seen):
        name = found[0].rstrip("._-+%@")
        start, end = found.end() - len(found[0].lstrip("_")), found.start() + len(name)
        if start >= reached and (_TOP_LEVEL.search(name) or _MAIL.search(name)):
            path = _PATH.match(seen, end)
            reached = path.end() if path else end
            yield start, reached


def _edited(text: str, edits: Sequence[_Edit]) -> str:
    """Return a text with its slices replaced, which are in order and do not overlap."""
    out, done = [], 0
    for start, end, written in edits:
        out += [text[done:start], written]
        done = end
    return "".join([*out, text[done:]])
