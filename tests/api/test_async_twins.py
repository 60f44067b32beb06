"""`aclean`, `aread`, `aprune`, `aask` and `asearch`: the same results, beside a loop that goes on."""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.web.fetch.server import Request, Server, respond

import prunus
from prunus.models.llm.scripted import Engine as Scripted
from prunus.models.llm.scripted import ScriptedReply

PAGE = "<h1>Harbour</h1><p>The ferry leaves at noon.</p><p>The lighthouse was built in 1871.</p>"
QUESTION = "When does the ferry leave?"
PAIRS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (prunus.clean, prunus.aclean),
    (prunus.read, prunus.aread),
    (prunus.prune, prunus.aprune),
    (prunus.ask, prunus.aask),
    (prunus.search, prunus.asearch),
    (prunus.Chat.ask, prunus.Chat.aask),
]


class Scorer:
    """Scores by an action of the test, which may wait."""

    name = "of the test"

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def score(self, query: str, blocks: Any) -> Any:
        self.act()
        return np.ones(len(blocks))


def with_scorer(act: Callable[[], None]) -> prunus.Options:
    return prunus.Options(scorer=Scorer(act))


def settings_for(server: Server, folder: Path, **more: Any) -> prunus.Settings:
    allowed = {"allow_hosts": ["127.0.0.0/8"], "ports": [server.port], "home": str(folder), "robots": False}
    return prunus.load_settings(allowed | more)


# --- the same as the others ------------------------------------------------------------------------


@pytest.mark.parametrize(("plain", "twin"), PAIRS, ids=[plain.__qualname__ for plain, _ in PAIRS])
def test_a_twin_has_the_parameters_and_types_of_its_function(
    plain: Callable[..., Any], twin: Callable[..., Any]
) -> None:
    assert inspect.signature(twin) == inspect.signature(plain)
    assert inspect.iscoroutinefunction(twin)


def test_twins_give_the_results_of_their_functions(folder: Path) -> None:
    (folder / "a.html").write_text(PAGE)

    async def all_of_them() -> None:
        assert await prunus.aclean(PAGE, "markdown") == prunus.clean(PAGE, "markdown")
        assert await prunus.aclean(folder / "a.html", main=True) == prunus.clean(folder / "a.html", main=True)
        documents = await prunus.aread([folder, PAGE])
        assert [tree.canonical for tree in documents.trees] == [
            tree.canonical for tree in prunus.read([folder, PAGE]).trees
        ]
        for pages in (PAGE, [PAGE, PAGE.encode()], documents, folder):
            assert (await prunus.aprune(pages, QUESTION, 30, "text")).output == prunus.prune(
                pages, QUESTION, 30, "text"
            ).output
            mine, other = await prunus.aask(QUESTION, pages), await asyncio.to_thread(prunus.ask, QUESTION, pages)
            assert (mine.text, mine.citations) == (other.text, other.citations)
        found = await prunus.asearch("ferry", f"local:{folder}")
        assert found == await asyncio.to_thread(prunus.search, "ferry", f"local:{folder}")
        assert "noon" in (await prunus.aask(QUESTION, search=f"local:{folder}")).text
        chat = prunus.Chat()
        assert "noon" in (await chat.aask(QUESTION, documents)).text
        assert len(chat.turns) == 2

    asyncio.run(all_of_them())


def test_addresses_are_fetched_and_read_as_by_the_functions(tmp_path: Path) -> None:
    page = respond(PAGE, "Content-Type: text/html")
    with Server({"/a": page, "/b": page, "/none": respond("gone", status="404 Not Found")}) as server:
        settings = settings_for(server, tmp_path / "home")
        urls = [server.url("/a"), server.url("/none"), server.url("/b")]
        seen: list[str] = []
        documents = asyncio.run(
            prunus.aread(urls, strict=False, settings=settings, done=lambda page: seen.append(page.url))
        )
        assert [tree.url for tree in documents.trees] == [urls[0], urls[2]] == seen
        assert documents.failures == prunus.read(urls, strict=False, settings=settings).failures != {}
        assert "noon" in asyncio.run(prunus.aprune(urls[0], QUESTION, settings=settings)).text
        with pytest.raises(prunus.OutsideFailed, match="404"):
            asyncio.run(prunus.aread(urls, settings=settings))


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (prunus.BadInput, lambda: prunus.aclean(PAGE, "pdf")),  # type: ignore[arg-type]
        (prunus.BadPage, lambda: prunus.aclean("")),
        (prunus.BadInput, lambda: prunus.aclean("http://127.0.0.1/")),
        (prunus.BadInput, lambda: prunus.aread([])),
        (prunus.BadInput, lambda: prunus.aprune(PAGE, " ")),
        (prunus.BadBudget, lambda: prunus.aprune(PAGE, QUESTION, 0)),
        (prunus.UnknownEngine, lambda: prunus.aprune(PAGE, QUESTION, options=prunus.Options(scorer="x"))),
        (prunus.NothingFound, lambda: prunus.aask("Which enzyme drives photosynthesis?", PAGE)),
        (prunus.BadInput, lambda: prunus.asearch("ferry", "no-such-provider")),
        (TypeError, lambda: prunus.aask(QUESTION, PAGE, bugdet=3)),  # type: ignore[call-arg]
    ],
)
def test_twins_raise_what_their_functions_raise(error: type[Exception], call: Callable[[], Awaitable[object]]) -> None:
    async def inside() -> None:
        await call()

    with pytest.raises(error) as caught:
        asyncio.run(inside())
    assert "\n" not in str(caught.value)


