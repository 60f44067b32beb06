"""Tokenise LaTeX, read arguments, and expand the macros that a document defines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ....core.text.numbers import bounded_int

_TOKEN: Final = re.compile(
    r"(?P<command>\\(?:[a-zA-Z@]+\*?|[\s\S]))"
    r"|(?P<comment>%[^\n]*(?:\n[ \t]*)?)"
    r"|(?P<par>\n[ \t]*\n\s*)"
    r"|(?P<math>\$\$?)"
    r"|(?P<mark>[{}&~#^_])"
    r"|(?P<text>[^\\%\n$\{\}&~#^_]+|\n)"
    r"|(?P<lone>\\)"
)
_NESTED: Final = re.compile(r"[{}]|\\[\s\S]|(?<!\\)%[^\n]*")
_OPTION: Final = re.compile(r"[{}\]]|\\[\s\S]")
_ARGUMENT: Final = re.compile(r"#([1-9])")
_BLANK: Final = re.compile(r"(?:\s|%[^\n]*\n)*")
_PARAMETERS: Final = re.compile(r"\s*\\([a-zA-Z@]+)((?:#\d)*)\s*(?=\{)")
END: Final = "\0"
"""A character that no document contains: ``until(END)`` reads to the end."""

NO_VALUE: Final = "-NoValue-"
TRUE, FALSE = "\\BooleanTrue", "\\BooleanFalse"
MAX_MACROS: Final = 5000
_LONGEST_OPTION: Final = 2000
_MAX_STACK: Final = 60  # nesting depth of macros and files


class Token(NamedTuple):
    """A piece of LaTeX.

    :param kind: ``command``, ``text``, ``par``, ``math``, ``mark`` or ``end``.
    :param text: its text; of a command, the name without the backslash.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Macro:
    """The definition of a command: number of arguments, default of the first argument, body.

    :param kinds: kind and default of each argument, for ``\\NewDocumentCommand``: ``m``, ``o``, ``O``, ``s``.
    """

    arguments: int
    default: str | None
    body: str
    kinds: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Enumeration:
    """An open numbered list.

    :param level: numbered lists around it, and itself.
    :param pattern: LaTeX of its labels; '' for the usual one.
    :param is_added: whether the label of the outer item stands before that of an item.
    :param count: number of the latest item.
    :param label: LaTeX of the latest label.
    :param own: number of the latest item as the list writes it.
    """

    level: int
    pattern: str = ""
    is_added: bool = False
    series: str = ""
    count: int = 0
    label: str = ""
    own: str = ""


@dataclass(slots=True)
class Abbreviation:
    """An abbreviation: the short and the long form as LaTeX, and whether the long form was written before.

    :param term: a term of a glossary, which has only one form.
    """

    short: str
    long: str
    seen: bool = False
    term: bool = False


@dataclass(slots=True)
class Macros:
    """The commands and environments that a document defines, and the limit on their expansion.

    :param letters: characters that expansion may still add, in the whole document.
    """

    letters: int
    commands: dict[str, Macro] = field(default_factory=dict)
    environments: dict[str, tuple[Macro, str]] = field(default_factory=dict)
    stopped: bool = False

    def spend(self, size: int) -> bool:
        """Charge ``size`` characters, and tell whether the limit still holds. Each expansion costs 8 extra."""
        self.letters -= size + 8
        self.stopped = self.stopped or self.letters < 0
        return not self.stopped


