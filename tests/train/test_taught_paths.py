"""A pruner is taught the paths that inference asks it for: on made pages, and on real ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import Made, worded_documents

import prunus
from prunus.core.errors import BadBudget
from prunus.evidence.blocks import Blocks
from prunus.evidence.numbered_paths import number

pytest.importorskip("selectolax")

from prunus_evals import labels, tasks
from prunus_evals.data import VARIABLE
from prunus_evals.labels import PrunerRecipe
from prunus_evals.records import Question, one_page
from prunus_train.data import pruner

BUDGET = 90
FINE = PrunerRecipe(first_stage="bm25", coarse=24, fine=10)
PAGE = "<h1>Ferries</h1>" + "".join(
    f"<div><div><h2>Line {line}</h2><p>Line {line} leaves the quay at noon each day.</p>"
    f"<p>It calls at pier {line} and turns back before the evening.</p></div></div>"
    for line in range(12)
)


@dataclass
class Noted:
    """A fine scorer that notes the page and the paths that a generative scorer would be asked for."""

    tree: None = None
    asked: list[tuple[str, Sequence[str]]] = field(default_factory=list)

    def score(self, query: str, blocks: Blocks) -> np.ndarray:
        numbered = number(blocks)
        self.asked.append((numbered.html, numbered.paths))
        return np.zeros(len(blocks))


def asked_by_inference(
    documents: prunus.Documents, question: str, budget: int, recipe: PrunerRecipe
) -> tuple[str, Sequence[str]]:
    noted = Noted()
    options = replace(labels.options_of(budget, recipe), second_scorer=noted)
    prunus.prune(documents, question, budget, options=options)
    return noted.asked[0]


def read(html: str) -> prunus.Documents:
    return prunus.read(prunus.Page(content=html, media_type="text/html"))


def test_a_sample_teaches_the_page_and_the_paths_that_inference_asks_for() -> None:
    question = Question("q", "page_qa", "page", one_page(PAGE), "Where does line 7 call?", ("pier 7",))
    [unit] = pruner.of_page([question], [BUDGET], FINE)
    [sample] = unit.kept
    html, paths = asked_by_inference(read(PAGE), question.question, BUDGET, FINE)
    assert sample["paths"] == paths
    assert html in sample["messages"][-1]["content"]
    assert "<div8>" in sample["target"][0]  # the number in the whole page, of which most was pruned
    assert len(sample["paths"]) < 12


@settings(max_examples=25)
@given(worded_documents, st.integers(20, 200))
def test_for_every_block_the_taught_path_is_the_asked_path(made: Made, budget: int) -> None:
    documents = read(made.html)
    try:
        blocks = labels.pruned(documents, "ferry to Pell", budget, FINE)
        html, paths = asked_by_inference(documents, "ferry to Pell", budget, FINE)
    except BadBudget:
        return
    form = number(blocks)
    assert (form.html, form.paths) == (html, paths)


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} is not set: no real data")
@pytest.mark.parametrize("task", ["table_qa", "websrc", "nq"])
def test_on_real_pages_the_taught_path_is_the_asked_path(task: str) -> None:
    recipe, compared = PrunerRecipe(), 0
    for page in tasks.load(task, "dev", 6):
        question = page[0]
        documents = read(question.html)
        try:
            form = number(labels.pruned(documents, question.question, 1024, recipe))
        except BadBudget:
            continue
        assert (form.html, form.paths) == asked_by_inference(documents, question.question, 1024, recipe)
        compared += len(form.paths)
    assert compared > 20
