"""Task ``ranking``: rank a question's passage among all passages, for embedders, rerankers and fusion, unpruned.

``rank/nq_passages``: 1,328 questions of Natural Questions, each with the passage that answers it. Each question ranks
the passages of all questions; only the questions of one half count (by the title of their article). The metrics are
the mean reciprocal rank of the gold passage, and how often it is first and among the first ten.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prunus.core.ports import Embedder, Reranker
from prunus.core.registry import make_engine
from prunus_evals import stats
from prunus_evals.bm25 import BM25
from prunus_evals.data import rows
from prunus_evals.errors import UnknownName
from prunus_evals.metrics.ranked import of_rank
from prunus_evals.split import Half, digest, half

DATA = "rank/nq_passages"
WAYS = ("zscore", "minmax", "rrf")
MEASURES = {"mrr": "mrr", "first": "hit@1", "in_ten": "hit@10"}
RERANKED = 20
"""Number of passages, best first by BM25, that a reranker gets."""

DEFAULT = "bm25,embed:static,fuse:zscore:static,fuse:minmax:static,fuse:rrf:static"


@dataclass(frozen=True, slots=True)
class Task:
    """Passages and questions.

    :param questions: (page, question, index of its passage) of one half.
    """

    passages: Sequence[str]
    questions: Sequence[tuple[str, str, int]]


@dataclass(frozen=True, slots=True)
class Ranks:
    """The result of one system.

    :param by_page: rank of the gold passage, from 1, for the questions of each page.
    :param seconds: wall time for passages and questions together.
    """

    system: str
    by_page: Mapping[str, Sequence[int]]
    seconds: float


def load(wanted: Half, limit: int | None = None) -> Task:
    """Return all passages, and the questions of a half in the order of their page's digest."""
    numbers: dict[str, int] = {}
    found: list[tuple[str, str, int]] = []
    for row in rows(DATA):
        number = numbers.setdefault(row["gold_text"], len(numbers))
        if half(row["gold_title"]) == wanted:
            found.append((row["gold_title"], row["question"], number))
    found.sort(key=lambda row: (digest(row[0]), row[1]))
    return Task(list(numbers), found[:limit])


def run(task: Task, systems: Sequence[str], **settings: Any) -> list[Ranks]:
    """Rank with every system: ``bm25``, ``embed:SPEC``, ``fuse:WAY:SPEC``, ``rerank:SPEC``.

    :param settings: arguments for the engines (``threads``, ``door``, ``key``, …).
    :raises UnknownName: there is no such system.
    """
    found = []
    for system in systems:
        start = time.perf_counter()
        ranks = _ranks(task, _scores(task, system, settings))
        seconds = time.perf_counter() - start
        by_page: dict[str, list[int]] = {}
        for (page, _, _), rank in zip(task.questions, ranks, strict=True):
            by_page.setdefault(page, []).append(rank)
        found.append(Ranks(system, by_page, seconds))
    return found


def _scores(task: Task, system: str, settings: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the score of every passage for every question, [questions, passages]."""
    kind, _, spec = system.partition(":")
    if system == "bm25":
        return _lexical(task)
    if kind == "embed" and spec:
        return _dense(task, make_engine("embedder", spec, **settings))
    if kind == "fuse":
        way, _, embedder = spec.partition(":")
        if way in WAYS and embedder:
            dense = _dense(task, make_engine("embedder", embedder, **settings))
            return _rescale(_lexical(task), way) + _rescale(dense, way)
    if kind == "rerank" and spec:
        return _reranked(task, make_engine("reranker", spec, **settings))
    raise UnknownName(
        f"unknown system {system}; the systems are: bm25, embed:SPEC, rerank:SPEC, "
        + ", ".join(f"fuse:{way}:SPEC" for way in WAYS)
    )


def _lexical(task: Task) -> NDArray[np.float64]:
    index = BM25(task.passages)
    return np.stack([index.scores(question) for _, question, _ in task.questions])


def _dense(task: Task, embedder: Embedder) -> NDArray[np.float64]:
    passages = embedder.embed(task.passages, "document")
    questions = embedder.embed([question for _, question, _ in task.questions], "query")
    return np.asarray(questions @ passages.T, np.float64)


def _reranked(task: Task, reranker: Reranker) -> NDArray[np.float64]:
    """Return BM25's scores; the best passages are raised above the others, in the reranker's order."""
    scores = _lexical(task)
    for row, (_, question, _) in enumerate(task.questions):
        best = np.argsort(-scores[row], kind="stable")[:RERANKED]
        found = np.asarray(reranker.rerank(question, [task.passages[place] for place in best]))
        scores[row, best] = scores[row].max() + 1 + found - found.min()
    return scores


def _rescale(scores: NDArray[np.float64], way: str) -> NDArray[np.float64]:
    """Rescale each question's scores, so that two scorers can be added with equal weights."""
    if way == "rrf":
        order = np.argsort(-scores, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(1, scores.shape[1] + 1)[None, :], axis=1)
        return np.asarray(1.0 / (60 + ranks))
    if way == "minmax":
        low, high = scores.min(1, keepdims=True), scores.max(1, keepdims=True)
        return np.asarray((scores - low) / np.maximum(high - low, 1e-12))
    return np.asarray((scores - scores.mean(1, keepdims=True)) / np.maximum(scores.std(1, keepdims=True), 1e-12))


def _ranks(task: Task, scores: NDArray[np.float64]) -> list[int]:
    """Return the rank of each gold passage; a passage with the same score ranks before it."""
    gold = scores[np.arange(len(scores)), [number for _, _, number in task.questions]]
    return [int(rank) for rank in (scores >= gold[:, None]).sum(1)]


def summary(found: Sequence[Ranks], wanted: Half) -> dict[str, object]:
    """Return the numbers of the table, ready for JSON."""
    systems: dict[str, object] = {}
    for result in found:
        pages = result.by_page
        measured = {page: [of_rank(rank) for rank in ranks] for page, ranks in pages.items()}
        estimates = {
            name: stats.mean({page: [one[measure] for one in every] for page, every in measured.items()})
            for name, measure in MEASURES.items()
        }
        numbers: dict[str, object] = {name: found.numbers(None) for name, found in estimates.items()}
        systems[result.system] = numbers | {"seconds": result.seconds}
    questions = sum(len(ranks) for ranks in found[0].by_page.values()) if found else 0
    return {"half": wanted, "task": "nq_passages", "questions": questions, "systems": systems}


def table(result: Mapping[str, Any]) -> str:
    """Return a summary as a text table."""
    lines = [f"nq_passages, {result['half']} half, {result['questions']} questions: rank of the gold passage"]
    lines.append(f"{'system':28}{'MRR':>22}{'first':>8}{'in ten':>8}{'seconds':>9}")
    for name, found in result["systems"].items():
        mrr = stats.shown(found["mrr"])
        lines.append(f"{name:28}{mrr:>22}{found['first'][0]:8.3f}{found['in_ten'][0]:8.3f}{found['seconds']:9.1f}")
    return "\n".join(lines)
