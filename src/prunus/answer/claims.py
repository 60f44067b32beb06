"""Check a text that comes from anywhere against pages: for each claim a verdict, the sentences that decide, and why.

A claim is a sentence. In each page those few segments are chosen that hold most of its content words together, where
rare words count most. Two numbers decide: the share of its words that these segments hold, and the share of its names
and numbers that the page has. Their weights were fitted on claims of Wikipedia and the pages that they cite (WiCE); the
likeness of embeddings told no more (docs/lab/log.md).

A number or a name that the page does not have is always told, and such a claim is never called supported; nor is one
where the nearest segments have another number in the place of the claim's. What is learned here tells whether a page
speaks of the same things; that it says the same of them is likely, and no more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..core.deadline import checked
from ..core.ports import Segment
from ..core.text.bm25 import QUERY_NOISE, query_terms, stem, tokens
from ..core.text.words import guess_language
from ..core.types import CheckedClaim, Citation, Verdict
from ..evidence.segments import segments_of
from ..pages.tree import Tree
from .check import QUOTED, Claim, Reference, figures_of
from .cite import cite, locate

_WORDS, _NAMES, _BIAS = 2.87, 2.52, -4.0
"""Weights of the share of words and of the share of names and numbers, and the level."""
_SUPPORTED, _PARTLY = 0.5, 0.3
"""Supports from which on a claim is supported, and partly supported."""
_MOST_WORDS: Final = 200
"""Different words of a claim that count: no sentence has more."""
_SEGMENTS: Final = 4
"""Segments that may decide together."""
_CANDIDATES: Final = 200
"""Segments of a page that are compared for a claim: those that hold most of it alone."""
_NAME: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_OWN: Final = re.compile(r"['\u2019]s?$")
"""The ending of what belongs to a name."""
_NOUNS: Final = frozenset({"de"})
"""Languages that write all nouns with capitals, so that a capital shows no name."""
_NOTHING: Final = "the page says nothing of it"
_NEAR_IN_MEANING: Final = "the page says it in other words, if at all"
_NEAR: Final = 0.8
"""Share of a claim's words in one segment from which on a "not" in one of them alone counts."""
_ALIKE: Final = 0.8
"""Share of the best segment from which on another one is as near to the claim without its numbers."""
_ABOUT: Final = 0.2
"""Share of the claim's words, without its numbers, from which on a segment speaks of the same thing."""
_WORTH: Final = 0.25
"""Share of a claim's words from which on a segment is cited beside the first."""
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d")
_PIECE: Final = re.compile(r"\d[\d,.\u202f\u00a0]*\d|\d|[^\W\d_]+|[%\u20ac$\u00a3]")
_NOT: Final = re.compile(r"\b(?:not|never|no longer|nicht|kein\w*|nie)\b|n['\u2019]t\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Held:
    """What a page holds of a claim.

    :param segments: those that decide, in the order of the page.
    :param shares: the share of the claim's words that each of them holds alone.
    :param missing: names and numbers of the claim that the page does not have.
    :param rival: a number of the claim, and the one that the page has in its place.
    """

    support: float
    segments: tuple[Segment, ...] = ()
    shares: tuple[float, ...] = ()
    missing: tuple[str, ...] = ()
    rival: tuple[str, str] | None = None


class ClaimPage:
    """A page with its segments, against which claims are checked.

    :param number: as citations call it, from 1.
    """

    def __init__(self, number: int, tree: Tree) -> None:
        self.number, self.tree = number, tree
        self._postings: dict[str, dict[str, list[int]]] = {}
        self._stems: dict[str, set[str]] = {}

    @cached_property
    def segments(self) -> list[Segment]:
        """The sentences, rows, pairs and lists of the page."""
        return segments_of(self.tree, [(0, len(self.tree.canonical))])

    @cached_property
    def _figures(self) -> set[str]:
        return figures_of(self.tree.canonical)

    def _has(self, name: str, language: str) -> bool:
        """Tell whether the page has all words of a name, as whole words."""
        if language not in self._stems:
            self._stems[language] = set(stem(tokens(self.tree.canonical), language))
        return self._stems[language].issuperset(stem(tokens(name), language))

    def _places(self, language: str) -> dict[str, list[int]]:
        """Return the segments of each stem."""
        if language not in self._postings:
            places: dict[str, list[int]] = {}
            for number, segment in enumerate(checked(self.segments)):
                for word in set(stem(tokens(f"{segment.label} {segment.text}"), language)):
                    places.setdefault(word, []).append(number)
            self._postings[language] = places
        return self._postings[language]

    def held(self, claim: str, language: str, names: Sequence[str], figures: Sequence[str]) -> _Held:
        """Return what the page holds of a claim."""
        missing = [name for name in names if not self._has(name, language)]
        missing += [figure for figure in figures if figure not in self._figures]
        known = len(names) + len(figures)
        named = 1 - len(missing) / known if known else 1.0
        chosen, share, alone = self._chosen(claim, language)
        segments = tuple(self.segments[number] for number in chosen)
        support = 1 / (1 + math.exp(-(_BIAS + _WORDS * share + _NAMES * named))) if segments else 0.0
        return _Held(support, segments, alone, tuple(missing), self._rival(claim, language, figures))

    def near(self, claim: str, language: str, words: int) -> tuple[float, str]:
        """Return the segments that hold most of a claim's words, each with those beside it, in the order of the page.

        :param words: most words of all of them.
        :returns: the share of the claim's words that the best of them holds, and their text.
        """
        numbers, holds, rare = self._holds(_terms(claim, language), language)
        if not numbers:
            return 0.0, ""
        shares, chosen = holds @ rare, dict[int, str]()
        best = [numbers[place] for place in np.argsort(-shares, kind="stable")[:_CANDIDATES].tolist()]
        for number in (near for one in best for near in (one, one - 1, one + 1)):
            if words > 0 and 0 <= number < len(self.segments) and number not in chosen:
                segment = self.segments[number]
                chosen[number] = f"{segment.above} {segment.text}".strip()
                words -= len(chosen[number].split())
        return float(shares.max()), "\n".join(chosen[number] for number in sorted(chosen))

    def _holds(self, terms: Sequence[str], language: str) -> tuple[list[int], NDArray[np.float64], NDArray[np.float64]]:
        """Return the segments that hold a term, which terms each holds, and the weight of each term; rare ones more."""
        places = self._places(language)
        found = [places.get(term, []) for term in terms]
        numbers = sorted({number for of in found for number in of})
        row = {number: place for place, number in enumerate(numbers)}
        holds: NDArray[np.float64] = np.zeros((len(numbers), len(terms)))
        for column, of in enumerate(found):
            holds[[row[number] for number in of], column] = 1.0
        rare = np.log1p(len(self.segments) / (1 + np.asarray([len(of) for of in found], np.float64)))
        return numbers, holds, rare / max(float(rare.sum()), 1e-9)

    def _rival(self, claim: str, language: str, figures: Sequence[str]) -> tuple[str, str] | None:
        """Return a number of a claim that the segments nearest to its other words lack, and theirs in its place."""
        if not figures:
            return None
        known = set(stem(tokens(" ".join(figures)), language))
        terms = [term for term in _terms(claim, language) if term not in known]
        numbers, holds, rare = self._holds(terms, language)
        if not numbers:
            return None
        shares = holds @ rare
        if shares.max() < _ABOUT:
            return None
        order = np.argsort(-shares, kind="stable")[:3]
        near = [self.segments[numbers[place]] for place in order.tolist() if shares[place] >= _ALIKE * shares.max()]
        there = set().union(*(figures_of(f"{segment.label} {segment.text} {segment.above}") for segment in near))
        for own in _numbers_of(claim):
            if own.text in there or own.text not in self._figures:
                continue
            for segment in near:
                for other in _numbers_of(segment.text):
                    if own.is_like(other):
                        return own.text, other.text
        return None

    def _chosen(self, claim: str, language: str) -> tuple[list[int], float, tuple[float, ...]]:
        """Return the segments that hold most of a claim together, the share that they hold, and that of each alone."""
        terms = _terms(claim, language)
        numbers, holds, rare = self._holds(terms, language)
        if not numbers:
            return [], 0.0, ()
        alone = holds @ rare
        best = np.argsort(-alone, kind="stable")[:_CANDIDATES]
        got = np.zeros(len(terms))
        taken: list[int] = []
        for _ in range(_SEGMENTS):
            gains = np.maximum(holds[best], got) @ rare
            place = best[np.argmax(gains)].item()
            if float(gains.max()) <= float(got @ rare) + 1e-9:
                break
            taken.append(place)
            got = np.maximum(got, holds[place])
        taken.sort()
        return [numbers[place] for place in taken], float(got @ rare), tuple(alone[taken].tolist())

    def cite(self, held: _Held) -> list[Citation]:
        """Return a citation of each segment that decides, the one that holds most of the claim first."""
        ranked = sorted(zip(held.shares, held.segments, strict=True), key=lambda one: -one[0])
        ranked = ranked[:1] + [one for one in ranked[1:] if one[0] >= _WORTH]
        made = [(share, cite(self.number, segment.text, self.tree, segment.span)) for share, segment in ranked]
        return [replace(citation, support=round(min(1.0, share), 3)) for share, citation in made]


def _terms(claim: str, language: str) -> list[str]:
    return list(dict.fromkeys(query_terms(claim, language)))[:_MOST_WORDS]


@dataclass(frozen=True, slots=True)
class _Number:
    """A number of a text, with the words before and after it."""

    text: str
    before: str
    after: str

    def is_like(self, other: _Number) -> bool:
        """Tell whether another number stands in the same place: beside the same word, or a year where this is one."""
        if self.text == other.text or bool(_YEAR.fullmatch(self.text)) is not bool(_YEAR.fullmatch(other.text)):
            return False
        beside = (self.before and self.before == other.before) or (self.after and self.after == other.after)
        return bool(beside or _YEAR.fullmatch(self.text))


def _numbers_of(text: str) -> list[_Number]:
    pieces = [next(iter(figures_of(piece)), piece.lower()) for piece in _PIECE.findall(text)]
    beside = ["", *pieces, ""]
    return [_Number(piece, beside[n], beside[n + 2]) for n, piece in enumerate(pieces) if piece[0].isdigit()]


def check_claim(claim: Claim, pages: Sequence[ClaimPage]) -> CheckedClaim:
    """Check one claim against pages; where it cites pages by number, against these."""
    cited = [page for page in pages if page.number in claim.numbers] or list(pages)
    language = guess_language(claim.text)
    quotes = [quote for quote in QUOTED.findall(claim.text) if len(quote.split()) > 2 or not quote.isascii()]
    for quote in quotes:
        if not any(locate(quote, page.tree) for page in cited):
            return CheckedClaim(claim.text, "not supported", 0.0, (), f"no page has the words \u201c{quote}\u201d")
    names, figures = names_of(claim.text, language), sorted(figures_of(claim.text))
    results = [(page.held(claim.text, language, names, figures), page) for page in cited]
    held, page = max(results, key=lambda result: result[0].support)
    verdict: Verdict = "not supported"
    if held.support >= _PARTLY:
        doubted = held.support < _SUPPORTED or held.missing or held.rival
        verdict = "partly" if doubted else "supported"
    reason = ""
    if held.missing:
        reason = f"the page does not have: {', '.join(held.missing)}"
    elif held.rival:
        reason = f"the page says {held.rival[1]} where the claim says {held.rival[0]}"
    elif verdict == "supported" and max(held.shares) >= _NEAR and _denies(claim.text, held):
        verdict, reason = "partly", "one of them says \u201cnot\u201d, and the other does not"
    elif not held.segments:
        reason = _NOTHING
    return CheckedClaim(claim.text, verdict, round(held.support, 3), tuple(page.cite(held)), reason)


def check_statements(statements: Sequence[tuple[Claim, bool]], references: Sequence[Reference]) -> list[CheckedClaim]:
    """Return the statements of an answer, each with its verdict and the sentence that decides.

    A statement that may rest on a summary of an index gets none: a summary is no page.

    :param statements: each with whether a segment of the evidence supports it, by words or by meaning. Where one does,
        it is partly supported at least.
    """
    pages = {one.number: ClaimPage(one.number, one.tree) for one in references if one.origin is None}
    summaries = {one.number for one in references if one.origin is not None}
    result: list[CheckedClaim] = []
    for claim, is_supported in checked(statements):
        cited = {number for number in claim.numbers if number in pages or number in summaries}
        if summaries & cited or (summaries and not cited):
            continue
        told = check_claim(claim, list(pages.values()))
        if is_supported and told.verdict == "not supported":
            told = replace(told, verdict="partly", reason=_NEAR_IN_MEANING if told.reason == _NOTHING else told.reason)
        result.append(replace(told, citations=told.citations[:1]))
    return result


def _denies(claim: str, held: _Held) -> bool:
    """Tell whether the claim or the segment that is nearest to it denies, and the other does not."""
    nearest = max(zip(held.shares, held.segments, strict=True), key=lambda one: one[0])[1]
    return bool(_NOT.search(claim)) is not bool(_NOT.search(nearest.text))


def names_of(text: str, language: str) -> list[str]:
    """Return the words of a sentence that are written as names; the first word counts where another name follows."""
    if language in _NOUNS:
        return []
    words = _NAME.findall(text)
    capital = [word[:1].isupper() and word.lower() not in QUERY_NOISE for word in words]
    return list(
        dict.fromkeys(
            _OWN.sub("", word)
            for place, word in enumerate(words)
            if capital[place] and (place or (len(words) > 1 and capital[1])) and word.lower() != "i"
        )
    )
