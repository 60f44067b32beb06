"""Retrieve nodes from an index: the paper's collapsed tree and traversal (RAPTOR §3, Appendix F), and ``hybrid``.

The default, ``hybrid``, ranks leaves by dense and lexical scores and by the scores of their neighbours. It adds
summaries for broad questions only, up to a share of the budget, and returns nodes in the order of the documents. A
budget is never exceeded: the tokens of the joined text count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadBudget, BadInput
from ..core.ports import Embedder, Ints, TokenCounter, Vectors
from ..core.text.broad import is_broad
from .nodes import RUN, Candidates, Node, NodeSearch, NodeStore, Searching, View, version_of

Scorer = Literal["dense", "bm25", "hybrid"]

BETWEEN: Final = "\n\n"
"""Separates two nodes in the text of :class:`Retrieved`."""


Nodes = View | Candidates


@dataclass(frozen=True, slots=True)
class RetrievalWeights:
    """Weights of ``hybrid``.

    :param lexical: weight of BM25; the cosine counts 1. Both are standardised over the leaves (mean 0, deviation 1).
    :param neighbour: weight of the scores of the chunks before and after.
    :param fading: factor for each further step away from a chunk.
    :param reach: most chunks on each side that count. They are at most a sixteenth of the chunks of their document,
        and half of the chunks that the budget holds: long documents answer by long runs, where there is room.
    :param summaries: share of the budget that summaries may take for a broad question.
    :param narrow: the same share for any other question.
    :param candidates: in a large index, how many leaves are looked for by their cosine, and how many by BM25.
    """

    lexical: float = 0.5
    neighbour: float = 0.25
    fading: float = 0.9
    reach: int = 12
    summaries: float = 0.25
    narrow: float = 0.0
    candidates: int = 1000


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The result of a retrieval.

    :param nodes: the retrieved nodes, in the order of ``text``.
    :param scores: the scores of the nodes, in their order.
    :param text: the texts of the nodes, joined by empty lines.
    :param tokens: tokens of exactly ``text``.
    """

    query: str
    nodes: Sequence[Node]
    scores: Sequence[float]
    text: str
    tokens: int


