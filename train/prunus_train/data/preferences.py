"""Pairs of extractions for DPO (Internet-SAG §4.4).

The extractor names tags on every page of a request, and an answer is written from what they hold. On one page, drawn
by the id of the request, a stronger extractor's tags take their place, and the answer is written again. A judge grades
each answer alone. Taught are the tags of that page: better those of the better answer, worse those of the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prunus.answer.extract.tags import read_tags, written_tags
from prunus.answer.generate.llm import Engine as Generator
from prunus.core.ports import LLM, NumberedSource
from prunus_evals import prompts
from prunus_evals.judging.judge import read_grade
from prunus_evals.records import Question
from prunus_evals.split import digest
from prunus_train.data.extractor import PageTagger, TaggedContent, messages_of
from prunus_train.data.sample_file import KeptReplies, SampleFile, SampleUnit, TooLong
from prunus_train.errors import TrainError

MAX_TOKENS = 512
GRADE_TOKENS = 1024
AGREE, TIE, UNREAD = "both extractors name the same tags", "the grades are equal", "a grade cannot be read"


class NeverPrefers(TrainError):
    """A judge that graded pairs, and preferred in none."""


@dataclass(frozen=True, slots=True)
class PreferenceModels:
    """The four models by spec: what is to be trained, what is stronger, what writes answers, and what grades them."""

    extractor: tuple[str, LLM]
    stronger: tuple[str, LLM]
    generator: tuple[str, LLM]
    judge: tuple[str, LLM]


@dataclass(frozen=True, slots=True)
class _Case:
    """A request with the contents of its pages and the extractor's tags on each; None: it could not be read."""

    question: Question
    contents: Sequence[TaggedContent]
    tags: Sequence[tuple[int, ...] | None]


def make(
    file: SampleFile, questions: Sequence[Question], models: PreferenceModels, cache: KeptReplies,
    most: tuple[int, int, int], progress: Callable[[int, int], None],
) -> dict[str, Any]:  # fmt: skip
    """Write the pairs of requests with pages; return the report.

    :param most: pages of a request, pairs of a request, and tokens to which a page is pruned.
    :raises NeverPrefers: pairs were graded, and none is left; the message has the counts.
    """
    pages, pairs, budget = most
    tagger = PageTagger(budget)
    new = [question for question in questions if question.id not in file.done]
    work = lambda question: _unit(question, tagger, models, cache, (pages, pairs))  # noqa: E731 - it is passed on
    for number, unit in enumerate(cache.each(work, new), 1):
        file.add(unit)
        progress(len(questions) - len(new) + number, len(questions))
    report = file.finish(replies_asked=cache.asked, replies_kept=cache.kept)
    if not report["samples"]:
        reasons = report["left_out"]
        graded = reasons.get(TIE, 0) + reasons.get(UNREAD, 0)
        counts = ", ".join(f"{count} × {reason}" for reason, count in reasons.items())
        if graded:
            raise NeverPrefers(f"the judge {models.judge[0]} never prefers an answer: {counts}; take another judge")
        raise TrainError(f"no pair was made: {counts or 'there is no request'}")
    return report


def _unit(
    question: Question, tagger: PageTagger, models: PreferenceModels, cache: KeptReplies, most: tuple[int, int]
) -> SampleUnit:
    unit, (pages, pairs) = SampleUnit(question.id), most
    cut = [tagger.contents(question.question, page) for page in question.documents[:pages]]
    contents = [parts[0] for parts in cut if len(parts) == 1]
    unit.left_out += ["a page of several parts" for parts in cut if len(parts) > 1]
    if not contents:
        unit.left_out.append("nothing of its pages is kept")
        return unit
    try:
        tags = [_tags(question.question, content, models.extractor, cache) for content in contents]
        _pairs(unit, _Case(question, contents, tags), models, cache, pairs)
    except TooLong:
        unit.left_out.append("a prompt is over a model's window")
    return unit


def _pairs(unit: SampleUnit, case: _Case, models: PreferenceModels, cache: KeptReplies, most: int) -> None:
    """Grade pages of a request in an order that its id draws, until enough pairs were graded."""
    order = list(range(len(case.contents)))
    random.Random(digest(case.question.id)).shuffle(order)
    before: tuple[str, float | None] | None = None
    graded = 0
    for place in order:
        if graded == most:
            return
        own, content = case.tags[place], case.contents[place]
        other = _tags(case.question.question, content, models.stronger, cache)
        if own is None or other is None:
            unit.left_out.append("an extractor names neither tags nor None")
            continue
        if own == other:
            unit.left_out.append(AGREE)
            continue
        graded += 1
        if before is None:
            before = _graded(case, case.tags, models, cache)
        changed = [other if number == place else tags for number, tags in enumerate(case.tags)]
        after = _graded(case, changed, models, cache)
        row, reason = _pair(case.question, content, (own, other), (before, after))
        unit.kept += row
        unit.left_out += reason


def _pair(
    question: Question, content: TaggedContent, tags: tuple[tuple[int, ...], tuple[int, ...]],
    answers: tuple[tuple[str, float | None], tuple[str, float | None]],
) -> tuple[list[dict[str, Any]], list[str]]:  # fmt: skip
    """Return the pair of two graded answers, or the reason why there is none."""
    first, second = (grade for _, grade in answers)
    if first is None or second is None:
        return [], [UNREAD]
    if first == second:
        return [], [TIE]
    better, worse = tags if first > second else tags[::-1]
    turns = [{"role": one.role, "content": one.content} for one in messages_of(question.question, content)]
    row = {
        "id": f"{question.id} {content.id}",
        "messages": turns,
        "chosen": written_tags(better),
        "rejected": written_tags(worse),
        "grades": [first, second],
    }
    return [row], []


def _tags(request: str, content: TaggedContent, model: tuple[str, LLM], cache: KeptReplies) -> tuple[int, ...] | None:
    """Return the tags that a model names on a page; () for None; None where its reply cannot be read."""
    reply = cache.reply(*model, messages_of(request, content), max_tokens=MAX_TOKENS, temperature=0.0)
    read = read_tags(reply, [segment.tag for segment in content.tagged])
    return read.tags if read.tags or read.none else None


def _graded(
    case: _Case, tags: Sequence[tuple[int, ...] | None], models: PreferenceModels, cache: KeptReplies
) -> tuple[str, float | None]:
    """Return the answer from what tags hold, and its grade; None: the judge wrote none that can be read."""
    sources = []
    for content, named in zip(case.contents, tags, strict=True):
        texts = [segment.text for segment in content.tagged if named and segment.tag in named]
        if texts:
            sources.append(NumberedSource("\n".join(texts), content.title, content.url))
    spec, llm = models.generator
    shown = [[source.text, source.title, source.url] for source in sources]
    answer = cache.made(
        ["answer", spec, case.question.question, shown], spec, lambda: _answer(llm, case.question.question, sources)
    )
    messages = prompts.render("judge_grade", {"question": case.question.question, "answer": answer})
    reply = cache.reply(*models.judge, messages, max_tokens=GRADE_TOKENS, temperature=0.0)
    return answer, read_grade(reply)


async def _answer(llm: LLM, question: str, sources: Sequence[NumberedSource]) -> str:
    """Return the answer that the generator ``llm`` writes; without a source, from memory, as an answer does."""
    from prunus.core.events import TokenEvent

    generator = Generator(llm)
    events = generator.stream(question, sources) if sources else generator.unsourced(question)
    return "".join([event.text async for event in events if isinstance(event, TokenEvent)]).strip()
