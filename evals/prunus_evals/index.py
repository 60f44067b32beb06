"""Task ``index``: the recall of gold evidence within a budget, for flat and tree retrieval over the same chunks.

Recall is the share of the gold letters that were retrieved. A leaf counts by its span. A sentence of an extractive
summary counts at its place in the document, so that trees get credit for their summaries. ``beam`` retrieves only
from the leaves that a search from the roots down reaches: unlike the recall of a collapsed tree, its recall depends
on the quality of the tree.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from prunus.core.errors import PrunusError
from prunus.core.registry import make_engine
from prunus.core.text.words import sentences
from prunus.index.build import PAPER, Builder, BuildSettings, DocumentSource
from prunus.index.nodes import Node
from prunus.index.retrieve import RetrievalWeights, Retriever
from prunus.index.store.file.engine import Engine as Store
from prunus_evals import stats, trees
from prunus_evals.errors import BudgetBroken, EvalError, UnknownName
from prunus_evals.index_tasks import IndexQuestion, Task
from prunus_evals.split import Half

TREES = {"ward": "ward", "raptor": "raptor", "contiguous": "contiguous", "segments": "contiguous:segments"}
TREES |= {"random": "random"}
FLAT = ("dense", "bm25", "hybrid", "neighbours", "order")
DEFAULT = "default"
SYSTEMS = (DEFAULT, *FLAT, *TREES, *(f"beam:{name}" for name in TREES))
"""``default`` is the retrieval of ``prunus ask --index``; ``neighbours`` is ``hybrid`` with neighbouring chunks;
``order`` is the best dense chunks in document order; the name of a tree is collapsed dense retrieval from it, as
published."""

Values = dict[str, list[float]]


@dataclass(slots=True)
class Index:
    """The index of a task's documents."""

    store: Store
    embedder: Any
    counter: Any
    documents: Mapping[str, str]
    _tree: trees.Tree | None = None
    _spans: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)

    def retriever(self, **weights: Any) -> Retriever:
        """Return a retriever with these weights."""
        return Retriever(self.store, self.embedder, self.counter, RetrievalWeights(**weights))

    @property
    def tree(self) -> trees.Tree:
        """The tree as arrays; read once."""
        if self._tree is None:
            self._tree = trees.Tree(self.store.view(), self.store.edges())
        return self._tree

    def spans(self, node: Node) -> list[tuple[str, int, int]]:
        """Return the spans of the documents that a node contains: (document, start, end)."""
        if node.layer == 0:
            return [(node.document, node.start, node.end)]
        if node.id not in self._spans:
            self._spans[node.id] = self._find_sentences(node)
        return self._spans[node.id]

    def _find_sentences(self, node: Node) -> list[tuple[str, int, int]]:
        """Find the sentences of an extractive summary in the leaves below it."""
        leaves = self.store.get(self.retriever().leaves_of(node.id))
        found = []
        for sentence in sentences(node.text):
            words = [re.escape(word) for word in sentence.split()]
            pattern = re.compile(r"\s+".join(words)) if words else None
            for leaf in leaves if pattern else ():
                match = pattern.search(leaf.text) if pattern else None
                if match:
                    found.append((leaf.document, leaf.start + match.start(), leaf.start + match.end()))
                    break
        return found


def build(task: Task, tree: str, embedder: str, folder: Path) -> Index:
    """Build the index of a task in a folder, or open it where it was built before.

    :raises UnknownName: there is no such tree.
    """
    if tree not in TREES:
        raise UnknownName(f"unknown tree {tree}; the trees are: {', '.join(TREES)}")
    vectors, counter = make_engine("embedder", embedder), make_engine("tokenizer", "llama2")
    place = folder / f"{task.name}-{tree}-{re.sub(r'[^A-Za-z0-9]+', '-', embedder)}"
    done = place / "done"
    store = Store(place, vectors.identity, vectors.dimension, create=True)
    if not done.exists():
        summaries = make_engine("summarizer", "extractive", embedder=vectors, tokenizer=counter)
        settings = replace(
            PAPER if tree == "raptor" else BuildSettings(), scope="document" if task.within else "collection"
        )
        builder = Builder(store, vectors, counter, make_engine("clusterer", TREES[tree]), summaries, settings)
        builder.add(DocumentSource(name, text=text, language=task.language) for name, text in task.documents.items())
        asyncio.run(builder.build())
        done.touch()
    return Index(store, vectors, counter, task.documents)


