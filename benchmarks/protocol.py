"""The measured process: reads commands as JSON lines, and answers with results, CPU time and memory.

It uses only the standard library, because two interpreters import it: the one with Prunus and that of the reference
environment. A command is one JSON object per line, `{"op": name, ...arguments}`. Its answer is one line with `ok`,
`cpu` and `wall` (seconds inside the measured call only), `peak_mb` (highest resident size so far) and `value` or
`error`. The first line of output is `ready`.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Op = Callable[..., Any]
"""An operation: takes a clock and the command's arguments, and passes the measured part to `Clock.timed`."""

_STATUS = Path("/proc/self/status")


def _status_mb(field: str) -> float | None:
    """Return a field of /proc/self/status in MB; None on systems without it."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), None)


def peak_mb() -> float:
    """Return the highest resident size of this process in MB since `forget_peak`."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return _status_mb("VmHWM:") or highest


def forget_peak() -> None:
    """Reset the peak, so that memory used only while importing is not counted."""
    # on systems other than Linux the peak includes the imports, on both sides
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


class Clock:
    """Measures the time of one command."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.wall = 0.0

    def timed(self, call: Callable[[], Any]) -> Any:
        """Return the result of `call`, and add its wall time and its CPU time over all threads."""
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            return call()
        finally:
            self.cpu += time.process_time() - cpu
            self.wall += time.perf_counter() - wall


def _answer(ops: Mapping[str, Op], line: str) -> dict[str, Any]:
    """Run one command and return the answer; an error of the measured tool is an answer, too."""
    clock = Clock()
    command = json.loads(line)
    try:
        value = ops[command.pop("op")](clock, **command)
        reply: dict[str, Any] = {"ok": True, "value": value}
    except Exception as error:  # an exception of a tool on a page is a result of the benchmark
        reply = {"ok": False, "error": f"{type(error).__name__}: {error}"[:300]}
    return reply | {"cpu": clock.cpu, "wall": clock.wall, "peak_mb": peak_mb()}


def serve(ops: Mapping[str, Op], about: Mapping[str, Any]) -> None:
    """Answer commands until standard input ends. Call it when everything is imported and warm."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the output of a tool must not mix with the answers
    gc.collect()
    gc.freeze()  # imported modules are exempt, so that a tool pays only for collecting its own objects
    forget_peak()
    print(json.dumps({"ready": dict(about), "warm_mb": peak_mb()}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(ops, line)), file=out, flush=True)