class TexSource:
    """LaTeX text that is read from its start. Expanded macros and included files are pushed on a stack."""

    def __init__(self, text: str) -> None:
        self._stack: list[list[object]] = []
        self._text, self._place = text, 0

    def push(self, text: str) -> bool:
        """Read another text before the rest of this one; return False where too many texts are open."""
        if self._place >= len(self._text) and self._stack:
            self._text, self._place = self._pop()
        if len(self._stack) >= _MAX_STACK:
            return False
        self._stack.append([self._text, self._place])
        self._text, self._place = text, 0
        return True

    def _pop(self) -> tuple[str, int]:
        text, place = self._stack.pop()
        assert isinstance(text, str) and isinstance(place, int)
        return text, place

    def next(self) -> Token:
        """Return the next token. Comments are skipped."""
        while True:
            while self._place >= len(self._text):
                if not self._stack:
                    return Token("end", "")
                self._text, self._place = self._pop()
            match = _TOKEN.match(self._text, self._place)
            assert match is not None  # the pattern matches at every character
            self._place = match.end()
            kind = match.lastgroup or "text"
            if kind == "comment":
                continue
            if kind == "command":
                name = match[0][1:]
                if name[0].isalpha():
                    self._skip_blank_line_end()
                return Token(kind, name)
            return Token("text" if kind == "lone" else kind, match[0])

    def _skip_blank_line_end(self) -> None:
        """Skip the blanks after a command name, but no empty line."""
        text, position = self._text, self._place
        while position < len(text) and text[position] in " \t":
            position += 1
        if text[position : position + 1] == "\n" and text[position + 1 : position + 2].strip():
            position += 1
        self._place = position

    def peek(self) -> str:
        """Return the next character that is not blank, or '' at the end of this text."""
        blank = _BLANK.match(self._text, self._place)
        place = blank.end() if blank else self._place
        return self._text[place : place + 1]

    def following(self) -> str:
        """Return the next characters, blanks too, which may stand after the end of a macro; '' at the end."""
        if self._place < len(self._text):
            return self._text[self._place : self._place + 20]
        open_texts = ((str(text), place) for text, place in reversed(self._stack) if isinstance(place, int))
        return next((text[place : place + 20] for text, place in open_texts if place < len(text)), "")

    def argument(self) -> str:
        """Return the next argument: the text in braces, a command, or a character."""
        blank = _BLANK.match(self._text, self._place)
        place = blank.end() if blank else self._place
        if place >= len(self._text):
            if self._stack and self._place >= len(self._text):
                self._text, self._place = self._pop()
                return self.argument()
            return ""
        if self._text[place] == "}":
            return ""
        if self._text[place] != "{":
            match = _TOKEN.match(self._text, place)
            assert match is not None
            self._place = match.end() if match.lastgroup == "command" else place + 1
            return self._text[place : self._place]
        end = self._closing(place)
        self._place = min(end + 1, len(self._text))
        return self._text[place + 1 : end]

    def option(self) -> str | None:
        """Return the option in brackets that comes next, or None."""
        blank = _BLANK.match(self._text, self._place)
        place = blank.end() if blank else self._place
        if self._text[place : place + 1] != "[":
            return None
        limit = self._text.rfind("]", place, place + _LONGEST_OPTION) + 1
        depth = 0
        for match in _OPTION.finditer(self._text, place + 1, limit):
            if match[0] == "]" and depth <= 0:
                end = match.start()
                self._place = end + 1
                return self._text[place + 1 : end]
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if depth < 0:
                break
        return None

    def until(self, end: str) -> str:
        """Return the text before ``end`` and skip ``end``; return the rest where ``end`` does not occur."""
        position = self._text.find(end, self._place)
        stop = position if position >= 0 else len(self._text)
        result = self._text[self._place : stop]
        self._place = min(stop + len(end), len(self._text))
        return result

    def environment(self, name: str) -> str:
        """Return the body of an environment whose ``\\begin`` was read, up to the matching ``\\end``."""
        marks = re.compile(rf"\\(begin|end)\s*\{{{re.escape(name)}\}}")
        depth, start = 1, self._place
        for match in marks.finditer(self._text, start):
            depth += 1 if match[1] == "begin" else -1
            if depth == 0:
                self._place = match.end()
                return self._text[start : match.start()]
        self._place = len(self._text)
        return self._text[start:]

    def delimited(self) -> str:
        """Return the text between two equal characters, as after ``\\verb``."""
        mark = self._text[self._place : self._place + 1]
        if mark == "{":
            return self.argument()
        self._place += 1
        line = self._text.find("\n", self._place)
        stop = min(line if line >= 0 else len(self._text), self._place + 10_000)
        end = self._text.find(mark, self._place, stop) if mark else -1
        if end < 0:
            return mark
        result = self._text[self._place : end]
        self._place = end + 1
        return result

    def _closing(self, place: int) -> int:
        """Return the index of the brace that closes the brace at ``place``, or the end of the text."""
        depth = 0
        for match in _NESTED.finditer(self._text, place):
            if match[0] == "{":
                depth += 1
            elif match[0] == "}":
                depth -= 1
                if depth == 0:
                    return match.start()
        return len(self._text)

    def parameters(self) -> tuple[str, int] | None:
        """Return the name and the number of arguments of a ``\\def``, or None."""
        match = _PARAMETERS.match(self._text, self._place)
        if not match:
            return None
        self._place = match.end()
        return match[1], len(match[2]) // 2