def retrieve(index: Index, system: str, question: IndexQuestion, budget: int, within: bool) -> Sequence[Node]:
    """Retrieve nodes for a question with a system.

    :param within: retrieve only from the question's document.
    :raises UnknownName: there is no such system.
    :raises BudgetBroken: the texts of the nodes have more tokens than the budget.
    """
    documents = (question.document,) if within else ()
    collapsed: dict[str, tuple[dict[str, float], Any]] = {
        "dense": ({}, "dense"),
        "bm25": ({}, "bm25"),
        "hybrid": ({"neighbour": 0.0}, "hybrid"),
        "neighbours": ({}, "hybrid"),
    }
    if system.startswith("beam:"):
        return _retrieve_by_beam(index, question, budget, within)
    if system == DEFAULT:
        found = index.retriever().hybrid(question.question, budget, documents=documents)
    elif system == "order":
        plain = index.retriever(lexical=0.0, neighbour=0.0, summaries=0.0)
        found = plain.hybrid(question.question, budget, documents=documents, broad=False)
    elif system in collapsed:
        weights, scorer = collapsed[system]
        retriever = index.retriever(**weights)
        found = retriever.collapsed(question.question, budget, tree=False, scorer=scorer, documents=documents)
    elif system in TREES:
        found = index.retriever().collapsed(question.question, budget, documents=documents)
    else:
        raise UnknownName(f"unknown system {system}; the systems are: {', '.join(SYSTEMS)}")
    if int(index.counter.count([found.text])[0]) > budget:
        raise BudgetBroken(system, question.question, budget, found.tokens)
    return found.nodes


def _retrieve_by_beam(index: Index, question: IndexQuestion, budget: int, within: bool) -> Sequence[Node]:
    """Return the leaves that a beam search reaches, nearest first, up to the first that would exceed the budget."""
    view, tree = index.store.view(), index.tree
    vector = np.asarray(index.embedder.embed([question.question], "query")[0], np.float32)
    roots = tree.roots
    if within:
        number = list(view.names).index(question.document)
        roots = [root for root in roots if int(view.document[root]) == number]
    found, _ = tree.reached(vector, roots=roots)
    best = found[np.argsort(-(tree.means[found] @ vector), kind="stable")]
    total = np.cumsum(view.tokens[best] + 2)  # an empty line between two leaves costs up to two tokens
    return index.store.get(view.ids[best[total <= budget]].tolist())


