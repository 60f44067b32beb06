"""Arguments of the wrong kind are one line that says what to give instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prunus
from prunus.web.search.local import Engine as Local

QUESTION = "When did the bridge open?"
PAGE = "<h1>Bridge</h1><p>The bridge opened in 1932.</p><p>Trams run daily.</p>"


class Scorer:
    """Scores by length."""

    def score(self, query: str, blocks: Any) -> Any:
        return np.asarray([len(text) for text in blocks.texts], float)


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "a file as text": (lambda: prunus.clean("page.html"), r"Path\('page.html'\)"),
    "a folder as text": (lambda: prunus.read(["<p>x", "pages"]), r"Path\('pages'\)"),
    "a page for the question": (lambda: prunus.ask(Path("page.html"), QUESTION), r"ask\(question, pages\)"),  # type: ignore[arg-type]
    "documents for the question": (lambda: prunus.ask(prunus.read(PAGE), QUESTION), "not Documents"),  # type: ignore[arg-type]
    "the question for the pages": (lambda: prunus.prune(QUESTION, Path("page.html")), r"prune\(pages, question\)"),  # type: ignore[arg-type]
    "an address for the question": (
        lambda: prunus.prune(QUESTION, "https://example.org/"),
        r"prune\(pages, question\)",
    ),
    "HTML for the question": (lambda: prunus.extract(PAGE, QUESTION), r"extract\(question, pages\)"),
    "a path for the question": (lambda: prunus.ask("page.html", PAGE), r"ask\(question, pages\)"),
    "no question": (lambda: prunus.prune(PAGE, None), "not NoneType"),  # type: ignore[arg-type]
    "a budget as text": (lambda: prunus.prune(PAGE, QUESTION, "5"), "whole number of tokens, not '5'"),  # type: ignore[arg-type]
    "a budget of an answer": (lambda: prunus.ask(QUESTION, PAGE, budget="5"), "whole number"),  # type: ignore[arg-type]
    "options as a dict": (lambda: prunus.prune(PAGE, QUESTION, options={}), "prunus.Options"),  # type: ignore[arg-type]
    "settings as a dict": (lambda: prunus.prune(PAGE, QUESTION, settings={}), "load_settings"),  # type: ignore[arg-type]
    "a number as text": (lambda: prunus.Options(max_words="5"), "max_words: '5' is not of type int"),  # type: ignore[arg-type]
    "limits": (lambda: prunus.Options(limits=5), "limits: 5 is not of type Limits"),  # type: ignore[arg-type]
    "an engine's class": (lambda: prunus.prune(PAGE, QUESTION, options=prunus.Options(scorer=Scorer)), "is a class"),
    "no engine": (lambda: prunus.prune(PAGE, QUESTION, options=prunus.Options(scorer=5)), "no method score"),
    "a number for an index": (lambda: prunus.ask(QUESTION, index=5), "an index is"),  # type: ignore[arg-type]
    "a page of no kind": (lambda: prunus.read(5), "not int"),  # type: ignore[arg-type]
    "an abbreviated format": (lambda: prunus.clean(PAGE, "md"), "did you mean 'markdown'"),  # type: ignore[arg-type]
    "a search for nothing": (lambda: prunus.search(None, "local:pages"), "not NoneType"),  # type: ignore[arg-type]
    "a bare model": (lambda: prunus.ask(QUESTION, PAGE, options=prunus.Options(llm="gpt-4o")), "'openai:gpt-4o'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_of_the_wrong_kind_is_one_line(folder: Path, name: str) -> None:
    (folder / "page.html").write_text(PAGE, "utf-8")
    (folder / "pages").mkdir()
    call, says = WRONG[name]
    with pytest.raises(prunus.BadInput, match=says) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_a_question_may_be_a_word_that_is_also_a_folder(folder: Path) -> None:
    (folder / "bridge").mkdir()
    assert "1932" in prunus.prune(PAGE, "bridge", budget=40).output


def test_engines_can_be_objects(folder: Path) -> None:
    assert "bridge" in prunus.prune(PAGE, QUESTION, 12, options=prunus.Options(scorer=Scorer())).output
    (folder / "page.html").write_text(PAGE, "utf-8")
    answer = prunus.ask(QUESTION, options=prunus.Options(search=Local(str(folder))))
    assert "1932" in answer.text
