"""The command line: wall time of `prunus clean` on a small file, from start to exit.

python -m benchmarks.cli [--runs N] [--quick]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import finish, json_line, parser, table, verdict
from benchmarks.workers import BenchError

TARGET = 0.5
PAGE = """<!doctype html><html lang="en"><head><title>Plums</title><style>p { color: red }</style>
</head><body><nav><a href="/">Home</a></nav><main><h1>Plums</h1>
<p>A plum is the fruit of some species in <i>Prunus</i> subg. <i>Prunus</i>.</p>
<table><tr><th>Year<th>Tonnes<tr><td>2020<td>12</table></main><script>1</script></body></html>"""


def program() -> str:
    """Return the `prunus` command of this interpreter's environment, else the one on the path."""
    beside = Path(sys.executable).with_name("prunus.exe" if os.name == "nt" else "prunus")
    found = str(beside) if beside.exists() else shutil.which("prunus")
    if found is None:
        raise BenchError("no prunus command: install the package first (pip install -e .)")
    return found


def seconds(command: list[str]) -> float:
    """Return the wall time of one run of a command, which must succeed."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    spent = time.perf_counter() - start
    if done.returncode:
        words = done.stderr.strip().splitlines() or ["no message"]
        raise BenchError(f"{' '.join(command[:2])} ended with {done.returncode}: {words[-1]}")
    return spent


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether the target was met."""
    runs = options.runs or (3 if options.quick else 10)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "small.html")
        page.write_text(PAGE, encoding="utf-8")
        commands = {
            "prunus clean small.html": [program(), "clean", str(page)],
            "prunus --help": [program(), "--help"],
            "python -c pass": [sys.executable, "-c", "pass"],
        }
        for command in commands.values():
            seconds(command)  # the first run fills the file cache and writes byte code
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, command in commands.items():
                times[name].append(seconds(command))
    found = {name: {"median_s": statistics.median(t), "min_s": min(t), "max_s": max(t)} for name, t in times.items()}
    rows = [[name, *(1000 * value for value in s.values())] for name, s in found.items()]
    table(f"From the shell, wall time, hot, {runs} runs", ["ms", "median", "min", "max"], rows)
    mine = found["prunus clean small.html"]["median_s"]
    print()
    met = verdict(f"median {mine:.3f} s; target under {TARGET:g} s", mine < TARGET)
    json_line("cli", {"runs": runs, "commands": found, "target": TARGET, "met": met})
    return met


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("cli", __doc__)
    options.add_argument("--runs", type=int, help="runs of each command (10; quick 3)")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
