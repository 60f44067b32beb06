"""The store and the place of an index, by its name and the setting ``store``."""

from __future__ import annotations

from pathlib import Path

import pytest

from prunus import BadInput, Settings
from prunus.api.runs import settings_to
from prunus.cli.commands.doctor import _shown
from prunus.core.settings import load_settings
from prunus.index.store._named import engine_of

DSN = "postgresql://me:s3cret@host/db"


@pytest.mark.parametrize(
    ("index", "store", "place"),
    [
        ("handbook", "file", ("file", {"folder": "handbook"})),
        ("handbook", "other:x", ("other:x", {"folder": "handbook"})),
        (DSN, "file", ("postgres", {"dsn": DSN, "schema": "prunus"})),
        (f"{DSN}?sslmode=require#notes", "file", ("postgres", {"dsn": f"{DSN}?sslmode=require", "schema": "notes"})),
        (Path("postgres:/me:s3cret@host/db"), "file", ("postgres", {"dsn": DSN, "schema": "prunus"})),
        ("handbook", f"postgres:{DSN}", ("postgres", {"dsn": DSN, "schema": "handbook"})),
        ("handbook", DSN, ("postgres", {"dsn": DSN, "schema": "handbook"})),
        ("postgres:handbook", "postgres: host=h dbname=d", ("postgres", {"dsn": "host=h dbname=d", "schema": "handbook"})),
        ("handbook", "lance:indexes", ("lance", {"uri": "indexes/handbook"})),
        ("handbook", "lance:s3://bucket/all/", ("lance", {"uri": "s3://bucket/all/handbook"})),
        (Path("lance:s3://bucket/all"), "file", ("lance", {"uri": "s3://bucket/all"})),
        ("lance:/here/handbook", "postgres:host=h", ("lance", {"uri": "/here/handbook"})),
        (f"{DSN}#b", "postgres:host=h", ("postgres", {"dsn": DSN, "schema": "b"})),
    ],
)  # fmt: skip
def test_an_index_is_a_folder_a_schema_or_an_address(index: str, store: str, place: object) -> None:
    assert engine_of(index, store) == place


def test_postgres_alone_says_what_it_needs() -> None:
    with pytest.raises(BadInput, match="needs an address: set store to postgres:postgresql://"):
        engine_of("handbook", "postgres")


@pytest.mark.parametrize(("index", "store"), [("handbook", "lance"), ("handbook", "lance:"), ("../a", "lance:b")])
def test_lance_needs_a_place_and_a_name(index: str, store: str) -> None:
    with pytest.raises(BadInput, match="lance"):
        engine_of(index, store)


@pytest.mark.parametrize("store", [f"postgres:{DSN}", DSN, "postgres:host=h password=s3cret"])
def test_the_address_of_a_database_is_never_shown(store: str) -> None:
    settings = load_settings({"store": store})
    shown = [repr(settings), str(_shown("store", store)), str(settings_to(settings))]
    assert "s3cret" not in " ".join(shown) and "set" in shown[1]
    assert _shown("store", Settings().store) == "file"


def test_a_store_that_is_no_text_is_not_shown_either(folder: Path) -> None:
    (folder / "prunus.toml").write_text('store = {address = "s3cret"}\n', "utf-8")
    with pytest.raises(BadInput, match="setting store") as caught:
        load_settings()
    assert "s3cret" not in str(caught.value)
