"""Helpers of the tests of language models."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from prunus.core.events import TokenEvent, UsageEvent
from prunus.core.types import Message, Usage

ASK = [Message("system", "Answer in one word."), Message("user", "What is the capital of France?")]


def run(wait: Awaitable[Any], seconds: float = 30) -> Any:
    """Run one coroutine to its end, with a limit."""

    async def bounded() -> Any:
        return await asyncio.wait_for(wait, seconds)

    return asyncio.run(bounded())


async def collect(engine: Any, messages: list[Message] | None = None, **options: Any) -> tuple[list[str], Usage]:
    """Return the pieces of a reply and its usage, and check the contract: one usage event, and it is the last."""
    pieces, usages = [], []
    async for event in engine.stream(messages or ASK, **options):
        assert isinstance(event, TokenEvent | UsageEvent)
        assert not usages, "nothing comes after the usage"
        if isinstance(event, TokenEvent):
            assert event.text
            pieces.append(event.text)
        else:
            usages.append(event.usage)
    assert len(usages) == 1
    return pieces, usages[0]
