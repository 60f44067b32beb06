"""Remove pictures, links, addresses, HTML and citations of unread pages from a model's answer.

A hostile page may instruct the model to write them, and a picture's address alone can leak data when a browser loads
the picture. So the text of a model is never trusted.

An answer is a stream, and what was shown cannot be taken back. So it is read by lines, each made safe by itself: what
is not closed on its line is escaped, and nothing reaches from one line into another. Plain words at the start of a
line are shown at once. Code between fences is kept, with fences that every renderer reads as such; of the names behind
a fence only those of languages stay that no client draws or runs, and of the addresses in code only those whose host
the model has read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ...core.text.numbers import bounded_int

LEFT_OUT: Final = "(address left out)"
"""What stands in the place of an address."""

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters and changes of direction, which a terminal or a browser would obey."""

_HELD: Final = 1_000
"""Code points of a line that are held back at most. A longer line is made safe in parts."""

_PLAIN: Final = r"[^\s\\`<>\[\]【】&@~|.:/]|[.:](?=[\s\d.:*_\"'(),;)!?\[])|/(?!/)"
"""A letter of a word that is shown at once: nothing in it begins anything."""

_FULL_STOPS: Final = "。，、；：？！）》」』…"
"""Punctuation that stands without white space, and ends every address."""

_ROUNDS: Final = 12
"""What is taken out may join its neighbours to something new; after this many rounds only words are kept."""

_MARKS: Final = re.compile(r"[\s>*+\-\d.)|:]*")
"""The start of a line before its words: the marks of quotes, lists and tables."""

_FIRST_WORD: Final = re.compile(rf"{_MARKS.pattern}(?<!:)[^\s>*+\-\d.)|:\[]")
_HOT: Final = re.compile(r"[\\`<\[\]&@【]|~~~|\.\w|:\S|//")
"""A line without any of these needs no change."""

# -- code between fences ----------------------------------------------------------------------------

_FENCE: Final = re.compile(r"((?:[ \t>]|[*+-](?=[ \t])|\d{1,9}[.)](?=[ \t]))*)(?:(`{3,}+)([^`]*)|(~{3,}+)(.*))")
_LANGUAGES: Final = frozenset(
    """ada asm awk bash bat batch c c# c++ clojure cmake cobol console cpp cs csharp csv cuda d dart diff
    dockerfile elixir elm erlang f# fish fortran fsharp go golang gradle groovy haskell hcl hs http ini java jl
    json json5 jsonc jsonl julia kotlin kt lisp log lua makefile matlab nginx nim nix objc ocaml pascal patch
    perl php plain plaintext powershell prolog properties proto protobuf ps1 py pycon python python3 r rb rs rst
    ruby rust scala scheme sh shell sol solidity sql swift tcl terraform text toml txt vb verilog vhdl vim yaml
    yml zig zsh""".split()
)
"""The names of languages that stay behind a fence. Clients draw or run others: mermaid, svg, html, math, js, css, …"""

_CODE_ADDRESS: Final = re.compile(
    r"(?:(?:https?|wss?|ftp):|(?<=[\"'=(])(?=//[\w-]+\.\w))//([^\s<>\"'`)\]}/?#|,;]*)[^\s<>\"'`)\]]*", re.I
)
_PORT: Final = re.compile(r":\d*\Z")
_NOBODYS: Final = re.compile(r"(?:[\w-]+\.)*(?:localhost|example(?:\.(?:com|net|org))?)|127\.0\.0\.1|\[::1")
"""Hosts that examples name and nobody owns."""
_BEGINS: Final = re.compile(r"(?:h|ht|htt|https?|w|wss?|f|ft|ftp):?/?\Z", re.I)
"""What may be the beginning of an address in code."""

# -- addresses --------------------------------------------------------------------------------------

_PLAIN_LINK: Final = re.compile(r"(?:\[[^\[\]!<`&\\|]*\]\([^\s()<>\\&|\"'`]*\)|<[^\s()<>\\&|\"'`]*>)")
"""A link without anything in it that two parsers could read differently."""

