"""The tasks over published sets: tiny files in each form are read, and what is wrong in them is one clear line."""

from __future__ import annotations

import csv
import gzip
import json
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.extras import need
from tests.pages.formats.pdfs import Sheet, pdf

from prunus.core.settings import Settings
from prunus_evals import harness, metrics, prompts, readers, tasks
from prunus_evals.data import Lines
from prunus_evals.errors import DataMissing, DataWrong, MetricError
from prunus_evals.records import LeftOut, Output, Question, Reply
from prunus_evals.split import half
from prunus_evals.tasks import filings, pages, sentences
from prunus_evals.visible import html_text

Write = Callable[[str, object], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file of the data folder: lists as JSON lines, other values as JSON, texts as they are."""
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    monkeypatch.delenv("PRUNUS_TRAINING", raising=False)

    def write(name: str, value: object) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in value) if isinstance(value, list) else ""
        path.write_text(value if isinstance(value, str) else lines or json.dumps(value), encoding="utf-8")
        return path

    return write


def asked(name: str, left_out: list[LeftOut] | None = None) -> list[Question]:
    return [question for page in tasks.groups(name, "all", left_out=left_out) for question in page]


def found(key: str, pages: int = 2, **answers: object) -> dict[str, Any]:
    results = [{"url": f"https://example.org/{n}", "html": f"<p>{key} page {n}</p>"} for n in range(pages)]
    return {"id": key, "question": f"What is {key}?", "slimplmqr_results": results, **answers}


ASQA = "sets/htmlrag/asqa/bing/binghtml-slimplmqr-asqa-test.jsonl"


def test_every_task_says_what_it_is_and_its_metrics_and_prompts_exist() -> None:
    for name in tasks.names():
        for variant in tasks.about(name).variants or ("",):
            about = tasks.about(f"{name}:{variant}" if variant else name)
            assert about.metrics
            assert {*about.metrics} <= {*metrics.known()}
            assert about.files or name == "own"
            assert about.source
            assert "://" not in about.source
    assert {"short", "several", "short_or_none", "long", "choice", "yes_no", "tags", "search"} <= {*prompts.names()}


@pytest.mark.parametrize(
    "name",
    [
        "htmlrag:nq",
        "quality:hard",
        "qasper",
        "narrativeqa",
        "twowiki:tags",
        "mtqa",
        "mti",
        "search_need",
        "request_log",
    ],
)
def test_a_missing_set_says_which_file_is_missing_and_where_it_comes_from(name: str, write: Write) -> None:
    write("other", "")
    with pytest.raises(DataMissing, match=r"^sets/\S+ is not in .*; source: \w") as error:
        asked(name)
    assert "\n" not in str(error.value)


def test_pages_of_htmlrag_are_read_one_question_at_a_time_and_are_twenty_at_most(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(ASQA, [found(f"q{n}", pages=25, answer="long", short_answers=["a", f"b{n}"]) for n in range(6)])
    read: list[int] = []
    at = Lines.at
    monkeypatch.setattr(Lines, "at", lambda self, offset, place: read.append(offset) or at(self, offset, place))
    groups = tasks.groups("htmlrag:asqa", "all")
    first = next(groups)[0]
    assert len(read) == 1
    assert len(first.documents) == 20
    assert first.answers == ("a", f"b{first.id[1:]}")
    assert first.documents[3].content == f"<p>{first.id} page 3</p>"
    assert len([*groups]) == 5


def test_large_sets_do_not_fill_the_memory(write: Write) -> None:
    page = {"url": "u", "html": "<p>" + "word " * 100_000}
    write(ASQA, [{**found(f"q{n}", short_answers=["a"]), "slimplmqr_results": [page, page]} for n in range(20)])
    tracemalloc.start()
    try:
        assert sum(len(group) for group in tasks.groups("htmlrag:asqa", "all")) == 20
        assert tracemalloc.get_traced_memory()[1] < 8_000_000  # of 20 MB in the file
    finally:
        tracemalloc.stop()


def test_a_sample_does_not_depend_on_the_order_of_the_file_and_halves_are_drawn_alike(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "QUESTIONS", 40)
    rows = [found(f"q{n}", short_answers=["a"]) for n in range(200)]
    write(ASQA, rows)
    one = [question.id for question in asked("htmlrag:asqa")]
    write(ASQA, rows[::-1])
    assert [question.id for question in asked("htmlrag:asqa")] == one
    assert len(one) == 40
    parts = [[page[0].id for page in tasks.groups("htmlrag:asqa", wanted)] for wanted in ("dev", "report")]
    assert sorted(parts[0] + parts[1]) == sorted(one)
    assert all(half(key) == "dev" for key in parts[0])
    assert 10 <= len(parts[0]) <= 30


def test_long_answers_are_references_and_a_question_without_pages_is_counted(write: Write) -> None:
    path = "sets/htmlrag/eli5/bing/binghtml-slimplmqr-eli5-test.jsonl"
    write(path, [found("a", long_answers=["One.", "Two."]), found("b", pages=0, long_answers=["One."])])
    left: list[LeftOut] = []
    [question] = asked("htmlrag:eli5", left)
    assert (question.kind, question.references, question.answers) == ("long", ("One.", "Two."), ())
    assert [(one.question, one.why) for one in left] == [("b", "the search found no page")]
    assert tasks.about("htmlrag:eli5").metrics == ("rouge_l", "bleu")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"id": "b"', "not JSON"),
        ("[1]", "must be a JSON object, not a list"),
        ('{"question": "x"}', "the field 'id' is missing"),
        ('{"id": 1.5}', "'id' must be a whole number, not a number"),
        ('{"id": "a"}', "the id a stands in the file twice"),
        (json.dumps(found("b", pages=1)), "the field 'answer' is missing"),
        (json.dumps(found("b", pages=1, short_answers=[])), "'short_answers' has no answer"),
        (json.dumps(found("b", short_answers=["x", 1])), "'short_answers' must be a list of texts, and holds a number"),
        (json.dumps({**found("b", answer="x"), "slimplmqr_results": [{"url": "u"}]}), "the field 'html' is missing"),
    ],
)
def test_wrong_data_is_one_line_with_file_and_line(line: str, what: str, write: Write) -> None:
    path = write(ASQA, f"{json.dumps(found('a', short_answers=['x']))}\n\n{line}\n")
    with pytest.raises(DataWrong) as error:
        asked("htmlrag:asqa")
    assert str(error.value).startswith(f"{path}, line 3: ")
    assert what in str(error.value)
    assert "\n" not in str(error.value)


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "a"}\n' * 99)[:10] + b"\xff" * 40)  # the header is right
    with pytest.raises(DataWrong, match=r"rows\.jsonl\.gz is damaged"):
        list(Lines(path))


def test_damaged_and_foreign_bytes_are_errors_too(write: Write, tmp_path: Path) -> None:
    (tmp_path / ASQA).parent.mkdir(parents=True)
    (tmp_path / ASQA).write_bytes(b'{"id": "\xff"}\n')
    with pytest.raises(DataWrong, match="line 1: not JSON"):
        asked("htmlrag:asqa")
    (tmp_path / "extract").mkdir()
    (tmp_path / "extract/hotpot.jsonl.xz").write_bytes(b"no archive")
    with pytest.raises(DataWrong, match="is damaged"):
        asked("hotpot")


def article(key: str, **item: object) -> dict[str, Any]:
    question = {"question": "Who?", "question_unique_id": f"{key}_1", "options": ["A", "B", "C", "D"], **item}
    return {"article_id": key, "title": "T", "article": f"Text of {key}.", "questions": [question]}


def test_quality_has_choices_hard_questions_and_a_test_file_without_labels(write: Write) -> None:
    easy, hard = article("1", gold_label=2, difficult=0), article("2", gold_label=4, difficult=1)
    write("sets/quality/QuALITY.v1.0.1.htmlstripped.dev", [easy, hard])
    write("sets/quality/QuALITY.v1.0.1.htmlstripped.test", [article("3", difficult=1)])
    assert {question.page: question.correct for question in asked("quality")} == {"1": 1, "2": 3}
    [question] = asked("quality:hard")
    assert (question.page, question.kind, question.choices) == ("2", "choice", ("A", "B", "C", "D"))
    [hidden] = asked("quality:test")
    with pytest.raises(MetricError, match="not published"):
        harness.scores_of(hidden, Output(Reply("", "text"), "", "B"), metrics.named(["accuracy"]))
    write("sets/quality/QuALITY.v1.0.1.htmlstripped.dev", [article("1", gold_label=5, difficult=0)])
    with pytest.raises(DataWrong, match="line 1: 'gold_label' is 5, of 4 options"):
        asked("quality")


def given(**answer: object) -> dict[str, Any]:
    nothing: dict[str, object] = {"unanswerable": False, "extractive_spans": [], "free_form_answer": "", "yes_no": None}
    return {"answer": {**nothing, "evidence": [], **answer}}


def test_qasper_has_answers_of_four_kinds_and_marked_paragraphs(write: Write) -> None:
    answers = [
        given(extractive_spans=["two", "three"], evidence=["We use two or three.", "FLOAT SELECTED: Table 1"]),
        given(free_form_answer="A few."),
        given(yes_no=False),
        given(unanswerable=True),
    ]
    section = {"section_name": "Method", "paragraphs": ["We begin.", "We use two or three."]}
    qas = [{"question": "How many?", "question_id": "q", "answers": answers}]
    paper = {"title": "Trees", "abstract": "On trees.", "full_text": [section], "qas": qas}
    write("sets/qasper/qasper-test-v0.3.json", {"1909.1": paper})
    [question] = asked("qasper")
    assert question.references == ("two, three", "A few.", "No", "Unanswerable")
    assert question.reference_kinds == ("extractive", "abstractive", "boolean", "none")
    [document], [span] = question.documents, question.gold
    assert document.content[span.start : span.end] == "We use two or three."
    assert document.content.startswith("Trees\n\nOn trees.\n\nMethod")
    assert "Unanswerable" in readers.ModelReader("x", None, "").messages(question, "e")[-1].content  # type: ignore[arg-type]
    qas[0]["answers"] = [given()]
    write("sets/qasper/qasper-test-v0.3.json", {"1909.1": paper})
    with pytest.raises(DataWrong, match="must be unanswerable"):
        asked("qasper")


def table(path: Path, rows: Sequence[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


def test_narrativeqa_reads_stories_with_two_answers(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "sets/narrativeqa"
    documents = [{"document_id": key, "set": "test", "kind": "movie", "wiki_title": "T"} for key in "ab"]
    asks = [
        {"document_id": key, "set": part, "question": "Who,\nthen?", "answer1": "Ann", "answer2": "Ann B."}
        for key, part in (("a", "test"), ("a", "test"), ("b", "test"), ("c", "valid"))
    ]
    table(folder / "documents.csv", documents)
    table(folder / "qaps.csv", asks)
    write("sets/narrativeqa/tmp/a.content", "<html><pre>INT. HOUSE</pre></html>")
    (folder / "tmp/b.content").write_bytes(b"caf\xe9")
    found = {question.id: question for question in asked("narrativeqa")}
    assert [*found] == ["b#0", "a#0", "a#1"]  # in the order of digests
    assert found["a#0"].references == ("Ann", "Ann B.")
    assert found["a#0"].documents[0].media_type == "text/html"
    assert found["b#0"].documents[0].content == "café"
    (folder / "tmp/b.content").unlink()
    with pytest.raises(DataMissing, match=r"b\.content cannot be read"):
        asked("narrativeqa")
    (folder / "qaps.csv").write_text("document_id,set\na\n")
    with pytest.raises(DataWrong, match=r"qaps.csv, line 2: has not as many fields"):
        asked("narrativeqa")


def test_supporting_sentences_of_2wiki_are_tags(write: Write) -> None:
    row = {
        "_id": "x",
        "question": "Are both towns?",
        "answer": "no",
        "context": [["A", ["A is a town.", "It is old."]], ["B", ["B is a hill."]]],
        "supporting_facts": [["B", 0], ["A", 0]],
    }
    write("sets/2wikimultihopqa/dev.json", json.dumps([row]))
    [question] = asked("twowiki:tags")
    assert [question.sentences[tag] for tag in question.tags or ()] == ["A is a town.", "B is a hill."]
    contents = {document.id: document.content for document in question.documents}
    assert [contents[span.document][span.start : span.end].strip() for span in question.gold] == [
        "A is a town.",
        "B is a hill.",
    ]
    assert (question.kind, question.choices, question.correct) == ("tags", ("yes", "no"), 1)
    assert "<TAG-2>B is a hill.</TAG-2>" in readers.ModelReader("x", None).messages(question, "")[-1].content  # type: ignore[arg-type]
    write("sets/2wikimultihopqa/dev.json", json.dumps([row, {**row, "supporting_facts": [["A", 2]]}]))
    with pytest.raises(DataWrong, match="item 2: the supporting fact 'A', 2 names no sentence"):
        asked("twowiki:tags")


def pair(key: str, tags: list[int] | None) -> dict[str, Any]:
    return {"id": key, "question": f"What of {key}?", "sentences": [f"{key} {n}." for n in range(3)], "tags": tags}


def test_mti_combines_three_pairs_and_moves_their_tags(write: Write) -> None:
    rows = [pair(f"p{n}", [n % 3]) for n in range(9)] + [pair("p9", None)]
    write(sentences.MTI_FILE, rows)
    cases = asked("mti")
    assert len(cases) == 300
    for case in cases:
        names = case.id.rpartition(":")[2].split("+")
        assert len({*names}) == 3
        wanted = {f"{name} {int(name[1:]) % 3}." for name in names if name != "p9"}
        assert {case.sentences[tag] for tag in case.tags or ()} == wanted
        assert all(f"What of {name}?" in case.question for name in names)
    write(sentences.MTI_FILE, rows[::-1])
    assert [case.id for case in asked("mti")] == [case.id for case in cases]


def test_tags_must_be_sentences_and_none_is_written_as_null(write: Write) -> None:
    write("sets/mtqa/questions.jsonl", [pair("a", None), pair("b", [2, 0])])
    assert {question.id: question.tags for question in asked("mtqa")} == {"a": None, "b": (0, 2)}
    for tags, what in (([3], "names the tag 3, of 3"), ([], "write null"), ([True], "names the tag True")):
        write("sets/mtqa/questions.jsonl", [pair("a", [0]), pair("b", tags)])
        with pytest.raises(DataWrong, match=f"line 2: 'tags' .*{what}"):
            asked("mtqa")


def test_the_need_for_a_search_is_a_choice_without_documents(write: Write) -> None:
    write("sets/search_need/requests.jsonl", [{"id": n, "request": "Weather?", "search": n == 1} for n in (1, 2)])
    assert {q.id: (q.kind, q.choices[q.correct], len(q.documents)) for q in asked("search_need")} == {
        "1": ("search", "search", 0),
        "2": ("search", "no search", 0),
    }
    write("sets/search_need/requests.jsonl", [{"id": 1, "request": "Weather?", "search": "yes"}])
    with pytest.raises(DataWrong, match="'search' must be true or false"):
        asked("search_need")


def request(text: str, tags: int = 3) -> dict[str, Any]:
    tagged = [{"tag": 10 + n, "page": f"https://example.org/{n % 2}", "text": f"Fact {n}."} for n in range(tags)]
    return {"format": "prunus-requests-1", "question": text, "tagged": tagged, "tags": [10]}


def test_requests_are_drawn_once_each_with_the_tags_that_people_gave(write: Write) -> None:
    log = [request(f"Question {n}?") for n in range(510)] + [request("question  1?"), request("Empty?", 0)]
    write("sets/requests/log/requests-2026-11-20.jsonl", log)
    left: list[LeftOut] = []
    drawn = asked("request_log", left)
    assert len(drawn) == 500
    assert sorted(one.why for one in left) == [
        "the extractor saw no sentence",
        "the same request stands in the log before",
    ]
    one, none, bare = drawn[:3]
    keys = {"request": one.id, "tags": [12, 11]}, {"request": none.id, "tags": None}
    write("sets/requests/annotations.jsonl", [*keys])
    by_id = {question.id: question for question in asked("request_log")}
    assert [by_id[question.id].tags for question in (one, none, bare)] == [(1, 2), None, ()]
    assert [document.content for document in by_id[one.id].documents] == ["Fact 0.\nFact 2.", "Fact 1."]
    assert sentences.id_of(f" {one.question.upper()} ") == one.id
    write("sets/requests/annotations.jsonl", [{"request": one.id, "tags": [1]}])
    with pytest.raises(DataWrong, match="line 1: the request has no tag 1"):
        asked("request_log")
    write("sets/requests/annotations.jsonl", [{"request": "0" * 16, "tags": [1]}])
    with pytest.raises(DataWrong, match="no request of the log"):
        asked("request_log")


@pytest.mark.parametrize("named", [True, False])
def test_a_request_that_stands_in_training_data_is_refused(
    named: bool, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("sets/requests/log/requests-2026-11-20.jsonl", [request("How high is it?")])
    training = write(
        "mine.jsonl" if named else "sets/requests/training/mine.jsonl",
        [{"messages": [{"role": "user", "content": "Other"}]}, {"messages": [{"content": "Ask:\nhow high is  it?"}]}],
    )
    if named:
        monkeypatch.setenv("PRUNUS_TRAINING", str(training))
    with pytest.raises(DataWrong, match=r"mine\.jsonl, line 2: the request of .* is training data"):
        asked("request_log")


def test_the_log_that_a_server_writes_is_read(write: Write, tmp_path: Path) -> None:
    need("fastapi")
    from prunus.serve.mask import Mask
    from prunus.serve.request_log import Note, RequestLog

    write("sets/requests/annotations.jsonl", [{"request": sentences.id_of("How high is it?"), "tags": [2]}])
    log = RequestLog(tmp_path / sentences.LOG, 30, Mask(Settings()))
    tagged = [{"tag": tag, "page": "https://example.org/", "text": f"Fact {tag}."} for tag in (1, 2)]
    log.write(Note("How high is it?", tagged=tagged, tags=[2]))
    log.write(Note("Unfinished?"))
    left: list[LeftOut] = []
    [question] = asked("request_log", left)
    assert (question.question, question.sentences, question.tags) == ("How high is it?", ("Fact 1.", "Fact 2."), (1,))
    assert len(left) == 1


FILING = [
    ["Consolidated Balance Sheet", "", ""],
    ["", "2023", "2022"],
    ["Total inventories", "5,280", "5,372"],
    ["Total current assets", "15,754", "14,688"],
]
COPIED = "Balance Sheet\n2023\n2022\nTotal inventories\n$\n5,280 \n$\n5,372 \nTotal current\nassets\n15,754 \n(14,688)\nNet\n9 \n7 "


def filing(**changed: object) -> dict[str, object]:
    return {
        "financebench_id": "f1", "doc_name": "PELL_2023_10K", "question": "Is it liquid?", "question_type": "domain",
        "answer": "No", "justification": "(15,754-5,280)/2023", "evidence": [{"evidence_text": COPIED}], **changed,
    }  # fmt: skip


NAMED = "This metric was located in the 10K as a single line item named: TotalÂ inventories.\n\nMetric 2: x"


@pytest.mark.parametrize(
    ("changed", "rows"),
    [
        ({}, [("Total inventories", "5,280", "5,372"), ("assets", "15,754", "14,688")]),
        ({"justification": NAMED}, [("Total inventories", "5,280", "5,372")]),
        ({"justification": None, "answer": "In 2023"}, []),
    ],
    ids=["computed", "named", "none"],
)
def test_the_rows_that_an_answer_needs_are_read_from_copied_text(
    write: Write, changed: dict[str, object], rows: list[tuple[str, ...]]
) -> None:
    path = write("filing.jsonl", [filing(**changed)])
    assert [list(filings.needed_rows(row)) for _, row in Lines(path)] == [rows]


def test_a_filing_is_read_from_its_pdf_and_one_that_is_not_here_is_left_out(write: Write) -> None:
    sheet = Sheet()
    for number, row in enumerate(FILING):
        for x, text in zip((50, 300, 400), row, strict=True):
            sheet.text(x, 100 + 14 * number, text)
    asked_of = [filing(), filing(financebench_id="f2", doc_name="GONE")]
    path = write("sets/financebench/data/financebench_open_source.jsonl", asked_of)
    (path.parents[1] / "pdfs").mkdir()
    (path.parents[1] / "pdfs" / "PELL_2023_10K.pdf").write_bytes(pdf(sheet))
    left_out: list[LeftOut] = []
    (question,) = asked("financebench", left_out)
    assert [one.page for one in left_out] == ["GONE"]
    visible = "Total inventories $5,280 5,372\nCurrent assets 15,754"
    output = Output(Reply(visible, "text"), visible)
    assert metrics.known()["line_items"].score(question, output) == 0.5
    whole = Output(Reply(question.html, "html"), html_text(question.html))
    assert metrics.known()["line_items"].score(question, whole) == 1.0
    assert metrics.known()["gold_recall_3grams"].score(question, whole) == pytest.approx(11 / 14)
