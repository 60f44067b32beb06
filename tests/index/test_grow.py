"""Updates: documents are added, removed and replaced without a new tree; only summaries above them are rewritten."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import numpy as np
import pytest
from tests.index.library import COUNTER, EMBEDDER, SUBJECTS, builder, built, source
from tests.index.test_build import leaves_below

from prunus.core.ports import ClusterLimits
from prunus.index.build import Builder, BuildSettings, DocumentSource
from prunus.index.retrieve import Retriever
from prunus.index.store.file.engine import Engine as Store


def check(store: Store, limits: ClusterLimits, planned: int) -> None:
    """One root above every leaf, each once; limits kept; means right; every summary written."""
    view, edges = store.view(), store.edges()
    place = {id: at for at, id in enumerate(view.ids.tolist())}
    roots = set(edges) - {child for children in edges.values() for child in children}
    assert len(roots) == 1
    assert sorted(leaves_below(edges, roots.pop())) == sorted(view.ids[: view.leaves].tolist())
    assert set(edges) == set(view.ids[view.leaves :].tolist())
    for parent, children in edges.items():
        tokens = sum(planned if child in edges else int(view.tokens[place[child]]) for child in children)
        assert limits.fits(len(children), tokens)
        leaves = [place[leaf] for leaf in leaves_below(edges, parent)]
        mean = view.matrix[view.row[leaves]].mean(axis=0)
        assert np.allclose(view.matrix[view.routing[place[parent]]], mean / np.linalg.norm(mean), atol=1e-4)
        owners = {int(view.document[leaf]) for leaf in leaves}
        assert int(view.document[place[parent]]) == (owners.pop() if len(owners) == 1 else -1)
    assert store.unsummarised() == []


def update(index: Builder) -> None:
    asyncio.run(index.update())
    check(index.store, index.settings.limits, index.settings.summary_tokens)


def test_a_new_document_goes_to_its_kin_and_other_summaries_stay(tmp_path: Path) -> None:
    found = built(tmp_path)
    before = {node.id: node.text for node in found.store.get(found.store.view().ids.tolist()) if node.layer == 1}
    found.add(
        [DocumentSource("more tides", text="At full moon the harbour has its spring tide, and the water rises high.")]
    )
    update(found)
    after = {node.id: node.text for node in found.store.get(list(before))}
    assert sum(after[id] != text for id, text in before.items()) <= 1
    asking = Retriever(found.store, EMBEDDER, COUNTER)
    nodes = asking.traversal("How high is the water at a spring tide?", 1, routing=True).nodes
    assert nodes[-1].document in ("tides", "more tides")


def test_nothing_of_a_removed_document_is_left(tmp_path: Path) -> None:
    found = built(tmp_path)
    assert found.store.delete("bees")
    update(found)
    for node in found.store.get(found.store.view().ids.tolist()):
        assert "queen" not in node.text
    assert not found.store.lexical("queen")
    assert not found.store.lexical("queen", "summaries")


def test_replacing_a_document_changes_what_is_found(tmp_path: Path) -> None:
    found = built(tmp_path)
    found.add([DocumentSource("glass", text="Window panes are cast on liquid tin. A pane floats until it is cool.")])
    update(found)
    asking = Retriever(found.store, EMBEDDER, COUNTER)
    assert "tin" in asking.hybrid("What are window panes cast on?", 60).text
    assert "furnace" not in asking.hybrid("glass furnace", 2000).text


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_any_order_of_changes_leaves_a_tree_that_keeps_every_promise(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    limits = ClusterLimits(tokens=400, items=6, fan_out=4)
    found = builder(tmp_path, BuildSettings(chunk_tokens=30, summary_tokens=40, limits=limits))
    known: set[str] = set()
    for _ in range(12):
        for _ in range(draw.randint(1, 4)):
            if known and draw.random() < 0.45:
                gone = draw.choice(sorted(known))
                assert found.store.delete(gone)
                known.remove(gone)
            else:
                name = f"{draw.choice(sorted(SUBJECTS))}"
                id = f"{name} {draw.randint(0, 5)}"
                found.add([DocumentSource(id, tree=source(name, draw.randint(1, 5)).tree)])
                known.add(id)
        asyncio.run(found.update())
        assert {document.id for document in found.store.documents()} == known
        if found.store.view().leaves > 1:
            check(found.store, limits, 40)
    for name in sorted(known):
        found.store.delete(name)
    asyncio.run(found.update())
    assert found.store.info()["nodes"] == {}


def test_a_tree_that_grew_routes_as_well_as_one_built_at_once(tmp_path: Path) -> None:
    """Of each leaf's own text as a question, traversal by means finds the subject."""
    fresh, grown = built(tmp_path / "fresh"), builder(tmp_path / "grown")
    for name in SUBJECTS:
        grown.add([source(name)])
        update(grown)

    def hits(index: Builder) -> int:
        asking = Retriever(index.store, EMBEDDER, COUNTER)
        view = index.store.view()
        leaves = index.store.get(view.ids[: view.leaves].tolist())
        return sum(asking.traversal(leaf.text, 1, routing=True).nodes[-1].document == leaf.document for leaf in leaves)

    assert hits(grown) >= hits(fresh) - 1
    assert hits(grown) > 0.9 * fresh.store.view().leaves


def test_a_change_made_for_another_state_of_the_index_is_not_written(tmp_path: Path) -> None:
    from prunus.index.grow import Growing

    found = built(tmp_path)
    growth = Growing(found.store.view(), found.store.edges(), found.settings.limits, 60).grow()
    found.store.delete("bees")
    edges = found.store.edges()
    assert not found.store.grow(growth)
    assert found.store.edges() == edges
