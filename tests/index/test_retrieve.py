"""Retrieval: the budget is exact, the paper's ways work as published, and the default is in document order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.library import COUNTER, EMBEDDER, SUBJECTS, builder, built

from prunus.core.errors import BadBudget, BadInput
from prunus.core.ports import Vectors
from prunus.index.retrieve import Retrieved, Retriever

QUESTION = "When do spring tides come?"


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Retriever:
    return Retriever(built(tmp_path_factory.mktemp("library")).store, EMBEDDER, COUNTER)


def tokens_of(text: str) -> int:
    return int(COUNTER.count([text])[0]) if text else 0


@given(
    budget=st.integers(1, 1500),
    question=st.sampled_from([QUESTION, "Summarise the bees.", "Who bakes?", "zzz", "数据"]),
    way=st.sampled_from(["collapsed", "flat", "bm25", "traversal", "hybrid", "broad"]),
)
@settings(max_examples=60)
def test_no_budget_is_exceeded_and_tokens_are_those_of_the_text(
    retriever: Retriever, budget: int, question: str, way: str
) -> None:
    found: Retrieved = {
        "collapsed": lambda: retriever.collapsed(question, budget),
        "flat": lambda: retriever.collapsed(question, budget, tree=False),
        "bm25": lambda: retriever.collapsed(question, budget, scorer="bm25"),
        "traversal": lambda: retriever.traversal(question, 3, budget=budget),
        "hybrid": lambda: retriever.hybrid(question, budget, broad=False),
        "broad": lambda: retriever.hybrid(question, budget, broad=True),
    }[way]()
    assert found.tokens == tokens_of(found.text) <= budget
    assert found.text == "\n\n".join(node.text for node in found.nodes)
    assert len({node.id for node in found.nodes}) == len(found.nodes) == len(found.scores)


def test_collapsed_takes_the_most_similar_nodes_of_all_layers_up_to_the_first_that_overflows(
    retriever: Retriever,
) -> None:
    view = retriever.store.view()
    scores = view.matrix[view.row] @ EMBEDDER.embed([QUESTION], "query")[0]
    order = np.argsort(-scores, kind="stable")
    would_fit_later = 0
    for budget in range(40, 800, 20):
        sums = np.cumsum(view.tokens[order])
        count = int(np.searchsorted(sums, budget, side="right"))
        expected = view.ids[order[:count]].tolist()
        found = [node.id for node in retriever.collapsed(QUESTION, budget).nodes]
        assert found == expected[: len(found)]
        assert len(expected) - len(found) <= 1  # empty lines between nodes cost tokens too
        left = budget - (int(sums[count - 1]) if count else 0)
        would_fit_later += bool((view.tokens[order[count + 1 :]] < left - 4).any())
    assert would_fit_later  # and yet nothing behind the first that overflows is taken


def test_traversal_takes_the_best_children_of_the_best_nodes_of_each_layer(retriever: Retriever) -> None:
    store = retriever.store
    asked = EMBEDDER.embed([QUESTION], "query")[0]
    view, edges = store.view(), store.edges()
    vector = {int(id): view.matrix[row] for id, row in zip(view.ids, view.row, strict=True)}
    pool = sorted(set(edges) - {child for children in edges.values() for child in children})
    expected: list[int] = []
    while pool:
        best = sorted(pool, key=lambda id: -float(vector[id] @ asked))[:2]
        expected += [id for id in best if id not in expected]
        pool = [child for id in best for child in edges.get(id, [])]
    assert [node.id for node in retriever.traversal(QUESTION, 2).nodes] == expected
    assert [node.id for node in retriever.traversal(QUESTION, 2, depth=1).nodes] == expected[:1]


def test_traversal_finds_the_subject_by_summaries_and_by_the_means_of_leaves(retriever: Retriever) -> None:
    for routing in (False, True):
        leaves = [node for node in retriever.traversal(QUESTION, 1, routing=routing).nodes if node.layer == 0]
        assert [node.document for node in leaves] == ["tides"]


def test_the_default_finds_the_evidence_in_document_order_and_fills_the_budget(retriever: Retriever) -> None:
    found = retriever.hybrid(QUESTION, 200)
    assert {node.document for node in found.nodes} == {"tides"}
    assert [node.position for node in found.nodes] == sorted(node.position for node in found.nodes)
    assert found.tokens > 130


def test_summaries_come_for_broad_questions_within_their_share_and_never_above_each_other(
    retriever: Retriever,
) -> None:
    narrow = retriever.hybrid(QUESTION, 600)
    assert all(node.layer == 0 for node in narrow.nodes)
    broad = retriever.hybrid("Give an overview of the documents.", 300)
    said = [node for node in broad.nodes if node.layer]
    assert said
    assert sum(node.tokens for node in said) <= 75
    assert [node.layer == 0 for node in broad.nodes] == sorted(node.layer == 0 for node in broad.nodes)
    below = [set(retriever.leaves_of(node.id)) for node in said]
    assert not any(leaves <= other for leaves in below for other in below if leaves is not other)


def test_a_summary_whose_leaves_are_all_there_is_dropped(retriever: Retriever) -> None:
    everything = retriever.hybrid("Give an overview.", 100_000)
    assert all(node.layer == 0 for node in everything.nodes)
    assert len(everything.nodes) == retriever.store.view().leaves


@pytest.mark.parametrize("way", ["collapsed", "hybrid"])
def test_retrieval_can_be_limited_to_documents(retriever: Retriever, way: str) -> None:
    found = getattr(retriever, way)(QUESTION, 500, documents=["bees", "glass"])
    assert found.nodes
    assert {node.document for node in found.nodes} <= {"bees", "glass"}
    with pytest.raises(BadInput, match="no document 'missing'"):
        getattr(retriever, way)(QUESTION, 500, documents=["missing"])


def test_layers_can_be_chosen(retriever: Retriever) -> None:
    assert {node.layer for node in retriever.collapsed(QUESTION, 2000, layers=[1]).nodes} == {1}
    assert retriever.traversal(QUESTION, 1, start=1).nodes[0].layer == 1


def test_a_summarys_sentence_leads_back_to_the_leaf_that_says_it(retriever: Retriever) -> None:
    view = retriever.store.view()
    root = int(view.ids[np.argmax(view.layer)])
    best = retriever.support(root, "The queen lays eggs in the comb.", 1)[0]
    assert best.document == "bees"
    assert best.layer == 0


def test_questions_and_numbers_that_make_no_sense_are_refused(retriever: Retriever) -> None:
    with pytest.raises(BadInput, match="empty"):
        retriever.hybrid("  ", 100)
    with pytest.raises(BadBudget, match="holds nothing"):
        retriever.collapsed(QUESTION, 0)
    with pytest.raises(BadInput, match="top 0"):
        retriever.traversal(QUESTION, 0)


def test_an_empty_index_and_one_without_a_tree_can_be_asked(tmp_path: Path) -> None:
    empty = builder(tmp_path)
    asking = Retriever(empty.store, EMBEDDER, COUNTER)
    for found in (asking.hybrid(QUESTION), asking.collapsed(QUESTION), asking.traversal(QUESTION)):
        assert (found.nodes, found.text, found.tokens) == ([], "", 0)
    from tests.index.library import source

    empty.add(source(name) for name in SUBJECTS)
    for found in (asking.hybrid(QUESTION, 100), asking.collapsed(QUESTION, 100), asking.traversal(QUESTION, 1)):
        assert found.nodes[0].document == "tides"


def test_a_question_is_embedded_once(retriever: Retriever) -> None:
    class Counting:
        identity, dimension, asked = EMBEDDER.identity, EMBEDDER.dimension, 0

        def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> Vectors:
            self.asked += kind == "query"
            return EMBEDDER.embed(texts, kind)

    counting = Counting()
    assert Retriever(retriever.store, counting, COUNTER).hybrid(QUESTION).nodes
    assert counting.asked == 1
