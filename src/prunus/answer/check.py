"""Check, by code, which sentences of a written answer are supported by the pages that were read.

A quotation in a cited sentence is searched word for word in the whole page. A sentence without a quotation is compared
with the segments of the evidence, and the segment with the highest support is cited. The support of a segment is the
larger of two values: the share of the sentence's content words that the segment holds, and the likeness of their
embeddings (:mod:`prunus.core.text.likeness`). It is halved where the sentence states a number that the segment lacks.
A low value shows that a sentence is unsupported; a high value does not prove that it is true.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.ports import Embedder, Segment
from ..core.text.bm25 import QUERY_NOISE, query_terms, stem, tokens
from ..core.text.likeness import Likeness
from ..core.text.numbers import bounded_int, in_ascii
from ..core.text.words import guess_language, normalise, sentences
from ..core.types import Citation, Passage, Span
from ..evidence.segments import segments_of
from ..pages.tree import Tree
from .cite import cite, locate

LEAST_SUPPORT: Final = 0.5
"""The least support of a supported sentence: the segment holds half of its content words, or is as like it in meaning.

Measured on questions with their answers as sentences (docs/lab/log.md)."""

_MARK: Final = re.compile(r"\[(\d{1,4})\]")
"""The mark of a citation, as in "[2]"."""

_LEADING_MARKS: Final = re.compile(r"\s*(?:\[\d{1,4}\][\s.,;]*)+")
QUOTED: Final = re.compile(
    r"[\"\u201c\u201e\u00ab\u300c]([^\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]{8,800})[\"\u201d\u201c\u00bb\u300d]"
)
_MARKUP: Final = re.compile(r"^[\s>*+#-]+|^\s*\d{1,3}[.)]\s+|[*_`|]+")
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
_RULE: Final = re.compile(r"[\s|:=-]*")
_SPACE_BEFORE_SIGN: Final = re.compile(r" (?=[.,;:!?])")
_FILLER: Final = frozenset("glad help hope helps know no not ok okay sorry sure thank thanks welcome yes".split())
"""Words of short sentences that state nothing, as "I hope this helps." and "I do not know."."""
_STOPS: Final = (".", "!", "\u3002", "\uff01", "\u0964", "\u06d4")
_REFUSAL: Final = re.compile(
    r"(?:unfortunately,? |sorry,? (?:but )?)?(?:the|these|those|none of the|no)? ?(?:given|provided|cited)? ?"
    r"(?:sources?|pages?|documents?|passages?|texts?|context|evidence) "
    r"(?:do(?:es)? not|don't|doesn't|cannot|can't|says? nothing|holds? no|states? no|gives? no|mentions? no)\b",
    re.IGNORECASE,
)
"""A sentence by which a model says that the sources do not hold the answer, as its prompt asks; it states nothing."""

_MOST_LINES: Final = 200
"""Lines of code that are looked for: each search reads whole pages."""
_MOST_EMBEDDED: Final = 24
"""Segments of a page that are embedded for one sentence: those that share the most words with it."""


class Origin(Protocol):
    """Maps a span of a summary to the pages below it, so that an answer cites pages and never summaries."""

    def cite(self, number: int, span: Span) -> list[Citation]:
        """Return citations of the pages below a span, the nearest first, each checked word for word."""
        ...

    def unsupported(self, span: Span) -> list[str]:
        """Return the sentences of the span that the index's own check found unsupported."""
        ...

    def page(self, document: str) -> Tree | None:
        """Return a page that was cited; None where it is no page of this index."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """A page that was read, with its number in the answer.

    :param passages: the passages of the page that the model was shown.
    :param text: the passages as the model was shown them.
    :param origin: maps a summary of an index to its pages; None for a page.
    """

    number: int
    tree: Tree
    passages: tuple[Passage, ...]
    text: str = ""
    origin: Origin | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The document and its snapshot: identifies the page over several turns of a conversation."""
        return self.tree.document, self.tree.snapshot


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer.

    :param numbers: the numbers of the sources that the sentence cites.
    """

    text: str
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """The result of checking an answer.

    :param citations: one per supporting place, in the order of the answer's sentences.
    :param unsupported: sentences, and blocks of code, that no page supports.
    :param cited: numbers of the pages that are cited.
    :param borne_out: whether a page supports any statement.
    :param statements: the sentences that state something, and whether a page supports each.
    """

    citations: list[Citation] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    cited: set[int] = field(default_factory=set)
    borne_out: bool = False
    statements: list[tuple[Claim, bool]] = field(default_factory=list)


def split_claims(text: str) -> list[Claim]:
    """Split an answer in Markdown into its sentences; headings, code and table rules hold no claim."""
    result: list[Claim] = []
    code = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            code = not code
            continue
        if code or line.lstrip().startswith("#") or _RULE.fullmatch(line):
            continue
        before = len(result)
        for sentence in sentences(line):
            leading = _LEADING_MARKS.match(sentence)
            if leading and len(result) > before:  # "... in 1932. [1] Trams ...": the sentence before is marked
                numbers = tuple(dict.fromkeys([*result[-1].numbers, *_numbers(leading[0])]))
                result[-1] = Claim(result[-1].text, numbers)
                sentence = sentence[leading.end() :]
            bare = _SPACE_BEFORE_SIGN.sub("", " ".join(_MARKUP.sub(" ", _MARK.sub("", sentence)).split()))
            if any(letter.isalnum() for letter in bare):
                result.append(Claim(bare, tuple(dict.fromkeys(_numbers(sentence)))))
    return result


def _numbers(text: str) -> list[int]:
    return [bounded_int(in_ascii(number), 0, most=9_999) for number in _MARK.findall(text)]


def check_support(text: str, references: Sequence[Reference], embedder: Embedder | None = None) -> CheckedAnswer:
    """Find the support of each sentence of an answer in the pages that were read.

    :param references: the pages that may be cited; a number that no page has is ignored.
    :param embedder: measures the similarity of meaning; without it only shared words count.
    """
    meaning = Likeness(embedder) if embedder is not None else None
    pages = {reference.number: _Page(reference, meaning) for reference in references}
    checked = CheckedAnswer()
    borne_out = False
    known: set[tuple[int, Span, str]] = set()
    for claim in split_claims(text):
        cited = [pages[number] for number in claim.numbers if number in pages]
        citations, supported = _support_of(claim, cited)
        for citation in citations:
            key = (citation.number, citation.span, "" if citation.found else citation.quote)
            if key not in known:
                known.add(key)
                checked.citations.append(citation)
                checked.cited.add(citation.number)
        # A sentence without a citation may rest on any page; a cited sentence must rest on the pages that it cites.
        if not cited and _terms(claim.text):
            supported = supported or _supported_anywhere(claim, list(pages.values()))
        borne_out = borne_out or supported  # also by one word: "Canberra" answers a question
        if _is_statement(claim):
            checked.statements.append((claim, supported))
            checked.unsupported.extend([] if supported else [claim.text])
    code = _code_of(text)
    texts = ["".join(reference.tree.canonical.split()) for reference in references] if code else []
    left = _MOST_LINES
    for lines in code:
        missing = _not_in_pages(lines[:left], texts)
        checked.unsupported.extend(["\n".join(missing)] if missing else [])
        borne_out = borne_out or (not missing and left > 0)
        left = max(0, left - len(lines))
    unsupported = [sentence for page in pages.values() for sentence in page.unsupported]
    checked.unsupported.extend(
        sentence for sentence in dict.fromkeys(unsupported) if sentence not in checked.unsupported
    )
    return replace(checked, borne_out=borne_out)


def _is_statement(claim: Claim) -> bool:
    """Tell whether a sentence states anything; the lead of a list ("There are three:") and a label do not."""
    text = claim.text.rstrip()
    if text.endswith(":") or (not claim.numbers and _REFUSAL.match(text)):
        return False
    if claim.numbers or len(_terms(text)) > 2:
        return True
    words = {word for word in tokens(text) if word not in QUERY_NOISE}
    return bool(words - _FILLER) and (text.endswith(_STOPS) or any(letter.isdigit() for letter in text))


def _code_of(text: str) -> list[list[str]]:
    """Return the lines of each block of code in an answer, without those that hold no letter and no digit."""
    blocks: list[list[str]] = []
    code = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            code = not code
            blocks += [[]] if code else []
        elif code and any(letter.isalnum() for letter in line):
            blocks[-1].append(line.strip())
    return [lines for lines in blocks if lines]


def _not_in_pages(lines: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return the lines of code that no page holds; white space does not matter.

    :param texts: the words of each page without white space.
    """
    return [line for line in lines if not any("".join(line.split()) in text for text in texts)]


