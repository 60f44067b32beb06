"""Train the cross-encoder ``prunus``: which of the best segments or blocks of a page answers a question.

Each step draws questions, and for each one gold text and some that the cheap score confuses with it; the loss is a
softmax over them. Wrong texts are drawn by the softmax of their cheap scores. What is learned is therefore what the
cheap score does not know, and in use the two are added. One or two of the wrong segments are of a page that does not
answer. Where the answer is known, a second loss asks at which token of all these texts it begins and ends: the model is
told not only which text is right, but why.

The draws of a step depend on the seed and its number alone, so a stopped training resumes exactly.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from prunus_evals.split import digest
from prunus_train.data.reader import ReaderQuestion
from prunus_train.errors import DataBroken, Stopped
from prunus_train.interrupts import Interrupts
from prunus_train.reader_model import CrossEncoder

CHECKPOINT: Final = "checkpoint.safetensors"
"""File of the weights, the optimiser's state and the progress, from which a stopped training goes on; no pickle."""

BESIDE: Final = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Weights of the cheap score that validation tries."""

_WEIGHTS: Final = {
    "tables/segments": 6.0, "nq_passages/segments": 3.0, "ottqa_en/segments": 2.0, "qed_en/segments": 1.5,
    "clapnq_en/segments": 1.5, "covidqa_en/segments": 1.2, "faq_docs_multi/segments": 0.7,
    "tables": 3.0, "nq_passages": 1.0, "ottqa_en": 1.0,
}  # fmt: skip
"""How often a set is drawn, beside 1 for a set of segments and 0.3 for a set of blocks that is not named. By hand."""

_FEW: Final = 400
"""A set with fewer questions is drawn less often, in proportion."""


@dataclass(frozen=True, slots=True)
class ReaderHyper:
    """The hyper-parameters of a training.

    :param steps: optimiser steps.
    :param questions: questions of a step.
    :param blocks: texts of a question, the gold one included.
    :param max_tokens: most tokens of a pair.
    :param rate: learning rate of the encoder at its highest, after a warm-up and before a linear fall.
    :param head_rate, gate_rate: those of the heads, and of the biases between the two texts.
    :param span: weight of the loss of the answer's place.
    :param every: steps between validations, each with a checkpoint.
    :param validate: held-out questions that are asked.
    """

    steps: int = 1500
    questions: int = 12
    blocks: int = 8
    max_tokens: int = 112
    rate: float = 1.5e-4
    head_rate: float = 1e-3
    gate_rate: float = 2e-2
    span: float = 0.3
    every: int = 250
    validate: int = 160


@dataclass(slots=True)
class TrainingState:
    """The progress of a training.

    :param step: number of optimiser steps done.
    :param seconds: training time so far, over all runs.
    """

    step: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ReaderRun:
    """One training: its hyper-parameters, its folder for checkpoint and log, and its seed.

    :param bf16: compute in bfloat16, which is faster where the processor knows it; weights stay float32.
    :param minutes: length of the training, over all runs, which also sets the schedule of the rates; 0: train for
        ``hyper.steps``.
    """

    hyper: ReaderHyper
    folder: Path
    seed: int = 0
    bf16: bool = False
    minutes: float = 0.0

    def progress(self, state: TrainingState) -> float:
        """Return the share of the training that is done; 1 and above: finished."""
        if self.minutes:
            return state.seconds / (60 * self.minutes)
        return state.step / self.hyper.steps


def train(
    run: ReaderRun, model: CrossEncoder, tokenizer: Any, asked: Sequence[ReaderQuestion], say: Callable[[str], None]
) -> TrainingState:
    """Train a model in place, from its checkpoint where there is one.

    :param tokenizer: a ``tokenizers.Tokenizer`` that gives each text of a pair its own [CLS].
    :param say: called with each line of the log.
    :raises Stopped: the user interrupted the training; a checkpoint was written.
    :raises DataBroken: no question has a wrong block, or the checkpoint belongs to another training.
    """
    hyper = run.hyper
    sources: dict[str, list[ReaderQuestion]] = defaultdict(list)
    for question in asked:
        if not question.held_out and len(question.gold) < len(question.texts):
            sources[question.source].append(question)
    if not sources:
        raise DataBroken("no question of the training data has a right and a wrong block")
    held_out = spread([question for question in asked if question.held_out], hyper.validate)
    optimizer = torch.optim.AdamW(_groups(model, hyper), betas=(0.9, 0.98), eps=1e-6)
    settings = {
        "hyper": asdict(hyper), "seed": run.seed, "bf16": run.bf16, "minutes": run.minutes, "questions": len(asked)
    }  # fmt: skip
    state = load_checkpoint(run.folder, model, optimizer, settings) or TrainingState()
    peak = [group["lr"] for group in (_groups(model, hyper))]
    tokenizer.enable_truncation(hyper.max_tokens, strategy="only_second")
    started = time.monotonic() - state.seconds
    sums: list[tuple[float, float]] = []
    with Interrupts() as interrupts:
        while run.progress(state) < 1:
            lists = draw(sources, hyper, random.Random(f"{run.seed}:{state.step}"))
            factor = _schedule(run.progress(state))
            for group, rate in zip(optimizer.param_groups, peak, strict=True):
                group["lr"] = rate * factor
            sums.append(_step(model, tokenizer, lists, optimizer, run))
            state.step += 1
            state.seconds = time.monotonic() - started
            done = run.progress(state) >= 1
            due = state.step % hyper.every == 0 or done
            if due or state.step % 10 == 0:
                row: dict[str, Any] = {"step": state.step, "seconds": round(state.seconds)}
                row["loss"], row["span"] = (round(float(np.mean(part)), 4) for part in zip(*sums, strict=True))
                sums.clear()
                if due:
                    row["valid"] = validate(model, tokenizer, held_out, run)
                _note(run.folder, row, say)
            if due or interrupts.received:
                save_checkpoint(run.folder, model, optimizer, state, settings)
            if interrupts.received and not done:
                raise Stopped(f"interrupted at step {state.step}; run the same command to resume from {run.folder}")
    return state


def _groups(model: CrossEncoder, hyper: ReaderHyper) -> list[dict[str, Any]]:
    """Return the trained parameters by learning rate."""
    heads, gates, rest = [], [], []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if name.endswith((".gate", ".same")):
            gates.append(parameter)
        elif name.startswith(("mix", "relevance", "span", "match")):
            heads.append(parameter)
        elif name == "scale":
            gates.append(parameter)
        else:
            rest.append(parameter)
    return [
        {"params": rest, "lr": hyper.rate, "weight_decay": 0.01},
        {"params": heads, "lr": hyper.head_rate, "weight_decay": 0.01},
        {"params": gates, "lr": hyper.gate_rate, "weight_decay": 0.0},
    ]


def _schedule(progress: float) -> float:
    """Return the factor of the learning rates: a rise over the first twentieth of the training, then a linear fall."""
    return max(0.02, min(1.0, progress / 0.05 + 0.05, (1 - progress) / 0.95))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question and the texts of one step, the gold one first."""

    question: str
    answers: Sequence[str]
    texts: Sequence[str]


