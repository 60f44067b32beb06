"""``llm``: a language model with the paper's prompt (RAPTOR, Appendix D), in parallel, kept, retried.

What a model has said is kept at once, by the hash of the texts, the prompt, the model and the length:
a run that was killed, or that met a limit of money, goes on where it stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import BadInput, OutsideFailed
from ...core.ports import LLM, TokenCounter
from ...core.types import Message, Summary
from ...models.json_reply import text_of
from ...models.meter import Price
from ...models.prompts.render import Quoted, render
from ._kept import KeptSummaries, key_of


@dataclass(frozen=True, slots=True)
class SummaryBill:
    """What summaries will cost at most, before any is asked for.

    :param calls: to the model; what is kept already is not asked for.
    :param completion_tokens: when every summary is as long as it may be.
    :param usd: None where no price is known.
    """

    calls: int
    kept: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None


class Engine:
    """Summaries by a language model.

    :param llm: the model; wrapped in ``cost.Metered``, it refuses what would go over a limit.
    :param tokenizer: counts the bill; None lets the model count.
    :param kept: file of the summaries that were made; None keeps none.
    :param parallel: calls at a time.
    :param tries: calls for one summary, when the model fails or says nothing.
    :param pause: called with the seconds between tries.
    :raises BadInput: ``parallel`` or ``tries`` is below 1.
    """

    name = "llm"

    def __init__(
        self,
        llm: LLM,
        tokenizer: TokenCounter | None = None,
        kept: Path | None = None,
        *,
        parallel: int = 8,
        tries: int = 3,
        pause: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        if parallel < 1 or tries < 1:
            raise BadInput(f"{parallel} calls at a time, {tries} tries: both must be 1 or more", subject="parallel")
        self.llm, self.parallel, self.tries = llm, parallel, tries
        self._counter: Any = tokenizer if tokenizer is not None else llm
        self._kept = KeptSummaries(kept)
        self._pause = pause

    @property
    def identity(self) -> str:
        """What the summaries depend on: the model."""
        return f"{self.llm.name}:{self.llm.model}"

    def bill(self, batch: Sequence[Sequence[str]], max_tokens: int, price: Price | None = None) -> SummaryBill:
        """Return what these summaries will cost at most.

        :param price: of the model; None where it is not known.
        """
        asked = [_messages(texts, max_tokens) for texts in batch if _shows(texts)]
        todo = [one for one in asked if self._kept.get(self._key(one, max_tokens)) is None]
        prompt = sum(int(self._counter.count([m.content for m in one]).sum()) for one in todo)
        completion = max_tokens * len(todo)
        usd = price.usd(prompt, completion) if price else None
        return SummaryBill(len(todo), len(asked) - len(todo), prompt, completion, usd)

    async def summarize(self, batch: Sequence[Sequence[str]], max_tokens: int) -> list[Summary]:
        """Return one summary a group; '' for a group without words, for which nothing is asked.

        :raises OutsideFailed: the model failed ``tries`` times on one of them; those that were made are kept.
        :raises OverLimit: a limit of the meter is reached; those that were made are kept.
        """
        room = asyncio.Semaphore(self.parallel)
        tasks = [asyncio.ensure_future(self._one(texts, max_tokens, room)) for texts in batch]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, texts: Sequence[str], max_tokens: int, room: asyncio.Semaphore) -> Summary:
        if not _shows(texts):
            return Summary("")
        messages = _messages(texts, max_tokens)
        key = self._key(messages, max_tokens)
        async with room:
            known = await asyncio.to_thread(self._kept.get, key)
            if known is not None:
                return Summary(known)
            summary = await self._asked(messages, max_tokens)
            await asyncio.to_thread(self._kept.put, key, summary.text)
            return summary

    async def _asked(self, messages: Sequence[Message], max_tokens: int) -> Summary:
        """Ask, and ask again where the model fails or says nothing: an error is never a summary."""
        last: OutsideFailed | None = None
        for attempt in range(self.tries):
            if attempt:
                await self._pause(2.0 ** (attempt - 1))
            try:
                text, usage = await text_of(self.llm.stream(messages, max_tokens=max_tokens, temperature=0.0))
            except OutsideFailed as error:
                last = error
                continue
            if text.strip():
                return Summary(text.strip(), usage)
            last = OutsideFailed(f"{self.identity}: the summary is empty", subject=self.identity)
        assert last is not None
        raise last

    def _key(self, messages: Sequence[Message], max_tokens: int) -> str:
        return key_of(self.identity, messages, max_tokens)


def _shows(texts: Sequence[str]) -> bool:
    return any(text.strip() for text in texts)


def _messages(texts: Sequence[str], max_tokens: int) -> list[Message]:
    words = max(10, max_tokens * 3 // 4)  # a token is about three quarters of an English word
    return render("summarize", words=words, texts=[Quoted(text) for text in texts if text.strip()])
