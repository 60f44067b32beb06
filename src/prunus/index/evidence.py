"""Turn retrieved nodes into evidence: leaves become blocks of their pages, summaries become a document.

A leaf is a slice of its page's canonical text. The index stores the page, so the slice is shown as a part of the page:
rows of a table with their header, items of a list. A sentence of a summary is traced to the leaves below it, because
only pages are cited.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ..answer.cite import cite
from ..core.errors import BadInput, BadPage, NothingFound, errors_of_page
from ..core.text.broad import is_broad
from ..core.text.likeness import Likeness
from ..core.text.words import count_words, normalise, sentence_spans
from ..core.types import Citation, Span
from ..evidence.blocks import Block, Blocks, Units, cut
from ..evidence.documents import Documents
from ..pages.clean.walk import clean_tree
from ..pages.table_headers import group_titles, header_rows, header_rows_of
from ..pages.tree import Tree
from ..pages.write.selection import AFTER, BEFORE
from .nodes import IndexedDocument, Node, NodeStore, version_of
from .retrieve import Retrieved, Retriever
from .verify import is_unsupported

if TYPE_CHECKING:
    from .retrieve import Retrieved, Retriever
    from .terms import Retrieval


_LARGEST: Final = 1 << 28
"""Most bytes of an unpacked page; an index may come from a stranger."""

_KEPT: Final = 32
"""Cleaned pages of an index that are cached between questions."""

_AROUND: Final = 1_000  # code points beside a slice that tell whether a sentence goes on there
_SUPPORTS: Final = 3
"""Most leaves that are cited for a sentence of a summary."""


def packed(markup: str | bytes, charset: str = "") -> bytes:
    """Return a page compressed, as the index stores it."""
    data = markup.encode("utf-8", "surrogatepass") if isinstance(markup, str) else markup
    head = "text" if isinstance(markup, str) else f"bytes {charset}"
    return zlib.compress(head.encode("ascii", "replace") + b"\n" + data, 6)


def is_whole(source: object) -> bool:
    """Tell whether a stored page is there and undamaged, by the checksum of its compression."""
    unpacking = zlib.decompressobj()
    try:
        return isinstance(source, bytes) and bool(unpacking.decompress(source, _LARGEST)) and unpacking.eof
    except zlib.error:
        return False


def page_tree(document: IndexedDocument) -> Tree | None:
    """Return a document's stored page, cleaned; None where the index stores none, or it cannot be cleaned."""
    markup, charset = unpacked(document.source) if document.source else ("", "")
    if markup:
        with suppress(BadPage), errors_of_page(document.id):
            return clean_tree(markup, charset=charset, name=document.id)
    return None


def unpacked(source: bytes) -> tuple[str | bytes, str]:
    """Return a stored page and its charset; a damaged page is '', and a page over the limit is cut there."""
    try:
        head, _, data = zlib.decompressobj().decompress(source, _LARGEST).partition(b"\n")
    except zlib.error:
        return "", ""
    kind, _, charset = head.decode("ascii", "replace").partition(" ")
    return (data.decode("utf-8", "surrogatepass"), "") if kind == "text" else (data, charset)


_OLDER: Final = "indexed by another version of Prunus, which read its text differently: prunus index rebuild INDEX"


def tree_of(document: IndexedDocument) -> Tree:
    """Return a document's page, cleaned.

    The tree is the document's plain text where the index stores no page, or where this version cannot clean the page or
    cleans it to another text than the one that the leaves' spans refer to.
    """
    tree = page_tree(document)
    if tree is None or tree.canonical != document.text:
        older = tree is not None
        tree = Tree(["html", "pre", ""], [-1, 0, 1], [3, 3, 3], ["", "", document.text], [None, None, None])
        tree._xpaths = ["", "", ""]
        tree.lang = document.language
        tree.warnings = (_OLDER,) if older else ()
    tree.document, tree.snapshot = document.id, document.digest
    tree.url, tree.title = document.url or document.id, document.title
    tree.published = document.metadata.get("published", "")
    tree.read_at = document.metadata.get("read_at", "")
    return tree


