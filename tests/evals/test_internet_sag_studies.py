"""Studies of Internet-SAG: the paper's rows and columns, extractors with and without a model, and judged pairs."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.extras import need

from prunus.core.errors import BadBudget
from prunus_evals import metrics, studies, systems, tasks
from prunus_evals.errors import EvalError, ReaderFailed, UnknownName
from prunus_evals.metrics import tagged
from prunus_evals.metrics.tagged import precision_recall_f1
from prunus_evals.records import Asker, Document, Outcome, Output, Question, Reading, Reply
from prunus_evals.studies import Choice, Table, _sag_published, internet_sag
from prunus_evals.systems._prunus_answers import segments_of
from prunus_evals.tasks.task import Task
from prunus_evals.tokens import llama2

CASTLE = "The castle was built by the bishop of Ulm in 1423."
SENTENCES = (
    "The town lies on a river.",
    CASTLE,
    "Every spring there is a market.",
    "The school has three hundred pupils.",
    "A bridge of stone leads to the island.",
)
PARTS = [Document("a", "River\n\n" + " ".join(SENTENCES[:3]), "text/plain", "River")]
PARTS += [Document("b", "School\n\n" + " ".join(SENTENCES[3:]), "text/plain", "School")]
ASKED = Question(
    "q1", "hotpot:tags", "p1", PARTS, "Who built the castle?", ("the bishop of Ulm",), kind="tags",
    sentences=SENTENCES, tags=(1,), labels={"length": "4096", "depth": "50"},
)  # fmt: skip
STAND_INS = Choice(stand_ins=True)


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every task has two questions with five sentences, the second of which has no answer."""
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    about = Task("own", "questions", ("tags_f1",), (), "made up", lambda use, variant: iter(()))
    monkeypatch.setattr(tasks, "about", lambda name: about)

    def groups(name: str, half: object, limit: int | None = None, **_: object) -> Iterator[list[Question]]:
        if name == "crag":
            pages = [replace(ASKED, task=name, kind="short", sentences=(), tags=(), id=f"q{n}") for n in (1, 2, 3)]
        else:
            none = replace(ASKED, id="q2", page="p2", question="Who won the election in Norway?", tags=None)
            pages = [replace(one, task=name) for one in (ASKED, none)]
        return ([replace(page, page=page.id)] for page in pages[:limit])

    monkeypatch.setattr(tasks, "groups", groups)


class Whole:
    """Keeps the text of all documents."""

    name = "whole"

    def prepare(self, documents: Sequence[Document]) -> Asker:
        self._text = "\n".join(document.content for document in documents)
        return self

    def ask(self, question: str, budget: int) -> Reply:
        return Reply(self._text, "text")


@pytest.fixture
def baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(name: str, counter: object) -> Whole:
        made = Whole()
        made.name = name
        return made

    monkeypatch.setattr(systems, "make", make)


def ours(table: Table) -> dict[str, list[float | None]]:
    return {r.label: [n.value if n else None for n in r.numbers] for r in table.rows if not r.cited}


def printed(table: Table) -> dict[str, list[float | None]]:
    return {r.label: [n.value if n else None for n in r.numbers] for r in table.rows if r.cited}


@pytest.mark.usefixtures("questions")
def test_extractors_without_a_model_are_rows_of_their_own(tmp_path: Path) -> None:
    tables = studies.run(studies.named("sag:5"), STAND_INS, tmp_path)
    assert tables[0].columns == ("Recall", "Precision", "F1", "EM, none answers")
    found = ours(tables[0])
    assert found["Prunus: sentences (no model)"] == [1, 1, 1, 1]
    assert found["All sentences"] == [1, pytest.approx(0.2), pytest.approx(1 / 3), 0]
    assert "hotpot:pages (dev half: 2 questions, 2 pages)" in tables[0].notes[0]
    assert any("of the 1 question that some sentence answers" in line for line in tables[0].notes)
    assert not printed(tables[0])
    assert not ours(tables[1])
    assert printed(tables[1])["EXTRACTOR-LLM"] == [0.8353, 0.7139, 0.7698, 0.7985]


