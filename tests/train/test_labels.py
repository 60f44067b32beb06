"""The paper's labels: which block of a pruned page is taught, on small pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prunus
from prunus_train.errors import DataBroken

pytest.importorskip("selectolax")

from prunus_evals import labels, tasks
from prunus_evals.labels import Recipe
from prunus_evals.records import Question, one_page
from prunus_train.data import pruner
from prunus_train.data.form import content, form_of

FINE = Recipe(first_stage="bm25", coarse=40, fine=8)
PAGE = (
    "<h1>Bridges</h1><p>The old bridge opened in 1932 after nine years of work.</p>"
    "<p>Trams cross it every day from early morning until midnight.</p>"
    "<p>The new bridge has 1932 lamps, which is a chance and no year at all.</p>"
)
TABLE = (
    "<p>Rank 7 of all lists was never given to anybody in those years.</p><table>"
    "<tr><th>Name<th>Rank</tr><tr><td>Ada Lovelace of London<td>7</tr><tr><td>Grace Hopper of New York<td>9</tr></table>"
)


def ask(question: str, *answers: str, html: str = PAGE, table: str | None = None) -> Question:
    return Question("q", "table_qa", "page", one_page(html), question, answers, gold_table=table)


def cut(html: str, words: int = 8) -> prunus.pages.clean.blocks.Blocks:
    return prunus.read(html).blocks(words)


def test_the_blocks_whose_text_holds_the_answer_are_gold() -> None:
    blocks = cut(PAGE, 20)
    gold = labels.gold_blocks(blocks, ask("When did it open?", "1932"))
    assert [blocks.texts[index][:7] for index in gold] == ["The old", "The new"]


def test_an_answer_inside_another_word_or_number_is_no_answer() -> None:
    assert labels.gold_blocks(cut(PAGE), ask("How many?", "193")) == []
    assert labels.gold_blocks(cut(PAGE), ask("What?", "tram")) == []


def test_tag_names_and_attributes_are_no_answer() -> None:
    assert labels.gold_blocks(cut('<p title="gold">one</p><p>two</p>', 1), ask("What?", "p")) == []
    assert labels.gold_blocks(cut('<p title="gold">one</p><p>two</p>', 1), ask("What?", "gold")) == []


def test_of_several_answers_the_block_that_holds_most_is_gold() -> None:
    blocks = cut("<p>Red and green</p><p>Red alone</p><p>Nothing</p>", 3)
    assert labels.gold_blocks(blocks, ask("Which colours?", "red", "green")) == [0]


def test_only_blocks_of_the_gold_table_count_where_it_is_known() -> None:
    blocks = cut(TABLE)
    everywhere = labels.gold_blocks(blocks, ask("Which rank?", "7", html=TABLE))
    in_table = labels.gold_blocks(blocks, ask("Which rank?", "7", html=TABLE, table=TABLE))
    assert len(everywhere) == 2
    assert [blocks.texts[index] for index in in_table] == ["Ada Lovelace of London\t7"]


def test_the_gold_block_most_like_the_question_is_taught() -> None:
    blocks = cut(PAGE, 20)
    question = "how many lamps has the new bridge"
    gold = labels.gold_blocks(blocks, ask(question, "1932"))
    assert blocks.texts[labels.target_block(blocks, gold, question)].startswith("The new bridge")


def test_a_sample_is_the_prompt_of_inference_with_path_and_content() -> None:
    [sample] = list(pruner.of_page([ask("which day do trams cross", "midnight")], [512], FINE))
    assert isinstance(sample, pruner.Sample)
    path = sample.paths[sample.target]
    assert f"<{path.rpartition('<')[2]}" in sample.page_part
    assert sample.page_part.startswith('**HTML**: "<html>')
    assert sample.question_part.startswith("which day do trams cross*")
    assert "midnight" in sample.content


@given(st.lists(st.text("abc xyz", min_size=1, max_size=30).filter(str.strip), min_size=2, max_size=12), st.data())
def test_path_and_content_stand_together_in_the_page_that_the_model_reads(
    texts: list[str], data: st.DataObject
) -> None:
    blocks = cut("".join(f"<p>{text}</p>" for text in texts), 1)
    form = form_of(blocks)
    index = data.draw(st.sampled_from(range(len(blocks))))
    step = f"<{form.paths[index].rpartition('<')[2]}"
    assert f"{step}{content(blocks, index)}" in form.page_part


@given(st.text(max_size=40), st.sampled_from(["bare", "htmlrag", "htmlrag_released", "paths"]))
def test_the_page_part_does_not_depend_on_the_question(question: str, prompt: str) -> None:
    form = form_of(cut(PAGE), prompt)
    assert question in form.question_part(question)
    assert "Trams" in form.page_part and "Trams" not in form.question_part("")


def test_a_question_of_which_no_block_holds_the_answer_is_left_out() -> None:
    [row] = pruner.of_page([ask("When?", "1850")], [512], FINE)
    assert row == pruner.LeftOut("q@512", "no block holds the answer")


def test_a_page_that_a_smaller_budget_holds_whole_is_one_sample() -> None:
    rows = list(pruner.of_page([ask("When did the old bridge open?", "1932")], [512, 1024], FINE))
    assert isinstance(rows[0], pruner.Sample)
    assert rows[1] == pruner.LeftOut("q@1024", "the page is no longer than a smaller budget")


# --- the file ------------------------------------------------------------------------------------


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[list[Question]]:
    known = [
        [Question(f"q{number}", "table_qa", f"page{number}", one_page(PAGE), "When did the bridge open?", answers)]
        for number, answers in enumerate([("1932",), ("1850",), ("midnight",), ("lamps",)])
    ]
    monkeypatch.setattr(tasks, "load", lambda name, half: known)
    return known


def test_the_same_call_gives_the_same_bytes(pages: list[list[Question]], tmp_path: Path) -> None:
    for name in ("one", "two"):
        made = pruner.make(tmp_path / name, ["table_qa"], "dev", [512], FINE)
        assert made == pruner.Made(samples=3, left_out=1)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("at", [0, 1, 700, -1, -40])
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(
    at: int, pages: list[list[Question]], tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    pruner.make(whole, ["table_qa"], "dev", [512], FINE)
    torn = tmp_path / "torn"
    pruner.make(torn, ["table_qa"], "dev", [512], FINE)
    torn.write_bytes(whole.read_bytes()[:at])
    made = pruner.make(torn, ["table_qa"], "dev", [512], FINE)
    assert made.samples == 3
    assert torn.read_bytes() == whole.read_bytes()
    assert torn.with_name("torn.left_out").read_bytes() == whole.with_name("whole.left_out").read_bytes()


def test_samples_of_other_settings_are_not_mixed(pages: list[list[Question]], tmp_path: Path) -> None:
    pruner.make(tmp_path / "samples", ["table_qa"], "dev", [512], FINE)
    with pytest.raises(DataBroken, match="other settings"):
        pruner.make(tmp_path / "samples", ["table_qa"], "dev", [256], FINE)


def test_what_is_left_out_is_listed_with_its_reason(pages: list[list[Question]], tmp_path: Path) -> None:
    pruner.make(tmp_path / "samples", ["table_qa"], "dev", [512], FINE)
    [row] = [json.loads(line) for line in (tmp_path / "samples.left_out").read_text().splitlines()]
    assert row == {"id": "q1@512", "reason": "no block holds the answer"}


def test_a_file_of_samples_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataBroken, match="not a file of samples"):
        list(pruner.read(tmp_path / "samples.jsonl"))