class Gold:
    """Computes recall over the characters of the documents that are not white space."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self._letters = {
            name: np.asarray([not letter.isspace() for letter in text], bool) for name, text in documents.items()
        }

    def recall(self, question: IndexQuestion, spans: Sequence[tuple[str, int, int]]) -> float:
        """Return the share of the evidence's letters that lie in the spans; 1 where the evidence has no letters."""
        letters = self._letters[question.document]
        wanted = np.zeros(len(letters), bool)
        for start, end in question.spans:
            wanted[start:end] = True
        wanted &= letters
        retrieved = np.zeros(len(letters), bool)
        for document, start, end in spans:
            if document == question.document:
                retrieved[start:end] = True
        total = int(wanted.sum())
        return float((wanted & retrieved).sum()) / total if total else 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one system at one budget: the recall of each question by page, and milliseconds per question."""

    system: str
    budget: int
    recall: Values
    milliseconds: float


def run(
    task: Task,
    systems: Sequence[str],
    budgets: Sequence[int],
    embedder: str,
    folder: Path,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[list[Outcome], dict[str, Any]]:
    """Retrieve for every question with every system.

    :param folder: where the indexes are built.
    :returns: the outcomes, and the quality of each tree (see :func:`.trees.quality`).
    :raises EvalError: the half has no question, or an index cannot be built.
    """
    if not task.questions:
        raise EvalError(f"{task.name}: this half has no question; take the other half")
    gold = Gold(task.documents)
    outcomes: list[Outcome] = []
    qualities: dict[str, Any] = {}
    indexes: dict[str, Index] = {}
    for system in systems:
        tree = system.removeprefix("beam:") if system.removeprefix("beam:") in TREES else "ward"
        if tree not in indexes:
            try:
                indexes[tree] = build(task, tree, embedder, folder)
            except PrunusError as error:
                raise EvalError(f"{task.name}, {tree}: {error}") from error
            vectors = indexes[tree].embedder.embed([question.question for question in task.questions], "query")
            if not task.within:
                qualities[tree] = trees.quality(indexes[tree].store.view(), indexes[tree].store.edges(), vectors)
        for budget in budgets:
            outcomes.append(_outcome(task, indexes[tree], system, budget, gold))
        progress(f"{task.name}: {system}")
    return outcomes, qualities


def _outcome(task: Task, index: Index, system: str, budget: int, gold: Gold) -> Outcome:
    recall: Values = {}
    start = time.perf_counter()
    found = [(question, retrieve(index, system, question, budget, task.within)) for question in task.questions]
    milliseconds = 1000 * (time.perf_counter() - start) / len(found)
    for question, nodes in found:
        spans = [span for node in nodes for span in index.spans(node)]
        recall.setdefault(question.page, []).append(gold.recall(question, spans))
    return Outcome(system, budget, recall, milliseconds)


def summary(
    task: Task, half: Half, embedder: str, outcomes: Sequence[Outcome], qualities: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the numbers of the table, ready for JSON; a difference is the default system minus the other."""
    base = {outcome.budget: outcome.recall for outcome in outcomes if outcome.system == DEFAULT}
    systems: dict[str, dict[str, Any]] = {}
    for outcome in outcomes:
        cell: dict[str, Any] = {"recall": stats.mean(outcome.recall).numbers(), "ms": round(outcome.milliseconds, 1)}
        if outcome.system != DEFAULT and outcome.budget in base:
            cell["default_minus_this"] = stats.difference(base[outcome.budget], outcome.recall).numbers()
        systems.setdefault(outcome.system, {})[str(outcome.budget)] = cell
    about = {"task": task.name, "half": half, "embedder": embedder, "questions": len(task.questions)}
    pages = len({question.page for question in task.questions})
    return about | {"pages": pages, "systems": systems, "trees": dict(qualities)}


def table(result: Mapping[str, Any]) -> str:
    """Return a summary as a text table."""
    budgets = list(next(iter(result["systems"].values())))
    head = f"{result['task']}, {result['half']} half, {result['embedder']}"
    size = f"{stats.counted(result['questions'], 'question')}, {stats.counted(result['pages'], 'page')}"
    lines = [f"{head}: {size}; recall of the evidence [default minus this, 95 %; {stats.NONE_BELOW}]"]
    lines.append(f"{'':20}" + "".join(f"{budget + ' tokens':>26}" for budget in budgets) + f"{'ms':>8}")
    for system, cells in result["systems"].items():
        shown = [_cell(cells[budget]) for budget in budgets]
        lines.append(f"{system:20}" + "".join(f"{text:>26}" for text in shown) + f"{cells[budgets[-1]]['ms']:8.1f}")
    if result["trees"]:
        lines += ["", f"{'tree':20}{'routing':>9}{'scored':>9}{'coherence':>11}{'purity':>9}  nodes"]
    for name, tree in result["trees"].items():
        nodes = "-".join(str(count) for count in tree["nodes"])
        numbers = f"{tree['routing']:9.3f}{tree['scored']:9.3f}{tree['coherence']:11.3f}{tree['purity']:9.3f}"
        lines.append(f"{name:20}{numbers}  {nodes}")
    return "\n".join(lines)


def _cell(cell: Mapping[str, Any]) -> str:
    gap = cell.get("default_minus_this")
    paired = f" [{gap[1]:+.3f} {gap[2]:+.3f}]" if gap and gap[1] is not None else ""
    return f"{cell['recall'][0]:.3f}{paired}"
