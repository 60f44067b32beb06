"""Task ``mixed``: rank pages by snippet and content as separate items, against ranking by one of them alone.

``rank/dureader``: five pages for each question; the pages that annotators chose are right. ``rank/nq_passages``: the
passage that answers the question, and the nine hardest others by BM25. Neither data set has snippets of a search
engine: **the title and the first 100 characters serve as the snippet, a proxy**. Each pool is shuffled by its own
seed, so that the order of the candidates carries no information. The options for dates and sites are not measured,
because neither data set has dates or sites.

``search/serps`` and ``search/crag`` show that real results can be ranked; they are too few for a score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from prunus.answer.rank_pages import Beyond, Candidate, Scores, by_embedder, by_hybrid, rank
from prunus.core.registry import make_engine
from prunus.core.types import Hit
from prunus.pages.clean.walk import clean_tree
from prunus_evals import stats, tasks
from prunus_evals.data import rows
from prunus_evals.errors import UnknownName
from prunus_evals.metrics import ranked
from prunus_evals.records import Question
from prunus_evals.split import Half

TASKS = ("dureader", "nq_passages")
SYSTEMS = ("mixed", "snippet", "content", "shuffled", "passages")
MEASURES = ("ndcg", "hit@1", "hit@3")
SCORERS = ("hybrid", "embed")


@dataclass(frozen=True, slots=True)
class Pool:
    """One question and its candidates, shuffled.

    :param key: decides the half of the pool.
    :param good: addresses of the right candidates.
    """

    key: str
    question: str
    candidates: Sequence[Candidate]
    good: frozenset[str]


def load(task: str, wanted: Half, limit: int | None = None) -> list[Pool]:
    """Return the pools of a half, in the order of their keys' digests.

    :raises UnknownName: there is no such task.
    """
    if task not in TASKS:
        raise UnknownName(f"unknown task {task}; the tasks are: {', '.join(TASKS)}")
    asked = (question for page in tasks.groups(task, wanted) for question in page if question.gold)
    return [pool_of(question) for question in islice(asked, limit)]


def pool_of(question: Question) -> Pool:
    """Return the documents of a question as candidates."""
    documents = question.documents
    found = [Candidate(Hit(page.url, page.title, page.snippet), page.content) for page in documents]
    return Pool(question.page, question.question, found, frozenset(span.document for span in question.gold))


def scores_of(scorer: str, embedder: str = "static") -> Scores:
    """Return the scoring function of items: ``hybrid`` or ``embed``.

    :raises UnknownName: there is no such scorer.
    """
    if scorer not in SCORERS:
        raise UnknownName(f"unknown scorer {scorer}; the scorers are: {', '.join(SCORERS)}")
    engine = make_engine("embedder", embedder)
    return by_hybrid(engine) if scorer == "hybrid" else by_embedder(engine)


def order_of(pool: Pool, system: str, scores: Scores) -> list[str]:
    """Return the addresses of a pool in the order of a system's ranking.

    :raises UnknownName: there is no such system.
    """
    candidates = list(pool.candidates)
    if system == "shuffled":
        return [candidate.hit.url for candidate in candidates]
    if system == "snippet":
        candidates = [Candidate(candidate.hit) for candidate in candidates]
    elif system == "content":
        candidates = [Candidate(Hit(candidate.hit.url, ""), candidate.content) for candidate in candidates]
    elif system not in ("mixed", "passages"):
        raise UnknownName(f"unknown system {system}; the systems are: {', '.join(SYSTEMS)}")
    beyond = Beyond(passages=system == "passages")
    ranked = rank([pool.question], candidates, scores, top=len(candidates), beyond=beyond)
    return [candidate.hit.url for candidate in ranked]


def measures(order: Sequence[str], good: frozenset[str]) -> dict[str, float]:
    """Return nDCG of the whole order, and whether a right candidate is first or among the first three."""
    return {"ndcg": ranked.ndcg(order, good), **{f"hit@{k}": ranked.hit(order, good, k) for k in (1, 3)}}


def run(task: str, pools: Sequence[Pool], scorer: str, which: Half) -> dict[str, Any]:
    """Measure every system on one task, ready for JSON; each system is compared with ``mixed``."""
    scores = scores_of(scorer)
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    for system in SYSTEMS:
        for pool in pools:
            for name, value in measures(order_of(pool, system, scores), pool.good).items():
                values.setdefault(system, {}).setdefault(name, {}).setdefault(pool.key, []).append(value)
    systems: dict[str, Any] = {}
    for system, found in values.items():
        numbers = {name: stats.mean(by_pool).numbers(None) for name, by_pool in found.items()}
        if system != "mixed":
            numbers["mixed_minus_this"] = stats.difference(values["mixed"]["ndcg"], found["ndcg"]).numbers(None)
        systems[system] = numbers
    return {"half": which, "task": task, "scorer": scorer, "pools": len(pools), "snippet": "proxy", "systems": systems}


def table(result: Mapping[str, Any]) -> str:
    """Return a result as a text table."""
    lines = [
        f"{result['task']}, {result['half']} half, {result['pools']} pools, {result['scorer']}; snippets are a proxy"
    ]
    lines.append(f"{'system':10}{'nDCG':>22}{'hit@1':>8}{'hit@3':>8}   mixed minus it, nDCG")
    for name, row in result["systems"].items():
        gap = stats.shown(row["mixed_minus_this"], signed=True) if "mixed_minus_this" in row else ""
        ndcg = stats.shown(row["ndcg"])
        lines.append(f"{name:10}{ndcg:>22}{row['hit@1'][0]:8.3f}{row['hit@3'][0]:8.3f}   {gap}".rstrip())
    return "\n".join(lines)


# --- wiring --------------------------------------------------------------------------------------


def wiring() -> list[dict[str, Any]]:
    """Rank the real results of both search sets once, and count queries, candidates and ranked pages."""
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
            count["by_content"] += sum(candidate.by == "content" for candidate in ranked)
            count["first_is_the_providers"] += bool(ranked) and ranked[0].hit.url == candidates[0].hit.url
        found.append({"set": name, **count})
    return found


def _serps() -> Iterator[tuple[str, list[Candidate]]]:
    for row in rows("search/serps"):
        hits = [Hit(str(hit["url"]), str(hit["title"] or ""), str(hit["snippet"] or "")) for hit in row["results"]]
        yield row["query"], [Candidate(hit) for hit in hits if hit.url]


def _crag() -> Iterator[tuple[str, list[Candidate]]]:
    for row in rows("search/crag"):
        candidates = []
        for result in row["search_results"]:
            content = clean_tree(result["page_result"]).canonical if result["page_result"] else ""
            hit = Hit(result["page_url"], str(result.get("page_name") or ""), result["page_snippet"] or "")
            candidates.append(Candidate(hit, content))
        yield row["query"], candidates
