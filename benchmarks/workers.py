"""The measuring side: starts the processes, sends commands, waits no longer than allowed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from benchmarks.reference.make_env import python_of, require

ROOT = Path(__file__).resolve().parent.parent

ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class BenchError(Exception):
    """Something that keeps a benchmark from running; shown to the user as one line."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker answered to one command."""

    cpu: float
    wall: float
    peak_mb: float
    value: Any = None
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the tool did its work."""
        return self.error is None


def _pass_on(lines: IO[str], into: Callable[[str], object]) -> None:
    """Hand on a process's lines as they come, so that waiting for one can have a limit."""
    for line in lines:
        into(line)
    into("")  # no more of them
    lines.close()


class Worker:
    """One process under measurement. It is started by the first command, and again after a kill."""

    def __init__(self, name: str, command: list[str], limit: float = 300.0) -> None:
        self.name = name
        self.limit = limit
        self.about: dict[str, Any] = {}
        self.warm_mb = 0.0
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self._stderr: deque[str] = deque(maxlen=20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process and wait until it is warm."""
        if self._process is not None:
            return
        self._lines, self._stderr = queue.Queue(), deque(maxlen=20)
        process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=os.environ | ONE_CORE | OFFLINE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._process = process
        assert process.stdout is not None  # all three are pipes
        assert process.stderr is not None
        for read, into in (
            (process.stdout, self._lines.put),
            (process.stderr, self._stderr.append),
        ):
            threading.Thread(target=_pass_on, args=(read, into), daemon=True).start()
        line = self._line(self.limit)
        if line is None:
            raise BenchError(f"{self.name} did not start: {self._last_words()}")
        first = json.loads(line)
        self.about, self.warm_mb = first["ready"], first["warm_mb"]

    def _line(self, limit: float) -> str | None:
        """The next line, or None when the process ended or the time is over."""
        try:
            return self._lines.get(timeout=limit) or None
        except queue.Empty:
            return None

    def _last_words(self) -> str:
        """The last line that the process wrote to its standard error."""
        lines = [line.strip() for line in self._stderr if line.strip()]
        return lines[-1] if lines else "no output"

    def ask(self, op: str, **arguments: Any) -> Reply:
        """Send one command; a process that dies or takes too long is an error of that command."""
        self.start()
        process = self._process
        assert process is not None  # `start` saw to both
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
            process.stdin.flush()
            line = self._line(self.limit)
        except BrokenPipeError:
            line = None
        if line is None:
            error = self._end()
            return Reply(cpu=self.limit, wall=self.limit, peak_mb=0.0, error=error)
        answer = json.loads(line)
        return Reply(
            answer["cpu"],
            answer["wall"],
            answer["peak_mb"],
            answer.get("value"),
            answer.get("error"),
        )

    def _end(self) -> str:
        """Why no answer came; the process is ended, if it has not ended by itself."""
        process = self._process
        assert process is not None  # only `ask` comes here, with a running process
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)  # its output ends a moment before it does
        late, words = process.poll() is None, self._last_words()
        self.close()
        if late:
            return f"over {self.limit:g} s"
        return f"died with exit status {process.returncode}: {words[:100]}"

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # the last command never reached it
                process.stdin.close()


def prunus_worker(limit: float = 300.0) -> Worker:
    """A process with Prunus, in this interpreter's environment."""
    return Worker("prunus", [sys.executable, "-m", "benchmarks.subject"], limit)


def reference_worker(tool: str, env: Path, limit: float = 300.0) -> Worker:
    """A process with one tool of the reference environment, which must exist."""
    require(env)
    command = [str(python_of(env)), "-m", "benchmarks.reference.worker", tool]
    return Worker(tool, command, limit)
