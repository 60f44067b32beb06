"""Static embeddings: unit norm, the same alone and in a batch, equal to a slow mean over token vectors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from prunus.core.registry import make_engine
from prunus.models.embed import static
from prunus.models.encoding import packed_tokenizer
from prunus.models.static_vectors.pieces import marked, words

STATIC = make_engine("embedder", "static")
ODD = ["", " ", "\n", "\x00", "\ud800", "\U0001f600", "a\u0301", "ﷺ", "\u202eabc", "\ufffd", "x" * 50_000, "水" * 1000]


FOLDER = Path(static.__file__).parents[1] / "static_vectors"


@pytest.fixture(scope="module")
def table() -> Any:
    stored = load_file(str(FOLDER / "vectors.safetensors"))
    return stored["vectors"].astype(np.float64) * stored["scales"].astype(np.float64)[:, None]


@pytest.mark.parametrize(
    "text",
    ["tide", "The ferry leaves at noon.", "水位记录", "größer als 3,50 €", "def f(x):\n    return x", "ＦＵＬＬ wıdth"],
)
def test_a_vector_is_the_normalised_mean_of_its_pieces(table: Any, text: str) -> None:
    tokenizer = packed_tokenizer(FOLDER / "tokenizer.json.gz")
    ids = [number for word in words(text) for number in tokenizer.encode(marked(word)).ids if number]
    mean = np.mean([table[number] for number in ids], axis=0)
    assert np.allclose(STATIC.embed([text])[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_words_are_runs_of_letters_or_of_digits() -> None:
    assert words("The Ferry's 2nd dock, 3.50 €") == ["the", "ferry", "s", "2", "nd", "dock", "3", "50"]
    assert words("ｶﾀｶﾅ と漢字2024年") == ["カタカナ", "と漢字", "2024", "年"]
    assert words("e\u0301te\u0301 soft\u00adware हिन्दी ภาษาไทย") == ["été", "software", "हिन्दी", "ภาษาไทย"]
    assert [marked(word) for word in ("dock", "水位", "2024")] == ["▁dock", "水位", "2024"]


def test_what_ships_is_small_and_has_its_licence_beside_it() -> None:
    files = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert files["NOTICE.txt"]
    assert files["vectors.safetensors"] + files["tokenizer.json.gz"] < 20 * 1024 * 1024


@given(st.lists(st.text(max_size=40), max_size=6))
def test_vectors_have_unit_norm_and_stand_in_order(texts: list[str]) -> None:
    found = STATIC.embed(texts)
    assert found.shape == (len(texts), STATIC.dimension)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)


@given(st.lists(st.text(max_size=60), min_size=1, max_size=6))
def test_a_batch_says_what_each_text_says_alone(texts: list[str]) -> None:
    assert np.allclose(STATIC.embed(texts), np.concatenate([STATIC.embed([text]) for text in texts]), atol=1e-6)


def test_a_large_batch_says_what_each_text_says_alone() -> None:
    texts = [f"text number {number} about {'tides ' * (number % 7)}" for number in range(700)]
    assert np.allclose(
        STATIC.embed(texts)[[0, 255, 256, 699]], STATIC.embed([texts[i] for i in (0, 255, 256, 699)]), atol=1e-6
    )


@pytest.mark.parametrize("text", [text for text in ODD if text != "\ud800"])
def test_odd_text_gets_a_vector_too(text: str) -> None:
    found = STATIC.embed([text, "tide"])
    assert np.isfinite(found).all()
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)


def test_a_lone_surrogate_gets_a_vector_too() -> None:
    assert np.isfinite(STATIC.embed(["a \ud800 b"])).all()


def test_the_same_text_gets_the_same_vector_for_ever() -> None:
    assert np.array_equal(STATIC.embed(["tide tables"]), make_engine("embedder", "static").embed(["tide tables"]))


def test_kinds_are_alike_for_static_vectors() -> None:
    assert np.array_equal(STATIC.embed(["tide"], "query"), STATIC.embed(["tide"], "document"))


def test_related_words_are_closer_than_unrelated_ones() -> None:
    ship, boat, tax = STATIC.embed(["a ship at sea", "a boat on the water", "income tax return"])
    assert ship @ boat > ship @ tax


def test_threads_may_share_it() -> None:
    texts = [f"text {number}" for number in range(64)]
    expected = STATIC.embed(texts)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: STATIC.embed(texts), range(8)):
            assert np.array_equal(found, expected)
