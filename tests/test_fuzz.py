"""A short run of the fuzzer with the same documents every time; ``make fuzz`` runs as long as you like."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import fuzz, fuzz_documents, fuzz_run, html5lib_inputs

import prunus
from prunus.pages.xpath import xpath_of

ODD = [
    "<fieldset><legend><p>a</p></legend>1</fieldset>",  # end tags that close no paragraph and no item
    "<option><dd>a</dd></option>4",
    "<optgroup><li>a</li></optgroup>w",
    "<em><legend><dt>a",
    "<optgroup>a</optgroup><optgroup>b",  # outside a list of choices a group may hold groups
    "<em><optgroup><optgroup>a</optgroup></optgroup>5",
    "a<math><track></track>1</math>b",  # elements of HTML inside a formula
    "<math><source/>a</math>",
    "<math><textarea>\n4</textarea></math>",
    "<math><form>a<form>b</math>",
    "<math>7<tbody><mfrac>w</mfrac></tbody></math>",
    "<math>8<html>w",
    "<math><xmp>a</xmp></math>",
    "<a href=1>a<marquee>b<a href=2>c</marquee>d",  # links and buttons inside a wrapper that is not written
    "a<button><marquee><x-a><button>1",
    "a<s> <abbr><x-a>",  # inline elements that held only the space at the end of a line
    "a<code>\n<noscript><x-a>a",
    "a<b> <noscript>a</noscript><noscript>a</noscript></b><p>x",
    "<option><font>3<optgroup hidden>4",  # wrappers that only a heading keeps
    "<h6><marquee>2<option><select>w",
    "<h4><a><option>a<h4><a>7",
    "<h3>3<nobr><hr><h3><select>7",
    "<x-a><noscript lang=de>w",
    "a<img src=b><noscript><img src=c></noscript><noscript><img src=d></noscript>",
    "<pre><pren>\ni",
    "<progress><rt>\n</progress>3",
    "<ruby><table><li>6<rp>w",  # parts of a ruby where their start tag would end something
    "<ruby><p><table><rp>w",
    "<ruby><table><rt><rt>w",
    "<ruby><marquee><rt><rp>3",
    "<ruby><dd><x-a><rp>3",
    "<li><dir><li>w",  # items inside wrappers that are not written
    "a<select><object><option><hr>w",
    "<select><template><option>8<dt><optgroup>w",
    "<select multiple><p><marquee><option>k",
    "x<svg><template><title><b></template><p>A",  # after this the parser adds the rest to the document
    "x<svg><template><title><b></template>A<table>q<td>a",
]
"""Pages of misnested elements, each of which once read otherwise after cleaning, or crashed."""


@pytest.mark.parametrize("page", ODD)
def test_the_written_html_of_misnested_elements_reads_as_it_was_cleaned(page: str) -> None:
    assert fuzz.check(page.encode(), "text/html") == "answered"


@pytest.mark.parametrize("page", ["k<ul><li><noscript>k</noscript></ul>b", "k<div><noscript>k</noscript></div>b"])
def test_a_noscript_that_goes_joins_no_words(page: str) -> None:
    assert prunus.clean(page) == "k b"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("x<svg><template><title><b></template><p>A<li>B", ["x", "A", "B"]),
        ("x<svg><template><title><b></template>A<b>c</b> d", ["xAc", "d"]),
        ("<p>k<svg><template><foreignObject><p>1</template>2", ["k", "2"]),
    ],
)
def test_no_word_is_lost_after_a_template_that_closes_every_element(page: str, words: list[str]) -> None:
    tree = prunus.read(page).trees[0]
    assert tree.canonical.split() == words
    assert xpath_of(tree, len(tree) - 1).startswith("/html/body")


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


def test_a_document_of_a_run_can_be_made_again_on_another_day(monkeypatch: pytest.MonkeyPatch) -> None:
    first = [fuzz_documents.document(5, number) for number in range(200)]
    monkeypatch.setattr("time.localtime", lambda *_: time.gmtime(1_000_000_000))
    fuzz_documents.seeds.cache_clear()
    changed = [number for number in range(200) if fuzz_documents.document(5, number) != first[number]]
    assert changed == []


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    script = [sys.executable, str(Path(fuzz_run.__file__)), "--seed", "4", "--workers", "2", "--folder", str(tmp_path)]
    first = subprocess.run([*script, "--count", "10"], capture_output=True, text=True, check=True)
    second = subprocess.run([*script, "--count", "30"], capture_output=True, text=True, check=True)
    assert "\n10 documents" in first.stdout
    assert "\n30 documents" in second.stdout


def test_inputs_of_html5lib_are_read_with_their_contexts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dat = "#data\n<p>One\n\ntwo\n#errors\n#document\n| x\n\n#data\n<td>a\n#errors\n#document-fragment\ntr\n#document\n"
    assert list(html5lib_inputs.inputs(dat)) == [("<p>One\n\ntwo", ""), ("<td>a", "tr")]
    assert b"<table><tr><td>aword" in list(html5lib_inputs.documents(dat))
    (tmp_path / "a.dat").write_text(dat)
    assert html5lib_inputs.main(tmp_path) == 0
    assert capsys.readouterr().out == "6 inputs of 1 files: 6 answered\n"
    assert html5lib_inputs.main(tmp_path / "none") == 1
