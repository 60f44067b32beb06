"""Judging: both orders, contradictions, replies that cannot be read, what is kept, and files for people."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.errors import BadBudget, BadInput, OutsideFailed, OverWindow, PrunusError
from prunus.core.types import Message
from prunus_evals import prompts, readers
from prunus_evals.cli import main
from prunus_evals.errors import EvalError, ReaderFailed, UnknownName, Unreachable
from prunus_evals.judging import costs, session, summary
from prunus_evals.judging.judge import read_better, read_grade, verdict_of
from prunus_evals.judging.people import COLUMNS
from prunus_evals.judging.session import Place
from prunus_evals.records import Outcome, Question, Reading, one_page
from prunus_evals.store import Store

QUESTIONS = 6
"""Two questions of each of three pages."""


class Scripted:
    """A judge that replies by a function of the prompt, and counts how often it is asked."""

    name = "scripted judge"
    real = False

    def __init__(self, reply: Callable[[str], str]) -> None:
        self._reply = reply
        self.asked: list[str] = []

    def identity(self, store: Store) -> str:
        return self.name

    def reply(self, messages: Sequence[Message]) -> Reading:
        self.asked.append("\n".join(message.content for message in messages))
        return Reading(self._reply(self.asked[-1]), 10, 2)


def answer(system: str, number: int) -> str:
    return f"{system} says {number}"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run: two systems with a reader, one without."""
    folder = tmp_path / "run"
    with closing(Store(folder)) as store:
        for number in range(QUESTIONS):
            page = f"page {number // 2}"
            question = Question(f"q{number}", "nq", page, one_page("<p>x"), f"What is {number}?", (str(number),))
            store.keep_question(question)
            for system in ("good", "bad", "mute"):
                reading = Reading(answer(system, number), 100, 5) if system != "mute" else None
                reader = "model" if reading else "none"
                outcome = Outcome("nq", system, page, f"q{number}", 512, {}, 90, 0.1, reader=reader, reading=reading)
                store.keep(f"{system} {number}", outcome)
        store.note({"halves": {"nq": "dev"}})
    return folder


def place(run: Path, **facts: Any) -> Place:
    return Place(run, ("good", "bad"), **facts)


def prefers_good(prompt: str) -> str:
    return "It is right. [[A]]" if prompt.index("good says") < prompt.index("bad says") else "Thus: [[B]]"


def only(result: dict[str, Any]) -> dict[str, Any]:
    (group,) = result["groups"]
    return dict(group)


def test_both_orders_are_asked_and_agreeing_ones_count(run: Path) -> None:
    judge = Scripted(prefers_good)
    result = place(run).model("", made=judge)
    group = only(result)
    assert (group["win"], group["lose"], group["biased"], group["pairs"], group["pages"]) == (6, 0, 0, 6, 3)
    assert group["win_share"] == group["win_minus_lose"] == [1, None, None]  # of three pages
    assert len(judge.asked) == 2 * QUESTIONS
    assert "What is 3?" in "".join(judge.asked)
    assert result["judge_tokens"] == {"prompt_tokens": 120, "completion_tokens": 24}
    turned = only(Place(run, ("bad", "good")).model("", made=Scripted(prefers_good)))
    assert (turned["win"], turned["lose"], turned["win_minus_lose"]) == (0, 6, [-1, None, None])


def test_a_judge_that_likes_the_first_is_position_biased(run: Path) -> None:
    group = only(place(run).model("", made=Scripted(lambda prompt: "[[A]]")))
    assert (group["biased"], group["a_in_both_orders"], group["win"], group["tie"]) == (6, 6, 0, 0)
    assert group["win_minus_lose"] == [0, None, None]
    assert group["same_answers"] == 0


def test_a_tie_must_be_a_tie_in_both_orders() -> None:
    orders = {
        orders: verdict_of(orders) for orders in (("tie", "tie"), ("A", "tie"), ("B", "B"), ("B", "A"), (None, "A"))
    }
    assert list(orders.values()) == ["tie", "biased", "biased", "lose", "unreadable"]