@pytest.mark.usefixtures("questions")
@pytest.mark.parametrize(
    ("reply", "f1"), [("<TAG-1>", 1 / 2), ("TAG-0, TAG-1", 1 / 3), ("None", 1 / 2), ("the castle", 0)]
)
def test_a_model_is_an_extractor_by_its_prompt_alone(tmp_path: Path, reply: str, f1: float) -> None:
    reader = f"scripted:{reply}"
    table, paper, *maps = studies.run(studies.named("sag:3"), Choice(readers=(reader,)), tmp_path)
    assert table.columns == ("Base", "Reasoning", "Multi-Ans", "Multi-Q")
    assert ours(table)[f"{reader}, by prompt alone"] == [pytest.approx(f1)] * 4
    assert any(line.startswith(f"{reader}, by prompt alone: no model answered") for line in table.notes)
    assert any("8 of 8 questions got no reply" in line for line in table.notes) == (reply == "the castle")
    assert not printed(table) and not ours(paper)
    assert printed(paper)["GPT-4O"] == [0.969, 0.904, 0.986, 1.0]
    assert len(maps) == 4
    assert maps[-1].columns == ("50 %",)
    assert ours(maps[-1]) == {"4096 tokens": [pytest.approx(f1)]}


def test_a_sentence_is_a_segment_at_its_place_and_under_its_title() -> None:
    found = segments_of((*SENTENCES, "Nobody wrote this."), PARTS)
    assert [segment.above for segment in found] == ["River", "River", "River", "School", "School", ""]
    content = {document.id: document.content for document in PARTS}
    for segment in found[:-1]:
        place = segment.span
        assert content[place.document][place.start : place.end] == segment.text
    loose = segments_of(("No text has this.", "Nor this."), PARTS)
    assert [(segment.span.start, segment.span.end) for segment in loose] == [(0, 17), (18, 27)]


@pytest.mark.usefixtures("questions")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("magic", "unknown system magic"),
        ("sentences:bm25:0", "sentences:bm25:0 names no sentences"),
        ("sentences:bm25:²", "names no sentences"),
        ("prunus:sentences@count=0", "is no number of quotes"),
        ("whole:clean", "whole:clean names no sentences; extractors are: prunus:sentences"),
        ("prunus:sentences@llm=scripted:a", "take prunus:tags@llm=scripted:a"),
    ],
)
def test_what_names_no_tags_is_no_extractor(name: str, error: str) -> None:
    with pytest.raises(UnknownName, match=error):
        studies.run(studies.named("sag:5"), replace(STAND_INS, options={"extractors": f"sentences:all;{name}"}))


@pytest.mark.usefixtures("questions")
def test_every_extractor_that_is_named_is_a_row(tmp_path: Path) -> None:
    named = "prunus:tags@llm=scripted:None; sentences:bm25:1"
    table, _ = studies.run(studies.named("sag:5"), replace(STAND_INS, options={"extractors": named}), tmp_path)
    assert ours(table) == {"prunus:tags@llm=scripted:None": [0, 0, 0, 1], "sentences:bm25:1": [1, 1, 1, 0]}
    assert any(line.startswith("prunus:tags@llm=scripted:None: no model answered") for line in table.notes)


