"""A stranger's ``prunus.toml`` runs no code and gets none of the user's keys, unless it is trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from prunus.core.errors import BadInput
from prunus.core.settings import load_settings, state_folder
from prunus.core.trust import distrust, trust

KEYS = {"PRUNUS_LLM_KEY": "k1", "PRUNUS_EMBEDDER_KEY": "k2", "PRUNUS_RERANKER_KEY": "k3", "PRUNUS_SEARCH_KEY": "k4"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRUNUS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PRUNUS_RERANKER", raising=False)
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.parametrize("written", [
    'llm = "http://stranger.example/v1#m"',
    'llm = "HTTPS://stranger.example/v1#m"',
    'embedder = "http:openai:https://stranger.example/v1/embeddings#m"',
    'reranker = "http:tei:https://stranger.example"',
    'search = "searxng:http://stranger.example"',
    'search_endpoint = "http://stranger.example"',
    'proxy = "http://stranger.example:3128"',
    'ca_file = "their.pem"',
    'scorer = "theirs.py:Scorer"',
    'second_scorer = "generative:./theirs.py:Scorer:model"',
    'formats = ["html", "sub/theirs.py:Format"]',
    'search = "brave, theirs.py:Search"',
    'chromium = "./theirs"',
])  # fmt: skip
def test_an_unknown_file_runs_nothing_and_gets_no_key(
    folder: Path, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    (folder / "prunus.toml").write_text(written)
    with pytest.raises(BadInput, match=rf"{written.split()[0]} .*prunus trust") as caught:
        load_settings(folder=folder)
    assert not any(key in str(caught.value).split() for key in KEYS.values())
    trust(folder / "prunus.toml", state_folder())
    load_settings(folder=folder)
    (folder / "prunus.toml").write_text(written + "\nbudget = 7\n")
    with pytest.raises(BadInput, match="not trusted"):
        load_settings(folder=folder)
    trust(folder / "prunus.toml", state_folder())
    distrust(folder / "prunus.toml", state_folder())
    with pytest.raises(BadInput, match="not trusted"):
        load_settings(folder=folder)


@pytest.mark.parametrize("written", [
    'llm = "http://localhost:8000/v1#m"\nllm_key = "its own"',
    'llm = "openai:gpt-4o-mini"',
    'search = "brave"',
    'scorer = "bm25"\nuser_agent = "https://me.example"',
])  # fmt: skip
def test_a_file_with_its_own_key_or_without_an_address_needs_no_trust(
    folder: Path, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PRUNUS_LLM_KEY", "PRUNUS_SEARCH_KEY"):
        if name.removeprefix("PRUNUS_").lower() not in written:
            monkeypatch.setenv(name, "mine")
    (folder / "prunus.toml").write_text(written)
    load_settings(folder=folder)


def test_what_the_user_sets_replaces_what_the_file_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "prunus.toml").write_text('llm = "http://stranger.example/v1#m"\nscorer = "theirs.py:Scorer"')
    monkeypatch.setenv("PRUNUS_LLM_KEY", "mine")
    monkeypatch.setenv("PRUNUS_LLM", "http://localhost:8000/v1#m")
    assert load_settings({"scorer": "bm25"}, folder=folder).scorer == "bm25"


def test_a_key_of_the_file_that_the_users_replaces_is_the_users(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "prunus.toml").write_text('llm = "http://stranger.example/v1#m"\nllm_key = "theirs"')
    monkeypatch.setenv("PRUNUS_LLM_KEY", "mine")
    with pytest.raises(BadInput, match="llm would get your llm_key"):
        load_settings(folder=folder)


def test_the_file_does_not_say_where_trust_is_noted(folder: Path) -> None:
    (folder / "home").mkdir()
    (folder / "prunus.toml").write_text(f'home = "{folder}/home"\nscorer = "theirs.py:Scorer"')
    trust(folder / "prunus.toml", folder / "home")
    with pytest.raises(BadInput, match="not trusted"):
        load_settings(folder=folder)