def test_nothing_is_asked_twice(run: Path) -> None:
    first = place(run).model("", made=Scripted(prefers_good))
    again = Scripted(lambda prompt: pytest.fail("asked again"))
    assert place(run).model("", made=again) == first


def test_a_reply_that_cannot_be_read_is_asked_for_once_more(run: Path) -> None:
    strict = prompts.template("judge_pair_again").split("\n")[1]
    judge = Scripted(lambda prompt: prefers_good(prompt) if strict in prompt else "Hard to tell!")
    assert only(place(run).model("", made=judge))["win"] == 6
    assert len(judge.asked) == 4 * QUESTIONS


def test_verdicts_that_cannot_be_read_are_counted(run: Path) -> None:
    judge = Scripted(lambda prompt: "[[A]] or [[B]]" if "What is 3?" in prompt else prefers_good(prompt))
    result = place(run).model("", made=judge)
    group = only(result)
    assert (group["unreadable"], group["win"], group["pairs"]) == (1, 5, 6)
    assert group["win_share"][0] == pytest.approx(5 / 6, abs=1e-4)


def test_a_judge_of_nothing_but_nonsense_is_counted_and_told(run: Path) -> None:
    result = place(run).model("", made=Scripted(lambda prompt: "I like\ntrains"))
    assert only(result)["unreadable"] == 6
    told = "the judge's answers to 12 prompts cannot be read, even when asked again, as 'I like trains'"
    assert told in summary.table(result)
    graded = place(run).model("", grade=True, made=Scripted(lambda prompt: "[[11]]"))
    assert only(graded)["unreadable"] == 6
    assert "to 12 prompts cannot be read, even when asked again, as '[[11]]'" in summary.table(graded)


def failing(prompt: str, error: PrunusError) -> str:
    """Fail as readers do."""
    raise readers.failed("judge", error, ReaderFailed) from error


@pytest.mark.parametrize(
    "error",
    [
        BadBudget("the prompt is too long"),
        OverWindow("too long", window=1, needed=2),
        OutsideFailed("the server's content filter withheld the answer"),
    ],
)
def test_one_prompt_that_a_judge_refuses_is_counted_and_the_others_are_judged(run: Path, error: PrunusError) -> None:
    judge = Scripted(lambda prompt: failing(prompt, error) if "What is 3?" in prompt else prefers_good(prompt))
    result = place(run).model("", made=judge)
    group = only(result)
    assert (group["unreadable"], group["win"], group["pairs"]) == (1, 5, 6)
    assert f"the judge failed at 2 prompts: judge: {error}" in summary.table(result)


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (OutsideFailed("no connection", sent=False), 1),
        (BadInput("needs a key"), 1),
        (OutsideFailed("the server refuses the key (401)"), 3),
    ],
)
def test_a_judge_that_cannot_be_reached_ends_the_judging(run: Path, error: PrunusError, calls: int) -> None:
    judge = Scripted(lambda prompt: failing(prompt, error))
    with pytest.raises(ReaderFailed, match="judge: "):
        place(run).model("", made=judge)
    assert len(judge.asked) == calls


def test_a_judge_that_only_fails_is_an_error_however_few_pairs_there_are(run: Path) -> None:
    judge = Scripted(lambda prompt: failing(prompt, OutsideFailed("HTTP 500")))
    with pytest.raises(ReaderFailed, match="HTTP 500"):
        place(run, limit=1).model("", made=judge)


def test_judges_of_one_name_at_other_addresses_share_no_reply(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "on")
    monkeypatch.setattr("prunus_evals.readers.served", lambda spec: None)
    replies = {"http://one/v1": "[[C]]", "http://two/v1": "[[A]]"}
    ties = []
    for address, reply in replies.items():
        monkeypatch.setattr("prunus_evals.readers.ask", lambda *_, reply=reply: Reading(reply, 10, 2))
        ties.append(only(place(run).model(f"{address}#m"))["tie"])
    assert ties == [6, 0]
    monkeypatch.setattr("prunus_evals.judging.judge.MAX_TOKENS", 5)
    asked = []
    monkeypatch.setattr("prunus_evals.readers.ask", lambda *_: asked.append(1) or Reading("[[C]]", 1, 1))
    assert only(place(run).model("http://one/v1#m"))["tie"] == 6
    assert len(asked) == 12


