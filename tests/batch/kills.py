"""Kill a batch, or one of its processes, at random moments, and run it again until it ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cli.command import environment


def kill_at_random(command: Sequence[str], out: Path, kills: int, seed: int = 21) -> int:
    """Run a batch until it ends; kill the run, or one of its workers, by SIGKILL at random moments.

    :param kills: kills to do; they are spread over the parts that are left.
    :returns: the kills that hit a running process.
    """
    chance = random.Random(seed)
    done = 0
    while True:
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while done < kills and _grown(process, out, chance.randrange(1, 4)):
            time.sleep(chance.random() * 0.05)
            workers = children(process.pid)
            victim = process.pid if not workers or chance.random() < 0.5 else chance.choice(workers)
            if process.poll() is None:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:  # the worker has just been replaced
                    continue
                done += 1
                if victim == process.pid:
                    break
        _, told = process.communicate(timeout=900)
        if process.returncode == 0:
            return done
        if process.returncode != -signal.SIGKILL:
            raise AssertionError(told.decode())


def children(process: int) -> list[int]:
    """Return the processes that a process has started."""
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _grown(process: subprocess.Popen[bytes], out: Path, parts: int) -> bool:
    """Wait until some more parts are written; False where the run ends before."""
    end = time.monotonic() + 600
    wanted = len(list(out.glob("part-*"))) + parts
    while len(list(out.glob("part-*"))) < wanted:
        if process.poll() is not None:
            return False
        assert time.monotonic() < end
        time.sleep(0.01)
    return True
