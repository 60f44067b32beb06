"""No password and no key in an address is shown: not in an error, nor by a command, nor in a recorded file."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.clock import seconds_of
from tests.web.search.test_providers import NAMES

import prunus
from prunus.cli.main import app, guard
from prunus.core.errors import BadInput, Failures, PrunusError
from prunus.core.registry import make_engine
from prunus.core.settings import SECRETS, Settings, load_settings
from prunus.core.text.secrets import hide_secrets, secrets_in
from prunus.engines import EngineSet
from prunus.record.recorder import bare
from prunus.web.reader import LazyDoor

SECRET = "S3cr3tPassw0rd"
ADDRESSES = [
    f"http://user:{SECRET}@127.0.0.1:9/v1",
    f"http://{SECRET}@127.0.0.1:9/v1",
    f"http://user:{SECRET}/x?y#z@127.0.0.1:9/v1",
    f"http://user:x@{SECRET}@127.0.0.1:9/v1",
    f"http://127.0.0.1:9/v1?api_key={SECRET}",
    f"http://127.0.0.1:9/v1?a=1&access_token={SECRET}&b=2",
    f"http://user:{SECRET}@[::bad/v1",
    f"http://user:{SECRET}@nowhere.invalid:99999/v1",
]
every_address = pytest.mark.parametrize("address", ADDRESSES)
PAGE = "examples/site/faq.html"


@pytest.fixture(autouse=True)
def _folder(folder: Path) -> None:
    (folder / "examples").mkdir()
    (folder / "examples" / "site").symlink_to(Path(__file__).parents[1] / "examples" / "site")


# --- the function --------------------------------------------------------------------------------


@every_address
def test_the_secret_of_an_address_is_hidden_and_found_in_any_text(address: str) -> None:
    for text in (
        address,
        f"'{address}'",
        f"see {address}: no answer",
        f"searxng:{address}#m",
        f"({address},{address})",
    ):
        assert SECRET not in hide_secrets(text)
        assert any(SECRET in secret for secret in secrets_in(text))


def test_other_text_stays_as_it_is() -> None:
    for text in (
        "https://example.org:8080/@user/x?page=2&q=1: HTTP 404",
        "https://medium.com/@user",
        "write it as key=value; pass door=",
        "mail me@example.org, see http://a.example/",
        "a@b.example and c@d.example",
    ):
        assert hide_secrets(text) == text and secrets_in(text) == []


def test_the_address_of_a_database_loses_its_password() -> None:
    for text in (
        f"postgresql://me:{SECRET}@host/db",
        f"postgres:/me:{SECRET}@host/db",
        f"host=x password={SECRET} user=y",
        f"PASSWORD={SECRET}",
    ):
        assert SECRET not in hide_secrets(text)


def test_hiding_takes_a_time_that_is_linear_in_the_text() -> None:
    for pattern in ("?key=", "://", "&=@:", ":/a:", "?key", "=", "@", "?"):
        short, long = (seconds_of(lambda text=pattern * count: hide_secrets(text + "@=")) for count in (4_000, 16_000))
        assert long < 12 * short + 0.05, pattern


def test_every_error_hides_the_secret_in_its_message_and_its_subject() -> None:
    for address in ADDRESSES:
        error = PrunusError(f"{address}: no", subject=address)
        failures = Failures()
        failures.note(error)
        failures.note(error, ADDRESSES[0])
        assert SECRET not in str(error) + repr(error) + error.subject + repr(failures)


# --- every engine and every setting with an address ----------------------------------------------

SPECS = {
    "llm": ["{}#m"],
    "embedder": ["http:{}#m"],
    "reranker": ["http:{}#m"],
    "path_scorer": ["vllm:{}#m", "sglang:{}", "llamacpp:{}"],
    "search": [f"{name}:{{}}" for name in NAMES],
    "store": ["postgres:{}"],
    "serve_state": ["postgres:{}"],
    "serve_index_home": ["postgres:{}"],
    "tokenizer": ["tiktoken:{}", "hf:{}"],
    "scorer": ["generative:vllm:{}#m", "{}"],
    "second_scorer": ["generative:llamacpp:{}"],
    "extractor": ["{}"],
    "generator": ["nothing:{}"],
    "planner": ["{}"],
    "clusterer": ["{}"],
    "summarizer": ["nothing:{}"],
}
OTHERS = {
    "search_endpoint": {"search": "searxng"},
    "proxy": {"search": "wikipedia"},
}
NO_ADDRESS = frozenset(
    """search_way search_keys search_key search_prices search_seconds tree llm_key embedder_key reranker_key path_key
    tiktoken_folder prices serve formats web_options llm_options path_options home allow_hosts ports ca_file user_agent languages browser
    chromium
    """.split()
)
"""Settings that are a secret as a whole, or hold no address. A path or a table may hold anything."""


def test_every_setting_that_is_text_is_tried_here() -> None:
    for setting in fields(Settings):
        if isinstance(getattr(Settings(), setting.name), str | tuple | dict):
            assert setting.name in {*SPECS, *OTHERS} or setting.name in NO_ADDRESS | SECRETS, setting.name


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    [ADDRESSES[0], *(pytest.param(ADDRESSES[place], marks=pytest.mark.slow) for place in (2, 4))],
)
@pytest.mark.parametrize("kind", [*SPECS, *OTHERS])
def test_no_command_shows_the_secret_of_a_setting(kind: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for spec in SPECS.get(kind, ["{}"])[:2]:
        for name, value in {**OTHERS.get(kind, {}), kind: spec.format(address)}.items():
            monkeypatch.setenv(f"PRUNUS_{name.upper()}", value)
        monkeypatch.setenv("PRUNUS_MODEL_CALLS", "1")
        monkeypatch.setenv("PRUNUS_TOTAL_SECONDS", "1")
        monkeypatch.setenv("PRUNUS_RETRIES", "0")
        commands = [["doctor", "--json"], ["ask", "Is it guaranteed?", PAGE, "--json", "--record", "run.prunus"]]
        if kind in ("search", "search_endpoint", "proxy"):
            commands += [["search", "tide", "--json"]]
        if kind in ("embedder", "store", "tokenizer", "clusterer", "summarizer"):
            commands += [["index", "add", "I", PAGE]]
        for command in commands:
            found = CliRunner().invoke(app, command)
            assert SECRET not in found.output + found.stderr, (command, found.output)
            assert SECRET not in recorded(Path("run.prunus")), command


def recorded(path: Path) -> str:
    """Return the text of a recorded file."""
    if not path.exists():
        return ""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as file:
        return "".join(file.read(name).decode("utf-8", "replace") for name in file.namelist() if "blobs" not in name)


@every_address
def test_no_engine_shows_the_secret_when_it_is_made_or_called(address: str) -> None:
    door = LazyDoor(load_settings({"total_seconds": 1.0, "connect_seconds": 1.0}))
    shown: list[str] = []
    for kind in ("embedder", "reranker", "path_scorer", "search", "llm"):
        for spec in SPECS[kind]:
            try:
                if kind == "llm":
                    engine = make_engine("llm", "openai:m", door=door, endpoint=address, options={"retries": 0})
                else:
                    engine = make_engine(kind, spec.format(address), door=door, key="key")
                engine.sleep = lambda seconds: None
                shown += [repr(engine), str(getattr(engine, "identity", ""))]
                used(kind, engine)
            except PrunusError as error:
                shown += [str(error), repr(error), error.subject]
    assert len(shown) > 20
    assert not [line for line in shown if SECRET in line]


def used(kind: str, engine: Any) -> None:
    import asyncio

    from prunus.core.types import Message, SearchRequest

    async def replied() -> None:
        async for _ in engine.stream([Message("user", "hi")]):
            break

    if kind == "embedder":
        engine._service = lambda made=engine._service: with_no_pause(made())
        engine.embed(["a"])
    elif kind == "path_scorer":
        engine.encode(["a"])
    elif kind == "search":
        asyncio.run(engine.search(SearchRequest("tide")))
    elif kind == "llm":
        asyncio.run(replied())


def with_no_pause(service: Any) -> Any:
    from dataclasses import replace

    return replace(service, sleep=lambda seconds: None)


@pytest.mark.slow
@every_address
def test_no_command_shows_the_login_of_an_address_that_it_was_given(address: str) -> None:
    """The address of a page names it in results, so that a key in it stays there; errors hide the key as well."""
    for command in (
        ["fetch", address],
        ["fetch", address, "--json"],
        ["prune", address, "-q", "x"],
        ["ask", "x", address, PAGE, "--json"],
        ["ask", "x", PAGE, "--index", address],
        ["ask", "x", PAGE, "--search", f"searxng:{address}", "--json", "--record", "run.prunus"],
        ["index", "info", address.replace("http://", "postgresql://")],
        ["index", "rebuild", address],
        ["clean", address, address],
        ["batch", address, "-o", "out.jsonl"],
        ["replay", address],
    ):
        found = CliRunner().invoke(app, command, env={"PRUNUS_TOTAL_SECONDS": "1", "PRUNUS_RETRIES": "0"})
        assert SECRET not in (found.output if "@" in address else found.stderr), (command, found.output)
        assert SECRET not in recorded(Path("run.prunus"))


def test_the_names_of_engines_in_an_answer_show_no_secret() -> None:
    settings = load_settings({"embedder": f"http:http://127.0.0.1:9/v1?api_key={SECRET}#m"})
    engines = EngineSet(settings)
    engines.get("embedder")
    assert SECRET not in json.dumps(engines.names) and "api_key=" in engines.names["embedder"]


@every_address
def test_a_recorded_spec_is_bare(address: str) -> None:
    assert SECRET not in bare(f"searxng:{address},wikipedia:de")


def test_a_bug_shows_its_traceback_without_the_secret(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise RuntimeError(ADDRESSES[0])

    assert guard(fail) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown and "127.0.0.1" in shown and SECRET not in shown


def test_a_message_says_what_is_wrong_with_a_login() -> None:
    with pytest.raises(BadInput, match="without a user name or password"):
        make_engine("search", f"searxng:{ADDRESSES[0]}")


def test_addresses_are_formatted_into_messages_by_errors_only() -> None:
    """Whatever is printed passes through an error, or through ``say``: nothing writes to stderr by itself."""
    root = Path(prunus.__file__).parent
    writing = re.compile(r"sys\.stderr\.write|file=sys\.stderr|print_exc|err=True")
    found = {
        path.relative_to(root).as_posix() for path in root.rglob("*.py") if writing.search(path.read_text("utf-8"))
    }
    assert found <= {
        "cli/output.py",
        "cli/main.py",
        "cli/commands/index.py",
        "pages/formats/pdf/ocr.py",
        "pages/formats/pdf/reader.py",
    }
