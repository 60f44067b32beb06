"""Items that kill or hang their process are lost alone, are tried twice, and lose nothing of the others."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prunus.core.errors import BadInput, OutsideFailed
from prunus.core.worker_pool import Lost, WorkerPool

Item = tuple[str, str]


def odd() -> Callable[[Item], str]:
    """Return a function that does what a word says, and logs it in a file."""

    def do(item: Item) -> str:
        path, word = item
        with open(path, "a", encoding="utf-8") as log:
            log.write(word + "\n")
        if word == "dies" or (word == "once" and Path(path).read_text("utf-8").split().count("once") == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "hangs":
            time.sleep(600)
        return word.upper()

    return do


def broken() -> Callable[[Item], str]:
    raise BadInput("no such engine", subject="nobody")


def dying() -> Callable[[Item], str]:
    os._exit(7)


PARTS = [["good0", "dies", "good1"], ["hangs"], [], ["good2", "once", "good3"]]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_an_item_that_kills_or_hangs_is_lost_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    parts = iter([(number, [(path, word) for word in words]) for number, words in enumerate(PARTS)])
    done = dict(WorkerPool(odd, 2, seconds=1.0).run(parts))
    assert done == {
        0: ["GOOD0", Lost(-signal.SIGKILL, 2), "GOOD1"], 1: [Lost(None, 2)], 2: [], 3: ["GOOD2", "ONCE", "GOOD3"],
    }  # fmt: skip
    tried = Path(path).read_text("utf-8").split()
    assert {word: tried.count(word) for words in PARTS for word in words} == {
        "good0": 1, "dies": 2, "good1": 1, "hangs": 2, "good2": 1, "once": 2, "good3": 1,
    }  # fmt: skip


@pytest.mark.slow
def test_a_worker_that_cannot_begin_ends_the_run() -> None:
    with pytest.raises(BadInput, match="no such engine"):
        list(WorkerPool(broken, 1).run(iter([(0, [("", "x")])])))
    with pytest.raises(OutsideFailed, match=r"die before they can work \(exit code 7\)"):
        list(WorkerPool(dying, 1).run(iter([(0, [("", "x")])])))


def test_a_part_may_come_later_and_closing_ends_the_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "log")

    def parts() -> Iterator[tuple[int, list[Item]] | None]:
        yield 0, [(path, "first")]
        yield None
        yield 1, [(path, "second"), (path, "hangs")]

    pool = WorkerPool(odd, 1)
    results = pool.run(parts())
    assert next(results) == (0, ["FIRST"])
    results.close()
    assert Path(path).read_text("utf-8").split() in (["first"], ["first", "second"], ["first", "second", "hangs"])
