"""HtmlRAG's EM and Hit@1: how many of the annotated short answers the response, or the evidence, contains.

Both are those of the released script (``calculate_short_answer_EM``): the answer and the text are normalised as by
SQuAD (:func:`.matching.squad_normalise`), and the answer must be a part of the text. Of an answer with several
spellings one is enough. Table 5 measures the reference text instead of the response: here the visible evidence.
"""

from __future__ import annotations

from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import contains
from prunus_evals.records import Output, Question

SOURCE = "HtmlRAG (arXiv 2411.02959), section 4.2 and the released script"


def share(question: Question, text: str) -> float | None:
    """Return the share of a question's short answers that a text contains; None for a question without any."""
    if not question.answers:
        return None
    return sum(contains(text, question.spellings(answer)) for answer in question.answers) / len(question.answers)


def _response(question: Question, output: Output) -> float | None:
    return None if output.answer is None else share(question, output.answer)


def _evidence(question: Question, output: Output) -> float | None:
    return share(question, output.visible)


def _hit(value: float | None) -> float | None:
    return None if value is None else float(value > 0)


METRICS = (
    Metric("em_share", "answer", "share of the short answers that the response contains", _response, SOURCE),
    Metric(
        "hit1",
        "answer",
        "response contains one of the short answers",
        lambda question, output: _hit(_response(question, output)),
        SOURCE,
    ),
    Metric(
        "evidence_em_share",
        "evidence",
        "share of the short answers that the evidence contains",
        _evidence,
        f"{SOURCE}, Table 5",
    ),
    Metric(
        "evidence_hit1",
        "evidence",
        "evidence contains one of the short answers",
        lambda question, output: _hit(_evidence(question, output)),
        f"{SOURCE}, Table 5",
    ),
)
