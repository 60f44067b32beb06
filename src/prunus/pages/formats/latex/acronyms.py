"""Abbreviations that a document declares once and names by a key: packages glossaries, acronym and acro."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .source import Abbreviation, TexSource

if TYPE_CHECKING:
    from .reader import TexReader

_MOST: Final = 5000
_LONGEST: Final = 300  # characters of LaTeX of a form; it may be written thousands of times


def _declare(reader: TexReader, key: str, entry: Abbreviation) -> None:
    known = reader.state.abbreviations
    if key and len(known) < _MOST:
        entry.short, entry.long = entry.short[:_LONGEST], entry.long[:_LONGEST]
        known[key] = entry


def new_acronym(reader: TexReader, source: TexSource) -> None:
    """Record an abbreviation of glossaries; nothing is printed here."""
    source.option()
    key = source.argument().strip()
    _declare(reader, key, Abbreviation(source.argument(), source.argument()))


def declare_acronym(reader: TexReader, source: TexSource) -> None:
    """Record an abbreviation of acro, whose forms are fields."""
    key = source.argument().strip()
    fields = _fields(source.argument())
    _declare(reader, key, Abbreviation(fields.get("short", key), fields.get("long", "")))


def new_term(reader: TexReader, source: TexSource) -> None:
    """Record a term of a glossary."""
    key = source.argument().strip()
    name = _fields(source.argument()).get("name", key)
    _declare(reader, key, Abbreviation(name, name, term=True))


def define_acronym(reader: TexReader, source: TexSource) -> Abbreviation:
    """Record an abbreviation of the package acronym."""
    key = source.argument().strip()
    short = source.option() or key
    entry = Abbreviation(short, source.argument())
    _declare(reader, key, entry)
    return entry


def list_acronym(reader: TexReader, source: TexSource) -> None:
    """Record an abbreviation, and write it in the list of abbreviations."""
    entry = define_acronym(reader, source)
    reader.flush()
    reader.line.append(f"<b>{reader.inline(entry.short)}</b> {reader.inline(entry.long)}")
    reader.flush()


def _fields(text: str) -> dict[str, str]:
    """Return the fields of a declaration such as ``short=CPU, long={central processing unit}``."""
    source, fields = TexSource(text), {}
    while source.peek():
        name = source.until("=").strip()
        if source.peek() == "{":
            fields[name] = source.argument()
            source.until(",")
        else:
            fields[name] = source.until(",").strip()
    return fields


def _write(form: str, plural: bool = False, capital: bool = False) -> Callable[[Any, TexSource], None]:
    """Return the handler that writes a form of an abbreviation.

    :param form: ``short``, ``long``, ``full``, or '' for the full form at first and the short one after it.
    """

    def handler(reader: TexReader, source: TexSource) -> None:
        source.option()
        key = source.argument().strip()
        source.option()
        text = _form(reader, key, form, "s" if plural else "")
        reader.line.append(text[:1].upper() + text[1:] if capital else text)

    return handler


def _form(reader: TexReader, key: str, form: str, ending: str) -> str:
    """Return a form as HTML; the key where no abbreviation has it."""
    entry = reader.state.abbreviations.get(key)
    if entry is None or not reader.state.macros.spend(len(entry.short) + len(entry.long)):
        return reader.inline(key) + ending
    short, long = reader.inline(entry.short) + ending, reader.inline(entry.long) + ending
    if entry.term or form == "short" or not entry.long:
        return short
    if form == "long":
        return long
    if form == "full" or not entry.seen:
        entry.seen = entry.seen or not form
        return f"{long} ({short})"
    return short


_FORMS: Final = {
    "": ("gls", "ac"), "short": ("acrshort", "acs", "glsxtrshort"), "long": ("acrlong", "acl", "glsxtrlong"),
    "full": ("acrfull", "acf", "glsxtrfull"),
}  # fmt: skip

ACRONYM_HANDLERS: Final[dict[str, Callable[[Any, TexSource], object]]] = {
    "newacronym": new_acronym,
    "newabbreviation": new_acronym,
    "newglossaryentry": new_term,
    "DeclareAcronym": declare_acronym,
    "acro": list_acronym,
    "acrodef": define_acronym,
    **{name: _write(form) for form, names in _FORMS.items() for name in names},
    **{name.capitalize(): _write(form, capital=True) for form, names in _FORMS.items() for name in names},
    "glspl": _write("", plural=True),
    "Glspl": _write("", plural=True, capital=True),
    "acp": _write("", plural=True),
    "acsp": _write("short", plural=True),
    "aclp": _write("long", plural=True),
    "acrshortpl": _write("short", plural=True),
    "acrlongpl": _write("long", plural=True),
}
"""Handlers by command name."""
