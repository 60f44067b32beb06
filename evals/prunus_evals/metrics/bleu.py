"""BLEU: of each answer (RAPTOR, appendix H), and of all answers together (HtmlRAG's ELI5).

``bleu1`` and ``bleu4`` are means of ``nltk.translate.bleu_score.sentence_bleu``, the best of the references taken one
by one, as in AllenNLP's script for NarrativeQA with RAPTOR's changes: smoothing, and weights .25 × 4 instead of the
fourth order alone. RAPTOR does not say which smoothing; it is ``method1`` (.1 for an order without a match). Words are
those of NLTK's Penn Treebank tokenizer, in the sentences of Prunus instead of Punkt's, whose model is a download; a Han
or kana letter is a word.

``bleu`` is ``sacrebleu``'s BLEU of a corpus with all references and its tokenizer ``13a``, from 0 to 1. The script of
HtmlRAG differs where an answer has several references: it takes the length of the shortest instead of the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence

from prunus.core.text.words import sentences
from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import references_of, spaced
from prunus_evals.records import Output, Question

ORDERS = 4
SMOOTHING = "exp"
"""Sacrebleu's default; it matters only where all answers together have no match of an order."""


def words_of(text: str) -> list[str]:
    """Return the words of a text as NLTK's ``word_tokenize`` cuts them, apart from its sentences."""
    from nltk.tokenize import NLTKWordTokenizer

    tokenizer = NLTKWordTokenizer()
    return [word for sentence in sentences(spaced(text)) for word in tokenizer.tokenize(sentence)]


def sentence_bleu(answer: str, references: Sequence[str], weights: tuple[float, ...]) -> float:
    """Return the smoothed BLEU of an answer against the best of its references."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smoothing, words = SmoothingFunction().method1, words_of(answer)
    return max(
        float(sentence_bleu([words_of(reference)], words, weights=weights, smoothing_function=smoothing))
        for reference in references
    )


def counts(answer: str, references: Sequence[str]) -> list[float]:
    """Return what BLEU adds up: matches and n-grams of the orders 1 to 4, and the lengths of answer and reference."""
    from sacrebleu.metrics import BLEU

    found = BLEU(smooth_method=SMOOTHING).corpus_score([answer], [[reference] for reference in references])
    return [*map(float, found.counts), *map(float, found.totals), float(found.sys_len), float(found.ref_len)]


def combine(sums: Sequence[float]) -> float:
    """Return the BLEU, from 0 to 1, of summed counts."""
    from sacrebleu.metrics import BLEU

    numbers = [round(number) for number in sums]
    found = BLEU.compute_bleu(numbers[:ORDERS], numbers[ORDERS : 2 * ORDERS], *numbers[2 * ORDERS :], SMOOTHING)
    return float(found.score) / 100


def _bleu1(question: Question, output: Output) -> float | None:
    references = references_of(question)
    return sentence_bleu(output.answer, references, (1.0,)) if output.answer is not None and references else None


def _bleu4(question: Question, output: Output) -> float | None:
    references = references_of(question)
    return sentence_bleu(output.answer, references, (0.25,) * 4) if output.answer is not None and references else None


def _counts(question: Question, output: Output) -> list[float] | None:
    references = references_of(question)
    return counts(output.answer, references) if output.answer is not None and references else None


def _alone(question: Question, output: Output) -> float | None:
    found = _counts(question, output)
    return None if found is None else combine(found)


NARRATIVE = "RAPTOR (arXiv 2401.18059), appendix H; nltk"
METRICS = (
    Metric("bleu1", "answer", "BLEU-1, smoothed, best reference", _bleu1, NARRATIVE, ("nltk",)),
    Metric("bleu4", "answer", "BLEU-4, smoothed, best reference", _bleu4, NARRATIVE, ("nltk",)),
    Metric(
        "bleu",
        "answer",
        "BLEU of all answers together",
        _alone,
        "sacrebleu; HtmlRAG's ELI5",
        ("sacrebleu",),
        _counts,
        combine,
    ),
)
