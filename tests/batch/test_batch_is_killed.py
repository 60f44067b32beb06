"""A process that writes a batch is killed at random moments, many times: nothing is lost, and nothing is there twice.

The killed process is a fork of the test, which costs nothing to start; ``tests/cli/test_cli_batch_pages.py`` kills whole
runs and their workers.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.extras import need
from tests.web.archives import page, write_archive

from prunus.batch.output import Counts, Output
from prunus.batch.run import Batch
from prunus.batch.work import Task, Work
from prunus.core.settings import Settings

KILLS = int(os.environ.get("KILLS", "40"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of a fork beside threads of other tests
]


def run(folder: Path, inputs: list[str], form: str) -> Counts:
    """Do what is left of the batch, in this process."""
    task, settings = Task(format="text"), Settings()
    batch = Batch(inputs, task, settings, rows=3)
    batch.find()
    output = Output(folder, task, form)  # type: ignore[arg-type]
    work = Work(task, settings)
    with closing(output):
        before = batch.begin(output)
        for part in batch.parts():
            output.write(part, [work.record(row) for row in part.rows])
    assert not batch.failures
    return before


def killed(folder: Path, inputs: list[str], form: str, chance: random.Random) -> bool:
    """Start a run in a fork and kill it at a random moment; tell whether the kill found it alive."""
    wanted = len(list(folder.glob("part-*"))) + chance.randrange(3)
    child = os.fork()
    if not child:
        try:
            run(folder, inputs, form)
        finally:
            os._exit(0)
    end = time.monotonic() + 300
    while len(list(folder.glob("part-*"))) < wanted and not os.waitid(
        os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT
    ):
        assert time.monotonic() < end
        time.sleep(0.001)
    time.sleep(chance.random() * 0.005)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.fixture
def inputs(folder: Path) -> list[str]:
    need("fastwarc")
    write_archive(folder / "a.warc.gz", 100)
    lines = "".join(json.dumps({"id": n, "html": page(n).decode()}) + "\n" for n in range(100))
    (folder / "b.jsonl").write_text(lines + "{broken\n", "utf-8")
    return ["a.warc.gz", "b.jsonl"]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_kills_at_random_moments_lose_and_double_nothing(folder: Path, inputs: list[str], form: str) -> None:
    need("pyarrow")
    run(folder / "calm", inputs, form)
    chance = random.Random(21)
    hits = 0
    for _ in range(KILLS):
        if len(list((folder / "out").glob("part-*"))) > 50:  # something is left for the last run
            break
        hits += killed(folder / "out", inputs, form, chance)
    before = run(folder / "out", inputs, form)
    assert 0 < before.pages < 201  # the kills came early enough to leave work, and lost not all that was done
    assert hits > 1
    names = sorted(path.name for path in (folder / "calm").glob("part-*"))
    assert len(names) == 34 + 34 and names == sorted(path.name for path in (folder / "out").glob("part-*"))
    assert all((folder / "calm" / name).read_bytes() == (folder / "out" / name).read_bytes() for name in names)
    assert not list((folder / "out" / "_batch").glob("*.tmp"))
    assert run(folder / "out", inputs, form).pages == 201
