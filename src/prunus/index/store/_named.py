"""Find the store and the place of an index by its name and the setting ``store``. No message shows an address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from ...core.errors import BadInput

_DATABASE: Final = re.compile(r"postgres(?:ql)?:/+", re.IGNORECASE)  # Path("postgresql://…") has lost a slash
_OWN: Final = "postgres:"
_SCHEMA: Final = "prunus"
_LANCE: Final = "lance:"
_BUCKET: Final = re.compile(r"([a-z][a-z0-9+.-]{1,20}):/+", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def engine_of(index: str | Path, store: str) -> tuple[str, dict[str, Any]]:
    """Return the spec of an index's store, and the keyword arguments that tell the store its place.

    Where ``index`` is the address of a database, the store is ``postgres``, and the schema follows ``#``. Where the
    setting is ``postgres:ADDRESS``, the index is the schema of that name. Where ``index`` is ``lance:PLACE``, the store
    is ``lance``; where the setting is ``lance:PLACE``, the index is the folder of that name in that place. Otherwise
    the index is a folder.

    :raises BadInput: the setting ``postgres`` has no address, or ``lance`` no place; or the name does not fit, as an
        address for a folder.
    """
    if str(index).startswith(_LANCE):
        return "lance", {"uri": _place(str(index).removeprefix(_LANCE))}
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
    if name.strip() == "lance":
        place = _place(dsn)
        if not place:
            raise BadInput(
                "the store lance needs a place: set store to lance:FOLDER or lance:s3://bucket/prefix", subject="store"
            )
        if not _NAME.fullmatch(str(index)):
            raise BadInput(
                f"{index}: with the store lance, an index has a name of up to 64 of A-Z, a-z, 0-9, ., _ and -, or is "
                "written lance:PLACE",
                subject=str(index),
            )
        return "lance", {"uri": f"{place.rstrip('/')}/{index}"}
    if _BUCKET.match(str(index)):  # else a folder of that name would be made here
        raise BadInput(
            f"{index}: this store needs a folder of this machine; for object storage write lance:s3://bucket/name",
            subject=str(index),
        )
    return store, {"folder": index}


def _place(text: str) -> str:
    """Return the place of Lance's table: a folder, or an address of object storage, which a path had cut."""
    text = text.strip()
    return _BUCKET.sub(r"\1://", text, count=1) if _BUCKET.match(text) else text


def _address(text: str) -> str:
    """Return the normalised address of a database; '' where the text is no such address."""
    text = text.strip()
    return _DATABASE.sub("postgresql://", text, count=1) if _DATABASE.match(text) else ""
