"""The six sets of HtmlRAG: 400 questions each, and up to 20 whole web pages of a search for every question.

They are read as the authors release them: JSON lines with ``id``, ``question``, the pages as ``slimplmqr_results`` (a
list of ``url`` and ``html``), and the answers as ``answers``, ``short_answers`` or ``answer`` (the first that is there;
for ELI5 ``long_answers`` or ``answer``). A file with more questions is sampled.

The paper gives readers 4,096 and 131,072 tokens of evidence (``--budgets 4096`` and ``131072``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from prunus_evals.data import Lines, Row, find
from prunus_evals.records import About, Document, LeftOut, Question
from prunus_evals.tasks import Asked, Page, sample

VARIANTS = ("asqa", "hotpot-qa", "nq", "trivia-qa", "musique", "eli5")
QUESTIONS = 400
PAGES = 20
RESULTS = "slimplmqr_results"
SHORT = ("answers", "short_answers", "answer")
LONG = ("long_answers", "answer")
FILE = "sets/htmlrag/{0}/bing/binghtml-slimplmqr-{0}-test.jsonl"
ABOUT = About(
    title="HtmlRAG's questions with up to 20 web pages each",
    metrics=("em_share", "hit1", "evidence_em_share"),
    files=("|".join(FILE.format(name) for name in VARIANTS),),
    source=(
        "HtmlRAG-test, released by the authors (plageon/HtmlRAG, MIT; the folder html_data as it is); "
        "questions of ASQA, HotpotQA, Natural Questions, TriviaQA, MuSiQue and ELI5"
    ),
    variants=VARIANTS,
    half="all",
)
METRICS = {
    "hotpot-qa": ("em_share", "evidence_em_share"),
    "musique": ("em_share", "evidence_em_share"),
    "eli5": ("rouge_l", "bleu"),
}


def pages(use: Callable[[str], bool], variant: str = VARIANTS[0]) -> Iterator[Page]:
    """Yield the questions for whose id ``use`` is true, each with a function that reads its pages."""
    lines = Lines(find(FILE.format(variant), ABOUT.source))
    found: dict[str, tuple[int, str]] = {}
    for offset, row in lines:
        key = row.name("id")
        if key in found:
            raise row.wrong(f"the id {key} stands in the file twice")
        found[key] = offset, row.place
    for key in sample(found, QUESTIONS):
        if use(key):
            yield key, partial(_read, lines, *found[key], variant)


def _read(lines: Lines, offset: int, place: str, variant: str) -> Sequence[Asked]:
    row = lines.at(offset, place)
    key, results = row.name("id"), row.rows(RESULTS)
    if not results:
        return [LeftOut(key, key, "the search found no page")]
    answers = _answers(row, LONG if variant == "eli5" else SHORT)
    long = variant == "eli5"
    return [
        Question(
            id=key,
            task=f"htmlrag:{variant}",
            page=key,
            documents=[
                Document(f"{key}/{number}", page.text("html"), url=page.text("url"))
                for number, page in enumerate(results[:PAGES])
            ],
            question=row.text("question"),
            answers=() if long else answers,
            kind="long" if long else "short",
            references=answers if long else (),
            prompt="several" if variant == "asqa" else "",
        )
    ]


def _answers(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    """Return the answers of a row.

    :raises DataWrong: it has none, or an empty one.
    """
    name = next((name for name in names if name in row), names[-1])
    found = row.texts(name) if isinstance(row[name], list) else (row.text(name),)
    if not found or not all(answer.strip() for answer in found):
        raise row.wrong(f"{name!r} has no answer, or an empty one")
    return found
