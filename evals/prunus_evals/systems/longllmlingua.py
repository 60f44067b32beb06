"""Prompt compression by LongLLMLingua, through the package ``llmlingua``: ``longllmlingua:FOLDER``.

FOLDER holds a causal language model for ``transformers``; the paper takes Llama-2-7B. The plain text in chunks of 200
words is compressed to the budget with the settings of the package's own example; what is still over the budget, because
its counter is another one, is cut. ``@device=cuda`` runs it on a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prunus_evals import readers
from prunus_evals.errors import SystemFailed, UnknownName
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems._documents import plain
from prunus_evals.systems._stages import COSTS, StageTimer
from prunus_evals.systems._variants import Kinds, Variant, read
from prunus_evals.systems.chunks import word_chunks
from prunus_evals.tokens import Counter

WORDS = 200
OPTIONS: Kinds = {"device": ("cpu", "cuda", "mps"), **COSTS}
SETTINGS: dict[str, Any] = {
    "condition_in_question": "after_condition",
    "reorder_context": "sort",
    "dynamic_context_compression_ratio": 0.3,
    "condition_compare": True,
    "context_budget": "+100",
    "rank_method": "longllmlingua",
    "concate_question": False,
}
"""The settings of LongLLMLingua in the package's documentation; the question is not part of the evidence."""


class LongLLMLingua:
    """Compresses the text of documents for each question."""

    def __init__(self, name: str, variant: Variant, counter: Counter) -> None:
        self.name = name
        self._folder = variant.head
        self.models = (f"transformers:{variant.head}",)
        self._device = variant.options.get("device", "cpu")
        self._stages = StageTimer(counter, variant.options.get("costs") == "yes")
        self._compressor: Any = None

    @property
    def caveat(self) -> str:
        """What tables must say of its model."""
        return readers.caveat(f"transformers:{self._folder}")

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Cut the text once; the model is loaded at the first documents."""
        chunks = [chunk for document in documents for chunk in word_chunks(plain(document), WORDS)]
        return _Asker(self, chunks, self._stages)

    def compress(self, chunks: Sequence[str], question: str, budget: int) -> str:
        """Return compressed text.

        :raises SystemFailed: the package or the model fails.
        """
        try:
            if self._compressor is None:
                from llmlingua import PromptCompressor  # here: it is optional, and loads torch

                self._compressor = PromptCompressor(
                    self._folder, device_map=self._device, model_config={"trust_remote_code": False}
                )
            found = self._compressor.compress_prompt(list(chunks), question=question, target_token=budget, **SETTINGS)
        except Exception as error:  # the code of another package may raise anything
            line = " ".join(str(error).split())[:300]
            raise SystemFailed(f"{self.name}: llmlingua failed ({type(error).__name__}: {line})") from error
        return str(found["compressed_prompt"]).strip()


class _Asker:
    def __init__(self, system: LongLLMLingua, chunks: Sequence[str], stages: StageTimer) -> None:
        self._system, self._chunks, self._stages = system, chunks, stages

    def ask(self, question: str, budget: int) -> Reply:
        counter, start = self._stages.counter, time.perf_counter()
        text = self._system.compress(self._chunks, question, budget) if self._chunks else ""
        stages = self._stages.copy()
        stages.note("compress", time.perf_counter() - start, self._chunks, [text])
        return Reply(counter.head(text, budget), "text", stages=tuple(stages.found))


def accepts(variant: str) -> bool:
    """Return whether a variant can be constructed: the folder of a model, with options.

    :raises UnknownName: there is no such folder.
    """
    folder = read("longllmlingua", variant, OPTIONS).head
    if not Path(folder).expanduser().is_dir():
        raise UnknownName(f"longllmlingua: {folder} is no folder of a model")
    return True


NEEDS = "pip install llmlingua, and the folder of a causal language model, as longllmlingua:FOLDER"


def missing(variant: str) -> str:
    """Return what it lacks: the package, or the folder of a model."""
    if find_spec("llmlingua") is None:
        return "pip install llmlingua, and name a model, as longllmlingua:FOLDER"
    return "" if variant else "name the folder of a causal language model, as longllmlingua:FOLDER"


def make(counter: Counter, variant: str) -> System:
    """Return the system of a model."""
    return LongLLMLingua(f"longllmlingua:{variant}", read("longllmlingua", variant, OPTIONS), counter)
