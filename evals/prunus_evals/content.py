"""Task ``content``: how well the main content of a news page is the article that a person marked.

The measure is that of the article-extraction-benchmark: runs of four words, precision and recall of each page, and F of
their means. People marked the article's text without its title heading and without captions, which main content keeps;
``prunus:body`` leaves both out before it is measured, ``prunus:main`` does not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

import prunus
from prunus_evals import stats
from prunus_evals.errors import UnknownName
from prunus_evals.records import Article
from prunus_evals.split import Half
from prunus_evals.visible import html_text

SYSTEMS: Final = ("prunus:body", "prunus:main", "prunus:whole")
_WORD: Final = re.compile(r"\w+")
_RUN: Final = 4


@dataclass(frozen=True, slots=True)
class Scored:
    """Precision and recall of the runs of four words of one page."""

    system: str
    page: str
    precision: float
    recall: float


def cleaner(name: str) -> Callable[[str], str]:
    """Return a function from HTML to the text that a system takes for content.

    :raises UnknownName: there is no such system.
    """
    if name not in SYSTEMS:
        raise UnknownName(f"unknown system {name}; the systems are: {', '.join(SYSTEMS)}")

    def text(html: str) -> str:
        output = prunus.clean(html, main=name != "prunus:whole")
        return _body_text(output) if name == "prunus:body" else html_text(output)

    return text


def _body_text(html: str) -> str:
    """Return the visible text without title headings and captions."""
    page = LexborHTMLParser(html)
    page.strip_tags(["h1", "figcaption"], recursive=True)
    return html_text(page.html or "")


def run(articles: Sequence[Article], names: Sequence[str]) -> list[Scored]:
    """Take the main content of every page with every system, and compare it with the marked article."""
    found = []
    for name in names:
        clean = cleaner(name)
        for article in articles:
            found.append(Scored(name, article.page, *precision_recall(article.body, clean(article.html))))
    return found


def precision_recall(marked: str, text: str) -> tuple[float, float]:
    """Return which share of the text's runs of four words stand in the marked text, and the other way round."""
    wanted, got = _runs(marked), _runs(text)
    both = sum((wanted & got).values())
    return both / max(sum(got.values()), 1), both / max(sum(wanted.values()), 1)


def _runs(text: str) -> Counter[tuple[str, ...]]:
    """Return the runs of four words of a text, with their counts; of a shorter text the whole."""
    words = _WORD.findall(text)
    return Counter(tuple(words[start : start + _RUN]) for start in range(max(1, len(words) - _RUN + 1)) if words)


def summary(scored: Sequence[Scored], wanted: Half) -> dict[str, Any]:
    """Return F, precision and recall of each system, with 95 % intervals of F by drawing pages."""
    systems = {}
    for name in dict.fromkeys(item.system for item in scored):
        pairs = np.asarray([(item.precision, item.recall) for item in scored if item.system == name])
        precision, recall = pairs.mean(axis=0)
        systems[name] = {
            "f": stats.interval(float(_f(pairs.mean(axis=0))), len(pairs), partial(_drawn, pairs)).numbers(None),
            "precision": float(precision), "recall": float(recall), "pages": len(pairs),
        }  # fmt: skip
    return {"half": wanted, "task": "content", "systems": systems}


def _drawn(pairs: NDArray[Any]) -> NDArray[Any]:
    """Return F for each sample of pages."""
    draws = np.random.default_rng(stats.SEED).integers(0, len(pairs), (stats.SAMPLES, len(pairs)))
    return _f(pairs[draws].mean(axis=1))


def _f(means: NDArray[Any]) -> NDArray[Any]:
    """Return the harmonic mean of precision and recall, along the last axis."""
    precision, recall = means[..., 0], means[..., 1]
    return np.asarray(2 * precision * recall / np.maximum(precision + recall, 1e-9))


def table(result: dict[str, Any]) -> str:
    """Return a summary as plain text."""
    lines = [f"content, {result['half']} half: runs of four words of the articles that people marked"]
    for name, found in result["systems"].items():
        middle = stats.shown(found["f"])
        both = f"precision {found['precision']:.3f}, recall {found['recall']:.3f}"
        lines.append(f"{name:14} F {middle}; {both}, {stats.counted(found['pages'], 'page')}")
    return "\n".join(lines)
