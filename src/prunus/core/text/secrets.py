"""Hide passwords and keys that stand in addresses, wherever an address is shown."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "…"
"""Stands in the place of a secret."""

# All repeats are bounded, so that the time is linear in the text.
_LOGIN: Final = re.compile(
    r"(://|(?:https?|postgres(?:ql)?):/)("  # a path has lost one slash
    r"[^\s/?#]{1,1024}"  # the user name and the password, to the last @ before the path
    r"|[^\s/?#@:]{0,256}:(?![0-9]{1,5}(?:[/?#\s]|$))[^\s@]{1,1024}"  # a password may hold / ? # that are not escaped
    r")@",
    re.IGNORECASE,
)
_FIELD: Final = re.compile(r"([?&;]|(?<![^\s'\"]))([^=&#?;\s]{1,64}+)=([^&#\s]++)")
"""A field of a query, or of a database's address: (what is before it, name, value)."""
_SECRET: Final = re.compile(r"key|token|secret|passw|pwd|sig|auth|credential|session", re.IGNORECASE)
_WORDS: Final = frozenset({"password", "passwd", "pwd"})
"""Names of secrets outside a query, where ``key=`` may be anything."""
_TOKEN: Final = 12
"""Fewest letters of a token that stands in the place of a user name."""
_END: Final = ":,;.)'\""


def hide_logins(text: str) -> str:
    """Replace the user name and the password of each address in a text by ``…``."""
    return _LOGIN.sub(rf"\1{HIDDEN}@", text) if "@" in text else text


def hide_secrets(text: str) -> str:
    """Replace the logins of addresses in a text, and the values of ``?api_key=`` and the like, by ``…``.

    ``password=`` of a database's address is hidden, too.
    """
    return _FIELD.sub(_hidden, hide_logins(text)) if "=" in text else hide_logins(text)


def secrets_in(text: str) -> list[str]:
    """Return the secrets that :func:`hide_secrets` hides: passwords and values, each login as a whole too.

    A user name alone is left out where it is short: it is a word, and no token.
    """
    logins = [match[2] for match in _LOGIN.finditer(text)]
    passwords = [login.partition(":")[2] for login in logins]
    values = [match[3].rstrip(_END) for match in _FIELD.finditer(text) if _is_secret(match)]
    wholes = [login for login in logins if ":" in login or len(login) >= _TOKEN]
    return [secret for secret in (*wholes, *passwords, *values) if secret]


def _is_secret(field: re.Match[str]) -> bool:
    return bool(_SECRET.search(field[2])) if field[1] else field[2].lower() in _WORDS


def _hidden(field: re.Match[str]) -> str:
    end = field[3][len(field[3].rstrip(_END)) :]
    return f"{field[1]}{field[2]}={HIDDEN}{end}" if _is_secret(field) else field[0]
