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
from typing import Final

import numpy as np

from .cite import cite, locate
from .html.segments import Segment, segments_of
from .html.tree import Tree
from .lexical import query_terms, stem, tokens
from .ports import Embedder
from .text import guess_language, sentences
from .types import Citation, Passage, Span

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


@dataclass(frozen=True, slots=True)
class Reference:
    """A page that was read, with its number in the answer.

    :param passages: what of it the model was shown.
    :param text: as it was shown.
    """

    number: int
    tree: Tree
    passages: tuple[Passage, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer.

    :param numbers: the sources that it cites.
    """

    text: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """What the check of an answer came to.

    :param unsupported: sentences that no page bears out.
    """

    citations: list[Citation] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)


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


def check(text: str, references: Sequence[Reference], embedder: Embedder | None = None) -> Checked:
    """Locate what bears each sentence of an answer out.

    :param references: the pages that may be cited; a number that none of them has cites nothing.
    :param embedder: measures likeness in meaning; without it words alone count.
    """
    pages = {one.number: _Page(one, embedder) for one in references}
    checked = Checked()
    known: set[tuple[int, Span, str]] = set()
    for claim in claims(text):
        cited = [pages[number] for number in claim.numbers if number in pages]
        citations, supported = _of(claim, cited)
        for citation in citations:
            key = (citation.number, citation.span, "" if citation.found else citation.quote)
            if key not in known:
                known.add(key)
                checked.citations.append(citation)
        if not supported and _says_something(claim) and (cited or not _anywhere(claim, list(pages.values()))):
            checked.unsupported.append(claim.text)
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
        places = [(page, span) for page in cited if (span := locate(quote, page.tree)) is not None]
        missing = missing or (bool(cited) and not places)
        citations += [cite(page.number, quote, page.tree, span) for page, span in places]
        if cited and not places:
            citations.append(cite(cited[0].number, quote, cited[0].tree))
        supported = supported or bool(places)
    if quotes:
        named = {citation.number for citation in citations}
        cited = [page for page in cited if page.number not in named]
    for page in cited:
        best = page.best(claim.text)
        if best is not None:
            segment, support = best
            span = Span(page.tree.document, segment.start, segment.end)
            citations.append(
                _with(cite(page.number, page.tree.canonical[segment.start : segment.end], page.tree, span), support)
            )
            supported = supported or support >= LEAST
    return citations, supported and not missing


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
        self.number, self.tree = reference.number, reference.tree
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

    def best(self, claim: str) -> tuple[Segment, float] | None:
        """Return the segment that bears a sentence out best, and how well; None where there is nothing."""
        segments = self._cut()
        if not segments:
            return None
        language = guess_language(claim)
        terms = set(query_terms(claim, language)) or set(stem(tokens(claim), language))
        shares = np.asarray([len(terms & own) / max(1, len(terms)) for own in self._stems(language)])
        order = np.argsort(-shares, kind="stable")[:_LOOKED_AT]
        values = shares[order]
        if self._embedder is not None:
            vectors = self._embedder.embed([claim, *(self._shown[place] for place in order.tolist())], "document")
            values = np.maximum(values, vectors[1:] @ vectors[0])
        figures = _figures(claim)
        for at, place in enumerate(order.tolist()):
            above = segments[place].above
            if figures - _figures(f"{self._shown[place]} {above}"):
                values[at] /= 2
        top = int(np.argmax(values))
        return segments[int(order[top])], float(max(0.0, values[top]))


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
