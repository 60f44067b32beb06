"""HtmlRAG's pruning by embedding, step by step as the paper prints it (Appendix F): ``htmlrag:EMBEDDER``.

Algorithm 1 makes the block tree, from the top down: an element of fewer than ``@words=256`` words is a block, and so is
the text that stands in a larger one beside its children. Algorithm 2 deletes the block that is least like the
question, again and again, until the rest fits; elements that are empty then are deleted too, and an element that only
holds another one is replaced by it (section 3.4.1). Where not even one block fits, its head is kept. The page is
cleaned by Prunus without addresses, so that only the blocks and the way to prune differ from ``prunus:EMBEDDER:html``.
"""

from __future__ import annotations

import html
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import lxml.html

import prunus
from prunus_evals.records import Asker, Document, Reply, System
from prunus_evals.systems import _embed
from prunus_evals.systems._documents import page_of
from prunus_evals.systems._variants import Kinds, Variant, read
from prunus_evals.tokens import Counter

WORDS = 256
"""Words from which on an element is no block, as published."""

VARIANTS = ("static", "minilm")
OPTIONS: Kinds = {"words": int}
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


@dataclass(frozen=True, slots=True)
class HtmlBlock:
    """A block of Algorithm 1.

    :param element: of the page's tree, from lxml.
    :param leaf: whether all that the element holds is the block, or only the text beside its children.
    """

    element: Any
    leaf: bool

    @property
    def text(self) -> str:
        """The visible text of the block."""
        parts = self.element.itertext() if self.leaf else own_text(self.element)
        return " ".join(" ".join(parts).split())


def own_text(element: Any) -> list[str]:
    """Return the pieces of text that stand in an element beside its children."""
    return [element.text or "", *(child.tail or "" for child in element)]


def block_tree(root: Any, words: int = WORDS) -> list[HtmlBlock]:
    """Return the blocks of a tree, breadth first (Algorithm 1)."""
    blocks: list[HtmlBlock] = []
    queue = deque([root])
    while queue:
        element = queue.popleft()
        if not len(element) or len(" ".join(element.itertext()).split()) < words:
            blocks.append(HtmlBlock(element, leaf=True))
            continue
        queue.extend(element)
        if "".join(own_text(element)).strip():
            blocks.append(HtmlBlock(element, leaf=False))
    return blocks


def pruned_html(roots: Sequence[Any], kept: Sequence[HtmlBlock]) -> str:
    """Return the HTML of trees whose other blocks, and then empty elements, are deleted."""
    whole = {block.element for block in kept if block.leaf}
    text_of = {block.element for block in kept if not block.leaf}

    def write(element: Any, inside: bool) -> str:
        inside = inside or element in whole
        if element.tag in _VOID:
            return _start(element) if inside else ""
        given = own_text(element) if inside or element in text_of else [""] * (len(element) + 1)
        text, *tails = (html.escape(piece, quote=False) for piece in given)
        written = [write(child, inside) for child in element]
        content = text + "".join(one + tail for one, tail in zip(written, tails, strict=True))
        if not content.strip():
            return ""
        if len(list(filter(None, written))) == 1 and not "".join(given).strip():
            return content.strip()  # it only holds another element
        return f"{_start(element)}{content}</{element.tag}>"

    return "\n".join(filter(None, (write(root, False) for root in roots)))


def _start(element: Any) -> str:
    attributes = "".join(f' {name}="{html.escape(value)}"' for name, value in element.attrib.items())
    return f"<{element.tag}{attributes}>"


class HtmlRAG:
    """Keeps the blocks that an embedder finds most like the question."""

    def __init__(self, name: str, variant: Variant, counter: Counter) -> None:
        self.name = name
        self._words = variant.options.get("words", WORDS)
        self._embedder = _embed.embedder(variant.head)
        self._counter = counter
        self.models = _embed.models(variant.head)

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Clean the documents, cut them into blocks and embed these, once."""
        pages = [prunus.clean(page_of(one), style=prunus.LEAN) for one in documents if one.content.strip()]
        roots = [lxml.html.document_fromstring(page) for page in pages if page.strip()]
        blocks = [block for root in roots for block in block_tree(root, self._words)]
        return _Asker(roots, [block for block in blocks if block.text], self._embedder, self._counter)


class _Asker:
    """Answers questions about one group of documents."""

    def __init__(
        self, roots: Sequence[Any], blocks: Sequence[HtmlBlock], embedder: _embed.CachedEmbedder, counter: Counter
    ) -> None:
        self._roots, self._blocks, self._embedder, self._counter = roots, blocks, embedder, counter

    def ask(self, question: str, budget: int) -> Reply:
        """Return the trees without the blocks that are least like the question (Algorithm 2)."""
        texts = [block.text for block in self._blocks]
        scores = self._embedder.embed(texts) @ self._embedder.embed([question], "query")[0] if texts else []
        best = sorted(range(len(texts)), key=lambda place: -scores[place])

        def output(count: int) -> str:
            return pruned_html(self._roots, [self._blocks[place] for place in best[:count]])

        low, high = 0, len(best) + 1  # `low` blocks fit, `high` do not: deleting one after another ends at `low`
        while high - low > 1:
            middle = (low + high) // 2
            if self._counter.count([output(middle)])[0] <= budget:
                low = middle
            else:
                high = middle
        text = output(low) if low else self._counter.head(output(1), budget) if best else ""
        return Reply(text, "html")


NEEDS = _embed.NEEDS


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed: another embedder, or options."""
    return _embed.is_embedder(read("htmlrag", variant, OPTIONS).head)


def missing(variant: str) -> str:
    """Return what the embedder of a variant lacks here; '' where it lacks nothing."""
    return _embed.missing(variant.partition("@")[0])


def make(counter: Counter, variant: str) -> System:
    """Return the system with this embedder."""
    return HtmlRAG(f"htmlrag:{variant}", read("htmlrag", variant, OPTIONS), counter)
