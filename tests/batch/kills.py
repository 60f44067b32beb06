"""Kill a batch, or one of its processes, at random moments, and run it again until it ends.

    python -m tests.batch.kills --kills 20 --on ray

kills a batch on Ray: the driver, an actor or the process of an actor. It counts the kills by victim, and compares the
files with those of an undisturbed run on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.cli.command import PROGRAM, environment
from tests.web.archives import page, write_archive

_ENDS = 10
"""Runs that may end by themselves, with the exit code for what is outside."""


def kill_at_random(
    command: Sequence[str],
    out: Path,
    kills: int,
    seed: int = 21,
    workers_of: Callable[[int], list[int]] | None = None,
    note: Callable[[str], None] = lambda victim: None,
    runs: float = 0.5,
) -> int:
    """Run a batch until it ends; kill the run, or one of its workers, by SIGKILL at random moments.

    :param kills: kills to do; they are spread over the parts that are left.
    :param workers_of: finds the workers of a run; by default the processes that it started.
    :param runs: share of the kills that hit the run itself.
    :param note: is told each victim: ``run``, or the command line of a worker.
    :returns: the kills that hit a running process.
    """
    chance = random.Random(seed)
    done = ended = 0
    workers_of = workers_of or children
    while True:
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while done < kills and _grown(process, out, chance.randrange(1, 4)):
            time.sleep(chance.random() * 0.05)
            workers = workers_of(process.pid)
            victim = process.pid if not workers or chance.random() < runs else chance.choice(workers)
            if process.poll() is None:
                told = "run" if victim == process.pid else line_of(victim)
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:  # the worker has just been replaced
                    continue
                done += 1
                note(told)
                if victim == process.pid:
                    break
        _, errors = process.communicate(timeout=900)
        if process.returncode == 0:
            return done
        if process.returncode == 3 and ended < _ENDS:  # a cluster that does not start, or is no more: run it again
            ended += 1
            note("none: " + errors.decode().strip())
        elif process.returncode != -signal.SIGKILL:
            raise AssertionError(errors.decode())


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


def line_of(process: int) -> str:
    """Return the command line of a process; '' where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def actors(process: int) -> list[int]:
    """Return the actors of Prunus on Ray, and the processes that they started, below a process."""
    below = [process]
    for one in below:
        below += children(one)
    held = [one for one in below if line_of(one).startswith("ray::") and "MapWorker" in line_of(one)]
    return [*held, *(child for one in held for child in children(one) if "spawn_main" in line_of(child))]


def main() -> int:
    """Kill a batch on Ray, and print what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pages", type=int, default=120, help="of each of two inputs")
    parser.add_argument("--on", default="ray", choices=["ray", ""])
    options = parser.parse_args()
    victims: Counter[str] = Counter()

    def note(told: str) -> None:
        victim = "process of an actor" if "spawn_main" in told else "actor" if told.startswith("ray::") else told
        victims[victim] += 1
        print(f"{sum(victims.values())}: {victim}", flush=True)

    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_archive(folder / "a.warc.gz", options.pages)
        lines = (json.dumps({"id": n, "html": page(n).decode()}) + "\n" for n in range(options.pages))
        (folder / "b.jsonl").write_text("".join(lines), "utf-8")
        batch = [*PROGRAM, "batch", str(folder / "a.warc.gz"), str(folder / "b.jsonl"), "--do", "clean", "--part", "2"]
        batch += ["--workers", "2", "--quiet", "-o"]
        subprocess.run([*batch, str(folder / "calm")], env=environment(), check=True)
        on = ["--on", options.on] if options.on else []
        workers, share = (actors, 0.2) if options.on else (None, 0.5)  # it takes a cluster long to start
        done = kill_at_random(
            [*batch, str(folder / "out"), *on], folder / "out", options.kills, 21, workers, note, share
        )
        calm, out = (
            {path.name: path.read_bytes() for path in (folder / side).glob("part-*")} for side in ("calm", "out")
        )
        records = [
            json.loads(line)["url"] or json.loads(line)["id"] for text in out.values() for line in text.splitlines()
        ]
        print(f"{done} kills ({dict(victims)}) in {time.monotonic() - started:.0f} s")
        print(
            f"{2 * options.pages} pages, {len(records)} records, {len(set(records))} different; equal to the calm run: {calm == out}"
        )
        return 0 if calm == out and len(records) == len(set(records)) == 2 * options.pages else 1


if __name__ == "__main__":
    sys.exit(main())
