"""Which addresses a cleaned page keeps; decided on what is written, as the URL standard reads it."""

from __future__ import annotations

import re
from typing import Final

from . import rules

_EDGE: Final = bytes(range(33)).decode("ascii")  # control characters and the space, which the standard strips
_REMOVED: Final = str.maketrans("", "", "\t\n\r")  # the standard removes them everywhere
_SCHEME: Final = re.compile(r"[\0-\x20]*([A-Za-z][A-Za-z0-9+.-]*):")
_PLAIN: Final = ("/", "https://", "http://", "#")
"""How most addresses begin; their schemes need no search."""


def scheme_of(address: str) -> str:
    """Return the scheme of an address as a browser reads it, in lower case; '' for a relative address."""
    found = _SCHEME.match(address.translate(_REMOVED))
    return found[1].lower() if found else ""


def kept_address(value: str) -> str | None:
    """Return an address as cleaning writes it, on one line; None where its scheme is none of ``rules.SCHEMES``."""
    if " " in value or not value.isprintable():
        value = " ".join(value.split()).strip(_EDGE)
    return value if value.startswith(_PLAIN) or scheme_of(value) in rules.SCHEMES else None
