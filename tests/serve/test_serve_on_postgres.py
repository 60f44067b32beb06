"""Two servers as processes on one PostgreSQL: both answer, one is killed in the middle, and the other goes on."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.index.test_store_contract import server as postgres  # noqa: F401
from tests.serve.filling import QUESTION, TRAIN, ended, key_of, notes, slow_embedder
from tests.serve.test_serve_jobs import process, waited

pytestmark = [pytest.mark.full, pytest.mark.slow]


def test_one_of_two_servers_is_killed_and_nothing_acknowledged_is_lost(
    postgres: str, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    state = f"postgres:{postgres}"
    settings = {"embedder": slow_embedder(tmp_path, 0.4), "serve_state": state, "serve_index_home": state}
    key = key_of(state, "anna.pair")
    documents = notes(40)
    with ExitStack() as stack:
        servers = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            servers.append(stack.enter_context(process(tmp_path / name, **settings)))
        (_, first), (_, second) = servers
        clients = (first, second)
        for http in clients:
            http.headers.update(key)
        assert first.post("/v1/indexes", json={"name": "trains"}).status_code == 201
        given = {"documents": [{"id": "night", "html": TRAIN}]}
        assert ended(second, second.post("/v1/indexes/trains/documents", json=given).json()["id"])["added"] == 1
        for http in clients:
            reply = http.post("/v1/indexes/trains/ask", json={"question": QUESTION})
            assert reply.status_code == 200 and "carriage" in reply.text

        jobs = []
        for name in ("town", "country"):  # a server works on one index at a time: each takes one
            assert first.post("/v1/indexes", json={"name": name}).status_code == 201
            reply = first.post(f"/v1/indexes/{name}/documents", json={"documents": documents})
            assert reply.status_code == 202
            jobs.append(reply.json()["id"])
        waited(lambda: all(second.get(f"/v1/jobs/{job}").json()["done"] >= 8 for job in jobs))
        killed, _ = servers[0]
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait(30)
        noted = [second.get(f"/v1/jobs/{job}").json()["done"] for job in jobs]
        assert second.post("/v1/indexes/trains/ask", json={"question": QUESTION}).status_code == 200  # in the meantime
        for job, before in zip(jobs, noted, strict=True):
            record = ended(second, job, seconds=120)
            assert record["state"] == "done" and record["done"] == 40 >= before and record["failed"] == 0
        for name in ("town", "country"):
            assert second.get(f"/v1/indexes/{name}").json()["documents"] == 40
            asked = second.post(f"/v1/indexes/{name}/ask", json={"question": "What is note 7 about?"})
            assert asked.status_code == 200 and asked.json()["citations"][0]["found"]
