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
_QUOTED: Final = re.compile(r"\\[\s\S]|[{}\"]")
_MAX_ENTRIES: Final = 20_000
_MAX_VALUE: Final = 20_000

WRITTEN: Final = (
    "author", "editor", "title", "journal", "journaltitle", "booktitle", "school", "institution", "publisher",
    "volume", "pages", "year", "date", "howpublished", "eprint", "doi", "url", "note",
)  # fmt: skip
"""The fields of an entry that are shown, in this order."""


def entries(text: str) -> dict[str, Mapping[str, str]]:
    """Return the entries of a ``.bib`` file by key. Field names are in lower case, values are LaTeX."""
    strings: dict[str, str] = {}
    for found in _STRING.finditer(text):
        value, _ = _value(text, found.end(), strings)
        strings[found[1].lower()] = value
    by_key: dict[str, Mapping[str, str]] = {}
    for found in _ENTRY.finditer(text):
        if found[1].lower() in ("comment", "string", "preamble") or len(by_key) >= _MAX_ENTRIES:
            continue
        fields: dict[str, str] = {}
        place = found.end()
        for _ in range(60):  # fields of an entry; a bound for hostile files
            name = _FIELD.match(text, place)
            if not name:
                break
            value, place = _value(text, name.end(), strings)
            fields[name[1].lower()] = " ".join(value.split())
        by_key.setdefault(found[2], fields)
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


def _value(text: str, place: int, strings: Mapping[str, str]) -> tuple[str, int]:
    """Return a value and the index of its end. ``#`` joins the parts of a value."""
    parts: list[str] = []
    for _ in range(20):  # parts of a value; a bound for hostile files
        if text[place : place + 1] in ("{", '"'):
            end = _end(text, place)
            parts.append(text[place + 1 : end])
            place = end + 1
        else:
            word = _WORD.match(text, place)
            if not word:
                break
            parts.append(strings.get(word[0].lower(), word[0]))
            place = word.end()
        joined = re.compile(r"\s*#\s*").match(text, place)
        if not joined:
            break
        place = joined.end()
    return "".join(parts)[:_MAX_VALUE], place  # a string of strings of strings would grow without end


def _end(text: str, place: int) -> int:
    """Return the index of the end of the brace or quote at ``place``, or ``place + 1`` where it is unclosed."""
    quoted = text[place] == '"'
    depth = 0
    for found in (_QUOTED if quoted else _BRACES).finditer(text, place + 1 if quoted else place, place + _MAX_VALUE):
        if found[0] == "{":
            depth += 1
        elif found[0] == "}":
            depth -= 1
        if (quoted and found[0] == '"' and depth <= 0) or (not quoted and depth == 0 and found[0] == "}"):
            return found.start()
    return min(len(text), place + 1)
