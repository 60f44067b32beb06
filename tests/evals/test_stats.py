"""The bootstrap, compared with known results."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from prunus_evals import stats
from prunus_evals.errors import MetricError


def test_constant_has_no_width() -> None:
    estimate = stats.mean({str(page): [0.7] for page in range(20)})
    assert estimate.numbers() == [0.7, 0.7, 0.7]


@pytest.mark.parametrize(
    ("right", "pages", "interval"),  # the intervals as in Newcombe 1998, Table II, and in Brown, Cai and DasGupta 2001
    [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)), (29, 29, (0.8830, 1.0))],
)
def test_the_interval_of_a_share_is_wilsons(right: int, pages: int, interval: tuple[float, float]) -> None:
    estimate = stats.mean({str(page): [float(page < right)] for page in range(pages)})
    assert (estimate.low, estimate.high) == pytest.approx(interval, abs=0.0005)


def test_the_interval_of_a_share_is_as_wide_as_its_pages_are_alike() -> None:
    alike = stats.mean({str(page): [float(page % 2)] * 5 for page in range(40)})
    apart = stats.mean({str(page): [float((page + place) % 2) for place in range(5)] for page in range(40)})
    once = stats.mean({str(page): [float(page % 2)] for page in range(40)})
    assert alike.numbers(2) == once.numbers(2)
    assert (apart.high or 0) - (apart.low or 0) < 0.5 * ((alike.high or 0) - (alike.low or 0))


def test_the_bootstrap_draws_the_same_samples_for_all_that_is_no_share() -> None:
    values = {str(page): [page % 7 / 7] for page in range(30)}
    assert stats.mean(values) == stats.mean(values)
    assert stats.mean(values) != stats.mean(values, seed=1)


def test_of_many_comparisons_of_a_table_few_are_marked_by_chance() -> None:
    def difference(mean: float, chance: float) -> tuple[float, float, float]:
        error = abs(mean) / {0.04: 2.0537, 0.01: 2.5758, 0.012: 2.5121, 0.001: 3.2905}[chance]
        return mean, mean - 1.959964 * error, mean + 1.959964 * error

    assert stats.marks([difference(0.1, 0.04)]) == [1]
    assert stats.marks([difference(0.1, 0.04), None, difference(-0.1, 0.04)]) == [0, 0, 0]
    several = [difference(0.1, 0.04), difference(-0.2, 0.01), difference(0.3, 0.012), difference(-0.1, 0.001)]
    assert stats.marks(several) == [1, -1, 1, -1]  # Holm: .001 <= .05/4, .01 <= .05/3, .012 <= .05/2, .04 <= .05
    assert stats.marks([(0.0, 0.0, 0.0), (0.5, 0.5, 0.5)]) == [0, 1]


def test_mean_is_over_questions() -> None:
    assert stats.mean({"a": [1, 1, 1], "b": [0]}).mean == 0.75


def test_seeded_and_independent_of_order() -> None:
    values = {str(page): [float(page % 3 == 0)] for page in range(50)}
    backwards = dict(reversed(values.items()))
    assert stats.mean(values) == stats.mean(backwards)


def test_interval_is_the_normal_one() -> None:
    numbers = np.random.default_rng(1).normal(size=400)
    estimate = stats.mean({str(index): [value] for index, value in enumerate(numbers)})
    error = 1.96 * numbers.std() / 20
    assert estimate.low == pytest.approx(numbers.mean() - error, abs=0.02)
    assert estimate.high == pytest.approx(numbers.mean() + error, abs=0.02)


def test_pairing_narrows() -> None:
    rng = np.random.default_rng(2)
    base = {str(index): [float(value)] for index, value in enumerate(rng.normal(size=100))}
    better = {page: [values[0] + 0.1] for page, values in base.items()}
    estimate = stats.difference(better, base)
    assert estimate.mean == pytest.approx(0.1)
    assert estimate.high - estimate.low < 1e-9


def test_no_interval_is_given_for_fewer_than_ten_pages() -> None:
    nine = {str(page): [float(page)] for page in range(9)}
    assert stats.mean(nine) == stats.Estimate(4.0, None, None)
    assert stats.difference(nine, nine).low is None
    assert stats.combined({page: [part] for page, part in nine.items()}, sum).low is None
    ten = stats.mean({**nine, "9": [9.0]})
    assert ten.low is not None and ten.low < ten.mean < (ten.high or 0)
    assert stats.mean(nine).numbers() == [4.0, None, None]
    assert stats.shown([4.0, None, None], signed=True) == "+4.000"
    assert stats.shown([0.5, 0.25, 0.75], digits=1) == "0.5 [0.2 0.8]"


def test_a_mark_stands_only_where_an_interval_excludes_zero() -> None:
    assert [stats.apart(*ends) for ends in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1), (0.0, 0.1), (None, None))] == [
        1, -1, 0, 0, 0,
    ]  # fmt: skip


@pytest.mark.parametrize("values", [{}, {"a": []}])
def test_nothing_raises(values: dict[str, list[float]]) -> None:
    with pytest.raises(MetricError):
        stats.mean(values)


def test_unpaired_raises() -> None:
    with pytest.raises(MetricError):
        stats.difference({"a": [1.0]}, {"b": [1.0]})
    with pytest.raises(MetricError):
        stats.difference({"a": [1.0]}, {"a": [1.0, 0.0]})


def test_an_interval_over_many_pages_takes_the_memory_of_its_draws_alone() -> None:
    tracemalloc.start()
    stats.mean({str(page): [float(page % 3)] for page in range(3000)})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * stats.SAMPLES * 3000 * 8
