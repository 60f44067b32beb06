"""The state of a server that fails: who is told what, and that nobody waits for long."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.extras import need
from tests.serve.filling import key_of
from tests.serve.running import running

from prunus.core.errors import PrunusError
from prunus.core.settings import load_settings

pytestmark = pytest.mark.full


def test_clients_are_not_told_where_the_state_is_and_the_log_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    need("fastapi")
    from prunus.serve.state import ServerState

    state = ServerState(str(tmp_path / "hidden.db"))
    with state.transaction() as run:
        run("DROP TABLE serve_keys")
    with caplog.at_level(logging.ERROR, "prunus.serve"), pytest.raises(PrunusError) as caught:
        state.keys()
    assert "try again soon" in str(caught.value) and "hidden" not in str(caught.value)
    assert "hidden.db: no such table" in caplog.text
    state.close()


def test_the_operator_is_told_where_the_state_is_when_it_cannot_be_opened(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.state import ServerState

    (tmp_path / "broken.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(PrunusError, match=r"broken\.db"):
        ServerState(str(tmp_path / "broken.db"))


def test_reads_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.state import ServerState

    key = key_of(str(tmp_path / "serve.db"), "robot")
    state = ServerState(str(tmp_path / "serve.db"))
    other = sqlite3.connect(tmp_path / "serve.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")  # another process writes
    with state.transaction(writes=False):
        pass
    started = time.monotonic()
    names = [record.name for record in state.keys()]  # noqa: SIM118 - no dict
    assert names == ["robot"] and key
    assert time.monotonic() - started < 1
    other.close()
    with state.transaction():  # another thread writes
        assert len(state.keys()) == 1
    state.close()


def test_a_state_in_use_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import state as module

    monkeypatch.setattr(module, "_WAIT", 0.2)
    state = module.ServerState(str(tmp_path / "serve.db"))
    inside, over = threading.Event(), threading.Event()

    def hold() -> None:
        with state.transaction():
            inside.set()
            over.wait(20)

    holding = threading.Thread(target=hold)
    holding.start()
    inside.wait(20)
    with pytest.raises(PrunusError, match="try again soon"):
        state.try_writing()
    over.set()
    holding.join(20)
    state.try_writing()
    state.close()


def test_a_state_that_does_not_answer_is_a_503_and_not_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import app, guard

    for module in (app, guard):
        monkeypatch.setattr(module, "STATE_SECONDS", 0.2)
    key = key_of(str(tmp_path / "home" / "serve.db"), "robot")
    with running(tmp_path) as server:
        assert server.http.get("/v1/models", headers=key).status_code == 200
        over = threading.Event()

        def silent(*_: Any) -> None:
            over.wait(20)

        monkeypatch.setattr("prunus.serve.state.ServerState.key", silent)
        monkeypatch.setattr("prunus.serve.state.ServerState.try_writing", silent)
        try:
            assert server.http.get("/readyz").status_code == 503
            refused = server.http.get("/v1/models", headers=key)
            assert refused.status_code == 503 and refused.headers["retry-after"]
            assert server.http.get("/healthz").status_code == 200
        finally:
            over.set()


def test_a_server_that_cannot_write_its_state_is_not_ready(tmp_path: Path) -> None:
    need("fastapi")
    with running(tmp_path) as server:
        assert server.http.get("/readyz").status_code == 200
        state = server.server.config.app.state.server.state
        state._writing.connection.execute("PRAGMA query_only = ON")
        time.sleep(1.1)
        assert server.http.get("/readyz").status_code == 503
        state._writing.connection.execute("PRAGMA query_only = OFF")
        time.sleep(1.1)
        assert server.http.get("/readyz").status_code == 200


def removed(file: Path) -> None:
    file.unlink()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def replaced(file: Path) -> None:
    key_of(str(file.with_name("new.db")), "stranger")
    file.with_name("new.db").replace(file)


@pytest.mark.parametrize("lose", [removed, emptied, replaced])
def test_keys_of_a_state_that_is_gone_work_no_more(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    file = tmp_path / "home" / "serve.db"
    head = key_of(str(file), "anna")
    with running(tmp_path) as server:
        assert server.http.get("/v1/models", headers=head).status_code == 200
        lose(file)
        assert server.http.get("/v1/models", headers=head).status_code == 503
        assert server.http.get("/v1/models").status_code == 401 and server.http.get("/readyz").status_code == 503


def test_a_process_that_takes_the_place_of_another_asks_for_keys_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("fastapi")
    from prunus.serve import start
    from prunus.serve.options import ServeOptions

    closed: list[bool] = []
    monkeypatch.setattr(start, "_run", lambda app, *_: closed.append(app.state.server.closed))
    with start._listen(ServeOptions(port=0)) as listening:
        start._work(load_settings({"home": str(tmp_path)}), ServeOptions(), listening, True, closed=True)
    assert closed == [True]  # though the state holds no key by now
