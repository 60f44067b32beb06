"""Search of a large index by Lance's own means: words by its inverted index, vectors by its index of vectors.

Both give candidates. Their cosines are then computed from the full vectors; their BM25 scores are those of Lance. What
is approximate: which nodes are among the nearest, and the mean and deviation of all cosines, estimated by a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....core.errors import BadInput
from ....core.ports import Ints
from ...nodes import RUN, Candidates, NodeSearch, ScoreMoments
from .._best import largest, moments_of, scores_of
from .._words import K1, B, terms_of
from .rows import LEAF, WORDS, document_key, ints, matrix
from .table import LanceTable, listed

_SAMPLE: Final = 2_000
"""Nodes from which mean and deviation of the cosines are estimated."""
_RAREST: Final = 1e-6
"""Weight of a term that more than half of the nodes hold, as in SQLite."""
_DESCRIBED: Final = ["id", "layer", "document", "place", "tokens", "own"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a search needs of all leaves, or of all summaries.

    :param where: the condition of the kind.
    :param tokens: mean of a node.
    :param languages: of the documents, for the stemmer.
    :param sample: vectors of some nodes, as an Arrow table.
    """

    where: str
    count: int
    tokens: float
    languages: Sequence[str]
    sample: Any


def statistics(table: LanceTable, version: Any, where: str, languages: Sequence[str]) -> Statistics:
    """Count the nodes of a kind."""
    light = table.read(version, ["id", "tokens"], where)
    ids, count = np.sort(ints(light, "id")), light.num_rows
    drawn = ids[np.linspace(0, max(0, count - 1), min(count, _SAMPLE)).astype(np.int64)] if count else ids
    sample = table.among(version, ["own"], "id", drawn.tolist(), where)
    tokens = float(ints(light, "tokens").mean()) if count else 1.0
    return Statistics(where, count, tokens, languages, sample)


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
        matched, scores = _matching(table, version, terms_of(search.query, known.languages), known.where)
        where = known.where + inside
        best = {*_nearest(table, version, search, where)}
        allowed = np.arange(len(matched))
        if inside:
            allowed = np.flatnonzero(np.isin(matched, ints(table.read(version, ["id"], where), "id")))
        best.update(matched[largest(allowed, scores[allowed], search.count)].tolist())
        rows = table.among(version, _DESCRIBED, "id", sorted(best), where)
        siblings = np.zeros(rows.num_rows, np.int64)
        if leaves:
            rows, siblings = _with_neighbours(table, version, rows, reach)
        vectors, with_own = matrix(rows.column("own"), len(search.vector))
        cosine = np.full(rows.num_rows, -2.0)
        cosine[with_own] = vectors @ np.asarray(search.vector, np.float32)
        columns = [ints(rows, name) for name in ("id", "layer", "document", "place", "tokens")]
        bm25 = scores_of(columns[0], matched, scores)
        order = np.lexsort((columns[3], columns[2])) if leaves else np.argsort(columns[0])
        parts.append([column[order] for column in (*columns, cosine, bm25, siblings)])
        sampled, _ = matrix(known.sample.column("own"), len(search.vector))
        cosines: Any = sampled @ np.asarray(search.vector, np.float32) if len(sampled) else np.zeros(1)
        moments = moments_of(float(scores.sum()), float(scores @ scores), known.count)
        spreads.append(ScoreMoments((float(cosines.mean()), float(cosines.std())), moments))
    spreads.append(ScoreMoments((0.0, 0.0), (0.0, 0.0)))  # where no summaries are asked
    make: Any = Candidates  # the columns are in the order of its fields
    result: Candidates = make(*map(np.concatenate, zip(*parts, strict=True)), reach, *spreads[:2])
    return result


def _nearest(table: LanceTable, version: Any, search: NodeSearch, where: str) -> list[int]:
    """Return the nodes whose embeddings are nearest to the question's."""
    nearest = {"column": "own", "q": np.asarray(search.vector, np.float32), "k": search.count, "metric": "dot",
               "nprobes": 24, "refine_factor": 2}  # fmt: skip
    with table.errors():
        result = version.to_table(columns=["id", "_distance"], nearest=nearest, filter=where, prefilter=True)
    return [int(id) for id in ints(result, "id")]


def _matching(table: LanceTable, version: Any, terms: Sequence[str], where: str) -> tuple[Ints, NDArray[np.float64]]:
    """Return the nodes that hold a term, sorted, and the scores that Lance gives them."""
    if not terms:
        return np.zeros(0, np.int64), np.zeros(0)
    from lance.query import MultiMatchQuery

    with table.errors():
        query = MultiMatchQuery(" ".join(terms), list(WORDS[1:]), boosts=[1.0, 0.5])
        result = version.to_table(columns=["id", "_score"], full_text_query=query, filter=where, prefilter=True)
    ids = ints(result, "id")
    order = np.argsort(ids)
    return ids[order], np.asarray(result.column("_score").to_numpy(), np.float64)[order]


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
