"""Samples of the extractor: which tagged segments of a page bear on a request (Internet-SAG §4.2).

A strong model is asked twice, with different seeds, for a summary and a tag of each segment that helps; only where both
replies name the same tags they are kept. Each gives two samples: with the summaries (Instruction A) and without them
(Instruction B). The prompts are those of the extractor ``tags``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import prunus
from prunus.answer.extract.tags import parts_of, question_about, read_tags, written_tags
from prunus.core.errors import BadBudget, PrunusError
from prunus.core.ports import LLM, Segment
from prunus.core.settings import Settings
from prunus.core.types import Message
from prunus.engines import prune_engines
from prunus.evidence.prune import prune
from prunus.evidence.segments import segments
from prunus.evidence.two_stage import Engines
from prunus_evals.records import Document, Question
from prunus_evals.split import digest
from prunus_train.data.sample_file import KeptReplies, SampleFile, SampleUnit, TooLong
from prunus_train.errors import DataBroken
from prunus_train.llm.samples import ChatSample, as_row

SEEDS = (1, 2)
MAX_TOKENS = 1024
_TAG = re.compile(r"<?TAG[-_ ]?(\d{1,9})>?", re.I)


@dataclass(frozen=True, slots=True)
class ExtractorPlan:
    """How contents are chosen and asked about.

    :param contents: contents of a request at most; which, the digest of its id draws.
    :param shortest: tokens of a content at least.
    :param none: share of the samples that say None.
    :param elsewhere: share of the requests that are also asked about a page of another request, so that some say None.
    :param budget: tokens to which a page is pruned before it is tagged, as for an answer.
    :param temperature: of the two replies that must agree.
    """

    contents: int = 2
    shortest: int = 100
    none: float = 0.05
    elsewhere: float = 0.1
    budget: int = 4096
    temperature: float = 0.7


@dataclass(frozen=True, slots=True)
class TaggedContent:
    """A part of a page as the extractor is shown it, and its tokens."""

    id: str
    tagged: Sequence[Segment]
    tokens: int
    title: str = ""
    url: str = ""


class PageTagger:
    """Prunes pages for a request, and cuts what is kept into tagged parts, as an answer does."""

    def __init__(self, budget: int) -> None:
        self._engines: Engines = prune_engines(Settings())
        self._budget = budget

    def contents(self, request: str, document: Document) -> list[TaggedContent]:
        """Return the tagged parts of a page; [] where nothing of it is kept or it cannot be read."""
        try:
            documents = prunus.read(prunus.Page(content=document.content, media_type=document.media_type))
            kept = prune(documents, request, self._budget, "html", prunus.Options(), self._engines).kept
        except (BadBudget, PrunusError):
            return []
        parts = parts_of(segments(kept, {tree.document: tree for tree in documents.trees})) if kept else []
        counts = self._engines.counter.count(["\n".join(one.text for one in part) for part in parts])
        return [
            TaggedContent(f"{document.id}#{number}", part, int(count), document.title, document.url)
            for number, (part, count) in enumerate(zip(parts, counts, strict=True), 1)
            if part
        ]


def make(
    file: SampleFile, questions: Sequence[Question], model: tuple[str, LLM], cache: KeptReplies, plan: ExtractorPlan,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:  # fmt: skip
    """Write the samples of requests with pages; return the report.

    :param model: spec and model that names tags and summaries.
    """
    tagger = PageTagger(plan.budget)
    numbered = [(place, question) for place, question in enumerate(questions) if question.id not in file.done]

    def work(item: tuple[int, Question]) -> SampleUnit:
        place, question = item
        return _unit(question, questions[(place + 1) % len(questions)], tagger, model, cache, plan)

    for number, unit in enumerate(cache.each(work, numbered), 1):
        file.add(unit)
        progress(len(questions) - len(numbered) + number, len(questions))
    report = file.finish(lambda rows: _balanced(rows, plan.none), replies_asked=cache.asked, replies_kept=cache.kept)
    none = sum(row["target"] == "None" for row in _rows(file))
    if not report["samples"]:
        raise DataBroken(f"no sample was made: {report['left_out']}; see {file.path.name}.report.json")
    report["none_before"] = none
    return report


def _rows(file: SampleFile) -> Iterator[dict[str, Any]]:
    return (row for unit in file.units for row in unit.kept)


def chosen(question: Question, most: int, salt: str = "") -> list[Document]:
    """Return some of a question's pages, drawn by its id, in their order."""
    places = list(range(len(question.documents)))
    random.Random(digest(f"{salt}{question.id}")).shuffle(places)
    return [question.documents[place] for place in sorted(places[:most])]


