"""Mixed ranking of pages: snippet and content as items of their own, beside each of them alone.

``rank/dureader``: five pages a question, those that annotators chose count. ``rank/nq_passages``: the passage that
answers the question and the nine hardest others by BM25. Neither has snippets of a search engine: **title and first
100 characters stand for the snippet, a proxy**. Candidates are shuffled by a seed of their own for each pool, so
that no order of theirs helps. Switches for dates and sites are not measured: neither set has any.

``search/serps`` and ``search/crag`` show that real results go through; too few for a score, so none is given.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from prunus.answer.rank_pages import Beyond, Candidate, Scores, by_embedder, by_hybrid, rank
from prunus.core.registry import make_engine
from prunus.core.types import Hit
from prunus.pages.clean.walk import clean_tree
from prunus_evals import stats
from prunus_evals.bm25 import BM25
from prunus_evals.data import rows
from prunus_evals.errors import UnknownName
from prunus_evals.split import Half, digest, half

SNIPPET = 100
"""Characters of a text that stand, behind its title, for a snippet."""

POOL = 10
TASKS = ("dureader", "nq_passages")
SYSTEMS = ("mixed", "snippet", "content", "shuffled", "passages")
MEASURES = ("ndcg", "hit@1", "hit@3")
SCORERS = ("hybrid", "embed")


@dataclass(frozen=True, slots=True)
class Pool:
    """One question and its candidates, shuffled.

    :param key: what the half goes by.
    :param good: addresses of the candidates that count.
    """

    key: str
    question: str
    candidates: Sequence[Candidate]
    good: frozenset[str]


def load(task: str, wanted: Half, limit: int | None = None) -> list[Pool]:
    """Return the pools of a half, in the order of their keys' digests."""
    if task not in TASKS:
        raise UnknownName(f"no task of mixed ranking is called {task}; there are {', '.join(TASKS)}")
    found = _dureader(wanted) if task == "dureader" else _nq(wanted)
    return sorted(islice(found, limit), key=lambda pool: digest(pool.key))


def _dureader(wanted: Half) -> Iterator[Pool]:
    for row in rows("rank/dureader"):
        if half(row["question"]) == wanted and any(page["is_selected"] for page in row["documents"]):
            texts = [(page["title"], "\n".join(page["paragraphs"])) for page in row["documents"]]
            good = [number for number, page in enumerate(row["documents"]) if page["is_selected"]]
            yield _pool(row["question"], row["question"], texts, good)


def _nq(wanted: Half) -> Iterator[Pool]:
    known = {row["gold_text"]: row["gold_title"] for row in rows("rank/nq_passages")}
    texts = list(known)
    places = {text: place for place, text in enumerate(texts)}
    index = BM25(texts)
    for row in rows("rank/nq_passages"):
        if half(row["gold_title"]) != wanted:
            continue
        gold = places[row["gold_text"]]
        hardest = [
            place for place in np.argsort(-index.scores(row["question"]), kind="stable").tolist() if place != gold
        ]
        chosen = [gold, *hardest[: POOL - 1]]
        yield _pool(row["gold_title"], row["question"], [(known[texts[p]], texts[p]) for p in chosen], [0])


def _pool(key: str, question: str, texts: Sequence[tuple[str, str]], good: Sequence[int]) -> Pool:
    """Shuffle candidates by a seed that is the pool's own; their addresses say nothing of their places."""
    order = list(range(len(texts)))
    random.Random(digest(key + question)).shuffle(order)
    urls = {number: f"https://example.org/{digest(question + str(number))[:12]}" for number in order}
    candidates = [
        Candidate(
            Hit(urls[number], texts[number][0], f"{texts[number][0]} {texts[number][1][:SNIPPET]}"), texts[number][1]
        )
        for number in order
    ]
    return Pool(key, question, candidates, frozenset(urls[number] for number in good))


def scores_of(scorer: str, embedder: str = "static") -> Scores:
    """Return how items are scored: ``hybrid`` or ``embed``."""
    if scorer not in SCORERS:
        raise UnknownName(f"no scorer of mixed ranking is called {scorer}; there are {', '.join(SCORERS)}")
    engine = make_engine("embedder", embedder)
    return by_hybrid(engine) if scorer == "hybrid" else by_embedder(engine)