def draw(sources: dict[str, list[ReaderQuestion]], hyper: ReaderHyper, chance: random.Random) -> list[Drawn]:
    """Return the questions of a step; a set with few questions is drawn less often."""
    names = sorted(sources)
    weights = [_weight(name) * min(1.0, len(sources[name]) / _FEW) for name in names]
    drawn = []
    for name in chance.choices(names, weights, k=hyper.questions):
        asked = chance.choice(sources[name])
        gold = chance.choice(asked.gold)
        wrong = [place for place in range(len(asked.texts)) if place not in set(asked.gold)]
        # the largest of cheap score + Gumbel noise are draws without replacement by the softmax of the cheap scores
        noisy = {place: asked.cheap[place] - np.log(-np.log(chance.random() or 0.5)) for place in wrong}
        foreign = chance.sample(asked.wrong, min(len(asked.wrong), chance.choice((1, 2))))
        own = sorted(wrong, key=lambda place: -noisy[place])[: hyper.blocks - 1 - len(foreign)]
        texts = [asked.texts[gold], *(asked.texts[place] for place in own), *foreign]
        drawn.append(Drawn(asked.question, asked.answers, texts))
    return drawn


def _weight(name: str) -> float:
    return _WEIGHTS.get(name, 1.0 if name.endswith("/segments") else 0.3)


def _step(
    model: CrossEncoder, tokenizer: Any, lists: Sequence[Drawn], optimizer: Any, run: ReaderRun
) -> tuple[float, float]:
    """Do one step; return the mean loss of relevance and that of the answers' places."""
    model.train()
    scores, spans, marks = _forward(model, tokenizer, lists, run)
    relevance = torch.zeros(())
    place_loss, known = torch.zeros(()), 0
    start = 0
    for drawn in lists:
        rows = slice(start, start + len(drawn.texts))
        relevance = relevance - functional.log_softmax(scores[rows], 0)[0]
        mark = marks[start]
        if mark is not None:
            place_loss = place_loss + _place_loss([spans[row] for row in range(rows.start, rows.stop)], mark)
            known += 1
        start = rows.stop
    loss = relevance / len(lists) + run.hyper.span * place_loss / max(1, len(lists))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    optimizer.step()
    return relevance.item() / len(lists), place_loss.item() / max(1, known)


