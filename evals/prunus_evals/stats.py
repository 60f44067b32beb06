"""Means over questions with 95 % intervals over pages; none where the pages are too few.

Shares (each value 0 or 1) have Wilson's interval, everything else that of a paired bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from prunus_evals.errors import MetricError

SAMPLES = 2000
SEED = 20261121
FEWEST = 10
"""Pages that an interval needs: a bootstrap over fewer draws few different samples, and its ends are nearly theirs."""

_NORMAL = 1.959964
"""Standard errors on either side of a mean that hold 95 % of a normal distribution."""

NONE_BELOW = f"no interval below {FEWEST} pages"
"""What a table says of numbers without one."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval; ``low`` and ``high`` are None below :data:`FEWEST` pages."""

    mean: float
    low: float | None = None
    high: float | None = None

    def numbers(self, digits: int | None = 4) -> list[float | None]:
        """Return mean, low and high, rounded (None: as they are), ready for JSON."""
        found = (self.mean, self.low, self.high)
        return [number if number is None or digits is None else round(number, digits) for number in found]


def shown(numbers: Sequence[float | None], digits: int = 3, signed: bool = False) -> str:
    """Return mean, low and high as text, as ``0.512 [0.480 0.544]``; without an interval the mean alone."""
    sign = "+" if signed else ""
    mean, *ends = (f"{number:{sign}.{digits}f}" for number in numbers if number is not None)
    return f"{mean} [{' '.join(ends)}]" if ends else mean


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as ``1 page`` and ``2 pages``."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def apart(low: float | None, high: float | None) -> int:
    """Return 1 for an interval above 0, -1 for one below it, and 0 for one that holds 0, or for none."""
    if low is None or high is None:
        return 0
    return (low > 0) - (high < 0)


def marks(differences: Sequence[tuple[float, float, float] | None]) -> list[int]:
    """Return 1 or -1 for each difference of a table that is above or below 0, and 0 for the others.

    A table makes many comparisons, and one of twenty would be marked by chance: of all together, one is marked wrongly
    in 5 % of tables at most (Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure"). The probability of
    each follows from the width of its interval, as if it were normal.

    :param differences: mean, low and high; None where there is none.
    """
    found = [0] * len(differences)
    chances: list[tuple[float, int, int]] = []
    for place, difference in enumerate(differences):
        if difference is not None:
            mean, low, high = difference
            error = (high - low) / (2 * _NORMAL)
            chance = math.erfc(abs(mean) / error / math.sqrt(2)) if error > 0 else float(mean == 0)
            chances.append((chance, place, 1 if mean > 0 else -1))
    for left, (chance, place, sign) in zip(range(len(chances), 0, -1), sorted(chances), strict=True):
        if chance > 0.05 / left:
            break
        found[place] = sign
    return found


def _totals(values: Mapping[str, Sequence[float]]) -> tuple[NDArray[np.float64], ...]:
    if not values or any(len(part) == 0 for part in values.values()):
        raise MetricError("there are no values to take a mean of")
    pages = sorted(values)
    sums = np.array([float(sum(values[page])) for page in pages])
    counts = np.array([float(len(values[page])) for page in pages])
    return sums, counts


@lru_cache(maxsize=8)  # a report asks for thousands of intervals over the same numbers of pages
def _draws(pages: int, samples: int, seed: int) -> NDArray[np.float64]:
    """Return how often each sample draws each page."""
    random, found = np.random.default_rng(seed), np.empty((samples, pages))
    for sample in found:  # one at a time: all at once take four times the memory
        sample[:] = np.bincount(random.integers(0, pages, size=pages), minlength=pages)
    return found


def interval(mean: float, pages: int, resampled: Callable[[], NDArray[np.float64]]) -> Estimate:
    """Return a number with the interval that holds 95 % of the resampled ones; without it below :data:`FEWEST` pages.

    :param resampled: returns the number for each sample.
    """
    if pages < FEWEST:
        return Estimate(mean)
    low, high = np.percentile(resampled(), [2.5, 97.5])
    return Estimate(mean, float(low), float(high))


