"""Which of an answer's sentences a page bears out: found by code after the answer is written.

A quotation of a cited sentence is looked for word for word in the whole page. Otherwise the part of the evidence
that bears the sentence out best is cited, with how well it does: the share of the sentence's telling words that
stand there, or its likeness in meaning, whichever is more, and half of that where it lacks a number that the
sentence states. This finds what is plainly not there; it does not prove that a sentence is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.ports import Embedder
from ..core.text.bm25 import query_terms, stem, tokens
from ..core.text.words import guess_language, normalise, sentences
from ..core.types import Citation, Passage, Span
from ..evidence.segments import Segment, segments_of
from ..pages.tree import Tree
from .cite import cite, locate

LEAST: Final = 0.5
"""Support from which a sentence counts as borne out. Chosen by hand: half of what it says stands there."""

_MARK: Final = re.compile(r"\[(\d{1,4})\]")
_LEADING: Final = re.compile(r"\s*(?:\[\d{1,4}\][\s.,;]*)+")
_QUOTED: Final = re.compile(
    r"[\"\u201c\u201e\u00ab\u300c]([^\"\u201c\u201d\u201e\u00ab\u00bb\u300d]{8,800})[\"\u201d\u201c\u00bb\u300d]"
)
_DRESS: Final = re.compile(r"^[\s>*+#-]+|^\s*\d{1,3}[.)]\s+|[*_`|]+")
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
_RULE: Final = re.compile(r"[\s|:=-]*")
_GAP: Final = re.compile(r"\s+(?=[.,;:!?])")
_LOOKED_AT: Final = 24
"""Segments of a page whose likeness in meaning is measured for a sentence: those that share most words with it."""


class Origin(Protocol):
    """Leads words that stand in no page, as those of a summary, on to the pages that they were made of."""

    def cite(self, number: int, span: Span) -> list[Citation]:
        """Return citations of pages, the nearest first, each checked word for word."""
        ...

    def doubts(self, span: Span) -> list[str]:
        """Return what of these words a check has found unsupported."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """A page that was read, with its number in the answer.

    :param passages: what of it the model was shown.
    :param text: as it was shown.
    :param origin: leads citations of it on to pages; None: it is a page.
    """

    number: int
    tree: Tree
    passages: tuple[Passage, ...]
    text: str = ""
    origin: Origin | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by over several turns: the document as it read then."""
        return self.tree.document, self.tree.snapshot


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer.

    :param numbers: the sources that it cites.
    """

    text: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """What the check of an answer came to.

    :param unsupported: sentences that no page bears out.
    :param cited: numbers of the pages that were cited.
    """

    citations: list[Citation] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    cited: set[int] = field(default_factory=set)


def claims(text: str) -> list[Claim]:
    """Cut an answer in Markdown into its sentences; headings, code and rules of tables claim nothing."""
    found: list[Claim] = []
    code = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            code = not code
            continue
        if code or line.lstrip().startswith("#") or _RULE.fullmatch(line):
            continue
        before = len(found)
        for sentence in sentences(line):
            leading = _LEADING.match(sentence)
            if leading and len(found) > before:  # "... in 1932. [1] Trams ...": the mark belongs to what stands before
                numbers = tuple(dict.fromkeys([*found[-1].numbers, *_numbers(leading[0])]))
                found[-1] = Claim(found[-1].text, numbers)
                sentence = sentence[leading.end() :]
            bare = _GAP.sub("", " ".join(_DRESS.sub(" ", _MARK.sub("", sentence)).split()))
            if any(letter.isalnum() for letter in bare):
                found.append(Claim(bare, tuple(dict.fromkeys(_numbers(sentence)))))
    return found


def _numbers(text: str) -> list[int]:
    return [int(number) for number in _MARK.findall(text)]


def check(text: str, references: Sequence[Reference], embedder: Embedder | None = None) -> CheckedClaim:
    """Locate what bears each sentence of an answer out.

    :param references: the pages that may be cited; a number that none of them has cites nothing.
    :param embedder: measures likeness in meaning; without it words alone count.
    """
    pages = {one.number: _Page(one, embedder) for one in references}
    checked = CheckedClaim()
    known: set[tuple[int, Span, str]] = set()
    for claim in claims(text):
        cited = [pages[number] for number in claim.numbers if number in pages]
        citations, supported = _of(claim, cited)
        for citation in citations:
            key = (citation.number, citation.span, "" if citation.found else citation.quote)
            if key not in known:
                known.add(key)
                checked.citations.append(citation)
                checked.cited.add(citation.number)
        if not supported and _says_something(claim) and (cited or not _anywhere(claim, list(pages.values()))):
            checked.unsupported.append(claim.text)
    doubted = [said for page in pages.values() for said in page.doubted]
    checked.unsupported.extend(said for said in dict.fromkeys(doubted) if said not in checked.unsupported)
    return checked


def _says_something(claim: Claim) -> bool:
    """Tell whether a sentence states anything: a line that leads to a list does not."""
    return not claim.text.rstrip().endswith(":") and (bool(claim.numbers) or len(_terms(claim.text)) > 2)


def _of(claim: Claim, cited: Sequence[_Page]) -> tuple[list[Citation], bool]:
    """Return the citations of a sentence, and whether one of them bears it out."""
    citations: list[Citation] = []
    supported = False
    quotes = [quote for quote in _QUOTED.findall(claim.text) if len(quote.split()) > 2 or not quote.isascii()]
    missing = False
    for quote in quotes:
        quoted = [citation for page in cited for citation in page.quoted(quote)]
        missing = missing or (bool(cited) and not quoted)
        citations += quoted
        if cited and not quoted:
            citations.append(_missing(cited[0], quote))
        supported = supported or bool(quoted)
    if quotes:
        named = {citation.number for citation in citations}
        cited = [page for page in cited if page.number not in named]
    for page in cited:
        own, support = page.borne_out(claim.text)
        citations += own
        supported = supported or support >= LEAST
    return citations, supported and not missing


def _missing(page: _Page, quote: str) -> Citation:
    """Return a quotation that stands in no page, under the number where it was said to stand."""
    made = cite(page.number, quote, page.tree)
    return replace(made, quote=quote, span=Span(made.document, 0, 0), xpath="", found=False, support=0.0)


def _with(citation: Citation, support: float) -> Citation:
    return replace(citation, support=round(min(1.0, support), 3) if citation.found else 0.0)


def _anywhere(claim: Claim, pages: Sequence[_Page]) -> bool:
    """Tell whether a sentence that cites nothing is borne out by any page."""
    return any(best is not None and best[1] >= LEAST for best in (page.best(claim.text) for page in pages))


def _terms(text: str) -> set[str]:
    language = guess_language(text)
    return set(query_terms(text, language))


def _figures(text: str) -> set[str]:
    """Return the numbers of a text, without what separates thousands."""
    return {
        re.sub(r"(?<=\d)[,.\u202f\u00a0 ](?=\d{3}\b)", "", one)
        for one in re.findall(r"\d[\d,.\u202f\u00a0]*\d|\d", text)
    }


class _Page:
    """The evidence of a page, cut into what can be cited."""

    def __init__(self, reference: Reference, embedder: Embedder | None) -> None:
        self.number, self.tree, self.origin = reference.number, reference.tree, reference.origin
        self.doubted: list[str] = []
        self._reference, self._embedder = reference, embedder
        self._segments: list[Segment] | None = None
        self._shown: list[str] = []
        self._words: dict[str, list[set[str]]] = {}

    def _cut(self) -> list[Segment]:
        if self._segments is None:
            spans = sorted({(s.start, s.end) for passage in self._reference.passages for s in passage.spans})
            self._segments = segments_of(self.tree, _merged(spans))
            canonical = self.tree.canonical
            self._shown = [f"{one.label} {canonical[one.start : one.end]}" for one in self._segments]
        return self._segments

    def _stems(self, language: str) -> list[set[str]]:
        if language not in self._words:
            self._words[language] = [set(stem(tokens(text), language)) for text in self._shown]
        return self._words[language]

    def quoted(self, quote: str) -> list[Citation]:
        """Return where the page says this word for word; of what is no page, where the pages below it do."""
        span = locate(quote, self.tree)
        if span is None:
            return []
        if self.origin is None:
            return [cite(self.number, quote, self.tree, span)]
        self.doubted += self.origin.doubts(span)
        wanted = normalise(quote)
        return [one for one in self.origin.cite(self.number, span) if one.found and wanted in normalise(one.quote)]

    def borne_out(self, claim: str) -> tuple[list[Citation], float]:
        """Return citations of what bears a sentence out best, and how well it does."""
        best = self.best(claim)
        if best is None:
            return [], 0.0
        segment, support = best
        span = Span(self.tree.document, segment.start, segment.end)
        if self.origin is None:
            made = cite(self.number, self.tree.canonical[span.start : span.end], self.tree, span)
            return [_with(made, support)], support
        self.doubted += self.origin.doubts(span)
        led = self.origin.cite(self.number, span)
        together = " ".join(one.quote for one in led if one.found)
        values = _measured(claim, [*(one.quote for one in led), together], self._embedder)
        return [_with(one, value) for one, value in zip(led, values, strict=False)], max(values)

    def best(self, claim: str) -> tuple[Segment, float] | None:
        """Return the segment that bears a sentence out best, and how well; None where there is nothing."""
        segments = self._cut()
        if not segments:
            return None
        language = guess_language(claim)
        shares = _shares(claim, language, self._stems(language))
        order = np.argsort(-shares, kind="stable")[:_LOOKED_AT]
        looked_at = [(self._shown[place], segments[place].above) for place in order.tolist()]
        values = _weighed(claim, shares[order], looked_at, self._embedder)
        top = int(np.argmax(values))
        return segments[int(order[top])], float(max(0.0, values[top]))


def _shares(claim: str, language: str, texts: Sequence[set[str]]) -> NDArray[np.float64]:
    """Return the share of a sentence's telling words that stand in each text, float64 [texts]."""
    terms = set(query_terms(claim, language)) or set(stem(tokens(claim), language))
    return np.asarray([len(terms & own) / max(1, len(terms)) for own in texts], np.float64)


def _weighed(
    claim: str, shares: NDArray[np.float64], shown: Sequence[tuple[str, str]], embedder: Embedder | None
) -> NDArray[np.float64]:
    """Return how well each text, with what stands above it, bears a sentence out."""
    values = shares
    if embedder is not None:
        vectors = embedder.embed([claim, *(text for text, _ in shown)], "document")
        values = np.maximum(values, vectors[1:] @ vectors[0])
    figures = _figures(claim)
    lacking = [bool(figures - _figures(f"{text} {above}")) for text, above in shown]
    return np.where(lacking, values / 2, values).astype(np.float64)


def _measured(claim: str, texts: Sequence[str], embedder: Embedder | None) -> list[float]:
    """Return how well each text bears a sentence out."""
    language = guess_language(claim)
    shares = _shares(claim, language, [set(stem(tokens(text), language)) for text in texts])
    return [max(0.0, value) for value in _weighed(claim, shares, [(text, "") for text in texts], embedder).tolist()]


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge slices that overlap."""
    return list(_merging(spans))


def _merging(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start, end = -1, -1
    for begin, stop in spans:
        if begin > end:
            if end > start:
                yield start, end
            start, end = begin, stop
        else:
            end = max(end, stop)
    if end > start:
        yield start, end
