"""The comparison of our readers with other libraries: what counts as agreed, missed and invented."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from tests.oracles_run import OURS, Answer, Reader, agreed_words, compare, files_below, words_of


def answers(**texts: str | None) -> dict[str, Answer]:
    """What each library made of a file; None for an error."""
    return {name: Answer(text or "", "" if text is not None else "broken", 0.0) for name, text in texts.items()}


def test_words_are_compared_without_case_grouping_and_the_markers_of_lists_and_notes() -> None:
    assert words_of("Pier\n1. Lock[2]\n - a b\n- IV. \n5.\n") == Counter(["pier", "lock", "a", "b"])
    assert words_of("1,234.5 and 1’234") == Counter(["1234", "5", "and", "1234"])
    assert words_of("港は") == Counter(["港", "は"])


def test_what_half_of_the_libraries_have_is_agreed_and_of_two_what_both_have() -> None:
    one, two, three = Counter(a=3, b=1), Counter(a=2, c=1), Counter(a=1, b=1)
    assert agreed_words([one]) == one
    assert agreed_words([one, two]) == Counter(a=2)
    assert agreed_words([one, two, three]) == Counter(a=2, b=1)


def test_a_disagreement_names_the_words_that_are_missing_and_those_that_nobody_else_has() -> None:
    found = compare("a.odt", answers(prunus="the pier fell", anydoc="the old pier", pandoc="the old pier"), OURS)
    assert found is not None
    assert (found.missed, found.extra, found.size) == (Counter(["old"]), Counter(["fell"]), 2)
    assert (found.recall, found.precision) == (pytest.approx(2 / 3), pytest.approx(2 / 3))


def test_a_refusal_misses_every_word_that_the_others_agree_on() -> None:
    found = compare("a.odt", answers(prunus=None, anydoc="the old pier", pandoc=None), OURS)
    assert found is not None
    assert (found.error, found.recall, found.size) == ("broken", 0.0, 3)


def test_a_file_that_no_other_library_reads_is_not_compared() -> None:
    assert compare("a.odt", answers(prunus="words", anydoc=None), OURS) is None


def test_the_files_of_a_folder_are_found_by_suffix(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("b.ODT", "in/a.odt", "c.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "empty.odt").touch()
    assert [path.name for path in files_below(tmp_path, ["odt"])] == ["b.ODT", "a.odt"]


def test_a_file_that_ends_the_process_of_a_library_is_an_error_of_that_file_alone(tmp_path: Path) -> None:
    page, picture = tmp_path / "a.csv", tmp_path / "b.png"
    page.write_text("port,depth\ninner,2\n")
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    reader = Reader(OURS, 60.0)
    try:
        assert "inner" in reader.read(page).text
        refused = reader.read(picture)
        assert refused.text == "" and "PNG picture" in refused.error
        os.kill(reader.pid, signal.SIGKILL)
        assert reader.read(page).error == "the process died"
        assert "inner" in reader.read(page).text
    finally:
        reader.close()
