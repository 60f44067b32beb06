"""The tasks over the real data folder: every question is whole, and each is in one half."""

from __future__ import annotations

import pytest
from tests.conftest import data_folder

from prunus_evals import tasks
from prunus_evals.records import LeftOut, Question
from prunus_evals.split import half
from prunus_evals.visible import html_text

pytestmark = pytest.mark.data

COUNTS = {
    "hotpot:answer": 50, "hotpot:tags": 50, "twowiki:sample": 20, "musique": 20, "qmsum:specific": 237,
    "qmsum:general": 35, "squality:text": 375, "squality:html": 375, "xquad:de": 1190, "xquad:zh": 1190,
    "xquad:ar": 1190, "dureader": 100, "nq_passages": 1328, "rgb:en_counterfactual": 100,
    "rgb:zh_counterfactual": 100, "crag": 10,
}  # fmt: skip


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_DATA", str(data_folder()))  # skips without it


@pytest.mark.parametrize("name", [*COUNTS, "rgb:en", "rgb:zh"])
def test_no_question_is_lost_and_gold_evidence_is_in_the_documents(name: str) -> None:
    left: list[LeftOut] = []
    pages = [page for wanted in ("dev", "report") for page in tasks.groups(name, wanted, left_out=left)]  # type: ignore[arg-type]
    found = [question for page in pages for question in page]
    assert len(found) + len(left) == COUNTS.get(name, 500)
    assert len({question.id for question in found}) == len(found)
    assert {half(question.page) for question in found} == {"dev", "report"}
    for question in found:
        assert question.task == name
        assert question.question.strip()
        assert question.answers or question.references or question.choices
        whole(question)


def whole(question: Question) -> None:
    contents = {document.id: document.content for document in question.documents}
    assert len(contents) == len(question.documents)
    for span in question.gold:
        assert contents[span.document][span.start : span.end].strip()
    if question.tags:
        assert max(question.tags) < len(question.sentences)
        gold = "".join(contents[span.document][span.start : span.end] for span in question.gold)
        assert all(question.sentences[tag] in gold for tag in question.tags)


def test_answers_of_xquad_stand_at_their_gold_places() -> None:
    for page in tasks.groups("xquad:de", "dev"):
        for question in page:
            [span], [document] = question.gold, question.documents
            assert html_text(document.content[span.start : span.end]) == " ".join(question.answers[0].split())


def test_needles_are_hidden_in_real_stories() -> None:
    [page] = tasks.groups("needle:multi_answer", "all", limit=1)
    assert len(page) == 30
    for question in page:
        whole(question)
        assert len(question.sentences) > 30