_ADDRESS: Final = re.compile(
    r"""(?: [a-z][a-z0-9+.-]{0,30}://
          | (?<![a-z0-9])(?:javascript|vbscript|data|file|blob|mailto|xmpp):(?=\S)
          | (?<![a-z0-9])www\.(?=\w)
          | //(?=localhost|[\w-]+\.[\w-]) )
        [^\s<>"')\]。，、；：？！）】》」』]*""",
    re.I | re.X,
)
_HOST: Final = re.compile(r"(?:[\w.%+@-]|[^\x00-\x7f\s](?=\.))+")
_MAIL: Final = re.compile(r"[\w.+-]@[^@.]*\.\w")
_PATH: Final = re.compile(r"(?::\d+)?(?:[/?#][^\s<>\"')\]`]*)?")
_TOP_LEVEL: Final = re.compile(
    r"""[\w\x80-\U0010ffff]\.(?:biz|com|edu|gov|net|org|pro|web|xxx|aero|asia|coop|info|museum|name|shop|рф|xn--[\w-]+
    |a[cdefgilmnoqrstuwxz]|b[abdefghijmnorstvwyz]|c[acdfghiklmnoruvwxyz]|d[ejkmoz]|e[cegrstu]|f[ijkmor]
    |g[abdefghilmnpqrstuwy]|h[kmnrtu]|i[delmnoqrst]|j[emop]|k[eghimnprwyz]|l[abcikrstuvy]|m[acdeghklmnopqrstuvwxyz]
    |n[acefgilopruz]|om|p[aefghklmnrstwy]|qa|r[eosuw]|s[abcdeghijklmnortuvxyz]|t[cdfghjklmnortvwz]|u[agksyz]|v[aceginu]
    |w[fs]|y[et]|z[amw])(?![^\W_])""",
    re.I | re.X,
)
"""The last parts of the names that renderers turn into links; of the newer ones they know few."""

# -- what another line could complete ---------------------------------------------------------------

_OPEN: Final = re.compile(
    r"`|<(?=[!?]|/?[a-z][a-z0-9-]*(?:[\s/>]|\Z)|[a-z][a-z0-9+.-]{1,31}:|[^\s<>]+@)|\[(?=\^)|(?<=\])[(:]", re.I
)
"""Backticks without an end, what may begin a tag, a footnote or an address, and what may end a link's text or name."""

_RISKY: Final = re.compile(r"<[a-z/!?]|\]\(|//|\bwww\.", re.I)

# -- citations --------------------------------------------------------------------------------------

_NUMBERS: Final = r"\d++(?:\s?[-\u2013]\s?\d++)?+"
_CITATION: Final = re.compile(
    rf"([ \t]?)\\?[\[【]\s?(?:\^|sources?\s)?\s?({_NUMBERS}(?:\s?[,;]\s?{_NUMBERS}){{0,99}})"
    r"(?:†[^\]】]{0,99})?\s?\\?[\]】]",
    re.I,
)
_REFERENCE: Final = re.compile(r"(?<!\\)!\[(?!\s?\d)[^\[\]]*\](?:(\[\d+\])|\[[^\[\]]*\])")
_ENDING: Final = ".,;!?*_~\"')" + _FULL_STOPS
"""What may follow a word without white space, where a citation before it was removed."""


class _Part(NamedTuple):
    """A part of a line: as written, and as a reader sees it; ``\\0`` where that is code or a link."""

    raw: str
    seen: str


