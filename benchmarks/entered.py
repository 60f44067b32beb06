"""Files and functions of Prunus that a call enters, and the seconds of its first and second run, in fresh processes.

    python -m benchmarks.entered [clean prune ask index]
    PYTHONPATH=/another/clone/src python -m benchmarks.entered prune     # the same of another version

A function counts once, however often it is called. Files that the call imports count, those of `import prunus` do not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

SITE = Path(__file__).parents[1] / "examples" / "site"
QUESTION = "What does one Pell 2 cost?"
NAMES = ("clean", "prune", "ask", "index")


def call_of(name: str, folder: str) -> Callable[[], Any]:
    """Return the measured call; an index is a new one each time."""
    import prunus

    html = (SITE / "faq.html").read_text("utf-8")
    return {
        "clean": lambda: prunus.clean(html),
        "prune": lambda: prunus.prune(html, QUESTION, 512),
        "ask": lambda: prunus.ask(QUESTION, SITE),
        "index": lambda: prunus.Index.open(f"{tempfile.mkdtemp(dir=folder)}/index").add(SITE),
    }[name]


def entered(call: Callable[[], Any]) -> dict[str, int]:
    """Return how many files and functions of Prunus a call enters, in all threads."""
    import prunus

    home, files, functions = os.path.dirname(prunus.__file__) + os.sep, set[str](), set[tuple[str, int, str]]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(home):
            files.add(code.co_filename)
            if code.co_flags & CO_OPTIMIZED:  # a function, and no body of a module or class
                functions.add((code.co_filename, code.co_firstlineno, code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    call()
    sys.setprofile(None)
    return {"files": len(files), "functions": len(functions)}


def seconds(call: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    start = time.perf_counter()
    call()
    return round(time.perf_counter() - start, 3)


if __name__ == "__main__":
    if sys.argv[1:2] in (["--count"], ["--time"]):
        with tempfile.TemporaryDirectory() as home:
            os.environ["PRUNUS_HOME"] = home
            run = call_of(sys.argv[2], home)
            found = entered(run) if sys.argv[1] == "--count" else {"first": seconds(run), "second": seconds(run)}
        print(json.dumps(found))
    else:
        for name in sys.argv[1:] or NAMES:
            command = [sys.executable, "-m", "benchmarks.entered"]
            parts = [subprocess.check_output([*command, way, name]) for way in ("--count", "--time")]
            print(name, *(f"{value} {unit}" for part in parts for unit, value in json.loads(part).items()), sep="  ")
