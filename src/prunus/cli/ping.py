"""``prunus doctor --ping``: call each configured engine with one small request and a time limit.

Unlike the rest of ``prunus doctor``, this uses the network and may cost a few tokens.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from ..core.errors import OutsideFailed, PrunusError
from ..core.text.secrets import hide_secrets
from ..core.types import NO_PLAN, Message, SearchRequest, Usage
from ..models.json_reply import text_of
from ..models.prompts.render import render
from .output import counted

SECONDS: Final = 30.0
"""Timeout of one engine, with loading."""


@dataclass(frozen=True, slots=True)
class Pinged:
    """The result of calling one engine.

    :param spec: the engine's spec in the settings.
    :param reason: in one line, what the engine answered, or why it does not work.
    :param seconds: wall time, with loading.
    """

    kind: str
    spec: str
    works: bool
    reason: str
    seconds: float


Maker = Callable[[], Any]


async def ping(makers: Mapping[str, tuple[str, Maker]], seconds: float = SECONDS) -> list[Pinged]:
    """Construct and call engines, all at the same time; a failure of one engine does not affect the others.

    :param makers: for each kind (``embedder``, ``reranker``, ``llm``, ``search``, ``planner``, ``tokenizer``) the
        spec and the function that constructs the engine.
    :param seconds: timeout of each engine.
    """
    return list(await asyncio.gather(*[_ping(kind, spec, make, seconds) for kind, (spec, make) in makers.items()]))


async def _ping(kind: str, spec: str, make: Maker, seconds: float) -> Pinged:
    started = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            engine = await _in_thread(make)
            reply = await _TRIES[kind.partition(":")[0]](engine)
        return Pinged(hide_secrets(kind), hide_secrets(spec), True, reply, time.monotonic() - started)
    except TimeoutError:
        reason = f"no answer within {seconds:g} seconds"
    except PrunusError as error:
        reason = str(error)
    except Exception as error:  # a broken engine must not keep the others from being reported
        reason = f"{type(error).__name__}: {error}"
    reason = hide_secrets(" ".join(reason.split())[:500])
    return Pinged(hide_secrets(kind), hide_secrets(spec), False, reason, time.monotonic() - started)


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Run synchronous code in a daemon thread: code that hangs does not keep the process alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        if not done.done():  # the timeout may have cancelled it
            set_outcome(outcome)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (done.set_result, work())
        except Exception as error:
            outcome = (done.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed, so that nobody waits for the outcome
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, daemon=True, name="prunus-ping").start()
    return await done


async def _embedder(engine: Any) -> str:
    found = np.asarray(await _in_thread(lambda: engine.embed(["When does the ferry leave?"], "query")))
    if found.ndim != 2 or len(found) != 1 or not math.isclose(float(np.linalg.norm(found[0])), 1.0, abs_tol=1e-3):
        raise OutsideFailed(f"returned no vector of unit norm, but an array of shape {found.shape}")
    return f"{found.shape[1]} dimensions"


async def _reranker(engine: Any) -> str:
    texts = ["The ferry leaves at noon.", "Charts are sold here."]
    found = np.asarray(await _in_thread(lambda: engine.rerank("When does the ferry leave?", texts)))
    if found.shape != (2,) or not np.isfinite(found).all():
        raise OutsideFailed(f"returned no two finite scores, but an array of shape {found.shape}")
    return f"{float(found[0]):.3f} for a text that answers, {float(found[1]):.3f} for a text that does not"


async def _llm(engine: Any) -> str:
    text, usage = await text_of(engine.stream(render("ping", word="OK"), max_tokens=32), longest=10_000)
    if not text.strip() and not usage.completion_tokens:
        raise OutsideFailed("the reply is empty")
    with suppress(OutsideFailed):  # a server need not list its models
        await engine.ask_window()
    room = f", window of {engine.context_window} tokens" if engine.context_window else ""
    return f"{_tokens_used(usage)}{room}"


def _tokens_used(usage: Usage) -> str:
    tokens = usage.prompt_tokens + usage.completion_tokens
    return f"{tokens} tokens" if tokens else "answers, but reports no usage"


async def _search(engine: Any) -> str:
    found = await engine.search(SearchRequest("harbour tide table", count=1))
    return counted(len(found.hits), "hit") + (f"; {'; '.join(found.warnings)}" if found.warnings else "")


async def _planner(engine: Any) -> str:
    plan = await engine.plan([Message("user", "When does the ferry leave today?")], datetime.now(UTC))
    if plan.reason.startswith(NO_PLAN):
        raise OutsideFailed(plan.reason)
    return f"{counted(len(plan.queries), 'query')}; {plan.reason}"


async def _tokenizer(engine: Any) -> str:
    found = await _in_thread(lambda: engine.count(["When does the ferry leave?"]))
    return f"{int(found[0])} tokens for five words"


_TRIES: Final[Mapping[str, Callable[[Any], Awaitable[str]]]] = {
    "embedder": _embedder,
    "reranker": _reranker,
    "llm": _llm,
    "search": _search,
    "planner": _planner,
    "tokenizer": _tokenizer,
}
