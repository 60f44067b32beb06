"""The report of a run: one page that loads nothing, shows hostile text as text, and has the numbers of its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from prunus_evals import compare, provenance, systems
from prunus_evals.cli import main
from prunus_evals.errors import EvalError
from prunus_evals.records import Document, LeftOut, Outcome, Question, Reading, Stage
from prunus_evals.report import files, numbers, summary, table
from prunus_evals.report.cases import worst
from prunus_evals.report.tables import markdown
from prunus_evals.split import half
from prunus_evals.store import Store

EVIL = (
    '<script>alert(1)</script><img src="http://evil.example/x" onerror=alert(2)></pre></details></main>'
    "<style>@import 'http://evil.example'</style>\u202eexe.gnp\x00\ud800 \"' & <svg onload=alert(3)>"
)
"""What a hostile page may hold."""

BASE = "prunus:hybrid:html"
SYSTEMS = (BASE, "cut:64", "cut:128", "cut:256", f"odd|{EVIL}")
DEV = [f"page-{number}" for number in range(60) if half(f"page-{number}") == "dev"][:12]


def outcomes() -> Iterator[tuple[Question, Outcome]]:
    """Yield outcomes of every kind: with readers, stages, labels, missing scores and hostile text."""
    for number, page in enumerate(DEV):
        asked = Question(
            id=f"q{number}", task="needle", page=page, question=f"Where is {EVIL}?", answers=("Zürich",),
            documents=(Document("d", f"<p>{EVIL} <p>It is in Zürich. {'hay ' * 300}", title=EVIL, url="javascript:alert(4)"),),
            labels={"length": str(1024 * (1 + number % 3)), "depth": str(50 * (number % 2)), "kind": EVIL if number % 2 else "base"},
        )  # fmt: skip
        for place, system in enumerate(SYSTEMS):
            for budget in (512, 1024):
                for reader in ("none", "scripted:x"):
                    scores = {"answer": float((number + place) % 3 > 0 or (budget > 512 and number % 4 > 0))}
                    if number:
                        scores["gold_share"] = (number * 7 + place) % 11 / 10
                    if reader != "none":
                        scores["em_share"] = scores["answer"] / 2
                    yield asked, Outcome(
                        "needle", system, page, asked.id, budget, scores, budget - place, 0.25 * (place + 1), 0.5,
                        reader=reader, reading=Reading(EVIL, 600, 7, 1.5) if reader != "none" else None,
                        stages=(Stage("prune", 4000, budget, 0.125, 0.5),), labels=asked.labels,
                        caveat="scripted" if reader != "none" else "",
                    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a run."""
    store = Store(tmp_path / "run")
    plan = {"tasks": ("needle",), "systems": SYSTEMS, "limit": None}
    with provenance.noted(store, plan, {"needle": "dev"}):
        provenance.note_left_out(
            store, "needle", [LeftOut("p", str(number), "its answer is hidden") for number in range(3)]
        )
        evidence = store.keep_text(EVIL * 3)
        for number, (question, outcome) in enumerate(outcomes()):
            store.keep_question(question)
            store.keep(str(number), replace(outcome, evidence=evidence))
    store.close()
    return tmp_path / "run"


