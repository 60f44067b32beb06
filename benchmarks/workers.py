"""The measuring side: starts the measured processes, sends them commands, and limits the time of each command."""

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
    """A benchmark cannot run; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a worker to one command; see :mod:`benchmarks.protocol`."""

    cpu: float
    wall: float
    peak_mb: float
    value: Any = None
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the command succeeded."""
        return self.error is None


def _pass_on(lines: IO[str], into: Callable[[str], object]) -> None:
    """Pass the lines of a process to a queue, from which a line can be awaited with a timeout."""
    for line in lines:
        into(line)
    into("")  # marks the end
    lines.close()


class Worker:
    """One measured process; the first command starts it, and the next command after a kill starts it again.

    :param limit: timeout of a command in seconds.
    """

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
        """Start the process, unless it runs, and wait until it is warm.

        :raises BenchError: the process did not start.
        """
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
        """Return the next line; None where the process ended or the time is over."""
        try:
            return self._lines.get(timeout=limit) or None
        except queue.Empty:
            return None

    def _last_words(self) -> str:
        """Return the last line that the process wrote to stderr."""
        lines = [line.strip() for line in self._stderr if line.strip()]
        return lines[-1] if lines else "no output"

    def ask(self, op: str, **arguments: Any) -> Reply:
        """Send one command and return the reply; the end of the process or a timeout is an error in the reply."""
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
        """End the process, unless it has ended, and return why there was no answer."""
        process = self._process
        assert process is not None  # only `ask` comes here, with a running process
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)  # its output ends a moment before the process
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
            with contextlib.suppress(BrokenPipeError):  # the last command was not delivered
                process.stdin.close()


def prunus_worker(limit: float = 300.0) -> Worker:
    """Return a worker with Prunus, in this interpreter's environment."""
    return Worker("prunus", [sys.executable, "-m", "benchmarks.subject"], limit)


def reference_worker(tool: str, env: Path, limit: float = 300.0) -> Worker:
    """Return a worker with one tool of the reference environment.

    :raises MissingEnvironmentError: the environment is missing or has other pins.
    """
    require(env)
    command = [str(python_of(env)), "-m", "benchmarks.reference.worker", tool]
    return Worker(tool, command, limit)
