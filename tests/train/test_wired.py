"""Wired first weights: the model finds words before any training, through the scorer that a user calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need

import prunus
from prunus.core.registry import make_engine
from prunus.evidence.numbered_paths import number
from prunus.evidence.score._trie import grow
from prunus_train import batches
from prunus_train import tokenizer as words
from prunus_train.errors import DataBroken
from prunus_train.packed import Ask, Packer
from prunus_train.presets import PRESETS, Hyper, Shape

pytest.importorskip("selectolax")

ROWS = ("amber harbour", "copper valley", "silver meadow", "golden orchard", "purple canyon", "crimson lagoon")
TABLE = "".join(f"<tr><td>{row}<td>river number {place}</tr>" for place, row in enumerate(ROWS, 3))
PAGE = (
    "<p>The walnut forest lies in the north.</p><div><p>A violet desert lies in the south.</p>"
    f"<p>The ivory glacier lies in the east.</p></div><table>{TABLE}</table><p>No one has seen the scarlet island.</p>"
)
SPECIAL = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    text = f"{PAGE} Where is it? What lies in which number?"
    return words.train([text] * 30, 2500)


def vectors(tokenizer: Any) -> np.ndarray[Any, Any]:
    drawn = np.random.default_rng(0).standard_normal((tokenizer.get_vocab_size(), 256))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float16)


def built(tokenizer: Any, shape: Shape, hyper: Hyper) -> Any:
    need("torch")
    need("transformers")
    import torch

    from prunus_train import model

    torch.manual_seed(0)
    torch.set_num_threads(1)
    return model.build(shape, vectors(tokenizer), SPECIAL, hyper, tokenizer.get_vocab())


@pytest.fixture(scope="module")
def scorer(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("wired")
    model = built(tokenizer, *PRESETS["wired"])
    from prunus_train import pruner

    pruner.finish(model, folder)
    words.save(tokenizer, folder, 2048)
    path_scorer = make_engine("path_scorer", f"transformers:{folder}", options={"dtype": "float32"})
    return make_engine("scorer", "generative", path_scorer=path_scorer, prompt="bare")


def best(scorer: Any, question: str) -> str:
    blocks = prunus.read(PAGE).blocks(8)
    return str(blocks.texts[int(np.argmax(scorer.score(question, blocks)))])


@pytest.mark.full
@pytest.mark.parametrize("row", ROWS)
def test_the_row_that_holds_the_words_of_the_question_is_found(scorer: Any, row: str) -> None:
    assert row in best(scorer, f"What number is the {row}?")


@pytest.mark.full
def test_the_paragraph_that_holds_them_is_found(scorer: Any) -> None:
    assert "walnut forest" in best(scorer, "Where is the walnut forest?")
    assert "scarlet island" in best(scorer, "Where is the scarlet island?")


@pytest.mark.full
@pytest.mark.parametrize(("asked", "other"), [("violet desert", "ivory glacier"), ("ivory glacier", "violet desert")])
def test_of_two_paragraphs_of_one_division_the_right_one_is_likelier(scorer: Any, asked: str, other: str) -> None:
    """Finding the division itself needs training: a paragraph outside of a division looks similar."""
    blocks = prunus.read(PAGE).blocks(8)
    scores = dict(zip(blocks.texts, scorer.score(f"Where is the {asked}?", blocks), strict=True))
    by_words = {key: score for text, score in scores.items() for key in (asked, other) if key in text}
    assert by_words[asked] > by_words[other] + 1


@pytest.mark.full
def test_training_leaves_frozen_layers_and_vectors_alone(tokenizer: Any) -> None:
    model = built(tokenizer, *PRESETS["wired"])
    learned = [name for name, one in model.named_parameters() if one.requires_grad]
    assert not any("embed" in name or "layers.0." in name or "layers.1." in name for name in learned)
    assert any("layers.2." in name for name in learned)


@pytest.mark.full
def test_another_shape_is_refused(tokenizer: Any) -> None:
    with pytest.raises(DataBroken, match="256 hidden units, 4 heads"):
        built(tokenizer, Shape(hidden=128, heads=2, layers=4, wired=True), Hyper())


@pytest.mark.full
def test_a_tokenizer_without_steps_is_refused(tokenizer: Any) -> None:
    need("torch")
    need("transformers")
    from prunus_train import model

    with pytest.raises(DataBroken, match="make the data again"):
        model.build(PRESETS["wired"][0], vectors(tokenizer), SPECIAL, Hyper(), {"<div": 5})


def test_a_step_is_chosen_among_what_the_token_tree_leaves_open(tokenizer: Any) -> None:
    """Training and inference choose among the same tokens."""
    blocks = prunus.read(PAGE).blocks(8)
    paths = [tokenizer.encode(path).ids for path in number(blocks).paths]
    tree, leaves = grow(paths, 3)
    packer = Packer([9])
    packer.add([5], [Ask([6], path, [], 0) for path in paths], paths)
    found = batches.choices(packer.packed(), 0)
    for leaf, path in zip(leaves, paths, strict=True):
        own, found = found[: len(path)], found[len(path) :]
        node = int(leaf)
        for among in reversed(own):
            parent = int(tree.parent[node])
            siblings = [int(tree.token[one]) for one in range(len(tree)) if tree.parent[one] == parent]
            assert among.tolist() == sorted(siblings)
            node = parent
    assert not found


def test_samples_without_the_paths_of_all_blocks_are_refused() -> None:
    packer = Packer([9])
    packer.add([5], [Ask([6], [7], [], 0)])
    with pytest.raises(DataBroken, match="do not hold the paths"):
        batches.batch(packer.packed(), np.array([0]), PRESETS["wired"][1])


@pytest.mark.full
def test_among_steps_the_other_tokens_cost_nothing(tokenizer: Any) -> None:
    """A path without a branch has no loss, whatever the model predicts."""
    from dataclasses import replace

    shape, hyper = PRESETS["wired"]
    model = built(tokenizer, shape, hyper)
    from prunus_train import model as models

    path = tokenizer.encode("<html><body><p1>").ids
    packer = Packer(tokenizer.encode(words.TAIL).ids)
    packer.add([5, 6], [Ask([7], path, [], 0)], [path])
    alone = batches.batch(packer.packed(), np.array([0]), replace(hyper, vary=False))
    assert float(models.losses(model, alone, "cpu")[0].detach()) == pytest.approx(0.0, abs=1e-5)
    packer.add([5, 6], [Ask([7], path, [], 1)], [path, tokenizer.encode("<html><body><p2>").ids])
    two = batches.batch(packer.packed(), np.array([1]), replace(hyper, vary=False))
    assert float(models.losses(model, two, "cpu")[0].detach()) > 0.01
    assert two.weight.max() == hyper.real_weight


def test_a_page_part_keeps_the_paths_of_its_blocks(tmp_path: Path) -> None:
    from prunus_train import packed

    packer = Packer([9])
    packer.add([5], [Ask([6], [7], [], 0)], [[7], [8, 7]])
    packer.add([5], [Ask([6], [8], [], 0)], [[8]])
    packer.write(tmp_path / "train.xz")
    found = packed.joined([packed.read(tmp_path / "train.xz"), packer.packed()])
    kept = [[path.tolist() for path in found.all_paths(index)] for index in range(4)]
    assert kept == [[[7], [8, 7]], [[8]]] * 2
