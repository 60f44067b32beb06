"""Thirty tasks for a small model that sees the tools of MCP: does it choose the right one, with the right arguments?

    python -m benchmarks.tool_choice --url http://127.0.0.1:8080/v1 [--source /other/src]

The server speaks OpenAI's API; the model is told the tools in the words of Qwen's chat template. The tasks were written
before any description was tried. Where a page is known and a fact is asked for, `read` and `ask` are both right.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

import prunus

A, B, C = "https://harbour.example.org/prices", "https://tides.example.org/story.html", "https://velmar.example.org/faq"
SYSTEM: Final = """You are a helpful assistant with tools.

# Tools

You may call one function to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For the function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """A task.

    :param tools: those that are right.
    :param check: tells whether the arguments are.
    """

    task: str
    tools: tuple[str, ...]
    check: Callable[[Arguments], bool]


def _pages(given: Arguments) -> list[str]:
    """Return the pages of a call; `page` is what `read` took before."""
    named = given.get("pages") or given.get("page") or []
    return [named] if isinstance(named, str) else [str(page) for page in named]


def _fact(*pages: str) -> Callable[[Arguments], bool]:
    return lambda given: _pages(given) == list(pages) and bool(given.get("question")) and not given.get("outline")


def _whole(page: str) -> Callable[[Arguments], bool]:
    return lambda given: _pages(given) == [page] and not given.get("question") and not given.get("outline")


def _outline(page: str) -> Callable[[Arguments], bool]:
    return lambda given: _pages(given) == [page] and bool(given.get("outline"))


def _from(page: str, start: int) -> Callable[[Arguments], bool]:
    return lambda given: _pages(given) == [page] and given.get("start") == start and not given.get("outline")


def _web(given: Arguments) -> bool:
    return bool(given.get("question")) and not _pages(given)


def _query(given: Arguments) -> bool:
    return bool(given.get("query"))


def _index(given: Arguments) -> bool:
    return given.get("index") == "handbook" and bool(given.get("question"))


EITHER: Final = ("read", "ask")
CHOICES: Final = (
    Choice(f"What does a monthly ticket cost according to {A}?", EITHER, _fact(A)),
    Choice(f"When did the gauge hut close? It should be in {B}", EITHER, _fact(B)),
    Choice(f"Look at {C} and tell me how long the batteries last.", EITHER, _fact(C)),
    Choice(f"Does {A} say anything about discounts for schools?", EITHER, _fact(A)),
    Choice(f"Who wrote the story at {B}?", EITHER, _fact(B)),
    Choice(f"Find the cancellation period on {A}", EITHER, _fact(A)),
    Choice(f"What do {A} and {C} say about shipping costs?", EITHER, _fact(A, C)),
    Choice(f"Compare the opening hours on {A} and {B}.", EITHER, _fact(A, B)),
    Choice(f"Show me the full text of {B}, word for word.", ("read",), _whole(B)),
    Choice(f"Open {C} and give me the whole page.", ("read",), _whole(C)),
    Choice(f"I want to translate {A}. Get me its complete text.", ("read",), _whole(A)),
    Choice(f"Read {B} to me from the beginning.", ("read",), _whole(B)),
    Choice(f"Which headings does {B} have?", ("read",), _outline(B)),
    Choice(f"Give me the table of contents of {C}.", ("read",), _outline(C)),
    Choice(f"You have read {B} up to next_start=4012. Read on from there.", ("read",), _from(B, 4012)),
    Choice(f"The outline of {C} says: Repairs (start 2210, 300 tokens). Read that section.", ("read",), _from(C, 2210)),
    Choice("Who is the mayor of Rotterdam today? I need a source.", ("ask",), _web),
    Choice("What is the current interest rate of the European Central Bank? Cite where you found it.", ("ask",), _web),
    Choice("How many people live in Lagos? Answer with citations from the web.", ("ask",), _web),
    Choice("When is the next total solar eclipse in Spain? Give a sourced answer.", ("ask",), _web),
    Choice("Why did the Tacoma Narrows Bridge collapse? Back it up with quotes.", ("ask",), _web),
    Choice("Give me links to some pages about stilling wells.", ("search",), _query),
    Choice("Which websites write about tide gauges? Only a list, I choose myself.", ("search",), _query),
    Choice("Search the web for reviews of the Pell 2 gauge.", ("search",), _query),
    Choice("Find five articles on barnacles and radar sensors.", ("search",), _query),
    Choice("What does our handbook say about parental leave?", ("index_ask",), _index),
    Choice("According to the handbook, who approves travel?", ("index_ask",), _index),
    Choice("Ask the handbook collection how expenses are paid back.", ("index_ask",), _index),
    Choice("Is home office allowed? Look it up in the handbook.", ("index_ask",), _index),
    Choice("How many days of holiday do we have, by the handbook?", ("index_ask",), _index),
)


async def tools_of(source: str) -> str:
    """Return the tools as the server describes them, a line of JSON each."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    with tempfile.TemporaryDirectory() as home:
        prunus.Index.open(Path(home) / "made").add({"leave": "<p>Parental leave is twelve weeks.</p>"})
        own = {"PRUNUS_HOME": home, "PRUNUS_SEARCH": "wikipedia"} | ({"PYTHONPATH": source} if source else {})
        program = "from prunus.cli.main import main; main()"
        started = StdioServerParameters(
            command=sys.executable,
            args=["-c", program, "mcp", "--index", f"handbook={home}/made"],
            env={**os.environ, **own},
        )
        async with Client(started) as client:
            tools = (await client.list_tools()).tools
    functions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema} for tool in tools
    ]
    return "\n".join(json.dumps({"type": "function", "function": function}) for function in functions)


def called(reply: str) -> tuple[str, Arguments]:
    """Return tool and arguments of a reply; '' where it calls none."""
    start = reply.find("{")
    while start >= 0:
        try:
            value, _ = json.JSONDecoder().raw_decode(reply, start)
        except ValueError:
            start = reply.find("{", start + 1)
            continue
        if isinstance(value, dict) and isinstance(value.get("arguments"), dict):
            return str(value.get("name")), value["arguments"]
        start = reply.find("{", start + 1)
    return "", {}


def main(url: str, source: str) -> int:
    """Put all tasks to the model, and print what it chose."""
    system = SYSTEM.format(tools=asyncio.run(tools_of(source)))
    right = exact = 0
    with httpx.Client(timeout=600, trust_env=False) as http:
        for choice in CHOICES:
            messages = [{"role": "system", "content": system}, {"role": "user", "content": choice.task}]
            body = {"model": "m", "messages": messages, "temperature": 0, "max_tokens": 150, "cache_prompt": True}
            reply = http.post(f"{url}/chat/completions", json=body).json()["choices"][0]["message"]["content"]
            tool, arguments = called(reply)
            is_right = tool in choice.tools
            is_exact = is_right and choice.check(arguments)
            right, exact = right + is_right, exact + is_exact
            shown = json.dumps(arguments, ensure_ascii=False)[:110]
            print(
                "exact" if is_exact else "tool " if is_right else "wrong",
                choice.task[:60],
                "->",
                tool,
                shown,
                flush=True,
            )
    print(json.dumps({"tasks": len(CHOICES), "right_tool": right, "right_arguments": exact, "letters": len(system)}))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="address of the model's server")
    parser.add_argument("--source", default="", help="src of the checkout whose tools are described")
    given = parser.parse_args()
    sys.exit(main(given.url, given.source))