class Guard:
    """Filters a stream of text; what is shown does not depend on where the stream is split.

    :param sources: the numbers of the sources, or how many there are; citations of other numbers are removed. A mapping
        gives each number the address of its source, to which the answer may link.
    :param read: what the model has read. Code of the answer may hold addresses of the hosts that are named there.
    """

    def __init__(self, sources: int | Collection[int], read: Iterable[str] = ()) -> None:
        self._numbers = sorted(range(1, sources + 1) if isinstance(sources, int) else sources)
        self._addresses = frozenset(sources.values() if isinstance(sources, Mapping) else ())
        named = (found[1] for text in (*read, *self._addresses) for found in _CODE_ADDRESS.finditer(text))
        self._hosts = frozenset(_host_of(authority) for authority in named)
        self._parser = MarkdownIt("zero", {"html": True})
        self._parser.enable(["escape", "backticks", "entity", "link", "image", "autolink", "html_inline"])
        self._parser.validateLink = lambda url: True  # type: ignore[method-assign]
        self._parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
        cited = "|".join(map(str, self._numbers)) or "(?!)"
        self._words = re.compile(
            rf"(?:[ \t]*(?:{_PLAIN}|\[(?:{cited})\](?!\()){{1,100}}(?:(?=[ \t])|(?<=[{_FULL_STOPS}])(?=[^.])))+"
        )
        self._held = ""  # what is not shown yet of the line
        self._begun = False  # a part of the line is shown
        self._bar = False  # a bar stands in code of this line: as a row of a table, it would be split there
        self._risky_row = self._risky_row_above = False  # split, the line would show what is not allowed
        self._row = self._row_above = False  # a bar stands in the line
        self._in_table = False  # rows of a table may stand here
        self._fence = ""  # the fence of open code
        self._before = ""  # what stood before the fence on its line
        self._after_return = False  # the last letter was a carriage return

    def feed(self, text: str) -> str:
        """Take a piece of the stream, and return the text that can be shown now."""
        if not text:
            return ""
        if self._after_return and text[0] == "\n":
            text = text[1:]
        self._after_return = text[-1:] == "\r"
        first, *lines = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
        self._held += first
        self._row = self._row or "|" in first
        out = list(self._shown())
        for line in lines:
            out += [self._rest_of_line(), "\n"]
            self._held = line
            self._row_above, self._row = self._row, "|" in line
            self._risky_row_above, self._risky_row = self._risky_row, False
            self._begun = self._bar = False
            out += self._shown()
        return "".join(out)

    def rest(self) -> str:
        """Return the text that was held back, at the end of the stream; open code is closed."""
        left = self._rest_of_line()
        return f"{left}\n{self._indent()}{self._fence}" if self._fence else left

    # -- lines --------------------------------------------------------------------------------------

    def _shown(self) -> Iterator[str]:
        """Yield what can be shown of a line before its end."""
        while True:
            words = None if self._fence else self._words.match(self._held)
            if words and (self._begun or _FIRST_WORD.match(words[0])):
                yield words[0]
                self._held, self._begun = self._held[words.end() :], True
            if len(self._held) < _HELD:
                return
            if end := self._end_of_quotation():
                yield end
                continue
            part, self._held = self._held[:_HELD], self._held[_HELD:]
            if self._fence:
                part, self._held = _cut_before_address(part, self._held)
                yield self._code(part)
                self._begun = bool(self._fence)
                if not self._fence:  # what follows its end must not stand on the same line
                    yield "\n"
                continue
            cut = max(part.rfind(" "), part.rfind("\t"))
            if cut > 0:
                part, self._held = part[:cut], part[cut:] + self._held
            yield self._text(part) + " " * (cut <= 0)
            self._begun = True

    def _rest_of_line(self) -> str:
        end = self._end_of_quotation()
        line, self._held = self._held, ""
        if self._fence:
            return self._code(line)
        if not self._begun and (fence := _FENCE.fullmatch(line)):
            self._in_table = False
            return end + self._begin_code(fence)
        text = self._text(line)
        if not self._begun and _MARKS.fullmatch(text):
            if "-" in text and self._risky_row_above:  # the line above must not become the head of a table
                return end + re.sub(r"(?=[|:-])", r"\\", text, count=1)
            rule = "-" in text and (self._row_above or "|" in text or ":" in text)
            self._in_table = bool(text.strip(" \t>")) and (self._in_table or rule)
        return end + text

    # -- code between fences ------------------------------------------------------------------------

    def _begin_code(self, line: re.Match[str]) -> str:
        """Begin code, on a line of its own: behind three spaces at most, a fence begins code whatever stands above."""
        self._before, self._fence = line[1], line[2] or line[4]
        info = (line[3] or line[5] or "").split()
        name = info[0] if info and info[0].lower() in _LANGUAGES else ""
        mark = "" if ">" in line[1] else line[1].rstrip()
        return (f"{mark}\n" if mark else "") + f"{self._indent()}{self._fence}{name}"

    def _indent(self) -> str:
        """Return the spaces before each line of the code, by which it stays in the item of a list."""
        return "" if ">" in self._before else " " * min(3, len(self._before.expandtabs(4)))

    def _end_of_quotation(self) -> str:
        """End code whose quotation ends above this line; return the line that ends it, else ''."""
        marks = self._before.count(">")
        if not self._fence or self._begun or re.match(rf"(?:[ \t]*>){{{marks}}}", self._held):
            return ""
        fence, self._fence = self._fence, ""
        return f"{fence}\n"

    def _code(self, line: str) -> str:
        """Return a line of code, or its part; a fence of its own line ends the code."""
        line = self._inert(line)
        if self._begun:
            return line
        quote, _, inside = self._before.rpartition(">")
        if quote or ">" in self._before:
            line, inside = re.sub(rf"\A(?:[ \t]*>){{{self._before.count('>')}}} ?", "", line), inside[1:]
        code = line.lstrip(" \t")
        bare = code.strip()
        if len(bare) >= len(self._fence) and not bare.strip(self._fence[0]):
            fence, self._fence = self._fence, ""
            return self._indent() + fence
        spaces = line[: len(line) - len(code)]
        if inside:  # as far as the fence is indented, its code is as well
            spaces = spaces.expandtabs(4)[len(inside.expandtabs(4)) :]
        return f"{self._indent()}{spaces}{code}" if code or len(line) >= _HELD else ""

    def _inert(self, code: str) -> str:
        """Return code without addresses of hosts that the model has not read of."""
        return _CODE_ADDRESS.sub(self._known_address, code)

    def _known_address(self, found: re.Match[str]) -> str:
        host = _host_of(found[1])
        return found[0] if host in self._hosts or _NOBODYS.fullmatch(host) else LEFT_OUT

    # -- text ---------------------------------------------------------------------------------------

    def _text(self, text: str) -> str:
        """Return a line of text, or its part, without what is not allowed."""
        if not _HOT.search(text):
            return text
        for _ in range(_ROUNDS):
            safe = self._safer(text)
            if safe == text:
                self._bar = self._bar or ("`" in text and "|" in text)
                return text
            text = safe
        return re.sub(r"[^\w\s]", "", text)

    def _safer(self, text: str) -> str:
        """Return a text after the first of these steps that changes it."""
        parts = self._allowed(text)
        for step in (_joined, self._closed, self._without_addresses):
            if (changed := step(parts)) != text:
                return changed
        return self._with_known_numbers(parts)

    def _allowed(self, text: str) -> list[_Part]:
        """Return the parts that the parser finds, without pictures, tags, and links to other pages."""
        tokens: list[Token] = []
        self._parser.inline.parse(text, self._parser, {}, tokens)
        parts: list[_Part] = []
        opened, link, bar = 0, Token("", "", 0), self._bar
        for token in tokens:
            if token.type == "text":
                parts.append(_Part(token.content, token.content))
            elif token.type == "text_special":
                parts.append(_Part(token.markup, token.content))
            elif token.type == "code_inline":
                bar = bar or "|" in token.content
                parts.append(self._code_span(token, bar))
            elif token.type == "link_open":
                opened, link = len(parts), token
            elif token.type == "link_close":
                parts[opened:] = [self._link(link, "".join(part.raw for part in parts[opened:]))]
        return parts

    def _code_span(self, token: Token, bar: bool) -> _Part:
        """Return code; in a table not with anything risky, where a bar in code of the line would split it in two."""
        code, ticks = self._inert(token.content), token.markup
        if bar and (_RISKY.search(code) or any(_hosts(code))):
            self._risky_row = True
            if self._in_table:
                return _Part(code, "")
        padded = "`" in (code[:1], code[-1:]) or (code[:1] == code[-1:] == " " and code.strip())
        return _Part(f"{ticks} {code} {ticks}" if padded else f"{ticks}{code}{ticks}", "\0")

    def _link(self, token: Token, label: str) -> _Part:
        address = str(token.attrs["href"])
        written = f"<{address}>" if token.markup == "autolink" else f"[{label}]({address})"
        if _CITATION.fullmatch(f"[{label.strip()}]"):
            return _Part(f"[{label.strip()}]", "")
        if address in self._addresses and "title" not in token.attrs and _PLAIN_LINK.fullmatch(written):
            return _Part(written, "\0")
        return _Part(LEFT_OUT if token.markup == "autolink" else label, "")

    def _closed(self, parts: Sequence[_Part]) -> str:
        """Escape what another line could complete, and what could complete another line."""
        text, out = _joined(parts), ""
        marks = _MARKS.match(text)
        start = text[marks.end() :] if marks and not self._begun else ""
        if start.startswith("~~~"):
            return f"{text[: -len(start)]}\\{start}"
        defines = start.startswith("[")  # "[name]: address"; and without a "[", the name may begin on another line
        opened = False
        for raw, seen in parts:
            done = 0
            for result in _OPEN.finditer(raw) if raw == seen else ():
                opened = opened or "[" in raw[: result.start()]
                if result[0] != ":" or defines or not opened:
                    out += raw[done : result.start()] + "\\"
                    done = result.start()
            opened = opened or (raw == seen and "[" in raw)
            out += raw[done:]
        return out

    # -- addresses ----------------------------------------------------------------------------------

    def _without_addresses(self, parts: Sequence[_Part]) -> str:
        """Remove addresses that stand in the text; names of hosts are written as code, which no renderer links."""
        words: list[list[_Part]] = [[]]
        for part in parts:
            if part.raw == part.seen:
                first, *more = re.split(r"(?<=\s)(?=\S)|(?<=\S)(?=\s)", part.raw)
                words[-1].append(_Part(first, first))
                words += [[_Part(word, word)] for word in more]
            elif part.seen == "\0":
                words += [[part], []]
            else:
                words[-1].append(part)
        out = ""
        for index, word in enumerate(words):
            after = _joined(words[index + 1]) if index + 1 < len(words) else ""
            out += self._word(word, out[-1:] == "`" or after[:1] == "`")
        return out

    def _word(self, parts: Sequence[_Part], beside_code: bool) -> str:
        """Return a word without its addresses; renderers differ in whether they see through escapes and references."""
        raw, seen = _joined(parts), "".join(part.seen for part in parts)
        if raw == seen:
            if (safe := _ADDRESS.sub(self._address, raw)) != raw:
                return safe
            for start, end in reversed(list(_hosts(raw))):
                code = not (beside_code or "\\" in raw or "`" in raw)
                raw = f"{raw[:start]}`{raw[start:end]}`{raw[end:]}" if code else f"{raw[:start]}{LEFT_OUT}{raw[end:]}"
            return raw
        apart = "".join(part.seen if part.raw == part.seen else "\0" for part in parts)
        if _ADDRESS.search(seen) or _ADDRESS.search(apart):
            return LEFT_OUT
        if any(_hosts(seen)) or any(_hosts(apart)):
            name = seen.rstrip(".,;:!?")
            return f"`{name}`{seen[len(name) :]}" if _HOST.fullmatch(name) and not beside_code else LEFT_OUT
        return raw

    def _address(self, found: re.Match[str]) -> str:
        address = found[0].rstrip(".,;:!?*_~")
        allowed = address in self._addresses and _PLAIN_LINK.fullmatch(f"<{address}>")
        return (f"<{address}>" if allowed else LEFT_OUT) + found[0][len(address) :]

    # -- citations ----------------------------------------------------------------------------------

    def _with_known_numbers(self, parts: Sequence[_Part]) -> str:
        """Write citations as [1][2], without numbers that no source has."""
        out = text = ""
        for raw, seen in [*parts, _Part("", "\0")]:
            if seen != "\0":
                text += raw
                continue
            out += _CITATION.sub(self._citation, _REFERENCE.sub(r"\1", text)) + raw
            text = ""
        return out

    def _citation(self, match: re.Match[str]) -> str:
        known: dict[int, None] = {}
        for cited in re.split("[,;]", match[2]):
            ends = [bounded_int(number, 0, most=10**9) for number in re.findall("[0-9]+", cited)] or [0]
            known |= dict.fromkeys(number for number in self._numbers if ends[0] <= number <= ends[-1])
        after = re.split(r"\s", match.string[match.end() :], maxsplit=1)[0]
        space = match[1] if known or after.strip(_ENDING) else ""
        return space + "".join(f"[{number}]" for number in known)


def _joined(parts: Sequence[_Part]) -> str:
    return "".join(part.raw for part in parts)


def _host_of(authority: str) -> str:
    """Return the host of an address's authority as it is compared; one with a user name stays as it is."""
    return _PORT.sub("", authority).lower()


def _cut_before_address(part: str, rest: str) -> tuple[str, str]:
    """Cut the part of a long line of code before an address that may go on in the next part."""
    begins = _BEGINS.search(part, len(part) - 8) or next(
        (found for found in _CODE_ADDRESS.finditer(part) if found.end() == len(part)), None
    )
    return (part[: begins.start()], part[begins.start() :] + rest) if begins and begins.start() else (part, rest)


def _hosts(seen: str) -> Iterator[tuple[int, int]]:
    """Yield the slices that a renderer could take for an e-mail address or a name of a host, with its path."""
    reached = 0
    for match in _HOST.finditer(seen):
        name = match[0].rstrip("._-+%@")
        start, end = match.end() - len(match[0].lstrip("_")), match.start() + len(name)
        if start >= reached and (_TOP_LEVEL.search(name) or _MAIL.search(name)):
            path = _PATH.match(seen, end)
            reached = path.end() if path else end
            yield start, reached