def _support_of(claim: Claim, cited: Sequence[_Page]) -> tuple[list[Citation], bool]:
    """Return the citations of a sentence, and whether one of them supports it."""
    citations: list[Citation] = []
    supported = False
    quotes = [quote for quote in QUOTED.findall(claim.text) if len(quote.split()) > 2 or not quote.isascii()]
    missing = False
    for quote in quotes:
        quoted = [citation for page in cited for citation in page.cite_quote(quote)]
        missing = missing or (bool(cited) and not quoted)
        citations += quoted
        if cited and not quoted:
            citations.append(_not_found(cited[0], quote))
        supported = supported or bool(quoted)
    if quotes:
        named = {citation.number for citation in citations}
        cited = [page for page in cited if page.number not in named]
    for page in cited:
        result, support = page.cite_best(claim.text)
        citations += result
        supported = supported or support >= LEAST_SUPPORT
    return citations, supported and not missing


def _not_found(page: _Page, quote: str) -> Citation:
    """Return a citation with ``found=False`` for a quotation that is in none of the pages that its sentence cites."""
    citation = cite(page.number, quote, page.tree)
    return replace(citation, quote=quote, span=Span(citation.document, 0, 0), xpath="", found=False, support=0.0)


def _with_support(citation: Citation, support: float) -> Citation:
    return replace(citation, support=round(min(1.0, support), 3) if citation.found else 0.0)


