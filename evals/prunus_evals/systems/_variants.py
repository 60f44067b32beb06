"""Shared by the systems: a variant is parts between colons, and then options as ``@words=64@pack=whole``.

Options stand behind ``@`` because commas separate systems, and colons are part of the specs of engines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prunus.core.text.near import did_you_mean
from prunus.core.text.numbers import bounded_int
from prunus_evals.errors import UnknownName

Kinds = Mapping[str, tuple[str, ...] | type[int] | type[str]]
"""The options of a system: the values that one may have, or ``int`` for a number from 0, or ``str`` for any text."""

_OPTION = re.compile(r"@(?=[a-z_]+=)")


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant, read.

    :param head: what stands before the options.
    :param options: the options that are set; numbers are numbers.
    """

    head: str
    options: Mapping[str, Any]


def read(system: str, variant: str, kinds: Kinds) -> Variant:
    """Read a variant.

    :raises UnknownName: an option is not known, stands there twice, or has a value that it may not have.
    """
    head, *parts = _OPTION.split(variant)
    found: dict[str, Any] = {}
    for part in parts:
        key, _, value = part.partition("=")
        if key not in kinds:
            known = ", ".join(kinds)
            raise UnknownName(
                f"{system}: unknown option {key} of {variant}; the options are: {known}{did_you_mean(key, kinds)}"
            )
        if key in found:
            raise UnknownName(f"{system}: the option {key} stands twice in {variant}")
        found[key] = _value(system, key, value, kinds[key])
    return Variant(head, found)


def _value(system: str, key: str, value: str, kind: tuple[str, ...] | type[int] | type[str]) -> Any:
    if kind is int:
        number = bounded_int(value, None, most=10**9) if value.isdecimal() else None
        if number is None:
            raise UnknownName(f"{system}: @{key}={value} is no whole number from 0")
        return number
    if isinstance(kind, tuple) and value not in kind:
        raise UnknownName(f"{system}: @{key}={value} is not known; choose one of: {', '.join(kind)}")
    if not value:
        raise UnknownName(f"{system}: @{key}= has no value")
    return value
