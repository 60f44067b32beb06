"""Text of pages, models and files, made fit to be shown: in a page, on a terminal, in Markdown."""

from __future__ import annotations

import html
import re

# control characters, marks that turn text round, and lone surrogates, which no file in UTF-8 can hold
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def readable(text: object) -> str:
    """Return a text with U+FFFD for each character that is not shown, or does harm."""
    return _UNFIT.sub("\ufffd", str(text))


def safe(text: object) -> str:
    """Return a text for HTML, between tags or in an attribute."""
    return html.escape(readable(text))
