"""Indexes that clients make: who may make, see, fill, ask, change and delete which."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.extras import need
from tests.serve.filling import QUESTION, TRAIN, ended, key_of, notes
from tests.serve.running import BRIDGE, Running, events_of, running

import prunus
from prunus.core.errors import BadInput
from prunus.core.settings import load_settings

pytestmark = pytest.mark.full

Head = dict[str, str]


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, Head]:
    need("fastapi")
    need("python_multipart")
    state = str(tmp_path / "home" / "serve.db")
    return {
        "anna": key_of(state, "anna"),
        "bert": key_of(state, "bert"),
        "asker": key_of(state, "asker", "ask"),
        "filler": key_of(state, "filler", "index"),
    }


@pytest.fixture
def server(tmp_path: Path, keys: dict[str, Head]) -> Iterator[Running]:
    prunus.Index.open(tmp_path / "town").add({"bridge": BRIDGE})
    prunus.Index.open(tmp_path / "shared").add({"bridge": BRIDGE})
    with running(
        tmp_path,
        indexes={"town": str(tmp_path / "town"), "shared": str(tmp_path / "shared")},
        writable=("shared",),
        index_home=str(tmp_path / "made"),
    ) as found:
        yield found


def filled(server: Running, head: Head, name: str, documents: Any) -> dict[str, Any]:
    """Make an index with documents; return the job that filled it."""
    assert server.post("/v1/indexes", {"name": name}, **head).status_code == 201
    reply = server.post(f"/v1/indexes/{name}/documents", {"documents": documents}, **head)
    assert reply.status_code == 202 and reply.headers["location"] == f"/v1/jobs/{reply.json()['id']}", reply.text
    return ended(server.http, reply.json()["id"], head)


def test_an_index_is_made_filled_asked_shrunk_and_deleted(
    server: Running, keys: dict[str, Head], tmp_path: Path
) -> None:
    anna, http = keys["anna"], server.http
    job = filled(server, anna, "trips", [{"id": "night", "html": TRAIN}, *notes(3)])
    assert (job["state"], job["of"], job["done"], job["added"], job["failed"]) == ("done", 4, 4, 4, 0)
    assert job["documents"][0] == {"id": "night", "fate": "added", "failure": ""}

    info = http.get("/v1/indexes/trips", headers=anna).json()
    assert info["own"] and info["writable"] and info["documents"] == 4 and info["bytes"] > 0 and info["nodes"][0] >= 4
    listed = http.get("/v1/indexes/trips/documents", params={"offset": 1, "limit": 2}, headers=anna).json()
    assert listed["total"] == 4 and [each["id"] for each in listed["documents"]] == ["note 0", "note 1"]

    asked = server.post("/v1/indexes/trips/ask", {"question": QUESTION}, **anna).json()
    assert asked["citations"][0]["found"] and "second carriage" in asked["citations"][0]["quote"]
    assert server.post("/v1/ask", {"question": QUESTION, "indexes": ["trips"]}, **anna).json()["text"] == asked["text"]
    only = {"question": QUESTION, "documents": ["note*"], "min_confidence": 0}
    others = server.post("/v1/indexes/trips/ask", only, **anna).json()["citations"]
    assert others and all(each["document"].startswith("note") for each in others)
    nodes = server.post("/v1/indexes/trips/retrieved", {"question": QUESTION, "documents": ["night"]}, **anna).json()
    assert {each["document"] for each in nodes["nodes"]} == {"night"}
    for field, value, said in (("since", "soon", "is no time"), ("max_age", "7d", "was fetched since")):
        refused = server.post("/v1/indexes/trips/ask", {"question": QUESTION, field: value}, **anna)
        assert refused.status_code == 400 and said in refused.json()["error"]["message"], field
    page = {"question": QUESTION, "pages": [{"html": TRAIN}], "since": "2026"}
    assert "name one in indexes" in server.post("/v1/ask", page, **anna).json()["error"]["message"]
    streamed = events_of(server.post("/v1/indexes/trips/ask", {"question": QUESTION, "stream": True}, **anna).text)
    assert streamed[-1][0] == "done" and json.loads(streamed[-1][1])["answer"]["text"] == asked["text"]
    chat = {"model": "prunus-index:trips", "messages": [{"role": "user", "content": QUESTION}]}
    assert "second carriage" in server.post("/v1/chat/completions", chat, **anna).text
    assert "second carriage" in server.post("/v1/responses", {"model": chat["model"], "input": QUESTION}, **anna).text

    again = server.post("/v1/indexes/trips/documents", {"documents": [{"id": "night", "html": TRAIN}]}, **anna)
    assert ended(http, again.json()["id"], anna)["unchanged"] == 1
    gone = http.delete("/v1/indexes/trips/documents", params={"id": ["night", "nothing"]}, headers=anna)
    assert gone.status_code == 202
    fates = ended(http, gone.json()["id"], anna)["documents"]
    assert [each["fate"] for each in fates] == ["removed", "failed"] and "no such document" in fates[1]["failure"]
    assert http.get("/v1/indexes/trips", headers=anna).json()["documents"] == 3

    assert len(list((tmp_path / "made").iterdir())) == 1
    deleted = http.delete("/v1/indexes/trips", headers=anna)
    assert deleted.status_code == 202 and http.get("/v1/indexes/trips", headers=anna).status_code == 404
    assert ended(http, deleted.json()["id"], anna)["state"] == "done" and not list((tmp_path / "made").iterdir())


def test_for_every_other_key_an_index_does_not_exist(server: Running, keys: dict[str, Head]) -> None:
    anna, bert, http = keys["anna"], keys["bert"], server.http
    job = filled(server, anna, "secret", [{"id": "night", "html": TRAIN}])["id"]
    chat = {"model": "prunus-index:secret", "messages": [{"role": "user", "content": QUESTION}]}
    answers = {"model": "prunus-index:secret", "input": QUESTION}
    document = {"documents": [{"html": "<p>x"}]}

    def replies(name: str) -> list[tuple[int, str]]:
        found = [
            http.get(f"/v1/indexes/{name}", headers=bert),
            http.delete(f"/v1/indexes/{name}", headers=bert),
            http.get(f"/v1/indexes/{name}/documents", headers=bert),
            server.post(f"/v1/indexes/{name}/documents", document, **bert),
            http.post(f"/v1/indexes/{name}/documents", files=[("files", ("a.html", b"<p>x"))], headers=bert),
            http.delete(f"/v1/indexes/{name}/documents", params={"id": "night"}, headers=bert),
            server.post(f"/v1/indexes/{name}/ask", {"question": QUESTION}, **bert),
            server.post(f"/v1/indexes/{name}/retrieved", {"question": QUESTION}, **bert),
            http.get(f"/v1/indexes/{name}/nodes", headers=bert),
            server.post("/v1/ask", {"question": QUESTION, "indexes": [name]}, **bert),
            server.post("/v1/ask", {"question": QUESTION, "indexes": ["town", name]}, **bert),
            server.post("/v1/chat/completions", {**chat, "model": f"prunus-index:{name}"}, **bert),
            server.post("/v1/responses", {**answers, "model": f"prunus-index:{name}"}, **bert),
            http.get(f"/v1/models/prunus-index:{name}", headers=bert),
        ]
        return [(reply.status_code, reply.text.replace(name, "NAME")) for reply in found]

    assert replies("secret") == replies("nothere") and {status for status, _ in replies("secret")} == {404}
    assert "secret" not in http.get("/v1/indexes", headers=bert).text + http.get("/v1/models", headers=bert).text
    assert (
        "secret" in http.get("/v1/indexes", headers=anna).text and "secret" in http.get("/v1/models", headers=anna).text
    )

    for reply in (http.get(f"/v1/jobs/{job}", headers=bert), http.delete(f"/v1/jobs/{job}", headers=bert),
                  http.get(f"/v1/jobs/{job}/events", headers=bert)):  # fmt: skip
        assert reply.status_code == 404
    assert http.get("/v1/jobs", headers=bert).json() == {"jobs": []}

    filled(server, bert, "secret", [{"id": "bridge", "html": BRIDGE}])  # the name is free for him
    assert "1932" in server.post("/v1/indexes/secret/ask", {"question": "When did the bridge open?"}, **bert).text
    assert "carriage" in server.post("/v1/indexes/secret/ask", {"question": QUESTION}, **anna).text
    http.delete("/v1/indexes/secret", headers=bert)
    assert http.get("/v1/indexes/secret", headers=anna).json()["documents"] == 1


def test_changes_need_the_scope_index_and_questions_the_scope_ask(server: Running, keys: dict[str, Head]) -> None:
    asker, filler, http = keys["asker"], keys["filler"], server.http
    document = {"documents": [{"html": "<p>x"}]}
    for reply in (
        server.post("/v1/indexes", {"name": "mine"}, **asker),
        server.post("/v1/indexes/shared/documents", document, **asker),
        http.delete("/v1/indexes/shared/documents", params={"id": "bridge"}, headers=asker),
        http.delete("/v1/indexes/ask", headers=asker),
        http.get("/v1/jobs", headers=asker),
    ):
        assert reply.status_code == 403 and "may not index" in reply.text
    assert http.get("/v1/indexes", headers=asker).status_code == 200
    filled(server, filler, "mine", [{"html": TRAIN}])
    assert http.get("/v1/indexes/mine/documents", headers=filler).json()["total"] == 1
    for path in ("/v1/indexes/town/ask", "/v1/indexes/town/retrieved"):
        assert server.post(path, {"question": "When did the bridge open?"}, **asker).status_code == 200
    for path in ("/v1/indexes/mine/ask", "/v1/indexes/mine/retrieved", "/v1/ask"):
        assert server.post(path, {"question": QUESTION, "indexes": ["mine"]}, **filler).status_code == 403


def test_keys_made_before_keep_their_scopes(tmp_path: Path, keys: dict[str, Head]) -> None:
    from prunus.serve.state import ServerState

    state = ServerState(str(tmp_path / "home" / "serve.db"))
    scopes = {key.name: key.scopes for key in state.keys()}  # noqa: SIM118 - no dictionary
    state.close()
    assert scopes["anna"] == ("read", "search", "ask", "index") and scopes["asker"] == ("ask",)


def test_the_operators_indexes_are_asked_by_all_and_changed_where_the_operator_says_so(
    server: Running, keys: dict[str, Head], tmp_path: Path
) -> None:
    bert, http = keys["bert"], server.http
    listed = {each["name"]: each for each in http.get("/v1/indexes", headers=bert).json()["indexes"]}
    assert not listed["town"]["writable"] and listed["shared"]["writable"] and not listed["shared"]["own"]
    assert "1932" in server.post("/v1/indexes/town/ask", {"question": "When did the bridge open?"}, **bert).text
    document = {"documents": [{"id": "night", "html": TRAIN}]}
    assert server.post("/v1/indexes/town/documents", document, **bert).status_code == 403
    assert http.delete("/v1/indexes/town/documents", params={"id": "bridge"}, headers=bert).status_code == 403
    for name in ("town", "shared"):
        assert http.delete(f"/v1/indexes/{name}", headers=bert).status_code == 403
        assert server.post("/v1/indexes", {"name": name}, **bert).status_code == 409
    job = server.post("/v1/indexes/shared/documents", document, **bert).json()["id"]
    assert ended(http, job, bert)["added"] == 1
    assert len(prunus.Index.open(tmp_path / "shared").store.documents()) == 2
    assert len(prunus.Index.open(tmp_path / "town").store.documents()) == 1


def test_files_of_the_operator_are_listed_and_removed_without_their_folder(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "night.html").write_text(TRAIN, "utf-8")
    prunus.Index.open(tmp_path / "made").add(tmp_path / "docs")
    with running(tmp_path, indexes={"trips": str(tmp_path / "made")}, writable=("trips",)) as server:
        reply = server.http.get("/v1/indexes/trips/documents")
        assert [each["id"] for each in reply.json()["documents"]] == ["night.html"]
        assert str(tmp_path) not in reply.text + server.http.get("/v1/indexes/trips").text
        job = server.http.delete("/v1/indexes/trips/documents", params={"id": "night.html"}).json()["id"]
        assert ended(server.http, job)["removed"] == 1
        assert server.http.get("/v1/indexes/trips/documents").json()["total"] == 0


def test_clients_make_indexes_only_where_the_operator_set_a_place(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        assert server.http.get("/v1/indexes").json() == {"indexes": []}
        reply = server.post("/v1/indexes", {"name": "mine"})
        assert reply.status_code == 403 and reply.json()["error"]["param"] == "name"
        assert server.http.get("/v1/indexes/mine").status_code == 404 and server.http.get("/v1/jobs").status_code == 200


@pytest.mark.parametrize(
    "name",
    ["../x", "..", ".", "/etc", "a/b", "a\\b", "a b", "", "x" * 65, "a\x00", "a\n", "ü", "~", "postgres:x", "-a"],
)
def test_a_name_is_never_a_path(server: Running, keys: dict[str, Head], tmp_path: Path, name: str) -> None:
    anna = keys["anna"]
    before = sorted(path.name for path in tmp_path.iterdir())
    reply = server.post("/v1/indexes", {"name": name}, **anna)
    assert reply.status_code == 400 and reply.json()["error"]["param"] == "name", reply.text
    assert "use letters, digits" in reply.json()["error"]["message"]
    for path in (f"/v1/indexes/{quoted(name)}", f"/v1/indexes/{quoted(name)}/documents"):
        assert server.http.get(path, headers=anna).status_code in (200, 307, 404)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def quoted(name: str) -> str:
    return "".join(f"%{byte:02x}" for byte in name.encode())


def test_uploaded_files_are_named_without_folders_and_read_by_their_kind(
    server: Running, keys: dict[str, Head]
) -> None:
    anna, http = keys["anna"], server.http
    assert server.post("/v1/indexes", {"name": "files"}, **anna).status_code == 201
    files = [
        ("files", ("../../etc/night.html", TRAIN.encode(), "text/html")),
        ("files", ("C:\\tolls\\tolls.csv", b"class,toll\ncar,4\n", "text/csv")),
        ("files", ("<script>x</script>.md", b"# Lift\n\nThe lift opened in 1950.\n", "text/plain")),
        ("files", ("broken.pdf", b"%PDF-1.7 nothing", "application/pdf")),
    ]
    reply = http.post("/v1/indexes/files/documents", files=files, headers=anna)
    assert reply.status_code == 202, reply.text
    job = ended(http, reply.json()["id"], anna)
    fates = {each["id"]: each["fate"] for each in job["documents"]}
    assert fates == {"night.html": "added", "tolls.csv": "added", "script>.md": "added", "broken.pdf": "failed"}
    assert job["state"] == "done" and job["failed"] == 1
    asked = server.post("/v1/indexes/files/ask", {"question": QUESTION}, **anna).json()
    assert asked["citations"][0]["document"] == "night.html"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 400),
        ("[]", 400),
        ("null", 400),
        ('{"documents": []}', 400),
        ('{"documents": [{}]}', 400),
        ('{"documents": [{"html": "x", "path": "/etc/passwd"}]}', 400),
        ('{"documents": [{"url": "/etc/passwd"}]}', 400),
        ('{"documents": [{"url": "file:///etc/passwd"}]}', 400),
        ('{"documents": [{"url": "http://a.example/\\nx"}]}', 400),
        ('{"documents": [{"base64": "!"}]}', 400),
        ('{"documents": [{"html": "x", "type": "nothing"}]}', 400),
        ('{"documents": [{"id": "a", "html": "x"}, {"id": "a", "html": "y"}]}', 400),
        ("[" * 100_000, 400),
        ('{"documents": [{"id": "\\ud800", "html": "\\ud800<p>x"}]}', 400),
        ('{"documents": [{"id": "a\\u0000b", "html": "\\u0000<p>x"}]}', 202),
    ],
)
def test_malformed_documents_are_refused_and_name_the_field(
    server: Running, keys: dict[str, Head], body: str, status: int
) -> None:
    anna = keys["anna"]
    server.post("/v1/indexes", {"name": "odd"}, **anna)
    reply = server.http.post(
        "/v1/indexes/odd/documents", content=body.encode(), headers={**anna, "content-type": "application/json"}
    )
    assert reply.status_code == status, reply.text
    if status == 400:
        assert (reply.json()["error"]["param"] or "documents").startswith("documents"), reply.text
        assert server.http.get("/v1/jobs", headers=anna).json() == {"jobs": []}
    else:
        assert ended(server.http, reply.json()["id"], anna)["documents"][0]["id"] == "a_b"


def form(url: bytes) -> bytes:
    return b'--b\r\nContent-Disposition: form-data; name="url"\r\n\r\n' + url + b"\r\n--b--\r\n"


def test_malformed_forms_and_other_types_are_refused(server: Running, keys: dict[str, Head]) -> None:
    anna, path = keys["anna"], "/v1/indexes/odd/documents"
    server.post("/v1/indexes", {"name": "odd"}, **anna)
    for kind, body, status in (
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=b", b"no boundary here", 400),
        ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\ny\r\n--b--', 400),
        ("multipart/form-data; boundary=b", form(b""), 400),
        ("multipart/form-data; boundary=b", form(b"x" * 5_000), 400),
        ("multipart/form-data; boundary=b", form(b"\xf2\xac\x1b"), 400),
        ("text/plain", b"x", 415),
        ("application/x-www-form-urlencoded", b"documents=x", 415),
    ):
        reply = server.http.post(path, content=body, headers={**anna, "content-type": kind})
        assert reply.status_code == status, (kind, reply.text)
        assert "Traceback" not in reply.text and reply.json()["error"]["message"]
    assert server.http.get("/v1/jobs", headers=anna).json() == {"jobs": []}


def test_an_upload_over_the_limit_is_refused(tmp_path: Path) -> None:
    need("python_multipart")
    with running(tmp_path, index_home=str(tmp_path / "made"), body_mb=1) as server:
        server.post("/v1/indexes", {"name": "large"})
        large = b"<p>x" * 400_000
        assert server.http.post("/v1/indexes/large/documents", files=[("f", ("a", large))]).status_code == 413
        parts = iter(
            [b'--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n', large, b"\r\n--b--\r\n"]
        )
        reply = server.http.post(
            "/v1/indexes/large/documents", content=parts, headers={"content-type": "multipart/form-data; boundary=b"}
        )
        assert reply.status_code == 413 and server.http.get("/v1/jobs").json() == {"jobs": []}


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://localhost/", "http://169.254.169.254/latest/meta-data", "http://[::1]/"]
)
def test_documents_inside_the_network_are_not_fetched(
    server: Running, keys: dict[str, Head], tmp_path: Path, url: str
) -> None:
    anna = keys["anna"]
    job = filled(server, anna, "inside", [{"url": url}, {"id": "named", "url": url}])
    assert job["failed"] == 2 and all("not allowed here" in each["failure"] for each in job["documents"])
    form = server.http.post("/v1/indexes/inside/documents", data={"url": url}, headers=anna)
    assert form.status_code == 415  # without a file this is no multipart form
    form = server.http.post("/v1/indexes/inside/documents", files={"url": (None, url)}, headers=anna)
    assert ended(server.http, form.json()["id"], anna)["failed"] == 1


def test_a_server_that_fetches_nothing_takes_no_addresses_of_documents(tmp_path: Path) -> None:
    with running(tmp_path, fetch=False, index_home=str(tmp_path / "made")) as server:
        server.post("/v1/indexes", {"name": "mine"})
        reply = server.post("/v1/indexes/mine/documents", {"documents": [{"url": "https://example.org/"}]})
        assert reply.status_code == 403 and reply.json()["error"]["param"] == "documents.0.url"


def test_messages_name_no_folder_of_the_server(server: Running, keys: dict[str, Head], tmp_path: Path) -> None:
    anna, http = keys["anna"], server.http
    filled(server, anna, "lost", [{"html": TRAIN}])
    shutil.rmtree(tmp_path / "made")
    shutil.rmtree(tmp_path / "town")
    replies = [
        http.get("/v1/indexes/lost", headers=anna),
        http.get("/v1/indexes/lost/documents", headers=anna),
        server.post("/v1/indexes/lost/ask", {"question": QUESTION}, **anna),
        server.post("/v1/ask", {"question": QUESTION, "indexes": ["town"]}, **anna),
    ]
    assert {reply.status_code for reply in replies} == {400}
    assert str(tmp_path) not in "".join(reply.text for reply in replies)
    job = server.post("/v1/indexes/lost/documents", {"documents": [{"html": TRAIN}]}, **anna).json()["id"]
    assert ended(http, job, anna)["added"] == 1  # a job makes the index anew


def test_limits_of_indexes_documents_and_bytes_hold(tmp_path: Path) -> None:
    with running(tmp_path, index_home=str(tmp_path / "made"), key_indexes=1, index_documents=10, index_mb=1) as server:
        http = server.http
        job = filled(server, {}, "small", notes(20))
        assert job["state"] == "failed" and "10 documents" in job["error"] and job["added"] == 8
        assert {each["fate"] for each in job["documents"][8:]} == {"left"}
        assert http.get("/v1/indexes/small").json()["documents"] == 8  # and the tree covers them
        assert server.post("/v1/indexes/small/ask", {"question": "What is about the tide?"}).status_code == 200
        again = server.post("/v1/indexes/small/documents", {"documents": notes(8)}).json()["id"]
        assert ended(http, again)["unchanged"] == 8  # they are no new ones
        second = server.post("/v1/indexes", {"name": "second"})
        assert second.status_code == 403 and "1 indexes" in second.text
        text = "".join(f"<p>Line {number} says something of its own, {number * 7919}.</p>" for number in range(4_000))
        large = server.post("/v1/indexes/small/documents", {"documents": [{"id": "note 0", "html": text}]}).json()["id"]
        assert ended(http, large)["added"] == 1  # it was below the limit before
        full = server.post("/v1/indexes/small/documents", {"documents": [{"id": "note 1", "html": text}]}).json()["id"]
        assert "1 MiB" in ended(http, full)["error"]
        deleted = http.delete("/v1/indexes/small").json()["id"]
        assert server.post("/v1/indexes", {"name": "second"}).status_code == 201 and ended(http, deleted)


def test_a_place_of_indexes_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.app import create_app
    from prunus.serve.options import ServeOptions, serve_options

    home = {"home": str(tmp_path / "home")}
    with pytest.raises(BadInput, match="postgres:postgresql://"):
        create_app(load_settings(home), ServeOptions(index_home="postgres:host=h password=s3cret"))
    with pytest.raises(BadInput, match="store keeps indexes in PostgreSQL"):
        create_app(load_settings({**home, "store": "postgres:host=h"}), ServeOptions(index_home=str(tmp_path)))
    with pytest.raises(BadInput, match="serve_index_home"):
        serve_options({"index_home": "indexes"})
    with pytest.raises(BadInput, match="writable names no index: 'town'"):
        ServeOptions(writable=("town",))


def test_web_pages_of_allowed_origins_may_delete(tmp_path: Path) -> None:
    with running(tmp_path, origins=("https://app.example.org",), index_home=str(tmp_path / "made")) as server:
        asked = {"origin": "https://app.example.org", "access-control-request-method": "DELETE"}
        reply = server.http.options("/v1/indexes/x", headers=asked)
        assert reply.status_code == 200 and "DELETE" in reply.headers["access-control-allow-methods"]


@pytest.mark.parametrize("part", ["prunus.serve.user_indexes.CreatedIndexes.add", "prunus.api.index.make_engine"])
def test_an_index_that_cannot_be_made_leaves_no_name_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    need("fastapi")
    from prunus.core.errors import StoreFailed

    def full(*_: Any, **__: Any) -> None:
        raise StoreFailed("the disk is full")

    with running(tmp_path, index_home=str(tmp_path / "made")) as server:
        with monkeypatch.context() as patch:
            patch.setattr(part, full)
            patch.setattr("prunus.serve.queue.Queue.delete_index", full)
            assert server.post("/v1/indexes", {"name": "town"}).status_code >= 500
        assert server.http.get("/v1/indexes").json()["indexes"] == []
        assert not (tmp_path / "made").exists() or not any((tmp_path / "made").iterdir())
        assert server.post("/v1/indexes", {"name": "town"}).status_code == 201


def test_an_index_of_a_client_is_readable_by_the_servers_user_alone(tmp_path: Path) -> None:
    with running(tmp_path, index_home=str(tmp_path / "made")) as server:
        assert server.post("/v1/indexes", {"name": "town"}).status_code == 201
        [folder] = (tmp_path / "made").iterdir()
        assert [path.stat().st_mode & 0o777 for path in (tmp_path / "made", folder)] == [0o700, 0o700]
