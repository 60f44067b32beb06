"""Codes of languages and countries: from what the caller writes to what a provider's API takes.

Callers write a language as a tag (``de``, ``pt-BR``, ``zh-Hant``; BCP 47) and a country as two letters (ISO 3166-1).
Each provider has its own closed list, with codes of its own, and refuses the whole request for a code that is not in
it. So each provider maps them by a table; what the table lacks is left out, and a warning says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...core.types import SearchRequest

LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}")
COUNTRY: Final = re.compile(r"[A-Za-z]{2}")

_OLD_LANGUAGES: Final = {"iw": "he", "in": "id", "ji": "yi", "cmn": "zh", "nb": "no"}
"""Former and equivalent codes, by which one code stands for a language in all tables."""

_TRADITIONAL: Final = frozenset({"tw", "hk", "mo"})
"""Countries whose Chinese is written in traditional characters."""

_LIKELIEST: Final = {"pt": "br"}
"""The region that a language without one means, after Unicode's likely subtags."""


def same(codes: str) -> dict[str, str]:
    """Return a table of codes, separated by spaces, that a provider writes as callers do."""
    return {code: code for code in codes.split()}


def language_of(request: SearchRequest) -> str:
    """Return the language of a request without script and region, as ``zh``; '' where none is asked for."""
    code = re.split("[-_]", request.language.lower(), maxsplit=1)[0]
    return _OLD_LANGUAGES.get(code, code)


def country_of(request: SearchRequest) -> str:
    """Return the country of a request as ISO 3166-1 writes it, in capitals; '' where none is asked for."""
    code = request.country.upper()
    return "GB" if code == "UK" else code


def look_up(request: SearchRequest, table: Mapping[str, str]) -> str:
    """Return a provider's code of the language that a request asks for; '' where the provider has none.

    The region of the tag decides between variants (``pt-BR``), else the request's country, else the likeliest one.

    :param table: the provider's codes by language or by language and variant, as ``pt-br`` and ``zh-hant``, all in
        small letters; Norwegian is ``no``, Hebrew ``he``, Chinese ``zh-hans`` and ``zh-hant``.
    """
    language = language_of(request)
    parts = re.split("[-_]", request.language.lower())[1:]
    region = next((part for part in parts if len(part) == 2), country_of(request).lower())
    if language == "zh":
        script = "hant" if "hant" in parts or ("hans" not in parts and region in _TRADITIONAL) else "hans"
        return table.get(f"zh-{script}", table.get("zh", ""))
    variant = f"{language}-{region or _LIKELIEST.get(language, '')}"
    return table.get(variant, table.get(language, ""))
