"""The paper's labels: which block of a pruned page is taught, on small pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import prunus
from prunus_train.errors import DataBroken

pytest.importorskip("selectolax")

from prunus_evals import labels, tasks
from prunus_evals.labels import PrunerRecipe
from prunus_evals.records import Question, one_page
from prunus_train.data import pruner

FINE = PrunerRecipe(first_stage="bm25", coarse=40, fine=8)
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
    [unit] = pruner.of_page([ask("which day do trams cross", "midnight")], [512], FINE)
    [sample] = unit.kept
    prompt, (path, content) = sample["messages"][-1]["content"], sample["target"]
    assert f"<{path.rpartition('<')[2]}{content}" in prompt
    assert prompt.startswith('**HTML**: "<html>') and "which day do trams cross" in prompt
    assert [path] == [sample["paths"][index] for index in sample["gold"]]
    assert "midnight" in content


def test_a_question_of_which_no_block_holds_the_answer_is_left_out() -> None:
    [unit] = pruner.of_page([ask("When?", "1850")], [512], FINE)
    assert (unit.kept, unit.left_out) == ([], ["no block holds the answer"])


def test_a_page_that_a_smaller_budget_holds_whole_is_one_sample() -> None:
    [unit] = pruner.of_page([ask("When did the old bridge open?", "1932")], [512, 1024], FINE)
    assert len(unit.kept) == 1 and unit.left_out == ["the page is no longer than a smaller budget"]


# --- the file ------------------------------------------------------------------------------------


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[list[Question]]:
    known = [
        [Question(f"q{number}", "table_qa", f"page{number}", one_page(PAGE), "When did the bridge open?", answers)]
        for number, answers in enumerate([("1932",), ("1850",), ("midnight",), ("lamps",)])
    ]
    monkeypatch.setattr(tasks, "load", lambda name, half: known)
    return known


def make(path: Path, budget: int = 512) -> dict[str, Any]:
    return pruner.make(path, ["table_qa"], "dev", [budget], FINE, lambda done, total: None)


@pytest.mark.parametrize("lost", [0, 40, 700])
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(
    lost: int, pages: list[list[Question]], tmp_path: Path
) -> None:
    report = make(tmp_path / "whole")
    assert (report["samples"], report["left_out"]) == (3, {"no block holds the answer": 1})
    make(tmp_path / "torn")
    units = (tmp_path / "torn.units").read_bytes()
    (tmp_path / "torn.units").write_bytes(units[: len(units) - lost])
    assert make(tmp_path / "torn") == report
    assert (tmp_path / "torn").read_bytes() == (tmp_path / "whole").read_bytes()


def test_samples_of_other_settings_are_not_mixed(pages: list[list[Question]], tmp_path: Path) -> None:
    make(tmp_path / "samples")
    with pytest.raises(DataBroken, match="other settings"):
        make(tmp_path / "samples", 256)
