"""Search of a large index by Lance's own means: words by its inverted index, vectors by its index of vectors.

Both give candidates; their cosines and BM25 scores are then computed from the full vectors and the counted words. What
is approximate: which nodes are among the best, how many nodes hold a frequent term, and the means and deviations of all
scores, which are estimated by a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.errors import BadInput
from ....core.ports import Ints
from ...nodes import RUN, Candidates, NodeSearch, ScoreMoments
from .._words import K1, B, terms_of
from .rows import LEAF, WORDS, document_key, ints, matrix
from .table import LanceTable, listed

_SAMPLE: Final = 2_000
"""Nodes from which means, deviations and the number of nodes that hold a frequent term are estimated."""
_COUNTED: Final = 1_000
"""Nodes that hold a term and are counted; more are estimated."""
_RAREST: Final = 1e-6
"""Weight of a term that more than half of the nodes hold, as in SQLite."""
_DESCRIBED: Final = ["id", "layer", "document", "place", "tokens", "own", *WORDS]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a search needs of all leaves, or of all summaries.

    :param where: the condition of the kind.
    :param words, tokens: means of a node.
    :param languages: of the documents, for the stemmer.
    :param sample: vectors and words of some nodes, as an Arrow table.
    :param holding: how many nodes hold a term, by term; filled by searches.
    """

    where: str
    count: int
    words: float
    tokens: float
    languages: Sequence[str]
    sample: Any
    holding: dict[str, int] = field(default_factory=dict)


def statistics(table: LanceTable, version: Any, where: str, languages: Sequence[str]) -> Statistics:
    """Count the nodes of a kind."""
    light = table.read(version, ["id", "tokens", "words"], where)
    ids, count = np.sort(ints(light, "id")), light.num_rows
    drawn = ids[np.linspace(0, max(0, count - 1), min(count, _SAMPLE)).astype(np.int64)] if count else ids
    sample = table.among(version, ["own", *WORDS], "id", drawn.tolist(), where)
    words, tokens = (float(ints(light, name).mean()) if count else 1.0 for name in ("words", "tokens"))
    return Statistics(where, count, words, tokens, languages, sample)


def matches(table: LanceTable, version: Any, where: str, terms: Sequence[str]) -> dict[int, float]:
    """Return the BM25 score of every node that holds a term; all nodes are read."""
    rows = table.read(version, ["id", *WORDS], where)
    frequencies, words, ids = _frequencies(table, rows, terms), ints(rows, "words"), ints(rows, "id")
    holding = [int((frequency > 0).sum()) for frequency in frequencies]
    scores = _bm25(frequencies, words, _weights(holding, len(ids)), float(words.mean()) if len(words) else 1.0)
    matched = np.flatnonzero(sum(frequencies, np.zeros(len(ids))))
    return dict(zip(ids[matched].tolist(), scores[matched].tolist(), strict=True))


def candidates(
    table: LanceTable, version: Any, search: NodeSearch, kinds: Mapping[bool, Statistics], place: str
) -> Candidates:  # fmt: skip
    """Return the best nodes by cosine and by BM25 with the leaves around them.

    :param kinds: of the leaves (True), and of the summaries (False) where they are wanted.
    :raises BadInput: a document is not in the index.
    """
    inside = ""
    if search.documents:
        keys = {document_key(id): id for id in search.documents}
        rows = table.among(version, ["key", "id"], "key", keys, "kind = 'document'").to_pylist()
        for key in keys.keys() - {row["key"] for row in rows}:
            raise BadInput(f"{place}: there is no document {keys[key]!r}", subject=keys[key])
        inside = f" AND document IN ({listed([row['id'] for row in rows])})"
    reach = search.reach_of(kinds[True].tokens)
    parts: list[list[NDArray[Any]]] = []
    spreads: list[ScoreMoments] = []
    for leaves, known in kinds.items():
        terms = terms_of(search.query, known.languages)
        holding = [_holding(table, version, known, term) for term in terms]
        weights = _weights(holding, known.count)
        where = known.where + inside
        best = {*_nearest(table, version, search, where), *_matching(table, version, terms, where, search.count)}
        rows = table.among(version, _DESCRIBED, "id", sorted(best), known.where)
        siblings = np.zeros(rows.num_rows, np.int64)
        if leaves:
            rows, siblings = _with_neighbours(table, version, rows, reach)
        vectors, with_own = matrix(rows.column("own"), len(search.vector))
        cosine = np.full(rows.num_rows, -2.0)
        cosine[with_own] = vectors @ np.asarray(search.vector, np.float32)
        bm25 = _bm25(_frequencies(table, rows, terms), ints(rows, "words"), weights, known.words)
        columns = [ints(rows, name) for name in ("id", "layer", "document", "place", "tokens")]
        order = np.lexsort((columns[3], columns[2])) if leaves else np.argsort(columns[0])
        parts.append([column[order] for column in (*columns, cosine, bm25, siblings)])
        sampled, _ = matrix(known.sample.column("own"), len(search.vector))
        cosines: Any = sampled @ np.asarray(search.vector, np.float32) if len(sampled) else np.zeros(1)
        spreads.append(
            ScoreMoments((float(cosines.mean()), float(cosines.std())), moments_of(holding, weights, known.count))
        )
    spreads.append(ScoreMoments((0.0, 0.0), (0.0, 0.0)))  # where no summaries are asked
    make: Any = Candidates  # the columns are in the order of its fields
    result: Candidates = make(*map(np.concatenate, zip(*parts, strict=True)), reach, *spreads[:2])
    return result


