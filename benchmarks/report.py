"""The output of every benchmark: a table for people, then one JSON line for machines; and its common options."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.reference.make_env import DEFAULT_ENV, MissingEnvironmentError, make
from benchmarks.workers import BenchError

Row = Sequence[object]


def _cell(value: object) -> str:
    """Return a value as text: a float with three significant digits, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def table(title: str, head: Row, rows: Sequence[Row]) -> None:
    """Print a table with the first column aligned left and the others right."""
    cells = [[_cell(value) for value in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    print(f"\n{title}\n")
    for number, row in enumerate(cells):
        first, *rest = (
            value.rjust(width) if i else value.ljust(width)
            for i, (value, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([first, *rest]).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def machine() -> str:
    """Return the processor's name, or its architecture where the name is unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def json_line(benchmark: str, result: Mapping[str, Any]) -> None:
    """Print the result of a benchmark as one line of JSON, with time, Python and machine."""
    about = {
        "benchmark": benchmark,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {machine()}",
    }
    print("\n" + json.dumps(about | rounded(dict(result)), ensure_ascii=False), flush=True)


def rounded(value: Any) -> Any:
    """Return the same data with every float rounded to four significant digits."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value


def say(text: str) -> None:
    """Print a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def verdict(text: str, met: bool) -> bool:
    """Print a target and whether it was met; return that."""
    print(f"{'met   ' if met else 'MISSED'}  {text}")
    return met


def folder(name: str) -> Path:
    """Return the absolute path of a folder: the measured processes have another working folder."""
    return Path(name).resolve()


def parser(module: str, description: str | None, reference: bool = False) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks share."""
    first = (description or "").splitlines()[0]
    options = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=first)
    options.add_argument("--quick", action="store_true", help="a small sample, one round")
    options.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    if reference:
        options.add_argument("--env", type=folder, default=DEFAULT_ENV, help="reference environment")
        options.add_argument("--make-env", action="store_true", help="make the environment if it is missing")
    return options


def finish(run: Callable[[argparse.Namespace], bool], options: argparse.Namespace) -> int:
    """Run a benchmark and return its exit code; missing data or environments are one line and exit code 2."""
    try:
        if getattr(options, "make_env", False):
            make(options.env)
        met = run(options)
    except (BenchError, MissingEnvironmentError) as error:
        say(f"error: {error}")
        return 2
    return 1 if options.check and not met else 0
