"""Hostile pages: time and memory of cleaning at sizes n, 2n and 4n, each in a separate process.

    python -m benchmarks.hostile [--cases a,b] [--format F] [--prune] [--limit S] [--quick]

Linear means that a page of four times the size takes at most six times the CPU time; less than a tenth of a second is
too short to judge. A process that exceeds the time limit or 8 GB fails.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass

from benchmarks.hostile_cases import CASES
from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.workers import BenchError, prunus_worker

GROWTH = 6.0  # time at 4n over time at n: linear is 4, caches and noise add to it
SHORT = 0.1
FLAT_SECONDS = 2.0
ADDRESS_SPACE_GB = 8.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one case at one size.

    :param mb: size of the page.
    :param above_mb: peak of memory above that of the warm process.
    :param kept: whether the first and the last word of the page are in the output.
    """

    size: int
    cpu: float
    mb: float = 0.0
    above_mb: float = 0.0
    kept: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """The results of one case at all its sizes."""

    name: str
    runs: list[Measured]

    @property
    def error(self) -> str | None:
        """The first failure, if any."""
        return next((run.error for run in self.runs if run.error), None)

    @property
    def growth(self) -> float | None:
        """CPU time at the largest size over CPU time at the smallest; None after a failure."""
        first, last = self.runs[0], self.runs[-1]
        return None if self.error or len(self.runs) < 2 else last.cpu / max(first.cpu, 1e-4)

    @property
    def linear(self) -> bool:
        """Whether time grows at most in proportion to the input."""
        if self.growth is None:
            return not self.error
        return self.growth <= GROWTH or self.runs[-1].cpu < SHORT

    @property
    def good(self) -> bool:
        """Whether time is linear and every run kept the text."""
        return self.linear and all(run.kept for run in self.runs)


def measure(name: str, size: int, options: argparse.Namespace) -> Measured:
    """Measure one size in a fresh process."""
    with prunus_worker(options.limit) as worker:
        worker.start()
        reply = worker.ask(
            "hostile",
            name=name,
            size=size,
            format=options.format,
            prune=options.prune,
            memory_gb=ADDRESS_SPACE_GB,
        )
        if not reply.ok:
            return Measured(size, reply.cpu, error=reply.error)
        value, above = reply.value, max(0.0, reply.peak_mb - worker.warm_mb)
        kept = value["kept"] or options.prune
        return Measured(size, value["cpu"], value["mb"], above, kept)


def examine(name: str, options: argparse.Namespace) -> Finding:
    """Measure all sizes of one case, up to the first failure."""
    factors = (1, 4) if options.quick else (1, 2, 4)
    runs: list[Measured] = []
    for factor in factors:
        runs.append(measure(name, CASES[name].size * factor, options))
        if runs[-1].error:
            break
    say(f"{name}: {' '.join(f'{run.cpu:.2f} s' for run in runs)}")
    return Finding(name, runs)


def show(findings: list[Finding]) -> None:
    """Print the table."""
    head = "case|n|input MB|ms at n|at 2n|at 4n|growth|linear|peak MB at 4n|text kept"
    rows: list[list[object]] = []
    for found in findings:
        case = CASES[found.name]
        by_factor = {run.size // case.size: 1000 * run.cpu for run in found.runs if not run.error}
        last = found.runs[-1]
        judged: list[object] = (
            [found.error]
            if found.error
            else [
                found.linear,
                last.above_mb,
                all(run.kept for run in found.runs),
            ]
        )
        rows.append(
            [
                found.name,
                f"{case.size:,} {case.unit}",
                found.runs[0].mb or None,
                *(by_factor.get(factor) for factor in (1, 2, 4)),
                found.growth,
                *judged,
                *[None] * (3 - len(judged)),
            ]
        )
    table("Hostile pages, CPU time, each size in a separate process", head.split("|"), rows)


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether the targets were met."""
    names = [name for name in CASES if CASES[name].named or not options.quick]
    if options.cases:
        names = options.cases.split(",")
        unknown = [name for name in names if name not in CASES]
        if unknown:
            raise BenchError(f"unknown case {unknown[0]!r}; the cases are: {', '.join(CASES)}")
    findings = [examine(name, options) for name in names]
    show(findings)
    print()
    met = True
    flat = next((found.runs[0] for found in findings if found.name == "flat page"), None)
    if flat is not None and not options.prune:
        text = f"{flat.mb:.0f} MB flat page in {flat.cpu:.2f} s; target {FLAT_SECONDS:g} s"
        met = verdict(text, flat.error is None and flat.cpu <= FLAT_SECONDS)
    bad = [found.name for found in findings if not found.good]
    text = f"{len(findings) - len(bad)} of {len(findings)} cases linear and whole"
    met = verdict(text + (f"; not: {', '.join(bad)}" if bad else ""), not bad) and met
    cases = {
        found.name: {
            "unit": CASES[found.name].unit,
            "growth": found.growth,
            "good": found.good,
            "runs": [asdict(run) for run in found.runs],
        }
        for found in findings
    }
    stage = "prune" if options.prune else "clean"
    json_line("hostile", {"stage": stage, "format": options.format, "cases": cases, "met": met})
    return met


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("hostile", __doc__)
    options.add_argument("--cases", help="cases, separated by commas; all by default")
    options.add_argument("--format", default="html", help="output format (html)")
    options.add_argument("--prune", action="store_true", help="measure prune instead of clean")
    options.add_argument("--limit", type=float, default=60.0, help="seconds for one call at most (60)")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
