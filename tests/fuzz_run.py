"""Fuzz every reader, cleaning and pruning for as long as you like, and go on where an earlier run stopped.

    python tests/fuzz_run.py --count 1000000 --folder build/fuzz      # Ctrl-C stops; the same command goes on
    python tests/fuzz_run.py --seconds 600                            # a new seed each time
    python tests/fuzz_run.py --one 7:4711                             # one document again: SEED:NUMBER

Each document must be answered or refused by one deliberate error, within 10 seconds and 1 GiB of memory, and the promises
of :mod:`tests.fuzz` must hold. A document that fails is written to the folder, and the run goes on. The exit code is 1
where a document failed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import fuzz, fuzz_documents

SECONDS: Final = 10.0
MEMORY: Final = 1 << 30
_EVERY: Final = 200
"""Documents between two notes of the progress."""


def tried(suffix: str, content: bytes) -> tuple[str, str]:
    """Check a document: ('answered' or the name of the deliberate error, ''), or ('failed', the reason)."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    began = time.perf_counter()
    try:
        result = fuzz_documents.check(suffix, content)
    except fuzz.TooLong:
        return "failed", f"takes longer than {SECONDS:.0f} s"
    except fuzz.Failure as failure:
        return "failed", str(failure)
    except Exception as error:  # every other error is a crash, and the run goes on
        place = traceback.extract_tb(error.__traceback__)[-1]
        return "failed", f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if time.perf_counter() - began > SECONDS:  # C code cannot be interrupted
        return "failed", f"takes longer than {SECONDS:.0f} s"
    return result, ""


def work(seed: int, share: int, shares: int, count: int, folder: Path, at: Any, stop: Any) -> None:
    """Check the documents of one share, and note the progress in the folder."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    signal.signal(signal.SIGALRM, _alarm)
    fuzz_documents.seeds()
    held = int(re.findall(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[0]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
    state = read_state(folder, share)
    while at.value < count and not stop.is_set():
        number = at.value
        if number % shares == share:
            suffix, content = fuzz_documents.document(seed, number)
            began = time.perf_counter()
            result, reason = tried(suffix, content)
            note(state, suffix, result, time.perf_counter() - began)
            if reason:
                failed(folder, seed, number, suffix, content, reason)
        at.value = number + 1
        if number // shares % _EVERY == 0:
            write_state(folder, share, state | {"next": at.value})
    write_state(folder, share, state | {"next": at.value})


def note(state: dict[str, Any], suffix: str, result: str, seconds: float) -> None:
    """Add one document to the tallies."""
    tally = state["tally"].setdefault(suffix, {})
    tally[result] = tally.get(result, 0) + 1
    state["slowest"] = max(state["slowest"], round(seconds, 2))
    state["seconds"] += seconds


def failed(folder: Path, seed: int, number: int, suffix: str, content: bytes, reason: str) -> None:
    """Write a failing document and the reason; of each reason the first three documents."""
    kind = re.sub(r"\W+", "-", re.sub(r"\d+", "", reason))[:80].strip("-")
    print(f"{seed}:{number} ({suffix}): {reason[:300]}", flush=True)
    if len(list(folder.glob(f"{kind}.*"))) < 3:
        (folder / f"{kind}.{seed}-{number}.{suffix}").write_bytes(content)


def read_state(folder: Path, share: int) -> dict[str, Any]:
    """Return the progress of a share."""
    path = folder / f"share-{share}.json"
    empty = {"next": share, "tally": {}, "slowest": 0.0, "seconds": 0.0}
    return json.loads(path.read_text()) if path.exists() else empty


def write_state(folder: Path, share: int, state: dict[str, Any]) -> None:
    """Write the progress of a share; an interruption leaves the old or the new file."""
    path = folder / f"share-{share}.json"
    path.with_suffix(".new").write_text(json.dumps(state))
    path.with_suffix(".new").replace(path)


def _alarm(signum: int, frame: FrameType | None) -> None:
    raise fuzz.TooLong


def run(seed: int, count: int, seconds: float, workers: int, folder: Path) -> int:
    """Run the workers until all documents are checked, or time is up; return how many failed."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = {"seed": seed, "workers": workers}
    known = json.loads((folder / "run.json").read_text()) if (folder / "run.json").exists() else plan
    seed, workers = known["seed"], known["workers"]  # a run that goes on keeps its documents
    (folder / "run.json").write_text(json.dumps(known))
    print(f"seed {seed}, {workers} workers, {folder}", flush=True)
    stop, began = multiprocessing.Event(), time.monotonic()
    places = [multiprocessing.Value("q", read_state(folder, share)["next"]) for share in range(workers)]
    running: dict[int, multiprocessing.Process] = {}
    try:
        while True:
            for share, at in enumerate(places):
                died = share in running and running[share].exitcode not in (None, 0)
                if died:  # the interpreter itself crashed
                    suffix, content = fuzz_documents.document(seed, at.value)
                    failed(folder, seed, at.value, suffix, content, f"the process died ({running[share].exitcode})")
                    at.value += 1
                if died or share not in running:
                    running[share] = multiprocessing.Process(
                        target=work, args=(seed, share, workers, count, folder, at, stop)
                    )
                    running[share].start()
            if all(process.exitcode == 0 for process in running.values()):
                break
            if seconds and time.monotonic() - began > seconds:
                stop.set()
            time.sleep(0.2)
    except KeyboardInterrupt:
        stop.set()
        for process in running.values():
            process.join()
        print("stopped; the same command goes on", flush=True)
    return summary(folder, workers)


def summary(folder: Path, workers: int) -> int:
    """Print the tallies; return how many documents failed."""
    states = [read_state(folder, share) for share in range(workers)]
    whole: Counter[str] = Counter()
    for suffix in fuzz_documents.WEIGHTS:
        tally: Counter[str] = Counter()
        for state in states:
            tally.update(state["tally"].get(suffix, {}))
        whole.update(tally)
        print(f"{suffix:6} {tally.total():>8}  " + ", ".join(f"{count} {name}" for name, count in tally.most_common()))
    seconds = sum(state["seconds"] for state in states)
    print(
        f"{whole.total()} documents in {seconds:.0f} s of work: {whole['answered']} answered, {whole['failed']} failed; "
        f"slowest {max(state['slowest'] for state in states)} s"
    )
    return whole["failed"]


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after this long")
    parser.add_argument("--count", type=int, default=10**12, help="stop after so many documents")
    parser.add_argument("--seed", type=int, help="the same documents every time; random by default")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="progress and failing documents")
    parser.add_argument("--one", metavar="SEED:NUMBER", help="check one document, with its traceback")
    options = parser.parse_args()
    if options.one:
        seed, _, number = options.one.partition(":")
        suffix, content = fuzz_documents.document(int(seed), int(number))
        print(suffix, len(content), "bytes:", fuzz_documents.check(suffix, content))
        return 0
    seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    return int(run(seed, options.count, options.seconds, options.workers, options.folder) > 0)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    sys.exit(main())