# --- beside the loop -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_loop_ticks_while_a_large_page_is_cleaned_and_pruned() -> None:
    page = "".join(f"<h2>Part {n}</h2><p>The ferry {n} leaves at {n % 24}. It carries coal.</p>" for n in range(8_000))

    async def measured(work: Awaitable[object]) -> tuple[int, float, float]:
        """Return the ticks while work runs, the longest pause between two, and the whole time."""
        task = asyncio.ensure_future(work)
        start = last = time.perf_counter()
        ticks, longest = 0, 0.0
        while not task.done():
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            ticks, longest, last = ticks + 1, max(longest, now - last), now
        await task
        return ticks, longest, last - start

    for call in (lambda: prunus.aprune(page, QUESTION), lambda: prunus.aask(QUESTION, page)):
        for chance in (1, 2, 3):  # a busy machine can stop the loop, too, but hardly three times in a row
            ticks, longest, whole = asyncio.run(measured(call()))  # type: ignore[no-untyped-call]
            if longest < whole / 2:
                break
            assert chance < 3, f"the loop stood still for {longest:.2f} of {whole:.2f} s"
        assert ticks > 10


@pytest.mark.parametrize(
    "call",
    [
        lambda options: prunus.aprune(PAGE, QUESTION, options=options),
        lambda options: prunus.aask(QUESTION, PAGE, options=options),
    ],
    ids=["aprune", "aask"],
)
def test_an_engine_may_wait_for_the_loop(call: Callable[[prunus.Options], Awaitable[object]]) -> None:
    begun, ticked = threading.Event(), threading.Event()

    def act() -> None:
        begun.set()
        assert ticked.wait(20), "the loop stood still"

    async def both() -> None:
        task = asyncio.ensure_future(call(with_scorer(act)))
        while not begun.is_set():
            await asyncio.sleep(0.005)
        ticked.set()
        await task

    asyncio.run(both())


def test_context_variables_reach_the_engines() -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    seen: list[str] = []

    async def of(name: str) -> None:
        tenant.set(name)
        await prunus.aprune(PAGE, QUESTION, options=with_scorer(lambda: seen.append(tenant.get())))
        await prunus.aask(QUESTION, PAGE, options=with_scorer(lambda: seen.append(tenant.get())))

    async def several() -> None:
        await asyncio.gather(of("a"), of("b"))

    asyncio.run(several())
    assert sorted(seen) == ["a", "a", "b", "b"]


# --- cancelled -------------------------------------------------------------------------------------


def test_cancelling_pruning_returns_at_once_while_its_thread_ends_later() -> None:
    begun, free, ended = threading.Event(), threading.Event(), threading.Event()

    def act() -> None:
        begun.set()
        assert free.wait(20)
        ended.set()

    async def cancelled() -> None:
        task = asyncio.ensure_future(prunus.aprune(PAGE, QUESTION, options=with_scorer(act)))
        while not begun.is_set():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not ended.is_set()
        free.set()

    asyncio.run(cancelled())
    assert ended.wait(20)


def test_cancelling_a_question_cancels_the_model() -> None:
    begun = threading.Event()
    words: list[str] = []

    def reply(messages: Any, options: Any) -> ScriptedReply:
        begun.set()
        return ScriptedReply("The ferry leaves at noon. [1] " * 400, pause=0.02)

    class Model(Scripted):
        async def stream(self, messages: Any, **options: Any) -> Any:
            try:
                async for event in super().stream(messages, **options):
                    yield event
            finally:
                words.append("ended")

    async def cancelled() -> None:
        options = prunus.Options(llm=Model(script=reply), extractor="sentences")
        task = asyncio.ensure_future(prunus.aask(QUESTION, PAGE, options=options))
        while not begun.is_set():
            assert not task.done(), task.result()
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    start = time.monotonic()
    asyncio.run(cancelled())
    assert words == ["ended"]
    assert time.monotonic() - start < 15  # the whole reply takes 48 s


@pytest.mark.parametrize("name", ["aclean", "aread", "aprune", "aask"])
def test_cancelling_ends_the_request_for_a_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, left = threading.Event(), threading.Event()

    def silent(request: Request, connection: socket.socket) -> None:
        asked.set()
        connection.settimeout(20)
        if connection.recv(1) == b"":
            left.set()

    async def cancelled(server: Server) -> None:
        settings = settings_for(server, tmp_path / "home")
        url = server.url("/slow")
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "aclean": lambda: prunus.aclean(url),
            "aread": lambda: prunus.aread(url, settings=settings),
            "aprune": lambda: prunus.aprune(url, QUESTION, settings=settings),
            "aask": lambda: prunus.aask(QUESTION, url, settings=settings),
        }
        task = asyncio.ensure_future(calls[name]())
        while not asked.is_set():
            assert not task.done(), task.result()
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Server({"/slow": silent}) as server:
        for key, value in {"allow_hosts": "127.0.0.0/8", "ports": server.port, "robots": "0"}.items():
            monkeypatch.setenv(f"PRUNUS_{key.upper()}", str(value))
        asyncio.run(cancelled(server))
        assert left.wait(10), "the connection stayed open"
