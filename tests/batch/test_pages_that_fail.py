"""Pages that kill or hang their process fail alone, with their kind; parts are read ahead, but few."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from prunus.batch.rows import Part, Row
from prunus.batch.run import Batch, Prefetch
from prunus.batch.work import Task, lost_record
from prunus.core.errors import BadInput, OutsideFailed
from prunus.core.options import Options
from prunus.core.settings import Settings
from prunus.core.worker_pool import Lost

SCORER = '''
import os, signal
import numpy as np

class Scorer:
    """Does what a page's words say."""

    name = "odd"

    def score(self, query, blocks):
        text = " ".join(blocks.texts)
        if "DIES" in text:
            os.kill(os.getpid(), signal.SIGKILL)
        if "MEMORY" in text:
            raise MemoryError
        return np.ones(len(blocks))
'''


def part(number: int, *words: str) -> Part:
    return Part(
        0, number, "s", tuple(Row(at, f"u{at}", content=f"<p>{word}") for at, word in enumerate(words, 1)), None
    )


def batch(scorer: str) -> Batch:
    options = Options(scorer=scorer, tokenizer="approx")
    return Batch([], Task("prune", "What do pages do?", 200, options=options), Settings(), seconds=60.0)


def test_a_page_that_kills_its_process_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(SCORER, "utf-8")
    parts = [part(0, "good0", "kills DIES", "good1"), part(1), part(2, "big MEMORY", "good2")]
    done = {part.number: records for part, records in batch(f"{tmp_path}/odd.py:Scorer").records(iter(parts), 1)}
    kinds = {number: [record.get("kind", record["status"]) for record in done[number]] for number in done}
    assert kinds == {0: ["done", "crash", "done"], 1: [], 2: ["memory", "done"]}
    assert [record["record"] for record in done[0]] == [1, 2, 3]
    assert done[0][1] == {
        "record": 2, "id": "", "url": "u2", "status": "failed", "kind": "crash",
        "error": "the process died at this page, in 2 tries",
    }  # fmt: skip
    hung = lost_record(Task(), Row(3), Lost(None, 2), 60.0)
    assert (hung["kind"], hung["error"]) == ("hang", "this page took more than 60 seconds, in 2 tries")


def test_an_engine_that_is_unknown_is_one_line() -> None:
    with pytest.raises(BadInput, match="nobody"):
        list(batch("nobody").records(iter([part(0, "x")]), 1))


def test_only_a_few_parts_are_read_ahead() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    ahead = Prefetch(numbers(), 2)
    assert _next(ahead) == 0
    time.sleep(0.2)
    assert len(read) <= 4  # one was taken, two wait, one is in the hand of the thread
    ahead.close()
    ahead._thread.join(5)
    assert not ahead._thread.is_alive() and len(read) <= 5


def _next(ahead: Prefetch[int]) -> int:
    while (thing := next(ahead)) is None:
        time.sleep(0.01)
    return thing


def test_an_error_of_the_reader_reaches_the_caller() -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise OutsideFailed("the disk is gone")

    ahead = Prefetch(fails(), 2)
    assert _next(ahead) == 1
    with pytest.raises(OutsideFailed, match="the disk is gone"):
        _next(ahead)
