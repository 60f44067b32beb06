"""Metrics of what a reader answered, and HtmlRAG's of short answers in the evidence.

HtmlRAG's EM and Hit@1: how many of the annotated short answers the response, or the evidence, contains.

Both are those of the released script (``calculate_short_answer_EM``): the answer and the text are normalised as by
SQuAD (:func:`.matching.squad_normalise`), and the answer must be a part of the text. Of an answer with several
spellings one is enough. Table 5 measures the reference text instead of the response: here the visible evidence.

Exact match and token F1 of SQuAD, and QASPER's F1 by answer type.

Both normalise as SQuAD's script (:func:`.matching.squad_normalise`). SQuAD takes the best of all annotated answers, in
any spelling. QASPER takes the best of the annotators' answers (``Question.references``), where ``Yes``, ``No`` and
``Unanswerable`` stand for answers of these types; as in its script, a question counts for the type of the answer that
it agrees with most (``Question.reference_kinds``), and of equals for the first.

Accuracy over choices: reads the letter, or the text, of one choice out of a reply.

A reply that names no choice, or several, is counted as wrong, and apart: ``readable`` is the share of replies that name
exactly one.

BLEU: of each answer (RAPTOR, appendix H), and of all answers together (HtmlRAG's ELI5).

``bleu1`` and ``bleu4`` are means of ``nltk.translate.bleu_score.sentence_bleu``, the best of the references taken one
by one, as in AllenNLP's script for NarrativeQA with RAPTOR's changes: smoothing, and weights .25 × 4 instead of the
fourth order alone. RAPTOR does not say which smoothing; it is ``method1`` (.1 for an order without a match). Words are
those of NLTK's Penn Treebank tokenizer, in the sentences of Prunus instead of Punkt's, whose model is a download; a Han
or kana letter is a word.

``bleu`` is ``sacrebleu``'s BLEU of a corpus with all references and its tokenizer ``13a``, from 0 to 1. The script of
HtmlRAG differs where an answer has several references: it takes the length of the shortest instead of the nearest.

METEOR without WordNet: words match when they, or their Porter stems, are equal; synonyms never match.

It is NLTK's METEOR with an empty dictionary of synonyms, and so never above the METEOR of papers: hence its name. Words
are those of :func:`words_of`, as RAPTOR tokenizes before it matches (appendix H).

ROUGE-L by the package ``rouge-score``: F of the longest common subsequence with the best reference.

``rouge_l`` takes words as they are, as HtmlRAG's script; ``rouge_l_stem`` takes their English stems, as the script of
NarrativeQA, whose limit of 100 words is not applied. The package's own words have only the letters a to z and digits:
where a reference has letters of another script, words are runs of letters and digits, and each Han or kana letter is
one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from prunus.core.text.words import sentences
from prunus_evals.errors import MetricError
from prunus_evals.metrics import Metric
from prunus_evals.metrics.matching import contains, normalise, occurs, references_of, spaced, squad_normalise, words
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


SHORT_ANSWERS_METRICS = (
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


TOKEN_F1_METRICS = (
    Metric("exact_match", "answer", "response is one of the answers, word for word", _exact, SQUAD),
    Metric("token_f1", "answer", "F1 of the words of the response and the best answer", _f1, SQUAD),
    Metric("qasper_f1", "answer", "F1 of the words of the response and the best annotator's answer", _any_kind, QASPER),
    *(
        Metric(f"qasper_f1_{kind}", "answer", f"the same where {meaning}", _of_kind(kind), QASPER)
        for kind, meaning in KINDS.items()
    ),
)


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NOT_ON = r"(?!\w)(?!,?\s{0,9}(?:or|and)\b)"
_LETTER = (
    re.compile(r"\A[\W_]*([A-Za-z])[\W_]*\Z"),  # alone
    re.compile(
        r"\A[\s*_\"'\[(]{0,9}([A-Za-z])[*_\"'\])]{0,9}(?:[.):]|\n|\Z)(?!\s{0,9}(?:or|and)\b)"
    ),  # first, with a mark
    re.compile(r"\b(?i:answer|choice|option)(?i: is)?[\s:*_\"'\[(]{1,9}([A-Z])\b(?!['\u2019])"),
    re.compile(r"[\[(]([A-Za-z])[\])]"),
)


def read_choice(reply: str, choices: Sequence[str], letters: bool = True) -> int | None:
    """Return the place of the choice that a reply names, from 0; None where it names none, or several.

    The first of these that finds something decides: the whole reply is a choice's text, or a letter; the reply begins
    with a letter and a mark, as ``B.``; it says ``the answer is B``; it has a letter in brackets; it begins with the
    text of a choice, and does not go on with ``or`` or ``and``; it contains the text of a choice that is not a part of
    another choice in it.

    :param letters: whether the choices were shown with letters.
    """
    plain, texts = _trimmed(reply), [_trimmed(choice) for choice in choices]
    if plain in texts:
        return _one([place for place, text in enumerate(texts) if text == plain])
    for pattern in _LETTER if letters else ():
        places = {LETTERS.index(letter.upper()) for letter in pattern.findall(reply)}
        if places := {place for place in places if place < len(choices)}:
            return _one([*places])
    begun = [text for text in texts if text and re.match(re.escape(text) + _NOT_ON, plain)]
    if begun:
        return _one([place for place, text in enumerate(texts) if text == max(begun, key=len)])
    found = [place for place, text in enumerate(texts) if text and occurs(text, plain)]
    return _one([a for a in found if not any(a != b and texts[a] in texts[b] != texts[a] for b in found)])


def _trimmed(text: str) -> str:
    return normalise(text).strip(" .*_\"'")


def _one(places: Sequence[int]) -> int | None:
    return places[0] if len(places) == 1 else None


def _read(question: Question, output: Output) -> int | None:
    """Return the place that the answer names; None where it cannot be read.

    :raises MetricError: the right choice is none of the choices, or is not published.
    """
    if question.correct == -1:
        raise MetricError("the right choice is not published: take another part of the set, or other metrics")
    if not 0 <= question.correct < len(question.choices):
        raise MetricError(f"choice number {question.correct + 1} is right, of {len(question.choices)}")
    return read_choice(output.answer or "", question.choices, letters=question.kind == "choice")


def _applies(question: Question, output: Output) -> bool:
    return output.answer is not None and bool(question.choices)


def _accuracy(question: Question, output: Output) -> float | None:
    return float(_read(question, output) == question.correct) if _applies(question, output) else None


def _readable(question: Question, output: Output) -> float | None:
    if not _applies(question, output):
        return None
    return float(read_choice(output.answer or "", question.choices, letters=question.kind == "choice") is not None)


CHOICES_METRICS = (
    Metric("accuracy", "answer", "right choice; a reply that cannot be read is wrong", _accuracy),
    Metric("readable", "answer", "reply names exactly one choice", _readable),
)


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
BLEU_METRICS = (
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


METEOR_METRICS = (
    Metric(
        "meteor_exact_stem",
        "answer",
        "METEOR without synonyms, best reference",
        _meteor,
        "nltk; Lavie and Agarwal 2007",
        ("nltk",),
    ),
)


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


ROUGE_METRICS = (
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

METRICS = (
    *SHORT_ANSWERS_METRICS, *TOKEN_F1_METRICS, *CHOICES_METRICS, *BLEU_METRICS, *METEOR_METRICS, *ROUGE_METRICS
)  # fmt: skip
