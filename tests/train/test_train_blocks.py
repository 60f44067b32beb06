"""``prunus train blocks``: trees are learned from questions with gold blocks, the same ones every time."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

pytest.importorskip("selectolax")

from tests.extras import need

import prunus
from prunus.evidence.blocks import cut
from prunus.evidence.score._block_features import NAMES
from prunus.models.boosted import Boosted, load
from prunus_train import blocks as training
from prunus_train.cli import main
from prunus_train.data import blocks as data
from prunus_train.data.sets import page_of

PLACES = [f"{name} Quay" for name in ("Withy", "Dunnock", "Seal", "Mill", "Orrel", "Pell", "Kite", "Linden")]


def write_rows(path: Path, rows: list[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write tiny training sets; return their folder."""
    texts, pages, asked = [], [], []
    for place, year in zip(PLACES, range(1801, 1900, 7), strict=False):
        units = [f"{place} lies on the river.", f"{place} was built in {year}.", "Boats go to the sea twice a day."]
        text = {"id": place, "question": f"When was {place} built?", "title": place, "answers": [str(year)]}
        texts.append(text | {"units": units, "gold": [1], "kind": "paragraph"})
        table = f"<tr><th>Month<th>Boats at {place}<tr><td>May<td>{year}<tr><td>June<td>12<tr><td>July<td>{year}0"
        html = f'<h1>{place}</h1><p>{year} boats came.</p><table class="wikitable">{table}</table>'
        pages.append({"page": place, "html": html})
        fair = {"in_gold_table": True, "in_visible_text": True, "answer_in_question": False, "table_index": 0}
        counted = f"How many boats were at {place} in May?"
        asked.append({"id": place, "page": place, "question": counted, "answers": [str(year)]} | fair)
    for name in data.TEXTS:
        write_rows(tmp_path / f"sets/text/{name}.jsonl.xz", texts)
    write_rows(tmp_path / "sets/table_qa/pages.jsonl.xz", pages)
    write_rows(tmp_path / "sets/table_qa/questions.jsonl.xz", asked)
    monkeypatch.setattr(training, "PLAN", training.TreePlan(trees=5, least=5))
    return tmp_path / "sets"


def run(sets: Path, out: Path) -> Result:
    return CliRunner().invoke(main, ["blocks", "--sets", str(sets), "-o", str(out)])


def test_the_same_sets_give_the_same_file_and_figures(sets: Path, tmp_path: Path) -> None:
    need("lightgbm")
    found = [run(sets, tmp_path / name) for name in ("one.npz", "two.npz")]
    assert [result.exit_code for result in found] == [0, 0], found[0].output
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert load(tmp_path / "one.npz").names == NAMES
    said = json.loads(found[0].stdout.strip().splitlines()[-1])
    assert set(said) == {"hybrid", "trees"}
    assert all(0 <= row["mrr"] <= 1 and row["questions"] for row in said["trees"].values())


def test_a_missing_set_is_one_line_that_names_it(sets: Path, tmp_path: Path) -> None:
    need("lightgbm")
    (sets / "text/qed_en.jsonl.xz").unlink()
    result = run(sets, tmp_path / "out.npz")
    assert result.exit_code == 2 and "qed_en" in result.output
    assert not (tmp_path / "out.npz").exists()


def test_gold_blocks_of_tables_are_those_of_the_gold_table(sets: Path) -> None:
    row = {"id": "x", "page": "x", "question": "?", "answers": ["1801"], "table_index": 0}
    html = "<p>1801 boats<table class=wikitable><tr><th>Month<th>Boats<tr><td>May<td>1801<tr><td>June<td>1802</table>"
    blocks = cut(prunus.read(html).trees, 2)
    gold = data._gold_of_table(blocks, row, html)
    assert [text for text, marked in zip(blocks.texts, gold, strict=True) if marked] == ["May\t1801"]


def test_gold_blocks_of_texts_are_the_gold_units_that_hold_an_answer() -> None:
    document = {
        "title": "Quay",
        "kind": "paragraph",
        "units": ["It was built in 1871.", "It is old.", "In 1871 it sank."],
    }
    row = document | {"answers": ["1871"], "gold": [2]}
    tree = prunus.read(page_of([document], split_rows=True)).trees[0]
    blocks = cut([tree], 5)
    units = data._units_of(tree.canonical, document["units"])
    gold = data._gold_of_units(blocks, units, row, whole=False)
    assert [text for text, marked in zip(blocks.texts, gold, strict=True) if marked] == ["In 1871 it sank."]


def test_rows_of_a_text_become_a_table_with_its_header() -> None:
    page = page_of([{"title": "T", "kind": "row", "units": ["Year | Boats", "1871 | <3"]}], split_rows=True)
    assert "<table><tr><th>Year<th>Boats<tr><td>1871<td>&lt;3</table>" in page


def test_scores_become_log_odds() -> None:
    draw = np.random.default_rng(2)
    truth = draw.normal(size=20_000) * 2
    gold = draw.random(20_000) < 1 / (1 + np.exp(-truth))
    model = Boosted(
        ("a",), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros((0, 2), np.int32), np.zeros(0),
        np.zeros(0, np.int32), np.asarray([1.0]), 0.0, 0,
    )  # fmt: skip
    scaled = training.as_odds(model, truth / 4 + 1, gold)  # a model whose scores are odds / 4 + 1
    back = scaled.scores(((truth / 4) + 1)[:, None])
    assert np.abs(back - truth).max() < 0.5