def expand(macro: Macro, source: TexSource, macros: Macros, *, starred: bool = False) -> str | None:
    """Read the arguments of a macro and return its expansion, or None beyond the limit on expansion.

    :param starred: a star stands after its name.
    """
    arguments = [_kind_argument(kind, default, source, starred) for kind, default in macro.kinds]
    if macro.default is not None and macro.arguments:
        option = source.option()
        arguments.append(macro.default if option is None else option)
    while len(arguments) < macro.arguments:
        arguments.append(source.argument())
    size = len(macro.body) + sum(macro.body.count(f"#{number}") * len(text) for number, text in enumerate(arguments, 1))
    if not macros.spend(size):
        return None
    known = {str(number): text for number, text in enumerate(arguments, 1)}
    return _ARGUMENT.sub(lambda mark: known.get(mark[1], ""), macro.body)


def _kind_argument(kind: str, default: str, source: TexSource, starred: bool) -> str:
    """Return an argument of a kind of ``\\NewDocumentCommand``."""
    if kind == "s":
        return TRUE if starred else FALSE
    if kind in "oO":
        option = source.option()
        return default if option is None else option
    return source.argument()


def _kinds(spec: str) -> tuple[tuple[str, str], ...]:
    """Return the kinds of the arguments in a specification such as ``m O{EUR} s``, with their defaults."""
    source = TexSource(spec)
    kinds: list[tuple[str, str]] = []
    while len(kinds) < 9 and (kind := source.argument()):
        if kind in ("o", "O", "m", "s", "g", "r", "d", "v"):
            kinds.append((kind, source.argument()[:_LONGEST_OPTION] if kind == "O" else NO_VALUE))
    return tuple(kinds)


def define_document(name: str, source: TexSource, macros: Macros) -> None:
    """Read and record the definition after ``\\NewDocumentCommand`` and its like."""
    target = source.argument().strip().lstrip("\\")
    kinds = _kinds(source.argument())
    macro = Macro(len(kinds), None, source.argument(), kinds)
    known = macros.environments if "Environment" in name else macros.commands
    is_kept = name.startswith("Provide") and target in known
    if "Environment" in name:
        end = source.argument()
        if len(macros.environments) < MAX_MACROS and not is_kept:
            macros.environments[target] = (macro, end)
    elif target and len(macros.commands) < MAX_MACROS and not is_kept:
        macros.commands[target] = macro


def define(name: str, source: TexSource, macros: Macros) -> None:
    """Read and record the definition after ``\\newcommand``, ``\\def`` or ``\\newenvironment``."""
    if name in ("def", "gdef", "edef", "xdef"):
        result = source.parameters()
        if result and len(macros.commands) < MAX_MACROS:
            macros.commands[result[0]] = Macro(result[1], None, source.argument())
        return
    target = source.argument().strip().lstrip("\\")
    count = (source.option() or "0").strip()
    default = source.option()
    arguments = bounded_int(count, 0, most=9)
    body = source.argument()
    if "environment" in name:
        if len(macros.environments) < MAX_MACROS:
            macros.environments[target] = (Macro(arguments, default, body), source.argument())
    elif (
        target and len(macros.commands) < MAX_MACROS and not (name.startswith("provide") and target in macros.commands)
    ):
        macros.commands[target] = Macro(arguments, default, body)
