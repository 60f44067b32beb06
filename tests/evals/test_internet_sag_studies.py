"""Studies of Internet-SAG: the paper's rows and columns, extractors with and without a model, and judged pairs."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from prunus_evals import metrics, studies, systems, tasks
from prunus_evals.errors import EvalError, UnknownName
from prunus_evals.records import About, Asker, Document, Outcome, Question, Reading, Reply
from prunus_evals.studies import Choice, Table, _sag_published, internet_sag
from prunus_evals.studies._extractors import Extractor, PageExtractor, segments_of, tagged_text
from prunus_evals.tokens import TokenizerCounter

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
    """Every task has one question with five sentences."""
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    about = About("questions", ("tags_f1",), (), "made up")
    monkeypatch.setattr(tasks, "about", lambda name: about)
    kinds = {"crag": "short"}
    monkeypatch.setattr(
        tasks, "groups", lambda name, *_, **__: iter([[replace(ASKED, task=name, kind=kinds.get(name, "tags"))]])
    )


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
    assert tables[0].columns == ("Recall", "Precision", "F1", "EM")
    found = ours(tables[0])
    assert found["Prunus: sentences (no model)"] == [1, 1, 1, 1]
    assert found["All sentences"] == [1, pytest.approx(0.2), pytest.approx(1 / 3), 0]
    assert "hotpot:pages (dev half: 1 questions, 1 pages)" in tables[0].notes[0]
    assert not printed(tables[0])
    assert not ours(tables[1])
    assert printed(tables[1])["EXTRACTOR-LLM"] == [0.8353, 0.7139, 0.7698, 0.7985]


@pytest.mark.usefixtures("questions")
@pytest.mark.parametrize(("reply", "f1"), [("<TAG-1>", 1), ("TAG-0, TAG-1", 2 / 3), ("None", 0), ("the castle", 0)])
def test_a_model_is_an_extractor_by_its_prompt_alone(tmp_path: Path, reply: str, f1: float) -> None:
    reader = f"scripted:{reply}"
    table, *maps = studies.run(studies.named("sag:3"), Choice(readers=(reader,)), tmp_path)
    assert table.columns == ("Base", "Reasoning", "Multi-Ans", "Multi-Q")
    assert ours(table)[f"{reader}, by prompt alone"] == [pytest.approx(f1)] * 4
    assert printed(table)["GPT-4O"] == [0.969, 0.904, 0.986, 1.0]
    assert any("no model answered" in line for line in table.notes)
    assert len(maps) == 4
    assert maps[-1].columns == ("50 %",)
    assert ours(maps[-1]) == {"4096 tokens": [pytest.approx(f1)]}


def test_a_sentence_is_a_segment_at_its_place_and_under_its_title() -> None:
    found = segments_of(replace(ASKED, sentences=(*SENTENCES, "Nobody wrote this.")))
    assert [segment.above for segment in found] == ["River", "River", "River", "School", "School", ""]
    content = {document.id: document.content for document in PARTS}
    for segment in found[:-1]:
        place = segment.span
        assert content[place.document][place.start : place.end] == segment.text
    assert tagged_text(SENTENCES[:2]) == f"<TAG-0>{SENTENCES[0]}</TAG-0><TAG-1>{CASTLE}</TAG-1>"


def test_an_unknown_extractor_is_named(counter: TokenizerCounter) -> None:
    with pytest.raises(UnknownName, match="unknown extractor magic; the extractors are: sentences"):
        Extractor("magic", counter)


def test_pages_are_extracted_from_and_empty_ones_left_out(counter: TokenizerCounter) -> None:
    pages = [Document("a", f"<h1>Castle</h1><p>{' '.join(SENTENCES)}</p>"), Document("b", "  ")]
    reply = PageExtractor("sentences", counter).prepare(pages).ask("Who built the castle?", 100)
    assert CASTLE in reply.text
    assert PageExtractor("sentences", counter).prepare(pages[1:]).ask("Who?", 100).text == ""
    assert PageExtractor("scripted:None", counter).caveat == "scripted"


def outcome(system: str, question: str, tokens: int, read: int = 0) -> Outcome:
    reading = Reading("a", read, 1) if read else None
    return Outcome("requests", system, question, question, 100, {}, tokens, 0.1, reader="r", reading=reading)


def test_tokens_are_summed_over_all_questions() -> None:
    outcomes = [outcome("ext", "1", 100_000, 150_000), outcome("ext", "2", 300_000, 350_000)]
    table = internet_sag.token_table("t", {"Internet-SAG-Ext": "ext", "VectorDB-RAG": "db"}, outcomes)
    assert table.columns == ("tokens of evidence, M", "per question", "tokens of prompts, M, r")
    assert ours(table)["Internet-SAG-Ext"] == [0.4, 200_000, 0.5]
    assert ours(table)["VectorDB-RAG"][0] is None


@pytest.mark.usefixtures("questions", "baselines")
def test_answers_are_judged_in_both_orders(tmp_path: Path) -> None:
    choice = replace(STAND_INS, readers=("scripted:the bishop",), options={"judge": "scripted:[[A]]"})
    tables = studies.run(studies.named("sag:1"), choice, tmp_path)
    assert tables[0].columns == ("WIN", "TIE", "LOSE", "P-BIA", "unreadable")
    assert ours(tables[0]) == {
        "Internet-SAG-Naive, scripted:the bishop": [0, 0, 0, 1, 0],
        "VectorDB-RAG, scripted:the bishop": [0, 0, 0, 1, 0],
    }
    assert any(line.startswith("Judge: scripted:[[A]] (no model answered") for line in tables[0].notes)
    assert printed(tables[1])["VectorDB-RAG, QWEN2-72B"] == [258, 23, 66, 116]


@pytest.mark.usefixtures("questions", "baselines")
def test_a_judge_that_answers_nonsense_ends_the_study(tmp_path: Path) -> None:
    choice = replace(STAND_INS, readers=("scripted:a",), options={"judge": "scripted:purple"})
    with pytest.raises(EvalError, match="scripted:purple"):
        studies.run(studies.named("sag:1"), choice, tmp_path)


def test_the_need_for_a_search_is_seen_by_rules_and_by_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    monkeypatch.setattr(tasks, "about", lambda name: About("requests", ("accuracy",), (), "made up"))
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
    assert internet_sag.NAIVE in systems.names()


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
