"""Every clusterer covers its layer, ends in a root, keeps the limits, is deterministic, and survives odd layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extras import need

from prunus.core.errors import BadInput, UnknownEngine
from prunus.core.ports import Clusterer, ClusterItems, ClusterLimits
from prunus.index.cluster import contiguous, random, ward
from prunus.index.cluster._linkage import chain

MAKERS: dict[str, Callable[[], Clusterer]] = {
    "ward": ward.Engine,
    "ward on a graph": lambda: ward.Engine(whole=5, neighbours=4),
    "ward in parts": lambda: ward.Engine(whole=20, neighbours=3, part=30),
    "contiguous": contiguous.Engine,
    "segments": lambda: contiguous.Engine("segments"),
    "random": random.Engine,
}
every = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
LIMITS = ClusterLimits()


def items_of(vectors: np.ndarray, tokens: int = 100, documents: int = 1) -> ClusterItems:
    count = len(vectors)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    document = np.sort(np.arange(count) % max(1, documents))
    order = np.arange(count) - np.searchsorted(document, document)
    return ClusterItems(unit.astype(np.float32), np.full(count, tokens), [f"d{number}" for number in document], order)


def random_items(count: int, seed: int = 0, **others: Any) -> ClusterItems:
    return items_of(np.random.default_rng(seed).normal(size=(count, 16)), **others)


def topics(count: int, topics: int, noise: float = 0.05) -> tuple[ClusterItems, np.ndarray]:
    draw = np.random.default_rng(1)
    centres = draw.normal(size=(topics, 32))
    label = np.arange(count) % topics
    return items_of(centres[label] + noise * draw.normal(size=(count, 32))), label


def covered(groups: Sequence[np.ndarray]) -> list[int]:
    return sorted(int(item) for group in groups for item in group)


def above(items: ClusterItems, groups: Sequence[np.ndarray]) -> ClusterItems:
    means = np.stack([items.vectors[group].mean(axis=0) for group in groups])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    owners = [{items.documents[item] for item in group} for group in groups]
    documents = [owner.pop() if len(owner) == 1 else "" for owner in owners]
    return ClusterItems(means.astype(np.float32), np.full(len(groups), 100), documents, np.arange(len(groups)))


@every
@given(count=st.integers(0, 90), size=st.integers(1, 5000), documents=st.integers(1, 40), kinds=st.integers(1, 90))
@settings(max_examples=25)
def test_layers_cover_shrink_keep_the_limits_and_end_in_one_root(
    maker: Callable[[], Clusterer], count: int, size: int, documents: int, kinds: int
) -> None:
    vectors = np.random.default_rng(count).normal(size=(kinds, 8))[np.arange(count) % kinds]
    items = items_of(vectors, size, documents) if count else random_items(0)
    engine = maker()
    if not count:
        assert engine.layer(items, LIMITS) == []
        return
    while True:
        groups = engine.layer(items, LIMITS)
        assert covered(groups) == list(range(len(items.tokens)))
        for group in groups:
            assert len(group) <= 2 or (len(group) <= LIMITS.items and items.tokens[group].sum() <= LIMITS.tokens)
        if len(items.tokens) == 1:
            break
        assert len(groups) < len(items.tokens)
        if len(groups) == 1:
            break
        items = above(items, groups)


@every
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_items_make_one_group(maker: Callable[[], Clusterer], count: int) -> None:
    groups = maker().layer(random_items(count), LIMITS)
    assert covered(groups) == list(range(count))
    assert len(groups) == min(1, count)


@every
def test_identical_items_are_no_trouble(maker: Callable[[], Clusterer]) -> None:
    groups = maker().layer(items_of(np.ones((500, 8))), LIMITS)
    assert covered(groups) == list(range(500))
    assert 500 / LIMITS.items <= len(groups) <= 500 / 3


@every
def test_the_same_layer_gives_the_same_groups(maker: Callable[[], Clusterer]) -> None:
    one, other = (maker().layer(random_items(200, documents=9), LIMITS) for _ in range(2))
    assert [group.tolist() for group in one] == [group.tolist() for group in other]


@every
def test_vectors_without_direction_are_no_trouble(maker: Callable[[], Clusterer]) -> None:
    broken = ClusterItems(np.full((40, 4), np.nan, np.float32), np.full(40, 100), ["d"] * 40, np.arange(40))
    assert covered(maker().layer(broken, LIMITS)) == list(range(40))


@pytest.mark.parametrize("name", ["ward", "ward on a graph"])
def test_ward_finds_the_topics_that_are_there(name: str) -> None:
    items, label = topics(140, 20)
    for group in MAKERS[name]().layer(items, LIMITS):
        assert len(set(label[group])) == 1


def test_random_groups_do_not_follow_topics() -> None:
    items, label = topics(140, 20)
    assert any(len(set(label[group])) > 3 for group in random.Engine().layer(items, LIMITS))


def test_another_seed_draws_other_groups() -> None:
    one, other = (random.Engine().layer(random_items(50), ClusterLimits(seed=seed)) for seed in (0, 1))
    assert [group.tolist() for group in one] != [group.tolist() for group in other]


def test_the_chain_merges_as_a_slow_search_for_the_nearest_pair_does() -> None:
    vectors = np.random.default_rng(3).normal(size=(30, 5)).astype(np.float32)
    clusters = [[point] for point in range(30)]
    slow = []
    while len(clusters) > 1:

        def cost(pair: tuple[int, int]) -> float:
            one, other = clusters[pair[0]], clusters[pair[1]]
            apart = vectors[one].mean(axis=0) - vectors[other].mean(axis=0)
            return float(len(one) * len(other) / (len(one) + len(other)) * (apart @ apart))

        first, last = min(((i, j) for j in range(len(clusters)) for i in range(j)), key=cost)
        slow.append(frozenset(clusters[first] + clusters[last]))
        clusters[first] = clusters[first] + clusters.pop(last)
    sets = {point: frozenset([point]) for point in range(30)}
    fast = []
    for one, other in chain(vectors, np.ones(30, np.float32)):
        joined = sets[one] | sets[other]
        fast.append(joined)
        sets.update(dict.fromkeys(joined, joined))
    assert fast == slow


def test_windows_hold_seven_neighbours_and_do_not_mix_long_documents() -> None:
    groups = contiguous.Engine().layer(random_items(42, documents=2), LIMITS)
    assert [group.tolist() for group in groups] == [list(range(at, at + 7)) for at in range(0, 42, 7)]


def test_segments_end_where_the_subject_changes() -> None:
    draw = np.random.default_rng(0)
    lengths = [5, 9, 7, 6, 8]
    vectors = np.concatenate([draw.normal(size=16) + 0.05 * draw.normal(size=(n, 16)) for n in lengths])
    groups = contiguous.Engine("segments").layer(items_of(vectors), LIMITS)
    assert [len(group) for group in groups] == lengths


def test_contiguous_knows_no_other_model() -> None:
    with pytest.raises(UnknownEngine, match="segments"):
        contiguous.Engine("chapters")


@pytest.mark.parametrize("limits", [{"tokens": 0}, {"items": 1}, {"fan_out": 1}, {"seed": -1}])
def test_limits_that_make_no_sense_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="at least"):
        ClusterLimits(**limits)


# --- the published method ------------------------------------------------------------------------


def raptor() -> Any:
    need("sklearn")
    need("umap")
    from prunus.index.cluster import raptor as room

    return room.Engine()


@pytest.mark.full
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("count", [0, 1, 2, 5, 12, 13, 30])
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("size", [100, 4000])
def test_raptor_survives_what_the_reference_implementation_does_not(count: int, alike: bool, size: int) -> None:
    engine = raptor()
    items = items_of(np.ones((count, 16)), size) if alike else random_items(count, tokens=size)
    groups = engine.layer(items, LIMITS)
    assert set(covered(groups)) == set(range(count))
    for group in groups:
        assert len(group) <= 2 or items.tokens[group].sum() <= LIMITS.tokens


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_raptor_repeats_itself() -> None:
    engine = raptor()
    items, _ = topics(40, 4, 0.4)
    one, other = (engine.layer(items, LIMITS) for _ in range(2))
    assert [group.tolist() for group in one] == [group.tolist() for group in other]
