"""An HTML file that a command writes for a person: it holds its style and script, and loads nothing.

Its policy forbids loading, and every script but the file's own. Texts of pages go through :func:`safe`.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def html_file(title: str, style: str, body: str, script: str = "") -> str:
    """Return the file.

    :param title: plain text; style, body and script are written as they are.
    :param script: a JavaScript module, which runs at the end.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; " if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {allowed}base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}"
        + (f'<script type="module">{script}</script>\n' if script else "")
        + "</body>\n</html>\n"
    )


def safe(text: str) -> str:
    """Return text for content and attributes of HTML: escaped, and without control characters."""
    return html.escape(without_controls(text))


def without_controls(text: str) -> str:
    """Return text without control characters; tabs and line ends stay."""
    return _CONTROL.sub("", text)