def _supported_anywhere(claim: Claim, pages: Sequence[_Page]) -> bool:
    """Tell whether any page supports a sentence."""
    return any(best is not None and best[1] >= LEAST_SUPPORT for best in (page.best(claim.text) for page in pages))


def _terms(text: str) -> set[str]:
    language = guess_language(text)
    return set(query_terms(text, language))


def figures_of(text: str) -> set[str]:
    """Return the numbers of a text, without thousands separators."""
    return {
        re.sub(r"(?<=\d)[,.\u202f\u00a0 ](?=\d{3}\b)", "", number)
        for number in re.findall(r"\d[\d,.\u202f\u00a0]*\d|\d", text)
    }


class _Page:
    """The evidence of one page, split into the segments that can be cited."""

    def __init__(self, reference: Reference, meaning: Likeness | None) -> None:
        self.number, self.tree, self.origin = reference.number, reference.tree, reference.origin
        self.unsupported: list[str] = []
        self._reference, self._meaning = reference, meaning
        self._segments: list[Segment] | None = None
        self._shown: list[str] = []
        self._words: dict[str, list[set[str]]] = {}

    def _split(self) -> list[Segment]:
        if self._segments is None:
            spans = sorted({(s.start, s.end) for passage in self._reference.passages for s in passage.spans})
            self._segments = segments_of(self.tree, _merged(spans))
            self._shown = [f"{segment.label} {segment.text}" for segment in self._segments]
        return self._segments

    def _stems(self, language: str) -> list[set[str]]:
        if language not in self._words:
            self._words[language] = [set(stem(tokens(text), language)) for text in self._shown]
        return self._words[language]

    def cite_quote(self, quote: str) -> list[Citation]:
        """Return citations of the places that hold a quote word for word; for a summary, places in its pages."""
        span = locate(quote, self.tree)
        if span is None:
            return []
        if self.origin is None:
            return [cite(self.number, quote, self.tree, span)]
        self.unsupported += self.origin.unsupported(span)
        wanted = normalise(quote)
        return [
            citation
            for citation in self.origin.cite(self.number, span)
            if citation.found and wanted in normalise(citation.quote)
        ]

    def cite_best(self, claim: str) -> tuple[list[Citation], float]:
        """Return citations of the segment that supports a sentence best, and its support (0 to 1)."""
        best = self.best(claim)
        if best is None:
            return [], 0.0
        segment, support = best
        if self.origin is None:
            citation = cite(self.number, segment.text, self.tree, segment.span)
            return [_with_support(citation, support)], support
        self.unsupported += self.origin.unsupported(segment.span)
        citations = self.origin.cite(self.number, segment.span)
        quotes = " ".join(citation.quote for citation in citations if citation.found)
        # Several pages may support a sentence only together: the joined quotes count as one text more.
        values = _text_supports(claim, [*(citation.quote for citation in citations), quotes], self._meaning)
        return [_with_support(citation, value) for citation, value in zip(citations, values, strict=False)], max(values)

    def best(self, claim: str) -> tuple[Segment, float] | None:
        """Return the segment that supports a sentence best, and its support; None for a page without evidence."""
        segments = self._split()
        if not segments:
            return None
        language = guess_language(claim)
        shares = _shares(claim, language, self._stems(language))
        order = np.argsort(-shares, kind="stable")[:_MOST_EMBEDDED]
        candidates = [(self._shown[index], segments[index].above) for index in order.tolist()]
        values = _supports(claim, shares[order], candidates, self._meaning)
        top = int(np.argmax(values))
        return segments[int(order[top])], float(max(0.0, values[top]))


def _shares(claim: str, language: str, texts: Sequence[set[str]]) -> NDArray[np.float64]:
    """Return the share of a sentence's content words that each text holds, float64 [texts]."""
    terms = set(query_terms(claim, language)) or set(stem(tokens(claim), language))
    return np.asarray([len(terms & words) / max(1, len(terms)) for words in texts], np.float64)


def _supports(
    claim: str, shares: NDArray[np.float64], shown: Sequence[tuple[str, str]], meaning: Likeness | None
) -> NDArray[np.float64]:
    """Return the support of each text, float64 [texts].

    :param shown: each text with the headings above it; a number in a heading counts as held.
    """
    values = shares
    if meaning is not None:
        values = np.maximum(values, meaning.of(claim, [text for text, _ in shown]))
    figures = figures_of(claim)
    lacking = [bool(figures - figures_of(f"{text} {above}")) for text, above in shown]
    return np.where(lacking, values / 2, values).astype(np.float64)


def _text_supports(claim: str, texts: Sequence[str], meaning: Likeness | None) -> list[float]:
    """Return the support of each text for a sentence; texts without headings."""
    language = guess_language(claim)
    shares = _shares(claim, language, [set(stem(tokens(text), language)) for text in texts])
    return [max(0.0, value) for value in _supports(claim, shares, [(text, "") for text in texts], meaning).tolist()]


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge sorted slices that overlap or touch."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged
