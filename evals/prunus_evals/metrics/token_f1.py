"""Exact match and token F1 of SQuAD, and QASPER's F1 by answer type.

Both normalise as SQuAD's script (:func:`.matching.squad_normalise`). SQuAD takes the best of all annotated answers, in
any spelling. QASPER takes the best of the annotators' answers (``Question.references``), where ``Yes``, ``No`` and
``Unanswerable`` stand for answers of these types; as in its script, a question counts for the type of the answer that
it agrees with most (``Question.reference_kinds``), and of equals for the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from prunus_evals.errors import MetricError
from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import spaced, squad_normalise
from prunus_evals.records import Output, Question

SQUAD = "SQuAD (arXiv 1606.05250, 1806.03822), the official script"
QASPER = "QASPER (arXiv 2105.03011), the official script"
KINDS = {
    "extractive": "a passage answers",
    "abstractive": "free words answer",
    "boolean": "yes or no answers",
    "none": "nothing in the text answers",
}
"""The types of QASPER's answers, by their names in its script."""


def token_f1(answer: str, truth: str) -> float:
    """Return the F1 of the words that two answers share, each as often as it stands in both.

    A Han or kana letter is a word. Where one of them has no words, it is 1 if the other has none either (SQuAD 2.0).
    """
    got, wanted = (squad_normalise(spaced(text)).split() for text in (answer, truth))
    if not got or not wanted:
        return float(got == wanted)
    same = sum((Counter(got) & Counter(wanted)).values())
    return 2 * same / (len(got) + len(wanted))


def _truths(question: Question) -> list[str]:
    return [spelling for answer in question.answers for spelling in question.spellings(answer)]


def _exact(question: Question, output: Output) -> float | None:
    if output.answer is None or not question.answers:
        return None
    answer = squad_normalise(output.answer)
    return float(any(answer == squad_normalise(truth) for truth in _truths(question)))


def _f1(question: Question, output: Output) -> float | None:
    if output.answer is None or not question.answers:
        return None
    return max(token_f1(output.answer, truth) for truth in _truths(question))


def _qasper(question: Question, output: Output) -> tuple[float, str] | None:
    """Return the best F1 over the annotators, and the type of that answer; '' where types are not known.

    :raises MetricError: not every reference has a type.
    """
    if output.answer is None or not question.references:
        return None
    kinds = question.reference_kinds or ("",) * len(question.references)
    if len(kinds) != len(question.references):
        raise MetricError(f"{len(question.references)} references have {len(kinds)} kinds")
    if unknown := sorted({*kinds} - {"", *KINDS}):
        raise MetricError(f"unknown kind of reference {unknown[0]}; the kinds are: {', '.join(KINDS)}")
    scores = [token_f1(output.answer, reference) for reference in question.references]
    best = scores.index(max(scores))
    return scores[best], kinds[best]


def _of_kind(kind: str) -> Callable[[Question, Output], float | None]:
    def score(question: Question, output: Output) -> float | None:
        found = _qasper(question, output)
        return found[0] if found is not None and found[1] == kind else None

    return score


def _any_kind(question: Question, output: Output) -> float | None:
    found = _qasper(question, output)
    return None if found is None else found[0]


METRICS = (
    Metric("exact_match", "answer", "response is one of the answers, word for word", _exact, SQUAD),
    Metric("token_f1", "answer", "F1 of the words of the response and the best answer", _f1, SQUAD),
    Metric("qasper_f1", "answer", "F1 of the words of the response and the best annotator's answer", _any_kind, QASPER),
    *(
        Metric(f"qasper_f1_{kind}", "answer", f"the same where {meaning}", _of_kind(kind), QASPER)
        for kind, meaning in KINDS.items()
    ),
)
