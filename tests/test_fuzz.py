"""A short run of the fuzzer with the same documents every time; ``make fuzz`` runs as long as you like."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import fuzz, fuzz_documents, fuzz_run


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_mutated_documents_neither_crash_nor_hang_nor_break_a_promise(seed: int) -> None:
    try:
        summary = fuzz.run(seconds=0, count=400, seed=seed)
    except fuzz.Failure as failure:
        document = fuzz.smaller(failure, seconds=20)
        pytest.fail(f"{failure}: {document[:500]!r}")
    assert summary.documents == 400
    assert summary.answered > 300
    assert set(summary.refused) <= {"BadPage"}


def test_the_same_seed_gives_the_same_documents() -> None:
    first, second = fuzz.documents(5), fuzz.documents(5)
    assert [next(first) for _ in range(20)] == [next(second) for _ in range(20)]


def test_a_crash_is_found_and_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(document: bytes) -> str:
        if b"<td" in document:
            raise ZeroDivisionError("division")
        return "answered"

    monkeypatch.setattr(fuzz, "check", broken)
    with pytest.raises(fuzz.Failure, match="ZeroDivisionError") as caught:
        fuzz.run(seconds=0, count=200, seed=1)
    assert fuzz.smaller(caught.value) == b"<td"


def test_a_hang_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "check", lambda document: time.sleep(5) or "answered")
    start = time.perf_counter()
    with pytest.raises(fuzz.Failure, match="longer than"):
        fuzz.run(seconds=0, count=1, seed=1, limit=0.2)
    assert time.perf_counter() - start < 3


@pytest.mark.slow
def test_mutated_documents_of_every_format_are_answered_or_refused() -> None:
    failed = []
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        for number in range(1_500):
            result, reason = fuzz_run.tried(*fuzz_documents.document(11, number))
            failed += [f"11:{number}: {reason}"] if result == "failed" else []
    finally:
        signal.signal(signal.SIGALRM, before)
    assert failed == []


def test_every_seed_of_every_format_is_read() -> None:
    assert set(fuzz_documents.seeds()) | {"html"} == set(fuzz_documents.WEIGHTS)
    for suffix, content in fuzz_documents.seeds().items():
        assert fuzz_documents.check(suffix, content) == "answered", suffix


def test_a_document_of_a_run_can_be_made_again() -> None:
    assert [fuzz_documents.document(5, number) for number in range(50)] == [
        fuzz_documents.document(5, number) for number in range(50)
    ]


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    script = [sys.executable, str(Path(fuzz_run.__file__)), "--seed", "4", "--workers", "2", "--folder", str(tmp_path)]
    first = subprocess.run([*script, "--count", "10"], capture_output=True, text=True, check=True)
    second = subprocess.run([*script, "--count", "30"], capture_output=True, text=True, check=True)
    assert "\n10 documents" in first.stdout
    assert "\n30 documents" in second.stdout
