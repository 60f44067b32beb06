"""A scripted agent answers ten questions over the example site through the tools of MCP alone.

    python -m benchmarks.agent                         # the tools of this checkout
    python -m benchmarks.agent --source /other/src     # those of another one, also where `read` takes one page

It does what a careful client does: it searches, reads the three best pages for the question, and stops where the
server does not doubt what it gave. For the three questions that want a section whole it reads the section by the
outline; without one it reads the page's resource. A question counts as answered where all its gold words are in what
came back. Tokens are those of the text that a model would be shown, as SmolLM2 counts them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any, Final

from prunus.core.settings import load_settings
from prunus.engines import one_engine

SITE: Final = "examples/site"
_PLACE: Final = re.compile(r"start (\d+), (\d+) tokens")


@dataclass(frozen=True, slots=True)
class Task:
    """A question.

    :param keywords: what the agent searches for.
    :param gold: words that an answer must hold.
    :param section: words of the heading of a section that is wanted whole; '' for a fact.
    """

    question: str
    keywords: str
    gold: tuple[str, ...]
    section: str = ""


TASKS: Final = (
    Task("How many old tide recordings turned up in the attic of the chandlery?", "tide recordings chandlery",
         ("1,914",)),
    Task("If I cancel, how long can I still get at my measurements?", "cancel plan measurements", ("60 days",)),
    Task("How far down does the stilling well go?", "stilling well", ("9.6",)),
    Task("When did the club meet next after autumn 2004?", "club meeting autumn 2004", ("19 November 2004",)),
    Task("After what time can a published value no longer change?", "published value final", ("40 days",)),
    Task("Which bus goes to the Ropewalk and how often on weekdays?", "bus Ropewalk", ("Line 24", "20 minutes")),
    Task("Why should I not simply subtract a fixed error?", "subtract fixed error gauge", ("the other twenty hours",)),
    Task("What exactly is in the box of the Pell 2?", "Pell 2 gauge box",
         ("Bird cone", "Two stainless bolts", "Magnet key", "Printed certificate"), "in the box"),
    Task("Give me all first steps with Levelcast, word for word.", "Levelcast first steps",
         ("Get a token", "levelcast init", "config --show", "levelcast serve", "levelcast check"), "first steps"),
    Task("List all other dates of the year, with time and place.", "other dates events",
         ("10 May 2025", "9 September 2025", "2 October 2025", "10 to 14 November"), "other dates"),
)  # fmt: skip


@dataclass(slots=True)
class Agent:
    """Calls tools, and keeps what came back.

    :param client: of the protocol.
    :param several: whether `read` takes several pages, and parts of them.
    :param budget: tokens of evidence that it asks for at once.
    """

    client: Any
    several: bool
    budget: int
    received: list[str] = field(default_factory=list)

    async def call(self, tool: str, **arguments: Any) -> tuple[Any, str]:
        """Return the data and the text of a result."""
        result = await self.client.call_tool(tool, arguments)
        text = next(part.text for part in result.content if part.type == "text")
        self.received.append(text)
        return result.structured_content, text

    async def answer(self, task: Task) -> None:
        """Work on a question."""
        found, _ = await self.call("search", query=task.keywords, count=5)
        pages = [hit["url"].removeprefix(f"{SITE}/") for hit in found["hits"]][:3]
        if not pages:
            return
        if task.section:
            await (self._section(pages, task) if self.several else self._whole(pages, task))
        elif self.several:
            await self.call("read", pages=pages, question=task.question, max_tokens=self.budget)
        else:
            for page in pages:
                _, text = await self.call("read", page=page, question=task.question, budget=self.budget)
                if "likely to answer" not in text:
                    return

    async def _section(self, pages: list[str], task: Task) -> None:
        """Read the section by the outline of the first page that has it."""
        for page in pages:
            outline, _ = await self.call("read", pages=[page], outline=True)
            lines = outline["pages"][0]["text"].split("\n") if outline else []
            heads = [(len(line) - len(line.lstrip()), line, _PLACE.search(line)) for line in lines]
            for at, (depth, line, place) in enumerate(heads):
                if task.section in line.casefold() and place:
                    tokens = int(place[2])
                    for deeper, _, below in heads[at + 1 :]:
                        if deeper <= depth:
                            break
                        tokens += int(below[2]) if below else 0
                    await self.call("read", pages=[page], start=int(place[1]), max_tokens=tokens + 16)
                    return

    async def _whole(self, pages: list[str], task: Task) -> None:
        """Read the pages for the question, and the whole page where it has the section: as its resource."""
        for page in pages:
            read, _ = await self.call("read", page=page, question=task.question, budget=self.budget)
            if not read or not read["resource"]:
                continue
            content = (await self.client.read_resource(read["resource"])).contents[0].text
            self.received.append(content)
            if task.section in content.casefold():
                return


async def run(source: str, budget: int) -> int:
    """Work on all tasks, and print what each cost."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    counter = one_engine("tokenizer", load_settings())
    counts: dict[str, Any] = {"answered": 0, "calls": 0, "tokens": 0}
    with tempfile.TemporaryDirectory() as home:
        own = {"PRUNUS_HOME": home, "PRUNUS_SEARCH": f"local:{SITE}"} | ({"PYTHONPATH": source} if source else {})
        started = StdioServerParameters(
            command=sys.executable,
            args=["-c", "from prunus.cli.main import main; main()", "mcp", "--allow", SITE, "--no-fetch"],
            env={**os.environ, **own},
        )
        async with Client(started) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            several = "pages" in tools["read"].input_schema["properties"]
            for task in TASKS:
                agent = Agent(client, several, budget)
                await agent.answer(task)
                tokens = int(sum(counter.count(agent.received)))
                text = "\n".join(agent.received)
                answered = all(word in text for word in task.gold)
                print(
                    f"{'yes' if answered else 'no':4} {len(agent.received)} calls {tokens:6,} tokens  {task.question}"
                )
                counts["answered"] += answered
                counts["calls"] += len(agent.received)
                counts["tokens"] += tokens
    print(json.dumps({"several": several, **counts}))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="", help="src of the checkout whose tools are called")
    parser.add_argument("--budget", type=int, default=1_200, help="tokens of evidence that it asks for at once")
    given = parser.parse_args()
    sys.exit(asyncio.run(run(given.source, given.budget)))
