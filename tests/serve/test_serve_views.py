"""The routes behind the views of the web page: pages pruned again, and the tree of an index."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.serve.running import QUESTION, Running, running

from prunus import Index
from prunus.core.settings import load_settings
from prunus.evidence.documents import Documents

pytestmark = pytest.mark.full

TOWNS = "".join(
    f"<h2>Town {n}</h2><p>Town {n} lies on a hill. Its market opens on day {n}.</p>"
    f"<p>The ferry of town {n} leaves at {n} o'clock, and the fare is {n} coins.</p>"
    for n in range(1, 41)
)
PAGE = {"html": f"<title>Towns</title><h1>Towns</h1>{TOWNS}", "url": "https://example.org/towns"}
WANTED = "When does the ferry of town 17 leave?"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    index = Index.open(folder / "towns", settings=load_settings({"home": str(folder / "home"), "chunk_tokens": 30}))
    index.add({"a.html": PAGE["html"], "b.html": PAGE["html"].replace("Town", "Village").replace("town", "village")})
    return folder


@pytest.fixture(scope="module")
def server(place: Path) -> Any:
    with running(place, indexes={"towns": str(place / "towns")}, budget=4000) as found:
        yield found


def pruned(server: Running, **body: Any) -> Any:
    reply = server.post("/v1/prune", {"question": WANTED, "all_blocks": True, **body})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_kept_pages_are_pruned_to_another_budget_as_the_same_pages_sent_again_are(server: Running) -> None:
    first = pruned(server, pages=[PAGE], budget=300, keep=True)
    assert first["kept"] and first["tokens"] <= 300
    for budget in (80, 150, 600):
        again = pruned(server, kept=first["kept"], budget=budget)
        sent = pruned(server, pages=[PAGE], budget=budget)
        assert again["tokens"] <= budget and again["tokens_before"] == first["tokens_before"]
        assert "read" in sent["seconds"] and "read" not in again["seconds"], "nothing is read again"
        for name in ("output", "blocks", "documents", "tokens_before"):
            assert again[name] == sent[name], name
        assert again["kept"] == first["kept"] and sent["kept"] == "", "pages are kept only where that is asked for"
    other = pruned(server, kept=first["kept"], question="Where does the market of town 9 open?", format="markdown")
    assert "Town 9" in other["output"]


def test_the_same_evidence_is_also_written_in_further_formats(server: Running) -> None:
    found = pruned(server, pages=[PAGE], budget=200, also=["markdown", "text"])
    assert set(found["also"]) == {"markdown", "text"} and "## Town 17" in found["also"]["markdown"]["output"]
    assert "<" not in found["also"]["text"]["output"] and found["also"]["text"]["tokens"] < found["tokens"]
    assert pruned(server, pages=[PAGE], budget=200)["also"] == {}
    assert server.post("/v1/prune", {"question": WANTED, "pages": [PAGE], "also": ["pdf"]}).status_code == 400


def test_no_key_can_prune_the_kept_pages_of_another_key(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    from prunus.serve.keys import new_key
    from prunus.serve.state import ServerState, state_place

    state = ServerState(state_place(load_settings({"home": str(tmp_path / "home")})))
    keys = [new_key(state, name, ("read",)) for name in ("anna", "bert")]
    state.close()
    with running(tmp_path) as server:
        body: dict[str, Any] = {"question": WANTED, "budget": 100}
        anna, bert = ({"Authorization": f"Bearer {key}"} for key in keys)
        kept = server.post("/v1/prune", {**body, "pages": [PAGE], "keep": True}, **anna).json()["kept"]
        assert server.post("/v1/prune", {**body, "kept": kept}, **anna).status_code == 200
        assert server.post("/v1/prune", {**body, "kept": kept}, **bert).status_code == 404


def test_a_page_that_an_answer_cited_is_pruned_as_it_was_read(server: Running) -> None:
    answer = server.post("/v1/ask", {"question": WANTED, "pages": [PAGE], "keep": True}).json()
    named = {name: answer["citations"][0][name] for name in ("document", "snapshot")}
    found = pruned(server, snapshot=named, budget=100, keep=True)
    assert found["output"] == pruned(server, pages=[PAGE], budget=100)["output"]
    assert found["documents"][0]["title"] == "Towns" and found["documents"][0]["url"] == PAGE["url"]
    assert pruned(server, kept=found["kept"], budget=60)["tokens"] <= 60
    reply = server.post("/v1/prune", {"question": WANTED, "snapshot": {**named, "document": "other"}})
    assert reply.status_code == 404 and reply.json()["error"]["param"] == "snapshot"


def test_unknown_or_forgotten_pages_are_404_and_pages_and_kept_exclude_each_other(server: Running) -> None:
    reply = server.post("/v1/prune", {"question": QUESTION, "kept": "nothing"})
    assert reply.status_code == 404 and reply.json()["error"]["param"] == "kept"
    named = {"document": "x", "snapshot": "y"}
    for body in ({}, {"pages": []}, {"pages": [PAGE], "kept": "x"}, {"kept": "x", "snapshot": named}):
        reply = server.post("/v1/prune", {"question": QUESTION, **body})
        assert reply.status_code == 400 and "one of pages, kept and snapshot" in reply.json()["error"]["message"]


def test_the_outline_has_each_heading_with_the_first_block_below_it(server: Running) -> None:
    found = pruned(server, pages=[{"html": "<p>Before.</p>"}, PAGE], budget=100)
    outline = found["documents"][1]["outline"]
    assert [one["text"] for one in outline] == ["Towns", *(f"Town {n}" for n in range(1, 41))]
    assert {one["level"] for one in outline} == {1, 2} and found["documents"][0]["outline"] == []
    for heading in outline[1:]:
        assert f"{heading['text']} " in found["blocks"][heading["block"]]["text"] + " "
        assert found["blocks"][heading["block"]]["document"] == 1
    assert "outline" not in server.post("/v1/prune", {"question": WANTED, "pages": [PAGE]}).json()["documents"][0]


def test_pages_are_kept_for_their_key_for_ten_minutes_and_few_at_a_time() -> None:
    pytest.importorskip("fastapi")
    from prunus.serve.errors import RequestRefused
    from prunus.serve.page_cache import SECONDS, CachedPages, KeptPages

    now = 0.0
    pages = KeptPages(lambda: now)
    first = pages.keep(CachedPages("anna", Documents([])))
    assert pages.find(first, "anna").caller == "anna"
    with pytest.raises(RequestRefused):
        pages.find(first, "bert")
    later = [pages.keep(CachedPages("bert", Documents([]))) for _ in range(5)]
    with pytest.raises(RequestRefused):
        pages.find(later[0], "bert")
    assert pages.find(later[1], "bert") and pages.find(first, "anna"), "another key's pages stay"
    now = SECONDS - 1
    pages.find(first, "anna")
    now += SECONDS - 1
    pages.find(first, "anna")
    with pytest.raises(RequestRefused):
        pages.find(later[1], "bert")
    now += SECONDS + 1
    with pytest.raises(RequestRefused):
        pages.find(first, "anna")


def test_the_tree_is_walked_from_its_roots_down_to_sentences(server: Running, place: Path) -> None:
    store = Index.open(place / "towns", create=False, settings=load_settings({"home": str(place / "home")})).store
    seen: set[int] = set()
    todo: list[int | None] = [None]
    while todo:
        parent = todo.pop()
        start, total = 0, 1
        while start < total:
            query: dict[str, int] = {"start": start, "count": 7} | ({} if parent is None else {"parent": parent})
            found = server.http.get("/v1/indexes/towns/nodes", params=query).json()
            total, start = found["total"], start + 7
            for node in found["nodes"]:
                seen.add(node["id"])
                if node["children"]:
                    assert node["layer"] and not node["sentences"]
                    todo.append(node["id"])
                else:
                    assert " ".join(node["sentences"]).split() == node["text"].split() and node["document"]
    assert seen == set(store.view().ids.tolist())
    assert found["documents"] == 2 and sum(found["layers"]) == len(seen)


def test_a_question_gives_the_nodes_it_takes_with_their_paths_from_a_root(server: Running) -> None:
    for way in ("", "collapsed", "flat"):
        reply = server.post("/v1/indexes/towns/retrieved", {"question": WANTED, "budget": 300, "retrieval": way})
        assert reply.status_code == 200, reply.text
        found = reply.json()
        assert found["nodes"] and 0 < found["tokens"] <= 300
        scores = [node["score"] for node in found["nodes"]]
        assert scores == sorted(scores, reverse=True)
        for node in found["nodes"]:
            above: dict[str, int] = {}
            for step in node["path"]:
                reply = server.http.get("/v1/indexes/towns/nodes", params={**above, "start": step["place"], "count": 1})
                assert reply.json()["nodes"][0]["id"] == step["id"]
                above = {"parent": step["id"]}
            assert node["path"][-1]["id"] == node["id"]


def test_foreign_indexes_and_nodes_are_refused(server: Running) -> None:
    for path in ("nobody/nodes", "towns/nodes?parent=999999", "..%2Ftowns/nodes", "towns/nodes?count=0",
                 "towns/nodes?start=99999999999999999999", "towns/nodes?parent=-1"):  # fmt: skip
        assert server.http.get(f"/v1/indexes/{path}").status_code in (400, 404), path
    for body in ({"question": ""}, {"question": " "}, {"question": "x", "budget": 5000}, {"question": "x", "way": 1}):
        assert server.post("/v1/indexes/towns/retrieved", body).status_code == 400, body
    assert server.http.get("/v1/indexes/towns/nodes", params={"start": 10**6}).json()["nodes"] == []


def test_documents_are_told_without_the_folders_of_the_server(place: Path, server: Running) -> None:
    file = place / "lamp.txt"
    file.write_text("The lamp of the harbour was lit in 1871.", "utf-8")
    Index.open(place / "lamps", settings=load_settings({"home": str(place / "home")})).add(file)
    with running(place, indexes={"lamps": str(place / "lamps")}) as other:
        told = other.http.get("/v1/indexes/lamps/nodes").text
        assert "lamp.txt" in told and str(place) not in told
        told = other.post("/v1/indexes/lamps/retrieved", {"question": "lamp"}).text
        assert "lamp.txt" in told and str(place) not in told


def test_pruning_kept_pages_again_is_faster_than_sending_them_again(server: Running) -> None:
    large = {"html": PAGE["html"] * 20}

    def seconds(**body: Any) -> float:
        times = []
        for _ in range(3):
            started = time.perf_counter()
            pruned(server, budget=500, **body)
            times.append(time.perf_counter() - started)
        return min(times)

    kept = pruned(server, pages=[large], budget=500, keep=True)["kept"]
    assert seconds(kept=kept) < seconds(pages=[large])
