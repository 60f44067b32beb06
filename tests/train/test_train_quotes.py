"""``prunus train quotes``: weights are learned from questions with gold segments, the same ones every time."""

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

from prunus.answer.extract._features import NAMES
from prunus.answer.extract._weights import weights_of
from prunus_evals.split import half
from prunus_train import quotes
from prunus_train.cli import main
from prunus_train.data import quotes as data

PLACES = [f"{name} Quay" for name in ("Withy", "Dunnock", "Seal", "Mill", "Orrel", "Pell", "Kite", "Linden")]
"""Titles of pages, of both halves."""


def write_rows(path: Path, rows: list[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def sentences(place: str, year: int) -> list[str]:
    return [f"{place} lies on the river.", f"{place} was built in {year}.", "Boats go to the sea twice a day."]


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write tiny evaluation data and tiny training sets; return the folder of the sets."""
    articles, texts, pages, asked = [], [], [], []
    for place, year in zip(PLACES, range(1801, 1900, 7), strict=False):
        question = f"When was {place} built?"
        context = " ".join(sentences(place, year))
        item = {"id": place, "question": question, "answer": str(year), "start": context.index(str(year))}
        articles.append({"title": place, "paragraphs": [{"context": context, "qas": [item]}]})
        texts.append(
            {"question": question, "title": place, "answers": [str(year)], "units": sentences(place, year), "gold": [1]}
            | {"kind": "sentence"}
        )
        table = f"<tr><th>Month<th>Boats at {place}<tr><td>May<td>{year}<tr><td>June<td>12"
        pages.append({"page": place, "html": f"<h1>{place}</h1><table>{table}</table>"})
        fair = {"in_gold_table": True, "in_visible_text": True, "answer_in_question": False}
        counted = f"How many boats were at {place} in May?"
        asked.append({"id": place, "page": place, "question": counted, "answers": [str(year)]} | fair)
    write_rows(tmp_path / "data/multilingual/xquad_de.jsonl.xz", articles)
    write_rows(tmp_path / "sets/text/squad_en.jsonl.xz", texts)
    write_rows(tmp_path / "sets/table_qa/pages.jsonl.xz", pages)
    write_rows(tmp_path / "sets/table_qa/questions.jsonl.xz", asked)
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(data, "TASKS", ("xquad:de",))
    monkeypatch.setattr(data, "_TEXTS", {"squad_en": (6, 2)})
    return tmp_path / "sets"


def trained(sets: Path, out: Path) -> Result:
    return CliRunner().invoke(main, ["quotes", "--sets", str(sets), "-o", str(out)])


def test_the_weights_are_the_same_every_time_and_find_the_answers_of_the_dev_half(sets: Path, tmp_path: Path) -> None:
    first, second = trained(sets, tmp_path / "1.json"), trained(sets, tmp_path / "2.json")
    assert first.exit_code == 0, first.output
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    found = json.loads(first.stdout)
    assert found == json.loads(second.stdout)
    dev = sum(half(place) == "dev" for place in PLACES)
    assert 0 < dev < len(PLACES)
    for name in ("held_out", "new", "shipped"):
        assert found[name]["xquad:de"]["questions"] == dev  # and none of the report half
    assert found["new"]["xquad:de"]["first"] == 1


def test_more_likeness_never_lowers_a_score(sets: Path) -> None:
    found = weights_of(quotes.fit(data.load(sets, str)))
    for name in quotes._NEVER_BELOW_0:
        assert found.text[NAMES.index(name)] >= 0
        assert found.row[NAMES.index(name)] >= 0


def test_weights_move_towards_what_the_gold_segments_have(sets: Path) -> None:
    examples = data.load(sets, str)
    turned = [data.QuoteExample(one.source, one.own, ~one.gold, ~one.held, one.wrong, one.dev) for one in examples]
    right, wrong = (weights_of(quotes.fit(each)) for each in (examples, turned))
    place = NAMES.index("fits_date")  # every question of the texts asks when
    assert right.text[place] > wrong.text[place]


def test_questions_without_gold_are_one_line(sets: Path) -> None:
    none = [
        data.QuoteExample(one.source, one.own, np.zeros_like(one.gold), one.held, one.wrong, one.dev)
        for one in data.load(sets, str)
    ]
    with pytest.raises(quotes.DataBroken, match="no question"):
        quotes.fit(none)


def test_a_missing_set_is_one_line(sets: Path, tmp_path: Path) -> None:
    (sets / "text/squad_en.jsonl.xz").unlink()
    shown = trained(sets, tmp_path / "out.json")
    assert shown.exit_code == 2
    assert "squad_en.jsonl.xz is missing" in shown.output


def test_a_file_in_no_folder_is_one_line(sets: Path, tmp_path: Path) -> None:
    shown = trained(sets, tmp_path / "none" / "out.json")
    assert shown.exit_code == 2
    assert "there is no folder" in shown.output


def test_gold_is_what_holds_an_answer_in_a_gold_unit() -> None:
    row = {"units": ["Withy lies on the river. It was built in 1871.", "Seal was built in 1871."], "gold": [0]}
    row["answers"] = ["1871"]
    assert data.is_gold("squad_en", row, "It was built in 1871.")
    assert not data.is_gold("squad_en", row, "Withy lies on the river.")
    assert not data.is_gold("squad_en", row, "Seal was built in 1871.")
    assert data.is_gold("clapnq_en", row, "Withy lies on the river.")  # its answers are free texts
