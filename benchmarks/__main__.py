"""Run all benchmarks, one after the other: `python -m benchmarks [NAME ...] [--quick] [--make-env]`.

Exit codes: 0 done, 1 a target was missed (with --check), 2 the data or the reference environment is missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks import answer, clean, formats, pipeline
from benchmarks.reference.make_env import DEFAULT_ENV
from benchmarks.report import folder

Main = Callable[[list[str] | None], int]

BENCHMARKS: dict[str, tuple[Main, bool]] = {
    "clean": (clean.main, True),
    "pipeline": (pipeline.main, True),
    "answer": (answer.main, False),
    "formats": (formats.main, False),
}
"""Name → the benchmark's main function, and whether it needs the reference environment and the real pages."""


def arguments(options: argparse.Namespace, reference: bool) -> list[str]:
    """Return the arguments for one benchmark."""
    passed = [f"--{name}" for name in ("quick", "check") if getattr(options, name)]
    if reference:
        passed += ["--env", str(options.env), *(["--make-env"] if options.make_env else [])]
    return passed


def main(argv: list[str] | None = None) -> int:
    """Run the named benchmarks, or all; return the highest exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="small samples, one round")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--env", type=folder, default=DEFAULT_ENV, help="reference environment")
    parser.add_argument("--make-env", action="store_true", help="make the environment if it is missing")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; the benchmarks are: {', '.join(BENCHMARKS)}")
    codes = []
    for name in options.names or BENCHMARKS:
        run, reference = BENCHMARKS[name]
        codes.append(run(arguments(options, reference)))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
