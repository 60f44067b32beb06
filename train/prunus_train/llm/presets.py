"""The hyper-parameters of the papers as named presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """The hyper-parameters of one training of a language model.

    :param window: tokens of a sample at most, prompt and target together; a longer sample is left out.
    :param rate: the highest learning rate.
    :param schedule: ``constant`` or ``cosine``, after the warm-up.
    :param least_rate: the rate at the end of a ``cosine`` schedule.
    :param warmup: share of all steps in which the rate rises from 0.
    :param clip: norm to which gradients are clipped.
    :param decay: weight decay.
    :param batch: samples of an optimiser step, over all processes, by accumulation.
    :param checkpointing: recompute activations in the backward pass, which saves memory and costs time.
    :param beta: of DPO: how strongly the model is held to the one that it started from; unused otherwise.
    """

    window: int = 16_384
    epochs: float = 3.0
    rate: float = 5e-6
    schedule: Literal["constant", "cosine"] = "cosine"
    least_rate: float = 0.0
    warmup: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    clip: float = 1.0
    decay: float = 0.0
    batch: int = 16
    checkpointing: bool = True
    beta: float = 0.1


PRESETS: dict[str, TrainingRecipe] = {
    "pruner": TrainingRecipe(
        window=35_000, rate=2e-5, schedule="constant", warmup=0.01, beta2=0.98, decay=1e-4, batch=8
    ),
    "parser": TrainingRecipe(least_rate=1.5e-6),
    "extractor": TrainingRecipe(),
    "extractor-dpo": TrainingRecipe(rate=5e-7, epochs=1.0),
    "small": TrainingRecipe(window=1024, rate=2e-4, schedule="constant", warmup=0.02, batch=4, checkpointing=False),
}
"""``pruner``: HtmlRAG, Appendix B (for Phi-3.5-mini-instruct and Llama-3.2-1B-Instruct). ``parser`` and ``extractor``:
Internet-SAG §3.1 (Yi-6B-Chat) and §4.3 (Yi-9B-Chat-16K). ``extractor-dpo``: §4.5, which prints neither rate, epochs nor
beta: ours. ``small``: ours, for LoRA on a processor."""

BASES = {
    "pruner": "Phi-3.5-mini-instruct or Llama-3.2-1B-Instruct",
    "parser": "Yi-6B-Chat",
    "extractor": "Yi-9B-Chat-16K",
    "extractor-dpo": "the extractor after sft",
    "small": "SmolLM2-135M-Instruct",
}
"""The model that a preset was published for; any causal model can be trained by it."""