def test_only_the_outcomes_that_are_handed_over_are_judged(run: Path) -> None:
    with closing(Store(run)) as store:
        chosen = [outcome for outcome in store.outcomes() if outcome.question in ("q1", "q4")]
    result = place(run, outcomes=chosen).model("", made=Scripted(prefers_good))
    assert (only(result)["pairs"], only(result)["pages"]) == (2, 2)
    assert {row["questions"] for row in result["tokens"]} == {2}


def test_answers_to_different_prompts_are_no_pair(run: Path) -> None:
    with closing(Store(run)) as store:
        for system in ("good", "bad"):
            for name in ("short", "long"):
                for number in range(2):
                    outcome = Outcome("nq", system, "page 0", f"q{number}", 512, {}, 90, 0.1, reader="model",
                                      reading=Reading(f"{system} says {name}", 10, 1), prompt_name=name)  # fmt: skip
                    if (system, name, number) != ("bad", "long", 1):
                        store.keep(f"{system} {name} {number}", outcome)
    judge = Scripted(prefers_good)
    result = place(run).model("", made=judge)
    assert {group["prompt"]: group["pairs"] for group in result["groups"]} == {"": 6, "short": 2, "long": 1}
    assert result["alone"] == 1
    assert not any("says long" in prompt and "says short" in prompt for prompt in judge.asked)
    shown = session.table(result)
    assert "reader model, prompt long: 1 pair" in shown
    assert "good > model, prompt short" in shown
    rows = {(row["system"], row["prompt"]): row["questions"] for row in result["tokens"]}
    assert rows["good", "long"] == rows["good", "short"] == 2


def test_a_judge_that_fails_or_is_stopped_loses_nothing(run: Path) -> None:
    calls = []

    def fails(prompt: str) -> str:
        calls.append(prompt)
        if len(calls) == 6:
            raise KeyboardInterrupt
        if len(calls) == 10:
            raise Unreachable("the server is gone")
        return prefers_good(prompt)

    with pytest.raises(KeyboardInterrupt):
        place(run).model("", made=Scripted(fails))
    with pytest.raises(ReaderFailed, match="the server is gone"):
        place(run).model("", made=Scripted(fails))
    rest = Scripted(prefers_good)
    assert only(place(run).model("", made=rest))["win"] == 6
    assert len(rest.asked) == 2 * QUESTIONS - 8


def test_grades_are_means_with_a_paired_difference(run: Path) -> None:
    def graded(prompt: str) -> str:
        if "bad says 4" in prompt:
            return "no grade"
        return "[[8]]" if "good" in prompt else "Poor.\n[[2.5]]"

    group = only(place(run).model("", grade=True, made=Scripted(graded)))
    assert group["first"] == [8, None, None]
    assert group["second"] == [2.5, None, None]
    assert group["first_minus_second"] == [5.5, None, None]
    assert group["unreadable"] == 1


@pytest.mark.parametrize(
    ("reply", "better", "grade"),
    [
        ("[[A]]", "A", None),
        ("so [[b]]", "B", None),
        ("[[C]]", "tie", None),
        ("[[tie]]", "tie", None),
        ("B", "B", None),
        ("**Tie**.", "tie", None),
        ("[[A]] ... no, [[B]]", None, None),
        ("[[A]] as I said: [[A]]", "A", None),
        ("Answer A is better", None, None),
        ("Rating: [[7]]", None, 7),
        ("[[ 7.5 / 10 ]]", None, 7.5),
        ("9/10", None, 9),
        ("**10**", None, 10),
        ("[[0]]", None, None),
        ("[[11]]", None, None),
        ("[[7]] or [[8]]", None, None),
        ("I give it 7 points", None, None),
        ("[[\u0667]]", None, None),
        ("", None, None),
    ],
)
def test_verdicts_and_grades_are_read(reply: str, better: str | None, grade: float | None) -> None:
    assert read_better(reply) == better
    assert read_grade(reply) == grade


@given(st.text())
def test_no_reply_breaks_the_reading(reply: str) -> None:
    assert read_better(reply) in ("A", "B", "tie", None)
    assert read_grade(reply) is None or 1 <= (read_grade(reply) or 0) <= 10


