"""Measurements of parts of Prunus that no question of the harness reaches: cleaning, main content, sentences.

``articles``: the share of a news article's words that cleaning keeps, in order; people marked the articles.
``content``: how well the main content of the same pages is the article (runs of four words, as in the
article-extraction-benchmark). People marked no title and no captions: ``prunus:body`` leaves both out before it is
measured, ``prunus:main`` does not. ``kinds``: the same for pages of seven kinds (WCXB's dev pages), by words, in halves
by site; the weights are learned on all of these pages, and ``prunus train content --check`` measures weights that are
not. ``extraction``: which sentences of ten pages an extractor without a model chooses
(HotpotQA). A sentence counts as chosen when half of its letters lie in a passage; a passage that covers no sentence
counts as a wrong choice. ``segmentation``: published cases that are cut into exactly the right sentences. ``claims``:
whether a check calls the claims of WiCE supported that people call so, and no others.
"""

from __future__ import annotations

import ast
import html
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

import prunus
from prunus import Documents
from prunus.core.text.bm25 import query_terms, stem, tokens
from prunus.core.text.words import sentences
from prunus_evals import stats
from prunus_evals.data import Row, reference_folder, rows
from prunus_evals.errors import UnknownName
from prunus_evals.metrics import matching
from prunus_evals.metrics.tagged import precision_recall_f1
from prunus_evals.records import OutputFormat
from prunus_evals.reference import Reference
from prunus_evals.split import Half, Wanted, digest, half
from prunus_evals.systems.sentences import best
from prunus_evals.tasks import paragraphs as paragraph_tasks
from prunus_evals.visible import html_text, visible_text

Rows = dict[str, dict[str, Any]]
"""Row of a table → measure → a number, or mean, low and high."""


@dataclass(frozen=True, slots=True)
class Part:
    """A measurement.

    :param systems: what is measured, and what ``--systems`` may name; none: there is nothing to choose.
    :param default: the systems that are measured where none is named.
    :param run: from half, systems and limit to the rows of the table.
    """

    name: str
    title: str
    run: Callable[[Half, Sequence[str], int | None], Rows]
    systems: tuple[str, ...] = ()
    default: tuple[str, ...] = ()


def measure(name: str, wanted: Half, systems: Sequence[str] = (), limit: int | None = None) -> dict[str, Any]:
    """Return the numbers of a part on a half, ready for JSON.

    :param systems: by default those of the part.
    :param limit: pages or questions at most.
    """
    part = PARTS[name]
    return {"part": name, "half": wanted, "rows": part.run(wanted, systems or part.default, limit)}


def table(result: Mapping[str, Any]) -> str:
    """Return a result as a text table."""
    found: Rows = result["rows"]
    columns = list(dict.fromkeys(name for row in found.values() for name in row))
    lines = [f"{result['part']}, {result['half']} half: {PARTS[result['part']].title}"]
    lines.append(f"{'':18}" + "".join(f"{name:>24}" for name in columns))
    for name, row in found.items():
        lines.append(f"{name:18}" + "".join(f"{_shown(row.get(column)):>24}" for column in columns))
    return "\n".join(lines)


def _shown(number: Any) -> str:
    if isinstance(number, list):
        return stats.shown(number)
    return f"{number:.4f}" if isinstance(number, float) else "-" if number is None else str(number)


def _unknown(part: str, name: str) -> UnknownName:
    return UnknownName.among("system", name, PARTS[part].systems)


# --- articles and main content -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Article:
    """A page, and the text that people marked as its article."""

    page: str
    html: str
    body: str


def load_articles(wanted: Half, limit: int | None = None) -> list[Article]:
    """Return the articles of a half, in the order of their key's digest."""
    found = [
        Article(row["id"], row["html"], row["article_body"])
        for row in rows("clean/articles")
        if half(row["id"]) == wanted
    ]
    return sorted(found, key=lambda article: digest(article.page))[:limit]


