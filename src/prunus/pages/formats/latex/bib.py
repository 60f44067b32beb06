"""Read the entries of a ``.bib`` file with the grammar of BibTeX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_ENTRY: Final = re.compile(r"@\s*([A-Za-z]+)\s*[{(]\s*([^\s,{}()]{1,200})\s*,")
_STRING: Final = re.compile(r"@\s*string\s*[{(]\s*([\w:-]+)\s*=\s*", re.I)
_FIELD: Final = re.compile(r"\s*+,?\s*+([A-Za-z][\w:-]*+)\s*+=\s*+")
_WORD: Final = re.compile(r"[^\s,{}()\"#]{1,500}")
_BRACES: Final = re.compile(r"\\[\s\S]|[{}]")
_HASH: Final = re.compile(r"(?<!\s)\s*+#\s*+")
_QUOTED: Final = re.compile(r"\\[\s\S]|[{}\"]")
_MAX_ENTRIES: Final = 20_000
_MAX_VALUE: Final = 20_000
_MAX_UNCLOSED: Final = 200  # braces and quotes without their end; each is searched for over ``_MAX_VALUE`` characters
_MAX_LETTERS: Final = 16 << 20  # characters of all values: a short name may stand for a long text

WRITTEN: Final = (
    "author", "editor", "title", "journal", "journaltitle", "booktitle", "school", "institution", "publisher",
    "volume", "pages", "year", "date", "howpublished", "eprint", "doi", "url", "note",
)  # fmt: skip
"""The fields of an entry that are shown, in this order."""


def entries(text: str) -> dict[str, Mapping[str, str]]:
    """Return the entries of a ``.bib`` file by key. Field names are in lower case, values are LaTeX."""
    file = _BibFile(text)
    position = 0
    while (result := _STRING.search(text, position)) and not file.is_over:
        value, position = file.value(result.end())
        file.strings[result[1].lower()] = value
    by_key: dict[str, Mapping[str, str]] = {}
    position = 0
    while (result := _ENTRY.search(text, position)) and len(by_key) < _MAX_ENTRIES and not file.is_over:
        position = result.end()
        if result[1].lower() in ("comment", "string", "preamble"):
            continue
        fields: dict[str, str] = {}
        for _ in range(60):  # fields of an entry; a bound for hostile files
            name = _FIELD.match(text, position)
            if not name:
                break
            value, position = file.value(name.end())
            fields[name[1].lower()] = " ".join(value.split())
        by_key.setdefault(result[2], fields)
    return by_key


def as_latex(fields: Mapping[str, str]) -> str:
    """Return an entry as one line of LaTeX."""
    parts = []
    for name in WRITTEN:
        value = fields.get(name, "").strip()
        if not value or (name == "date" and "year" in fields) or (name == "editor" and "author" in fields):
            continue
        if name in ("author", "editor"):
            value = value.replace(" and ", "; ")
        elif name in ("journal", "journaltitle", "booktitle"):
            value = rf"\emph{{{value}}}"
        elif name == "url":
            value = value if value.startswith("\\") else rf"\url{{{value}}}"
        elif name == "doi":
            value = rf"\url{{https://doi.org/{value.removeprefix('https://doi.org/')}}}"
        elif name in ("volume", "pages"):
            value = f"{'vol.' if name == 'volume' else 'pp.'} {value}"
        parts.append(value.rstrip("."))
    return ". ".join(parts) + "." if parts else ""


class _BibFile:
    """The values of a file, within limits.

    :ivar strings: texts that ``@string`` gives names, by name in lower case.
    """

    def __init__(self, text: str) -> None:
        self.strings: dict[str, str] = {}
        self._text = text
        self._unclosed = 0
        self._letters = 0

    @property
    def is_over(self) -> bool:
        """Whether a limit is reached."""
        return self._unclosed > _MAX_UNCLOSED or self._letters > _MAX_LETTERS

    def value(self, place: int) -> tuple[str, int]:
        """Return a value and the index of its end. ``#`` joins the parts of a value."""
        text = self._text
        parts: list[str] = []
        for _ in range(20):  # parts of a value; a bound for hostile files
            if text[place : place + 1] in ("{", '"'):
                end = self._end(place)
                parts.append(text[place + 1 : end])
                place = end + 1
            else:
                word = _WORD.match(text, place)
                if not word:
                    break
                parts.append(self.strings.get(word[0].lower(), word[0]))
                place = word.end()
            joined = _HASH.match(text, place)
            if not joined:
                break
            place = joined.end()
        value = "".join(parts)[:_MAX_VALUE]
        self._letters += len(value)
        return value, place

    def _end(self, place: int) -> int:
        """Return the index of the end of the brace or quote at ``place``, or ``place + 1`` where it is unclosed."""
        text = self._text
        quoted = text[place] == '"'
        depth = 0
        for match in (_QUOTED if quoted else _BRACES).finditer(
            text, place + 1 if quoted else place, place + _MAX_VALUE
        ):
            if match[0] == "{":
                depth += 1
            elif match[0] == "}":
                depth -= 1
            if (quoted and match[0] == '"' and depth <= 0) or (not quoted and depth == 0 and match[0] == "}"):
                return match.start()
        self._unclosed += 1
        return min(len(text), place + 1)