class Page(HTMLParser):
    """Gathers the tags, attributes and text of a page, with the text of each table cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.parts: list[str] = []
        self.feed(text)
        self.text = "".join(self.parts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td"):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def test_the_page_runs_and_loads_nothing_whatever_a_page_says(folder: Path) -> None:
    place, _ = files.write(folder)
    text = place.read_text("utf-8")
    page = Page(text)
    assert not page.tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "video", "audio"}
    for name, value in page.attributes:
        assert not name.startswith("on"), (name, value)
        assert name not in ("src", "srcdoc", "style", "action", "data")
        assert name != "href" or value.startswith("#")
    assert "default-src 'none'" in text
    assert text.count("<style>") == 1 and "@import" not in re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]  # type: ignore[index]
    assert "url(" not in text.split("</style>")[0]
    assert "\u202e" not in text and "\x00" not in text
    assert "<script>alert(1)</script>" in page.text  # shown as text


def test_the_page_shows_question_gold_evidence_answer_and_the_place_in_the_page(folder: Path) -> None:
    page = Page(files.write(folder)[0].read_text("utf-8"))
    for shown in (
        "Worst cases",
        "Zürich",
        "It is in Zürich",
        "answer (scripted)",
        "javascript:alert(4)",
        "1,024 tokens",
    ):
        assert shown in page.text
    assert "needle, dev half: 12 questions, 12 pages, 3 left out" in page.text
    assert "3 because its answer is hidden" in page.text
    assert "no model answered" in page.text  # a warning


def test_worst_cases_of_the_report_half_stay_hidden(folder: Path) -> None:
    store = Store(folder)
    store.note({"halves": {"needle": "report"}})
    store.close()
    assert "Zürich" not in files.write(folder)[0].read_text("utf-8")
    assert "Zürich" in files.write(folder, cases=True)[0].read_text("utf-8")
    assert "Zürich" not in files.write(folder, cases=False)[0].read_text("utf-8")


def test_numbers_of_the_page_are_those_of_the_json(folder: Path) -> None:
    place, facts = files.write(folder)
    assert json.loads((folder / "report.json").read_text("utf-8")) == json.loads(json.dumps(facts))
    found = re.findall(r"<caption>(.*?)</table>", place.read_text("utf-8"), re.DOTALL)
    content = facts["tasks"]["needle"]
    for number, metric in enumerate(("answer", "gold_share")):
        text = Page(found[number + 1]).text
        cells = [cell for row in content["systems"].values() for cell in row.values() if metric in cell]
        assert len(cells) == 10
        for cell in cells:
            assert "{:.3f} [{:.3f} {:.3f}]".format(*cell[metric]) in text
            if "differences" in cell:
                assert f"Δ {cell['differences'][metric][0]:+.3f}" in text
    assert "(11 of 12 questions)" in Page(found[2]).text  # the first question has no gold share


def test_every_number_is_the_plain_mean(folder: Path) -> None:
    found = [outcome for _, outcome in outcomes()]
    content = summary(found, "dev", BASE)["needle"]
    for row, cells in content["systems"].items():
        for budget, cell in cells.items():
            own = [o for o in found if numbers.row_of(o) == row and str(o.budget) == budget]
            name = "answer" if own[0].reader == "none" else "em_share"
            assert cell[name][0] == round(sum(o.scores[name] for o in own) / len(own), 4)
            assert cell["tokens"] == round(sum(o.tokens for o in own) / len(own), 4)
            wanted = {"all": 12, "answer": 12, "gold_share": 11} if name == "answer" else {"all": 12, "em_share": 12}
            assert cell["questions"] == wanted
            base = [o for o in found if o.system == BASE and o.reader == own[0].reader and o.budget == own[0].budget]
            if own[0].system != BASE:
                assert cell["differences"][name][0] == pytest.approx(
                    sum(a.scores[name] - b.scores[name] for a, b in zip(base, own, strict=True)) / 12, abs=1e-4
                )
    group = content["groups"]["length"]["1024"][BASE]["512"]
    own = [o for o in found if o.labels["length"] == "1024" and numbers.row_of(o) == BASE and o.budget == 512]
    assert (group["questions"], group["answer"][0]) == (4, round(sum(o.scores["answer"] for o in own) / 4, 4))


def test_tokens_that_no_server_counted_are_unknown_in_every_form(tmp_path: Path) -> None:
    found = [
        Outcome(
            "nq", BASE, page, page, 512, {"answer": 1.0}, 100, 0.1, reader="m", reading=Reading("x", tokens, 2, 1.5)
        )
        for page, tokens in (("a", 100), ("b", 0))
    ]
    content = summary(found, "dev", BASE)
    cell = content["nq"]["systems"][f"{BASE} > m"]["512"]
    assert cell["reader"] == {"prompt_tokens": None, "completion_tokens": None, "seconds": 1.5}
    assert "– / – / 1.50" in table(content)
    with closing(Store(tmp_path)) as store:
        for outcome in found:
            store.keep(outcome.page, outcome)
    assert "– / – / 1.50" in files.write(tmp_path)[0].read_text("utf-8")


def test_few_pages_give_no_interval_and_no_mark_in_any_form(tmp_path: Path) -> None:
    found = [
        Outcome("nq", system, page, page, 512, {"answer": value}, 100, 0.1)
        for page in DEV[:9]
        for system, value in ((BASE, 1.0), ("other", 0.5))
    ]
    content = summary(found, "dev", BASE)
    cell = content["nq"]["systems"]["other"]["512"]
    assert (cell["answer"], cell["differences"]["answer"]) == ([0.5, None, None], [0.5, None, None])
    assert "no interval below 10 pages" in table(content)
    with closing(Store(tmp_path)) as store:
        for outcome in found:
            store.keep(f"{outcome.system}{outcome.page}", outcome)
    text = files.write(tmp_path)[0].read_text("utf-8")
    assert "<td>0.500 Δ +0.500</td>" in text
    assert "no interval below 10 pages" in text
    assert "0.500 Δ +0.500 |" in markdown({"nq": content["nq"]})


def test_one_question_about_one_page_is_singular() -> None:
    content = summary([Outcome("nq", BASE, "p", "q", 512, {"answer": 1.0}, 100, 0.1)], "dev", BASE)
    for text in (table(content), markdown({"nq": content["nq"]})):
        assert "nq, dev half: 1 question, 1 page" in text
        assert "1 questions" not in text and "1 pages" not in text


@pytest.mark.parametrize(
    ("system", "said"), [("vectors:static", True), ("vectors:static@costs=yes", False), (BASE, False)]
)
def test_seconds_that_lack_held_vectors_are_noted_in_every_form(tmp_path: Path, system: str, said: bool) -> None:
    found = [Outcome("nq", name, "p", "q", 512, {"answer": 1.0}, 100, 0.1) for name in (BASE, system)]
    content = summary(found, "dev", BASE)
    with closing(Store(tmp_path)) as store:
        for outcome in found:
            store.keep(outcome.system, outcome)
    forms = (
        table(content), markdown({"nq": content["nq"]}), files.write(tmp_path)[0].read_text("utf-8"),
        compare.table(compare.compare(tmp_path, tmp_path)),
    )  # fmt: skip
    for text in forms:
        assert (numbers.HELD in text) == said


@pytest.mark.parametrize(
    ("name", "holds"),
    [("tree:ward", True), ("tree:ward@costs=yes", False), ("chunks:fixed:bm25", False), ("chunks:fixed:e5", True),
     ("prunus:hybrid+e5:html", True), ("prunus:hybrid:html@embedder=e5", True), ("prunus:hybrid:html", False),
     ("prunus:sentences", True), ("gone", False)],
)  # fmt: skip
def test_systems_that_hold_vectors_are_known_by_name(name: str, holds: bool) -> None:
    assert systems.holds(name) == holds


def test_every_caveat_of_a_row_is_marked_once() -> None:
    found = [
        Outcome("nq", BASE, page, page, budget, {"answer": 1.0}, 100, 0.1, reader="m", caveat=caveat)
        for page, budget, caveat in (("a", 512, "tiny"), ("b", 512, "tiny, scripted"), ("a", 1024, "size unknown"))
    ]
    content = summary(found, "dev", BASE)
    assert content["nq"]["rows"][f"{BASE} > m"]["caveat"] == "scripted, tiny, size unknown"
    said = files.warnings({}, {"nq": content["nq"]})
    assert [line.partition(":")[0] for line in said[:3]] == ["scripted", "size unknown", "tiny"]


def test_rows_are_compared_with_the_default_of_the_same_reader() -> None:
    rows = summary([outcome for _, outcome in outcomes()], "dev", BASE)["needle"]["rows"]
    assert rows["cut:64"]["base"] == BASE
    assert rows["cut:64 > scripted:x"]["base"] == f"{BASE} > scripted:x"
    assert rows["cut:64 > scripted:x"]["caveat"] == "scripted"


def test_scripted_readers_are_labelled_in_every_table(folder: Path) -> None:
    _, facts = files.write(folder)
    text = table(facts["tasks"])
    rows = [line for line in [*text.splitlines(), *markdown(facts["tasks"]).splitlines()] if "scripted:x" in line]
    rows = [row for row in rows if "is ahead of the row" not in row]
    assert len(rows) > 15
    assert all("(scripted)" in row for row in rows)


def test_numbers_of_the_evidence_stand_once_and_not_again_for_each_reader(folder: Path) -> None:
    content = files.write(folder)[1]["tasks"]["needle"]
    assert "answer" in content["systems"][BASE]["512"]
    assert "answer" not in content["systems"][f"{BASE} > scripted:x"]["512"]
    assert {case["row"]: case["metric"] for case in content["worst"]} == {
        BASE: "answer", f"{BASE} > scripted:x": "em_share",
    }  # fmt: skip
    found = [replace(outcome, scores={"answer": 1.0}) for _, outcome in outcomes()]
    said = " ".join(files.warnings({}, {"needle": summary(found, "dev", BASE)["needle"]}))
    assert "no metric scores the answers (see --metrics), so that only costs are shown of: prunus:hybrid:html >" in said
    alone = summary([outcome for outcome in found if outcome.reader != "none"], "dev", BASE)["needle"]
    assert "answer" in alone["systems"][f"{BASE} > scripted:x"]["512"]


def test_the_report_is_written_again_by_its_command(folder: Path) -> None:
    result = CliRunner().invoke(main, ["report", str(folder)])
    assert (result.exit_code, result.output.strip()) == (0, str(folder / "report.html"))
    assert "| cut:64 |" in CliRunner().invoke(main, ["report", str(folder), "--markdown"]).output
    assert json.loads(CliRunner().invoke(main, ["report", str(folder), "--json"]).output)["form"] == 1


def test_a_folder_without_a_run_gets_no_report(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["report", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "is not the folder of a run" in result.output
    assert not (tmp_path / "none").exists()
    Store(tmp_path / "empty").close()
    with pytest.raises(EvalError, match="nothing was measured"):
        files.write(tmp_path / "empty")


def test_a_report_says_what_a_reader_must_know_first(folder: Path) -> None:
    starts = [
        {"code": "a", "end": "finished", "versions": {"numpy": "1"}},
        {"code": "b", "end": "killed", "versions": {"numpy": "2"}},
    ]
    content = summary([outcome for _, outcome in outcomes()][:-1], "dev", BASE)
    said = " ".join(files.warnings({"starts": starts, "plans": [{}, {}]}, {"needle": content["needle"]}))
    for word in ("scripted", "killed", "2 plans", "numpy: 1 there, 2 here", "not every row has every question"):
        assert word in said


def test_a_case_is_the_worse_the_larger_the_budget_at_which_it_fails(tmp_path: Path) -> None:
    fails = {
        "at all": (512, 1024),
        "at the small one": (512,),
        "at all, where another does not": (512, 1024),
        "never": (),
    }
    found = []
    for question, budgets in fails.items():
        for system in (BASE, "other"):
            for budget in (512, 1024):
                good = budget not in budgets or (system == "other" and "another" in question)
                found.append(Outcome("nq", system, question, question, budget, {"answer": float(good)}, 1, 0.1))
    store = Store(tmp_path)
    cells = numbers.cells_of(found)
    shown = worst("nq", summary(found, "dev", BASE)["nq"], cells, store)
    store.close()
    assert [(case.outcome.question, case.outcome.budget) for case in shown] == [
        ("at all, where another does not", 1024),
        ("at all", 1024),
        ("at the small one", 512),
    ]