def cleaner(name: str) -> tuple[Callable[[str], str], OutputFormat]:
    """Return a cleaning function and the format of its output.

    :raises UnknownName: there is no such cleaner.
    """
    if name == "reference":
        reference = Reference(reference_folder())
        return lambda page: str(reference.call("clean", page)), "html"
    format: OutputFormat
    for format in ("html", "markdown", "text"):
        if name == f"prunus:{format}":
            return partial(prunus.clean, format=format), format
    raise _unknown("articles", name)


def articles(wanted: Half, names: Sequence[str], limit: int | None) -> Rows:
    """Clean every article with every cleaner, and count the words that survive in order."""
    found: Rows = {}
    for name in names:
        clean, format = cleaner(name)
        counts = {
            one.page: matching.body_survives(one.body, html_text(one.html), visible_text(clean(one.html), format))
            for one in load_articles(wanted, limit)
        }
        words = sum(could for _, could in counts.values())
        shares = {page: [kept / could] for page, (kept, could) in counts.items()}
        found[name] = {
            "survived": sum(kept for kept, _ in counts.values()) / words, "words": words,
            "mean of pages": stats.mean(shares).numbers(None), "worst page": min(share for share, in shares.values()),
        }  # fmt: skip
    return found


def content(wanted: Half, names: Sequence[str], limit: int | None) -> Rows:
    """Compare the main content of every page with the marked article."""
    found: Rows = {}
    for name in names:
        pairs = np.asarray(
            [precision_recall(one.body, main_content(name, one.html)) for one in load_articles(wanted, limit)]
        )
        precision, recall = pairs.mean(axis=0)
        f = stats.interval(float(_f(pairs.mean(axis=0))), len(pairs), partial(_drawn, pairs)).numbers(None)
        found[name] = {"f": f, "precision": float(precision), "recall": float(recall), "pages": len(pairs)}
    return found


def main_content(name: str, page: str) -> str:
    """Return the text of a page that a system takes for content.

    :raises UnknownName: there is no such system.
    """
    if name not in PARTS["content"].systems:
        raise _unknown("content", name)
    output = prunus.clean(page, main=name != "prunus:whole")
    if name == "prunus:body":
        body = LexborHTMLParser(output)
        body.strip_tags(["h1", "figcaption"], recursive=True)
        output = body.html or ""
    return html_text(output)


KINDS = ("article", "documentation", "service", "forum", "product", "listing", "collection")
"""The kinds of pages of WCXB."""


@dataclass(frozen=True, slots=True)
class OfKind:
    """A page of WCXB: its kind, and the text that people marked."""

    page: str
    kind: str
    html: str
    marked: str


def load_kinds(wanted: Wanted, limit: int | None = None) -> list[OfKind]:
    """Return the pages of a half of the sites in which people marked any word, in the order of their key's digest."""
    found = [
        OfKind(row["id"], row["page_type"], row["html"], row["main_content"])
        for row in rows("clean/wcxb")
        if _WORD.search(row["main_content"]) and (wanted == "all" or half(_site(row["url"] or row["id"])) == wanted)
    ]
    return sorted(found, key=lambda one: digest(one.page))[:limit]


def _site(address: str) -> str:
    """Return the last two parts of the host of an address."""
    return ".".join((urlsplit(address).hostname or address).split(".")[-2:])


def kinds(wanted: Half, names: Sequence[str], limit: int | None) -> Rows:
    """Compare the main content of every page of seven kinds with the marked text."""
    pages = load_kinds(wanted, limit)
    found: Rows = {}
    for name in names:
        extract = _content_by(name)
        begun = time.perf_counter()
        texts = [extract(one.html) for one in pages]
        seconds = time.perf_counter() - begun
        found[name] = by_kind(pages, texts) | {"ms a page": 1000 * seconds / len(pages)}
    return found


def by_kind(pages: Sequence[OfKind], texts: Sequence[str]) -> dict[str, Any]:
    """Return the mean F of words over all pages, with its interval, and over the pages of each kind."""
    scores = {one.page: [word_f(one.marked, text)] for one, text in zip(pages, texts, strict=True)}
    of_kind = {kind: [scores[one.page][0] for one in pages if one.kind == kind] for kind in KINDS}
    means = {kind: sum(some) / len(some) for kind, some in of_kind.items() if some}
    return {"all": stats.mean(scores).numbers(None), **means, "pages": len(pages)}


