"""Training a pruner for seconds: it learns, it resumes after a kill, and the scorer loads the model."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.extras import need

from prunus_train import batches, packed
from prunus_train.errors import DataBroken
from prunus_train.packed import Ask, Packer
from prunus_train.presets import PAPER, PRESETS, Hyper, Shape

TAIL = [7, 8]
QUIET = Hyper(page_weight=0.0, vary=False)


def two_pages() -> packed.Packed:
    packer = Packer(TAIL)
    packer.add([10, 11, 12, 13], [Ask([20], [30, 31], [40, 41], 0), Ask([21, 22], [30, 32], [42], 1)])
    packer.add([14, 15], [Ask([23], [33], [], 2)])
    return packer.packed()


def test_what_is_packed_is_read_back(tmp_path: Path) -> None:
    packer = Packer(TAIL)
    packer.add([10, 11], [Ask([20], [30, 31], [40], 2)])
    packer.write(tmp_path / "train.xz")
    found = packed.read(tmp_path / "train.xz")
    assert found.page(0).tolist() == [10, 11]
    assert [part.tolist() for part in found.ask(0)] == [[20, 7, 8], [30, 31], [40]]


def test_a_torn_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "train.xz").write_bytes(b"\xfd7zXZ\x00torn")
    with pytest.raises(DataBroken, match="no packed samples"):
        packed.read(tmp_path / "train.xz")


def test_files_are_joined_in_order() -> None:
    both = packed.joined([two_pages(), two_pages()])
    assert len(both) == 4
    assert both.page(3).tolist() == [14, 15]
    assert both.ask(int(both.first_ask[3]))[1].tolist() == [33]


def test_files_of_other_prompts_are_not_joined() -> None:
    other = Packer([1])
    other.add([10], [Ask([20], [30], [], 0)])
    with pytest.raises(DataBroken, match="different prompts"):
        packed.joined([two_pages(), other.packed()])


def test_every_question_goes_on_from_the_end_of_its_page() -> None:
    laid = batches.batch(two_pages(), np.array([0]), QUIET)
    assert laid.tokens[0, :17].tolist() == [10, 11, 12, 13, 20, 7, 8, 30, 31, 40, 41, 21, 22, 7, 8, 30, 32]
    assert laid.segment[0, :18].tolist() == [0] * 4 + [1] * 7 + [2] * 7
    assert laid.position[0, :18].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 4, 5, 6, 7, 8, 9, 10]


def test_path_and_content_are_predicted_and_the_prompt_is_not() -> None:
    laid = batches.batch(two_pages(), np.array([0]), QUIET)
    predicted = {int(place): int(laid.target[0, place]) for place in np.flatnonzero(laid.weight[0])}
    assert predicted == {6: 30, 7: 31, 8: 40, 9: 41, 14: 30, 15: 32, 16: 42}
    assert np.flatnonzero(laid.path[0]).tolist() == [6, 7, 14, 15]
    assert laid.weight[0, 8] == pytest.approx(QUIET.content_weight)


def test_an_epoch_holds_every_page_once_in_an_order_that_the_seed_gives() -> None:
    chance = random.Random(0)
    packer = Packer(TAIL)
    for _ in range(50):
        packer.add([5] * chance.randint(1, 40), [Ask([6], [7], [8], 0)])
    data = packer.packed()
    first, again, other = (batches.order(data, 100, seed, 0) for seed in (1, 1, 2))
    assert sorted(np.concatenate(first).tolist()) == list(range(50))
    assert [rows.tolist() for rows in first] == [rows.tolist() for rows in again]
    assert [rows.tolist() for rows in first] != [rows.tolist() for rows in other]
    sizes = batches.lengths(data)
    assert all(len(rows) * sizes[rows].max() <= 100 for rows in first)


def test_a_varied_question_is_no_longer_than_it_was() -> None:
    data = two_pages()
    data.tags = np.zeros(64, np.bool_)
    question = np.array([20, 21, 22, 23, *TAIL], np.uint16)
    content = np.array([40, 41, 42, 43, 44], np.uint16)
    for seed in range(50):
        found = batches.varied(question, content, data, np.random.default_rng(seed))
        assert found[-2:].tolist() == TAIL
        assert 2 <= len(found) - 2 <= 4
        assert set(found[:-2].tolist()) <= {20, 21, 22, 23} or set(found[:-2].tolist()) <= {40, 41, 42, 43, 44}


def test_the_published_hyper_parameters_are_those_of_the_paper() -> None:
    """HtmlRAG, Appendix B."""
    assert (PAPER.rate, PAPER.schedule, PAPER.warmup, PAPER.epochs) == (2e-5, "constant", 0.01, 3.0)
    assert (PAPER.beta1, PAPER.beta2, PAPER.epsilon, PAPER.decay, PAPER.clip) == (0.9, 0.98, 1e-8, 1e-4, 1.0)
    assert (PAPER.batch_tokens // PAPER.micro_tokens, PAPER.checkpointing) == (8, True)
    assert PRESETS["paper"][0].window == 35_000


def test_exchanged_words_change_places_and_all_others_stay() -> None:
    names = batches.renamed(np.array([5, 9, 12]), np.random.default_rng(1))
    assert sorted(names[[5, 9, 12]].tolist()) == [5, 9, 12]
    assert np.delete(names, [5, 9, 12]).tolist() == np.delete(np.arange(len(names)), [5, 9, 12]).tolist()


def test_a_page_and_its_questions_are_exchanged_alike() -> None:
    data = two_pages()
    data.words = np.array([10, 20, 40])
    plain = batches.batch(data, np.array([0]), QUIET)
    always = Hyper(page_weight=0.0, vary=False, rename=1.0)
    found = batches.batch(data, np.array([0]), always, np.random.default_rng(3))
    changed = dict(zip(plain.tokens[0].tolist(), found.tokens[0].tolist(), strict=True))
    assert {changed[word] for word in (10, 20, 40)} == {10, 20, 40}
    assert [changed[int(token)] for token in plain.tokens[0]] == found.tokens[0].tolist()
    counts = plain.weight[0] > 0
    assert [changed[int(token)] for token in plain.target[0][counts]] == found.target[0][counts].tolist()


# --- with torch ----------------------------------------------------------------------------------

SMALL = Shape(hidden=32, layers=2, heads=2, inner=64, window=64)
FAST = Hyper(batch_tokens=256, micro_tokens=128, epochs=30, rate=1e-2, page_weight=0.0, vary=False)
"""Two micro-batches a step; the task: the number behind the letter that is asked."""


def lookups(count: int) -> packed.Packed:
    chance = random.Random(1)
    packer = Packer([3])
    for _ in range(count):
        keys, values = chance.sample(range(10, 16), 3), chance.sample(range(20, 30), 3)
        page = [token for pair in zip(keys, values, strict=True) for token in pair]
        packer.add(page, [Ask([keys[place]], [values[place]], [], 0) for place in range(3)])
    return packer.packed()


def ready(folder: Path, hyper: Hyper = FAST, **chosen: Any) -> tuple[Any, Any]:
    need("torch")
    need("transformers")
    import torch

    from prunus_train import model, pruner

    torch.manual_seed(0)
    torch.set_num_threads(1)
    vectors = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float16)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    return pruner.Run(SMALL, hyper, folder, **chosen), model.build(SMALL, vectors, special, hyper)


def quiet(line: str) -> None:
    assert json.loads(line)["step"] >= 0


@pytest.mark.full
@pytest.mark.slow
def test_the_loss_falls_and_is_logged(tmp_path: Path) -> None:
    run, built = ready(tmp_path, every=0.5)
    from prunus_train import pruner

    data = lookups(40)
    before = pruner.evaluate(run, built, data)["path_loss"]
    pruner.train(run, built, data, data, quiet)
    after = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert after[-1]["validation"]["path_loss"] < before / 2
    assert after[-1]["progress"] == 1.0


@pytest.mark.full
def test_a_question_does_not_see_its_neighbours(tmp_path: Path) -> None:
    """Several questions in one sequence have the same loss as each question alone."""
    _, built = ready(tmp_path)
    import torch

    from prunus_train import model

    data = lookups(1)
    alone = Packer([3])
    for number in range(3):
        question, path, _ = data.ask(number)
        alone.add(data.page(0).tolist(), [Ask(question[:1].tolist(), path.tolist(), [], 0)])
    with torch.no_grad():
        together, _ = model.losses(built, batches.batch(data, np.array([0]), QUIET), "cpu")
        apart, _ = model.losses(built, batches.batch(alone.packed(), np.arange(3), QUIET), "cpu")
    assert float(together) == pytest.approx(float(apart), rel=1e-5)


@pytest.mark.full
def test_an_interrupted_training_goes_on_and_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from prunus_train import pruner
    from prunus_train.errors import Stopped

    hyper, data = replace(FAST, epochs=3), lookups(12)
    run, whole = ready(tmp_path / "whole", hyper)
    pruner.train(run, whole, data, None, quiet)
    run, first = ready(tmp_path / "parts", hyper)
    step = pruner._Loop._backward
    calls = []

    def interrupt(loop: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            import signal

            signal.raise_signal(signal.SIGINT)
        return step(loop)

    monkeypatch.setattr(pruner._Loop, "_backward", interrupt)
    with pytest.raises(Stopped, match="interrupted at step 2"):
        pruner.train(run, first, data, None, quiet)
    monkeypatch.setattr(pruner._Loop, "_backward", step)
    run, second = ready(tmp_path / "parts", hyper)
    pruner.train(run, second, data, None, quiet)
    for one, other in zip(whole.parameters(), second.parameters(), strict=True):
        assert np.allclose(one.detach(), other.detach(), atol=1e-6)


@pytest.mark.full
def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    from prunus_train import pruner

    data = lookups(4)
    run, built = ready(tmp_path, replace(FAST, epochs=1))
    pruner.train(run, built, data, None, quiet)
    run, built = ready(tmp_path, replace(FAST, epochs=2))
    with pytest.raises(DataBroken, match="other settings"):
        pruner.train(run, built, data, None, quiet)


@pytest.mark.full
def test_the_rate_rises_and_falls_as_the_schedule_says() -> None:
    from prunus_train import pruner

    tiny = PRESETS["tiny"][1]
    assert pruner.rate_at(tiny, tiny.warmup / 2) == pytest.approx(tiny.rate / 2)
    assert pruner.rate_at(tiny, 1.0) == pytest.approx(tiny.rate / 10)
    assert pruner.rate_at(PAPER, 1.0) == PAPER.rate
