"""METEOR without WordNet: words match when they, or their Porter stems, are equal; synonyms never match.

It is NLTK's METEOR with an empty dictionary of synonyms, and so never above the METEOR of papers: hence its name. Words
are those of :func:`.bleu.words_of`, as RAPTOR tokenizes before it matches (appendix H).
"""

from __future__ import annotations

from collections.abc import Sequence

from prunus_evals.metrics import Metric
from prunus_evals.metrics.bleu import words_of
from prunus_evals.metrics.matching import references_of
from prunus_evals.records import Output, Question


class _NoSynonyms:
    """Stands for WordNet, and knows no word."""

    def synsets(self, word: str) -> list[object]:
        return []


def meteor(answer: str, references: Sequence[str]) -> float:
    """Return the METEOR of an answer against the best of its references."""
    from nltk.translate.meteor_score import meteor_score

    return float(
        meteor_score([words_of(reference) for reference in references], words_of(answer), wordnet=_NoSynonyms())
    )


def _meteor(question: Question, output: Output) -> float | None:
    references = references_of(question)
    return meteor(output.answer, references) if output.answer is not None and references else None


METRICS = (
    Metric(
        "meteor_exact_stem",
        "answer",
        "METEOR without synonyms, best reference",
        _meteor,
        "nltk; Lavie and Agarwal 2007",
        ("nltk",),
    ),
)