def word_f(marked: str, text: str) -> float:
    """Return F of the words of a text, as a bag, against the marked text."""
    wanted, got = (Counter(_WORD.findall(one.lower())) for one in (marked, text))
    return 2 * sum((wanted & got).values()) / max(sum(wanted.values()) + sum(got.values()), 1)


def _content_by(name: str) -> Callable[[str], str]:
    """Return what gives the main content of a page as text.

    :raises UnknownName: there is no such system, or its package is not installed.
    """
    try:
        if name == "trafilatura":
            extract = import_module(name).extract
            return lambda page: extract(page, include_comments=True) or ""
        if name == "resiliparse":
            plain_text = import_module("resiliparse.extract.html2text").extract_plain_text
            return lambda page: str(plain_text(page, main_content=True, comments=True))
    except ImportError:
        raise _unknown("kinds", f"{name} (pip install {name})") from None
    return partial(main_content, name)


_WORD = re.compile(r"\w+")


def precision_recall(marked: str, text: str) -> tuple[float, float]:
    """Return which share of the text's runs of four words stand in the marked text, and the other way round."""
    wanted, got = _runs(marked), _runs(text)
    both = sum((wanted & got).values())
    return both / max(sum(got.values()), 1), both / max(sum(wanted.values()), 1)


def _runs(text: str) -> Counter[tuple[str, ...]]:
    """Return the runs of four words of a text, with their counts; of a shorter text the whole."""
    words = _WORD.findall(text)
    return Counter(tuple(words[start : start + 4]) for start in range(max(1, len(words) - 3)) if words)


def _drawn(pairs: NDArray[Any]) -> NDArray[Any]:
    """Return F for each sample of pages."""
    draws = np.random.default_rng(stats.SEED).integers(0, len(pairs), (stats.SAMPLES, len(pairs)))
    return _f(pairs[draws].mean(axis=1))


def _f(means: NDArray[Any]) -> NDArray[Any]:
    """Return the harmonic mean of precision and recall, along the last axis."""
    precision, recall = means[..., 0], means[..., 1]
    return np.asarray(2 * precision * recall / np.maximum(precision + recall, 1e-9))


# --- extraction ----------------------------------------------------------------------------------

BUDGET = 4096
"""Tokens of evidence for Prunus: more than all pages of a question have."""

Pages = Sequence[tuple[str, Sequence[str]]]
"""The pages of a question: their titles and sentences."""


def choice(name: str, question: str, pages: Pages) -> tuple[set[tuple[int, int]], int]:
    """Return the sentences that a system chooses, as (page, sentence), and how many passages cover no sentence.

    :raises UnknownName: there is no such system.
    """
    every = [(page, number) for page, (_, texts) in enumerate(pages) for number in range(len(texts))]
    kind, _, count = name.partition(":")
    if name == "prunus":
        return _chosen(question, pages)
    if name == "everything":
        return set(every), 0
    if kind in ("bm25", "bm25title") and count.isdigit():
        titled = kind == "bm25title"
        texts = [(f"{pages[page][0]} " if titled else "") + pages[page][1][number] for page, number in every]
        return {every[index] for index in best(question, texts, int(count))}, 0
    raise _unknown("extraction", name)


def _chosen(question: str, pages: Pages) -> tuple[set[tuple[int, int]], int]:
    documents = prunus.read([as_page(title, texts) for title, texts in pages])
    numbers = {tree.document: number for number, tree in enumerate(documents.trees)}
    found: set[tuple[int, int]] = set()
    strays = 0
    for passage in prunus.extract(question, documents, BUDGET):
        page = numbers[passage.spans[0].document]
        named = covered(passage.text, pages[page][1])
        found.update((page, number) for number in named)
        strays += not named
    return found, strays


def as_page(title: str, texts: Sequence[str]) -> str:
    """Return a paragraph as an HTML page."""
    heading, text = html.escape(title), html.escape("".join(texts))
    return f"<!DOCTYPE html><title>{heading}</title><h1>{heading}</h1><p>{text}</p>"