class Pages:
    """The pages of one index, cleaned on demand and cached; threads may share it."""

    def __init__(self, store: NodeStore) -> None:
        self._store = store
        self._kept: dict[tuple[str, int], Tree] = {}
        self._told = False

    def tree(self, id: str) -> Tree:
        """Return a document's page, cleaned.

        :raises BadInput: the document is not in the index.
        """
        key = (id, version_of(self._store))
        tree = self._kept.get(key)
        if tree is None:
            tree = tree_of(self._store.document(id))
            if self._told:  # once for an index
                tree.warnings = ()
            self._told = self._told or bool(tree.warnings)
            while len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[key] = tree
        return tree


@dataclass(frozen=True, slots=True)
class IndexFindings:
    """The nodes that one index found for a question.

    :param retriever: the retriever that found them; it knows the leaves below a summary.
    :param pages: the pages of the index.
    :param capped: whether retrieval limited summaries to a share of the budget; then every summary that was retrieved
        ranks above the leaves.
    """

    retrieved: Retrieved
    retriever: Retriever
    pages: Pages
    capped: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """A block with its score; ``node`` is its node in the index, None for the header of a table."""

    block: Block
    score: float
    node: Node | None


class Summaries:
    """The summaries that an index found, as one document; maps their sentences to the leaves below them."""

    def __init__(self, tree: Tree, found: IndexFindings, nodes: Sequence[Node]) -> None:
        self._tree, self._found, self._nodes = tree, found, nodes

    def _node_at(self, span: Span) -> tuple[Node, str]:
        """Return the node of the summary that holds a span, and the text of the span."""
        node = self._nodes[self._tree.parent[self._tree.node_at(span.start)] // 2]
        return node, self._tree.canonical[span.start : span.end]

    def cite(self, number: int, span: Span) -> list[Citation]:
        """Return citations of the pages below a span, the nearest first, each checked word for word."""
        return supports(self._found, *self._node_at(span), number)

    def unsupported(self, span: Span) -> list[str]:
        """Return the text of the span where ``prunus index verify`` judged it unsupported; else nothing."""
        node, sentence = self._node_at(span)
        return [sentence] if is_unsupported(self._found.retriever.store, node, sentence) else []

    def page(self, document: str) -> Tree | None:
        """Return a page that was cited; None where it is no page of this index."""
        with suppress(BadInput):
            return self._found.pages.tree(document)
        return None


class IndexEvidence(Documents):
    """The caller's pages together with the findings of indexes, for one question and one budget.

    :param pages: the caller's pages, cut into blocks like any documents.
    :param found: the findings of each index; every leaf is a block, and the pages of leaves have no other blocks.
    :param failures: why a document could not be read, by name.
    """

    __slots__ = ("_found", "_pages", "_parts", "_summaries")
    second_stage = False
    one_prompt = False
    least_share = 0.0
    tree = None

    def __init__(
        self, pages: Sequence[Tree], found: Sequence[IndexFindings], failures: dict[str, str] | None = None
    ) -> None:
        super().__init__(pages, failures)
        self._pages = len(self.trees)
        self._found = list(found)
        self._parts: list[_Part] = []
        self._summaries: dict[str, Summaries] = {}
        known = {tree.snapshot for tree in pages if tree.snapshot}
        for findings in found:
            self._add(findings, known)

    @property
    def own_scorer(self) -> IndexEvidence | None:
        """This object, where one index is the only source: its retrieval scores are used.

        None for several sources: scores of different retrievals are not comparable, so one scorer scores all blocks.
        """
        return self if not self._pages and len(self._found) == 1 else None

    @property
    def overview(self) -> frozenset[str]:
        """The documents of the indexes, where the question is about a whole document or collection; else none."""
        if not any(findings.capped and is_broad(findings.retrieved.query) for findings in self._found):
            return frozenset()
        return frozenset(tree.document for tree in self.trees[self._pages :])

    def first(self, count: int) -> IndexEvidence:
        """Return ``count`` documents, in turns the next of the caller's pages and the best of the found documents."""
        best: dict[int, float] = {}
        for part in self._parts:
            best[part.block.document] = max(part.score, best.get(part.block.document, part.score))
        ranked = sorted(best, key=lambda place: -best[place])
        left_pages, left_found = [*range(self._pages)], [*ranked]
        taken: set[int] = set()
        while len(taken) < count and (left_pages or left_found):
            source = left_pages if left_pages and (len(taken) % 2 == 0 or not left_found) else left_found
            taken.add(source.pop(0))
        subset = IndexEvidence([], [], self.failures)
        subset._pages = sum(place < self._pages for place in taken)
        subset._found, subset._summaries = self._found, self._summaries
        places = {old: new for new, old in enumerate(sorted(taken))}
        subset.trees = [self.trees[old] for old in places]
        first = {old: new for new, old in enumerate(n for n, p in enumerate(self._parts) if p.block.document in places)}
        for number in first:
            part = self._parts[number]
            needed = tuple(first[old_number] for old_number in part.block.requires)
            block = replace(part.block, document=places[part.block.document], requires=needed)
            subset._parts.append(replace(part, block=block))
        return subset

    @property
    def words(self) -> int:
        """Visible words of the caller's pages and of the found blocks."""
        return sum(tree.words[-1] for tree in self.trees[: self._pages]) + sum(p.block.words for p in self._parts)

    def blocks(self, max_words: int, units: Units = "blocks") -> Blocks:
        """Return the blocks: the caller's pages cut at a granularity, and each leaf as one block."""
        key = (max_words, units)
        made = self._cuts.get(key)
        if made is None:
            given_blocks = cut(self.trees[: self._pages], max_words, units).blocks if self._pages else []
            first = len(given_blocks)
            moved = [
                replace(part.block, requires=tuple(first + old_number for old_number in part.block.requires))
                for part in self._parts
            ]
            made = self._cuts[key] = Blocks(self.trees, [*given_blocks, *moved], max_words)
        return made

    def score(self, query: str, blocks: Blocks) -> NDArray[np.float64]:
        """Return the retrieval scores of the blocks, float64 [blocks]; with this method the object is a scorer."""
        least = min((part.score for part in self._parts), default=0.0) - 1.0
        scores = np.full(len(blocks), least)
        for place, block in enumerate(blocks.blocks):
            for part in self._parts:
                retrieved = part.block
                inside = part.node and retrieved.lo <= block.lo and block.hi <= retrieved.hi
                if inside and retrieved.document == block.document:
                    scores[place] = max(scores[place], part.score)
        return scores

    # --- summaries ---------------------------------------------------------------------------

    def origin(self, document: str) -> Summaries | None:
        """Return the object that maps a document of summaries to its pages; None for a page."""
        return self._summaries.get(document)

    def _add(self, found: IndexFindings, known: set[str]) -> None:
        """Add the findings of one index, without the pages in ``known`` (snapshots of the caller's pages)."""
        scored = list(zip(found.retrieved.nodes, found.retrieved.scores, strict=True))
        top = max(found.retrieved.scores, default=0.0) + 1.0 - min(found.retrieved.scores, default=0.0)
        if found.capped:  # retrieval has limited the summaries already: rank each above all leaves
            scored = [(node, score + top * bool(node.layer)) for node, score in scored]
        summaries = [(node, score) for node, score in scored if node.layer and node.text.strip()]
        if summaries:
            self._add_summaries(found, summaries)
        by_document: dict[str, list[tuple[Node, float]]] = {}
        for node, score in scored:
            if not node.layer and node.end > node.start:
                by_document.setdefault(node.document, []).append((node, score))
        for id, leaves in by_document.items():
            tree = found.pages.tree(id)
            if tree.snapshot and tree.snapshot in known:
                continue
            if any(existing.document == tree.document for existing in self.trees):  # the same document of another index
                tree = _renamed(tree, f"{id}#{len(self.trees)}")
            self._add_leaves(tree, leaves)

    def _add_summaries(self, found: IndexFindings, summaries: Sequence[tuple[Node, float]]) -> None:
        size, number = 2 * len(summaries) + 1, len(self.trees)
        parents = [-1, *(parent for place in range(len(summaries)) for parent in (0, 2 * place + 1))]
        ends = [size, *(2 * place + 3 for place in range(len(summaries)) for _ in (0, 1))]
        texts = ["", *(text for node, _ in summaries for text in ("", node.text))]
        tree = Tree(["html", *["p", ""] * len(summaries)], parents, ends, texts, [None] * size)
        place = found.retriever.store.location
        named = repr(
            (place, [(node.id, node.text) for node, _ in summaries])
        )  # the same id in every turn of a conversation
        tree.document = f"summaries#{hashlib.sha256(named.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        tree.title = f"Summaries of {PurePath(place).name}"
        tree._xpaths = [""] * size
        self.trees.append(tree)
        self._summaries[tree.document] = Summaries(tree, found, [node for node, _ in summaries])
        for turn, (node, score) in enumerate(summaries):
            lo = 2 * turn + 1
            self._parts.append(_Part(Block(number, lo, lo, lo + 2, count_words(node.text)), score, node))

    def _add_leaves(self, tree: Tree, leaves: Sequence[tuple[Node, float]]) -> None:
        """Add the leaves of one page in the order of its text, each requiring the rows that label it in its table."""
        number, first = len(self.trees), len(self._parts)
        self.trees.append(tree)
        made = [(block_of(tree, number, node.start, node.end), node, score) for node, score in leaves]
        labels = {block.lo: _rows_that_label(tree, block.lo) for block, _, _ in made}
        least = min((score for _, _, score in made), default=0.0) - 1.0
        rows = sorted({row for above in labels.values() for row in above})
        parts = [_Part(Block(number, row, row, tree.end[row], tree.word_count(row)), least, None) for row in rows]
        parts += [_Part(block, score, node) for block, node, score in made]
        parts.sort(key=lambda part: (part.block.lo, part.block.first, part.block.hi))
        place_of = {part.block.lo: first + place for place, part in enumerate(parts) if part.node is None}
        for part in parts:
            above = labels[part.block.lo] if part.node else ()
            needed = tuple(place_of[row] for row in above if not part.block.lo <= row < part.block.hi)
            self._parts.append(replace(part, block=replace(part.block, requires=needed)) if needed else part)


def _renamed(tree: Tree, document: str) -> Tree:
    """Return a copy of a page under another document id."""
    twin = Tree(tree.tag, tree.parent, tree.end, tree.text, tree.attrs)
    twin.document, twin.snapshot, twin.url, twin.title = document, tree.snapshot, tree.url, tree.title
    twin.lang, twin.published, twin.read_at = tree.lang, tree.published, tree.read_at
    twin._markup, twin._xpaths = tree._markup, tree._xpaths
    return twin


def _rows_that_label(tree: Tree, node: int) -> tuple[int, ...]:
    """Return the header rows of the innermost table around a node, and the titles of the node's group of rows."""
    table, row = tree.parent[node], node
    while table >= 0 and tree.tag[table] != "table":
        table, row = tree.parent[table], row if tree.tag[row] == "tr" else table
    if table < 0:
        return ()
    headers = header_rows_of(tree, table).get(row) or tuple(sorted(header_rows(tree, table)))
    return (*headers, *group_titles(tree, table).get(row, ()))


def block_of(tree: Tree, document: int, start: int, end: int) -> Block:
    """Return a slice of the canonical text as a block, widened to whole elements whose visible words it all holds."""
    words = tree.words
    lo, last = tree.node_at(start), tree.node_at(end - 1)
    first = tree.index(lo, start)
    stop = tree.index(last, end) if end < tree.stop(last) else -1
    node, hi = last, last + 1
    while stop < 0 and (above := tree.parent[node]) > 0 and words[tree.end[above]] == words[last + 1]:
        if above < lo and (first or words[above] != words[lo]):
            break
        node, hi = above, tree.end[above]
    inside = hi if stop < 0 else last
    while not first and (above := tree.parent[lo]) > 0 and words[above] == words[lo] and tree.end[above] <= inside:
        lo = above
    holder = lo
    if not tree.tag[lo] or tree.end[lo] != hi or stop >= 0:
        holder = tree.parent[lo] if tree.parent[lo] >= 0 else lo
        while holder > 0 and tree.end[holder] < hi:
            holder = tree.parent[holder]
    whole = words[hi] - words[lo] if not first and stop < 0 else count_words(tree.canonical[start:end])
    return Block(document, holder, lo, hi, whole, first, stop, ragged=_ragged(tree.canonical, start, end))


def _ragged(text: str, start: int, end: int) -> int:
    """Return at which ends a slice is inside a sentence: a chunk may hold a part of a long sentence."""
    low = max(0, start - _AROUND)
    spans = [(low + first, low + last) for first, last in sentence_spans(text[low : end + _AROUND])]
    return BEFORE * any(first < start < last for first, last in spans) | AFTER * any(
        first < end < last for first, last in spans
    )


def supports(found: IndexFindings, node: Node, sentence: str, number: int) -> list[Citation]:
    """Return citations of the leaves below a summary that support a sentence of it, best first.

    Where a leaf holds the sentence word for word, it alone is cited. Otherwise the most similar sentence of each of the
    most similar leaves is cited, and ``support`` is their likeness (:mod:`prunus.core.text.likeness`).
    """
    wanted = normalise(sentence)
    retriever = found.retriever
    leaves = retriever.store.get(retriever.leaves_of(node.id))
    for leaf in leaves:
        if wanted and wanted in normalise(leaf.text):
            citation = cite(number, sentence, found.pages.tree(leaf.document), _place(leaf, wanted))
            if citation.found:
                return [citation]
    cited: list[Citation] = []
    meaning = Likeness(retriever.embedder)
    for leaf in retriever.support(node.id, sentence, _SUPPORTS):
        spans = [span for span in _spans(leaf) if leaf.text[span[0] : span[1]].strip()]
        likeness = meaning.of(sentence, [leaf.text[a:b] for a, b in spans])
        best = int(np.argmax(likeness))
        span = Span(leaf.document, leaf.start + spans[best][0], leaf.start + spans[best][1])
        tree = found.pages.tree(leaf.document)
        citation = cite(number, tree.canonical[span.start : span.end], tree, span)
        cited.append(replace(citation, support=float(np.clip(likeness[best], 0.0, 1.0)) if citation.found else 0.0))
    return sorted(cited, key=lambda citation: -citation.support)


def _spans(leaf: Node) -> list[tuple[int, int]]:
    """Return the (start, end) of a leaf's sentences, without the white space around them."""
    found = []
    for start, end in sentence_spans(leaf.text):
        part = leaf.text[start:end]
        found.append((start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())))
    return found


