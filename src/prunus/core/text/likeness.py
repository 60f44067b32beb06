"""Bring the cosines of any embedder to one scale: 0 for texts that have nothing in common, 1 for equal texts.

The cosine of unrelated texts depends on the embedder and on the language. With multilingual-e5-small it is .8; with
the vectors of wordllama 0 in English, .3 in German and .9 in Arabic. So a bar on the plain cosine refuses nothing
there. Each text is compared with six sentences of its own language that have nothing in common with it or each other
(``unrelated.json``), and the upper end of these cosines, their median and one standard deviation, becomes 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from ..ports import Embedder, Floats, Vectors
from .words import guess_language

Numbers = NDArray[np.float64]

_READ: Final = 400
"""Code points of a text that tell its language."""


_LEARNED: Final = frozenset({"en", "de", "zh", "ja"})
"""Languages whose cosines the weights of quotes know; of Japanese they know the script."""

_LEARNED_WITH: Final = "static"
"""Identity of the embedder whose scale the weights of quotes know: ``wordllama``."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Sentences of one language that have nothing in common.

    :param language: ISO 639-1 code.
    :param texts: the sentences.
    :param static: the upper end of their cosines by the vectors of ``wordllama``, the scale of quotes.
    :param parts: their runs of one to three letters.
    """

    language: str
    texts: tuple[str, ...]
    static: float
    parts: frozenset[str]


def sample_of(text: str) -> Sample:
    """Return the sample of a text's language, or of the one that shares most runs of letters with the text."""
    samples, parts = _samples(), _parts(text[:_READ])
    known = samples.get(guess_language(text, ""))
    return known or max(samples.values(), key=lambda sample: len(parts & sample.parts))


class Likeness:
    """Compares texts by an embedder; 0: they have nothing in common, 1: they are equal. Less than 0 is possible.

    :param embedder: its vectors of each language's sample are kept.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._known: dict[Sample, Vectors] = {}

    def of(self, text: str, others: Sequence[str], kind: Literal["query", "document"] = "document") -> Numbers:
        """Return the likeness of a text and each of others, float64 [others].

        :param kind: what the text is; the others are documents.
        """
        if kind == "document":
            vectors = self.embedder.embed([text, *others], kind)
            vector, vectors = vectors[0], vectors[1:]
        else:
            vector, vectors = self.embedder.embed([text], kind)[0], self.embedder.embed(others, "document")
        return self.of_cosines(text, vector, dot_products(vectors, vector))

    def of_cosines(self, text: str, vector: Vectors, cosines: Floats) -> Numbers:
        """Return cosines of a text's vector and others as likeness, float64 [cosines]."""
        zero = self._zero(sample_of(text), vector)
        return np.asarray((np.asarray(cosines, np.float64) - zero) / max(1.0 - zero, 1e-3), np.float64)

    def beside_words(self, text: str, vector: Vectors, cosines: Floats) -> Numbers:
        """Return cosines as they are added to BM25 once they are divided by the largest.

        Narrow cosines would be flattened by that, so they become likeness. Those of ``wordllama`` stay as they are:
        where they are narrow, in languages that it hardly knows, flat ones rank better (docs/lab/log.md).
        """
        if self.embedder.identity == _LEARNED_WITH:
            return np.asarray(cosines, np.float64)
        return self.of_cosines(text, vector, cosines)

    def as_learned(self, text: str, vector: Vectors, cosines: Floats) -> Numbers:
        """Return cosines on the scale that the weights of quotes know, for any embedder.

        It is that of the vectors of ``wordllama`` in English, German and Chinese. Those stay as they are, and others
        are put on their scale; in languages with narrower cosines all are put on the German scale.
        """
        sample = sample_of(text)
        zero = sample.static if sample.language in _LEARNED else min(sample.static, _samples()["de"].static)
        if self.embedder.identity == _LEARNED_WITH and zero == sample.static:
            return np.asarray(cosines, np.float64)
        return zero + (1.0 - zero) * self.of_cosines(text, vector, cosines)

    def _zero(self, sample: Sample, vector: Vectors) -> float:
        """Return the upper end of the cosines of a vector and texts that have nothing to do with it."""
        if sample not in self._known:
            self._known[sample] = self.embedder.embed(sample.texts, "document")
        return upper_end(dot_products(self._known[sample], vector))


def dot_products(vectors: Vectors, vector: Vectors) -> Vectors:
    """Return the dot product of each row and a vector, float32 [rows].

    Equal rows give equal numbers. BLAS does not promise that: where its threads share the rows, the rows at a border
    are added in another order, so that the ranks of equal blocks would depend on the number of processors.
    """
    return np.asarray(np.einsum("ij,j->i", vectors, vector), np.float32)


def upper_end(cosines: Floats) -> float:
    """Return the median of cosines and one standard deviation, robust to one near text."""
    middle = float(np.median(cosines))
    return middle + 1.48 * float(np.median(np.abs(cosines - middle)))


@cache
def _samples() -> dict[str, Sample]:
    stored: dict[str, Any] = json.loads(Path(__file__).with_name("unrelated.json").read_text("utf-8"))
    return {
        language: Sample(language, tuple(one["texts"]), one["static"], frozenset(_parts(" ".join(one["texts"]))))
        for language, one in stored.items()
    }


def _parts(text: str) -> set[str]:
    letters = f" {' '.join(text.lower().split())} "
    return {letters[index : index + size] for size in (1, 2, 3) for index in range(len(letters) - size + 1)}