def covered(passage: str, texts: Sequence[str]) -> list[int]:
    """Return the indexes of the sentences with at least half of their letters in a passage, without white space."""
    letters = ["".join(sentence.split()) for sentence in texts]
    whole, part = "".join(letters), "".join(passage.split())
    start = whole.find(part)
    if start < 0 or not part:
        return []
    found, begin = [], 0
    for number, sentence in enumerate(letters):
        shared = min(begin + len(sentence), start + len(part)) - max(begin, start)
        if sentence and 2 * shared >= len(sentence):
            found.append(number)
        begin += len(sentence)
    return found


def extraction(wanted: Half, names: Sequence[str], limit: int | None) -> Rows:
    """Score the chosen sentences of every question; the first system is compared with each of the others."""
    asked = [row for row in rows(paragraph_tasks.HOTPOT_DATA) if half(row["id"]) == wanted]
    asked = sorted(asked, key=lambda row: digest(row["id"]))[:limit]
    found: Rows = {}
    first: dict[str, list[float]] = {}
    for name in names:
        scores = {row["id"]: _scored(name, row) for row in asked}
        values = {
            measure: {key: [one[measure]] for key, one in scores.items()} for measure in next(iter(scores.values()))
        }
        found[name] = {measure: stats.mean(by_page).numbers(None) for measure, by_page in values.items()}
        if first:
            found[name][f"{names[0]} minus this, F1"] = stats.difference(first, values["f1"]).numbers(None)
        first = first or values["f1"]
    return found


def _scored(name: str, row: Row) -> dict[str, float]:
    paragraphs = paragraph_tasks.paragraphs(row)
    wanted = {(page, number) for page, one in enumerate(paragraphs) for number in one.supporting}
    chosen, strays = choice(name, row["question"], [(one.title, one.sentences) for one in paragraphs])
    return score(chosen, strays, wanted)


def score(chosen: set[tuple[int, int]], strays: int, wanted: set[tuple[int, int]]) -> dict[str, float]:
    """Return precision, recall and F1 of a choice, all 0 for an empty one, and its size."""
    size = len(chosen) + strays
    precision, recall, f1 = precision_recall_f1(len(chosen & wanted), size, len(wanted))
    return {"f1": f1, "precision": precision, "recall": recall, "chosen": float(size)}


# --- segmentation --------------------------------------------------------------------------------


def segmentation(wanted: Half, names: Sequence[str] = (), limit: int | None = None) -> Rows:
    """Score the cut of the published cases of a half; the text of a case decides its half."""
    return cut_scores([case for case in rows("sentences/pysbd") if half(case["text"]) == wanted][:limit])


def cut_scores(cases: Iterable[Mapping[str, Any]], cut: Callable[[str], Sequence[str]] = sentences) -> Rows:
    """Count, for every language, the cases that are exactly right, and those that lose no text.

    White space is not compared: the references leave out or repair spaces and line breaks, which a lossless cut keeps.
    """
    counts: dict[str, list[int]] = {}
    for case in cases:
        found = cut(case["text"])
        for language in ("all", case["lang"]):
            count = counts.setdefault(language, [0, 0, 0])
            count[0] += 1
            count[1] += right(found, case["sentences"])
            count[2] += "".join(found) == case["text"]
    return {
        language: {"cases": total, "right": good / total, "lossless": whole / total}
        for language, (total, good, whole) in sorted(counts.items(), key=lambda item: (-item[1][0], item[0]))
    }


