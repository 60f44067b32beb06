"""Lines that most pages of a site repeat are learned, and chunks that hold nothing else go."""

from __future__ import annotations

from prunus.index import repetition
from prunus.index.chunk import Chunk
from prunus.index.repetition import repeated_lines, without_repetition

MENU = "Home\nGuide\n  News \n"


def chunk(text: str) -> Chunk:
    return Chunk(0, len(text), text, 1)


def test_lines_of_at_least_half_of_the_pages_are_learned() -> None:
    texts = [f"{MENU}Page {n}\n{'Even' if n % 2 else 'Odd'}\n{'Rare' if n < 3 else ''}" for n in range(10)]
    assert set(repeated_lines(texts)) == {"Home", "Guide", "News", "Even", "Odd"}
    assert repeated_lines(texts[:9]) == []  # too few pages to tell
    assert len(repeated_lines(["\n".join(f"{n}" for n in range(5_000))] * 10)) == repetition._MOST


def test_a_chunk_goes_only_if_no_line_is_its_own() -> None:
    chunks = [chunk(MENU), chunk("News\nThe bridge opened."), chunk("  ")]
    assert without_repetition(chunks, frozenset({"Home", "Guide", "News"})) == chunks[1:2]
    assert without_repetition(chunks[:1], frozenset({"Home", "Guide", "News"})) == chunks[:1]  # a page of nothing else
    assert without_repetition(chunks, frozenset()) == chunks
