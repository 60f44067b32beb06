"""Summaries: extractive, and by a model in parallel, kept, retried and within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.errors import BadInput, OutsideFailed
from prunus.core.events import TokenEvent
from prunus.core.options import Limits
from prunus.index.summarize import extractive, llm
from prunus.models.embed import static
from prunus.models.llm.scripted import Engine as Scripted
from prunus.models.llm.scripted import ScriptedReply
from prunus.models.meter import Meter, Metered, OverLimit
from prunus.models.tokens import approx

GROUP = [
    "The lighthouse was built in 1871. It stands on a rock.",
    "The lighthouse was built in 1871. Its keeper lived below the lamp.",
    "Bread is baked on Fridays. The lighthouse keeper was called Pell.",
]


def short() -> extractive.Engine:
    return extractive.Engine(static.Engine(), approx.Engine())


def summaries_of(engine: object, batch: Sequence[Sequence[str]], max_tokens: int = 40) -> list[str]:
    return [summary.text for summary in asyncio.run(engine.summarize(batch, max_tokens))]  # type: ignore[attr-defined]


def test_an_extractive_summary_is_sentences_of_the_group_in_order_each_once() -> None:
    (text,) = summaries_of(short(), [GROUP], 45)
    places = [" ".join(GROUP).find(sentence.strip(". ")) for sentence in text.split(". ")]
    assert places == sorted(places)
    assert min(places) >= 0
    assert text.count("1871") == 1
    assert "lighthouse" in text


def test_rows_are_summed_up_by_their_table_and_their_range_on_every_layer() -> None:
    texts = [
        "The gauge was renewed twice.\nLevels\nMonth\tMean\tDays\nMay\t1.2\t31\nJune\t1.4\t30",
        "Levels Month Mean Days\nJuly\t1.1\t31\nAugust\t1.3\t31",
    ]
    [first] = summaries_of(short(), [texts])
    assert first == "The gauge was renewed twice. Levels Month Mean Days: May – August."
    assert summaries_of(short(), [[first, "Levels Month Mean Days: September – December."]]) == [
        "The gauge was renewed twice. Levels Month Mean Days: May – December."
    ]
    assert summaries_of(short(), [["Opened\tin May 1932\nBuilt of\tstone and iron"]]) == [
        "Opened: in May 1932 Built of: stone and iron"
    ]


@given(st.lists(st.lists(st.text(max_size=200), max_size=5), max_size=3), st.integers(8, 60))
def test_an_extractive_summary_keeps_its_budget_and_is_empty_only_for_no_words(
    batch: list[list[str]], most: int
) -> None:
    for texts, text in zip(batch, summaries_of(short(), batch, most), strict=True):
        assert int(approx.Engine().count([text])[0]) <= most
        assert bool(text) == any(line.strip() for line in texts)


def test_a_single_endless_sentence_is_cut_to_the_budget() -> None:
    (text,) = summaries_of(short(), [["word " * 500]], 20)
    assert 15 <= int(approx.Engine().count([text])[0]) <= 20


def test_the_prompt_is_the_papers_with_the_texts_behind_fences() -> None:
    model = Scripted("A summary.")
    summaries_of(llm.Engine(model), [["First text.", "Second text."]])
    system, user = model.calls[0].messages
    assert system.content.startswith("You are a Summarizing Text Portal")
    assert "Write a summary of the following, including as many key details as possible" in user.content
    assert user.content.index("First text.") < user.content.index("Second text.")
    assert user.content.count("BEGIN ") == 2


def test_summaries_of_a_batch_are_made_in_parallel_and_come_in_order() -> None:
    running, most = 0, 0

    class Slow(Scripted):
        async def stream(self, messages, **options):  # type: ignore[no-untyped-def]
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            async for event in super().stream(messages, **options):
                yield event
            running -= 1

    model = Slow(script=lambda messages, asked: "about " + messages[-1].content.split("\n")[-2])
    assert summaries_of(llm.Engine(model, parallel=3), [[f"text{i}"] for i in range(9)]) == [
        f"about text{i}" for i in range(9)
    ]
    assert most == 3


def test_what_was_paid_for_is_never_asked_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept" / "summaries.sqlite3"
    batch = [["one"], ["two"], ["three"]]
    broken = Scripted(script=["First.", "Second.", ScriptedReply(error=OutsideFailed("down"))])
    with pytest.raises(OutsideFailed, match="down"):
        summaries_of(llm.Engine(broken, kept=kept, parallel=1, tries=1), batch)
    model = Scripted("Third.")
    engine = llm.Engine(model, kept=kept, parallel=1)

    assert summaries_of(engine, batch) == ["First.", "Second.", "Third."]
    assert len(model.calls) == 1
    assert summaries_of(engine, batch) == ["First.", "Second.", "Third."]
    assert len(model.calls) == 1
    assert summaries_of(engine, [["one"]], 50) == ["Third."]  # another length is another summary


def test_a_failure_is_tried_again_and_is_never_kept_as_a_summary(tmp_path: Path) -> None:
    waits = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    model = Scripted(script=[ScriptedReply(error=OutsideFailed("busy")), ScriptedReply(" "), "At last."])
    engine = llm.Engine(model, kept=tmp_path / "k", pause=pause)
    assert summaries_of(engine, [["text"]]) == ["At last."]
    assert waits == [1.0, 2.0]
    silent = llm.Engine(Scripted(" "), kept=tmp_path / "other", pause=pause)
    with pytest.raises(OutsideFailed, match="empty"):
        summaries_of(silent, [["text"]])
    again = llm.Engine(Scripted("Said."), kept=tmp_path / "other", pause=pause)
    assert summaries_of(again, [["text"]]) == ["Said."]


def test_a_limit_stops_the_run(tmp_path: Path) -> None:
    batch = [[f"some text {i}"] for i in range(10)]
    meter = Meter(Limits(tokens=700))
    engine = llm.Engine(Metered(Scripted("one two three"), meter), kept=tmp_path / "kept")
    with pytest.raises(OverLimit):
        summaries_of(engine, batch, 20)
    assert meter.total.prompt_tokens + meter.total.completion_tokens <= meter.limits.tokens


def test_nothing_to_say_costs_nothing() -> None:
    model = Scripted("x")
    assert summaries_of(llm.Engine(model), [[], [" "]]) == ["", ""]
    assert model.calls == []


def test_numbers_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="1 or more"):
        llm.Engine(Scripted("x"), parallel=0)
    (tmp_path / "noise").write_bytes(b"no database" * 50)
    with pytest.raises(BadInput, match="delete it"):
        summaries_of(llm.Engine(Scripted("x"), kept=tmp_path / "noise"), [["a"]])


DIGEST = "0123456789abcdef0123456789abcdef"


class Unruly(Scripted):
    """A model that takes no notice of its limit."""

    async def stream(self, messages, **options):  # type: ignore[no-untyped-def]
        async for event in super().stream(messages, **{**options, "max_tokens": 100_000}):
            yield event


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("It was built in 1871. " + "Pell kept it. " * 400, "It was built in 1871. Pell kept it."),  # a loop
        (f"BEGIN {DIGEST}\nIt was built in 1871.\nEND {DIGEST}", "It was built in 1871."),  # lines of the prompt
        (
            "Built in 1871. On a rock. By the sea. For the ships. With a lamp. And a keeper.",
            "Built in 1871. On a rock.",
        ),
        ("word " * 500, "word word"),
    ],
)
def test_a_summary_has_no_loop_no_fence_and_no_more_tokens_than_it_may(said: str, kept: str) -> None:
    counted = Metered(Unruly(said), Meter(Limits()), approx.Engine())
    (text,) = summaries_of(llm.Engine(counted), [GROUP], 14)
    assert int(approx.Engine().count([text])[0]) <= 14
    assert text.startswith(kept) and said.replace(f"BEGIN {DIGEST}\n", "").startswith(text)


def test_a_model_that_never_ends_is_stopped() -> None:
    asked = 0

    class Endless(Scripted):
        async def stream(self, messages, **options):  # type: ignore[no-untyped-def]
            nonlocal asked
            async for event in super().stream(messages, **options):
                yield event
            while True:
                asked += 1
                yield TokenEvent(f"And {asked} more things. ")

    (text,) = summaries_of(llm.Engine(Metered(Endless("One thing. "), Meter(Limits()), approx.Engine())), [GROUP], 20)
    assert text.startswith("One thing.") and asked < 200