def test_a_prompt_longer_than_the_window_is_wrong_and_told(
    questions: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def too_long(*_: object) -> Reading:
        raise ReaderFailed("too long") from BadBudget("too long")

    monkeypatch.setattr("prunus_evals.readers.ask", too_long)
    table, _ = studies.run(studies.named("sag:5"), replace(STAND_INS, readers=("scripted:a",)), tmp_path)
    assert ours(table)["scripted:a, by prompt alone"] == [0, 0, 0, 0]
    assert any("2 of them because the prompt was longer than the model's window" in line for line in table.notes)


def test_counts_of_table_5_are_added_up_as_by_hand_and_by_sklearn() -> None:
    generator = random.Random(5)
    sentences = tuple(str(number) for number in range(6))
    counts, truths, guesses, none = [], [], [], []
    for number in range(60):
        truth = tuple(sorted(generator.sample(range(6), generator.randint(0, 3)))) or None
        found = tuple(generator.sample(range(-2, 6), generator.randint(0, 4))) or None
        question = Question(str(number), "t", "p", (), "?", kind="tags", sentences=sentences, tags=truth)
        output = Output(Reply("", "text", tags=found), "")
        own = tagged.counts(question, output)
        (exact,) = (metric.score(question, output) for metric in metrics.named(["tags_none"]))
        if truth is None:
            assert own is None
            none.append((exact, found is None))
        else:
            assert own is not None and exact is None
            counts.append(own)
            truths.append([int(tag in truth) for tag in range(-2, 6)])
            guesses.append([int(tag in (found or ())) for tag in range(-2, 6)])
    assert len(none) > 5 and all(exact == rejected for exact, rejected in none)
    hits = sum(a and b for truth, guess in zip(truths, guesses, strict=True) for a, b in zip(truth, guess, strict=True))
    precision, recall = hits / sum(map(sum, guesses)), hits / sum(map(sum, truths))
    by_hand = [precision, recall, 2 * precision * recall / (precision + recall)]
    sums = [sum(column) for column in zip(*counts, strict=True)]
    names = ["tags_micro_precision", "tags_micro_recall", "tags_micro_f1"]
    ours = [metric.combine(sums) for metric in metrics.named(names) if metric.combine]
    assert ours == pytest.approx(by_hand)
    theirs = need("sklearn.metrics").precision_recall_fscore_support(truths, guesses, average="micro", zero_division=0)
    assert ours == pytest.approx(theirs[:3])
    means = [sum(precision_recall_f1(*map(int, own))[2] for own in counts) / len(counts)]
    assert means[0] != pytest.approx(ours[2], abs=0.01)  # the mean over questions is another number


def test_nonsense_of_a_model_counts_the_same_from_a_reader_and_from_an_extractor() -> None:
    nonsense = "I would rather not."
    by_extractor = systems.make(f"tags:scripted:{nonsense}", llama2()).prepare(PARTS).ask_question(ASKED, 500)
    outputs = [Output(by_extractor, ""), Output(Reply("", "text", tags=()), "", nonsense)]
    assert [tagged.counts(ASKED, output) for output in outputs] == [[0, 1, 1], [0, 1, 1]]
    names = ["tags_f1", "tags_precision", "tags_recall", "tags_exact", "tags_micro_precision", "tags_micro_f1"]
    assert {metric.score(ASKED, output) for metric in metrics.named(names) for output in outputs} == {0}


def test_pages_are_extracted_from_and_empty_ones_left_out() -> None:
    pages = [Document("a", f"<h1>Castle</h1><p>{' '.join(SENTENCES)}</p>"), Document("b", "  ")]
    extracting = systems.make("prunus:extract", llama2())
    reply = extracting.prepare(pages).ask("Who built the castle?", 100)
    assert CASTLE in reply.text and CASTLE in reply.quotes
    assert extracting.prepare(pages[1:]).ask("Who?", 100).text == ""
    nonsense = systems.make("prunus:extract@llm=scripted:purple", llama2()).prepare(pages).ask("Who?", 100)
    assert (nonsense.text, nonsense.facts["nonsense"]) == ("", 1)
    for name in ("prunus:extract@llm=scripted:a", "prunus:ask@llm=scripted:a", "prunus:tags@llm=scripted:a"):
        assert systems.make(name, llama2()).caveat == "scripted"  # type: ignore[attr-defined]


def outcome(system: str, question: str, tokens: int, read: int = 0) -> Outcome:
    reading = Reading("a", read, 1) if read else None
    return Outcome("requests", system, question, question, 100, {}, tokens, 0.1, reader="r", reading=reading)


def test_tokens_are_summed_over_all_questions() -> None:
    outcomes = [outcome("ext", "1", 100_000, 150_000), outcome("ext", "2", 300_000, 350_000)]
    names = {"Internet-SAG-Ext": "ext", "VectorDB-RAG": "db"}
    table = internet_sag.token_table("t", names, outcomes)
    assert table.columns == ("tokens of evidence, M", "per question", "tokens of prompts, M, r")
    assert ours(table)["Internet-SAG-Ext"] == [0.4, 200_000, 0.5]
    assert ours(table)["VectorDB-RAG"][0] is None
    uncounted = [replace(one, reading=Reading("a")) for one in outcomes]
    assert ours(internet_sag.token_table("t", names, uncounted))["Internet-SAG-Ext"][2] is None


@pytest.mark.usefixtures("questions", "baselines")
def test_answers_are_judged_in_both_orders(tmp_path: Path) -> None:
    choice = replace(STAND_INS, readers=("scripted:the bishop",), options={"judge": "scripted:[[A]]"})
    tables = studies.run(studies.named("sag:1"), choice, tmp_path)
    assert tables[0].columns == ("WIN", "TIE", "LOSE", "P-BIA", "unreadable")
    assert ours(tables[0]) == {
        "Internet-SAG-Naive, scripted:the bishop": [0, 0, 0, 3, 0],
        "VectorDB-RAG, scripted:the bishop": [0, 0, 0, 3, 0],
    }
    shown = (
        "VectorDB-RAG, scripted:the bishop: share of wins minus losses +0.000 of 3 pairs; no interval below 10 pages."
    )
    assert any(line.startswith(shown) for line in tables[0].notes)
    assert "no model" in " ".join(tables[0].notes) and not printed(tables[0])
    assert any(line.startswith("Judge: scripted:[[A]] (no model answered") for line in tables[0].notes)
    assert printed(tables[1])["VectorDB-RAG, QWEN2-72B"] == [258, 23, 66, 116]
    own = studies.run(studies.named("sag:1"), replace(choice, options={"judge": "scripted:the bishop"}), tmp_path)[0]
    assert any("a reader that judges its own answers" in line for line in own.notes)


@pytest.mark.usefixtures("questions", "baselines")
def test_a_judge_that_answers_nonsense_is_counted_and_told(tmp_path: Path) -> None:
    choice = replace(STAND_INS, readers=("scripted:a",), options={"judge": "scripted:purple"})
    table, _ = studies.run(studies.named("sag:1"), choice, tmp_path)
    assert ours(table)["VectorDB-RAG, scripted:a"] == [0, 0, 0, 0, 3]
    told = "VectorDB-RAG: the judge's answers to 6 prompts cannot be read, even when asked again, as 'purple'."
    assert told in table.notes


@pytest.mark.usefixtures("questions", "baselines")
def test_a_judge_judges_the_answers_of_its_own_plan_alone(tmp_path: Path) -> None:
    study = studies.named("sag:1")
    choice = replace(STAND_INS, readers=("scripted:a",), options={"judge": "scripted:[[A]]"}, budgets=(128,))
    found = []
    for chosen in (choice, replace(choice, limit=1), replace(choice, budgets=(64,), limit=2)):
        table, _ = studies.run(study, chosen, tmp_path)
        found.append(ours(table)["VectorDB-RAG, scripted:a"])
    assert found == [[0, 0, 0, 3, 0], [0, 0, 0, 1, 0], [0, 0, 0, 2, 0]]
    assert ours(studies.run(study, choice)[0]) == ours(studies.run(study, choice, tmp_path)[0])


@pytest.mark.usefixtures("questions")
def test_studies_of_whole_pages_take_no_request_log() -> None:
    for name in ("sag:1", "sag:2"):
        choice = Choice(readers=("scripted:a",), options={"judge": "scripted:[[A]]"} if name == "sag:1" else {})
        with pytest.raises(EvalError, match=f"{name} cannot run: the data of the paper is not published: take --stand"):
            studies.run(studies.named(name), choice)


def test_requests_without_tags_by_people_are_told_and_no_number_is_made_of_none() -> None:
    tagless = outcome("ext", "1", 5)
    with pytest.raises(EvalError, match="nobody gave tags for these questions"):
        internet_sag.truth_of("request_log", [tagless])
    told = internet_sag.truth_of("request_log", [tagless, replace(tagless, question="2", scores={"tags_none": 1})])
    assert told[-1] == "In no number, as people gave no tags: 1 question."


def test_the_need_for_a_search_is_seen_by_rules_and_by_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    monkeypatch.setattr(
        tasks,
        "about",
        lambda name: Task("own", "requests", ("accuracy",), (), "made up", lambda use, variant: iter(())),
    )
    asked = {"Hello!": 1, "Who won the election in Norway yesterday?": 0}
    pages = [
        [Question(text, "search_need", text, [], text, kind="search", choices=("search", "no search"), correct=right)]
        for text, right in asked.items()
    ]
    monkeypatch.setattr(tasks, "groups", lambda *_, **__: iter(pages))
    study = studies.named("sag:parser")
    (table,) = studies.run(study, Choice(readers=("scripted:search",)), tmp_path)
    assert ours(table)["Prunus: rules (no model)"] == [1, 1]
    assert ours(table)["scripted:search, by prompt alone"] == [0.5, 1]
    assert any(line.startswith("Readers: planner:rules; scripted:search (no model answered") for line in table.notes)


@pytest.mark.usefixtures("questions")
def test_a_study_says_in_one_line_what_it_lacks() -> None:
    with pytest.raises(EvalError, match="name a language model with --reader"):
        studies.run(studies.named("sag:1"), STAND_INS)
    with pytest.raises(EvalError, match="needs --set judge="):
        studies.run(studies.named("sag:1"), replace(STAND_INS, readers=("scripted:a",)))


def test_studies_name_only_tasks_and_metrics_that_exist() -> None:
    found = [study for study in studies.known().values() if study.paper == "sag"]
    assert len(found) == 6
    for study in found:
        for task in (*study.paper_tasks, *study.stand_ins):
            assert tasks.about(task).title
    assert len(metrics.named([*internet_sag.FOUR.values(), "accuracy", "readable", "answer"])) == 7
    assert {internet_sag.NAIVE, internet_sag.EXT_SYSTEM, *internet_sag.LABELS} <= {*systems.names()}


def test_cited_tables_are_whole() -> None:
    published = [getattr(_sag_published, f"TABLE_{number}") for number in range(1, 6)]
    assert [len(own.rows) for own in published] == [6, 3, 4, 4, 4]
    for own in published:
        assert all(len(values) == len(own.columns) for _, values in own.rows)


def test_paragraphs_without_supporting_sentences_have_no_tags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    page = {"title": "Castle", "sentences": [CASTLE, " It is old."]}
    row = {"id": "a", "question": "Who?", "answer": "b", "gold": [page], "supporting_facts": [[0]]}
    row |= {"distractors": [{"title": "River", "sentences": ["It flows."]}]}
    (tmp_path / "extract").mkdir()
    with lzma.open(tmp_path / "extract/hotpot.jsonl.xz", "wt") as file:
        file.write(json.dumps(row))
    (found,) = tasks.groups("hotpot:pages", "all")
    assert {question.sentences: question.tags for question in found} == {
        (CASTLE, "It is old."): (0,),
        ("It flows.",): None,
    }
    assert [question.page for question in found] == ["a", "a"]