def _unit(
    question: Question,
    other: Question,
    tagger: PageTagger,
    model: tuple[str, LLM],
    cache: KeptReplies,
    plan: ExtractorPlan,
) -> SampleUnit:
    unit = SampleUnit(question.id)
    contents = [one for page in chosen(question, plan.contents) for one in tagger.contents(question.question, page)]
    wrong = random.Random(digest(f"elsewhere {question.id}")).random() < plan.elsewhere
    if wrong and other.page != question.page:
        page = chosen(other, 1)[0]
        elsewhere = tagger.contents(question.question, page)[:1]
        contents = contents[: plan.contents - len(elsewhere)]  # two of a request at most, with the wrong one
        contents += [replace(one, id=f"{one.id} elsewhere") for one in elsewhere]
    for content in contents[: plan.contents]:
        if content.tokens < plan.shortest:
            unit.left_out.append("the content is shorter than the least length")
            continue
        try:
            replies = _both(question.question, content, model, cache, plan)
        except TooLong:
            unit.left_out.append("the prompt is over the model's window")
            continue
        rows, reason = _samples(question, content, replies)
        unit.kept += rows
        if reason:
            unit.left_out.append(reason)
        else:
            unit.counts.append("None" if rows[0]["target"] == "None" else "tags")
    if not contents:
        unit.left_out.append("nothing of its pages is kept")
    return unit


def _both(
    request: str, content: TaggedContent, model: tuple[str, LLM], cache: KeptReplies, plan: ExtractorPlan
) -> list[str]:
    messages = question_about(request, content.tagged, summaries=True)
    return [
        cache.reply(*model, messages, max_tokens=MAX_TOKENS, temperature=plan.temperature, seed=seed) for seed in SEEDS
    ]


def _samples(question: Question, content: TaggedContent, replies: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Return the samples of two replies, or the reason why there is none."""
    known = [segment.tag for segment in content.tagged]
    first, second = (read_tags(reply, known) for reply in replies)
    if first.unknown or second.unknown:
        return [], "a reply names a tag that the page does not have"
    if any(not read.tags and not read.none for read in (first, second)):
        return [], "a reply names neither tags nor None"
    if first.tags != second.tags:
        return [], "the two replies do not agree"
    summaries = summaries_of(replies[0], first.tags)
    if summaries is None:
        return [], "a tag has no summary"
    lines = [f"{summaries[tag]} <TAG-{tag}>" for tag in first.tags]
    identity = f"{question.id} {content.id}"
    texts = {"A": "\n".join(lines) or "None", "B": written_tags(first.tags)}
    rows = []
    for instruction, target in texts.items():
        messages = question_about(question.question, content.tagged, summaries=instruction == "A")
        row = as_row(ChatSample(f"{identity} {instruction}", "extractor", tuple(messages), (target,)))
        rows.append({**row, "content": identity})
    return rows, ""


def summaries_of(reply: str, tags: Sequence[int]) -> dict[int, str] | None:
    """Return the summary that stands on the line of each tag, before it; None where a tag has none."""
    found: dict[int, str] = {}
    for line in reply.splitlines():
        marks = list(_TAG.finditer(line))
        text = " ".join(line[: marks[0].start()].strip(" \t-*•:").split()) if marks else ""
        for mark in marks:
            found.setdefault(int(mark[1]), text)
    return {tag: found[tag] for tag in tags} if all(found.get(tag) for tag in tags) else None


def _balanced(rows: list[dict[str, Any]], share: float) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the samples with at most a share of contents that say None; which of those stay, their ids draw."""
    nones = sorted({row["content"] for row in rows if row["target"] == "None"}, key=digest)
    others = len({row["content"] for row in rows if row["target"] != "None"})
    room = round(others * share / (1 - share))
    dropped = {*nones[room:]}
    kept = [row for row in rows if row["content"] not in dropped]
    reasons = {"None is its share already": len(dropped)} if dropped else {}
    return kept, reasons


def messages_of(request: str, content: TaggedContent) -> list[Message]:
    """Return the prompt for tags alone about one content."""
    return question_about(request, content.tagged)
