"""Means over questions with 95 % intervals from a paired bootstrap over pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from prunus_evals.errors import MetricError

SAMPLES = 2000
SEED = 20261121


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval."""

    mean: float
    low: float
    high: float


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
    drawn = np.random.default_rng(seed).integers(0, pages, size=(samples, pages))
    places = (drawn + np.arange(samples)[:, None] * pages).ravel()
    return np.bincount(places, minlength=samples * pages).reshape(samples, pages).astype(np.float64)


def _interval(mean: float, resampled: NDArray[np.float64]) -> Estimate:
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Estimate(mean, float(low), float(high))


def mean(values: Mapping[str, Sequence[float]], samples: int = SAMPLES, seed: int = SEED) -> Estimate:
    """Return the mean over questions with its interval; the bootstrap draws pages with all their questions.

    :param values: the values of a page's questions, by page.
    :raises MetricError: there are no pages, or a page has no values.
    """
    sums, counts = _totals(values)
    draws = _draws(len(sums), samples, seed)
    drawn = draws @ np.column_stack([sums, counts])
    resampled = drawn[:, 0] / drawn[:, 1]
    return _interval(float(sums.sum() / counts.sum()), resampled)


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
    drawn = _draws(len(sums), samples, seed) @ sums
    return _interval(combine(sums.sum(axis=0).tolist()), np.array([combine(row) for row in drawn.tolist()]))


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
    return mean(paired, samples, seed)
