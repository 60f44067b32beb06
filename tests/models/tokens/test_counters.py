"""The contract of all token counters: never negative, 0 for no text, batches equal single counts, linear time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import seconds_of
from tests.extras import need
from tests.models.tokens.vocabularies import tiny_encoding, tiny_folder, tiny_tokenizer

from prunus.core.registry import engine_names, make_engine

ODD = ["\ud800", "a\udfff b", "\x00\x01", "\u202e\u0301\u0301", "👩\u200d👩\u200d👧‍👦", "\r\n\u2028\x85", "<|endoftext|></s>[INST]",
       "ﷺ", "𒐫" * 50, "\ufeff", "e\u0301" * 100, "  \t ", "潮汐站", "ا ب", "\U0010ffff"]  # fmt: skip


@pytest.fixture(
    params=["smollm2", "hf", "approx", *(pytest.param(name, marks=pytest.mark.full) for name in ("llama2", "tiktoken"))]
)
def counter(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every counter that comes with Prunus."""
    if request.param == "tiktoken":
        known = need("tiktoken_ext.openai_public")
        monkeypatch.setitem(known.ENCODING_CONSTRUCTORS, "tiny", tiny_encoding())
        return make_engine("tokenizer", "tiktoken:tiny", folder=str(tiny_folder(tmp_path)))
    model = f":{tiny_tokenizer(tmp_path / 'tokenizer.json')}" if request.param == "hf" else ""
    return make_engine("tokenizer", request.param + model)


def test_no_counter_is_forgotten_here() -> None:
    assert engine_names("tokenizer") == ["approx", "hf", "llama2", "smollm2", "tiktoken"]


def test_nothing_costs_nothing(counter: Any) -> None:
    assert counter.count([]).tolist() == []
    assert counter.count(["", ""]).tolist() == [0, 0]


def test_odd_text_is_counted_in_a_batch_as_alone(counter: Any) -> None:
    together = counter.count(ODD)
    assert together.shape == (len(ODD),)
    assert np.issubdtype(together.dtype, np.integer)
    assert (together >= 0).all()
    assert together.tolist() == [int(counter.count([text])[0]) for text in ODD]


@given(texts=st.lists(st.text(st.characters(), max_size=80), max_size=5))
def test_any_text_is_counted_in_a_batch_as_alone(counter: Any, texts: list[str]) -> None:
    together = counter.count(texts)
    assert (together >= 0).all()
    assert together.tolist() == [int(counter.count([text])[0]) for text in texts]
    assert together.tolist() == counter.count(texts).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", " ", "\n", "tide tables ", "潮", "!", "aB", "🙂", "\u0301"])
def test_a_very_long_text_takes_time_in_proportion(counter: Any, unit: str) -> None:
    """Ten times the text, at most thirty times the time: far from the hundred times of a quadratic counter."""
    short, long = unit * (40_000 // len(unit)), unit * (400_000 // len(unit))
    counter.count([short])
    spent = []
    for text in (short, long):
        spent.append(min(seconds_of(lambda text=text: counter.count([text])) for _ in range(2)))
        assert 0 <= counter.count([text])[0] <= 4 * len(text.encode())
    assert spent[1] < 30 * spent[0] + 0.5


def test_approx_says_by_its_name_that_it_does_not_count_exactly() -> None:
    approx, exact = make_engine("tokenizer", "approx"), make_engine("tokenizer", "smollm2")
    assert approx.name == "approx"
    text = "The harbour master records the height of the tide at noon, every day of the year. " * 40
    assert approx.count([text])[0] == pytest.approx(exact.count([text])[0], rel=0.3)


def test_long_parts_are_counted_and_not_kept() -> None:
    from prunus.models.tokens import smollm2

    texts = [f"{number} \U0001f642 " + "tide" * 5_000 for number in range(5)]
    engine = smollm2.Engine()
    assert engine.count(texts).tolist() == engine.count(texts).tolist()
    assert max(map(len, smollm2._load().known)) <= 64
