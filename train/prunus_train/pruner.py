"""The training loop of the generative pruner: supervised fine-tuning on block paths (HtmlRAG §3.4.2, Appendix B).

It needs torch, transformers, numpy and safetensors, but not the package ``prunus``, so that it runs on a bare machine
with a GPU: ``python -m prunus_train.pruner_command DATA -o MODEL --device cuda --minutes 8``.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from prunus_train import batches, checkpoint
from prunus_train import model as models
from prunus_train.checkpoint import Place
from prunus_train.errors import Stopped
from prunus_train.interrupts import Interrupts
from prunus_train.packed import Packed
from prunus_train.presets import Hyper, Shape

SUMS = ("weight", "path_loss", "path_tokens", "right", "asks")


@dataclass(frozen=True, slots=True)
class Run:
    """The settings of one training.

    :param folder: folder of the checkpoint and the log.
    :param bf16: compute in bfloat16; the weights stay float32.
    :param minutes: length of the training, over all runs, which also sets the learning rate's schedule; 0: train for
        ``hyper.epochs``.
    :param every: seconds between checkpoints; each checkpoint runs a validation.
    :param settings: further settings that a resumed training must share.
    """

    shape: Shape
    hyper: Hyper
    folder: Path
    device: str = "cpu"
    bf16: bool = False
    seed: int = 0
    minutes: float = 0.0
    every: float = 60.0
    settings: dict[str, Any] = field(default_factory=dict)


def train(run: Run, model: Any, data: Packed, validation: Packed | None, say: Callable[[str], None]) -> Place:
    """Train a model in place, from its checkpoint where there is one.

    :param say: called with each line of the log.
    :raises Stopped: the user interrupted the training; a checkpoint was written.
    :raises DataBroken: the checkpoint is damaged, or belongs to other settings.
    """
    import torch

    torch.manual_seed(run.seed)
    model.to(run.device)
    if run.hyper.checkpointing:
        model.gradient_checkpointing_enable()
    optimizer = _optimizer(model, run.hyper, run.device)
    run.folder.mkdir(parents=True, exist_ok=True)
    settings = {"hyper": asdict(run.hyper), "shape": asdict(run.shape), "seed": run.seed, **run.settings}
    place = checkpoint.load(run.folder, model, optimizer, settings) or Place()
    loop = _Loop(run, model, optimizer, data, validation, place, say)
    with Interrupts() as interrupts:
        for _ in loop.steps():
            if interrupts.received:
                break
            if loop.due:
                checkpoint.save(run.folder, model, optimizer, loop.place_now(), settings)
                loop.report()
        checkpoint.save(run.folder, model, optimizer, loop.place_now(), settings)
        if interrupts.received and loop.progress < 1:
            raise Stopped(f"interrupted at step {loop.place.step}; run the same command to resume from {run.folder}")
        loop.report()
    return loop.place_now()


def rate_at(hyper: Hyper, progress: float) -> float:
    """Return the learning rate after a share of the training, 0 to 1."""
    if progress < hyper.warmup:
        return hyper.rate * progress / hyper.warmup
    if hyper.schedule == "constant":
        return hyper.rate
    after = (progress - hyper.warmup) / max(1e-9, 1 - hyper.warmup)
    return hyper.rate * (0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, after))))


def evaluate(run: Run, model: Any, data: Packed) -> dict[str, float]:
    """Return the loss per token of a path and per path, the share of paths that are right, and their number."""
    import torch

    model.eval()
    sums = torch.zeros(len(SUMS), device=run.device)
    with torch.no_grad(), _precision(run):
        for rows in batches.order(data, run.hyper.micro_tokens, 0, 0):
            _, counted = models.losses(model, batches.batch(data, rows, run.hyper), run.device)
            sums += counted
    model.train()
    return _log_numbers(sums.tolist())


def _log_numbers(sums: list[float]) -> dict[str, float]:
    by_name = dict(zip(SUMS, sums, strict=True))
    return {
        "path_loss": round(by_name["path_loss"] / max(1.0, by_name["path_tokens"]), 4),
        "loss_a_path": round(by_name["path_loss"] / max(1.0, by_name["asks"]), 4),
        "right": round(by_name["right"] / max(1.0, by_name["asks"]), 4),
        "asks": int(by_name["asks"]),
    }


def _optimizer(model: Any, hyper: Hyper, device: str) -> Any:
    import torch

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in trained if parameter.ndim > 1], "weight_decay": hyper.decay},
        {"params": [parameter for parameter in trained if parameter.ndim < 2], "weight_decay": 0.0},
    ]
    betas = (hyper.beta1, hyper.beta2)
    return torch.optim.AdamW(groups, lr=hyper.rate, betas=betas, eps=hyper.epsilon, fused=device == "cuda")


def _precision(run: Run) -> Any:
    import torch

    return torch.autocast(run.device, dtype=torch.bfloat16, enabled=run.bf16)


class _Loop:
    """The loop of optimiser steps, its progress and its log."""

    def __init__(
        self,
        run: Run,
        model: Any,
        optimizer: Any,
        data: Packed,
        validation: Packed | None,
        place: Place,
        say: Callable[[str], None],
    ) -> None:
        import torch

        self.run, self.model, self.optimizer, self.place = run, model, optimizer, place
        self._data, self._validation, self._say = data, validation, say
        self._start = self._reported = time.monotonic()
        self._before = place.seconds
        self._sums = torch.zeros(len(SUMS), device=run.device)
        self._tokens = 0
        self._total = len(batches.order(data, run.hyper.micro_tokens, run.seed, 0))

    @property
    def seconds(self) -> float:
        """Seconds of training, with earlier runs."""
        return self._before + time.monotonic() - self._start

    @property
    def progress(self) -> float:
        """The share of the training that is done; 1 and above: finished."""
        if self.run.minutes:
            return self.seconds / (60 * self.run.minutes)
        return (self.place.epoch + self.place.batch / max(1, self._total)) / self.run.hyper.epochs

    @property
    def due(self) -> bool:
        """Whether the next checkpoint is due."""
        return time.monotonic() - self._reported >= self.run.every

    def place_now(self) -> Place:
        """Return the progress, with the time so far."""
        self.place.seconds = self.seconds
        return self.place

    def steps(self) -> Iterator[int]:
        """Train step by step until the time or the epochs are over; yield the number of each step."""
        import torch

        self.model.train()
        micro = max(1, round(self.run.hyper.batch_tokens / self.run.hyper.micro_tokens))
        while self.progress < 1:
            weight = torch.zeros((), device=self.run.device)
            for _ in range(micro):
                weight += self._backward()
            rate = rate_at(self.run.hyper, max(self.progress, 1e-4))
            trained = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
            for parameter in trained:  # the micro-batches summed their losses: divide by the weight of all
                parameter.grad.div_(weight.clamp(min=1.0))
            torch.nn.utils.clip_grad_norm_(trained, self.run.hyper.clip)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.place.step += 1
            yield self.place.step

    def _backward(self) -> Any:
        """Add the gradients of one micro-batch; return the sum of its weights."""
        hyper, place = self.run.hyper, self.place
        order = self._order(place.epoch)
        chance = np.random.default_rng([self.run.seed, place.epoch, place.batch])
        batch = batches.batch(self._data, order[place.batch], hyper, chance)
        with _precision(self.run):
            loss, sums = models.losses(self.model, batch, self.run.device)
        loss.backward()
        self._sums += sums
        self._tokens += batch.tokens.size
        place.batch += 1
        if place.batch >= len(order):
            place.epoch, place.batch = place.epoch + 1, 0
        return sums[0]

    def _order(self, epoch: int) -> list[Any]:
        if getattr(self, "_epoch", None) != epoch:
            self._epoch = epoch
            self._batches = batches.order(self._data, self.run.hyper.micro_tokens, self.run.seed, epoch)
        return self._batches

    def report(self) -> None:
        """Write a line of the log: the training since the last line, and the validation."""
        spent = max(1e-9, time.monotonic() - self._reported)
        line: dict[str, Any] = {
            "step": self.place.step,
            "epoch": self.place.epoch,
            "seconds": round(self.seconds, 1),
            "progress": round(min(1.0, self.progress), 4),
            "rate": rate_at(self.run.hyper, min(1.0, max(self.progress, 1e-4))),
            "tokens_a_second": round(self._tokens / spent),
            "train": _log_numbers(self._sums.tolist()),
        }
        if self._validation is not None:
            line["validation"] = evaluate(self.run, self.model, self._validation)
        with (self.run.folder / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._say(json.dumps(line))
        self._sums.zero_()
        self._tokens = 0
        self._reported = time.monotonic()


def finish(model: Any, folder: Path, shard: str = "15MB") -> None:
    """Write a trained model for ``transformers``: safetensors in float16, in files of at most ``shard``."""
    import torch

    model.to("cpu").to(torch.float16)
    model.config.dtype = "float16"
    model.save_pretrained(str(folder), max_shard_size=shard)
