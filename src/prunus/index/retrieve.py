"""Asks an index: the paper's collapsed tree and traversal (RAPTOR §3, Appendix F), and the default.

The default, ``hybrid``: dense and lexical scores of the leaves with those of their neighbours; summaries
only for broad questions and up to a share; in the order of the documents. No budget is ever exceeded:
tokens are those of exactly the text that comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadBudget, BadInput
from ..core.ports import Embedder, Ints, TokenCounter, Vectors
from .approximate import Approximate
from .broad import is_broad
from .nodes import Node, NodeStore, View

Scorer = Literal["dense", "bm25", "hybrid"]

BETWEEN: Final = "\n\n"
"""What stands between two nodes in the text that comes out."""


@dataclass(frozen=True, slots=True)
class RetrievalWeights:
    """Weights of the default retrieval.

    :param lexical: of BM25 against cosine, both at mean 0 and deviation 1 over the leaves.
    :param neighbour: of the scores of the chunks before and after.
    :param summaries: share of the budget that summaries may take for a broad question.
    :param narrow: the same for any other question.
    """

    lexical: float = 0.5
    neighbour: float = 0.25
    summaries: float = 0.25
    narrow: float = 0.0


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was retrieved.

    :param nodes: in the order of the text.
    :param scores: of the nodes.
    :param text: their texts, an empty line between two.
    :param tokens: tokens of exactly ``text``.
    """

    query: str
    nodes: Sequence[Node]
    scores: Sequence[float]
    text: str
    tokens: int


