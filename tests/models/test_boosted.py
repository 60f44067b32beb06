"""Boosted trees: numpy gives the numbers of a plain walk and of the library that trained them; bad files are one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.extras import need

pytest.importorskip("selectolax")

from prunus.core.errors import BadInput
from prunus.models.boosted import Boosted, load, write
from prunus_train import blocks
from prunus_train.blocks import TreePlan, TreeRows
from prunus_train.errors import DataBroken

NAMES = ("a", "b", "c")


def hand_made() -> Boosted:
    """Two trees: b > 2 ? (a > 0.5 ? 3 : 2) : 1, and the single leaf 10; plus 0.5 c - 4."""
    inf = np.inf
    return Boosted(
        NAMES,
        np.asarray([1, 0, 0, 0, 0, 0], np.int32),
        np.asarray([2, inf, 0.5, inf, inf, inf], np.float32),
        np.asarray([[1, 2], [1, 1], [3, 4], [3, 3], [4, 4], [5, 5]], np.int32),
        np.asarray([0, 1, 0, 2, 3, 10], np.float64),
        np.asarray([0, 5], np.int32),
        np.asarray([0, 0, 0.5]),
        -4.0,
        2,
    )


def test_scores_of_a_hand_made_model() -> None:
    rows = np.asarray([[0, 2, 0], [0.5, 3, 0], [0.6, 3, 2], [9, 2.001, -2]])
    assert hand_made().scores(rows).tolist() == [7.0, 8.0, 10.0, 8.0]
    assert hand_made().scores(np.zeros((0, 3))).shape == (0,)


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="3 features a row"):
        hand_made().scores(np.zeros((2, 4)))


def test_a_file_is_read_as_it_was_written_and_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    write(hand_made(), tmp_path / "one.npz")
    again = load(tmp_path / "one.npz")
    write(again, tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert again.names == NAMES and again.depth == 2 and again.bias == -4.0
    rows = np.random.default_rng(1).normal(size=(500, 3)) * 3
    assert np.array_equal(again.scores(rows), hand_made().scores(rows))


@pytest.mark.parametrize("damage", ["missing", "empty", "text", "cut", "circle", "feature", "form"])
def test_a_damaged_file_is_one_line_that_names_it(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "model.npz"
    write(hand_made(), path)
    if damage in ("circle", "feature", "form"):
        with np.load(path) as stored:
            arrays = dict(stored)
        if damage == "circle":
            arrays["child"][2] = [0, 4]
        elif damage == "feature":
            arrays["feature"][0] = 7
        else:
            arrays["form"] = np.asarray(99)
        np.savez(path, **arrays)
    else:
        whole = path.read_bytes()
        contents = {"empty": b"", "text": b"no model", "cut": whole[: len(whole) // 2]}
        path.unlink()
        if damage != "missing":
            path.write_bytes(contents[damage])
    with pytest.raises(BadInput, match=r"model\.npz is no model of boosted trees: .") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def generated(seed: int = 3) -> tuple[TreeRows, NDArray[np.float32]]:
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(3000, 3)).astype(np.float32)
    rows[:, 1] = np.round(rows[:, 1], 1)  # many equal numbers, as real features have them
    labels = (rows[:, 0] + np.sin(3 * rows[:, 1]) + 0.3 * draw.normal(size=3000) > 0.8).astype(float)
    return TreeRows(rows, labels, [30] * 100), draw.normal(size=(2000, 3)).astype(np.float32)


def test_numpy_gives_the_numbers_of_the_library(tmp_path: Path) -> None:
    need("lightgbm")
    data, fresh = generated()
    booster = blocks.fitted(NAMES, data, TreePlan(trees=40, least=10))
    write(blocks.exported(NAMES, booster), tmp_path / "model.npz")
    for rows in (data.features, fresh):
        expected = booster.predict(rows.astype(float), raw_score=True)
        assert np.abs(load(tmp_path / "model.npz").scores(rows) - expected).max() < 1e-6


def test_training_twice_gives_the_same_file_and_learns(tmp_path: Path) -> None:
    need("lightgbm")
    data, _ = generated()
    for name in ("one", "two"):
        write(blocks.boosted(NAMES, data, TreePlan(trees=30)), tmp_path / f"{name}.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    held, _ = generated(seed=4)
    found = load(tmp_path / "one.npz").scores(held.features)
    right, wrong = found[held.labels == 1], found[held.labels == 0]
    assert (right[:, None] > wrong[:200]).mean() > 0.9  # share of pairs in the right order


@pytest.mark.parametrize("labels", [np.zeros(4), np.ones(4)])
def test_data_without_a_contrast_is_refused(labels: NDArray[np.float64]) -> None:
    need("lightgbm")
    with pytest.raises(DataBroken, match="no right row beside a wrong one"):
        blocks.boosted(NAMES, TreeRows(np.zeros((4, 3)), labels, [4]), TreePlan())
