"""The measured side: a process that reads JSON-line commands and answers with CPU and memory.

Standard library only, because both interpreters import it: the one with Prunus and the
reference's own. A command is one JSON object a line, `{"op": name, ...arguments}`; its answer is
one line with `ok`, `cpu` and `wall` (seconds inside the measured call alone), `peak_mb` (highest
resident size so far) and `value` or `error`. The first line out is `ready`.
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
"""An operation: takes the command's arguments, does what is not measured, and calls `timed`."""

_STATUS = Path("/proc/self/status")


def _status_mb(field: str) -> float | None:
    """One size of this process in MB from the kernel's own page, where there is one."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), None)


def peak_mb() -> float:
    """The highest resident size of this process since `forget_peak`."""
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return _status_mb("VmHWM:") or highest


def forget_peak() -> None:
    """Start the peak anew, so that what importing took for a moment is not counted."""
    # elsewhere than on Linux the peak includes the imports, on both sides alike
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


class Clock:
    """Measures one call of one command."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.wall = 0.0

    def timed(self, call: Callable[[], Any]) -> Any:
        """Run `call` and add its CPU time, all threads of the process together."""
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            return call()
        finally:
            self.cpu += time.process_time() - cpu
            self.wall += time.perf_counter() - wall


def _answer(ops: Mapping[str, Op], line: str) -> dict[str, Any]:
    """Carry out one command; a failure of the measured tool is an answer, not the end."""
    clock = Clock()
    command = json.loads(line)
    try:
        value = ops[command.pop("op")](clock, **command)
        reply: dict[str, Any] = {"ok": True, "value": value}
    except Exception as error:  # whatever a tool throws on a page is a result of the benchmark
        reply = {"ok": False, "error": f"{type(error).__name__}: {error}"[:300]}
    return reply | {"cpu": clock.cpu, "wall": clock.wall, "peak_mb": peak_mb()}


def serve(ops: Mapping[str, Op], about: Mapping[str, Any]) -> None:
    """Answer commands until the input ends. Call it when everything is imported and warm."""
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a tool prints by itself must not land among the answers
    gc.collect()
    gc.freeze()  # the imported modules: a tool pays for collecting its own objects only
    forget_peak()
    print(json.dumps({"ready": dict(about), "warm_mb": peak_mb()}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(ops, line)), file=out, flush=True)
