"""Building an index: leaves with exact spans, one root, summaries now or later, and their cost in advance."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need
from tests.index.library import COUNTER, EMBEDDER, SUBJECTS, builder, built, page, source

from prunus.core.errors import BadInput, OutsideFailed
from prunus.core.ports import Clusterer
from prunus.index.bill import bill_of
from prunus.index.build import PAPER, BuildSettings, DocumentSource
from prunus.index.cluster import contiguous, random, ward
from prunus.index.summarize import llm
from prunus.models.llm.scripted import Engine as Scripted
from prunus.models.llm.scripted import ScriptedReply

CLUSTERERS = {"ward": ward.Engine, "windows": contiguous.Engine, "random": random.Engine}


def leaves_below(edges: dict[int, list[int]], node: int) -> list[int]:
    return [leaf for child in edges[node] for leaf in leaves_below(edges, child)] if node in edges else [node]


@pytest.mark.parametrize("clusterer", CLUSTERERS.values(), ids=CLUSTERERS)
def test_every_leaf_is_below_the_one_root_and_every_node_knows_the_mean_of_its_leaves(
    tmp_path: Path, clusterer: type[Clusterer]
) -> None:
    store = built(tmp_path, clusterer=clusterer()).store
    view, edges = store.view(), store.edges()
    roots = set(edges) - {child for children in edges.values() for child in children}
    assert len(roots) == 1
    assert sorted(leaves_below(edges, roots.pop())) == sorted(view.ids[: view.leaves].tolist())
    place = {id: at for at, id in enumerate(view.ids.tolist())}
    for parent in edges:
        leaves = [place[leaf] for leaf in leaves_below(edges, parent)]
        mean = view.matrix[view.row[leaves]].mean(axis=0)
        assert np.allclose(view.matrix[view.routing[place[parent]]], mean / np.linalg.norm(mean), atol=1e-5)
    assert all(node.text for node in store.get(view.ids.tolist()))
    assert store.unsummarised() == []


def test_leaves_are_slices_of_their_documents_with_headings_above(tmp_path: Path) -> None:
    store = built(tmp_path).store
    view = store.view()
    assert list(view.names) == list(SUBJECTS)
    for node in store.get(view.ids[: view.leaves].tolist()):
        assert store.document(node.document).text[node.start : node.end] == node.text
        assert node.tokens == int(COUNTER.count([node.text])[0])
        if "Part" not in node.text:
            assert node.above[0] == f"All about {node.document}"


def test_a_tree_of_each_document_has_a_root_of_each_document(tmp_path: Path) -> None:
    store = built(tmp_path, BuildSettings(chunk_tokens=40, scope="document")).store
    edges = store.edges()
    roots = set(edges) - {child for children in edges.values() for child in children}
    assert sorted(node.document for node in store.get(sorted(roots))) == sorted(SUBJECTS)


def test_the_same_documents_give_the_same_tree(tmp_path: Path) -> None:
    one, other = (built(tmp_path / name).store for name in ("one", "other"))
    assert one.edges() == other.edges()
    assert one.get(one.view().ids.tolist()) == other.get(other.view().ids.tolist())


def test_nothing_and_one_leaf_need_no_tree(tmp_path: Path) -> None:
    built_one = builder(tmp_path)
    asyncio.run(built_one.build())
    assert built_one.store.info()["nodes"] == {}
    built_one.add([DocumentSource("empty"), DocumentSource("short", text="One sentence.")])
    asyncio.run(built_one.build())
    assert built_one.store.info()["nodes"] == {0: 1}
    assert [document.id for document in built_one.store.documents()] == ["empty", "short"]


def test_summaries_can_come_later_and_their_bill_is_known_before(tmp_path: Path) -> None:
    later = builder(tmp_path)
    later.add(source(name) for name in SUBJECTS)
    asyncio.run(later.build(summaries=False))
    missing = len(later.store.unsummarised())
    bill = bill_of(later, None, pays=True)
    assert bill.calls == missing > 1
    assert bill.completion_tokens == missing * 60
    assert asyncio.run(later.summarize()) == missing
    assert bill_of(later, None, pays=True).calls == 0
    now = built(tmp_path / "now")
    assert [node.text for node in now.store.get(now.store.view().ids.tolist())] == [
        node.text for node in later.store.get(later.store.view().ids.tolist())
    ]


def test_a_model_that_fails_in_the_middle_leaves_what_was_written_and_the_run_goes_on_there(tmp_path: Path) -> None:
    failing = Scripted(script=["First summary.", "Second summary.", ScriptedReply(error=OutsideFailed("down"))])
    first = builder(tmp_path, summarizer=llm.Engine(failing, parallel=1, tries=1))
    first.add(source(name) for name in SUBJECTS)
    asyncio.run(first.build(summaries=False))
    before = len(first.store.unsummarised())
    with pytest.raises(OutsideFailed, match="down"):
        asyncio.run(first.summarize(batch=1))
    assert len(first.store.unsummarised()) == before - 2
    model = Scripted("A summary.")
    second = builder(tmp_path, summarizer=llm.Engine(model))
    assert asyncio.run(second.summarize()) == before - 2 == len(model.calls)


def test_a_page_read_as_the_paper_reads_it_is_plain_sentences(tmp_path: Path) -> None:
    paper = builder(tmp_path, PAPER)
    assert paper.add([source("bees")]) > 1
    view = paper.store.view()
    nodes = paper.store.get(view.ids.tolist())
    assert all(node.above == () and node.tokens <= 100 for node in nodes)
    assert np.allclose(view.matrix[view.row], EMBEDDER.embed([node.text for node in nodes]), atol=1e-6)


def test_adding_says_what_is_on_the_disk(tmp_path: Path) -> None:
    said: list[str] = []
    found = builder(tmp_path)
    found.add([DocumentSource("a", text=page("bees")), source("bread")], said.append)
    assert said == ["a", "bread"]


@pytest.mark.parametrize("wrong", [{"summary_tokens": 0}, {"above_share": 2.0}, {"scope": "shelf"}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="summaries of"):
        BuildSettings(**wrong)


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_the_published_tree_clusters_embeddings_of_summaries_and_may_have_several_roots(tmp_path: Path) -> None:
    need("umap")
    from prunus.index.cluster import raptor

    settings = BuildSettings(chunk_tokens=60, summary_tokens=40)
    store = built(tmp_path, settings, clusterer=raptor.Engine()).store
    view, edges = store.view(), store.edges()
    covered = {leaf for parent in edges for leaf in leaves_below(edges, parent)}
    assert covered == set(view.ids[: view.leaves].tolist())
    assert all(node.text for node in store.get(view.ids.tolist()))
    top = view.layer.max()
    assert 1 <= int((view.layer == top).sum()) <= 11
