"""Pages that kill or hang their process fail alone, are tried twice, and lose nothing of the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from prunus.batch.prefetch import Prefetch
from prunus.batch.rows import Part, Row
from prunus.batch.work import Task
from prunus.batch.worker_pool import Alone, WorkerPool
from prunus.core.errors import OutsideFailed
from prunus.core.options import Options
from prunus.core.settings import Settings

SCORER = '''
import os, signal, time
from pathlib import Path
import numpy as np

LOG = Path(__file__).with_name("log")

class Scorer:
    """Does what a page's words say."""

    name = "odd"

    def score(self, query, blocks):
        text = " ".join(blocks.texts)
        with LOG.open("a") as log:
            log.write(text.split()[0] + "\\n")
        if "DIES" in text or ("ONCE" in text and LOG.read_text().count("once") == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if "HANGS" in text:
            time.sleep(600)
        if "MEMORY" in text:
            raise MemoryError
        return np.ones(len(blocks))
'''


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "odd.py").write_text(SCORER, "utf-8")
    return Task(
        "prune", "What do pages do?", 200, options=Options(scorer=f"{tmp_path}/odd.py:Scorer", tokenizer="approx")
    )


def part(number: int, *words: str) -> Part:
    return Part(
        0, number, "s", tuple(Row(at, f"u{at}", content=f"<p>{word}") for at, word in enumerate(words, 1)), None
    )


def log(folder: Path) -> list[str]:
    return (folder / "log").read_text("utf-8").split()


PARTS = [
    part(0, "good0", "kills DIES", "good1"),
    part(1, "waits HANGS"),
    part(2),
    part(3, "good2", "once ONCE", "big MEMORY", "good3"),
]


def test_a_page_that_kills_or_hangs_fails_alone(tmp_path: Path, task: Task) -> None:
    done = {part.number: records for part, records in WorkerPool(task, Settings(), 2, 20.0).run(iter(PARTS))}
    kinds = {number: [record.get("kind", record["status"]) for record in done[number]] for number in done}
    assert kinds == {0: ["done", "crash", "done"], 1: ["hang"], 2: [], 3: ["done", "done", "memory", "done"]}
    assert [record["record"] for record in done[3]] == [1, 2, 3, 4]
    assert done[0][1]["error"] == "the process died at this page, in 2 tries"
    assert done[1][0]["error"] == "this page took more than 20 seconds, in 2 tries"
    tried = log(tmp_path)
    assert {word: tried.count(word) for word in ("kills", "waits", "once", "good0", "good1", "good2", "good3")} == {
        "kills": 2, "waits": 2, "once": 2, "good0": 1, "good1": 1, "good2": 1, "good3": 1,
    }  # fmt: skip


def test_one_process_alone_does_the_same(tmp_path: Path, task: Task) -> None:
    alone = Alone(task, Settings(), 60.0)
    try:
        kinds = [
            [row.get("kind", row["status"]) for row in alone.records(part)] for part in (PARTS[0], PARTS[2], PARTS[3])
        ]
    finally:
        alone.close()
    assert kinds == [["done", "crash", "done"], [], ["done", "done", "memory", "done"]]


def test_processes_that_cannot_start_are_one_line(task: Task) -> None:
    broken = Task("prune", "q", options=Options(scorer="nobody"))
    with pytest.raises(OutsideFailed, match="nobody"):
        list(WorkerPool(broken, Settings(), 1, 60.0).run(iter([part(0, "x")])))


def test_only_a_few_parts_are_read_ahead() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    ahead = Prefetch(numbers(), 2)
    assert _next(ahead) == 0
    time.sleep(0.5)
    assert len(read) <= 4  # one was taken, two wait, one is in the hand of the thread
    ahead.close()
    ahead._thread.join(5)
    assert not ahead._thread.is_alive() and len(read) <= 5


def _next(ahead: Prefetch[int]) -> int | None:
    found = None
    while found is None and not ahead.ended:
        found = ahead.next(0.1)
    return found


def test_an_error_of_the_reader_reaches_the_caller() -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise OutsideFailed("the disk is gone")

    ahead = Prefetch(fails(), 2)
    assert _next(ahead) == 1
    with pytest.raises(OutsideFailed, match="the disk is gone"):
        _next(ahead)