def _place(leaf: Node, wanted: str) -> Span | None:
    """Return the span of the leaf's sentence that equals ``wanted`` (normalised); None where no whole sentence does."""
    for start, end in _spans(leaf):
        if normalise(leaf.text[start:end]) == wanted:
            return Span(leaf.document, leaf.start + start, leaf.start + end)
    return None


class SearchableIndex(Protocol):
    """The part of :class:`prunus.Index` that a search needs."""

    location: str
    """The name of the index in messages."""

    @property
    def retriever(self) -> Retriever:
        """The retriever of its nodes."""
        ...

    @property
    def pages(self) -> Pages:
        """The pages of its documents."""
        ...

    def retrieved(self, query: str, budget: int = ..., retrieval: Retrieval | None = ...) -> Retrieved:
        """Return the nodes that a question retrieves within a budget of tokens."""
        ...

    def way(self, retrieval: Retrieval | None) -> str:
        """Return the way of retrieval, with the index's default filled in."""
        ...


class Indexes:
    """Indexes that are searched along with pages.

    :param retrieval: how nodes are retrieved from each index.
    """

    def __init__(self, indexes: Sequence[SearchableIndex], retrieval: Retrieval | None = None) -> None:
        self._indexes, self._retrieval = list(indexes), retrieval
        self.location = ", ".join(index.location for index in self._indexes)

    def find(self, question: str, pages: Documents, budget: int) -> IndexEvidence:
        """Return the pages, followed by the documents that the indexes find.

        Retrieved leaves become parts of their pages; a page that is already in ``pages`` is not added again.

        :param budget: most tokens of the nodes of each index.
        :raises BadInput: an index lacks a document that ``retrieval`` names.
        """
        from .evidence import IndexEvidence, IndexFindings

        retrieval = self._retrieval
        found = [
            IndexFindings(
                index.retrieved(question, budget, retrieval),
                index.retriever,
                index.pages,
                index.way(retrieval) == "hybrid",
            )
            for index in self._indexes
        ]
        return IndexEvidence(pages.trees, found, pages.failures)


def evidence_of(
    question: str, index: SearchableIndex, budget: int, retrieval: Retrieval | None = None
) -> IndexEvidence:
    """Return the evidence that one index finds for a question.

    :raises NothingFound: the index is empty, or no node fits the budget.
    """
    evidence = Indexes([index], retrieval).find(question, Documents([]), budget)
    if not evidence.trees:
        raise NothingFound(
            f"{index.location}: nothing is in the index, or nothing fits the budget", subject=index.location
        )
    return evidence