class Retriever:
    """Retrieves nodes of one index; threads may share it.

    :param embedder: the embedder of the index's vectors; questions are embedded as queries.
    :param tokenizer: counts the tokens of the budget.
    :param exact: score all nodes of a large index, too.
    """

    def __init__(
        self,
        store: NodeStore,
        embedder: Embedder,
        tokenizer: TokenCounter,
        weights: RetrievalWeights | None = None,
        *,
        exact: bool = False,
    ) -> None:
        self.store, self.embedder, self.tokenizer = store, embedder, tokenizer
        self.weights, self.exact = weights or RetrievalWeights(), exact
        self._edges: tuple[int, dict[int, list[int]]] = (-1, {})
        self._only: tuple[str, ...] = ()

    def limited(self, documents: Sequence[str]) -> Retriever:
        """Return a retriever that retrieves from these documents only."""
        limited = Retriever(self.store, self.embedder, self.tokenizer, self.weights, exact=self.exact)
        limited._only, limited._edges = tuple(documents), self._edges
        return limited

    # --- the paper's ways --------------------------------------------------------------------

    def collapsed(
        self,
        query: str,
        budget: int = 2000,
        *,
        tree: bool = True,
        scorer: Scorer = "dense",
        documents: Sequence[str] = (),
        layers: Sequence[int] = (),
    ) -> Retrieved:
        """Return the best nodes of all layers, best first, up to the first that would exceed the budget.

        :param budget: tokens; the paper uses 2,000.
        :param tree: False retrieves leaves only (flat retrieval).
        :param scorer: ``dense`` as in the paper, ``bm25``, or ``hybrid``, which adds both.
        :param documents: ids of the documents to retrieve from; () is all.
        :param layers: layers to retrieve from; () is all.
        :raises BadInput: the question is empty, or a document is not in the index.
        :raises BadBudget: the budget is below 1.
        """
        self._check(query, budget)
        view = self.store.view()
        scores = self._scores(view, query, scorer)
        usable = np.isfinite(scores) & self._within(view, documents)
        usable &= view.layer == 0 if not tree else usable
        if layers:
            usable &= np.isin(view.layer, layers)
        chosen: list[int] = []
        total = 0
        for place in _best_first(scores, usable).tolist():
            if total + int(view.tokens[place]) > budget:
                break
            chosen.append(place)
            total += int(view.tokens[place])
        return self._result(query, view, chosen, scores, budget, by_document=False)

    def traversal(
        self, query: str, top: int = 5, depth: int = 0, *, budget: int = 0, routing: bool = False, start: int = -1
    ) -> Retrieved:
        """Choose the best roots, then the best of their children, and so on; return the chosen nodes of all layers.

        :param top: how many nodes are chosen on each layer.
        :param depth: how many layers are descended; 0 is all.
        :param budget: tokens; 0 is no limit, as in the paper. Within a budget, upper layers come first.
        :param routing: compare with the means of leaves instead of the embeddings of summaries.
        :param start: the layer to begin with; -1 begins with the roots.
        :raises BadInput: the question is empty, ``top`` is below 1, or ``depth`` is negative.
        """
        self._check(query, budget or 1)
        if top < 1 or depth < 0:
            raise BadInput(f"top {top}, depth {depth}: top must be at least 1, depth at least 0", subject="top")
        view, edges = self.store.view(), self.edges()
        query_vector = self.embedder.embed([query], "query")[0]
        scores = view.similarities(query_vector, routing)
        if not routing:  # a node without a summary is compared by its leaves
            scores = np.where(view.row >= 0, scores, view.similarities(query_vector, routing=True))
        below = {child for children in edges.values() for child in children}
        first = [id for id in view.ids.tolist() if id not in below]
        if start >= 0:
            first = view.ids[view.layer == start].tolist()
        known = {id: place for place, id in enumerate(view.ids.tolist())}
        inside = self._within(view, ())
        if self._only:  # descend through ancestors over other documents too; they are left out of the result
            open_ids = self._above(view, inside)
            known = {id: place for id, place in known.items() if id in open_ids}
            first = [id for id in first if id in known]
        pool, chosen, layer = [known[id] for id in first], list[int](), 0
        while pool and (not depth or layer < depth):
            best = sorted(set(pool), key=lambda place: (-scores[place], place))[:top]
            chosen += [place for place in best if place not in chosen]
            children = (child for place in best for child in edges.get(int(view.ids[place]), ()))
            pool = [known[child] for child in children if child in known]
            layer += 1
        chosen = [place for place in chosen if view.row[place] >= 0 and inside[place]]
        return self._result(query, view, chosen, scores, budget, by_document=False)

    # --- the default -------------------------------------------------------------------------

    def hybrid(
        self, query: str, budget: int = 2000, *, documents: Sequence[str] = (), broad: bool | None = None
    ) -> Retrieved:
        """Return the best leaves that fit the budget, in document order, after summaries for a broad question.

        :param budget: tokens of the text.
        :param documents: ids of the documents to retrieve from; () is all.
        :param broad: whether the question is broad; None decides by its words (:func:`.is_broad`).
        :raises BadInput: the question is empty, or a document is not in the index.
        :raises BadBudget: the budget is below 1.
        """
        self._check(query, budget)
        share = self.weights.summaries if (is_broad(query) if broad is None else broad) else self.weights.narrow
        vector = self.embedder.embed([query], "query")[0]
        nodes = self._searched(query, vector, budget, documents, share > 0)
        view: Nodes
        if nodes is None:
            view = whole = self.store.view()
            scores = self._scores(whole, query, "hybrid", self._reach(whole, budget), vector)
            usable = np.isfinite(scores) & self._within(whole, documents)
        else:
            view, scores = nodes, self._standardised(nodes)
            usable = np.ones(len(scores), bool)
        summaries = self._summaries(view, scores, usable & (view.layer > 0), int(share * budget))
        room = budget - sum(self._cost(view, place) for place in summaries)
        leaves = self._filled(view, _best_first(scores, usable & (view.layer == 0)), room)
        inside = {int(view.ids[place]) for place in leaves}
        redundant = [place for place in summaries if inside.issuperset(self.leaves_of(int(view.ids[place])))]
        if redundant:  # all their leaves are retrieved: their tokens are better spent on further leaves
            summaries = [place for place in summaries if place not in redundant]
            room = budget - sum(self._cost(view, place) for place in summaries)
            leaves = self._filled(view, _best_first(scores, usable & (view.layer == 0)), room)
        return self._result(query, view, [*summaries, *leaves], scores, budget, by_document=True)

    def _searched(
        self, query: str, vector: Vectors, budget: int, documents: Sequence[str], summaries: bool
    ) -> Candidates | None:
        """Return the candidates of a large index, None where all nodes are to be scored."""
        if self.exact or not isinstance(self.store, Searching):
            return None
        count = max(self.weights.candidates, budget // 10)
        only = tuple(documents or self._only)
        return self.store.candidates(NodeSearch(query, vector, count, budget, self.weights.reach, summaries, only))

    def _standardised(self, found: Candidates) -> NDArray[np.float64]:
        """Return the score of every candidate, as :meth:`_scores`; a leaf that was not found counts as average."""
        total = np.zeros(len(found.ids))
        leaf = found.layer == 0
        for part, spread in ((leaf, found.leaves), (~leaf, found.summaries)):
            total[part] = _scaled(found.cosine[part], spread.cosine)
            total[part] += self.weights.lexical * _scaled(found.bm25[part], spread.bm25)
        near = _near(total, found, self.weights.fading)
        return np.asarray(total + self.weights.neighbour * near)

    def leaves_of(self, node: int) -> list[int]:
        """Return the numbers of the leaves below a node, sorted; a citation of its summary cites them."""
        edges = self.edges()
        found: set[int] = set()
        todo, seen = [node], set()
        while todo:
            current = todo.pop()
            if current in seen:
                continue
            seen.add(current)
            if current in edges:
                todo += edges[current]
            else:
                found.add(current)
        return sorted(found)

    def support(self, node: int, sentence: str, count: int = 3) -> list[Node]:
        """Return the ``count`` leaves below a node that are most similar to a sentence of its summary, best first."""
        leaves = self.store.get(self.leaves_of(node))
        if not leaves:
            return []
        vectors = self.embedder.embed([leaf.text for leaf in leaves], "document")
        scores = vectors @ self.embedder.embed([sentence], "query")[0]
        return [leaves[place] for place in np.argsort(-scores, kind="stable")[:count].tolist()]

    def edges(self) -> dict[int, list[int]]:
        """Return the children of every parent; cached for each state of the index."""
        version = version_of(self.store)
        if self._edges[0] != version:
            self._edges = (version, self.store.edges())
        return self._edges[1]

    # --- inside ------------------------------------------------------------------------------

    def _check(self, query: str, budget: int) -> None:
        if not query.strip():
            raise BadInput("the question is empty", subject="query")
        if budget < 1:
            raise BadBudget(f"a budget of {budget} tokens holds nothing; give 1 or more", subject="budget")

    def _reach(self, view: View, budget: int) -> int:
        """Return how many chunks on each side of one count at a budget, before the length of its document is seen."""
        leaf = view.layer == 0
        size = float(view.tokens[leaf].mean()) if leaf.any() else 1.0
        return max(1, min(self.weights.reach, int(budget / max(size, 1.0) / 2)))

    def _scores(
        self, view: View, query: str, scorer: Scorer, reach: int = 1, vector: Vectors | None = None
    ) -> NDArray[np.float64]:
        """Return the score of every node, float64 [n]; -inf for a parent without a summary.

        :param reach: chunks on each side of a leaf whose scores count for ``hybrid``.
        :param vector: the embedding of the question, where it is known.
        """
        count = len(view.ids)
        missing = view.row < 0
        dense = lexical = np.zeros(count)
        if scorer != "bm25" and count:
            dense = view.similarities(self.embedder.embed([query], "query")[0] if vector is None else vector)
        if scorer != "dense" and count:
            lexical = self._lexical(view, query)
        if scorer == "hybrid":
            leaf = view.layer == 0
            total = np.zeros(count)
            for part in (leaf, ~leaf & ~missing):
                total[part] = _standard(dense[part]) + self.weights.lexical * _standard(lexical[part])
            near = _neighbours(total, np.where(leaf, view.document, -1), reach, self.weights.fading)
            scores = total + self.weights.neighbour * near
        else:
            scores = dense + lexical
        return np.where(missing, -np.inf, scores)

    def _lexical(self, view: View, query: str) -> NDArray[np.float64]:
        scores = np.zeros(len(view.ids))
        order = np.argsort(view.ids)
        for layer in ("leaves", "summaries"):
            bm25 = self.store.lexical(query, layer)
            nodes = np.fromiter(bm25, np.int64, len(bm25))
            values = np.fromiter(bm25.values(), np.float64, len(bm25))
            positions = np.minimum(np.searchsorted(view.ids, nodes, sorter=order), len(order) - 1)
            known = view.ids[order[positions]] == nodes  # a node may have been added after the view was read
            scores[order[positions][known]] = values[known]
        return scores

    def _within(self, view: View, documents: Sequence[str]) -> NDArray[np.bool_]:
        """Return which nodes belong to one of the documents, bool [n].

        :raises BadInput: a document is not in the index.
        """
        documents = documents or self._only
        if not documents:
            return np.ones(len(view.ids), bool)
        known = {name: number for number, name in enumerate(view.names)}
        for name in documents:
            if name not in known:
                raise BadInput(f"{self.store.location}: there is no document {name!r}", subject=name)
        return np.isin(view.document, [known[name] for name in documents])

    def _above(self, view: View, inside: NDArray[np.bool_]) -> set[int]:
        """Return the numbers of the nodes in ``inside`` and of all their ancestors."""
        parents: dict[int, list[int]] = {}
        for parent, children in self.edges().items():
            for child in children:
                parents.setdefault(child, []).append(parent)
        found: set[int] = set()
        todo = view.ids[inside].tolist()
        while todo:
            current = todo.pop()
            if current not in found:
                found.add(current)
                todo += parents.get(current, ())
        return found

    def _cost(self, view: Nodes, place: int) -> int:
        return int(view.tokens[place]) + 2  # for the empty line between two nodes

    def _filled(self, view: Nodes, places: Ints, room: int) -> list[int]:
        """Return the nodes that fit the room, best first; a node that does not fit is skipped."""
        chosen: list[int] = []
        costs = view.tokens[places] + 2
        while len(places):
            total = np.cumsum(costs)
            fit = int(np.searchsorted(total, room, side="right"))
            chosen += places[:fit].tolist()
            room -= int(total[fit - 1]) if fit else 0
            smaller = np.flatnonzero(costs[fit + 1 :] <= room) + fit + 1  # the node at ``fit`` is skipped
            places, costs = places[smaller], costs[smaller]
        return chosen

    def _summaries(self, view: Nodes, scores: NDArray[np.float64], usable: NDArray[np.bool_], room: int) -> list[int]:
        """Choose the best summaries that fit the room; none is an ancestor of another."""
        chosen: list[int] = []
        covered: list[set[int]] = []
        for place in _best_first(scores, usable).tolist() if room > 0 else ():
            cost = self._cost(view, place)
            if cost > room:
                continue
            leaves = set(self.leaves_of(int(view.ids[place])))
            if any(leaves <= known or known <= leaves for known in covered):
                continue
            chosen.append(place)
            covered.append(leaves)
            room -= cost
        return chosen

    def _result(
        self,
        query: str,
        view: Nodes,
        chosen: list[int],
        scores: NDArray[np.float64],
        budget: int,
        *,
        by_document: bool,
    ) -> Retrieved:
        """Return the chosen nodes as a result; the worst are dropped while the joined text is over the budget.

        :param by_document: order summaries first, then leaves by document and place (the order of the view).
        """
        ids = view.ids[chosen].tolist()
        nodes = {node.id: node for node in self.store.get(ids)}
        kept = [place for place, id in zip(chosen, ids, strict=True) if id in nodes]

        def text_of(places: list[int]) -> str:
            ordered = sorted(places, key=lambda place: (view.layer[place] == 0, place)) if by_document else places
            return BETWEEN.join(nodes[int(view.ids[place])].text for place in ordered)

        tokens = self._count(text_of(kept))
        while kept and budget and tokens > budget:  # the worst is last
            kept = kept[:-1]
            tokens = self._count(text_of(kept))
        if by_document:
            kept.sort(key=lambda place: (view.layer[place] == 0, place))
        found = [nodes[int(view.ids[place])] for place in kept]
        return Retrieved(query, found, [float(scores[place]) for place in kept], text_of(kept), tokens)

    def _count(self, text: str) -> int:
        return int(self.tokenizer.count([text])[0]) if text else 0


def _best_first(scores: NDArray[np.float64], usable: NDArray[np.bool_]) -> Ints:
    places = np.flatnonzero(usable)
    return np.asarray(places[np.argsort(-scores[places], kind="stable")], np.int64)


def _standard(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standardise values to mean 0 and deviation 1; equal values become 0."""
    if not len(values):
        return values
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 1e-12 else np.zeros(len(values))


def _neighbours(
    values: NDArray[np.float64], document: NDArray[np.int64], reach: int = 1, fading: float = 1.0
) -> NDArray[np.float64]:
    """Return the sum of the values before and after each item of the same document; 0 where ``document`` is -1.

    :param reach: items on each side that count, each step by ``fading`` less; in a document of few items, fewer do.
    """
    found = np.zeros(len(values))
    inside = document >= 0
    sizes = np.bincount(document[inside]) if inside.any() else np.zeros(1, np.int64)
    allowed = np.where(inside, np.maximum(1, sizes[document] // RUN), 0)
    for step in range(1, min(reach, len(values) - 1, int(allowed.max(initial=0))) + 1):
        same = (document[step:] == document[:-step]) & (allowed[step:] >= step)
        found[step:] += fading ** (step - 1) * np.where(same, values[:-step], 0.0)
        found[:-step] += fading ** (step - 1) * np.where(same, values[step:], 0.0)
    return found


def _scaled(values: NDArray[np.float64], spread: tuple[float, float]) -> NDArray[np.float64]:
    """Standardise values by the mean and the deviation of more values, as :func:`_standard`."""
    mean, deviation = spread
    return (values - mean) / deviation if deviation > 1e-12 else np.zeros(len(values))


def _near(values: NDArray[np.float64], found: Candidates, fading: float) -> NDArray[np.float64]:
    """Return what :func:`_neighbours` does, where some leaves of a document are missing; they add 0."""
    near = np.zeros(len(values))
    allowed = np.where(found.siblings > 0, np.minimum(np.maximum(1, found.siblings // RUN), found.reach), 0)
    most = min(len(values) - 1, int(allowed.max(initial=0)))
    for gap in range(1, most + 1):  # items that stand `gap` apart have places at least as far apart
        step = found.position[gap:] - found.position[:-gap]
        same = (found.document[gap:] == found.document[:-gap]) & (step > 0) & (allowed[gap:] >= step)
        share = np.where(same, fading ** np.where(same, step - 1, 0), 0.0)
        near[gap:] += share * values[:-gap]
        near[:-gap] += share * values[gap:]
    return near