# --- people --------------------------------------------------------------------------------------


def filled(path: Path, word: Callable[[dict[str, str]], str]) -> None:
    """Fill the column ``better`` of a file."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        path.write_text("".join(json.dumps({**row, "better": word(row)}) + "\n" for row in rows), "utf-8")
        return
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter=";")  # as a German spreadsheet
        writer.writeheader()
        writer.writerows({**row, "better": word(row)} for row in rows)


def good_is(row: dict[str, str]) -> str:
    return "First" if "good" in row["first"] else "second"


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.jsonl"])
def test_pairs_come_back_from_people(run: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert place(run, seed=3).export(path) == (QUESTIONS, 0)
    filled(path, good_is)
    result = place(run, seed=3).people(path)
    assert only(result)["win"] == 6
    assert result["judge"] == f"people ({name})"
    path.unlink()
    place(run, seed=3).export(path)
    filled(path, lambda row: "" if "says 1" in row["first"] else "tie")
    group = only(place(run, seed=3).people(path))
    assert (group["tie"], group["open"], group["win_share"][0]) == (5, 1, 0)
    with pytest.raises(EvalError, match="is not of this run, these systems and seed 4"):
        place(run, seed=4).people(path)


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.jsonl"])
def test_equal_answers_are_ties_that_nobody_must_judge(run: Path, tmp_path: Path, name: str) -> None:
    def says(text: str, *questions: int) -> None:
        with closing(Store(run)) as store:
            for system in ("good", "bad"):
                for number in questions:
                    store.keep(f"{system} {number}", Outcome("nq", system, f"page {number // 2}", f"q{number}", 512, {}, 9,
                                                             0.1, reader="model", reading=Reading(text, 1, 1)))  # fmt: skip

    says("the same", 0)
    path = tmp_path / name
    code, output = invoke(run, "--between", "good,bad", "--export", path)
    assert code == 0
    assert "5 pairs; fill in" in output
    assert "left out: 1 pair with equal answers, which --import counts as ties" in output
    assert "the same" not in path.read_text("utf-8")
    filled(path, good_is)
    result = place(run).people(path)
    assert [only(result)[key] for key in ("win", "tie", "open", "pairs")] == [5, 1, 0, 6]
    assert "ties that nobody had to judge, as both answers are the same: 1" in summary.table(result)
    says("the same", *range(QUESTIONS))
    path.unlink()
    assert place(run).export(path) == (0, 6)
    assert only(place(run).people(path))["tie"] == 6


def test_files_for_people_hide_the_systems_and_mix_the_order(run: Path, tmp_path: Path) -> None:
    firsts = []
    for seed in range(4):
        path = tmp_path / f"{seed}.jsonl"
        place(run, seed=seed).export(path)
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert not any("good" in row["pair"] or "bad" in row["pair"] for row in rows)
        assert [*rows[0]] == [*COLUMNS]
        firsts += ["good" in row["first"] for row in rows]
    assert 4 <= sum(firsts) <= 20
    assert len({(tmp_path / f"{seed}.jsonl").read_text("utf-8") for seed in range(4)}) == 4


def test_a_file_that_may_be_filled_in_is_not_overwritten(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    place(run).export(path)
    with pytest.raises(EvalError, match="exists, and may be filled in"):
        place(run).export(path)
    with pytest.raises(EvalError, match=r"must end with \.csv or \.jsonl"):
        place(run).export(tmp_path / "pairs.xlsx")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda text: text, "nothing is filled in"),
        (lambda text: text.replace('"better": ""', '"better": "A"'), "row 1: better must be one of first, second, tie"),
        (lambda text: text + text, "row 7: pair p[0-9a-f]+ is there twice"),
        (lambda text: "[1]\n", "row 1: must be a JSON object"),
        (lambda text: "{", "row 1: not JSON"),
        (lambda text: '{"pair": 7}', "row 1: pair '7' is not of this run"),
    ],
)
def test_a_file_with_faults_names_them(run: Path, tmp_path: Path, change: Callable[[str], str], error: str) -> None:
    path = tmp_path / "pairs.jsonl"
    place(run).export(path)
    path.write_text(change(path.read_text("utf-8")), "utf-8")
    with pytest.raises(EvalError, match=error):
        place(run).people(path)


def test_a_table_without_its_columns_is_refused(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("pair,verdict\n1,2\n")
    with pytest.raises(EvalError, match="has no column better"):
        place(run).people(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EvalError, match="cannot be read as UTF-8"):
        place(run).people(path)


def test_no_cell_of_a_spreadsheet_is_a_formula(run: Path, tmp_path: Path) -> None:
    with closing(Store(run)) as store:
        outcome = store.outcomes()[0]
        bomb = Outcome("nq", "good", "page 0", "q0", 512, {}, 9, 0.1, reader="model", reading=Reading("=2+5", 1, 1))
        store.keep("bomb", bomb)
        assert outcome.system == "good"
    path = tmp_path / "pairs.csv"
    place(run).export(path)
    assert "'=2+5" in path.read_text("utf-8")


# --- the run and the command ---------------------------------------------------------------------


def test_what_cannot_be_compared_is_refused_by_name(run: Path, tmp_path: Path) -> None:
    judge = Scripted(prefers_good)
    with pytest.raises(UnknownName, match="nobody is not in this run; its systems are: good, bad, mute"):
        Place(run, ("good", "nobody")).model("", made=judge)
    with pytest.raises(EvalError, match="mute has no answers in this run"):
        Place(run, ("good", "mute")).model("", made=judge)
    with pytest.raises(EvalError, match="good cannot be compared with itself"):
        Place(run, ("good", "good")).model("", made=judge)
    Store(tmp_path / "empty").close()
    with pytest.raises(EvalError, match="the run is empty"):
        Place(tmp_path / "empty", ("good", "bad")).model("", made=judge)
    with pytest.raises(EvalError, match="is not the folder of a run"):
        Place(tmp_path, ("good", "bad")).model("", made=judge)
    assert judge.asked == []


def test_the_beginning_of_a_name_will_do_where_one_system_has_it(run: Path) -> None:
    def add(system: str) -> None:
        with closing(Store(run)) as store:
            store.keep(system, Outcome("nq", system, "page 0", "q0", 512, {}, 9, 0.1, reader="model",
                                       reading=Reading("bad says 0", 1, 1)))  # fmt: skip

    add("chunks:whole")
    for first, second in (("good", "chunks"), ("good > model", "chunks > model")):
        result = Place(run, (first, second)).model("", made=Scripted(prefers_good))
        assert result["between"] == [first, second.replace("chunks", "chunks:whole")]
        assert (only(result)["win"], only(result)["pairs"]) == (1, 1)
        assert {row["system"] for row in result["tokens"]} == {"good", "chunks:whole"}
    with pytest.raises(EvalError, match="chunks:whole cannot be compared with itself"):
        Place(run, ("chunks", "chunks:whole")).model("", made=Scripted(prefers_good))
    add("chunks:filled")
    with pytest.raises(UnknownName, match=r"chunks stands for several systems .* one of: chunks:whole, chunks:filled"):
        Place(run, ("good", "chunks")).model("", made=Scripted(prefers_good))
    with pytest.raises(UnknownName, match="good > other is not in this run"):
        Place(run, ("good > other", "chunks:whole > model")).model("", made=Scripted(prefers_good))


def test_an_answer_without_a_partner_is_counted(run: Path) -> None:
    with closing(Store(run)) as store:
        store.keep("x", Outcome("nq", "good", "p", "q9", 512, {}, 9, 0.1, reader="model", reading=Reading("x", 1, 1)))
    result = place(run).model("", made=Scripted(prefers_good))
    assert (result["alone"], only(result)["pairs"]) == (1, 6)


def test_readers_can_be_compared(run: Path) -> None:
    with closing(Store(run)) as store:
        store.keep("x", Outcome("nq", "good", "page 0", "q0", 512, {}, 9, 0.1, reader="tiny",
                                reading=Reading("bad says 0", 1, 1), caveat="tiny"))  # fmt: skip
    pairs = Place(run, ("good > model", "good > tiny"))
    group = only(pairs.model("", made=Scripted(prefers_good)))
    assert (group["win"], group["pairs"], group["reader"], group["caveats"]) == (1, 1, "", ["tiny"])


def test_pairs_with_the_same_answer_are_counted(run: Path) -> None:
    with closing(Store(run)) as store:
        for system in ("good", "bad"):
            store.keep(system, Outcome("nq", system, "page 0", "q0", 512, {}, 9, 0.1, reader="model",
                                       reading=Reading("the same", 1, 1)))  # fmt: skip
    result = place(run).model("", made=Scripted(lambda prompt: "[[C]]"))
    assert only(result)["same_answers"] == 1
    assert "both answers are the same in 1 pair" in summary.table(result)


def test_tokens_are_summed_by_system_and_a_server_that_counts_none_is_not_zero(run: Path) -> None:
    with closing(Store(run)) as store:
        rows = {row["system"]: row for row in costs.sums(store.outcomes())}
    assert rows["good"] | {"task": ""} == {
        "task": "", "system": "good", "reader": "model", "prompt": "", "budget": 512, "questions": 6,
        "evidence_tokens": 540, "prompt_tokens": 600, "completion_tokens": 30,
    }  # fmt: skip
    assert rows["mute"]["prompt_tokens"] is None
    assert "540" in costs.table([*rows.values()])


def invoke(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["judge", *map(str, arguments)])
    return result.exit_code, result.output


def test_the_command_judges_with_a_model_of_the_settings(run: Path) -> None:
    code, output = invoke(run, "--between", "good,bad", "--judge", "scripted:[[C]]")
    assert code == 0
    assert "good against bad, judged by scripted:[[C]] (scripted)" in output
    assert "nq, dev half, 512 tokens, reader model: 6 pairs, 3 pages" in output
    assert "win 0, tie 6, lose 0, position-biased 0" in output
    assert "6 of 6 pairs" in output
    arguments = ["judge", str(run), "--between", "good,bad", "--judge", "scripted:[[7]]", "--grade", "--json"]
    group = json.loads(CliRunner().invoke(main, arguments).stdout)["groups"][0]
    assert group["first_minus_second"] == [0, None, None]
    with closing(Store(run)) as store:
        assert len(store.about()["judging"]) == 2


def test_the_command_sends_pairs_to_people_and_takes_them_back(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    assert invoke(run, "--between", "good,bad", "--export", path)[0] == 0
    filled(path, good_is)
    code, output = invoke(run, "--between", "good,bad", "--import", path)
    assert code == 0
    assert "win 6, tie 0, lose 0" in output


def test_the_command_says_what_is_kept_when_a_judge_fails(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, output = invoke(run, "--between", "good,bad", "--judge", "scripted:what?")
    assert code == 0
    assert "the judge's answers to 12 prompts cannot be read, even when asked again, as 'what?'" in output

    def gone(*arguments: object) -> Reading:
        raise Unreachable("no connection")

    monkeypatch.setattr("prunus_evals.readers.ask", gone)
    code, output = invoke(run, "--between", "good,bad", "--judge", "scripted:other")
    assert code == 3
    assert "no connection; 18 outcomes are kept in" in output

    def stopped(*arguments: object) -> Reading:
        raise KeyboardInterrupt

    monkeypatch.setattr("prunus_evals.readers.ask", stopped)
    code, output = invoke(run, "--between", "good,bad", "--judge", "scripted:new")
    assert code == 130
    assert "run the same command again to go on" in output


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--between", "good", "--judge", "scripted:x"], "--between takes two systems"),
        (["--between", "good,bad"], "take one of --judge, --export and --import"),
        (["--between", "good,bad", "--export", "x.csv", "--grade"], "--grade needs --judge"),
        (["--between", "good,bad", "--judge", "no-such:model"], "reader no-such:model"),
        (["--between", "good,bad", "--import", "no-such.csv"], "no-such.csv is not there"),
    ],
)
def test_what_the_command_refuses(run: Path, arguments: list[str], error: str) -> None:
    code, output = invoke(run, *arguments)
    assert code == 2
    assert error in " ".join(output.split())