def order_of(pool: Pool, system: str, scores: Scores) -> list[str]:
    """Return the addresses of a pool as a system ranks them."""
    given = list(pool.candidates)
    if system == "shuffled":
        return [one.hit.url for one in given]
    if system == "snippet":
        given = [Candidate(one.hit) for one in given]
    elif system == "content":
        given = [Candidate(Hit(one.hit.url, ""), one.content) for one in given]
    elif system not in ("mixed", "passages"):
        raise UnknownName(f"no system of mixed ranking is called {system}; there are {', '.join(SYSTEMS)}")
    beyond = Beyond(passages=system == "passages")
    return [one.hit.url for one in rank([pool.question], given, scores, top=len(given), beyond=beyond)]


def measures(order: Sequence[str], good: frozenset[str]) -> dict[str, float]:
    """Return nDCG of the whole order, and whether one that counts is first or among the first three."""
    gain = sum(1 / math.log2(place + 2) for place, url in enumerate(order) if url in good)
    ideal = sum(1 / math.log2(place + 2) for place in range(len(good)))
    return {"ndcg": gain / ideal, **{f"hit@{k}": float(any(url in good for url in order[:k])) for k in (1, 3)}}


def run(task: str, pools: Sequence[Pool], scorer: str, which: Half) -> dict[str, Any]:
    """Measure every system on one task, ready for JSON; each is compared with ``mixed``."""
    scores = scores_of(scorer)
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    for system in SYSTEMS:
        for pool in pools:
            for name, value in measures(order_of(pool, system, scores), pool.good).items():
                values.setdefault(system, {}).setdefault(name, {}).setdefault(pool.key, []).append(value)
    systems: dict[str, Any] = {}
    for system, found in values.items():
        numbers = {name: _triple(stats.mean(one)) for name, one in found.items()}
        if system != "mixed":
            numbers["mixed_minus_this"] = _triple(stats.difference(values["mixed"]["ndcg"], found["ndcg"]))
        systems[system] = numbers
    return {"half": which, "task": task, "scorer": scorer, "pools": len(pools), "snippet": "proxy", "systems": systems}


def _triple(one: stats.Estimate) -> list[float]:
    return [one.mean, one.low, one.high]


def table(result: Mapping[str, Any]) -> str:
    """Return a result as plain text."""
    lines = [
        f"{result['task']}, {result['half']} half, {result['pools']} pools, {result['scorer']}; snippets are a proxy"
    ]
    lines.append(f"{'system':10}{'nDCG':>22}{'hit@1':>8}{'hit@3':>8}   mixed minus it, nDCG")
    for name, one in result["systems"].items():
        gap = "{:+.3f} [{:+.3f} {:+.3f}]".format(*one["mixed_minus_this"]) if "mixed_minus_this" in one else ""
        ndcg = "{:.3f} [{:.3f} {:.3f}]".format(*one["ndcg"])
        lines.append(f"{name:10}{ndcg:>22}{one['hit@1'][0]:8.3f}{one['hit@3'][0]:8.3f}   {gap}".rstrip())
    return "\n".join(lines)


# --- wiring --------------------------------------------------------------------------------------


def wiring() -> list[dict[str, Any]]:
    """Rank the real results of both search sets once, and count what went through; no score."""
    scores = scores_of("hybrid")
    sources: dict[str, Callable[[], Iterator[tuple[str, list[Candidate]]]]] = {"serps": _serps, "crag": _crag}
    found = []
    for name, source in sources.items():
        count = {"queries": 0, "candidates": 0, "ranked": 0, "by_content": 0, "first_is_the_providers": 0}
        for query, candidates in source():
            ranked = rank([query], candidates, scores, top=len(candidates)) if candidates else []
            count["queries"] += 1
            count["candidates"] += len(candidates)
            count["ranked"] += len(ranked)
            count["by_content"] += sum(one.by == "content" for one in ranked)
            count["first_is_the_providers"] += bool(ranked) and ranked[0].hit.url == candidates[0].hit.url
        found.append({"set": name, **count})
    return found


def _serps() -> Iterator[tuple[str, list[Candidate]]]:
    for row in rows("search/serps"):
        hits = [Hit(str(one["url"]), str(one["title"] or ""), str(one["snippet"] or "")) for one in row["results"]]
        yield row["query"], [Candidate(hit) for hit in hits if hit.url]


def _crag() -> Iterator[tuple[str, list[Candidate]]]:
    for row in rows("search/crag"):
        candidates = []
        for one in row["search_results"]:
            content = clean_tree(one["page_result"]).canonical if one["page_result"] else ""
            hit = Hit(one["page_url"], str(one.get("page_name") or ""), one["page_snippet"] or "")
            candidates.append(Candidate(hit, content))
        yield row["query"], candidates
