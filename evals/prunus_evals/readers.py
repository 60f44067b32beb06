"""Readers: language models that answer questions from evidence.

A reader is any engine of the kind ``llm`` by its spec: ``openai:MODEL``, ``http://localhost:8080/v1#MODEL``,
``transformers:FOLDER``, ``scripted:REPLY``; ``none`` is no reader. A scripted reader proves the plumbing and nothing
else: tables say so.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from prunus.core.errors import BadBudget, OverWindow, PrunusError
from prunus.core.events import TokenEvent, UsageEvent
from prunus.core.options import Options
from prunus.core.ports import LLM
from prunus.core.settings import load_settings
from prunus.core.sync import run
from prunus.core.types import Message
from prunus.engines import Maker
from prunus_evals import prompts
from prunus_evals.errors import ReaderFailed, UnknownName
from prunus_evals.metrics.choices import LETTERS
from prunus_evals.records import Question, Reader, Reading
from prunus_evals.store import Store

MAX_TOKENS = {"short": 64, "long": 512, "choice": 8, "yes_no": 8, "tags": 256, "search": 128}
"""Tokens of an answer at most, by the kind of the question."""

SECONDS = 600.0
"""Time for one answer."""

CAVEATS = {
    "scripted": "no model answered: replies are scripted, and prove the plumbing alone",
    "tiny": "a model of less than a billion parameters, by its name: it answers badly, and proves the plumbing alone",
}
"""What tables say of a reader."""

_TINY = re.compile(r"tiny|smollm|(?<![0-9.])(?:0\.[0-9]{1,3} ?b|[0-9]{1,3} ?m)(?![0-9a-z])")


def make(spec: str, prompt: str = "") -> ModelReader | None:
    """Return the reader of a spec; None for ``none``.

    :param prompt: name of the prompt for all questions; '' takes the prompt of the question's kind.
    :raises UnknownName: there is no such engine or prompt, or it cannot be made.
    """
    if spec == "none":
        return None
    if prompt:
        prompts.template(prompt)
    return ModelReader(spec, model(spec), prompt)


def prompt_of(question: Question, name: str = "") -> str:
    """Return the text of the prompt for a question, without what is filled in.

    :param name: a prompt for all questions; '' takes that of the question's kind.
    """
    return prompts.template(name or question.kind)


def caveat(spec: str, real: bool = True) -> str:
    """Return what tables must say of a reader or a judge: ``scripted`` or ``tiny``; '' for nothing.

    :param spec: its name; a model is taken for tiny by it.
    """
    if not real:
        return "scripted"
    return "tiny" if _TINY.search(spec.lower()) else ""


def model(spec: str) -> LLM:
    """Return the language model of a spec, with the endpoint, key and timeouts of the settings.

    :raises UnknownName: there is no such engine, or it cannot be made.
    """
    try:
        made: LLM = Maker(replace(load_settings(), llm=spec), Options()).make("llm")
    except PrunusError as error:
        raise UnknownName(f"reader {spec}: {error}") from error
    return made


class ModelReader:
    """A language model that answers with a prompt.

    :param spec: the name in tables.
    """

    def __init__(self, spec: str, llm: LLM, prompt: str = "") -> None:
        self.name = spec
        self._llm = llm
        self._prompt = prompt

    @property
    def real(self) -> bool:
        """Whether a model answers."""
        return bool(self._llm.real)

    def messages(self, question: Question, evidence: str) -> list[Message]:
        """Return the prompt for a question."""
        listed = "\n".join(f"({letter}) {choice}" for letter, choice in zip(LETTERS, question.choices, strict=False))
        tagged = "\n".join(f"<TAG-{tag}>{text}</TAG-{tag}>" for tag, text in enumerate(question.sentences))
        fields = {"evidence": evidence, "question": question.question, "choices": listed, "sentences": tagged}
        return prompts.render(self._prompt or question.prompt or question.kind, fields)

    def read(self, question: Question, evidence: str) -> Reading:
        """Answer a question from evidence.

        :raises ReaderFailed: the model cannot be reached, refuses, or does not finish in time.
        """
        return ask(self.name, self._llm, self.messages(question, evidence), MAX_TOKENS[question.kind])


def read(reader: Reader, question: Question, evidence: str, store: Store) -> tuple[Reading, str]:
    """Return a reader's answer and the digest of its prompt; a prompt that it answered before is not asked again."""
    digest = ""
    if isinstance(reader, ModelReader):
        digest = prompts.digest(reader.messages(question, evidence))
        known = store.reply(f"{reader.name}\0{digest}")
        if known is not None:
            return known, digest
    reading = reader.read(question, evidence)
    if digest:
        store.keep_reply(f"{reader.name}\0{digest}", reading)
    return reading, digest


def ask(name: str, llm: LLM, messages: Sequence[Message], max_tokens: int) -> Reading:
    """Return the reply of a model, deterministic where it can be (temperature 0).

    :param name: of the model, for errors.
    :raises ReaderFailed: the model cannot be reached, refuses, or does not finish in time.
    """
    start = time.perf_counter()
    try:
        text, prompt_tokens, completion_tokens = run(
            lambda: asyncio.wait_for(_reply(llm, messages, max_tokens), SECONDS)
        )
    except TimeoutError as error:
        raise ReaderFailed(f"{name} did not answer within {SECONDS:.0f} s") from error
    except PrunusError as error:
        raise ReaderFailed(f"{name}: {error}") from error
    return Reading(text, prompt_tokens, completion_tokens, time.perf_counter() - start)


def refused(error: ReaderFailed) -> bool:
    """Return whether a model failed at a prompt because that is longer than its window; it may answer others."""
    return isinstance(error.__cause__, BadBudget | OverWindow)


async def _reply(llm: LLM, messages: Sequence[Message], max_tokens: int) -> tuple[str, int, int]:
    parts: list[str] = []
    prompt_tokens = completion_tokens = 0
    async with aclosing(llm.stream(messages, max_tokens=max_tokens, temperature=0.0)) as events:  # type: ignore[type-var]
        async for event in events:
            if isinstance(event, TokenEvent):
                parts.append(event.text)
            elif isinstance(event, UsageEvent):
                prompt_tokens += event.usage.prompt_tokens
                completion_tokens += event.usage.completion_tokens
    return "".join(parts), prompt_tokens, completion_tokens
