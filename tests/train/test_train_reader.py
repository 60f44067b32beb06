"""``prunus train reader``: a tiny cross-encoder learns, resumes exactly, and its ONNX file ranks blocks in the pipeline.

The base is a BERT of two random layers. What it learns is to prefer one made word, so a loss that falls and a changed
order are the model's work alone.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.extras import need
from tests.models.embed.tiny import WORDS, save_tokenizer, settings, weights

import prunus
from prunus.core.errors import BadInput
from prunus.models.rerank.prunus.engine import Engine

pytest.importorskip("selectolax", reason="the tasks of the evaluation are not installed")
pytest.importorskip("torch")

from prunus_train.cli import main
from prunus_train.data.reader import ReaderQuestion
from prunus_train.errors import DataBroken, Stopped
from prunus_train.reader import ReaderHyper
from prunus_train.reader_command import ReaderJob

pytestmark = pytest.mark.full

HYPER = ReaderHyper(steps=60, questions=8, blocks=4, max_tokens=32, rate=3e-3, head_rate=1e-2, every=10, validate=8)


@pytest.fixture(scope="module", autouse=True)
def _packages() -> None:
    for package in ("torch", "onnx", "onnxruntime"):
        need(package)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from safetensors.numpy import save_file

    folder = tmp_path_factory.mktemp("base")
    said = settings()
    save_file(weights(said), str(folder / "model.safetensors"))
    (folder / "config.json").write_text(json.dumps(said))
    save_tokenizer(folder)
    return folder


def questions(count: int = 160, seed: int = 5) -> list[ReaderQuestion]:
    """Return questions whose gold block is the one with "ferry"; the cheap score knows nothing."""
    chance = random.Random(seed)
    plain = [word for word in WORDS if word != "ferry"]
    found = []
    for number in range(count):
        texts = [" ".join(chance.choices(plain, k=6)) for _ in range(6)]
        gold = chance.randrange(6)
        texts[gold] = f"{texts[gold]} ferry"
        found.append(
            ReaderQuestion(
                "tables/segments" if number % 2 else "tables",
                f"page {number}",
                "when does the boat",
                ["ferry"],
                [f"harbour\n{text}" for text in texts],
                [0.0] * 6,
                [gold],
                [f"harbour\n{plain[0]}"] if number % 3 else [],
            )
        )
    return found


def run(job: ReaderJob, asked: list[ReaderQuestion]) -> dict[str, Any]:
    from prunus_train.reader_command import run

    return run(job, asked, lambda line: None)


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "model"
    figures = run(ReaderJob(out, HYPER, base, frozen=0, read_tokens=32), questions())
    held_out = figures["held_out"]
    assert held_out["blocks"]["0"]["all"] > 0.8  # chance is .41
    assert held_out["segments"]["0"]["all"] > 0.7  # chance is .17
    assert held_out["apart"] > 0.7  # segments of a wrong page stand below
    return out


def test_the_files_are_int8_and_give_the_order_that_was_taught(trained: Path) -> None:
    engine, right = Engine(str(trained), threads=1), 0
    for asked in questions(40, seed=6):
        right += int(np.argmax(engine.rerank(asked.question, asked.texts))) == asked.gold[0]
    assert right >= 32  # of 40; chance is 7


def test_its_product_changes_what_pruning_keeps(trained: Path) -> None:
    rows = "".join(f"<p>The boat leaves {word} noon.</p>" for word in ["tax", "tide", "ferry", "lighthouse", "form"])
    page = prunus.read(f"<h1>Harbour</h1>{rows}")
    question = "when does the boat"

    def best(**chosen: Any) -> str:
        blocks = prunus.prune(page, question, 200, options=prunus.Options(max_words=5, **chosen)).blocks
        return max(blocks, key=lambda block: block.score).text

    assert "ferry" not in best()
    assert "ferry" in best(scorer="crossencoder:5", reranker=f"prunus:{trained}")


def test_it_overfits_a_handful(base: Path, tmp_path: Path) -> None:
    few = [asked for asked in questions() if not asked.held_out][:4]
    run(ReaderJob(tmp_path / "model", ReaderHyper(40, 4, 4, 32, 3e-3, 1e-2, every=10), base, frozen=0), few)
    log = [json.loads(line) for line in (tmp_path / "model.work" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["loss"] < 0.05 < log[0]["loss"]


def test_a_stopped_training_resumes_exactly(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prunus_train import reader

    asked, hyper = questions(20), ReaderHyper(8, 4, 4, 32, 3e-3, 1e-2, every=4, validate=2)
    run(ReaderJob(tmp_path / "whole", hyper, base), asked)

    real = reader._step

    def stopped_after(step: int) -> Any:
        done = []

        def one(*given: Any) -> Any:
            import os
            import signal

            done.append(real(*given))
            if len(done) == step:
                os.kill(os.getpid(), signal.SIGINT)
            return done[-1]

        return one

    monkeypatch.setattr(reader, "_step", stopped_after(3))
    with pytest.raises(Stopped, match="interrupted at step 3"):
        run(ReaderJob(tmp_path / "parts", hyper, base), asked)
    monkeypatch.setattr(reader, "_step", real)
    run(ReaderJob(tmp_path / "parts", hyper, base), asked)
    files = [(tmp_path / name / "model_int8.onnx").read_bytes() for name in ("whole", "parts")]
    assert files[0] == files[1]


def test_before_training_it_is_the_bi_encoder(base: Path) -> None:
    import torch

    from prunus_train.reader import batch, scores_of
    from prunus_train.reader_command import paired_tokenizer
    from prunus_train.reader_model import from_folder

    transformers = need("transformers")
    model, tokenizer = from_folder(base), paired_tokenizer(base)
    for layer in model.layers:
        layer.gate.data.fill_(-1e4)  # nothing is seen across
    bert = transformers.BertModel.from_pretrained(base).eval()

    def mean(text: str) -> Any:
        ids, mask, _ = batch([tokenizer.encode(text)])
        return bert(input_ids=ids, attention_mask=mask).last_hidden_state.mean(1)

    model.eval()
    texts = ["the ferry leaves", "income tax form at noon is here"]
    with torch.no_grad():
        wanted = [20 * float(torch.cosine_similarity(mean("what is a boat"), mean(text))) for text in texts]
    assert scores_of(model, tokenizer, "what is a boat", texts, False) == pytest.approx(wanted, abs=1e-3)


def test_the_graph_in_int8_scores_as_torch_does(base: Path, tmp_path: Path) -> None:
    from prunus_train import reader_export
    from prunus_train.reader import scores_of
    from prunus_train.reader_command import paired_tokenizer
    from prunus_train.reader_model import from_folder

    model, tokenizer = from_folder(base), paired_tokenizer(base)
    model.eval()
    texts = [" ".join(WORDS[start : start + 9]) for start in range(0, 30, 3)]
    wanted = scores_of(model, tokenizer, "what is a boat", texts, False)
    reader_export.write(model, tokenizer, tmp_path / "model", {"max_tokens": 32, "beside": 0.0, "added": 1.0})
    found = Engine(str(tmp_path / "model"), threads=1).rerank("what is a boat", texts)
    assert np.abs(found - wanted).max() < 0.1 * np.ptp(wanted)
    assert np.corrcoef(found, wanted)[0, 1] > 0.99


def test_the_answers_tokens_are_found(base: Path) -> None:
    from prunus_train.reader import Drawn, answer_tokens
    from prunus_train.reader_command import paired_tokenizer

    tokenizer = paired_tokenizer(base)
    drawn = Drawn("when does", ["Noon"], ["harbour\nthe ferry leaves at noon"])
    encoded = tokenizer.encode(drawn.question, drawn.texts[0])
    begins, ends = answer_tokens(encoded, drawn) or ([], [])
    assert begins == ends == [6]  # [CLS] harbour the ferry leaves at noon
    assert answer_tokens(encoded, Drawn("when does", ["never"], drawn.texts)) is None


def test_bad_input_is_one_line(base: Path, tmp_path: Path) -> None:
    with pytest.raises(DataBroken, match="no question of the training data"):
        run(ReaderJob(tmp_path / "a", HYPER, base), [])
    with pytest.raises(DataBroken, match=r"is no tokenizer"):
        run(ReaderJob(tmp_path / "b", HYPER, tmp_path), questions(4))
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no model of `prunus train reader`"):
        Engine(str(tmp_path / "empty")).rerank("x", ["y"])


def test_a_base_that_is_none_is_said_before_the_questions_are_made(tmp_path: Path) -> None:
    said = CliRunner().invoke(
        main, ["reader", "--sets", str(tmp_path), "--base", str(tmp_path), "-o", str(tmp_path / "o")]
    )
    assert said.exit_code == 2 and "is no tokenizer" in said.output
    assert not (tmp_path / "o.work").exists()
