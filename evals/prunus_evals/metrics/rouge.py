"""ROUGE-L by the package ``rouge-score``: F of the longest common subsequence with the best reference.

``rouge_l`` takes words as they are, as HtmlRAG's script; ``rouge_l_stem`` takes their English stems, as the script of
NarrativeQA, whose limit of 100 words is not applied. The package's own words have only the letters a to z and digits:
where a reference has letters of another script, words are runs of letters and digits, and each Han or kana letter is
one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prunus_evals.errors import MetricError
from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import references_of, spaced, words
from prunus_evals.records import Output, Question

_OTHER_SCRIPT = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f]")


class _Words:
    """Cuts a text of any script into words."""

    def tokenize(self, text: str) -> list[str]:
        return words(spaced(text))


def rouge_l(answer: str, references: Sequence[str], stem: bool = False) -> float:
    """Return the F of the longest common subsequence of words, with the best reference.

    :param stem: compare the words' English stems.
    :raises MetricError: no reference has a word.
    """
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import DefaultTokenizer

    tokens = _Words() if any(map(_OTHER_SCRIPT.search, references)) else DefaultTokenizer(stem)
    known = [reference for reference in references if tokens.tokenize(reference)]
    if not known:
        raise MetricError("no reference has a word")
    scorer = RougeScorer(["rougeL"], tokenizer=tokens)
    return float(max(scorer.score(reference, answer)["rougeL"].fmeasure for reference in known))


def _plain(question: Question, output: Output) -> float | None:
    references = references_of(question)
    return rouge_l(output.answer, references) if output.answer is not None and references else None


def _stemmed(question: Question, output: Output) -> float | None:
    references = references_of(question)
    return rouge_l(output.answer, references, stem=True) if output.answer is not None and references else None


METRICS = (
    Metric("rouge_l", "answer", "ROUGE-L, best reference", _plain, "rouge-score; HtmlRAG", ("rouge_score",)),
    Metric(
        "rouge_l_stem",
        "answer",
        "ROUGE-L of stems, best reference",
        _stemmed,
        "rouge-score; NarrativeQA's script in AllenNLP",
        ("rouge_score",),
    ),
)
