"""A recorded reply is replayed as it came; a request that is not recorded is never made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.llm.asking import ASK, collect, run

from prunus.errors import BadInput, OutsideFailed
from prunus.llm.replay import Engine
from prunus.llm.scripted import Engine as Scripted
from prunus.llm.scripted import Reply
from prunus.registry import make_engine
from prunus.types import Message, Usage


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "replies" / "recorded.jsonl"


def test_what_was_recorded_is_replayed_piece_by_piece(file: Path) -> None:
    model = Scripted(script=["In Paris.", "Elsewhere."])
    first = run(collect(Engine(str(file), record=model), seed=3))
    assert first == (["In", " Paris."], Usage(10, 2))
    assert run(collect(make_engine("llm", f"replay:{file}"), seed=3)) == first


def test_recording_asks_the_model_once(file: Path) -> None:
    model = Scripted(script=["In Paris."])
    engine = Engine(str(file), record=model)
    assert run(collect(engine)) == run(collect(engine)) == run(collect(Engine(str(file), record=model)))
    assert len(model.calls) == 1
    assert len(file.read_text().splitlines()) == 1


@pytest.mark.parametrize("options", [{"max_tokens": 9}, {"seed": 4}, {"stop": ["."]}])
def test_other_options_or_words_are_another_request(file: Path, options: dict[str, object]) -> None:
    run(collect(Engine(str(file), record=Scripted("In Paris."))))
    replayed = Engine(str(file))
    with pytest.raises(BadInput, match=r"no reply is recorded for the request \w{12} \(What is the capital") as caught:
        run(collect(replayed, **options))
    assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="no reply is recorded"):
        run(collect(replayed, [*ASK, Message("user", "And of Spain?")]))


def test_a_reply_that_broke_off_is_not_recorded(file: Path) -> None:
    with pytest.raises(OutsideFailed):
        run(collect(Engine(str(file), record=Scripted(script=[Reply("one two", cut_after=1)]))))
    assert not file.exists()


@pytest.mark.parametrize("torn", [b"", b'{"digest": "ab', b"x" * 200_000], ids=["none", "short", "long"])
def test_a_line_that_was_not_finished_is_passed_over_and_overwritten(file: Path, torn: bytes) -> None:
    run(collect(Engine(str(file), record=Scripted("In Paris."))))
    whole = file.read_bytes()
    file.write_bytes(whole + torn)
    assert "".join(run(collect(Engine(str(file))))[0]) == "In Paris."
    run(collect(Engine(str(file), record=Scripted("Four.")), max_tokens=5))
    assert "".join(run(collect(Engine(str(file)), max_tokens=5))[0]) == "Four."
    assert file.read_bytes().startswith(whole + b'{"digest"')


@pytest.mark.parametrize(
    "line", ["x", "{}", "[1]", '{"digest": 1, "pieces": [], "usage": {}}', '{"digest": "a", "pieces": [1], "usage": {}}',
             '{"digest": "a", "pieces": [], "usage": {"tokens": 3}}', "[" * 100_000]
)  # fmt: skip
def test_a_malformed_line_is_named(file: Path, line: str) -> None:
    file.parent.mkdir()
    file.write_text("\n" + line + "\n")
    with pytest.raises(BadInput, match=r"line 2 is no recorded reply") as caught:
        run(collect(Engine(str(file))))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(BadInput, match=r"nowhere\.jsonl: no such file"):
        run(collect(Engine("nowhere.jsonl")))
    with pytest.raises(BadInput, match="give the file of recorded replies"):
        Engine()


def test_a_recording_holds_what_is_needed_to_read_it(file: Path) -> None:
    run(collect(Engine(str(file), record=Scripted("In Paris."))))
    row = json.loads(file.read_text())
    assert sorted(row) == ["digest", "messages", "model", "options", "pieces", "usage"]
    assert row["messages"][1]["content"] == "What is the capital of France?"


def test_tokens_are_counted_by_whoever_can(file: Path) -> None:
    assert Engine(str(file), record=Scripted()).count(["one two"]).tolist() == [2]
    assert Engine(str(file), tokenizer=make_engine("tokenizer", "approx")).count(["one two"]).tolist() == [2]
    with pytest.raises(BadInput, match="no tokenizer was given"):
        Engine(str(file)).count(["x"])
