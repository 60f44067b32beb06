"""Task ``index``: spans are right, budgets hold, and informed systems beat random ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prunus_evals import index, index_tasks
from prunus_evals.data import VARIABLE
from prunus_evals.errors import UnknownName
from prunus_evals.index_tasks import IndexQuestion, Task
from prunus_evals.split import half

SUBJECTS = ("tide", "bread", "train", "glass")
TEXT = (
    "The {0} is what page {1} is about. Much is known of the {0} here. Its number is {1}{1}{1}. People like the {0}. "
)


def task(within: bool) -> Task:
    documents = {f"d{n}": TEXT.format(word, n) * 12 for n, word in enumerate(SUBJECTS)}
    asked = []
    for n, word in enumerate(SUBJECTS):
        start = documents[f"d{n}"].index("Its number")
        asked.append(IndexQuestion(f"d{n}", f"What is the number of the {word}?", f"d{n}", [(start, start + 18)]))
    return Task("own", documents, "en", asked, within)


def test_recall_is_the_share_of_the_letters_that_are_not_spaces() -> None:
    gold = index.Gold({"a": "one two  three"})
    asked = IndexQuestion("a", "?", "a", [(0, 14)])
    assert gold.recall(asked, [("a", 0, 7)]) == pytest.approx(6 / 11)
    assert gold.recall(asked, [("a", 0, 7), ("a", 4, 14), ("b", 0, 14)]) == 1.0
    assert gold.recall(asked, []) == 0.0


@pytest.mark.parametrize("within", [False, True])
def test_every_system_keeps_the_budget_and_finds_what_it_can(tmp_path: Path, within: bool) -> None:
    systems = [system for system in index.SYSTEMS if "raptor" not in system]
    found, qualities = index.run(task(within), systems, [60, 4000], "static", tmp_path)
    recall = {(one.system, one.budget): index.stats.mean(one.recall).mean for one in found}
    assert all(recall[system, 60] <= 1.0 for system in systems)
    for system in ("default", "dense", "bm25", "hybrid", "neighbours", "order"):
        assert recall[system, 4000] == 1.0  # everything fits
    assert set(qualities) == (set() if within else {"ward", "contiguous", "segments", "random"})
    result = index.summary(task(within), "dev", "static", found, qualities)
    assert "default_minus_this" in result["systems"]["dense"]["60"]
    assert "bm25" in index.table(result)


def test_a_summary_counts_where_its_sentences_stand(tmp_path: Path) -> None:
    made = index.build(task(False), "ward", "static", tmp_path)
    view = made.store.view()
    node = made.store.get([int(view.ids[-1])])[0]
    spans = made.spans(node)
    assert spans
    for document, start, end in spans:
        assert " ".join(made.documents[document][start:end].split()) in " ".join(node.text.split())


def test_unknown_names_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown task"):
        index_tasks.load("none", "dev")
    with pytest.raises(UnknownName, match="unknown tree"):
        index.build(task(False), "oak", "static", tmp_path)
    made = index.build(task(False), "ward", "static", tmp_path)
    with pytest.raises(UnknownName, match="unknown system"):
        index.retrieve(made, "oak", task(False).questions[0], 100, within=False)


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} is not set: no real data")
def test_evidence_stands_where_the_data_says() -> None:
    meetings = index_tasks.load("qmsum", "dev")
    assert len(meetings.questions) == 144
    assert all(half(question.page) == "dev" for question in meetings.questions)
    first = meetings.questions[0]
    assert meetings.documents[first.document][first.spans[0][0] :].split(":")[0] in meetings.documents[first.document]
    german = index_tasks.load("xquad_de", "dev", limit=40)
    assert len(german.questions) == 40
    shown = {german.documents[question.document][slice(*question.spans[0])].strip() for question in german.questions}
    assert all(shown)
