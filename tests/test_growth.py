"""Every reader takes linear time for whatever piece of its format a document repeats; :mod:`tests.growth` writes them."""

from __future__ import annotations

import pytest
from tests import growth

from prunus.core.errors import PrunusError
from prunus.core.registry import engine_names

pytestmark = pytest.mark.slow

ONCE_SLOW = [
    ("rtf", "\\cell ", 64_000),
    ("rtf", "\\~", 1_024_000),
    ("latex", "\\label{", 64_000),
    ("latex", " ", 64_000),  # after \\cline
    ("latex", "\\begin{", 64_000),
    ("latex bibliography", " ", 64_000),
    ("eml", ";;;", 1_024_000),
    ("eml", "; a%d=b", 256_000),
    ("notebook", "#", 64_000),
    ("notebook", "a", 64_000),
    ("markdown", "- [ ] a\n", 64_000),
    ("docx crossed", "x", 256_000),
    ("pptx crossed", "x", 256_000),
]
"""Formats and pieces whose time once grew with the square of the document, and letters enough to see it."""


@pytest.mark.parametrize(("name", "piece", "most"), ONCE_SLOW)
def test_a_piece_that_was_once_slow_takes_linear_time(name: str, piece: str, most: int) -> None:
    assert growth.slow(name, (piece,), most) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", growth.FORMATS)
def test_every_piece_of_a_format_takes_linear_time(name: str) -> None:
    assert growth.slow(name) == []


def test_every_format_engine_has_pieces() -> None:
    assert {*engine_names("format")} <= {name.partition(" ")[0] for name in growth.FORMATS}


@pytest.mark.parametrize("name", growth.FORMATS)
def test_each_document_of_a_format_can_be_read(name: str) -> None:
    read = growth.reader(name)
    for document in growth.FORMATS[name].documents:
        refused = []
        pieces = [piece.replace("…", "x") for piece in growth.FORMATS[name].pieces]
        for text in (*pieces, *(growth.repeated(piece, 2_000) for piece in pieces)):
            try:
                read(document(text))
                break
            except PrunusError as error:
                refused.append(str(error))
        else:
            pytest.fail(f"no piece makes a document that can be read: {refused[:3]}")


def test_quadratic_time_is_found_and_linear_time_and_a_limit_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "_seconds", lambda read, document: read(document))
    assert growth.growth(lambda text: (len(text) / 16_000) ** 2, "a".__mul__)
    assert not growth.growth(lambda text: len(text) / 16_000, "a".__mul__)
    assert not growth.growth(lambda text: 0.5 if len(text) > 20_000 else 0.001, "a".__mul__, 64_000)
