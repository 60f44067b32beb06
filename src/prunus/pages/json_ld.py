"""Reads JSON as pages hold it in their scripts: JSON-LD, and the data from which scripts draw a page."""

from __future__ import annotations

import html
import json
import re
from typing import Any, Final

from .clean.parse import Document, Element

MAX_JSON: Final = 1 << 20
"""Code points of a script at most."""

_MAX_ITEMS: Final = 2_000
_JSON_LD: Final = 'script[type*="ld+json" i]'
_BESIDE_JSON: Final = re.compile(
    r'("(?:[^"\\]|\\.)*+"?)|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|(?://[ \t]*)?(?:<!\[CDATA\[|\]\]>|<!--|-->)|//[^\n]*',
    re.DOTALL,
)
"""A string, kept, or a comment or a mark of XML or HTML, left out."""

_LAST_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*[\]}])', re.DOTALL)
_NO_ESCAPE: Final = re.compile(r'(\\["\\/bfnrtu])|\\')
_BETWEEN_JSON: Final = re.compile(r"[\s,;\ufeff]*")


def items_of(document: Document | Element) -> list[dict[str, Any]]:
    """Return the items of a page's JSON-LD."""
    texts = (script.text for script in document.select(_JSON_LD))
    return [item for text in texts if len(text) <= MAX_JSON for value in json_values(text) for item in _flat(value)]


def json_values(text: str) -> list[Any]:
    """Return the values of JSON as pages write it, one after another, up to the first that cannot be read.

    Comments, marks of CDATA, commas after the last value, escapes that JSON does not know, and a text escaped as a
    whole are forgiven.
    """
    try:
        return [json.loads(text, strict=False)]
    except (ValueError, RecursionError):
        text = html.unescape(text) if '"' not in text else text
        text = _BESIDE_JSON.sub(lambda found: _NO_ESCAPE.sub(r"\1", found[1] or " "), text)
        text = _LAST_COMMA.sub(r"\1", text)
    values: list[Any] = []
    decoder = json.JSONDecoder(strict=False)
    place = _BETWEEN_JSON.match(text)
    while place and place.end() < len(text) and len(values) < _MAX_ITEMS:
        try:
            value, end = decoder.raw_decode(text, place.end())
        except (ValueError, RecursionError):
            break
        values.append(value)
        place = _BETWEEN_JSON.match(text, end)
    return values


def _flat(value: Any) -> list[dict[str, Any]]:
    """Return the items of a JSON-LD value: of its list, and of its ``@graph``."""
    result: list[dict[str, Any]] = []
    waiting = [value]
    while waiting and len(result) < _MAX_ITEMS:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(reversed(one[:_MAX_ITEMS]))
        elif isinstance(one, dict):
            result.append(one)
            waiting.extend(one[key] for key in ("@graph", "mainEntity") if key in one)
    return result


def is_kind(item: dict[str, Any], kinds: tuple[str, ...]) -> bool:
    """Tell whether an item's type ends with one of some names."""
    stated = item.get("@type")
    types = stated[:20] if isinstance(stated, list) else [stated]
    return any(isinstance(one, str) and one.endswith(kinds) for one in types)
