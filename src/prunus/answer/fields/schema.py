"""The JSON schema of an answer: its fields, and the check of values against it.

References are put in place before anything else, within bounds: a schema of a client must neither be fetched from
somewhere nor cost more to check than its size says. ``pattern`` is refused, because a regular expression may take for
ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...core.errors import BadInput, MissingExtra, one_line
from ...core.installation import pip_install

_PARTS: Final = 5_000
"""Values of a schema at most, its references put in place."""
_DEPTH: Final = 40
_FIELDS: Final = 100
"""Fields at most."""
_REFUSED: Final = ("pattern", "patternProperties", "$dynamicRef", "$recursiveRef")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.\s]+")
_SCALARS: Final = ("string", "number", "integer", "boolean")


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A field of a schema.

    :param path: the names that lead to it.
    :param name: its last name, or its title, as words.
    :param about: its description; '' for none.
    :param type: ``string``, ``number``, ``integer``, ``boolean``, ``date``; '' for what only a model can fill.
    :param choices: the values that are allowed; () for any.
    :param many: whether it is a list of such values.
    :param nullable: whether null is allowed.
    """

    path: tuple[str, ...]
    name: str
    about: str
    type: str
    choices: tuple[Any, ...] = ()
    many: bool = False
    nullable: bool = False


def plain_schema(schema: Any) -> dict[str, Any]:
    """Return a schema with its references put in place.

    :raises BadInput: it is none, is too large, refers to itself or elsewhere, or has a key that is not supported.
    """
    if not isinstance(schema, Mapping):
        raise BadInput("schema: this is no JSON schema, which is an object", subject="schema")
    left = _PARTS

    def plain(part: Any, above: tuple[str, ...], depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > _DEPTH:
            raise BadInput(f"schema: it is over {_PARTS:,} values, or {_DEPTH} deep", subject="schema")
        if isinstance(part, list):
            return [plain(one, above, depth + 1) for one in part]
        if not isinstance(part, Mapping):
            return part
        if isinstance(place := part.get("$ref"), str):
            if place in above:
                raise BadInput(
                    f"schema: {place} refers to itself; write out the levels that you need", subject="schema"
                )
            beside = {name: value for name, value in part.items() if name != "$ref"}
            return plain({**_at(schema, place), **beside}, (*above, place), depth + 1)
        return {
            str(name): plain(value, above, depth + 1)
            for name, value in part.items()
            if name not in ("$defs", "definitions")
        }

    result: dict[str, Any] = plain(schema, (), 0)
    for name in _REFUSED:
        if _uses(result, name):
            raise BadInput(f"schema: {name} is not supported; say it in the description", subject="schema")
    _check(result)
    return result


def _at(schema: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return the part of a schema that a reference names.

    :raises BadInput: there is none, or it is elsewhere.
    """
    part: Any = schema
    if not place.startswith("#"):
        raise BadInput(f"schema: {place[:200]} is not in the schema; nothing is fetched for it", subject="schema")
    for name in filter(None, place[1:].split("/")):
        part = part.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping):
        raise BadInput(f"schema: there is no {place[:200]}", subject="schema")
    return part


def _uses(part: Any, keyword: str, names: bool = False) -> bool:
    """Tell whether a schema uses a keyword; the names of its properties are none."""
    if isinstance(part, list):
        return any(_uses(one, keyword) for one in part)
    if not isinstance(part, dict):
        return False
    return (not names and keyword in part) or any(
        _uses(value, keyword, name == "properties" and not names) for name, value in part.items()
    )


def _validator(schema: Mapping[str, Any]) -> Any:
    """Return what checks values against a schema; it fetches nothing.

    :raises MissingExtra: the package is not installed.
    """
    try:
        from jsonschema import validators
        from referencing import Registry
    except ImportError as error:
        raise MissingExtra(f"a schema needs jsonschema: {pip_install('schema')}", subject="jsonschema") from error
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    return kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER)


def _check(schema: dict[str, Any]) -> None:
    """Refuse a schema that is none.

    :raises BadInput: it is none, or no object with fields.
    """
    validator = type(_validator(schema))
    from jsonschema.exceptions import SchemaError

    try:
        validator.check_schema(schema)
    except SchemaError as error:
        where = ".".join(map(str, error.path))
        raise BadInput(f"schema: {where}: {one_line(error.message)}", subject="schema") from None
    if not isinstance(schema.get("properties"), dict) or not schema["properties"]:
        raise BadInput("schema: it has no properties; name the fields of an object", subject="schema")


def fault_of(value: Any, schema: Mapping[str, Any]) -> str:
    """Return the first fault of a value in words; '' where it is as the schema says.

    :param schema: from :func:`plain_schema`.
    """
    for error in _validator(schema).iter_errors(value):
        return one_line(f"{'.'.join(map(str, error.absolute_path)) or 'the reply'}: {error.message}", longest=300)
    return ""


def fields_of(schema: Mapping[str, Any]) -> list[SchemaField]:
    """Return the fields of a schema, in order.

    :param schema: from :func:`plain_schema`.
    :raises BadInput: there are too many.
    """
    result = list(_fields(schema, ()))
    if len(result) > _FIELDS:
        raise BadInput(f"schema: {len(result)} fields; there may be {_FIELDS}", subject="schema")
    return result


def _fields(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[SchemaField]:
    for name, given in schema["properties"].items():
        part, nullable = _without_null(given)
        inner = (*path, name)
        if isinstance(part.get("properties"), dict) and part["properties"]:
            yield from _fields(part, inner)
            continue
        many = part.get("type") == "array"
        one = _without_null(part.get("items") or {})[0] if many else part
        title = str(part.get("title") or name)
        about = " ".join(
            str(
                one.get("description") or "" if many and not part.get("description") else part.get("description") or ""
            ).split()
        )
        words = " ".join(_CAMEL.sub(" ", title).split())
        yield SchemaField(inner, words, about, _type(one), tuple(_choices(one)), many, nullable)


def _without_null(given: Any) -> tuple[Mapping[str, Any], bool]:
    """Return the schema of a value without the null that it allows beside, and whether it does."""
    if not isinstance(given, Mapping):
        return {}, True
    for name in ("anyOf", "oneOf"):
        if isinstance(options := given.get(name), list):
            real = [one for one in options if isinstance(one, Mapping) and one.get("type") != "null"]
            if len(real) == 1:
                beside = {key: value for key, value in given.items() if key != name}
                return {**real[0], **beside}, len(real) < len(options)
    if isinstance(kinds := given.get("type"), list):
        rest = [kind for kind in kinds if kind != "null"]
        return {**given, "type": rest[0] if len(rest) == 1 else rest}, len(rest) < len(kinds)
    return given, False


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "string" if "enum" in schema or "const" in schema or not schema else "")
    if kind == "string" and schema.get("format") in ("date", "date-time"):
        return "date"
    return kind if kind in _SCALARS else ""


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    return list(schema.get("enum", ())) or ([schema["const"]] if "const" in schema else [])
