"""A large layer is clustered by shards: the tree does not depend on the number of workers, and small trees stay."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.index.library import SUBJECTS, builder, built

from prunus.core.errors import BadInput, OutsideFailed
from prunus.core.executor import ProcessExecutor, in_process
from prunus.index.bill import bill_of
from prunus.index.build import Builder, BuildSettings, DocumentSource
from prunus.index.cluster import contiguous
from prunus.index.cluster._shards import LayerVectors, shards

LIBRARY = 120
"""Documents of the library of these tests; some 1,500 leaves, so that 100 nodes a shard make shards of two layers."""


def many(count: int = LIBRARY) -> list[DocumentSource]:
    names = list(SUBJECTS)
    draw = np.random.default_rng(3)
    words = [f"word{number}" for number in range(400)]
    documents = []
    for number in range(count):
        name = names[number % len(names)]
        lines = [f"{SUBJECTS[name]} {' '.join(draw.choice(words, 18))}." for _ in range(6)]
        documents.append(DocumentSource(f"{name} {number}", text=" ".join(lines)))
    return documents


def library(folder: Path, workers: int = 1, shard: int = 100) -> Builder:
    made = builder(folder, BuildSettings(chunk_tokens=40, summary_tokens=60, shard_nodes=shard))
    made.add(many())
    made.executor = ProcessExecutor(workers)
    asyncio.run(made.build(summaries=False))
    return made


def vectors(count: int, seed: int = 1) -> LayerVectors:
    topics = np.random.default_rng(seed).normal(size=(40, 32))
    draw = np.random.default_rng(seed + 1)
    return LayerVectors(
        np.asarray(topics[draw.integers(40, size=count)] + 0.6 * draw.normal(size=(count, 32)), np.float32)
    )


def test_shards_cover_a_layer_once_and_none_is_too_large() -> None:
    found = list(shards(vectors(5000), 300, seed=0))
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(5000))
    assert max(map(len, found)) <= 600
    assert all((np.diff(shard) > 0).all() for shard in found)


@pytest.mark.parametrize(
    "layer", [LayerVectors(np.ones((3000, 8), np.float32)), LayerVectors(np.zeros((3000, 8), np.float32))]
)
def test_a_layer_without_directions_is_cut_all_the_same(layer: LayerVectors) -> None:
    found = list(shards(layer, 200, seed=0))
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(3000))
    assert max(map(len, found)) <= 400


def test_items_of_one_topic_share_a_shard() -> None:
    draw = np.random.default_rng(5)
    topics = draw.normal(size=(4, 32))
    topic = draw.integers(4, size=2000)
    layer = LayerVectors(np.asarray(topics[topic] + 0.1 * draw.normal(size=(2000, 32)), np.float32))
    for shard in shards(layer, 500, seed=0):
        assert len(set(topic[shard].tolist())) == 1


@pytest.mark.slow
def test_the_tree_is_the_same_with_one_two_and_three_workers(tmp_path: Path) -> None:
    made = [library(tmp_path / str(workers), workers).store for workers in (1, 2, 3)]
    one, *others = made
    view = one.view()
    assert view.leaves > 4 * 100
    for other in others:
        assert other.edges() == one.edges()
        assert np.array_equal(other.view().matrix, view.matrix)
        assert np.array_equal(other.view().document, view.document)


def test_a_tree_of_shards_has_one_root_above_every_leaf_and_true_means(tmp_path: Path) -> None:
    store = library(tmp_path).store
    view, edges = store.view(), store.edges()
    below: dict[int, list[int]] = {leaf: [leaf] for leaf in view.ids[: view.leaves].tolist()}
    place = {id: at for at, id in enumerate(view.ids.tolist())}
    for parent in sorted(edges, key=lambda node: int(view.layer[place[node]])):
        below[parent] = [leaf for child in edges[parent] for leaf in below[child]]
        mean = view.matrix[[place[leaf] for leaf in below[parent]]].mean(axis=0)
        assert np.allclose(view.matrix[view.routing[place[parent]]], mean / np.linalg.norm(mean), atol=1e-5)
    (root,) = set(edges) - {child for children in edges.values() for child in children}
    assert sorted(below[root]) == view.ids[: view.leaves].tolist()


def test_a_small_layer_is_not_cut_into_shards(tmp_path: Path) -> None:
    plain = built(tmp_path / "plain").store
    settings = BuildSettings(chunk_tokens=40, summary_tokens=60, shard_nodes=100)
    assert built(tmp_path / "shards", settings).store.edges() == plain.edges()


def test_a_clusterer_of_neighbours_gets_whole_layers(tmp_path: Path) -> None:
    trees = []
    for shard in (100, 100_000):
        settings = BuildSettings(chunk_tokens=40, shard_nodes=shard)
        made = builder(tmp_path / str(shard), settings, clusterer=contiguous.Engine())
        made.add(many())
        asyncio.run(made.build(summaries=False))
        trees.append(made.store.edges())
    assert trees[0] == trees[1]


@pytest.mark.slow
def test_the_bill_of_a_tree_of_shards_is_that_of_its_summaries(tmp_path: Path) -> None:
    made = library(tmp_path)
    bill = bill_of(made, None, True)
    children = [child for children in made.store.edges().values() for child in children]
    assert bill.calls == len(made.store.edges()) and bill.exact
    assert bill.completion_tokens == bill.calls * made.settings.summary_tokens
    assert bill.prompt_tokens > sum(node.tokens or made.settings.summary_tokens for node in made.store.get(children))
    assert asyncio.run(made.summarize()) == bill.calls
    assert bill_of(made, None, True).calls == 0


def test_documents_that_another_process_cut_give_the_same_index(tmp_path: Path) -> None:
    here_built, elsewhere = builder(tmp_path / "here"), builder(tmp_path / "elsewhere")
    documents = many(9)
    here_built.add(documents)
    stored: list[str] = []
    for document in documents:
        elsewhere.put(elsewhere.cutter.cut_each([document]), stored.append)
    assert stored == [document.id for document in documents]
    one, other = here_built.store.view(), elsewhere.store.view()
    assert np.array_equal(one.matrix, other.matrix)
    assert one.names == other.names and np.array_equal(one.tokens, other.tokens)


def test_shards_that_are_too_small_are_refused() -> None:
    with pytest.raises(BadInput, match="shards of 5 nodes"):
        BuildSettings(shard_nodes=5)


# --- the workers ---------------------------------------------------------------------------------


def squares() -> Callable[[int], int]:
    return lambda number: number * number


def slow_squares(number: int) -> int:
    time.sleep(0.05 if number % 3 == 0 else 0)
    return number * number


def slow() -> Callable[[int], int]:
    return slow_squares


def failing() -> Callable[[int], int]:
    def fail(number: int) -> int:
        if number == 3:
            raise BadInput("the third is wrong", subject="3")
        return number

    return fail


def dying() -> Callable[[int], int]:
    def die(number: int) -> int:
        if number == 3:
            os._exit(7)
        return number

    return die


@pytest.mark.slow
@pytest.mark.parametrize("executor", [in_process, ProcessExecutor(1), ProcessExecutor(3)])
def test_results_come_in_the_order_of_the_tasks(executor: ProcessExecutor) -> None:
    assert list(executor(slow, iter(range(12)))) == [number * number for number in range(12)]
    assert list(executor(squares, iter(()))) == []


def test_few_tasks_are_read_before_the_first_result_is_taken() -> None:
    read: list[int] = []

    def note(number: int) -> int:
        read.append(number)
        return number

    results = ProcessExecutor(2)(squares, (note(number) for number in range(100)))
    assert next(iter(results)) == 0
    assert len(read) <= 2 * 2 + 2


def test_what_a_task_raises_is_raised_here() -> None:
    with pytest.raises(BadInput, match="the third is wrong"):
        list(ProcessExecutor(2)(failing, range(9)))


def test_a_worker_that_dies_is_one_line() -> None:
    with pytest.raises(OutsideFailed, match=r"a worker process died \(exit code 7\)"):
        list(ProcessExecutor(2)(dying, range(9)))
