"""Task ``pruner``: the metrics of a ranking, the expectation of chance, and the questions left out."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need

import prunus
from prunus.core.errors import OverWindow
from prunus.evidence.blocks import Blocks
from prunus_evals import pruner
from prunus_evals.labels import PrunerRecipe, options_of
from prunus_evals.records import Question, one_page

RECIPE = PrunerRecipe("bm25", 40, 9)
PAGE = (
    "<p>The old bridge opened in 1932 at last.</p><p>Trams cross it every single day.</p>"
    "<p>It was painted green in spring.</p><p>Ships pass below it at night.</p>"
)


def asked(question: str, answer: str, page: str = "a") -> Question:
    return Question(f"{page} {question}", "page_qa", page, one_page(PAGE), question, (answer,))


QUESTIONS = [[asked("When did the bridge open?", "1932"), asked("Which colour was it painted?", "green")]]


def test_the_best_placed_of_the_right_blocks_counts() -> None:
    found = pruner.measured(np.array([0.1, 0.9, 0.5, 0.7]), [0, 2])
    assert found == {"hit@1": 0.0, "hit@3": 1.0, "mrr": pytest.approx(1 / 3)}


def test_blocks_of_equal_score_stand_in_document_order() -> None:
    assert pruner.measured(np.zeros(4), [1])["mrr"] == 0.5


@pytest.mark.parametrize(("blocks", "gold"), [(2, 1), (4, 1), (5, 2), (6, 4)])
def test_chance_is_the_mean_over_all_orders(blocks: int, gold: int) -> None:
    orders = [pruner.measured(np.array(order), range(gold)) for order in itertools.permutations(range(blocks))]
    for metric, value in pruner.chance(blocks, gold).items():
        assert value == pytest.approx(np.mean([one[metric] for one in orders]))


def test_every_system_ranks_the_same_blocks() -> None:
    seen: dict[str, list[int]] = {"first": [], "last": []}

    def by(name: str, sign: int) -> Any:
        def score(query: str, blocks: Blocks) -> Any:
            seen[name].append(len(blocks))
            return -sign * np.arange(len(blocks))

        return score

    judged = pruner.judge(QUESTIONS, {"first": by("first", 1), "last": by("last", -1)}, 500, RECIPE)
    assert seen["first"] == seen["last"] == judged.blocks == [4, 4]
    assert judged.ranks["first"]["hit@1"] == {"a": [1.0, 0.0]}
    assert judged.ranks["last"]["mrr"] == {"a": [1 / 4, 1 / 2]}
    assert judged.ranks["chance"]["hit@1"] == {"a": [0.25, 0.25]}


def test_a_question_whose_answer_is_not_there_is_left_out_and_counted() -> None:
    missing = [[*QUESTIONS[0], asked("Who built it?", "Ada Lovelace")]]
    judged = pruner.judge(missing, {"bm25": pruner.scoring("bm25", "bare")}, 500, RECIPE)
    assert judged.left_out == {"pruned away by the first stage": 1}
    assert len(judged.blocks) == 2


def test_a_page_over_the_window_of_one_is_left_out_for_all() -> None:
    def too_long(query: str, blocks: Blocks) -> Any:
        raise OverWindow("too long", needed=2, window=1)

    judged = pruner.judge(QUESTIONS, {"bm25": pruner.scoring("bm25", "bare"), "small": too_long}, 500, RECIPE)
    assert judged.left_out == {"over the model's window": 2}
    assert judged.ranks == {}


def test_the_table_shows_means_intervals_and_the_lead_of_the_model() -> None:
    systems = {"bm25": pruner.scoring("bm25", "bare"), "none": lambda query, blocks: np.zeros(len(blocks))}
    judged = pruner.judge(QUESTIONS, systems, 500, RECIPE)
    result = pruner.summary(judged, {"task": "page_qa", "half": "dev", "budget": 500}, "none")
    shown = pruner.table(result)
    assert shown.startswith("page_qa, dev half, budget 500: 2 questions, 4.0 blocks each; left out: none")
    assert [line.split("  ")[0] for line in shown.splitlines()[2:]] == [
        "chance", "bm25", "none", "lead over chance", "lead over bm25",
    ]  # fmt: skip


@pytest.mark.full
def test_the_ranking_is_that_of_prune_with_the_same_sizes(tmp_path: Path) -> None:
    need("transformers")
    from tests.models.llm.tiny import causal

    model = f"generative:{causal(tmp_path, window=20_000)}"
    page = "".join(f"<h2>Part {n}</h2>{PAGE}<p>Bridge {n} has {n} lamps.</p>" for n in range(9))
    question = Question("q", "page_qa", "a", one_page(page), "How many lamps has bridge 7?", ("7 lamps",))
    [case] = pruner.cases([question], 120, RECIPE, {})
    scores = pruner.scoring(model, "paths")(question.question, case.blocks)
    options = replace(options_of(120, RECIPE), second_scorer=model)
    context = prunus.prune(page, question.question, 60, options=options)
    ranked = [block for block in context.blocks if block.stage == 2 and block.role != "cut"]
    assert 3 < len(ranked) == len(scores) < len(context.blocks)
    assert [block.score for block in ranked] == pytest.approx(scores.tolist())
