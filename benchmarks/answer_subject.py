"""The measured process of `benchmarks.answer`: answers from the web, with stand-ins for network and model.

python -m benchmarks.answer_subject
"""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from benchmarks.protocol import Clock, forget_peak, serve
from prunus.answer.find_pages import WebEngines
from prunus.answer.run import Asked
from prunus.answer.write import answer_from_web
from prunus.core.errors import PrunusError
from prunus.core.events import DoneEvent, Event, TokenEvent, UsageEvent
from prunus.core.options import Options, WebOptions
from prunus.core.registry import make_engine
from prunus.core.settings import load_settings
from prunus.core.types import Answer, Hit, Message, Page, Plan, Results, SearchQuery, SearchRequest, Usage
from prunus.engines import answer_engines, formats

WARM_UP = "<html><body><h1>Warm</h1><p>A warm page about warm things, so that first calls are over.</p></body>"


class Planner:
    """Plans the question as the only query."""

    def __init__(self, query: str) -> None:
        self._query = query

    async def plan(self, conversation: Sequence[Message], now: datetime) -> Plan:
        """Return the plan."""
        return Plan(True, "measured", (SearchQuery(self._query),))


class Provider:
    """Finds all pages of the benchmark."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls

    async def search(self, request: SearchRequest) -> Results:
        """Return the hits."""
        return Results(tuple(Hit(url, f"Page {n}", "", rank=n) for n, url in enumerate(self._urls, 1)))


class Model:
    """Answers with one sentence for each of the first three sources."""

    name, model, real, free, context_window = "none", "none", False, True, 32_000

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the answer."""
        for number in (1, 2, 3):
            yield TokenEvent(f"The page says what it says, as can be read there [{number}]. ")
        yield UsageEvent(Usage(1000, 50))


def op_answer(clock: Clock, pages: list[str], question: str, model: bool) -> dict[str, Any]:
    """Answer from the pages, using all of them; return the seconds by stage."""
    forget_peak()
    answer = clock.timed(lambda: asyncio.run(_answer(pages, question, model)))
    seconds = {stage: usage.seconds.get(stage, 0.0) for stage, usage in answer.spent.items()}
    return {"stages": seconds, "citations": len(answer.citations), "chars": len(answer.text)}


async def _answer(html: list[str], question: str, model: bool) -> Answer:
    urls = [f"https://example.org/{number}" for number in range(len(html))]
    options = Options(web=WebOptions(count=len(urls), read=len(urls), pages=len(urls)))
    if model:
        options = replace(options, llm=Model(), extractor="sentences")
    engines = answer_engines(load_settings(), options)
    web = WebEngines(
        provider=Provider(urls),
        planner=Planner(question),
        spare_planner=make_engine("planner", "rules"),
        pages=_pages(dict(zip(urls, html, strict=True))),
        to_html=formats().to_html,
        meter=engines.meter,
        rank_with=engines.embedder,
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
    )
    engines = replace(engines, web=web)
    async for event in answer_from_web(Asked(question, 4096, options), engines):
        if isinstance(event, DoneEvent):
            return event.answer
    raise RuntimeError("no answer")


def _pages(known: dict[str, str]) -> Callable[[Sequence[str]], AsyncGenerator[tuple[str, Page | PrunusError], None]]:
    async def read(urls: Sequence[str]) -> AsyncGenerator[tuple[str, Page | PrunusError], None]:
        for url in urls:
            yield url, Page(known[url].encode("utf-8", "replace"), url=url, media_type="text/html", charset="utf-8")

    return read


def op_warm(clock: Clock) -> None:
    """Answer once in each way, so that everything is loaded."""
    op_answer(clock, [WARM_UP, WARM_UP.replace("warm", "warmer")], "What is a warm page about?", True)
    op_answer(clock, [WARM_UP], "What is a warm page about?", False)


if __name__ == "__main__":
    serve({"answer": op_answer, "warm": op_warm}, {"tool": "prunus", "version": importlib.metadata.version("prunus")})
