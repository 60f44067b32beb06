"""Tries engines that are configured, each with one small request and a time limit: what works, and why not.

Unlike the rest of ``prunus doctor`` this goes to the network and may cost a few tokens; it runs only
where it is asked for.
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
from ..core.types import Message, SearchRequest, Usage
from ..models.json_reply import text_of
from ..models.prompts.render import render

SECONDS: Final = 30.0
"""How long one engine may take."""


@dataclass(frozen=True, slots=True)
class Pinged:
    """What came of one engine.

    :param spec: as it stands in the settings.
    :param reason: why it does not work, in one line; what it answered, where it does.
    :param seconds: wall time, with loading.
    """

    kind: str
    spec: str
    works: bool
    reason: str
    seconds: float


Maker = Callable[[], Any]


async def ping(makers: Mapping[str, tuple[str, Maker]], seconds: float = SECONDS) -> list[Pinged]:
    """Make and try engines, all at the same time; no failure of one keeps the others from being tried.

    :param makers: for each kind (``embedder``, ``reranker``, ``llm``, ``search``, ``tokenizer``) the spec, and
        what makes the engine.
    :param seconds: for each.
    """
    return list(await asyncio.gather(*[_one(kind, spec, make, seconds) for kind, (spec, make) in makers.items()]))


async def _one(kind: str, spec: str, make: Maker, seconds: float) -> Pinged:
    started = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            engine = await _in_thread(make)
            said = await _TRIES[kind.partition(":")[0]](engine)
        return Pinged(kind, spec, True, said, time.monotonic() - started)
    except TimeoutError:
        reason = f"no answer within {seconds:g} seconds"
    except PrunusError as error:
        reason = str(error)
    except Exception as error:  # whatever one engine does, the others are still reported
        reason = f"{type(error).__name__}: {error}"
    return Pinged(kind, spec, False, " ".join(reason.split())[:500], time.monotonic() - started)


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Run plain code in a thread that nobody has to wait for: one that hangs does not keep the process alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(set_it: Callable[[Any], None], what: Any) -> None:
        if not done.done():
            set_it(what)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (done.set_result, work())
        except Exception as error:
            outcome = (done.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, *outcome)

    threading.Thread(target=run, daemon=True, name="prunus-ping").start()
    return await done


async def _embedder(engine: Any) -> str:
    found = np.asarray(await _in_thread(lambda: engine.embed(["When does the ferry leave?"], "query")))
    if found.ndim != 2 or len(found) != 1 or not math.isclose(float(np.linalg.norm(found[0])), 1.0, abs_tol=1e-3):
        raise OutsideFailed(f"gave no vector of unit norm, but an array {found.shape}")
    return f"{found.shape[1]} dimensions"


async def _reranker(engine: Any) -> str:
    texts = ["The ferry leaves at noon.", "Charts are sold here."]
    found = np.asarray(await _in_thread(lambda: engine.rerank("When does the ferry leave?", texts)))
    if found.shape != (2,) or not np.isfinite(found).all():
        raise OutsideFailed(f"gave no two numbers, but an array {found.shape}")
    return f"{float(found[0]):.3f} for what answers, {float(found[1]):.3f} for what does not"


async def _llm(engine: Any) -> str:
    text, usage = await text_of(engine.stream(render("ping", word="OK"), max_tokens=32), longest=10_000)
    if not text.strip() and not usage.completion_tokens:
        raise OutsideFailed("the reply is empty")
    room = f", window of {engine.context_window} tokens" if engine.context_window else ""
    return f"{_said(usage)}{room}"


def _said(usage: Usage) -> str:
    tokens = usage.prompt_tokens + usage.completion_tokens
    return f"{tokens} tokens" if tokens else "answers, but reports no usage"


async def _search(engine: Any) -> str:
    found = await engine.search(SearchRequest("harbour tide table", count=1))
    return f"{len(found.hits)} hits" + (f"; {'; '.join(found.warnings)}" if found.warnings else "")


async def _planner(engine: Any) -> str:
    plan = await engine.plan([Message("user", "When does the ferry leave today?")], datetime.now(UTC))
    return f"{len(plan.queries)} queries; {plan.reason}"


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
