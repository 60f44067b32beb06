"""The scores of chunks around one: more of them count in a long document, and where the budget has room."""

from __future__ import annotations

import numpy as np
import pytest

from prunus.index.retrieve import _neighbours

DOCUMENTS = np.asarray([0] * 20 + [1] * 70 + [-1] * 3 + [2])


@pytest.mark.parametrize("reach", [1, 2, 12])
def test_neighbours_equal_a_plain_loop(reach: int) -> None:
    values = np.random.default_rng(4).normal(size=len(DOCUMENTS))
    found = _neighbours(values, DOCUMENTS, reach, 0.9)
    for place, document in enumerate(DOCUMENTS):
        size = int((document == DOCUMENTS).sum())
        allowed = min(reach, max(1, size // 16)) if document >= 0 else 0
        near = [
            0.9 ** (abs(other - place) - 1) * values[other]
            for other in range(len(values))
            if 0 < abs(other - place) <= allowed and DOCUMENTS[other] == document
        ]
        assert found[place] == pytest.approx(sum(near))


def test_one_neighbour_on_each_side_counts_in_full() -> None:
    assert _neighbours(np.asarray([1.0, 2.0, 4.0]), np.asarray([0, 0, 1])).tolist() == [2.0, 1.0, 0.0]
    assert _neighbours(np.zeros(0), np.zeros(0, int), 5).tolist() == []
