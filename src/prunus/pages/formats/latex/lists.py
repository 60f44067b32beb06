"""Number the items of LaTeX lists: label patterns, start values, lists that go on, counters that a document sets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....core.text.numbers import bounded_int
from .._common.body import Body
from .._common.numerals import numeral, plain_number
from . import words as vocabulary
from .source import END, Enumeration, TexSource

if TYPE_CHECKING:
    from .reader import TexReader

_LEVELS: Final = ("enumi", "enumii", "enumiii", "enumiv")
_DEFAULTS: Final = (r"\theenumi.", r"(\theenumii)", r"\theenumiii.", r"\theenumiv.")
_FORMS: Final = {"arabic": "1", "alph": "a", "Alph": "A", "roman": "i", "Roman": "I", "value": "1"}
_COUNTER: Final = re.compile(r"\\(arabic|alph|Alph|roman|Roman)(?:\*|\s*\{\s*([A-Za-z*]{1,40})\s*\})")
_THE: Final = re.compile(r"\\the(enumi{1,3}v?|enumiv)(?![A-Za-z])")
_SHORT: Final = re.compile(r"\{[^{}]*\}|[AaIi1]")
_MARK: Final = re.compile(r"\\[\s\S]|[{},]")
_FLAG: Final = re.compile(r"[A-Za-z]{2,}\*?")
_TAG: Final = re.compile(r"<[^<>]*>")
_MAX_PATTERN: Final = 200
_MAX_NAMES: Final = 500
_KINDS: Final = frozenset({"itemize", "enumerate", "description"})


def write_list(reader: TexReader, kind: str, source: TexSource, name: str) -> None:
    """Read a list environment whose ``\\begin`` was read."""
    body_source = TexSource(source.environment(name))
    options = body_source.option() or ""
    state = reader.state
    ordered = kind == "description" or vocabulary.LISTS.get(kind, "ol") == "ol"
    level = 1 + sum(open_list is not None for open_list in state.lists)
    numbering = None
    if ordered and kind != "description":
        kinds = dict.fromkeys(("enumerate", f"enumerate,{level}", name, f"{name},1"))
        defaults = [state.list_options.get(key, "") for key in kinds]
        numbering = _enumeration(reader, ",".join([*filter(None, defaults), options]), level)
    state.lists.append(numbering)
    items = reader.list_inner(body_source.until(END))
    state.lists.pop()
    if numbering:
        state.resumed[str(level)] = state.resumed[numbering.series] = numbering.count
    if kind == "description":
        body = "".join(f"<dt>{label}</dt><dd>{text}</dd>" for label, text in items)
        reader.block(f"<dl>{body}</dl>" if body else "")
        return
    written = Body()
    for label, text in items:
        number = plain_number(label) if ordered else None
        if number is not None:
            written.item(text, 0, "ol", number)
        else:
            written.item(f"{label} {text}" if label else text, 0)
    reader.block(written.html().replace("\n", ""))


def _enumeration(reader: TexReader, options: str, level: int) -> Enumeration:
    """Return the numbering that the options of a list ask for."""
    numbering = Enumeration(level=level)
    for option in _options(options):
        key, equals, value = (part.strip() for part in option.partition("="))
        if equals and key in ("label", "label*"):
            is_braced = value.startswith("{") and value.endswith("}")
            numbering.pattern = value[1:-1] if is_braced else value
            numbering.is_added = key == "label*"
        elif equals and key == "start":
            numbering.count = bounded_int(value.strip(" {}"), 1, most=999_999) - 1
        elif key in ("resume", "resume*"):
            numbering.series = value or numbering.series
            numbering.count = reader.state.resumed.get(numbering.series or str(level), 0)
        elif equals and key == "series":
            numbering.series = value[:_MAX_PATTERN]
        elif not equals and key and not _FLAG.fullmatch(key):
            numbering.pattern = _from_short(key)
    numbering.pattern = numbering.pattern[:_MAX_PATTERN]
    return numbering


def _options(text: str) -> list[str]:
    """Return the options of a list, which commas outside braces part."""
    parts, start, depth = [], 0, 0
    for mark in _MARK.finditer(text):
        if mark[0] == ",":
            if not depth:
                parts.append(text[start : mark.start()])
                start = mark.end()
        elif len(mark[0]) == 1:
            depth = max(0, depth + (1 if mark[0] == "{" else -1))
    return [*parts, text[start:]]


def _from_short(text: str) -> str:
    """Return the pattern of a short label: ``(a)`` counts in letters, ``Step 1:`` in digits."""
    forms = {kind: name for name, kind in reversed(_FORMS.items())}
    for mark in _SHORT.finditer(text):
        if mark[0][0] != "{":
            return rf"{text[: mark.start()]}\{forms[mark[0]]}*{text[mark.end() :]}"
    return text


def count_item(reader: TexReader) -> str:
    """Count an item of the innermost list; return its label as HTML, '' where it has no number."""
    state = reader.state
    numbering = state.lists[-1] if state.lists else None
    if numbering is None:
        return ""
    numbering.count += 1
    opened = [open_list for open_list in state.lists if open_list is not None]
    numbers = [open_list.count for open_list in opened]
    commands = state.macros.commands
    at = min(numbering.level, len(_LEVELS)) - 1

    def pattern_of(match: re.Match[str]) -> str:
        known = commands.get(f"the{match[1]}")
        form = ("arabic", "alph", "roman", "Alph")[_LEVELS.index(match[1])] if match[1] in _LEVELS else "arabic"
        return known.body[:_MAX_PATTERN] if known else rf"\{form}{{{match[1]}}}"

    def number(match: re.Match[str]) -> str:
        name = (match[2] or "*").strip()
        if name in _LEVELS:
            level = _LEVELS.index(name)
            value = numbers[level] if level < len(numbers) else 0
        else:
            value = state.counters.get(name, numbering.count)
        return numeral(value, _FORMS[match[1]])

    known = commands.get(f"label{_LEVELS[at]}")
    pattern = numbering.pattern or (known.body[:_MAX_PATTERN] if known else _DEFAULTS[at])
    written = _COUNTER.sub(number, _THE.sub(pattern_of, pattern))
    if numbering.is_added and len(opened) > 1:
        written = f"{opened[-2].label[:_MAX_PATTERN]}{written}"
    own = _COUNTER.sub(number, _THE.sub(pattern_of, rf"\the{_LEVELS[at]}"))
    if not state.macros.spend(len(written)):
        return f"{numbering.count}."
    numbering.label, numbering.own = written, own
    label = reader.inline(written)
    if numbering.pattern:
        state.last = _TAG.sub("", label)
    else:
        around = [open_list.own for open_list in opened[:-1]]
        state.last = "".join(own if not at else f"({own})" for at, own in enumerate(around)) + own
        state.last = f"{around[0]}{own}" if len(around) == 1 else state.last
    state.last_kind = "item"
    return label


def set_counter(reader: TexReader, source: TexSource, adds: bool = False) -> None:
    """Set a counter, or add to it: of the items of a list, or of headings, tables and so on."""
    name, text = source.argument().strip(), source.argument().strip()
    state = reader.state
    value = bounded_int(text, None, least=-99_999, most=999_999)
    opened = [open_list for open_list in state.lists if open_list is not None]
    level = _LEVELS.index(name) if name in _LEVELS else len(_LEVELS)
    if value is None:
        return
    if level < len(opened):
        opened[level].count = value + (opened[level].count if adds else 0)
    elif name in state.counters or len(state.counters) < _MAX_NAMES:
        state.counters[name] = value + (state.counters.get(name, 0) if adds else 0)


def step_counter(reader: TexReader, source: TexSource, is_reference: bool = False) -> None:
    """Count one more; a later label may name the number."""
    name, state = source.argument().strip(), reader.state
    if name in state.counters or len(state.counters) < _MAX_NAMES:
        state.counters[name] = state.counters.get(name, 0) + 1
        if is_reference:
            state.last, state.last_kind = str(state.counters[name]), ""


def write_counter(form: str) -> Callable[[Any, TexSource], None]:
    """Return the handler that writes a counter in a form, such as ``roman``."""

    def handler(reader: TexReader, source: TexSource) -> None:
        value = reader.state.counters.get(source.argument().strip())
        reader.line.append("" if value is None else numeral(value, _FORMS[form]))

    return handler


def set_list(reader: TexReader, source: TexSource) -> None:
    """Record the options of the lists of a kind."""
    target = "".join((source.option() or "enumerate").split())
    names = target if not target.isdigit() else f"enumerate,{target}"
    if names in reader.state.list_options or len(reader.state.list_options) < _MAX_NAMES:
        reader.state.list_options[names] = source.argument()[: 2 * _MAX_PATTERN]
    else:
        source.argument()


def new_list(reader: TexReader, source: TexSource) -> None:
    """Record the name of a list that counts as another kind does."""
    name, kind = source.argument().strip(), source.argument().strip().rstrip("*")
    source.argument()
    if kind in _KINDS and len(reader.state.list_names) < _MAX_NAMES:
        reader.state.list_names[name] = kind


LIST_HANDLERS: Final[dict[str, Callable[[Any, TexSource], None]]] = {
    "setcounter": set_counter,
    "addtocounter": lambda reader, source: set_counter(reader, source, adds=True),
    "stepcounter": step_counter,
    "refstepcounter": lambda reader, source: step_counter(reader, source, is_reference=True),
    "setlist": set_list,
    "newlist": new_list,
    **{form: write_counter(form) for form in _FORMS},
}
"""Handlers by command name."""
