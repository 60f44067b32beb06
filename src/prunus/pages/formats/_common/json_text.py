"""Parse JSON as written: numbers keep their letters, and no value under a repeated key is lost."""

from __future__ import annotations

import json
from typing import Any

from ....core.errors import BadPage
from ....core.types import Page
from .write import page_error


def loads(text: str, numbers: type[str] = str) -> Any:
    """Return the value of a JSON text.

    :param numbers: the type of numbers; a subclass of str tells them from strings.
    :raises ValueError: the text is not JSON.
    :raises RecursionError: lists and objects are nested too deep.
    """
    return json.loads(text, parse_int=numbers, parse_float=numbers, parse_constant=numbers, object_pairs_hook=_object)


def json_error(page: Page, error: ValueError) -> BadPage:
    """Return an error that names the page and the place of a fault in its JSON."""
    if isinstance(error, json.JSONDecodeError):
        return page_error(page, f"this is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})")
    return page_error(page, f"this is not valid JSON ({error})")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object. Values under a repeated key become a list, so that none is lost."""
    made = dict(pairs)
    if len(made) < len(pairs):
        several: dict[str, list[Any]] = {}
        for key, member in pairs:
            several.setdefault(key, []).append(member)
        made = {key: members if len(members) > 1 else members[0] for key, members in several.items()}
    return made