def _nearest(table: LanceTable, version: Any, search: NodeSearch, where: str) -> list[int]:
    """Return the nodes whose embeddings are nearest to the question's."""
    nearest = {"column": "own", "q": np.asarray(search.vector, np.float32), "k": search.count, "metric": "dot",
               "nprobes": 24, "refine_factor": 2}  # fmt: skip
    with table.errors():
        found = version.to_table(columns=["id", "_distance"], nearest=nearest, filter=where, prefilter=True)
    return [int(id) for id in ints(found, "id")]


def _matching(table: LanceTable, version: Any, terms: Sequence[str], where: str, count: int) -> list[int]:
    """Return the nodes that Lance ranks best for the terms."""
    if not terms:
        return []
    from lance.query import MultiMatchQuery

    with table.errors():
        query = MultiMatchQuery(" ".join(terms), list(WORDS[1:]), boosts=[1.0, 0.5])
        found = version.to_table(
            columns=["id", "_score"], full_text_query=query, filter=where, prefilter=True, limit=count
        )
    return [int(id) for id in ints(found, "id")]


def _holding(table: LanceTable, version: Any, known: Statistics, term: str) -> int:
    """Return how many nodes hold a term: counted where they are few, else estimated by the sample."""
    if term not in known.holding:
        count = len(_matching(table, version, [term], known.where, _COUNTED))
        if count >= _COUNTED:
            (frequency,) = _frequencies(table, known.sample, [term])
            share = float((frequency > 0).mean()) if len(frequency) else 0.0
            count = max(count, round(share * known.count))
        known.holding[term] = count
    return known.holding[term]


def _with_neighbours(table: LanceTable, version: Any, best: Any, reach: int) -> tuple[Any, Ints]:
    """Return some leaves and those around them whose scores count, and the number of leaves of each one's document."""
    numbers = sorted({*ints(best, "document").tolist()})
    records = table.among(version, ["id", "tokens"], "id", numbers, "kind = 'document'")
    sizes = dict(zip(ints(records, "id").tolist(), ints(records, "tokens").tolist(), strict=True))
    wanted: dict[int, set[int]] = {}
    for document, place in zip(ints(best, "document").tolist(), ints(best, "place").tolist(), strict=True):
        span = min(reach, max(1, sizes[document] // RUN))
        wanted.setdefault(document, set()).update(range(max(0, place - span), min(sizes[document], place + span + 1)))
    spots = [document << 32 | place for document, places in wanted.items() for place in places]
    rows = table.among(version, _DESCRIBED, "spot", sorted(spots), LEAF)
    return rows, np.asarray([sizes[number] for number in ints(rows, "document").tolist()], np.int64)


# --- BM25 ------------------------------------------------------------------------------------------


def _frequencies(table: LanceTable, rows: Any, terms: Sequence[str]) -> list[NDArray[np.float64]]:
    """Return the weighted frequency of each term in each row; words of headings count half."""
    compute, counts = table.arrow.compute, np.zeros(len(terms) * rows.num_rows)
    wanted = table.arrow.array(list(terms), table.arrow.string())
    for name, weight in zip(WORDS[1:], (1.0, 0.5), strict=True):
        words = compute.utf8_split_whitespace(rows.column(name).combine_chunks())
        number = compute.index_in(words.flatten(), value_set=wanted)
        hits = compute.is_valid(number)
        row = compute.list_parent_indices(words).filter(hits).to_numpy()
        cell = number.filter(hits).to_numpy().astype(np.int64) * rows.num_rows + row
        counts += weight * np.bincount(cell, minlength=len(counts))
    return list(counts.reshape(len(terms), rows.num_rows))


def _weights(holding: Sequence[int], count: int) -> list[float]:
    """Return the inverse document frequency of each term, by the formula of SQLite's full text."""
    return [max(_RAREST, float(np.log((count - each + 0.5) / (each + 0.5)))) if each else 0.0 for each in holding]


def _bm25(
    frequencies: Sequence[NDArray[np.float64]], words: Ints, weights: Sequence[float], average: float
) -> NDArray[np.float64]:
    """Return the BM25 score of each row."""
    length = K1 * (1 - B + B * words / (average or 1.0))
    scores = np.zeros(len(words))
    for frequency, weight in zip(frequencies, weights, strict=True):
        scores += weight * frequency * (K1 + 1) / (frequency + length)
    return scores


def moments_of(holding: Sequence[int], weights: Sequence[float], count: int) -> tuple[float, float]:
    """Estimate mean and deviation of the BM25 scores of all nodes by how many hold each term.

    A term counts its weight in a node that holds it, as one of mean length does that holds it once; terms are taken as
    independent.
    """
    shares, each = np.asarray(holding, np.float64) / max(1, count), np.asarray(weights, np.float64)
    return float((shares * each).sum()), float(np.sqrt((shares * (1 - shares) * each**2).sum()))
