"""The server keeps what its OpenAPI promises: generated requests, good and bad, find no bug and no undocumented reply."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies
from tests.extras import need
from tests.serve.running import BRIDGE, Running, running

import prunus
from prunus.serve.options import SHAPES

pytestmark = pytest.mark.full

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its packages warn of when they are imported is theirs
    schemathesis = need("schemathesis")

OPERATIONS = [
    ("post", "/v1/clean", 40),
    ("post", "/v1/prune", 40),
    ("post", "/v1/check", 25),
    ("post", "/v1/map", 15),
    ("post", "/v1/search", 30),
    ("post", "/v1/ask", 40),
    ("get", "/v1/models", 3),
    ("get", "/v1/models/{model}", 15),
    ("post", "/v1/chat/completions", 40),
    ("post", "/v1/responses", 40),
    ("get", "/v1/indexes", 2),
    ("post", "/v1/indexes", 15),
    ("get", "/v1/indexes/{name}", 10),
    ("delete", "/v1/indexes/{name}", 10),
    ("get", "/v1/indexes/{name}/documents", 10),
    ("post", "/v1/indexes/{name}/documents", 25),
    ("delete", "/v1/indexes/{name}/documents", 15),
    ("post", "/v1/indexes/{name}/ask", 15),
    ("get", "/v1/indexes/{name}/nodes", 20),
    ("post", "/v1/indexes/{name}/retrieved", 15),
    ("get", "/v1/jobs", 2),
    ("get", "/v1/jobs/{id}", 10),
    ("delete", "/v1/jobs/{id}", 10),
    ("get", "/v1/jobs/{id}/events", 10),
    ("get", "/v1/choices", 2),
    ("get", "/v1/snapshots", 2),
    ("post", "/v1/snapshots/show", 15),
    ("post", "/v1/rerank", 25),
    ("post", "/v2/rerank", 10),
    ("post", "/v2/scrape", 25),
    ("post", "/v2/map", 15),
    ("post", "/v2/search", 30),
    ("post", "/v2/crawl", 15),
    ("get", "/v2/crawl/{id}", 5),
    ("get", "/v2/crawl/{id}/errors", 5),
    ("delete", "/v2/crawl/{id}", 5),
    ("post", "/tavily/search", 30),
    ("post", "/tavily/extract", 20),
    ("post", "/openwebui/load", 15),
    ("put", "/openwebui/process", 5),
    ("post", "/openwebui/search", 15),
    ("get", "/r/{address}", 15),
    ("get", "/s/{query}", 15),
    ("get", "/md", 20),
    ("get", "/healthz", 2),
    ("get", "/readyz", 2),
    ("get", "/metrics", 2),
]
"""Method, path and number of generated requests."""

MODELS = strategies.sampled_from(["", "prunus", "prunus-web", "prunus-index:town"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with an index and a search; it fetches nothing, so that no request leaves this machine."""
    folder = tmp_path_factory.mktemp("schema")
    (folder / "pages").mkdir()
    (folder / "pages" / "bridge.html").write_text(BRIDGE)
    prunus.Index.open(folder / "made").add({"bridge": BRIDGE})
    chosen = {"search": f"local:{folder / 'pages'}"}
    with running(
        folder, chosen, fetch=False, shapes=SHAPES, indexes={"town": str(folder / "made")},
        index_home=str(folder / "own"),
    ) as found:  # fmt: skip
        yield found


@pytest.fixture(scope="module")
def schema(server: Running) -> Any:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


def test_every_operation_of_the_schema_is_tried(schema: Any) -> None:
    found = {(operation.ok().method, operation.ok().path) for operation in schema.get_all_operations()}
    assert {(method, path) for method, path, _ in OPERATIONS} <= found
    assert {path for _, path in found if path.startswith("/v1/")} == {
        path for _, path, _ in OPERATIONS if path.startswith("/v1/")
    }


@pytest.mark.parametrize(
    ("method", "path", "examples"), OPERATIONS, ids=[f"{method} {path}" for method, path, _ in OPERATIONS]
)
def test_no_request_finds_a_bug_or_a_reply_that_the_schema_lacks(
    method: str, path: str, examples: int, server: Running, schema: Any
) -> None:
    checks = schemathesis.checks
    kept = [
        checks.not_a_server_error,
        schemathesis.specs.openapi.checks.status_code_conformance,
        schemathesis.specs.openapi.checks.content_type_conformance,
        schemathesis.specs.openapi.checks.response_schema_conformance,
        schemathesis.specs.openapi.checks.response_headers_conformance,
    ]
    operation = schema[path][method]
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

    positive, negative = schemathesis.GenerationMode
    for mode in (positive, negative) if method == "post" else (positive,):

        @settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=quiet)
        @given(case=operation.as_strategy(generation_mode=mode), model=MODELS)
        def tried(case: Any, model: str) -> None:
            if model and isinstance(case.body, dict):  # names that no generator guesses
                known = {"model": model, "indexes": [model.removeprefix("prunus-index:")]}
                case.body.update({name: known[name] for name in known.keys() & case.body.keys()})
            case.call_and_validate(checks=kept)

        tried()
