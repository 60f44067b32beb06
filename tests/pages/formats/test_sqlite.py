"""SQLite files: their tables are shown, and no view, trigger or function of the file is run."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.clock import within
from tests.pages.formats.reading import cleaned, survives_damage

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats.sqlite import _VIRTUAL, Engine


def database(script: str, **pragmas: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    for name, setting in pragmas.items():
        connection.execute(f"PRAGMA {name} = {setting}")
    connection.executescript(script)
    connection.commit()
    content = connection.serialize()
    connection.close()
    return content


PORTS = """create table ports (id integer primary key, name text, "water depth" real, map blob);
insert into ports values (1, 'Inner <b>', 2.5, x'0102'), (2, null, 31.0, null), (3, 'Outer
far', 1e300, 'text');
create table "odd "" name" (a); insert into "odd "" name" values ('Mürwik'); create table bare (x, y);"""


def test_tables_with_their_columns_in_order() -> None:
    assert cleaned(Engine(), database(PORTS)) == (
        "<section><h2>ports</h2><table><caption>id INTEGER (key), name TEXT, water depth REAL, map BLOB</caption>"
        "<thead><tr><th>id<th>name<th>water depth<th>map<tbody><tr><td>1<td>Inner &lt;b><td>2.5<td>(2 bytes)"
        "<tr><td>2<td><td>31.0<td><tr><td>3<td>Outer<br>far<td>1e+300<td>text</table></section>"
        '<section><h2>odd " name</h2><table><caption>a</caption><thead><tr><th>a<tbody><tr><td>Mürwik</table></section>'
        "<section><h2>bare</h2><table><caption>x, y</caption><thead><tr><th>x<th>y</table></section>"
    )


@pytest.mark.parametrize("encoding", ["'UTF-8'", "'UTF-16le'", "'UTF-16be'"])
def test_every_encoding_of_a_database_is_read(encoding: str) -> None:
    assert "Mürwik" in cleaned(Engine(), database(PORTS, encoding=encoding))


def test_a_database_that_was_kept_with_a_journal_beside_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(PORTS)
    connection.close()
    assert path.read_bytes()[18:20] == b"\2\2"
    assert "Mürwik" in cleaned(Engine(), path.read_bytes())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db"]


def test_rows_and_letters_over_the_limit_are_left_out_with_a_note() -> None:
    content = database(
        "create table t (a); with recursive n(x) as (select 1 union all select x+1 from n where x<50) insert into t select x from n; create table u (b); insert into u values ('"
        + "y" * 30
        + "')"
    )
    found = cleaned(Engine(max_rows=10, max_text=5), content)
    assert "<em>Rows 1 to 10 of 50 are shown.</em>" in found and "<td>10<" in found and "<td>11" not in found
    assert "yyyyy … (25 more characters)" in found
    found = cleaned(Engine(max_cells=5), content)
    assert "Rows 1 to 5 of 50 are shown." in found and "the limit of time or of cells is reached" in found


def test_computed_columns_are_named_and_never_computed() -> None:
    content = database(
        "create table t (a, b as (printf('%s-%s', a, a)), c as (a || a) stored); insert into t values ('x')"
    )
    found = cleaned(Engine(), content)
    assert "<em>Computed columns are not shown: b.</em>" in found and "x-x" not in found
    assert "<td>x<td>xx" in found, "a stored column is part of the file"


def test_a_virtual_table_is_known_by_its_statement_however_it_is_written() -> None:
    for statement in ("CREATE VIRTUAL", "create/**/virtual", "Create --x\n/* y */ Virtual", "CREATE/* * / */VIRTUAL"):
        assert _VIRTUAL.match(statement)
    for statement in ("CREATE TABLE virtual (a)", "CREATE/* VIRTUAL */ TABLE t (a)", "CREATE TABLE t (virtual)"):
        assert not _VIRTUAL.match(statement)


def test_views_triggers_and_virtual_tables_are_not_run() -> None:
    content = database(
        "create table t (a); insert into t values ('safe'); create view v as select 'SECRET' as x;"
        "create view endless as with recursive n(x) as (select 1 union all select x+1 from n) select count(*) from n;"
    )

    def use() -> None:
        found = cleaned(Engine(), content)
        assert "safe" in found and "SECRET" not in found and "endless" not in found

    assert within(2, use)
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("create virtual table s using fts5(a)")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no full-text search")
    content = connection.serialize()
    connection.close()
    assert "This table is virtual" in cleaned(Engine(), content)


def test_the_time_is_limited() -> None:
    script = "create table t (a, b); with recursive n(x) as (select 1 union all select x+1 from n where x<200000) insert into t select x, x from n;"
    content = database(script)

    def use() -> None:
        try:
            assert "shown" in cleaned(Engine(seconds=0.0), content)
        except BadPage as error:
            assert "interrupted" in str(error)  # noqa: PT017 - the clock may strike before the first table

    assert within(2, use)


GOOD = database(PORTS)
BAD = {
    "empty": (b"", "the page is empty"),
    "text": (b"words", "no SQLite database"),
    "string": ("words", "no SQLite database"),
    "header": (GOOD[:60], "its header is cut off"),
    "cut off": (GOOD[:4096], "damaged"),
    "no table": (database("create view v as select 1"), "holds no table"),
    "garbage": (GOOD[:100] + b"\xff" * 8000, "damaged"),
}


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_database_is_one_clear_line(content: bytes | str, reason: str) -> None:
    with pytest.raises(BadPage, match=reason) as caught:
        Engine().to_html(Page(content, url="x.db"))
    assert "\n" not in str(caught.value)


def test_damage_gives_html_or_one_clear_line() -> None:
    assert survives_damage(Engine(), GOOD, rounds=300) > 20
