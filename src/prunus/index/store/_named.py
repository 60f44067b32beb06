"""Find the store and the place of an index by its name and the setting ``store``. No message shows an address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from ...core.errors import BadInput

_DATABASE: Final = re.compile(r"postgres(?:ql)?:/+", re.IGNORECASE)  # Path("postgresql://…") has lost a slash
_OWN: Final = "postgres:"
_SCHEMA: Final = "prunus"


def engine_of(index: str | Path, store: str) -> tuple[str, dict[str, Any]]:
    """Return the spec of an index's store, and the keyword arguments that tell the store its place.

    Where ``index`` is the address of a database, the store is ``postgres``, and the schema follows ``#``. Where the
    setting is ``postgres:ADDRESS``, the index is the schema of that name. Otherwise the index is a folder.

    :raises BadInput: the setting ``postgres`` has no address.
    """
    address = _address(str(index))
    if address:
        address, _, schema = address.partition("#")
        return "postgres", {"dsn": address, "schema": schema or _SCHEMA}
    name, _, dsn = store.partition(":")
    if name.strip() == "postgres" or _address(store):
        dsn = _address(store) or _address(dsn) or dsn.strip()
        if not dsn:
            raise BadInput(
                "the store postgres needs an address: set store to postgres:postgresql://user@host/database",
                subject="store",
            )
        return "postgres", {"dsn": dsn, "schema": str(index).removeprefix(_OWN)}
    return store, {"folder": index}


def _address(text: str) -> str:
    """Return the normalised address of a database; '' where the text is no such address."""
    text = text.strip()
    return _DATABASE.sub("postgresql://", text, count=1) if _DATABASE.match(text) else ""
