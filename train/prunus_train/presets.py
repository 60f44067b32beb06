"""Hyper-parameters by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """A model from nothing, a Llama by its configuration; '' of ``base`` means from nothing.

    :param base: a folder with a model of ``transformers`` to start from; its shape then counts.
    :param wired: start with heads that look words up (:mod:`prunus_train.wired`).
    """

    base: str = ""
    hidden: int = 256
    layers: int = 8
    heads: int = 8
    inner: int = 768
    window: int = 2048
    theta: float = 50_000.0
    wired: bool = False


@dataclass(frozen=True, slots=True)
class Hyper:
    """How a model is trained.

    :param batch_tokens: tokens of a step, padding included, over all micro-batches.
    :param micro_tokens: tokens that are in memory at once.
    :param rate: the highest learning rate.
    :param schedule: ``constant`` or ``cosine`` (to a tenth), both behind the warm-up.
    :param warmup: share of the training that the rate rises.
    :param content_weight: what a token of the block's content counts, where a token of the path counts 1.
    :param page_weight, page_share: what a token of the page counts, and the share of them that is predicted.
    :param number_share: the share of the numbers in the page's tags that is predicted.
    :param vary: ask made questions a little otherwise each time.
    :param rename: how often the rarer words of a page and its questions are exchanged for others throughout.
    :param among_steps: a step of a path is chosen among those that the page has, as at inference, not among all tokens.
    :param real_weight, passage_weight: what a path counts that a real question about a page asks for, and one about
        passages, where one of a made question counts 1.
    :param freeze_layers: leave so many of the first layers as they are.
    :param freeze_vectors: leave the tokens' vectors as they are given.
    """

    batch_tokens: int = 32_768
    micro_tokens: int = 32_768
    epochs: float = 3.0
    rate: float = 1.5e-3
    schedule: str = "cosine"
    warmup: float = 0.03
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    decay: float = 0.05
    clip: float = 1.0
    content_weight: float = 0.2
    page_weight: float = 0.3
    page_share: float = 0.1
    number_share: float = 0.5
    freeze_vectors: bool = True
    vary: bool = True
    rename: float = 0.5
    checkpointing: bool = False
    among_steps: bool = False
    real_weight: float = 1.0
    passage_weight: float = 1.0
    freeze_layers: int = 0


PAPER = Hyper(
    batch_tokens=8 * 35_000,  # batch 1 a device, 8 accumulated; the window is 35,000
    micro_tokens=35_000,
    epochs=3.0,
    rate=2e-5,
    schedule="constant",
    warmup=0.01,
    beta1=0.9,
    beta2=0.98,
    epsilon=1e-8,
    decay=1e-4,
    clip=1.0,
    content_weight=1.0,
    page_weight=0.0,
    page_share=0.0,
    number_share=0.0,
    freeze_vectors=False,
    vary=False,
    rename=0.0,
    checkpointing=True,
)
"""HtmlRAG, Appendix B. One device stands for one sequence-parallel group of eight; DeepSpeed is not needed."""

PRESETS: dict[str, tuple[Shape, Hyper]] = {
    "tiny": (Shape(), Hyper()),
    "nano": (
        Shape(hidden=128, layers=4, heads=4, inner=352, window=1024),
        Hyper(batch_tokens=6_000, micro_tokens=6_000, rate=2e-3),
    ),
    "wired": (
        Shape(hidden=256, layers=4, heads=4, inner=256, window=2048, theta=1e10, wired=True),
        Hyper(
            batch_tokens=3_000,
            micro_tokens=3_000,
            rate=2e-4,
            content_weight=0.0,
            page_weight=0.0,
            decay=0.0,
            rename=0.0,
            among_steps=True,
            real_weight=15.0,
            passage_weight=2.0,
            freeze_layers=2,
        ),
    ),
    "paper": (Shape(window=35_000), PAPER),
}
"""``tiny``: what a GPU trains in minutes. ``nano``: to see on a processor that it learns.
``wired``: what a processor trains in minutes, from heads that already look words up. ``paper``: as published."""
