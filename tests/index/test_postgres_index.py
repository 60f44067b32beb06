"""Indexes in a real PostgreSQL, from the public door and the command line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.cli.command import Cli, only_line
from tests.cli.conftest import cli  # noqa: F401
from tests.index.library import SUBJECTS, page
from tests.index.test_store_contract import server  # noqa: F401

import prunus
from prunus import BadInput, Index, OutsideFailed, Retrieval
from prunus.core.settings import load_settings

pytestmark = pytest.mark.full

SECRET = "s3cret-word"
QUESTION = "Where do passengers of the night train sleep?"


@pytest.fixture
def address(server: str) -> str:  # noqa: F811
    """The address of the server, with a password that it does not look at."""
    return f"{server}{'&' if '?' in server else '?'}password={SECRET}"


@pytest.fixture
def name() -> str:
    return f"index_{random.Random().randrange(10**12)}"


def test_an_index_named_by_an_address_is_built_grown_and_asked(address: str, name: str, tmp_path: Path) -> None:
    place = f"{address}#{name}"
    with pytest.raises(BadInput, match="there is no index"):
        Index.open(place, create=False)
    index = Index.open(place)
    index.add({subject: page(subject) for subject in SUBJECTS})
    assert index.location == f"postgres:{name}" and index.add({"bees": page("bees")}).unchanged == ["bees"]
    again = Index.open(place, create=False, settings=load_settings({"chunk_tokens": 40}))
    assert again.built.chunk_tokens == index.built.chunk_tokens, "what it was built with holds for good"
    beside = Index.open(tmp_path / "file")
    beside.add({subject: page(subject) for subject in SUBJECTS})
    for way in ("hybrid", "collapsed", "traversal", "flat"):
        how = Retrieval(way)
        found = [[(node.document, node.text) for node in opened_index.retrieved(QUESTION, 300, how).nodes]
                 for opened_index in (again, beside)]  # fmt: skip
        assert found[0] == found[1] and found[0], way
    answer = prunus.ask(QUESTION, page("glass"), index=place)
    assert answer.citations[0].document == "trains" and answer.citations[0].found
    assert again.remove("trains") == ["trains"] and again.info()["documents"] == len(SUBJECTS) - 1
    assert SECRET not in repr(again.info()) + repr(again.settings)


def test_commands_keep_indexes_in_the_database_of_the_settings(
    cli: Cli, folder: Path, address: str, name: str  # noqa: F811
) -> None:  # fmt: skip
    (folder / "prunus.toml").write_text(f'store = "postgres:{address}"\n', "utf-8")
    (folder / "docs").mkdir()
    for subject in SUBJECTS:
        (folder / "docs" / f"{subject}.html").write_text(page(subject), "utf-8")
    results = [cli("index", "add", name, "docs")]
    assert results[0].exit_code == 0 and "5 added" in results[0].stderr, results[0].stderr
    (folder / "docs" / "bees.html").unlink()
    results.append(cli("index", "sync", name, "docs", "--json"))
    assert len(json.loads(results[-1].stdout)["removed"]) == 1
    results.append(cli("index", "info", f"postgres:{name}", "--json", "--documents"))
    assert json.loads(results[-1].stdout)["documents"] == 4 and not (folder / name).exists()
    results.append(cli("ask", QUESTION, "--index", name, "--json"))
    assert json.loads(results[-1].stdout)["citations"][0]["found"]
    results.append(cli("index", "retrieve", name, "-q", QUESTION))
    results.append(cli("index", "tree", name, "-q", QUESTION, "--html", "tree.html"))
    assert "carriage" in (folder / "tree.html").read_text("utf-8")
    results.append(cli("index", "verify", name, "--json"))
    claim = "Travellers rest behind the engine."
    results.append(cli("index", "summarize", name, "--anew", "--yes", "--llm", f"scripted:{claim}", "--json"))
    assert json.loads(results[-1].stdout)["left"] == 0
    results.append(cli("index", "info", name))
    assert "have cost" in results[-1].stdout
    results.append(cli("doctor", "--json"))
    findings = json.loads(results[-1].stdout)["engines"]
    assert [engine["state"] for engine in findings if engine["kind"] == "store" and engine["in_force"]] == ["made"]
    assert all(result.exit_code == 0 for result in results), [result.stderr for result in results if result.exit_code]
    for result in (cli("index", "add", name, "docs", "--chunk-tokens", "50"), cli("index", "info", "no_such"),
                cli("index", "info", "No/Schema"), cli("index", "add", name, "docs", "--preset", "raptor")):  # fmt: skip
        results.append(result)
        assert result.exit_code == 2 and only_line(result)
    shown = "".join(result.stdout + result.stderr for result in results) + (folder / "tree.html").read_text("utf-8")
    assert SECRET not in shown and "password" not in shown


def test_a_server_that_is_not_there_is_one_line_without_the_address(cli: Cli, folder: Path) -> None:  # noqa: F811
    place = f"postgresql://someone:{SECRET}@127.0.0.1:1/none"
    with pytest.raises(OutsideFailed) as caught:
        Index.open(place)
    assert SECRET not in str(caught.value) + caught.value.subject
    for result in (cli("index", "info", place), cli("ask", QUESTION, "--index", place, "--events")):
        assert result.exit_code == 3 and "no connection" in result.stderr
        assert SECRET not in result.stdout + result.stderr
