"""A language model that names its evidence, against evidence that code finds: right answers, seconds and tokens.

python -m benchmarks.extractors --llm http://127.0.0.1:8089/v1#qwen2.5-coder-1.5b-instruct [--pages N]

Questions over whole pages (``table_qa`` of ``PRUNUS_DATA``, dev half) are asked as `prunus ask --llm` asks them, with
the extractor ``tags``, which lets the model name segments, and with ``sentences``, which needs none. An answer is right
where it holds the gold answer; it is quoted where no page bore out what the model wrote.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import prunus
from benchmarks.report import finish, json_line, parser, table
from benchmarks.shapes import asked


def run(options: argparse.Namespace) -> bool:
    """Ask, and print the table; there is no target."""
    rows: list[list[Any]] = []
    for extractor in ("tags", "sentences"):
        right = quoted = tokens = 0
        begun = time.perf_counter()
        for html, question, answers in asked(options.pages):
            chosen = prunus.Options(llm=options.llm, extractor=extractor)
            try:
                answer = prunus.ask(question, html, options=chosen)
            except prunus.NothingFound:
                continue
            text = answer.text.casefold()
            right += any(gold.casefold() in text for gold in answers)
            quoted += "answer" in answer.failures or "generator" in answer.failures
            tokens += answer.usage.prompt_tokens + answer.usage.completion_tokens
            print(f"{extractor}: {question} {answers[0]!r}: {answer.text[:200]!r}", file=sys.stderr, flush=True)
        seconds = (time.perf_counter() - begun) / options.pages
        rows.append([extractor, right, quoted, round(seconds, 1), round(tokens / options.pages)])
    table(
        f"{options.pages} questions to {options.llm}",
        ["extractor", "right", "quoted instead", "seconds each", "tokens each"],
        rows,
    )
    json_line("extractors", {row[0]: row[1:] for row in rows})
    return True


def main() -> int:
    """Run the benchmark from the command line and return the exit code."""
    options = parser("extractors", __doc__)
    options.add_argument("--llm", required=True, metavar="SPEC", help="the language model")
    options.add_argument("--pages", type=int, default=10, metavar="N", help="questions, each over a page of its own")
    return finish(run, options.parse_args())


if __name__ == "__main__":
    sys.exit(main())