def _place_loss(spans: Sequence[Tensor], marks: tuple[list[int], list[int]]) -> Tensor:
    """Return the loss of where an answer begins and ends, over the tokens of all blocks of a question.

    :param spans: for each block, two numbers a token of its text, gold block first.
    :param marks: tokens of the gold block at which an answer begins, and at which one ends.
    """
    every = torch.cat(list(spans))
    whole = torch.logsumexp(every, 0)
    return sum((whole[side] - torch.logsumexp(spans[0][marks[side], side], 0) for side in (0, 1)), torch.zeros(())) / 2


def _forward(
    model: CrossEncoder, tokenizer: Any, lists: Sequence[Drawn], run: ReaderRun
) -> tuple[Tensor, list[Tensor], list[tuple[list[int], list[int]] | None]]:
    """Return for each pair its score and the numbers of its text's tokens, and for each gold pair the answer's tokens.

    Pairs of nearly equal length run together.
    """
    pairs = [(drawn.question, text) for drawn in lists for text in drawn.texts]
    encoded = tokenizer.encode_batch(pairs)
    golds: list[Drawn | None] = []
    for drawn in lists:
        golds += [drawn, *[None] * (len(drawn.texts) - 1)]
    marks = [answer_tokens(row, gold) if gold else None for row, gold in zip(encoded, golds, strict=True)]
    order = np.argsort([len(row.ids) for row in encoded], kind="stable").tolist()
    scores: list[Any] = [None] * len(pairs)
    spans: list[Any] = [None] * len(pairs)
    for begin in range(0, len(order), 16):
        places = order[begin : begin + 16]
        with torch.autocast("cpu", torch.bfloat16, enabled=run.bf16):
            states, first, second = model.states(*batch([encoded[place] for place in places]))
        states = states.float()
        numbers, pointed = model.score(states, first, second)[:, 0], model.span(states)
        for row, place in enumerate(places):
            scores[place] = numbers[row]
            spans[place] = pointed[row, : len(encoded[place].ids)][torch.tensor(encoded[place].type_ids) == 1]
    return torch.stack(scores), spans, marks


def answer_tokens(encoded: Any, drawn: Drawn) -> tuple[list[int], list[int]] | None:
    """Return the tokens of a text at which an answer begins and at which one ends; None where none is found.

    Tokens are counted from the first of the second text, [CLS] included.
    """
    text = drawn.texts[0].casefold()
    if len(text) != len(drawn.texts[0]):
        return None  # places in the folded text are not those of the text
    first = list(encoded.type_ids).index(1) if 1 in encoded.type_ids else len(encoded.ids)
    places = [
        (start, start + len(answer))
        for answer in (answer.casefold().strip() for answer in drawn.answers)
        if 0 < len(answer) <= 60
        for start in _finds(text, answer)
    ]
    begins, ends = [], []
    for number in range(first + 1, len(encoded.ids) - 1):
        low, high = encoded.offsets[number]
        begins += [number - first] if any(low == start for start, _ in places) else []
        ends += [number - first] if any(high == end for _, end in places) else []
    return (begins, ends) if begins and ends else None


def _finds(text: str, part: str) -> list[int]:
    found: list[int] = []
    start = text.find(part)
    while start >= 0 and len(found) < 5:
        found.append(start)
        start = text.find(part, start + 1)
    return found


