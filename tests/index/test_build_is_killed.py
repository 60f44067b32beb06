"""A parallel build that is killed, or whose workers are killed, loses no acknowledged document and doubles none."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.batch.kills import children
from tests.cli.command import environment
from tests.index.library import SUBJECTS, page

from prunus import Index
from prunus.core.ports import Vectors
from prunus.index.nodes import NoIndex

KILLS = 6
DOCUMENTS = 40
PROGRAM = """
import sys
from dataclasses import replace
from pathlib import Path
from prunus import Index
from prunus.core.executor import ProcessExecutor

if __name__ == "__main__":
    index = Index.open(sys.argv[1])
    index.executor = ProcessExecutor(2)
    index.builder.settings = replace(index.builder.settings, shard_nodes=100)
    index.add(Path("site"), done=lambda id, fate: print(fate, id, flush=True))
"""


@pytest.mark.slow
def test_kills_of_a_parallel_build_lose_and_double_nothing(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    names = list(SUBJECTS)
    for number in range(DOCUMENTS):
        name = names[number % len(names)]
        (site / f"{number}.html").write_text(page(name, 24).replace("note", f"note {number}"))
    (tmp_path / "run.py").write_text(PROGRAM)
    started = time.monotonic()
    undisturbed = begun(tmp_path, "whole")
    undisturbed.communicate(timeout=600)
    assert undisturbed.returncode == 0
    seconds = time.monotonic() - started
    whole = state(tmp_path / "whole")
    assert len(whole[0]) == DOCUMENTS and whole[1] > 4 * 100

    chance = random.Random(24)
    kills = rounds = 0
    while kills < KILLS:
        rounds += 1
        kept = f"index {rounds}"
        acknowledged: set[str] = set()
        ended = False
        while not ended:
            process = begun(tmp_path, kept)
            if kills < KILLS:
                kills += killed(process, chance, seconds)
            told, error = process.communicate(timeout=600)
            ended = process.returncode == 0
            print(
                f"{kills} kills, build {rounds}: {told.count('added')} added, exit code {process.returncode}",
                flush=True,
            )
            assert ended or process.returncode == -signal.SIGKILL or "a worker process died" in error, error
            lines = [line.partition(" ") for line in told.splitlines(keepends=True) if line.endswith("\n")]
            added = [id.strip() for fate, _, id in lines if fate == "added"]
            assert not acknowledged & {*added}, "an acknowledged document was added again"
            acknowledged |= {*added}
            if acknowledged:
                stored = [document.id for document in Index.open(tmp_path / kept, create=False).store.documents()]
                assert acknowledged <= {*stored} and len(stored) == len({*stored})
        found = state(tmp_path / kept)
        assert found[:3] == whole[:3]
        # what is embedded together differs after a kill, and with it the last bits of a vector
        assert np.allclose(found[3], whole[3], atol=1e-6)


def begun(folder: Path, index: str) -> subprocess.Popen[str]:
    command = [sys.executable, "run.py", index]
    return subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def killed(process: subprocess.Popen[str], chance: random.Random, seconds: float) -> bool:
    """Kill the build or one of its workers at a random moment; False where it has ended before."""
    time.sleep(chance.uniform(0.2, 1.0) * seconds)
    workers = children(process.pid)
    victim = process.pid if not workers or chance.random() < 0.5 else chance.choice(workers)
    if process.poll() is not None:
        return False
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:  # the worker has just ended
        return False
    return True


def state(folder: Path) -> tuple[list[str], int, list[list[int]], Vectors]:
    """Return the documents, the number of leaves, the tree and the vectors."""
    try:
        store = Index.open(folder, create=False).store
    except NoIndex:
        return [], 0, [], np.zeros((0, 0), np.float32)
    view = store.view()
    place = {id: at for at, id in enumerate(view.ids.tolist())}
    tree = [[place[child] for child in children] for _, children in sorted(store.edges().items())]
    vectors = np.asarray(view.matrix[view.routing])
    assert store.damage() == []
    return [*view.names], view.leaves, tree, vectors
