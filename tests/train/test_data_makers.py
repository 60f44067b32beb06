"""The makers of data: their samples ask what inference asks, and a killed maker asks nothing twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("selectolax")

from prunus.core.errors import OutsideFailed
from prunus.core.types import Plan, SearchQuery
from prunus.models.llm.scripted import Engine as Scripted
from prunus.models.llm.scripted import ScriptedReply
from prunus_evals import readers
from prunus_evals.records import Document, Question
from prunus_train.cli import main
from prunus_train.data import extractor, parser, preferences, pruner, quotes
from prunus_train.data.sample_file import KeptReplies, SampleFile
from prunus_train.errors import DataBroken, TrainError
from prunus_train.llm.samples import read_preferences, read_samples

LINES = [
    f"Line {n} leaves the harbour at {n} o'clock, calls at pier {n}, and is back before dusk." for n in range(1, 13)
]
PAGE = "<h1>Ferries</h1>" + "".join(f"<p>{line}</p>" for line in LINES)
OTHER = "<h1>Bakeries</h1>" + "".join(
    f"<p>Bakery {n} opens at {n} and sells rye bread until its shelves are empty.</p>" for n in range(12)
)


def quiet(done: int, total: int) -> None:
    assert done <= total


def questions(count: int = 3, pages: int = 1) -> list[Question]:
    return [
        Question(f"q{n}", "own", f"page{n}",
                 [Document(f"d{n}.{page}", PAGE if page % 2 == 0 else OTHER) for page in range(pages)],
                 f"Where does line {n + 4} call?", (f"pier {n + 4}",))
        for n in range(count)
    ]  # fmt: skip


def script(reply: Callable[[str, Any], str]) -> Scripted:
    return Scripted(script=lambda messages, call: reply("\n".join(one.content for one in messages), call))


def segment_of(text: str, words: str) -> int:
    """Return the tag of the segment that holds some words."""
    import re

    return next(int(found[1]) for found in re.finditer(r"<TAG-(\d+)>(.*?)</TAG-\1>", text) if words in found[2])


def asked_line(text: str) -> str:
    return f"pier {text.rpartition('does line ')[2].split()[0]},"


def good(text: str, call: Any) -> str:
    try:
        return f"where the line calls <TAG-{segment_of(text, asked_line(text))}>"
    except StopIteration:
        return "None"


PLAIN = extractor.ExtractorPlan(elsewhere=0)


# --- extractor -----------------------------------------------------------------------------------


def extracted(
    path: Path, llm: Scripted, asked: Sequence[Question], plan: extractor.ExtractorPlan = PLAIN
) -> dict[str, Any]:
    with SampleFile(path, {"maker": "test"}) as sheet:
        return extractor.make(sheet, asked, ("model", llm), KeptReplies(path.with_name("replies")), plan, quiet)


def test_a_content_gives_an_instruction_with_summaries_and_one_without(tmp_path: Path) -> None:
    llm = script(good)
    report = extracted(tmp_path / "out", llm, questions(1))
    a, b = read_samples(tmp_path / "out")
    tag = segment_of(a.messages[-1].content, "pier 4,")
    assert a.target == (f"where the line calls <TAG-{tag}>",)
    assert b.target == (f"<TAG-{tag}>",)
    assert "a summary of its segment" in a.messages[0].content
    assert "a summary of its segment" not in b.messages[0].content
    assert [call.options.seed for call in llm.calls] == [1, 2]
    assert (report["samples"], report["counts"]) == (2, {"tags": 1})


def test_an_extractor_is_taught_the_prompt_that_an_answer_sends(tmp_path: Path) -> None:
    import prunus

    llm, [question] = script(good), questions(1)
    extracted(tmp_path / "out", llm, [question])
    _, b = read_samples(tmp_path / "out")
    answering = script(lambda text, call: "None")
    prunus.extract(question.question, PAGE, options=prunus.Options(extractor="tags", llm=answering))
    assert answering.calls[0].messages == b.messages


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda text, call: f"one <TAG-{call.seed}>", "the two replies do not agree"),
        (lambda text, call: "The fourth line does.", "a reply names neither tags nor None"),
        (lambda text, call: "far <TAG-999>", "a reply names a tag that the page does not have"),
        (lambda text, call: "<TAG-2>", "a tag has no summary"),
    ],
)
def test_what_cannot_be_taught_is_left_out_with_its_reason(tmp_path: Path, reply: Any, reason: str) -> None:
    with pytest.raises(DataBroken, match="no sample was made"):
        extracted(tmp_path / "out", script(reply), questions(2))
    report = json.loads((tmp_path / "out.report.json").read_text())
    assert report["left_out"] == {reason: 2}


def test_short_contents_are_left_out_and_at_most_two_of_a_request_are_asked_about(tmp_path: Path) -> None:
    [question] = questions(1, pages=6)
    short = Question("s", "own", "short", [Document("s", "<p>Line 4 calls at pier 4.</p>")], "Where does line 4 call?")
    llm = script(good)
    report = extracted(tmp_path / "out", llm, [question, short])
    contents = {call.messages[-1].content for call in llm.calls}
    assert len(contents) <= 2 < len(question.documents)
    assert report["left_out"]["the content is shorter than the least length"] == 1


def test_none_is_five_in_a_hundred(tmp_path: Path) -> None:
    named = questions(19)[:8]
    lost = [Question(f"n{n}", "own", f"n{n}", [Document("d", OTHER)], f"Where does line {n} call?") for n in range(8)]
    many = [
        Question(f"m{n}", "own", f"m{n}", [Document("d", PAGE)], f"Where does line {n % 12 + 1} call?")
        for n in range(30)
    ]
    report = extracted(tmp_path / "out", script(good), [*named, *lost, *many])
    kinds = Counter(sample.target[0] == "None" for sample in read_samples(tmp_path / "out"))
    assert kinds[True] / (kinds[True] + kinds[False]) == pytest.approx(0.05, abs=0.01)
    assert report["left_out"]["None is its share already"] == 6


def test_a_killed_maker_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    whole = script(good)
    extracted(tmp_path / "whole", whole, questions(6))

    (tmp_path / "torn").mkdir()
    calls = 0

    def failing(text: str, call: Any) -> Any:
        nonlocal calls
        calls += 1
        return ScriptedReply(error=OutsideFailed("gone")) if calls == 8 else good(text, call)

    with pytest.raises(TrainError, match="run the same command to go on"):
        extracted(tmp_path / "torn" / "whole", script(failing), questions(6))
    units = tmp_path / "torn" / "whole.units"
    units.write_bytes(units.read_bytes()[:-9])  # torn in the middle of a line
    second = script(good)
    extracted(tmp_path / "torn" / "whole", second, questions(6))
    assert len(second.calls) == len(whole.calls) - 7
    assert (tmp_path / "torn" / "whole").read_bytes() == (tmp_path / "whole").read_bytes()


# --- pairs for DPO -------------------------------------------------------------------------------


def weak(text: str, call: Any) -> str:
    return "<TAG-1>"


def strong(text: str, call: Any) -> str:
    try:
        return f"<TAG-{segment_of(text, asked_line(text))}>"
    except StopIteration:
        return "None"


def writer(text: str, call: Any) -> str:
    return "It calls at the right pier [1]." if "calls at pier 4," in text else "The pages do not say it."


def judge(text: str, call: Any) -> str:
    return "[[9]]" if "right pier" in text else "[[2]]"


def paired(path: Path, grader: Scripted, asked: Sequence[Question], **models: Scripted) -> dict[str, Any]:
    made = {"extractor": script(weak), "stronger": script(strong), "generator": script(writer)} | models
    named = preferences.PreferenceModels(**{name: (name, llm) for name, llm in made.items()}, judge=("judge", grader))
    with SampleFile(path, {"maker": "test"}) as sheet:
        return preferences.make(sheet, asked, named, KeptReplies(path.with_name("replies")), (5, 2, 4096), quiet)


def test_taught_are_the_tags_of_the_page_that_was_exchanged_and_not_the_answers(tmp_path: Path) -> None:
    paired(tmp_path / "out", script(judge), questions(1))
    [pair] = read_preferences(tmp_path / "out")
    tag = segment_of(pair.messages[-1].content, "pier 4,")
    assert (pair.chosen, pair.rejected) == (f"<TAG-{tag}>", "<TAG-1>")
    assert json.loads((tmp_path / "out").read_text())["grades"] == [2.0, 9.0]


def test_a_worse_answer_of_the_stronger_extractor_teaches_the_own_tags(tmp_path: Path) -> None:
    paired(tmp_path / "out", script(judge), questions(1), extractor=script(strong), stronger=script(weak))
    [pair] = read_preferences(tmp_path / "out")
    assert pair.rejected == "<TAG-1>"


def test_only_one_page_is_exchanged_and_two_pairs_of_a_request_are_graded(tmp_path: Path) -> None:
    grader, generator = script(judge), script(writer)
    [question] = questions(1, pages=5)
    paired(tmp_path / "out", grader, [question], generator=generator)
    assert len(grader.calls) <= 3 and len(generator.calls) <= 3  # the answer before, and one for each exchange
    for call in generator.calls[1:]:
        text = call.messages[-1].content
        assert text.count("Ferries") + text.count("Line 1 ") + text.count("Bakery 0") >= 1


def test_extractors_that_agree_cost_no_answer(tmp_path: Path) -> None:
    generator = script(writer)
    with pytest.raises(TrainError, match="both extractors name the same tags"):
        paired(tmp_path / "out", script(judge), questions(2), extractor=script(strong), generator=generator)
    assert not generator.calls


def test_a_judge_that_never_prefers_is_one_line_with_the_counts(tmp_path: Path) -> None:
    with pytest.raises(preferences.NeverPrefers, match="never prefers an answer: 3 × the grades are equal"):
        paired(tmp_path / "out", script(lambda text, call: "[[5]]"), questions(3))
    (tmp_path / "b").mkdir()
    with pytest.raises(preferences.NeverPrefers, match="3 × a grade cannot be read"):
        paired(tmp_path / "b" / "out", script(lambda text, call: "Both are nice."), questions(3))


# --- parser --------------------------------------------------------------------------------------

PLAN = {"needs_search": True, "queries": [{"text": "pier opening hours", "language": "en", "time_range": ""}]}


def planned(path: Path, requests: Sequence[parser.ParserRequest], llm: Scripted | None = None) -> dict[str, Any]:
    return parser.make(path, requests, ("model", llm) if llm else None, 1, quiet, {})


def requests_of(path: Path, *rows: dict[str, Any]) -> list[parser.ParserRequest]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return parser.read(path)


def test_a_truth_of_the_file_is_taught_and_a_missing_one_is_asked_for(tmp_path: Path) -> None:
    given = requests_of(tmp_path / "in", {"request": "When is the pier open?", "plan": PLAN}, {"request": "Hello"})
    llm = script(lambda text, call: '{"needs_search": false, "reason": "a greeting", "queries": []}')
    report = planned(tmp_path / "out", given, llm)
    first, second = read_samples(tmp_path / "out")
    assert json.loads(first.target[0]) == {"needs_search": True, "reason": "", "queries": PLAN["queries"]}
    assert json.loads(second.target[0])["needs_search"] is False
    assert len(llm.calls) == 1 and llm.calls[0].messages == second.messages
    assert report["counts"]["search"] == report["counts"]["no search"] == 1


def test_a_parser_is_taught_the_prompt_that_the_planner_sends(tmp_path: Path) -> None:
    from prunus.answer.plan.llm import Engine
    from prunus.core.sync import run

    [request] = requests_of(tmp_path / "in", {"request": "When is the pier open?", "plan": PLAN})
    planned(tmp_path / "out", [request])
    [sample] = read_samples(tmp_path / "out")
    llm = script(lambda text, call: sample.target[0])
    plan = run(lambda: Engine(llm).plan(request.turns, request.now))
    assert llm.calls[0].messages == sample.messages
    assert plan == Plan(True, "", (SearchQuery("pier opening hours", "en", ""),))


def test_a_reply_that_is_no_plan_is_sent_back_once_and_then_left_out(tmp_path: Path) -> None:
    llm = script(lambda text, call: "pier opening hours")
    report = planned(tmp_path / "out", requests_of(tmp_path / "in", {"request": "When is the pier open?"}), llm)
    assert len(llm.calls) == 2
    assert report["left_out"] == {"the model wrote no plan": 1}


@pytest.mark.parametrize(
    ("more", "query", "reason"),
    [
        ({"names": ["Velmoran"]}, {"text": "Vel Moran founder"}, "a name is split, changed or missing"),
        ({"time": "any"}, {"text": "remove limescale 2026"}, "a time narrows a question that has none"),
        ({"time": "today"}, {"text": "weather Kiel"}, "a question about today has no time"),
        ({"language": "de"}, {"text": "weather Kiel"}, "no query is in the language of the question"),
        ({"time": "today"}, {"text": "weather Kiel", "time_range": "day"}, ""),
        ({"names": ["Velmoran"]}, {"text": '"Velmoran" founder'}, ""),
    ],
)  # fmt: skip
def test_truths_that_would_teach_a_fault_are_left_out(
    tmp_path: Path, more: dict[str, Any], query: dict[str, str], reason: str
) -> None:
    plan = {"needs_search": True, "queries": [{"language": "en", "time_range": ""} | query]}
    report = planned(tmp_path / "out", requests_of(tmp_path / "in", {"request": "What?", "plan": plan} | more))
    assert report["left_out"] == ({reason: 1} if reason else {})


def test_made_requests_keep_names_whole_in_eight_languages_and_none_is_left_out(tmp_path: Path) -> None:
    report = planned(tmp_path / "out", list(parser.made_requests(128, 1)))
    assert report["left_out"].get("the same request twice", 0) < 30
    assert set(report["left_out"]) <= {"the same request twice"}
    languages = [name for name in report["counts"] if name.startswith("language")]
    assert len(languages) == 8
    assert report["counts"]["time today"] == 48 and report["counts"]["time any"] == 32
    assert report["counts"]["no search"] == 32 and report["counts"]["made-up name"] == 80


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not JSON"),
        ('{"question": "q"}', "line 1: unknown field 'question'"),
        ('{"request": "q", "plan": {"needs_search": true, "queries": []}}', "line 1: 'plan': needs_search is true"),
        ('{"request": "q", "now": "soon"}', "line 1: 'now' is no time"),
        ("", "holds no request"),
    ],
)
def test_a_wrong_request_is_one_line_that_names_it(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "in").write_text(line + "\n", encoding="utf-8")
    shown = CliRunner().invoke(main, ["data", "parser", str(tmp_path / "in"), "-o", str(tmp_path / "out")])
    assert shown.exit_code == 2
    assert message in shown.output.replace("\n", " ")


# --- questions -----------------------------------------------------------------------------------

ABOUT = "<h1>Ferry Moor</h1>" + "".join(
    f"<p>The ferry Moor {n} leaves the harbour at {n}:30 and calls at the old pier of Saltern Gate, "
    "where the crew waits for the bus before it sails on to the islands.</p>"
    for n in range(10, 14)
)


def asked_and_read(again: Callable[[str], str]) -> Callable[[str, Any], str]:
    """Return what a model replies: a question about the words, then its answer."""

    def reply(text: str, call: Any) -> str:
        if "Words that answer" not in text:
            return again(text)
        words = text.rpartition("Words that answer: ")[2].partition("\n")[0]
        return f"Question: Which of them is number {words.encode().hex()}?"

    return reply


@pytest.mark.parametrize(
    ("again", "kept"),
    [
        (lambda text: bytes.fromhex(text.rpartition("number ")[2].strip("?\n ")).decode(), True),
        (lambda text: "unknown", False),
    ],
)
def test_a_question_is_kept_whose_answer_the_model_finds_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: Callable[[str], str], kept: bool
) -> None:
    (tmp_path / "ferry.html").write_text(ABOUT)
    model = script(asked_and_read(again))
    monkeypatch.setattr(readers, "model", lambda spec: model)
    command = ["data", "questions", str(tmp_path / "ferry.html"), "-o", str(tmp_path / "out"), "--llm", "x", "--json"]
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 0, shown.output
    rows = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert bool(rows) is kept
    for row in rows:
        assert row["answers"][0] in row["evidence"][0] and "Ferry Moor" in row["pages"][0]["html"]
    calls = len(model.calls)
    assert CliRunner().invoke(main, command).exit_code == 0 and len(model.calls) == calls
    if rows:
        learned = list(quotes.from_questions(tmp_path / "out", quotes.PageCutter()))
        assert learned and all(example.gold.any() for example in learned)


# --- pruner --------------------------------------------------------------------------------------


def test_a_pruner_is_taught_from_questions_with_several_pages(tmp_path: Path) -> None:
    row = {"question": "Where does line 7 call?", "answers": ["pier 7"], "pages": [{"html": OTHER}, {"html": PAGE}]}
    (tmp_path / "own.jsonl").write_text(json.dumps(row) + "\n")
    command = ["data", "pruner", "-o", str(tmp_path / "out"), "--from", f"own:{tmp_path / 'own.jsonl'}",
               "--budgets", "400", "--coarse", "40", "--fine", "20", "--json"]  # fmt: skip
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 0, shown.output
    [sample] = read_samples(tmp_path / "out")
    assert "pier 7," in sample.target[1]
    assert sample.paths[0].startswith("<html1>") and sample.paths[-1].startswith("<html2>")
    assert json.loads(shown.output.splitlines()[-1])["samples"] == 1


def test_bare_questions_get_pages_by_a_search(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "ferries.html").write_text(PAGE)
    (site / "bakeries.html").write_text(OTHER)
    (tmp_path / "bare").write_text(
        json.dumps({"question": "Where does ferry line 7 call?", "answers": ["pier 7"]}) + "\n"
    )
    command = ["data", "pruner", "-o", str(tmp_path / "out"), "--bare", str(tmp_path / "bare"), "--search",
               f"local:{site}", "--budgets", "400", "--coarse", "40", "--fine", "20"]  # fmt: skip
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 0, shown.output
    [sample] = read_samples(tmp_path / "out")
    assert "pier 7," in sample.target[1]
    before = (tmp_path / "out.pages.jsonl").read_bytes()
    assert CliRunner().invoke(main, command).exit_code == 0
    assert (tmp_path / "out.pages.jsonl").read_bytes() == before


def test_a_source_without_questions_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text("")
    shown = CliRunner().invoke(
        main, ["data", "pruner", "-o", str(tmp_path / "out"), "--from", f"own:{tmp_path / 'own.jsonl'}"]
    )
    assert shown.exit_code == 2 and "has no question" in shown.output


def test_other_settings_are_refused(tmp_path: Path) -> None:
    planned(tmp_path / "out", list(parser.made_requests(8, 1)))
    with pytest.raises(DataBroken, match="other settings"), SampleFile(tmp_path / "out", {"maker": "other"}):
        pass


def test_the_command_makes_pairs_by_named_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = {"a": script(weak), "b": script(strong), "c": script(writer), "d": script(judge)}
    monkeypatch.setattr(readers, "model", models.__getitem__)
    monkeypatch.setattr(pruner, "load", lambda name, half: [questions(2)])
    out = tmp_path / "pairs.jsonl"
    command = ["data", "extractor-dpo", "table_qa", "-o", str(out), "--extractor", "a", "--stronger", "b",
               "--generator", "c", "--judge", "d"]  # fmt: skip
    shown = CliRunner().invoke(main, command)
    assert shown.exit_code == 0, shown.output
    assert [pair.rejected for pair in read_preferences(out)][:1] == ["<TAG-1>"]
