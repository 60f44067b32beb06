"""Kept pages: whose they are, how they are shown, and what is left of them; and the files of the page."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extras import need
from tests.index.test_store_contract import server as postgres  # noqa: F401
from tests.serve.running import BRIDGE, QUESTION, Running, events_of, running
from tests.serve.test_serve_guard import key_for

import prunus
from prunus.core.settings import load_settings

pytestmark = pytest.mark.full


def asked(server: Running, page: str = BRIDGE, key: str = "", **body: Any) -> dict[str, Any]:
    """Ask about a page, and return the answer."""
    body = {"question": QUESTION, "pages": [{"html": page}], "keep": True, **body}
    reply = server.post("/v1/ask", body, **bearer(key))
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def place(citation: dict[str, Any]) -> dict[str, Any]:
    """Return the body that shows a citation."""
    span = {"start": citation["span"]["start"], "end": citation["span"]["end"]}
    return {"document": citation["document"], "snapshot": citation["snapshot"], "places": [span]}


def show(server: Running, citation: dict[str, Any], key: str = "") -> Any:
    return server.post("/v1/snapshots/show", place(citation), **bearer(key))


def opened_state(folder: Path) -> Any:
    need("fastapi")
    from prunus.serve.mask import Mask
    from prunus.serve.snapshots import CitedPages
    from prunus.serve.state import ServerState

    return CitedPages(ServerState(str(folder / "serve.db")), Mask(load_settings({"home": str(folder)})))


def tree_of(html: str) -> Any:
    [tree] = prunus.read([html]).trees
    return tree


def test_the_page_of_a_citation_is_shown_with_its_quote_marked_and_nothing_of_its_markup(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        [citation] = asked(server)["citations"][:1]
        address = show(server, citation).json()["address"]
        page = server.http.get("/" + address)
        assert (
            page.status_code == 200 and '<mark class="chosen" id="quote">The bridge opened in 1932.</mark>' in page.text
        )
        policy = page.headers["content-security-policy"]
        assert policy.startswith("sandbox; default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
        assert page.headers["x-frame-options"] == "SAMEORIGIN" and page.headers["cache-control"] == "private, no-store"
        [known] = server.http.get("/v1/snapshots").json()["snapshots"]
        assert known["title"] == "The bridge" and known["document"] == citation["document"]


def test_pages_are_kept_only_where_a_request_says_so(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        [citation] = asked(server, keep=False)["citations"][:1]
        assert show(server, citation).status_code == 404
        assert server.http.get("/v1/snapshots").json() == {"snapshots": []}


def test_the_answer_is_the_same_with_and_without_keeping(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        one, two = (asked(server, keep=keep) for keep in (False, True))
        assert {**one, "usage": 0, "spent": 0} == {**two, "usage": 0, "spent": 0}


def test_another_key_cannot_read_a_page(tmp_path: Path) -> None:
    anna, ben = key_for(tmp_path, "anna"), key_for(tmp_path, "ben")
    with running(tmp_path) as server:
        [citation] = asked(server, key=anna)["citations"][:1]
        assert show(server, citation).status_code == 401
        assert show(server, citation, ben).status_code == 404
        assert server.http.get("/v1/snapshots", headers=bearer(ben)).json() == {"snapshots": []}
        assert show(server, citation, anna).status_code == 200


def test_a_ticket_opens_its_page_alone_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = opened_state(tmp_path)
    one, two = (kept.put("anna", tree_of(f"<p>{text}</p>")) for text in ("first page", "second page"))
    ticket = kept.ticket("anna", one, [(0, 5)])
    assert "first" in kept.shown(ticket)
    text, _, seal = ticket.partition(".")
    told = json.loads(base64.urlsafe_b64decode(text + "=="))
    for changed in (
        [told[0], two, *told[2:]],
        ["ben", *told[1:]],
        [*told[:2], told[2] + 10**6, told[3]],
        [*told[:3], []],
    ):
        forged = base64.urlsafe_b64encode(json.dumps(changed).encode()).decode().rstrip("=")
        assert kept.shown(f"{forged}.{seal}") is None
    strange = ("[" * 5_000, '["\\u0000", "x", 1, []]', f'["\\ud800", "{one}", 1, []]', "null", "[]", "[1, 2, 3, 4]")
    odd = [base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") + ".x" for text in strange]
    for bad in ("", ".", "x", "é.é", f"{text}.", f"{text}.é", *odd):
        assert kept.shown(bad) is None
    assert kept.ticket("ben", one, []) == "" and kept.ticket("anna", "no", []) == ""
    later = time.time() + 601
    monkeypatch.setattr("prunus.serve.snapshots.time.time", lambda: later)
    assert kept.shown(ticket) is None


def test_pages_are_bounded_in_number_bytes_and_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = opened_state(tmp_path)
    clock = [time.time()]
    monkeypatch.setattr("prunus.serve.snapshots.time.time", lambda: clock[0])
    monkeypatch.setattr("prunus.serve.snapshots.MOST", 3)
    ids = []
    for number in range(5):
        clock[0] += 1
        ids.append(kept.put("anna", tree_of(f"<p>page {number}</p>")))
    assert [one.id for one in kept.list("anna")] == ids[:1:-1]
    assert kept.put("ben", tree_of("<p>page 0</p>")) == ids[0], "bounds are those of one key"
    assert len(kept.list("anna")) == 3
    monkeypatch.setattr("prunus.serve.snapshots.MOST_BYTES", 1)
    last = kept.put("anna", tree_of("<p>page 9</p>"))
    assert [one.id for one in kept.list("anna")] == [last]
    monkeypatch.setattr("prunus.serve.snapshots.LARGEST", 1)
    assert kept.put("anna", tree_of("<p>too large</p>")) == ""
    monkeypatch.setattr("prunus.serve.snapshots.LARGEST", 10**6)
    clock[0] += 8 * 86_400
    kept.put("ben", tree_of("<p>a week later</p>"))
    assert kept.list("anna") == [], "old pages go, whoever asks next"


def test_a_page_that_is_kept_reads_as_it_was_read(tmp_path: Path) -> None:
    kept = opened_state(tmp_path)
    notes = "<p>It cost 5,000<sup><a href=#n1>1</a></sup> and <a role=doc-noteref href=#n2>2</a> 10<sup>9</sup>.</p>"
    page = tree_of(
        BRIDGE + notes + "<ol start=5><li>five</ol><pre>a\n  b</pre><p>x<b>y</b> &lt;i&gt; <img alt=seen src=x></p>"
    )
    again = kept.get("anna", kept.put("anna", page))
    assert again.canonical == page.canonical and again.tag == page.tag and list(again.parent) == list(page.parent)
    assert (again.document, again.snapshot, again.title) == (page.document, page.snapshot, page.title)
    assert {value for attrs in again.attrs for value in (attrs or {}).values()} <= {"5", "#", "doc-noteref"}
    assert kept.get("anna", "no") is None and kept.get("ben", kept.list("anna")[0].id) is None


HOSTILE = st.text(st.sampled_from("<>\"'&=/ \n[]()!-abcsvgimgonerrorscriptx\u202e\x00"), max_size=120)


@given(HOSTILE, st.lists(st.tuples(st.integers(-5, 130), st.integers(-5, 130)), max_size=6))
@settings(max_examples=150, deadline=None)
def test_what_is_shown_has_only_listed_tags_and_the_words_of_the_page(text: str, spans: list[tuple[int, int]]) -> None:
    need("fastapi")
    from html.parser import HTMLParser

    from prunus.serve.snapshots import _EMPTY, _SHOWN, write_snapshot

    tree = tree_of(f"<title>{text}</title><p>word {text}</p><table><tr><td>a<td>b {text}</table>")
    tree.title = text
    seen: list[str] = []
    marked: list[str] = []

    class Check(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            assert tag in _SHOWN | _EMPTY | {"html", "meta", "title", "style", "body", "mark", "div", "span"}
            assert {name for name, _ in attrs} <= {
                "lang",
                "charset",
                "class",
                "id",
                "colspan",
                "rowspan",
                "start",
                "value",
            }
            marked.append(tag)

        def handle_endtag(self, tag: str) -> None:
            marked.append("/" + tag)

        def handle_data(self, data: str) -> None:
            seen.append(data)

    html = write_snapshot(tree, spans)
    check = Check()
    check.feed(html.partition("<body>")[2])
    check.close()
    assert "".join("".join(seen).split()) == "".join(tree.canonical.split())
    assert marked.count("mark") == marked.count("/mark") and html.count('id="quote"') <= 1


def test_pages_of_an_index_are_kept_too(tmp_path: Path) -> None:
    (tmp_path / "town.html").write_text(BRIDGE, "utf-8")
    prunus.Index.open(tmp_path / "made").add(tmp_path / "town.html")
    with running(tmp_path, indexes={"town": str(tmp_path / "made")}) as server:
        answer = asked(server, pages=[], indexes=["town"])
        citation = next(one for one in answer["citations"] if one["found"])
        page = server.http.get("/" + show(server, citation).json()["address"])
        assert f'id="quote">{citation["quote"]}</mark>' in page.text


def test_pages_are_shared_through_postgresql(postgres: str, tmp_path: Path) -> None:  # noqa: F811
    need("psycopg")
    place_ = {"serve_state": f"postgres:{postgres}"}
    with running(tmp_path / "one", place_) as one, running(tmp_path / "two", place_) as two:
        [citation] = asked(one)["citations"][:1]
        address = show(two, citation).json()["address"]
        assert "The bridge opened in 1932." in one.http.get("/" + address).text


def test_a_state_that_cannot_be_written_does_not_cost_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("fastapi")
    from prunus.core.errors import OutsideFailed
    from prunus.serve.snapshots import CitedPages

    def broken(*_: Any) -> str:
        raise OutsideFailed("no disk", subject="state")

    monkeypatch.setattr(CitedPages, "put", broken)
    with running(tmp_path) as server:
        assert "1932" in asked(server)["text"]


def test_the_files_of_the_page_need_no_key_and_let_a_browser_run_only_them(tmp_path: Path) -> None:
    key_for(tmp_path, "anna")
    with running(tmp_path) as server:
        page = server.http.get("/")
        assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert page.headers["x-frame-options"] == "DENY" and page.headers["referrer-policy"] == "no-referrer"
        assert not re.search(r"<script>|\bstyle=|<style|\son\w+=", page.text), "nothing is inline"
        script = server.http.get("/page/ask.js")
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        again = server.http.get("/page/ask.js", headers={"if-none-match": script.headers["etag"]})
        assert again.status_code == 304 and again.content == b""
        for path in (
            "/page/../app.py",
            "/page/..%2fapp.py",
            "/page/__init__.py",
            "/page/",
            "/page/snapshot/x",
            "/page/none.js",
        ):
            assert server.http.get(path).status_code in (401, 404), path
        assert server.http.get("/v1/choices").status_code == 401 and server.http.get("/v1/snapshots").status_code == 401


def test_every_file_of_the_page_is_served_and_none_uses_an_unsafe_way(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.page import files

    folder = Path(files.__file__).parent / "static"
    assert {file.name for file in folder.iterdir()} == {"index.html", *files._FILES}
    for file in folder.glob("*.js"):
        source = file.read_text("utf-8")
        for unsafe in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "eval(",
            "new Function",
            "document.write",
            "localStorage",
            "srcdoc",
        ):
            assert unsafe not in source, (file.name, unsafe)


def test_a_client_learns_what_it_may_choose(tmp_path: Path) -> None:
    key = key_for(tmp_path, "anna", "read")
    with running(tmp_path, fetch=False, budget=9_000) as server:
        choices = server.http.get("/v1/choices", headers=bearer(key)).json()
        assert choices["fetch"] is False and choices["search"] is False and choices["model"] is False
        assert choices["budget"] == 9_000 and choices["indexes"] == []


def test_a_streamed_answer_keeps_its_pages_before_its_end(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        body = {"question": QUESTION, "pages": [{"html": BRIDGE}], "keep": True, "stream": True}
        last = events_of(server.post("/v1/ask", body).text)[-1]
        assert last[0] == "done"
        assert show(server, json.loads(last[1])["answer"]["citations"][0]).status_code == 200
