"""Engines by file name; other packages register engines as entry points and may not shadow a built-in engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prunus
from prunus.cli.commands.doctor import examine
from prunus.core import registry
from prunus.core.errors import UnknownEngine
from prunus.core.registry import (
    KINDS,
    engine_class,
    engine_names,
    is_built_in,
    make_engine,
    needs_of,
    shadowed,
    split_spec,
)

SRC = Path(prunus.__file__).parent

Install = Callable[[str, str], None]
NUMBERS = count()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a package with an engine, under an entry point's name."""

    def put(code: str, name: str) -> None:
        package = f"stranger{next(NUMBERS)}"
        (tmp_path / f"{package}.py").write_text(code)
        metadata = tmp_path / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[prunus.scorers]\n{name} = {package}:Engine\n")
        forget()

    monkeypatch.syspath_prepend(str(tmp_path))
    yield put
    forget()


def forget() -> None:
    """Empty the registry's caches."""
    for function in vars(registry).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


SCORER = """
import numpy as np
class Engine:
    name = "length"
    def score(self, query, blocks):
        return np.asarray([float(block.words) for block in blocks.blocks])
"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_of_a_folder_are_its_engines(kind: str) -> None:
    files = {path.stem for path in (SRC / KINDS[kind].folder).glob("*.py") if not path.stem.startswith("_")}
    assert files <= set(engine_names(kind))
    assert engine_names(kind) == sorted(engine_names(kind))


def test_a_stranger_s_engine_is_an_engine_like_any_other(install: Install) -> None:
    install(SCORER, "length")
    assert "length" in engine_names("scorer")
    assert engine_class("scorer", "length").name == "length"
    page = "<p>short one</p><p>this is by far the longest of both paragraphs</p>"
    context = prunus.prune(page, "anything?", 18, options=prunus.Options(scorer="length", max_words=9))
    assert context.engines["scorer"] == "length"
    assert "longest" in context.text


def test_a_stranger_s_engine_is_given_what_its_constructor_asks_for(install: Install) -> None:
    code = SCORER + "    def __init__(self, embedder, model=''):\n        self.embedder, self.model = embedder, model\n"
    install(code, "asking")
    assert needs_of("scorer", "asking") == ["embedder"]
    made = make_engine("scorer", "asking:some/model", embedder="an embedder", tokenizer="not asked for")
    assert (made.embedder, made.model) == ("an embedder", "some/model")


def test_a_stranger_may_not_shadow_a_built_in_engine(install: Install) -> None:
    install(SCORER, "bm25")
    assert engine_class("scorer", "bm25").__module__ == "prunus.evidence.score.bm25"


def test_a_stranger_that_cannot_be_loaded_harms_no_other(install: Install) -> None:
    install("raise RuntimeError('broken')", "broken")
    assert "broken" in engine_names("scorer")
    assert np.isfinite(prunus.prune("<p>some words", "words?").blocks[0].score)


@pytest.mark.parametrize(
    "spec", ["nope", "", "bm25/../x", "../bm25", "__init__", "_signals", "BM25", "bm25.py", "os", ":model"]
)
def test_an_unknown_name_is_refused_with_those_that_there_are(spec: str) -> None:
    with pytest.raises(UnknownEngine, match="hybrid") as caught:
        make_engine("scorer", spec)
    assert caught.value.subject == spec


def test_a_model_for_an_engine_without_models_is_refused() -> None:
    with pytest.raises(UnknownEngine, match="no model"):
        make_engine("scorer", "bm25:large")


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("static", ("static", "")),
        ("hf:/a/b.json", ("hf", "/a/b.json")),
        ("hf: C:\\x ", ("hf", "C:\\x")),
        ("a:b:c", ("a", "b:c")),
    ],
)
def test_a_spec_is_a_name_and_a_model(spec: str, parts: tuple[str, str]) -> None:
    assert split_spec(spec) == parts


@pytest.mark.parametrize(
    "options",
    [
        {"scorer": "nope"},
        {"embedder": "nope"},
        {"tokenizer": "nope"},
        {"tokenizer": "hf:/no/such/file"},
        {"tokenizer": "hf"},
    ],
)
def test_an_engine_that_is_not_there_is_one_line(options: dict[str, Any]) -> None:
    with pytest.raises(prunus.BadInput) as caught:
        prunus.prune("<p>some words", "words?", options=prunus.Options(**options))
    assert "\n" not in str(caught.value)


def test_a_stranger_that_shadows_a_built_in_is_named(install: Install) -> None:
    assert shadowed("scorer") == []
    install(SCORER.replace("length", "bm25"), "bm25")
    [(name, package)] = shadowed("scorer")
    assert name == "bm25"
    assert package.startswith("stranger")
    assert engine_class("scorer", "bm25").__module__ == "prunus.evidence.score.bm25"


def test_only_what_comes_with_prunus_is_built_in(install: Install) -> None:
    install(SCORER, "length")
    assert is_built_in("scorer", "bm25")
    assert "length" in engine_names("scorer")
    assert not is_built_in("scorer", "length")


def test_the_doctor_names_what_is_shadowed(install: Install) -> None:
    install(SCORER.replace("length", "bm25"), "bm25")
    [ignored] = [engine for engine in examine()["engines"] if engine["state"] == "ignored"]
    assert ignored["name"] == "bm25"
    assert "stranger" in ignored["reason"]