def batch(rows: Sequence[Any]) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, mask and types of tokenised pairs, padded at the end, [rows, tokens]."""
    width = max(len(row.ids) for row in rows)
    ids, mask, types = (torch.zeros(len(rows), width, dtype=torch.long) for _ in range(3))
    for number, row in enumerate(rows):
        ids[number, : len(row.ids)] = torch.tensor(row.ids)
        types[number, : len(row.ids)] = torch.tensor(row.type_ids)
        mask[number, : len(row.ids)] = 1
    return ids, mask, types


def scores_of(model: CrossEncoder, tokenizer: Any, question: str, texts: Sequence[str], bf16: bool) -> NDArray[Any]:
    """Return the relevance of texts to a question, float64 [n]."""
    encoded = tokenizer.encode_batch([(question, text) for text in texts])
    order = np.argsort([len(row.ids) for row in encoded], kind="stable").tolist()
    scores = np.zeros(len(texts))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        for begin in range(0, len(order), 16):
            places = order[begin : begin + 16]
            states, first, second = model.states(*batch([encoded[place] for place in places]))
            scores[places] = model.score(states.float(), first, second)[:, 0].float().numpy()
    return scores


def validate(model: CrossEncoder, tokenizer: Any, held_out: Sequence[ReaderQuestion], run: ReaderRun) -> dict[str, Any]:
    """Return how often, and how high, gold stands first on held-out questions, by the weight of the cheap score.

    The figures of ``blocks`` are mean reciprocal ranks of the best gold block among all candidates, those of
    ``segments`` shares of questions whose best segment is gold; each by set, and over ``all`` questions. ``cheap`` is
    the cheap score alone. ``apart`` is the share of questions whose best segment of the right page stands above those
    of a wrong one, by the model alone.
    """
    model.eval()
    found: dict[str, Any] = {kind: defaultdict(lambda: defaultdict(list)) for kind in ("blocks", "segments")}
    apart: list[bool] = []
    for asked in held_out:
        kind = "segments" if asked.source.endswith("/segments") else "blocks"
        own, cheap = scores_of(model, tokenizer, asked.question, asked.texts, run.bf16), np.asarray(asked.cheap)
        ranks = {"cheap": _rank(cheap, asked.gold)}
        ranks |= {f"{weight:g}": _rank(own + weight * cheap, asked.gold) for weight in BESIDE}
        for name, rank in ranks.items():
            value = 1 / rank if kind == "blocks" else float(rank == 1)
            for source in (asked.source, "all"):
                found[kind][name][source].append(value)
        if asked.wrong:
            apart.append(bool(own.max() > scores_of(model, tokenizer, asked.question, asked.wrong, run.bf16).max()))
    means: dict[str, Any] = {
        kind: {
            name: {source: round(float(np.mean(values)), 3) for source, values in by.items()}
            for name, by in of_kind.items()
        }
        for kind, of_kind in found.items()
    }
    return means | {"apart": round(float(np.mean(apart)), 3) if apart else None}


def _rank(scores: NDArray[Any], gold: Sequence[int]) -> int:
    """Return the rank of the best gold candidate, from 1."""
    return 1 + int((scores > max(scores[place] for place in gold)).sum())


def spread(asked: Sequence[ReaderQuestion], count: int) -> list[ReaderQuestion]:
    """Return some questions, of each set in turn, in an order drawn by their digests."""
    groups: dict[str, list[ReaderQuestion]] = defaultdict(list)
    for question in sorted(asked, key=lambda question: digest(question.question)):
        groups[question.source].append(question)
    found: list[ReaderQuestion] = []
    for turn in range(max(map(len, groups.values()), default=0)):
        found += [group[turn] for group in groups.values() if turn < len(group)]
    return found[:count]


def _note(folder: Path, row: dict[str, Any], say: Callable[[str], None]) -> None:
    with (folder / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    say(json.dumps(row))


def save_checkpoint(folder: Path, model: Any, optimizer: Any, state: TrainingState, settings: dict[str, Any]) -> None:
    """Write the weights, the optimiser's state, the progress and the settings into one file of the folder."""
    from safetensors.torch import save_file

    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value for name, value in moments.items()}
    tensors = {name: value.detach().contiguous().cpu() for name, value in tensors.items()}
    part = folder / f"{CHECKPOINT}.part"
    save_file(tensors, str(part), {"state": json.dumps(asdict(state)), "settings": json.dumps(settings)})
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(folder / CHECKPOINT)


def load_checkpoint(folder: Path, model: Any, optimizer: Any, settings: dict[str, Any]) -> TrainingState | None:
    """Load a checkpoint into model and optimiser and return its progress; None where there is no checkpoint.

    :raises DataBroken: the file is damaged, or belongs to a training with other settings.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        with safe_open(str(path), "pt") as file:
            about = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is not a mapping
    except (SafetensorError, OSError) as error:
        raise DataBroken(f"{path} is not a checkpoint ({error}); remove it to start anew") from error
    if json.loads(about["settings"]) != settings:
        raise DataBroken(f"{path} belongs to a training with other settings; use them, or remove it to start anew")
    weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    model.load_state_dict(weights)
    states: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            states.setdefault(int(number), {})[key] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})
    return TrainingState(**json.loads(about["state"]))
