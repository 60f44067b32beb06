"""The bootstrap, compared with known results."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from prunus_evals import stats
from prunus_evals.errors import MetricError


def test_constant_has_no_width() -> None:
    estimate = stats.mean({str(page): [1.0] for page in range(20)})
    assert estimate == stats.Estimate(1.0, 1.0, 1.0)


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
