"""Questions that a language model writes about web pages, to train what quotes answers.

A model is shown a passage of the main content of a page and some words of it, and writes the question that these words
answer: small models that are to choose the words themselves copy half of the passage. It then answers its own question
from the passage alone, and only a question whose answer it finds again is kept. The page stays the whole page: what is
learned is to find the passage in it. The file is one of questions of one's own (``own:FILE``).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import prunus
from prunus.core.errors import PrunusError
from prunus.core.ports import LLM
from prunus.core.types import Message
from prunus_evals.metrics import matching
from prunus_evals.parts import load_kinds
from prunus_evals.split import Half, digest
from prunus_train.data.sample_file import KeptReplies, SampleFile, SampleUnit, TooLong
from prunus_train.errors import DataBroken

LEAST_WORDS, MOST_WORDS = 25, 90
"""Words of a passage."""

_AGREE: Final = 0.5
"""Share of words (F1) that the marked words and the model's answer must have in common."""

_COPIED: Final = 0.6
"""Share of words (F1) that a question and the marked words may have in common."""

_NUMBER: Final = re.compile(r"[$€£]?\b\d[\d.,:]{0,12}(?<![.,:])(?: ?%| [A-Za-z]{2,20}\b)?")
_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20}){1,3}")
_SENTENCE: Final = re.compile(r"(?:^|(?<=[.!?] ))[A-Z][^.!?\n]{30,110}[.!](?= |$)", re.M)
"""What is marked as an answer: a number with its unit, a name of several words, or a short sentence."""

_ABOUT_THE_TEXT: Final = re.compile(
    r"\b(?:passage|the page|text|words|mentioned|main (?:focus|topic|purpose|idea))\b", re.I
)

_WRITE: Final = """Write the question that a visitor would ask a search engine, so that the given words of the page \
answer it. Name what the question is about. Do not use the given words.

Page "Harbour Museum": It is open from Tuesday to Sunday, and on Thursdays until 20:00.
Words that answer: 20:00
Question: Until when is the Harbour Museum open on Thursdays?

Page "Care of cast iron": Dry it on the stove, then rub it with a little oil so that it does not rust.
Words that answer: rub it with a little oil so that it does not rust.
Question: How do I keep a cast iron pan in good shape after washing?

Page "{title}": {passage}
Words that answer: {answer}
Question:"""
_READ: Final = """Answer the question with words copied from the passage, as few as possible. If the passage does not \
answer it, reply: unknown.

Passage: {passage}

Question: {question}"""


@dataclass(frozen=True, slots=True)
class AskedPage:
    """A page that is asked about.

    :param name: its file, or its name in a data set.
    :param kind: what kind of page it is, as ``product``; '' where nobody says.
    """

    name: str
    html: str
    kind: str = ""


def asked_pages(paths: Sequence[Path], half: Half, limit: int | None) -> list[AskedPage]:
    """Return the pages of files, or those of seven kinds of which people have marked the main content.

    :param half: the half of the marked pages.
    :raises DataBroken: a file cannot be read.
    """
    if not paths:
        return [AskedPage(one.page, one.html, one.kind) for one in load_kinds(half, limit)]
    try:
        return [AskedPage(str(path), prunus.clean(path)) for path in paths][:limit]
    except PrunusError as error:
        raise DataBroken(str(error)) from error


def make(
    file: SampleFile, pages: Sequence[AskedPage], model: tuple[str, LLM], cache: KeptReplies, each: int,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:  # fmt: skip
    """Write questions about pages; return the report.

    :param each: passages of a page that are asked about.
    """
    waiting = [page for page in pages if page.name not in file.done]
    for number, unit in enumerate(cache.each(lambda page: _unit(page, model, cache, each), waiting), 1):
        file.add(unit)
        progress(len(pages) - len(waiting) + number, len(pages))
    return file.finish(replies_asked=cache.asked, replies_kept=cache.kept)


def _unit(page: AskedPage, model: tuple[str, LLM], cache: KeptReplies, each: int) -> SampleUnit:
    unit, chosen = SampleUnit(page.name), random.Random(digest(page.name))
    try:
        title, passages = prunus.metadata(page.html).title, askable(prunus.clean(page.html, "text", main=True))
    except PrunusError:
        unit.left_out.append("the page cannot be read")
        return unit
    for passage in chosen.sample(passages, min(each, len(passages))):
        try:
            asked, reason = _question(title, passage, chosen.choice(answers_of(passage)), model, cache)
        except TooLong:
            asked, reason = {}, "the prompt is over the model's window"
        if reason:
            unit.left_out.append(reason)
            continue
        row = {**asked, "pages": [{"html": page.html}], "evidence": [passage]}
        unit.kept.append({**row, "labels": {"kind": page.kind}} if page.kind else row)
        unit.counts.append(page.kind or "pages")
    if not passages:
        unit.left_out.append("the page has no passage")
    return unit


def askable(text: str) -> list[str]:
    """Return the passages of a text that hold words which can be asked for."""
    return [passage for passage in _passages(text) if answers_of(passage)]


def answers_of(passage: str) -> list[str]:
    """Return words of a passage that can be asked for: of one kind, drawn by the passage's digest."""
    kinds = [found for of_kind in (_NUMBER, _NAME, _SENTENCE) if (found := of_kind.findall(passage))]
    return kinds[int(digest(passage)[:4], 16) % len(kinds)] if kinds else []


def _passages(text: str) -> list[str]:
    """Return neighbouring lines of a text, joined to passages; headings alone are none."""
    passages: list[str] = []
    group: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        words = len(line.split())
        if group and sum(len(one.split()) for one in group) + words > MOST_WORDS:
            passages.append("\n".join(group))
            group = []
        group.append(line)
    passages.append("\n".join(group))
    return [passage for passage in passages if LEAST_WORDS <= len(passage.split()) <= MOST_WORDS]


def _question(
    title: str, passage: str, answer: str, model: tuple[str, LLM], cache: KeptReplies
) -> tuple[dict[str, Any], str]:
    """Return a question that some words of a passage answer, or the reason why there is none."""
    line = " ".join(passage.split())
    prompt = _WRITE.format(title=title, passage=line, answer=answer)
    reply = cache.reply(*model, [Message("user", prompt)], temperature=0.0, max_tokens=40)
    question = reply.strip().split("\n")[0].removeprefix("Question:").strip()
    if not question.endswith("?") or _ABOUT_THE_TEXT.search(question):
        return {}, "the reply is no question"
    if matching.holds(question, [answer]) or _shared(question, answer) > _COPIED:
        return {}, "the question holds its answer"
    prompt = _READ.format(passage=line, question=question)
    again = cache.reply(*model, [Message("user", prompt)], temperature=0.0, max_tokens=32)
    if _shared(answer, again) < _AGREE and not matching.holds(again, [answer]):
        return {}, "the answer is not found again"
    return {"question": question, "answers": [answer]}, ""


def _shared(one: str, other: str) -> float:
    """Return the F1 of the words of two answers."""
    first, second = (Counter(matching.normalise(text).split()) for text in (one, other))
    both = sum((first & second).values())
    return 2 * both / (sum(first.values()) + sum(second.values())) if both else 0.0
