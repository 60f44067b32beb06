"""The shapes of other programs: their own clients get what they expect, and refusals that they can show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from tests.answer.world import World, world
from tests.extras import need
from tests.serve.running import BRIDGE, QUESTION, Running, running

from prunus.core.errors import BadInput
from prunus.serve.options import SHAPES, ServeOptions, serve_options
from prunus.serve.work import TooLong

pytestmark = pytest.mark.full

FERRY = (
    "<title>The ferry</title><nav><a href=/menu>Menu</a></nav><main><h1>Ferry</h1>"
    + "".join(f"<p>Note {number} is about ropes, tar and the care of old planks.</p>" for number in range(300))
    + "<p>The ferry costs 3 coins for a bicycle.</p></main>"
)
TOLL = "What does the ferry cost for a bicycle?"


@pytest.fixture(scope="module")
def web() -> Iterator[World]:
    with world() as found:
        found.pages = {"/bridge": BRIDGE, "/ferry": FERRY}
        found.hits = {
            "": [found.hit("/bridge", "The bridge", "A bridge."), found.hit("/gone"), found.hit("/ferry", "The ferry")]
        }
        yield found


@pytest.fixture(scope="module")
def server(web: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("shapes"), settings_for(web), shapes=SHAPES, pages=3, body_mb=1) as found:
        yield found


def settings_for(web: World) -> dict[str, Any]:
    port = urlsplit(web.url).port
    rules = {"allow_hosts": ("127.0.0.1",), "ports": (port,), "browser": "never", "retries": 0, "reranker": "none"}
    return {**rules, "search": f"searxng:{web.url}"}


def test_shapes_are_off_until_the_operator_names_them(tmp_path: Path) -> None:
    with running(tmp_path) as closed:
        for path in ("/md?url=x", "/r/x", "/s/x"):
            assert closed.http.get(path).status_code == 404
        for path in ("/v2/scrape", "/v2/search", "/v1/rerank", "/v2/rerank", "/tavily/search", "/openwebui/load"):
            assert closed.post(path, {}).status_code == 404
    assert serve_options({"shapes": ["all"]}).shapes == SHAPES
    assert serve_options({}, shapes=("jina,rerank", "jina")).shapes == ("jina", "rerank")
    with pytest.raises(BadInput, match="firecrawl"):
        ServeOptions(shapes=("firecrowl",))


# --- Firecrawl -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def firecrawl(server: Running) -> Any:
    return need("firecrawl").Firecrawl(api_key="any", api_url=server.url)


def test_firecrawl_scrapes_in_every_format_that_there_is(firecrawl: Any, web: World) -> None:
    asked = [{"type": "question", "question": TOLL}, {"type": "highlights", "query": TOLL}]
    page = firecrawl.scrape(f"{web.url}/ferry", formats=["markdown", "html", "rawHtml", "links", *asked])
    assert page.markdown.startswith("# Ferry") and "Menu" not in page.markdown
    assert "<p>The ferry costs 3 coins for a bicycle.</p>" in page.html and page.raw_html == FERRY
    assert page.links == [f"{web.url}/menu"]
    assert "3 coins for a bicycle" in page.answer and "[1]" in page.answer
    assert "3 coins for a bicycle" in page.highlights and len(page.highlights) < len(page.markdown) / 2
    assert (page.metadata.title, page.metadata.status_code) == ("The ferry", 200)
    assert page.metadata.source_url == f"{web.url}/ferry"
    whole = firecrawl.scrape(f"{web.url}/ferry", only_main_content=False)
    assert "Menu" in whole.markdown and whole.html is None


def test_firecrawl_searches_with_and_without_the_pages(firecrawl: Any, web: World) -> None:
    found = firecrawl.search("bridge", limit=2, tbs="qdr:w")
    assert [(hit.url, hit.title) for hit in found.web] == [
        (f"{web.url}/bridge", "The bridge"),
        (f"{web.url}/gone", "/gone"),
    ]
    assert web.searches[-1]["time_range"] == "week"
    pages = firecrawl.search("bridge", limit=3, scrape_options={"formats": ["markdown"]}).web
    assert pages[0].markdown.startswith("# Bridge") and pages[0].metadata.source_url == f"{web.url}/bridge"
    assert pages[1].markdown == "" and "404" in pages[1].metadata.error
    asked = {"formats": ["markdown", {"type": "highlights", "query": TOLL}]}
    ferry = firecrawl.search("ferry", limit=3, scrape_options=asked).web[2]
    assert "3 coins for a bicycle" in ferry.highlights and len(ferry.highlights) < len(ferry.markdown) / 2


def test_firecrawl_fills_a_schema(firecrawl: Any, web: World) -> None:
    need("jsonschema")
    fields = {"price": {"type": "string", "description": "what the ferry costs for a bicycle"}}
    schema = {"type": "object", "properties": fields}
    page = firecrawl.scrape(f"{web.url}/ferry", formats=[{"type": "json", "schema": schema, "prompt": "ferry"}])
    assert "3 coins" in page.json["price"] and page.markdown is None


def test_firecrawl_maps_a_site(firecrawl: Any, web: World) -> None:
    found = [link.url for link in firecrawl.map(f"{web.url}/ferry", limit=10).links]
    assert found == [f"{web.url}/ferry", f"{web.url}/menu"]
    assert len(firecrawl.map(f"{web.url}/ferry", limit=1).links) == 1


def test_firecrawl_crawls_a_site(firecrawl: Any, server: Running, tmp_path: Path) -> None:
    from firecrawl.v2.utils.error_handler import BadRequestError, FirecrawlError

    links = "".join(f"<a href=/docs/{name}>{name}</a>" for name in ("a", "b", "old/c", "gone"))
    with world() as site:
        site.pages = {f"/docs/{name}": f"<h1>Page {name}</h1><p>Words of {name}.</p>" for name in ("a", "b", "old/c")}
        site.pages |= {"/docs/": f"<h1>Docs</h1><p>Choose a page.</p>{links}<a href=/blog>blog</a>", "/blog": "<p>b"}
        rules = settings_for(site)
        with running(tmp_path, rules, shapes=("firecrawl",)) as here:
            client = need("firecrawl").Firecrawl(api_key="any", api_url=here.url)
            job = client.crawl(
                f"{site.url}/docs/", limit=10, exclude_paths=["docs/old/.*"], poll_interval=1,
                scrape_options={"formats": ["markdown", "links"]},
            )  # fmt: skip
            assert job.status == "completed" and job.completed == 3 and job.total == 4
            assert sorted(page.metadata.source_url for page in job.data) == [
                f"{site.url}/docs/{n}" for n in ("", "a", "b")
            ]
            assert {page.markdown.splitlines()[0] for page in job.data} == {"# Docs", "# Page a", "# Page b"}
            [failed] = client.get_crawl_errors(job.id).errors
            assert failed.url == f"{site.url}/docs/gone" and "404" in failed.error
            assert client.cancel_crawl(job.id) is False, "it has ended already"

            site.pages["/docs/"] = 30.0  # a page that does not come
            started = client.start_crawl(f"{site.url}/docs/")
            assert client.get_crawl_status(started.id).status == "scraping"
            assert client.cancel_crawl(started.id) is True
            assert client.get_crawl_status(started.id).status == "cancelled"
            with pytest.raises(FirecrawlError, match="no such crawl"):
                client.get_crawl_status("0" * 32)
            for given in ({"include_paths": ["(a|b)+"]}, {"prompt": "all"}, {"ignore_robots_txt": True}):
                with pytest.raises(BadRequestError):
                    client.start_crawl(f"{site.url}/docs/", **given)


def test_a_page_that_takes_too_long_ends_no_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prunus.serve.shapes.reading import LoadedPage

    whole = LoadedPage.written

    def written(self: LoadedPage, *args: Any, **rest: Any) -> str:
        if self.address.endswith("/slow"):
            raise TooLong(1.0)
        return whole(self, *args, **rest)

    monkeypatch.setattr(LoadedPage, "written", written)
    with world() as site:
        site.pages = {"/": "<h1>Start</h1><a href=/slow>slow</a> <a href=/fine>fine</a>"}
        site.pages |= {"/slow": "<h1>Slow</h1><p>Words.</p>", "/fine": "<h1>Fine</h1><p>Words.</p>"}
        with running(tmp_path, settings_for(site), shapes=("firecrawl",)) as here:
            client = need("firecrawl").Firecrawl(api_key="any", api_url=here.url)
            job = client.crawl(f"{site.url}/", poll_interval=1)
            assert job.status == "completed" and job.completed == 2
            [failed] = client.get_crawl_errors(job.id).errors
            assert failed.url == f"{site.url}/slow" and failed.code == "OUTSIDE_FAILED"


def test_a_key_sees_and_runs_its_own_crawls_alone(web: World, tmp_path: Path) -> None:
    from prunus.serve.keys import new_key
    from prunus.serve.state import ServerState

    state = ServerState(str(tmp_path / "home" / "serve.db"))
    anna, ben = (f"Bearer {new_key(state, name, ['read'])}" for name in ("anna", "ben"))
    state.close()
    with world() as slow:
        slow.pages = {"/": 30.0}
        with running(tmp_path, settings_for(slow), shapes=("firecrawl",)) as server:
            started = [server.post("/v2/crawl", {"url": f"{slow.url}/"}, authorization=anna) for _ in range(3)]
            assert [reply.status_code for reply in started] == [200, 200, 503]
            place = f"/v2/crawl/{started[0].json()['id']}"
            assert server.http.get(place, headers={"authorization": ben}).status_code == 404
            assert server.http.delete(place, headers={"authorization": ben}).status_code == 404
            assert server.http.get(place, headers={"authorization": anna}).json()["status"] == "scraping"
            assert server.http.delete(place, headers={"authorization": anna}).status_code == 200
            assert server.post("/v2/crawl", {"url": f"{slow.url}/"}, authorization=anna).status_code == 200


def test_firecrawl_is_refused_by_name(firecrawl: Any, web: World) -> None:
    from firecrawl.v2.utils.error_handler import BadRequestError, FirecrawlError

    for given, said in (
        ({"formats": ["screenshot"]}, "no 'screenshot'"),
        ({"mobile": True}, "mobile"),
        ({"headers": {"cookie": "x"}}, "headers"),
        ({"actions": [{"type": "wait", "milliseconds": 9}]}, "actions"),
    ):
        with pytest.raises(BadRequestError, match=said):
            firecrawl.scrape(f"{web.url}/ferry", **given)
    question = {"formats": [{"type": "question", "question": TOLL}]}
    for given, said in (
        ({"tbs": "qdr:h"}, "tbs"),
        ({"scrape_options": question}, "no 'question'"),
        ({"sources": ["images"]}, "no 'images'"),
    ):
        with pytest.raises(BadRequestError, match=said):
            firecrawl.search("bridge", **given)
    with pytest.raises(BadRequestError, match="zeroDataRetention"):
        firecrawl.start_crawl(f"{web.url}/ferry", zero_data_retention=True)
    with pytest.raises(BadRequestError, match="private address"):
        firecrawl.scrape("http://10.0.0.1/")
    before = web.requests.count("/gone")
    with pytest.raises(FirecrawlError, match="404"):
        firecrawl.scrape(f"{web.url}/gone")
    assert web.requests.count("/gone") == before + 1, "the client does not ask again"


# --- Tavily ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tavily(server: Running) -> Iterator[Any]:
    with need("tavily").TavilyClient(api_key="any", api_base_url=f"{server.url}/tavily") as found:
        yield found


def test_tavily_gets_the_evidence_of_each_page(tavily: Any, web: World) -> None:
    reply = tavily.search(TOLL, max_results=3, include_answer=True, include_raw_content="markdown", time_range="w")
    best, *others = reply["results"]
    assert best["url"] == f"{web.url}/ferry" and "3 coins for a bicycle" in best["content"] and best["score"] > 0.5
    assert len(best["content"]) < len(best["raw_content"]) / 2 and best["raw_content"].startswith("# Ferry")
    assert "3 coins" in reply["answer"] and reply["query"] == TOLL
    missing = next(result for result in others if result["url"].endswith("/gone"))
    assert (missing["content"], missing["score"], missing["raw_content"]) == ("", 0.0, None)
    before = len(web.requests)
    quick = tavily.search(TOLL, search_depth="fast", max_results=1)
    assert quick["results"][0]["content"] == "A bridge." and len(web.requests) == before + 1


def test_tavily_answers_nothing_where_no_page_was_read(tmp_path: Path) -> None:
    with world() as empty:
        empty.hits = {"": [empty.hit("/gone", "Ferry", "The ferry costs 3 coins.")]}
        with running(tmp_path, settings_for(empty), shapes=("tavily",)) as here:
            reply = here.post("/tavily/search", {"query": TOLL, "include_answer": True}).json()
    assert reply["answer"] is None and reply["results"][0]["content"] == "The ferry costs 3 coins."


def test_tavily_extracts_pages_and_tells_which_failed(tavily: Any, web: World) -> None:
    reply = tavily.extract([f"{web.url}/ferry", f"{web.url}/gone"], format="text")
    [result], [failed] = reply["results"], reply["failed_results"]
    assert "The ferry costs 3 coins" in result["raw_content"] and "# " not in result["raw_content"]
    assert failed["url"] == f"{web.url}/gone" and "404" in failed["error"]
    asked = tavily.extract(f"{web.url}/ferry", query=TOLL, chunks_per_source=1)["results"][0]["raw_content"]
    assert "3 coins for a bicycle" in asked and len(asked) < len(result["raw_content"]) / 2


def test_tavily_shows_why_it_was_refused(tavily: Any) -> None:
    from tavily.errors import BadRequestError

    for given in (
        {"include_images": True}, {"topic": "finance"}, {"auto_parameters": True}, {"country": "united kingdom"},
        {"max_results": 0},
    ):  # fmt: skip
        with pytest.raises(BadRequestError, match=next(iter(given))):
            tavily.search("bridge", **given)
    with pytest.raises(BadRequestError, match="no address"):
        tavily.extract("nonsense")
    with pytest.raises(BadRequestError, match="takes 3 at once"):
        tavily.extract(["https://example.org/"] * 4)


# --- rerankers -------------------------------------------------------------------------------------

TEXTS = ["Bees dance before their queen.", "The bridge opened in 1932.", "A bridge is long."]


def test_cohere_orders_documents_with_both_versions_of_its_interface(server: Running) -> None:
    cohere = need("cohere")
    with httpx.Client(trust_env=False) as http:
        known = {"api_key": "any", "base_url": server.url, "httpx_client": http}
        second = cohere.ClientV2(**known).rerank(model="m", query=QUESTION, documents=TEXTS, top_n=2)
        assert [result.index for result in second.results] == [1, 2]
        assert 1 >= second.results[0].relevance_score > second.results[1].relevance_score >= 0
        first = cohere.Client(**known).rerank(model="m", query=QUESTION, documents=TEXTS, return_documents=True)
        assert first.results[0].document.text == TEXTS[1]
        with pytest.raises(cohere.errors.BadRequestError):
            cohere.ClientV2(**known).rerank(model="m", query="", documents=TEXTS)


def test_documents_of_jina_may_be_objects_and_come_back_where_that_is_asked(server: Running) -> None:
    body = {"model": "jina-reranker-v2", "query": QUESTION, "documents": [{"text": text} for text in TEXTS]}
    reply = server.post("/v1/rerank", {**body, "return_documents": True}).json()
    assert reply["results"][0]["index"] == 1 and reply["usage"]["total_tokens"] > 10
    assert reply["results"][0]["document"] == {"text": TEXTS[1]}
    assert "document" not in server.post("/v1/rerank", body).json()["results"][0]
    refused = server.post("/v1/rerank", {**body, "images": []})
    assert refused.status_code == 400 and "images" in refused.json()["message"]


def test_the_own_reranker_gives_chances(web: World, tmp_path: Path) -> None:
    need("onnxruntime")
    with running(tmp_path, {**settings_for(web), "reranker": ""}, shapes=("rerank",)) as server:
        body = {"query": QUESTION, "documents": TEXTS, "top_n": 3}
        results = server.post("/v2/rerank", body).json()["results"]
    scores = {result["index"]: result["relevance_score"] for result in results}
    assert scores[1] > 0.7 and scores[0] < 0.05


# --- Open WebUI: its requests as its loaders send them ------------------------------------------------


def test_open_webui_loads_pages_documents_and_hits(server: Running, web: World) -> None:
    addresses = [f"{web.url}/ferry", f"{web.url}/gone"]
    [page] = server.post("/openwebui/load", {"urls": addresses}, authorization="Bearer any").json()
    assert page["page_content"].startswith("# Ferry") and "Menu" not in page["page_content"]
    assert page["metadata"] == {"source": addresses[0], "title": "The ferry"}
    none = server.post("/openwebui/load", {"urls": addresses[1:]})
    assert none.status_code == 502 and "404" in none.json()["error"]["message"]

    headers = {"content-type": "text/csv", "x-filename": quote("the tolls.csv")}
    document = server.http.put("/openwebui/process", content=b"Class,Toll\ncar,4\n", headers=headers).json()
    assert "|car|4|" in document["page_content"] and document["metadata"]["source"] == "the tolls.csv"
    unknown = {"content-type": "application/octet-stream", "x-filename": "..%2F..%2Fbridge.html"}
    document = server.http.put("/openwebui/process", content=BRIDGE.encode(), headers=unknown).json()
    assert "1932" in document["page_content"] and document["metadata"]["source"] == "bridge.html"
    assert server.http.put("/openwebui/process", content=b"").status_code == 400
    assert server.http.put("/openwebui/process", content=b"x" * 2**21).status_code == 413

    hits = server.post("/openwebui/search", {"query": "bridge", "count": 1}).json()
    assert hits == [{"link": f"{web.url}/bridge", "title": "The bridge", "snippet": "A bridge."}]


# --- Jina's Reader ---------------------------------------------------------------------------------


def test_jina_reads_a_page_as_text_and_as_json(server: Running, web: World) -> None:
    text = server.http.get(f"/r/{web.url}/ferry", headers={"x-with-links-summary": "true"}).text
    assert text.startswith(f"Title: The ferry\n\nURL Source: {web.url}/ferry\n\nMarkdown Content:\n# Ferry")
    assert text.endswith(f"Links/Buttons:\n- [Menu]({web.url}/menu)")
    reply = server.http.get(f"/r/{web.url}/bridge?x=1&y=%2F", headers={"accept": "application/json"}).json()
    assert reply["code"] == 200 and reply["data"]["title"] == "The bridge" and reply["data"]["usage"]["tokens"] > 20
    assert web.requests[-1] == "/bridge?x=1&y=%2F"
    merged = server.http.get(f"/r/{web.url.replace('://', ':/')}/bridge")  # some proxies make one slash of two
    assert merged.status_code == 200
    posted = server.post("/r/", {"url": f"{web.url}/bridge"}, **{"x-return-format": "text"}).text
    assert "Content:\nBridge\nThe bridge opened" in posted


def test_a_budget_of_jina_is_kept_or_refused(server: Running, web: World) -> None:
    refused = server.http.get(f"/r/{web.url}/ferry", headers={"x-token-budget": "100"})
    assert refused.status_code == 413 and "x-question" in refused.json()["readableMessage"]
    asked = {"x-token-budget": "100", "x-question": quote(TOLL), "accept": "application/json"}
    data = server.http.get(f"/r/{web.url}/ferry", headers=asked).json()["data"]
    assert data["usage"]["tokens"] <= 100 and "3 coins for a bicycle" in data["content"]
    for name, value in (
        ("x-target-selector", "p"), ("x-return-format", "pageshot"), ("x-token-budget", "few"),
        ("x-md-link-style", "referenced"), ("x-retain-images", "alt"),
    ):  # fmt: skip
        reply = server.http.get(f"/r/{web.url}/ferry", headers={name: value})
        assert reply.status_code == 400 and name in reply.json()["message"]


def test_jina_searches(server: Running, web: World) -> None:
    text = server.http.get("/s/when%20did%20it%20open").text
    assert text.startswith("[1] Title: The bridge") and "[2] Title: /gone" in text and "[3] Markdown Content:" in text
    assert web.searches[-1]["q"] == "when did it open"
    bare = {"accept": "application/json", "x-respond-with": "no-content"}
    before = len(web.requests)
    reply = server.post("/s/", {"q": "bridge"}, **bare).json()
    assert [hit["content"] for hit in reply["data"]] == ["", "", ""] and len(web.requests) == before + 1


# --- Markdown --------------------------------------------------------------------------------------


def test_a_page_as_markdown_says_its_tokens(server: Running, web: World) -> None:
    page = server.http.get("/md", params={"url": f"{web.url}/ferry"})
    assert page.headers["content-type"].startswith("text/markdown") and page.text.startswith("# Ferry")
    asked = server.http.get("/md", params={"url": f"{web.url}/ferry", "question": TOLL, "budget": 60})
    assert int(asked.headers["x-markdown-tokens"]) <= 60 < int(page.headers["x-markdown-tokens"])
    assert "3 coins for a bicycle" in asked.text
    for wrong in ({"url": "x"}, {}, {"url": f"{web.url}/ferry", "budget": 60}, {"url": "http://169.254.169.254/"}):
        assert server.http.get("/md", params=wrong).status_code == 400


# --- who may -----------------------------------------------------------------------------------------


def test_keys_scopes_and_foreign_pages_count_as_everywhere(web: World, tmp_path: Path) -> None:
    from prunus.serve.keys import new_key
    from prunus.serve.state import ServerState

    state = ServerState(str(tmp_path / "home" / "serve.db"))
    keys = {scope: new_key(state, scope, [scope]) for scope in ("read", "search", "ask")}
    state.close()
    scrape = {"url": f"{web.url}/bridge"}
    question = {**scrape, "formats": [{"type": "question", "question": QUESTION}]}
    calls: list[tuple[str, str, dict[str, Any], int, int]] = [  # path, body, and the status with read and with search
        ("POST", "/v2/scrape", scrape, 200, 403),
        ("POST", "/v2/scrape", question, 403, 403),
        ("POST", "/v2/map", scrape, 200, 403),
        ("POST", "/v2/search", {"query": "x"}, 403, 200),
        ("POST", "/tavily/extract", {"urls": scrape["url"]}, 200, 403),
        ("POST", "/tavily/search", {"query": "x"}, 403, 200),
        ("POST", "/tavily/search", {"query": "x", "include_answer": True}, 403, 403),
        ("POST", "/v1/rerank", {"query": "x", "documents": ["y"]}, 200, 403),
        ("POST", "/openwebui/load", {"urls": [scrape["url"]]}, 200, 403),
        ("POST", "/openwebui/search", {"query": "x"}, 403, 200),
        ("GET", f"/r/{scrape['url']}", {}, 200, 403),
        ("GET", "/s/x", {}, 403, 200),
        ("GET", f"/md?url={quote(scrape['url'], safe='')}", {}, 200, 403),
    ]
    with running(tmp_path, settings_for(web), shapes=SHAPES) as server:

        def status(method: str, path: str, body: dict[str, Any], key: str) -> int:
            headers = {"authorization": f"Bearer {key}"} if key else {}
            return server.http.request(method, path, json=body or None, headers=headers).status_code

        for method, path, body, with_read, with_search in calls:
            assert status(method, path, body, "") == status(method, path, body, "wrong") == 401
            assert status(method, path, body, keys["read"]) == with_read, path
            assert status(method, path, body, keys["search"]) == with_search, path
        foreign = {"sec-fetch-site": "cross-site", "authorization": f"Bearer {keys['read']}"}
        assert server.http.get(f"/r/{scrape['url']}", headers=foreign).status_code == 403
        assert server.http.get("/", headers=foreign).status_code == 200


def test_errors_have_the_form_that_the_clients_of_a_shape_read(server: Running) -> None:
    found = SimpleNamespace(
        firecrawl=server.post("/v2/scrape", {}).json(),
        tavily=server.post("/tavily/search", {}).json(),
        cohere=server.post("/v2/rerank", {}).json(),
        jina=server.http.get("/r/x").json(),
        own=server.post("/v1/clean", {}).json(),
    )
    assert found.firecrawl == {"success": False, "error": "url: Field required", "code": "BAD_INPUT"}
    assert found.tavily == {"detail": {"error": "query: Field required"}}
    assert "Field required" in found.cohere["message"]
    assert found.jina["code"] == 400 and "no address" in found.jina["message"]
    assert found.own["error"]["type"] == "bad_input"
