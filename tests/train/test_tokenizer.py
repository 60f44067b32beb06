"""The small tokenizer: a step of a path is two tokens, and a page's tokens hold its blocks' paths."""

from __future__ import annotations

from typing import Any

import pytest

import prunus
from prunus_train import tokenizer as words
from prunus_train.data.form import form_of

pytest.importorskip("selectolax")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    text = "the old bridge opened in 1932 and trams cross it every day with 5 lamps"
    return words.train([text] * 3, 2500)


def test_a_step_is_the_tag_and_the_number_that_closes_it(tokenizer: Any) -> None:
    found = tokenizer.encode("<html><body><table2><tbody><tr12>").tokens
    assert found == ["<html>", "<body>", "<table", "2>", "<tbody>", "<tr", "12>"]


def test_a_tag_without_a_number_is_closed_by_itself(tokenizer: Any) -> None:
    assert tokenizer.encode("<p><h2><td>").tokens == ["<p", ">", "<h2", ">", "<td>"]


def test_a_heading_and_its_number_are_apart(tokenizer: Any) -> None:
    assert tokenizer.encode("<h21><h212>").tokens == ["<h2", "1>", "<h2", "12>"]


def test_of_end_tags_only_those_of_containers_are_kept(tokenizer: Any) -> None:
    assert tokenizer.encode("</tr3></p></table></div2></ul>").tokens == ["</div>", "</div>"]


def test_a_number_of_the_text_is_no_number_of_a_tag(tokenizer: Any) -> None:
    assert tokenizer.encode("<tr5>5").tokens == ["<tr", "5>", "5"]


def test_the_lines_of_the_prompt_are_one_token_each(tokenizer: Any) -> None:
    form = form_of(prunus.read("<p>The old bridge.</p><p>Trams cross it.</p>").blocks(3), "bare")
    found = tokenizer.encode(form.page_part + form.question_part("every day?")).tokens
    place = found.index(words.ASK)
    assert found[place + 1 :][:2] == ["every", "day"]
    assert found[-1] == words.TAIL


def test_the_tokens_of_a_page_hold_the_end_of_every_path(tokenizer: Any) -> None:
    """The tokens that a model must write are among those that it reads."""
    page = "<table><tr><td>bridge<td>1932<tr><td>trams<td>5</table><p>lamps every day</p><p>it opened in 1932</p>"
    form = form_of(prunus.read(page).blocks(2), "bare")
    whole = " ".join(tokenizer.encode(form.html).tokens)
    assert len(form.paths) >= 4
    for path in form.paths:
        assert " ".join(tokenizer.encode(path).tokens[-2:]) in whole
