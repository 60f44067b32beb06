"""Bearer keys: made once, shown once, stored as a digest; each has scopes and quotas."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from ..core.errors import BadInput
from ..core.text.near import did_you_mean
from .state import KeyRecord, ServerState

SCOPES: Final = {
    "read": "clean and prune pages, and read their metadata",
    "search": "search the web",
    "ask": "ask questions, also as a client of OpenAI's API",
    "index": "make, fill and delete indexes",
}
"""What a key may do."""

NO_KEY: Final = "-"
"""Stands for the name of the key where the server needs none; no key can have this name."""

_PREFIX: Final = "prunus-"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


def digest_of(key: str) -> str:
    """Return the digest under which a key is stored, hex. A key has 256 random bits, so that no salt is needed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def new_key(state: ServerState, name: str, scopes: Sequence[str], a_minute: int = 0, a_day: int = 0) -> str:
    """Make a key, store its digest, and return it; it cannot be shown again.

    :param name: who uses the key; letters, digits, ``. _ @ -``.
    :param scopes: names from :data:`SCOPES`; () is all.
    :param a_minute, a_day: requests at most; 0 is no limit.
    :raises BadInput: a scope is unknown, or the name is bad or taken.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(f"{name!r} is no name of a key; use letters, digits, . _ @ -", subject="name")
    for scope in scopes:
        if scope not in SCOPES:
            hint = did_you_mean(scope, SCOPES)
            raise BadInput(f"no scope is called {scope}; there are: {', '.join(SCOPES)}{hint}", subject="scopes")
    key = _PREFIX + secrets.token_urlsafe(32)
    kept = tuple(scope for scope in SCOPES if not scopes or scope in scopes)
    state.add(KeyRecord(name, digest_of(key), kept, now(), a_minute, a_day))
    return key


def now() -> str:
    """Return the time in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
