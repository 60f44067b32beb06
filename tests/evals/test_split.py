"""The split into halves never changes."""

from __future__ import annotations

import hashlib

import pytest

from prunus_evals.split import half


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("204-page/180", "dev"),
        ("202-page/294", "dev"),
        ("auto/08/0800001", "dev"),
        ("leval-nq-4", "dev"),
        ("Øresund", "dev"),
        ("", "dev"),
        ("a", "dev"),
        ("b", "report"),
    ],
)
def test_fixed_values(key: str, expected: str) -> None:
    assert half(key) == expected


def test_rule() -> None:
    for number in range(200):
        first = hashlib.sha256(str(number).encode()).hexdigest()[0]
        assert half(str(number)) == ("dev" if first in "02468ace" else "report")