def mean(values: Mapping[str, Sequence[float]], samples: int = SAMPLES, seed: int = SEED) -> Estimate:
    """Return the mean over questions with its interval; the bootstrap draws pages with all their questions.

    The interval of a share is Wilson's, so that it has a width at 0 and 1, too.

    :param values: the values of a page's questions, by page.
    :raises MetricError: there are no pages, or a page has no values.
    """
    sums, counts = _totals(values)
    if len(sums) >= FEWEST and all(value in (0, 1) for part in values.values() for value in part):
        return _share(sums, counts)
    return mean_difference(values, samples, seed)


def mean_difference(values: Mapping[str, Sequence[float]], samples: int = SAMPLES, seed: int = SEED) -> Estimate:
    """Return the mean of differences, question by question, with its interval by the bootstrap.

    :param values: the differences of a page's questions, by page.
    :raises MetricError: there are no pages, or a page has no values.
    """
    sums, counts = _totals(values)

    def resampled() -> NDArray[np.float64]:
        drawn = _draws(len(sums), samples, seed) @ np.column_stack([sums, counts])
        return np.asarray(drawn[:, 0] / drawn[:, 1])

    return interval(float(sums.sum() / counts.sum()), len(sums), resampled)


def _share(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> Estimate:
    """Return a share with Wilson's interval (1927), for the number of independent questions that vary as the pages do.

    Questions of one page are alike: their number is that of a simple sample with the variance that the share has over
    pages (Korn and Graubard 1998); where all answers are the same, it is the number of pages.
    """
    pages, questions = len(sums), float(counts.sum())
    share = float(sums.sum()) / questions
    rest = sums - share * counts
    variance = pages / (pages - 1) * float(rest @ rest) / questions**2
    size = min(questions, share * (1 - share) / variance) if variance > 0 else float(pages)
    square = _NORMAL**2 / size
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(share * (1 - share) * square + square**2 / 4) / (1 + square)
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half))


def combined(
    counts: Mapping[str, Sequence[Sequence[float]]],
    combine: Callable[[Sequence[float]], float],
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Return a number over all questions together with its interval; the bootstrap draws pages.

    :param counts: the counts of a page's questions, by page.
    :param combine: returns the number for sums of counts.
    :raises MetricError: there are no pages, or a page has no counts.
    """
    if not counts or any(len(part) == 0 for part in counts.values()):
        raise MetricError("there are no counts to add up")
    sums = np.array([np.sum(counts[page], axis=0) for page in sorted(counts)], np.float64)

    def resampled() -> NDArray[np.float64]:
        drawn = _draws(len(sums), samples, seed) @ sums
        return np.array([combine(row) for row in drawn.tolist()])

    return interval(combine(sums.sum(axis=0).tolist()), len(sums), resampled)


def combined_difference(
    first: Mapping[str, Sequence[Sequence[float]]],
    second: Mapping[str, Sequence[Sequence[float]]],
    combine: Callable[[Sequence[float]], float],
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Return the number of ``first`` minus that of ``second`` over the same questions, with its interval.

    :raises MetricError: the two sides have different questions, or none.
    """
    if {page: len(part) for page, part in first.items()} != {page: len(part) for page, part in second.items()}:
        raise MetricError("a paired difference needs the same questions on both sides")
    both = {
        page: [[*one, *other] for one, other in zip(part, second[page], strict=True)] for page, part in first.items()
    }

    def minus(sums: Sequence[float]) -> float:
        return combine(sums[: len(sums) // 2]) - combine(sums[len(sums) // 2 :])

    return combined(both, minus, samples, seed)


def difference(
    first: Mapping[str, Sequence[float]],
    second: Mapping[str, Sequence[float]],
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Return the mean of ``first`` minus ``second`` over the same questions, with its interval.

    :raises MetricError: the two sides have different questions.
    """
    if {page: len(part) for page, part in first.items()} != {page: len(part) for page, part in second.items()}:
        raise MetricError("a paired difference needs the same questions on both sides")
    paired = {page: [a - b for a, b in zip(part, second[page], strict=True)] for page, part in first.items()}
    return mean_difference(paired, samples, seed)
