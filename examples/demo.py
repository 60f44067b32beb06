"""Answer three questions from the example site; show the evidence, the citations and the times.

Run it from anywhere: ``python examples/demo.py`` (or ``make demo``, which sets up first).
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import prunus
from prunus.engines import one_engine

SITE = Path(__file__).resolve().parent / "site"
BUDGET = 1024
QUESTIONS = (
    ("a price in a table", "How much is the Harbour plan per month, paid yearly?"),
    ("a fact in a long article", "How much did the Linden Trust pay towards reading the rolls?"),
    ("a page in Chinese", "红灯常亮是什么意思？"),
)
LINES = 14
"""Lines of evidence to show for each question."""


def main() -> None:
    width = min(110, shutil.get_terminal_size((100, 24)).columns)
    count = counter()

    started = time.perf_counter()
    documents = prunus.read(SITE)
    reading = time.perf_counter() - started

    pages = sorted(SITE.glob("*.html"))
    raw = sum(count(page.read_text("utf-8")) for page in pages)
    cleaned = sum(count(prunus.clean(page)) for page in pages)
    heading(f"{len(documents)} pages of examples/site, read and cleaned in {1000 * reading:.0f} ms", "=", width)
    print(f"{raw:,} tokens on the web -> {cleaned:,} cleaned, without losing a visible word")

    for kind, question in QUESTIONS:
        print()
        heading(f"{kind}: {question}", "-", width)
        context = prunus.prune(documents, question, budget=BUDGET, format="markdown")
        print(f"{raw:,} tokens raw -> {cleaned:,} cleaned -> {context.tokens:,} kept (budget {BUDGET})")
        print(f"{len(context.kept)} of {len(context.blocks):,} blocks; the evidence, as a model would read it:\n")
        try:
            answer = prunus.ask(question, documents, budget=BUDGET)
        except prunus.NothingFound as error:
            show(context, "", width)
            print(f"\n{bold('answer')} none: {error}")
            continue
        show(context, answer.citations[0].quote, width)
        print()
        cite(answer, width)
        stages = {**answer.usage.seconds, **context.seconds}
        print(f"{bold('time')}   " + ", ".join(f"{stage} {1000 * took:.1f} ms" for stage, took in stages.items()))

    where_next(width)


def counter() -> Callable[[str], int]:
    """Return a function that counts the tokens of a text, with the tokenizer of the settings."""
    engine = one_engine("tokenizer", prunus.load_settings())
    return lambda text: int(engine.count([text])[0])


def cite(answer: prunus.Answer, width: int) -> None:
    """Print the quotes of an answer, each with its place and whether it was found in the page."""
    print(bold("answer"), answer.text.split("\n")[0])
    for citation in answer.citations:
        mark = "✓ found in the page" if citation.found else "✗ NOT FOUND in the page"
        quote = " | ".join(part.strip() for part in citation.quote.split("\t") if part.strip())
        print(textwrap.fill(f"[{citation.number}] “{quote}”", width, initial_indent="  ", subsequent_indent="      "))
        print(f"      {mark}  {Path(citation.url).name}  {citation.xpath}")


def show(context: prunus.Context, quote: str, width: int) -> None:
    """Print the lines of evidence around a quote."""
    start = quote.split("\t")[0].split("\n")[0][:30]
    lines: list[str] = []
    place = 0
    for line in context.output.split("\n"):
        if not place and start in line:
            place = len(lines) + line.index(start) // width
        lines.extend(textwrap.wrap(line, width - 4))
    first = max(0, min(place - LINES // 2, len(lines) - LINES))
    if first:
        print(f"  | … {first} lines above")
    print("\n".join(f"  | {line}" for line in lines[first : first + LINES]))
    if len(lines) > first + LINES:
        print(f"  | … {len(lines) - first - LINES} lines below")


def where_next(width: int) -> None:
    """Print commands to try next."""
    print()
    heading("where to go from here", "=", width)
    print(
        textwrap.dedent(
            """\
            prunus ask "How deep is the stilling well?" examples/site
            prunus prune examples/site -q "What does one Pell 2 cost?" --budget 512 --explain
            prunus prune examples/site -q "What does one Pell 2 cost?" --report report.html
            prunus clean PAGE --format markdown        any saved page
            prunus doctor                              the settings, and tests of the engines
            (.venv/bin/prunus, where make has set it up; README.md has the same from Python)"""
        )
    )


def heading(text: str, rule: str, width: int) -> None:
    print(bold(text))
    print(rule * width)


def bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


if __name__ == "__main__":
    main()
