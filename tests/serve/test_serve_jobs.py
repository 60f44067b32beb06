"""Jobs of indexes: progress, cancel, crashes, leases, and several servers on one state."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cli.command import PROGRAM, environment
from tests.extras import need
from tests.index.test_store_contract import server as postgres  # noqa: F401
from tests.serve.filling import QUESTION, TRAIN, content, ended, key_of, notes, slow_embedder
from tests.serve.running import Running, events_of, running

import prunus
from prunus.core.settings import load_settings

pytestmark = pytest.mark.full


def posted(server: Running, name: str, documents: Any, **headers: str) -> str:
    """Give documents to an index; return the id of the job."""
    reply = server.post(f"/v1/indexes/{name}/documents", {"documents": documents}, **headers)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["id"])


def waited(look: Callable[[], Any], seconds: float = 60) -> Any:
    """Return what a function returns as soon as it is true."""
    until = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.05)
    return found


def built(folder: Path, documents: list[dict[str, str]], **settings: Any) -> tuple[Any, ...]:
    """Return what an index holds that was built at once, in this process."""
    index = prunus.Index.open(folder, settings=load_settings(settings))
    index.add({document["id"]: prunus.Page(document["html"], url=document["id"]) for document in documents})
    return content(index)


def made(home: Path, **settings: Any) -> tuple[Any, ...]:
    """Return what the only index below a folder holds."""
    [folder] = home.iterdir()
    return content(prunus.Index.open(folder, create=False, settings=load_settings(settings)))


@contextmanager
def process(folder: Path, *arguments: str, **settings: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """Run ``prunus serve`` as a process of its own."""
    need("fastapi")
    (folder / "prunus.toml").write_text("[serve]\nlease = 2\n", "utf-8")
    env = {**environment(), "PRUNUS_HOME": str(folder / "home"), "PRUNUS_SERVE_INDEX_HOME": str(folder / "made")}
    env |= {f"PRUNUS_{name.upper()}": value for name, value in settings.items()}
    program = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0", *arguments], env=env, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    try:
        assert program.stderr is not None
        url = next(word.rstrip(";") for word in program.stderr.readline().split() if word.startswith("http"))
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
            waited(lambda: _lives(http), 20)
            yield program, http
    finally:
        program.kill()
        program.communicate()


def _lives(http: httpx.Client) -> bool:
    try:
        return http.get("/healthz").status_code == 200
    except httpx.ConnectError:
        return False


def test_progress_streams_to_the_end(tmp_path: Path) -> None:
    settings = {"embedder": slow_embedder(tmp_path, 0.5)}
    with running(tmp_path, settings, index_home=str(tmp_path / "made")) as server:
        server.post("/v1/indexes", {"name": "town"})
        job = posted(server, "town", notes(24))
        events = events_of(server.http.get(f"/v1/jobs/{job}/events").text)
        names = [name for name, _ in events]
        assert names[-1] == "done" and set(names[:-1]) == {"progress"} and len(names) > 3
        assert server.http.get(f"/v1/jobs/{'0' * 32}").status_code == 404
        assert server.http.get("/v1/jobs/x%00y").status_code == 404
        assert [each["id"] for each in server.http.get("/v1/jobs").json()["jobs"]] == [job]


def test_requests_are_answered_while_a_job_runs(tmp_path: Path) -> None:
    settings = {"embedder": slow_embedder(tmp_path, 0.5)}
    with running(tmp_path, settings, index_home=str(tmp_path / "made"), at_once=1) as server:
        for name in ("filled", "waits"):
            server.post("/v1/indexes", {"name": name})
        first = posted(server, "filled", [{"id": "night", "html": TRAIN}])
        ended(server.http, first)
        second, third = posted(server, "filled", notes(40)), posted(server, "waits", notes(1))
        waited(lambda: server.http.get(f"/v1/jobs/{second}").json()["done"])
        reply = server.post("/v1/indexes/filled/ask", {"question": QUESTION})
        assert reply.status_code == 200 and "carriage" in reply.text
        states = [server.http.get(f"/v1/jobs/{job}").json()["state"] for job in (second, third)]
        assert states == ["running", "waiting"]  # one at a time by default
        assert ended(server.http, second)["added"] == 40 and ended(server.http, third)["added"] == 1


def test_what_a_cancelled_job_has_added_stays_and_can_be_asked(tmp_path: Path) -> None:
    settings = {"embedder": slow_embedder(tmp_path, 0.5)}
    documents = notes(32)
    with running(tmp_path, settings, index_home=str(tmp_path / "made")) as server:
        server.post("/v1/indexes", {"name": "town"})
        job, waiting = posted(server, "town", documents), posted(server, "town", [{"id": "night", "html": TRAIN}])
        waited(lambda: server.http.get(f"/v1/jobs/{job}").json()["done"])
        assert server.http.delete(f"/v1/jobs/{waiting}").json()["state"] == "cancelled"  # at once: it waits
        server.http.delete(f"/v1/jobs/{job}")
        record = ended(server.http, job)
        assert record["state"] == "cancelled" and 0 < record["added"] < 32 and record["added"] == record["done"]
        assert [each["fate"] for each in record["documents"]] == ["added"] * record["added"] and record["of"] == 32
        assert server.http.delete(f"/v1/jobs/{job}").json()["state"] == "cancelled"  # it stays as it is
        assert server.post("/v1/indexes/town/ask", {"question": "What is note 1 about?"}).status_code == 200
        rest = ended(server.http, posted(server, "town", documents))
        assert (rest["unchanged"], rest["added"]) == (record["added"], 32 - record["added"])
    assert made(tmp_path / "made", **settings)[0] == built(tmp_path / "beside", documents, **settings)[0]
    with running(tmp_path, settings) as server:
        assert not documents_kept(tmp_path)


def documents_kept(folder: Path) -> int:
    """Return how many documents the state still has the content of."""
    from prunus.serve.state import ServerState

    state = ServerState(str(folder / "home" / "serve.db"))
    with state.transaction() as run:
        [(count,)] = run("SELECT count(*) FROM serve_documents WHERE content IS NOT NULL")
    state.close()
    return int(count)


def test_an_index_that_is_deleted_ends_its_jobs(tmp_path: Path) -> None:
    settings = {"embedder": slow_embedder(tmp_path, 0.5)}
    with running(tmp_path, settings, index_home=str(tmp_path / "made")) as server:
        server.post("/v1/indexes", {"name": "town"})
        job, waiting = posted(server, "town", notes(32)), posted(server, "town", notes(1))
        waited(lambda: server.http.get(f"/v1/jobs/{job}").json()["done"])
        deleted = server.http.delete("/v1/indexes/town").json()["id"]
        assert server.post("/v1/indexes/town/documents", {"documents": notes(1)}).status_code == 404
        assert server.post("/v1/indexes", {"name": "town"}).status_code == 201  # the name is free at once
        fresh = posted(server, "town", notes(1))
        states = [ended(server.http, each)["state"] for each in (job, waiting, deleted, fresh)]
        assert states == ["cancelled", "cancelled", "done", "done"]
        assert server.http.get("/v1/indexes/town").json()["documents"] == 1
        assert len(list((tmp_path / "made").iterdir())) == 1
        assert server.http.delete(f"/v1/jobs/{deleted}").json()["state"] == "done"


def test_a_key_has_a_limit_of_unfinished_jobs(tmp_path: Path) -> None:
    with running(tmp_path, index_home=str(tmp_path / "made"), jobs=0, key_jobs=2) as server:
        server.post("/v1/indexes", {"name": "town"})
        jobs = [posted(server, "town", notes(1)) for _ in range(2)]
        reply = server.post("/v1/indexes/town/documents", {"documents": notes(1)})
        assert reply.status_code == 429 and reply.headers["retry-after"]
        server.http.delete(f"/v1/jobs/{jobs[0]}")
        posted(server, "town", notes(1))


def test_looking_at_jobs_uses_no_quota(tmp_path: Path) -> None:
    need("fastapi")
    key = key_of(str(tmp_path / "home" / "serve.db"), "robot", a_day=2)
    with running(tmp_path, index_home=str(tmp_path / "made")) as server:
        server.post("/v1/indexes", {"name": "town"}, **key)
        job = posted(server, "town", notes(1), **key)
        assert ended(server.http, job, key)["added"] == 1
        assert server.http.get("/v1/indexes/town", headers=key).status_code == 429


def test_a_server_that_stops_gives_its_job_to_the_next(tmp_path: Path) -> None:
    settings = {"embedder": slow_embedder(tmp_path, 0.4)}
    documents = notes(32)
    with running(tmp_path, settings, index_home=str(tmp_path / "made")) as server:
        server.post("/v1/indexes", {"name": "town"})
        job = posted(server, "town", documents)
        waited(lambda: server.http.get(f"/v1/jobs/{job}").json()["done"])
    with running(tmp_path, settings, index_home=str(tmp_path / "made")) as server:
        record = ended(server.http, job)
        assert record["state"] == "done" and record["done"] == 32 and record["failed"] == 0
    assert made(tmp_path / "made", **settings) == built(tmp_path / "beside", documents, **settings)


def test_a_job_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    settings = {"embedder": slow_embedder(tmp_path, 0.4)}
    documents = notes(40)
    with process(tmp_path, **settings) as (program, http):
        assert http.post("/v1/indexes", json={"name": "town"}).status_code == 201
        job = http.post("/v1/indexes/town/documents", json={"documents": documents}).json()["id"]
        for least in (8, 16):
            waited(lambda least=least: http.get(f"/v1/jobs/{job}").json()["done"] >= least)  # type: ignore[misc]
        os.kill(program.pid, signal.SIGKILL)
        program.wait(30)
    assert documents_kept(tmp_path)
    with process(tmp_path, **settings) as (program, http):
        record = http.get(f"/v1/jobs/{job}").json()
        assert record["state"] == "running" and 16 <= record["done"] < 40
        record = ended(http, job)
        assert record["state"] == "done" and record["done"] == 40 and record["failed"] == 0
        assert http.post("/v1/indexes/town/ask", json={"question": "What is note 7 about?"}).status_code == 200
    assert not documents_kept(tmp_path)
    assert made(tmp_path / "made", **settings) == built(tmp_path / "beside", documents, **settings)


def test_a_job_that_ends_its_server_again_and_again_is_given_up(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.queue import InputDocument, Queue
    from prunus.serve.state import ServerState
    from prunus.serve.user_indexes import CreatedIndexes

    state = ServerState(str(tmp_path / "serve.db"))
    index = CreatedIndexes(state, str(tmp_path / "made")).add("-", "town", "", 1)
    queue = Queue(state, lease=0.0)
    job = queue.add("-", "add", index.id, "town", [InputDocument("a", content="<p>x")], 9)
    taken = [queue.claim(f"worker {number}", lambda place: True) for number in range(4)]
    assert [found is not None for found in taken] == [True, True, True, False]
    found = queue.find("-", job.id)
    assert found is not None and found.state == "failed" and "3 times" in found.error and found.counts == {"left": 1}
    state.close()


def test_a_worker_that_lost_its_lease_changes_nothing_more(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.queue import Fate, InputDocument, Queue
    from prunus.serve.state import ServerState
    from prunus.serve.user_indexes import CreatedIndexes

    state = ServerState(str(tmp_path / "serve.db"))
    index = CreatedIndexes(state, str(tmp_path / "made")).add("-", "town", "", 1)
    queue = Queue(state, lease=0.0)
    job = queue.add("-", "add", index.id, "town", [InputDocument("a", content="<p>x")], 9).id
    assert queue.claim("slow", lambda place: True) and queue.claim("next", lambda place: True)
    assert queue.renew(job, "slow") == "lost" and queue.note(job, "slow", [Fate(0, "a", "added")]) == "lost"
    queue.end(job, "slow", "done")
    queue.release(job, "slow")
    found = queue.find("-", job)
    assert found is not None and (found.state, found.counts) == ("running", {"": 1})
    assert queue.note(job, "next", [Fate(0, "a", "added")]) == ""
    state.close()


def test_a_clock_that_was_set_back_does_not_hold_jobs_up_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("fastapi")
    from prunus.serve.queue import InputDocument, Queue
    from prunus.serve.state import ServerState
    from prunus.serve.user_indexes import CreatedIndexes

    state = ServerState(str(tmp_path / "serve.db"))
    index = CreatedIndexes(state, str(tmp_path / "made")).add("-", "town", "", 1)
    queue, real = Queue(state, lease=20.0), time.time
    queue.add("-", "add", index.id, "town", [InputDocument("a", content="<p>x")], 9)
    monkeypatch.setattr(time, "time", lambda: real() + 86_400)
    assert queue.claim("dead", lambda place: True) is not None
    monkeypatch.setattr(time, "time", real)
    assert queue.claim("next", lambda place: True) is not None  # its lease is a day away
    assert queue.claim("third", lambda place: True) is None
    state.close()


def test_a_key_with_many_jobs_does_not_hold_up_the_others(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.queue import Queue
    from prunus.serve.state import ServerState
    from prunus.serve.user_indexes import CreatedIndexes

    state = ServerState(str(tmp_path / "serve.db"))
    queue, created = Queue(state, lease=60.0), CreatedIndexes(state, str(tmp_path / "made"))

    def next_one(worker: str) -> str:
        job = queue.claim(worker, lambda place: True)
        assert job is not None
        return job.name

    for owner, count in (("anna", 5), ("bert", 2)):
        for number in range(count):
            index = created.add(owner, f"{owner}{number}", "", 9)
            queue.add(owner, "remove", index.id, index.name, [], 9)
    taken = []
    for _ in range(5):
        taken.append(next_one("only"))
        [running] = [job for owner in ("anna", "bert") for job in queue.of(owner) if job.state == "running"]
        queue.end(running.id, "only", "done")
    assert taken == ["anna0", "bert0", "anna1", "bert1", "anna2"]
    assert next_one("first") == "anna3"
    index = created.add("bert", "bert9", "", 9)
    queue.add("bert", "remove", index.id, index.name, [], 9)
    assert next_one("second") == "bert9"  # anna has a job at work
    found = created.find("anna", "anna0")
    assert found is not None and queue.delete_index(found) is not None
    assert next_one("third") == "anna0"  # a deletion goes first
    state.close()


def test_a_deletion_that_fails_is_tried_again_until_the_data_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("fastapi")
    from prunus.serve import queue as module

    monkeypatch.setattr(module, "_PAUSES", (0.01, 0.1))
    monkeypatch.setattr("prunus.serve.runner._IDLE", 0.05)
    with running(tmp_path, index_home=str(tmp_path / "made")) as server:
        server.post("/v1/indexes", {"name": "town"})
        [folder] = (tmp_path / "made").iterdir()
        tries = []

        def refuses(place: str) -> None:
            tries.append(place)
            if len(tries) < 6:
                raise OSError(5, "the disk refuses")
            remove(place)

        remove = shutil.rmtree
        monkeypatch.setattr("prunus.serve.user_indexes.shutil.rmtree", refuses)
        job = server.http.delete("/v1/indexes/town").json()["id"]
        assert ended(server.http, job)["state"] == "done"
        assert len(tries) == 6 and not folder.exists()


def test_a_deletion_waits_longer_after_each_failure(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.queue import Queue
    from prunus.serve.state import ServerState
    from prunus.serve.user_indexes import CreatedIndexes

    state = ServerState(str(tmp_path / "serve.db"))
    queue, created = Queue(state, lease=60.0), CreatedIndexes(state, str(tmp_path / "made"))
    job = queue.delete_index(created.add("anna", "town", "", 9))
    assert job is not None
    pauses = []
    for _ in range(12):
        assert queue.claim("only", lambda place: True)
        pauses.append(queue.postpone(job.id, "only"))
        assert queue.claim("only", lambda place: True) is None
        with state.transaction() as run:
            run("UPDATE serve_jobs SET until = 0")
    assert pauses[:3] == [5, 10, 20] and pauses[-1] == 3_600
    state.close()


def test_ended_jobs_of_a_key_do_not_pile_up(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.queue import InputDocument, ManyJobs, Queue
    from prunus.serve.state import ServerState
    from prunus.serve.user_indexes import CreatedIndexes

    state = ServerState(str(tmp_path / "serve.db"))
    queue, created = Queue(state, lease=60.0), CreatedIndexes(state, str(tmp_path / "made"))
    index = created.add("anna", "town", "", 9)
    documents = [InputDocument(f"{number}", "https://example.org/") for number in range(3)]
    for _ in range(110):
        job = queue.add("anna", "add", index.id, "town", documents, 9)
        cancelled = queue.cancel("anna", job.id)
    assert cancelled is not None and cancelled.counts == {"left": 3} and queue.fates(cancelled.id) == []
    with state.transaction() as run:
        counts = [run(f"SELECT count(*) FROM {name}")[0][0] for name in ("serve_jobs", "serve_left", "serve_documents")]
    assert counts == [100, 100, 0]
    for _ in range(2):
        queue.delete_index(index, most=2)
        index = created.add("anna", "town", "", 9)
    with pytest.raises(ManyJobs, match="deletions"):
        queue.delete_index(index, most=2)
    assert created.find("anna", "town") is not None
    state.close()


def test_workers_that_are_told_to_stop_take_no_new_job(tmp_path: Path) -> None:
    settings = {"embedder": slow_embedder(tmp_path, 0.4)}
    with running(tmp_path, settings, index_home=str(tmp_path / "made")) as server:
        server.post("/v1/indexes", {"name": "town"})
        job = posted(server, "town", notes(32))
        waited(lambda: server.http.get(f"/v1/jobs/{job}").json()["done"])
        runner = server.server.config.app.state.server.runner
        runner.begin_stop()
        waited(lambda: not runner.running)
        record = server.http.get(f"/v1/jobs/{job}").json()  # requests are answered still
        assert record["state"] == "waiting" and 0 < record["done"] < 32


def test_one_of_many_workers_gets_a_job_and_an_index_has_one_writer(tmp_path: Path) -> None:
    need("fastapi")
    from concurrent.futures import ThreadPoolExecutor

    from prunus.serve.queue import Queue
    from prunus.serve.state import ServerState
    from prunus.serve.user_indexes import CreatedIndexes

    states = [ServerState(str(tmp_path / "serve.db")) for _ in range(4)]
    queues = [Queue(state, lease=60.0) for state in states]
    created = CreatedIndexes(states[0], str(tmp_path / "made"))
    for name in ("a", "b", "c"):
        index = created.add("-", name, "", 9)
        for _ in range(3):
            queues[0].add("-", "remove", index.id, name, [], 99)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: queues[n % 4].claim(str(n), lambda place: True), range(24)))
    taken = [job for job in found if job is not None]
    assert sorted(job.name for job in taken) == ["a", "b", "c"]
    first = next(job for job in taken if job.name == "a")
    queues[1].end(first.id, str(found.index(first)), "done")
    again = queues[2].claim("x", lambda place: True)
    assert again is not None and again.name == "a" and queues[3].claim("y", lambda place: True) is None
    for state in states:
        state.close()


def test_two_servers_share_keys_quotas_jobs_and_indexes_through_postgresql(
    postgres: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    need("fastapi")
    state = f"postgres:{postgres}"
    settings = {
        "embedder": slow_embedder(tmp_path, 0.3),
        "serve_state": state,
        "serve_index_home": state,
    }
    anna, bert = key_of(state, "anna.two"), key_of(state, "bert.two")
    robot = key_of(state, "robot.two", a_day=2)
    documents = notes(40)
    with (
        running(tmp_path / "one", settings, jobs=0) as one,
        running(tmp_path / "two", settings, jobs=1, lease=2.0) as two,
    ):
        assert one.post("/v1/indexes", {"name": "town"}, **anna).status_code == 201
        assert two.post("/v1/indexes", {"name": "town"}, **anna).status_code == 409
        job = posted(one, "town", documents, **anna)  # the first server works on no jobs
        assert ended(two.http, job, anna)["added"] == 40 and ended(one.http, job, anna)["state"] == "done"
        assert one.http.get(f"/v1/jobs/{job}", headers=bert).status_code == 404
        for server in (one, two):
            assert server.http.get("/v1/indexes/town", headers=anna).json()["documents"] == 40
            asked = server.post("/v1/indexes/town/ask", {"question": "What is note 7 about?"}, **anna)
            assert asked.status_code == 200 and asked.json()["citations"][0]["found"]
            assert server.http.get("/v1/indexes/town", headers=bert).status_code == 404
        statuses = [server.http.get("/v1/indexes", headers=robot).status_code for server in (one, two, one)]
        assert statuses == [200, 200, 429]
        deleted = one.http.delete("/v1/indexes/town", headers=anna).json()["id"]
        assert two.http.get("/v1/indexes/town", headers=anna).status_code == 404
        assert ended(one.http, deleted, anna)["state"] == "done"
    import psycopg

    with psycopg.connect(postgres) as connection:
        query = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'prunus\\_%'"
        assert connection.execute(query).fetchone() == (0,)


def test_another_server_takes_over_the_job_of_one_that_is_killed(postgres: str, tmp_path: Path) -> None:  # noqa: F811
    need("fastapi")
    state = f"postgres:{postgres}"
    settings = {"embedder": slow_embedder(tmp_path, 0.4), "serve_state": state, "serve_index_home": state}
    anna = key_of(state, "anna.killed")
    documents = notes(32)
    with running(tmp_path / "one", settings, jobs=0, lease=2.0) as one:
        with process(tmp_path, **settings) as (program, http):
            assert http.post("/v1/indexes", json={"name": "town"}, headers=anna).status_code == 201
            job = posted(one, "town", documents, **anna)
            waited(lambda: one.http.get(f"/v1/jobs/{job}", headers=anna).json()["done"] >= 8)
            os.kill(program.pid, signal.SIGKILL)
            program.wait(30)
        assert one.http.get(f"/v1/jobs/{job}", headers=anna).json()["state"] == "running"
        with running(tmp_path / "two", settings, jobs=2, lease=2.0) as two:
            assert ended(two.http, job, anna)["state"] == "done"
        info = one.http.get("/v1/indexes/town", headers=anna).json()
        assert info["documents"] == 32
        from prunus.serve.state import ServerState
        from prunus.serve.user_indexes import CreatedIndexes

        opened = ServerState(state)
        created = CreatedIndexes(opened, state)
        found = created.find("anna.killed", "town")
        assert found is not None
        index = prunus.Index.open(created.place(found.id), create=False, settings=load_settings(settings))
        assert content(index) == built(tmp_path / "beside", documents, embedder=settings["embedder"])
        opened.close()


@pytest.mark.parametrize("part", ["prunus.serve.queue.Queue.note", "prunus.api.index.Index.add"])
def test_a_full_disk_delays_a_job_and_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    need("fastapi")
    from prunus.core.errors import StoreFailed
    from prunus.serve import runner
    from prunus.serve.state import StateFailed

    monkeypatch.setattr(runner, "_PAUSE", 0.1)
    monkeypatch.setattr(runner, "_IDLE", 0.1)
    tried: list[str] = []

    def full(*_: Any, **__: Any) -> None:
        tried.append(part)
        raise StateFailed("the disk is full") if part.endswith("note") else StoreFailed("the disk is full")

    with running(tmp_path, index_home=str(tmp_path / "made"), lease=0.5) as server:
        server.post("/v1/indexes", {"name": "town"})
        with monkeypatch.context() as patch:
            patch.setattr(part, full)
            if part.endswith("note"):  # nothing at all can be noted
                patch.setattr("prunus.serve.queue.Queue.release", full)
            job = posted(server, "town", notes(9))
            waited(lambda: len(tried) > 8)
        found = ended(server.http, job)
        assert (found["state"], found["added"] + found["unchanged"]) == ("done", 9), found


def test_a_long_job_gives_its_worker_to_the_jobs_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import runner

    monkeypatch.setattr(runner, "_SLICE", 0.2)
    settings = {"embedder": slow_embedder(tmp_path, 0.3)}
    home = str(tmp_path / "home" / "serve.db")
    anna, ben = (key_of(home, name) for name in ("anna", "ben"))
    with running(tmp_path, settings, index_home=str(tmp_path / "made")) as server:
        for key in (anna, ben):
            server.post("/v1/indexes", {"name": "town"}, **key)
        long = posted(server, "town", notes(80), **anna)
        waited(lambda: server.http.get(f"/v1/jobs/{long}", headers=anna).json()["done"])
        short = posted(server, "town", notes(1), **ben)
        assert ended(server.http, short, ben)["added"] == 1
        assert not server.http.get(f"/v1/jobs/{long}", headers=anna).json()["ended"]
        assert ended(server.http, long, anna)["added"] == 80


def test_a_job_asks_a_host_that_lets_it_wait_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("fastapi")
    from prunus.serve import runner

    monkeypatch.setattr(runner, "_SLOW", 0.3)
    with socket.socket() as tarpit:  # takes connections, and replies nothing
        tarpit.bind(("127.0.0.1", 0))
        tarpit.listen(100)
        port = tarpit.getsockname()[1]
        settings = {"allow_hosts": ("127.0.0.1",), "ports": (port,), "total_seconds": 0.5, "read_seconds": 0.5}
        settings |= {"retries": 0, "robots": False}
        with running(tmp_path, settings, index_home=str(tmp_path / "made")) as server:
            server.post("/v1/indexes", {"name": "town"})
            pages = [{"url": f"http://127.0.0.1:{port}/{number}"} for number in range(60)]
            began = time.monotonic()
            job = posted(server, "town", [*pages, *notes(1)])
            found = ended(server.http, job)
            assert (found["state"], found["failed"], found["added"]) == ("done", 60, 1)
            assert time.monotonic() - began < 10
            last = server.http.get(f"/v1/jobs/{job}").json()["documents"][59]
            assert "too often in this job" in last["failure"]


def test_a_job_has_a_budget_of_seconds(tmp_path: Path) -> None:
    settings = {"embedder": slow_embedder(tmp_path, 0.5)}
    with running(tmp_path, settings, index_home=str(tmp_path / "made"), job_seconds=0.6) as server:
        server.post("/v1/indexes", {"name": "town"})
        found = ended(server.http, posted(server, "town", notes(80)))
        assert found["state"] == "failed" and "0.6 seconds" in found["error"] and 8 <= found["added"] < 80
        assert server.post("/v1/indexes/town/ask", {"question": "bees"}).status_code in (200, 404)
