"""The shapes of models and the hyper-parameters of training, with named presets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """The configuration of a new Llama, or the folder of a model to start from.

    :param base: folder with a model of ``transformers``; its shape replaces the other fields. '': a new model.
    :param hidden, layers, heads, inner: sizes of a Llama; ``inner`` is that of its feed-forward layers.
    :param window: tokens that the model can read.
    :param theta: base of the rotary position embedding.
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
    """The hyper-parameters of a training.

    :param batch_tokens: tokens of an optimiser step, padding included, over all micro-batches.
    :param micro_tokens: tokens of a micro-batch, which are in memory at the same time.
    :param rate: the highest learning rate.
    :param schedule: ``constant`` or ``cosine`` (down to a tenth), after the warm-up.
    :param warmup: share of the training in which the rate rises from 0.
    :param decay: weight decay of matrices; vectors have none.
    :param clip: norm to which the gradients are clipped.
    :param content_weight: weight of a token of the block's content in the loss; a token of the path has 1.
    :param page_weight, page_share: weight of a token of the page, and the share of these tokens that count.
    :param number_share: the share of the numbers in the page's tags that count.
    :param vary: vary made questions each time.
    :param rename: how often (0 to 1) the rarer words of a page and its questions are exchanged for other words.
    :param checkpointing: recompute activations in the backward pass, which saves memory.
    :param among_steps: choose a step of a path among the steps that the page has, as at inference; else among all
        tokens.
    :param real_weight, passage_weight: weight of a path for a real question about a page, and for one about passages;
        a made question has 1.
    :param freeze_layers: number of first layers that are not trained.
    :param freeze_vectors: do not train the tokens' vectors.
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
    batch_tokens=8 * 35_000,  # batch 1 per device, 8 accumulated; the window is 35,000
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
"""HtmlRAG, Appendix B. One device replaces one sequence-parallel group of eight; DeepSpeed is not needed."""

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
"""``tiny``: trains on a GPU in minutes. ``nano``: a quick trial without a GPU. ``wired``: trains without a GPU in
minutes, from heads that already look words up. ``paper``: the published hyper-parameters."""
