"""``prunus train static``: vocabulary, teachers' vectors and fitting give vectors that rank the gold unit better."""

from __future__ import annotations

import json
import lzma
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file
from tests.extras import need

pytest.importorskip("selectolax")

from prunus_train.cli import main
from prunus_train.errors import DataBroken
from prunus_train.static import fit, recipe, texts, vocabulary

PLACES = [
    f"{name} {kind}" for name in ("Withy", "Dunnock", "Seal", "Mill", "Orrel", "Pell") for kind in ("Quay", "Lock")
]
FACTS = {
    "built": "stone masons raised it",
    "deep": "the water reaches four fathoms",
    "owner": "a trust holds the deeds",
}


class Hashed:
    """A teacher whose vector of a text is the sum of random vectors of its words."""

    identity = "hashed"
    dimension = 24

    def __init__(self) -> None:
        self.asked = 0

    def embed(self, texts: Sequence[str], kind: str = "document") -> Any:
        self.asked += len(texts)
        rows = []
        for text in texts:
            seeds = [sum(map(ord, word)) for word in text.lower().split()] or [0]
            rows.append(sum(np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds))
        found = np.asarray(rows, np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def write_rows(path: Path, rows: list[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def model_file(path: Path, pieces: Sequence[str]) -> Path:
    """Write the beginning of a teacher's file: its vocabulary."""
    letters = [piece.encode() for piece in pieces]
    places = np.cumsum([0, *map(len, letters)]).astype(np.uint32).tobytes()
    scores = np.linspace(-2, -9, len(pieces), dtype=np.float32).tobytes()
    head = struct.pack("<4sI7ifi5iQ", b"E5S1", 1, *[1] * 7, 1e-6, 1, len(pieces), 0, 2, 1, 3, len(b"".join(letters)))
    path.write_bytes(head + places + scores + b"".join(letters))
    return path


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows: list[Mapping[str, Any]] = []
    for place in PLACES:
        units = [f"At {place} {fact}." for fact in FACTS.values()]
        rows += [
            {"source": "faquad", "lang": "en" if number else "pt", "question": f"{asked} of {place}", "title": place}
            | {"units": units, "gold": [number], "answers": []}
            for number, asked in enumerate(FACTS)
        ]
    for name in texts.PAIRS:
        write_rows(tmp_path / "sets" / "text" / f"{name}.jsonl.xz", rows if name == "faquad_pt" else [])
    passages = [
        {
            "lang": language,
            "source": source,
            "text": f"{place} lies on the river, and {fact} there every year {number}.",
        }
        for number, place in enumerate(PLACES)
        for fact in FACTS.values()
        for language, source in (("en", "wtq-wikipedia"), ("pt", "faquad"), ("en", "squad"))
    ]
    write_rows(tmp_path / "sets" / "passages.jsonl.xz", passages)
    words = sorted({word for row in passages for word in str(row["text"]).lower().replace(",", "").split()})
    words += ["built", "deep", "owner", "of", "at"]
    pieces = [f"▁{word}" for word in words] + [chr(letter) for letter in range(97, 123)] + ["▁River", ",", "▁"]
    file = model_file(tmp_path / "teacher.bin", pieces)
    of_teacher = vocabulary.of_teacher
    monkeypatch.setattr(vocabulary, "of_teacher", lambda: of_teacher(file))
    return tmp_path / "sets"


def test_the_command_learns_writes_and_goes_on(sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    teacher = Hashed()
    monkeypatch.setattr(recipe, "make_engine", lambda *_, **__: teacher)
    command = [
        "static",
        "--sets",
        str(sets),
        "-o",
        str(tmp_path / "out"),
        "--part",
        "0.02",
        "--pieces",
        "500",
        "--json",
    ]
    first = CliRunner().invoke(main, command, catch_exceptions=False)
    assert first.exit_code == 0, first.output
    figures = json.loads(first.stdout)
    assert figures["questions"] > figures["held_questions"] > 0
    assert figures["learned"] > figures["learned_before"]
    stored = (tmp_path / "out" / "vectors.safetensors").read_bytes()
    table = load_file(str(tmp_path / "out" / "vectors.safetensors"))
    assert table["vectors"].dtype == np.int8 and table["scales"].shape == (len(table["vectors"]),)

    asked = teacher.asked
    again = CliRunner().invoke(main, command, catch_exceptions=False)
    assert json.loads(again.stdout) == figures
    assert teacher.asked == asked  # the teachers' vectors were kept
    assert (tmp_path / "out" / "vectors.safetensors").read_bytes() == stored


def test_sets_of_uncertain_licence_are_not_read(sets: Path) -> None:
    found = texts.passages(sets)
    assert len(found) == 2 * len(PLACES) * len(FACTS)  # squad is left out
    uncertain = ("drcd_zh", "squad_en", "boolq_en", "hotpotqa_en", "2wiki_en", "musique_en")
    assert not set(uncertain) & set(texts.PAIRS)


def test_a_document_is_learned_from_or_held_back_as_a_whole(sets: Path) -> None:
    held: dict[str, set[bool]] = {}
    for pair in texts.pairs(sets):
        held.setdefault(pair.gold.split("\n")[0], set()).add(pair.held)
    assert len(held) == len(PLACES)
    assert all(len(found) == 1 for found in held.values())


def test_a_missing_set_is_named(sets: Path, tmp_path: Path) -> None:
    need("selectolax")
    (sets / "text" / "piaf_fr.jsonl.xz").unlink()
    result = CliRunner().invoke(main, ["static", "--sets", str(sets), "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "piaf_fr" in result.output and "Traceback" not in result.output


def test_pieces_in_capitals_are_added_to_those_in_lower_case(tmp_path: Path) -> None:
    pieces = vocabulary.lower(
        [("▁River", -2.0), ("▁river", -2.0), ("Ri", -3.0), ("▁水位", -4.0), ("▁it's", -4.0), (",", -1.0)]
    )
    assert pieces.keys() == {"▁river", "ri", "水位"}
    assert pieces["▁river"] == pytest.approx(-2.0 + np.log(2))


def test_another_file_is_no_teacher(tmp_path: Path) -> None:
    (tmp_path / "other.bin").write_bytes(b"GGUF" + bytes(200))
    with pytest.raises(DataBroken, match="no model file"):
        vocabulary.of_teacher(tmp_path / "other.bin")


def test_fitting_brings_texts_to_their_vectors() -> None:
    pytest.importorskip("torch")
    drawn = np.random.default_rng(1)
    ids = [list(drawn.integers(50, size=6)) for _ in range(40)]
    targets = drawn.normal(size=(40, 8)).astype(np.float32)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    table = drawn.normal(size=(50, 8)).astype(np.float32)
    said: list[str] = []
    nothing = fit.StaticQuestions((), (), ())
    plan = fit.FitPlan(taught=60, asked=0, batch=16, rate=3e-2)
    found = fit.fit(table, fit.TaughtTexts(ids, targets), nothing, (), plan, said.append)
    losses = [float(line.rsplit(" ", 1)[1]) for line in said]
    assert losses[-1] < 0.3 * losses[0]
    assert np.array_equal(found, fit.fit(table, fit.TaughtTexts(ids, targets), nothing, (), plan, said.append))