class Retriever:
    """Retrieves nodes of one index; threads may share it.

    :param embedder: the one whose vectors the index keeps; questions are embedded as queries.
    :param tokenizer: counts the budget.
    :param near: makes an approximate index of a view, such as :class:`prunus.index.approximate.Approximate`;
        it serves the dense scores of ``collapsed`` and ``hybrid``, and is made anew when the index has changed.
        None searches exactly.
    """

    def __init__(
        self,
        store: NodeStore,
        embedder: Embedder,
        tokenizer: TokenCounter,
        weights: RetrievalWeights | None = None,
        *,
        near: Callable[[View], Approximate] | None = None,
    ) -> None:
        self.store, self.embedder, self.tokenizer = store, embedder, tokenizer
        self.weights = weights or RetrievalWeights()
        self._edges: tuple[int, dict[int, list[int]]] = (-1, {})
        self._near, self._made = near, cast("Approximate | None", None)
        self._only: tuple[str, ...] = ()

    def limited(self, documents: Sequence[str]) -> Retriever:
        """Return a retriever that sees these documents alone, whichever way it is asked."""
        found = Retriever(self.store, self.embedder, self.tokenizer, self.weights, near=self._near)
        found._only, found._edges, found._made = tuple(documents), self._edges, self._made
        return found

    # --- as published ------------------------------------------------------------------------

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
        """Take the best nodes of all layers, best first, up to the first that would go over the budget.

        :param budget: tokens; the paper's is 2,000.
        :param tree: False looks at leaves alone: flat retrieval.
        :param scorer: ``dense`` is the paper's; ``bm25``; ``hybrid`` adds both.
        :param documents: only these; all without.
        :param layers: only these; all without.
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
        return self._written(query, view, chosen, scores, budget, by_document=False)

    def traversal(
        self, query: str, top: int = 5, depth: int = 0, *, budget: int = 0, routing: bool = False, start: int = -1
    ) -> Retrieved:
        """Choose the best roots, then the best of their children, and so on; what was chosen on any layer comes out.

        :param top: nodes that are chosen on each layer.
        :param depth: layers that are gone through; 0 is all.
        :param budget: tokens; 0 is no limit, as published. Within one, upper layers come first.
        :param routing: compare with the means of leaves instead of the summaries' embeddings.
        :param start: layer whose nodes are looked at first; -1 are the roots.
        """
        self._check(query, budget or 1)
        if top < 1 or depth < 0:
            raise BadInput(f"top {top}, depth {depth}: the one must be positive, the other not negative", subject="top")
        view, edges = self.store.view(), self.edges()
        asked = self.embedder.embed([query], "query")[0]
        scores = view.similarities(asked, routing)
        if not routing:  # a node without a summary is known by its leaves
            scores = np.where(view.row >= 0, scores, view.similarities(asked, routing=True))
        below = {child for children in edges.values() for child in children}
        first = [id for id in view.ids.tolist() if id not in below]
        if start >= 0:
            first = view.ids[view.layer == start].tolist()
        known = {id: place for place, id in enumerate(view.ids.tolist())}
        inside = self._within(view, ())
        if self._only:  # the way down leads through nodes above other documents, too; they do not come out
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
        return self._written(query, view, chosen, scores, budget, by_document=False)

    # --- the default -------------------------------------------------------------------------

    def hybrid(
        self, query: str, budget: int = 2000, *, documents: Sequence[str] = (), broad: bool | None = None
    ) -> Retrieved:
        """Fill the budget with the best leaves in the order of their documents, and summaries before them.

        :param budget: tokens.
        :param documents: only these; all without.
        :param broad: whether summaries may take their share; None decides by the question's words.
        """
        self._check(query, budget)
        view = self.store.view()
        scores = self._scores(view, query, "hybrid")
        usable = np.isfinite(scores) & self._within(view, documents)
        share = self.weights.summaries if (is_broad(query) if broad is None else broad) else self.weights.narrow
        said = self._summaries(view, scores, usable & (view.layer > 0), int(share * budget))
        room = budget - sum(self._cost(view, place) for place in said)
        leaves = self._filled(view, _best_first(scores, usable & (view.layer == 0)), room)
        inside = {int(view.ids[place]) for place in leaves}
        doubled = [place for place in said if inside.issuperset(self.leaves_of(int(view.ids[place])))]
        if doubled:  # all that they sum up is there in full: their room goes to leaves
            said = [place for place in said if place not in doubled]
            room = budget - sum(self._cost(view, place) for place in said)
            leaves = self._filled(view, _best_first(scores, usable & (view.layer == 0)), room)
        return self._written(query, view, [*said, *leaves], scores, budget, by_document=True)

    def leaves_of(self, node: int) -> list[int]:
        """Return the leaves below a node, in order: what a citation of its summary goes back to."""
        edges = self.edges()
        found: set[int] = set()
        todo, seen = [node], set()
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in edges:
                todo += edges[one]
            else:
                found.add(one)
        return sorted(found)

    def support(self, node: int, sentence: str, count: int = 3) -> list[Node]:
        """Return the leaves below a node that bear most on a sentence of its summary, best first."""
        leaves = self.store.get(self.leaves_of(node))
        if not leaves:
            return []
        vectors = self.embedder.embed([leaf.text for leaf in leaves], "document")
        scores = vectors @ self.embedder.embed([sentence], "query")[0]
        return [leaves[place] for place in np.argsort(-scores, kind="stable")[:count].tolist()]

    def edges(self) -> dict[int, list[int]]:
        """Return the children of every parent, read once for each state of the index."""
        version = self.store.view().version
        if self._edges[0] != version:
            self._edges = (version, self.store.edges())
        return self._edges[1]

    # --- inside ------------------------------------------------------------------------------

    def _check(self, query: str, budget: int) -> None:
        if not query.strip():
            raise BadInput("the question is empty", subject="query")
        if budget < 1:
            raise BadBudget(f"a budget of {budget} tokens holds nothing; give 1 or more", subject="budget")

    def _scores(self, view: View, query: str, scorer: Scorer) -> NDArray[np.float64]:
        """Score every node; -inf for one without a text."""
        count = len(view.ids)
        missing = view.row < 0
        dense = lexical = np.zeros(count)
        if scorer != "bm25" and count:
            dense = self._similarities(view, self.embedder.embed([query], "query")[0])
        if scorer != "dense" and count:
            lexical = self._lexical(view, query)
        if scorer == "hybrid":
            leaf = view.layer == 0
            total = np.zeros(count)
            for part in (leaf, ~leaf & ~missing):
                total[part] = _standard(dense[part]) + self.weights.lexical * _standard(lexical[part])
            near = self.weights.neighbour * _neighbours(total, np.where(leaf, view.document, -1))
            scores = total + near
        else:
            scores = dense + lexical
        return np.where(missing, -np.inf, scores)

    def _similarities(self, view: View, vector: Vectors) -> NDArray[np.float64]:
        """Return the cosine of every node and a vector, by the approximate index where there is one."""
        if self._near is None:
            return view.similarities(vector)
        made = self._made  # another thread may put a newer one in its place
        if made is None or made.version != view.version:
            made = self._made = self._near(view)
        return made.similarities(vector)

    def _lexical(self, view: View, query: str) -> NDArray[np.float64]:
        scores = np.zeros(len(view.ids))
        order = np.argsort(view.ids)
        for layer in ("leaves", "summaries"):
            found = self.store.lexical(query, layer)
            nodes = np.fromiter(found, np.int64, len(found))
            values = np.fromiter(found.values(), np.float64, len(found))
            at = np.minimum(np.searchsorted(view.ids, nodes, sorter=order), len(order) - 1)
            there = view.ids[order[at]] == nodes  # one may have come since the view was read
            scores[order[at][there]] = values[there]
        return scores

    def _within(self, view: View, documents: Sequence[str]) -> NDArray[np.bool_]:
        """Tell which nodes are of the wanted documents alone.

        :raises BadInput: one is not in the index.
        """
        documents = documents or self._only
        if not documents:
            return np.ones(len(view.ids), bool)
        known = {name: number for number, name in enumerate(view.names)}
        for name in documents:
            if name not in known:
                raise BadInput(f"{self.store.place}: there is no document {name!r}", subject=name)
        return np.isin(view.document, [known[name] for name in documents])

    def _above(self, view: View, inside: NDArray[np.bool_]) -> set[int]:
        """Return the numbers of some nodes, and of all nodes above them."""
        parents: dict[int, list[int]] = {}
        for parent, children in self.edges().items():
            for child in children:
                parents.setdefault(child, []).append(parent)
        found: set[int] = set()
        todo = view.ids[inside].tolist()
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                todo += parents.get(one, ())
        return found

    def _cost(self, view: View, place: int) -> int:
        return int(view.tokens[place]) + 2  # the empty line between two

    def _filled(self, view: View, places: Ints, room: int) -> list[int]:
        """Take nodes best first; one that does not fit is passed over."""
        chosen: list[int] = []
        costs = view.tokens[places] + 2
        while len(places):
            total = np.cumsum(costs)
            fit = int(np.searchsorted(total, room, side="right"))
            chosen += places[:fit].tolist()
            room -= int(total[fit - 1]) if fit else 0
            smaller = np.flatnonzero(costs[fit + 1 :] <= room) + fit + 1  # what stands at ``fit`` is passed over
            places, costs = places[smaller], costs[smaller]
        return chosen

    def _summaries(self, view: View, scores: NDArray[np.float64], usable: NDArray[np.bool_], room: int) -> list[int]:
        """Choose summaries, none of which stands above another."""
        chosen: list[int] = []
        covered: list[set[int]] = []
        for place in _best_first(scores, usable).tolist() if room > 0 else ():
            cost = self._cost(view, place)
            if cost > room:
                continue
            leaves = set(self.leaves_of(int(view.ids[place])))
            if any(leaves <= other or other <= leaves for other in covered):
                continue
            chosen.append(place)
            covered.append(leaves)
            room -= cost
        return chosen

    def _written(
        self,
        query: str,
        view: View,
        chosen: list[int],
        scores: NDArray[np.float64],
        budget: int,
        *,
        by_document: bool,
    ) -> Retrieved:
        """Write nodes down within the budget; the order of the view is that of the documents."""
        ids = view.ids[chosen].tolist()
        nodes = {node.id: node for node in self.store.get(ids)}
        kept = [place for place, id in zip(chosen, ids, strict=True) if id in nodes]

        def text_of(places: list[int]) -> str:
            ordered = sorted(places, key=lambda place: (view.layer[place] == 0, place)) if by_document else places
            return BETWEEN.join(nodes[int(view.ids[place])].text for place in ordered)

        tokens = self._count(text_of(kept))
        while kept and budget and tokens > budget:  # the worst went in last
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
    """Return values at mean 0 and deviation 1; zeros where all are the same."""
    if not len(values):
        return values
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 1e-12 else np.zeros(len(values))


def _neighbours(values: NDArray[np.float64], document: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of the values before and after, within a document; nothing where ``document`` is -1."""
    found = np.zeros(len(values))
    same = (document[1:] == document[:-1]) & (document[1:] >= 0)
    found[1:] += np.where(same, values[:-1], 0.0)
    found[:-1] += np.where(same, values[1:], 0.0)
    return found