def right(found: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether two lists of sentences are the same but for white space."""
    bare = ["".join(sentence.split()) for sentence in found]
    return [sentence for sentence in bare if sentence] == ["".join(sentence.split()) for sentence in wanted]


# --- claims --------------------------------------------------------------------------------------


def claims(wanted: Half, names: Sequence[str] = ("prunus",), limit: int | None = None) -> Rows:
    """Score the checks of claims against the pages that they cite; the article of a claim decides its half.

    :param names: ``prunus``, ``words``, or ``judge:SPEC``, a language model as judge.
    """
    cases = [row for row in rows("check/wice") if half(_literal(row["meta"])["claim_title"]) == wanted][:limit]
    found: Rows = {name: _claim_scores(cases, _check_of(name)) for name in names}
    return found


def _check_of(name: str) -> Verdicts:
    """Return the check of a name.

    :raises UnknownName: there is none.
    """
    if name.startswith("judge:"):
        return partial(_by_prunus, llm=name.partition(":")[2])
    if name not in _CHECKS:
        raise UnknownName.among("check", name, [*_CHECKS, "judge:SPEC"])
    return _CHECKS[name]


Verdicts = Callable[[str, Documents], tuple[bool, str]]
"""From a claim and a page to whether the page supports it, and the first quote that decides."""


def _claim_scores(cases: Sequence[Row], check: Verdicts) -> dict[str, Any]:
    """Return the balanced accuracy of supported against the rest, its two shares, and further shares.

    ``agree``: claims on which check and people agree; ``deciding``: quotes that people named, too.
    """
    right: dict[bool, list[bool]] = {True: [], False: []}
    deciding: list[bool] = []
    for case in cases:
        sentences_of = [text for text in _literal(case["evidence"]) if text.strip()]
        page = "".join(f"<p>{html.escape(text)}</p>" for text in sentences_of)
        supported, quote = check(case["claim"], prunus.read(f"<main>{page}</main>"))
        truth = case["label"] == "supported"
        right[truth].append(supported is truth)
        named = {number for numbers in _literal(case["supporting_sentences"]) or () for number in numbers}
        if named and case["label"] != "not_supported":
            texts = [text.strip() for number, text in enumerate(_literal(case["evidence"])) if number in named]
            deciding.append(any(text in quote or quote in text for text in texts if text and quote))
    shares = {truth: sum(of) / max(1, len(of)) for truth, of in right.items()}
    return {
        "claims": len(cases),
        "balanced": (shares[True] + shares[False]) / 2,
        "supported": shares[True],
        "others": shares[False],
        "agree": sum(sum(of) for of in right.values()) / max(1, len(cases)),
        "deciding": sum(deciding) / max(1, len(deciding)),
    }


def _literal(value: Any) -> Any:
    """Return a field that the file holds as the text of a Python literal."""
    return ast.literal_eval(value) if isinstance(value, str) else value


def _by_prunus(claim: str, page: Documents, llm: str = "") -> tuple[bool, str]:
    results = prunus.check(claim, page, llm=llm).claims
    cited = [citation for result in results for citation in result.citations]
    return all(result.verdict == "supported" for result in results), cited[0].quote if cited else ""


def _by_words(claim: str, page: Documents) -> tuple[bool, str]:
    """Decide by the sentence that holds most of the claim's words: at least half of them."""
    [tree] = page.trees
    wanted = set(query_terms(claim))
    shares = [(len(wanted & set(stem(tokens(text)))) / max(1, len(wanted)), text) for text in sentences(tree.canonical)]
    share, text = max(shares, default=(0.0, ""))
    return share >= 0.5, text.strip()


_CHECKS: dict[str, Verdicts] = {"prunus": _by_prunus, "words": _by_words}

_CLEANERS = ("prunus:html", "prunus:markdown", "prunus:text")
_CONTENT = ("prunus:body", "prunus:main", "prunus:whole")
_EXTRACTORS = ("prunus", "bm25:3", "bm25title:3", "everything")
PARTS = {
    part.name: part
    for part in (
        Part("articles", "share of the words of news articles that cleaning keeps, in order", articles,
             (*_CLEANERS, "reference"), _CLEANERS),
        Part("content", "main content of news pages against the article that people marked", content,
             _CONTENT, _CONTENT),
        Part("kinds", "main content of pages of seven kinds against what people marked: F of words", kinds,
             (*_CONTENT[1:], "trafilatura", "resiliparse"), _CONTENT[1:]),
        Part("extraction", "sentences of ten paragraphs that support the answer, without a model", extraction,
             _EXTRACTORS, _EXTRACTORS),
        Part("segmentation", "published cases that are cut into exactly the right sentences", segmentation),
        Part("claims", "claims of Wikipedia against the pages that they cite", claims,
             (*_CHECKS, "judge:SPEC"), tuple(_CHECKS)),
    )
}  # fmt: skip
