"""What ``prunus train reader`` is asked to do: paths, hyper-parameters, and the numbers that model and engine share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from prunus_train.checkpoint import Place

ABOVE: Final = 200
"""Most code points of breadcrumbs before a text, as the engine ``prunus`` reads them."""

BESIDE: Final = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Weights of the cheap score that validation tries."""


@dataclass(frozen=True, slots=True)
class Hyper:
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


@dataclass(frozen=True, slots=True)
class Run:
    """One training: its hyper-parameters, its folder for checkpoint and log, and its seed.

    :param bf16: compute in bfloat16, which is faster where the processor knows it; weights stay float32.
    :param minutes: length of the training, over all runs, which also sets the schedule of the rates; 0: train for
        ``hyper.steps``.
    """

    hyper: Hyper
    folder: Path
    seed: int = 0
    bf16: bool = False
    minutes: float = 0.0

    def progress(self, place: Place) -> float:
        """Return the share of the training that is done; 1 and above: finished."""
        if self.minutes:
            return place.seconds / (60 * self.minutes)
        return place.step / self.hyper.steps


@dataclass(frozen=True, slots=True)
class Job:
    """What ``prunus train reader`` is asked to do.

    :param out: folder for the model's files; ``OUT.work`` beside it keeps the questions, the checkpoint and the log.
    :param base: folder of a BERT that is a bi-encoder; None takes the installed package of all-MiniLM-L6-v2.
    :param threads: threads of the processor.
    :param read_tokens: most tokens of a pair in use; training may cut earlier, to save time.
    """

    out: Path
    base: Path | None = None
    hyper: Hyper = field(default_factory=Hyper)
    minutes: float = 0.0
    seed: int = 0
    bf16: bool = False
    frozen: int = 2
    read_tokens: int = 160
    threads: int = 1

    @property
    def work(self) -> Path:
        """The folder beside the model in which its questions, checkpoint and log are kept."""
        return self.out.with_name(f"{self.out.name}.work")
