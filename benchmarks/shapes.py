"""Ten real pages through Firecrawl's shape: whole, as evidence for a question, and as the answer to it.

python -m benchmarks.shapes [--pages N]

A server of this machine reads the pages of questions over tables (``table_qa`` of ``PRUNUS_DATA``, dev half) from a web
server of this machine. For each format: wall seconds, tokens of all replies, and how many hold the gold answer.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from benchmarks.report import finish, json_line, parser, table
from benchmarks.server import site_of, started
from benchmarks.workers import BenchError

Asked = tuple[str, str, list[str]]
"""HTML of a page, a question, and its answers."""


def asked(number: int) -> list[Asked]:
    """Return pages with a question each.

    :raises BenchError: there is no data.
    """
    from prunus_evals.split import half

    folder = Path(os.environ.get("PRUNUS_DATA", "")) / "table_qa"
    if not os.environ.get("PRUNUS_DATA") or not folder.is_dir():
        raise BenchError("PRUNUS_DATA names no folder with table_qa")
    questions: dict[str, Mapping[str, Any]] = {}
    for row in _rows(folder / "questions.jsonl.xz"):
        if half(row["page"]) == "dev":
            questions.setdefault(row["page"], row)
    result: list[Asked] = []
    for row in _rows(folder / "pages.jsonl.xz"):
        if row["page"] in questions and len(result) < number:
            question = questions[row["page"]]
            result.append((row["html"], question["question"], list(question["answers"])))
    return result


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def measured(pages: list[Asked], address: str, port: int) -> list[list[Any]]:
    """Return format, seconds, tokens and the number of replies that hold an answer."""
    from prunus.core.settings import load_settings
    from prunus.engines import one_engine

    counter = one_engine("tokenizer", load_settings())
    result: list[list[Any]] = []
    with httpx.Client(base_url=address, timeout=120, trust_env=False) as http:
        for name, field in (("markdown", ""), ("highlights", "query"), ("question", "question")):
            tokens = right = 0
            begun = time.perf_counter()
            for number, (_, question, answers) in enumerate(pages):
                format = {"type": name, field: question} if field else name
                body = {"url": f"http://127.0.0.1:{port}/{number}", "formats": [format]}
                data = http.post("/v2/scrape", json=body).raise_for_status().json()["data"]
                text = data["answer" if name == "question" else name]
                tokens += int(counter.count([text])[0])
                right += any(answer.casefold() in text.casefold() for answer in answers)
            result.append([name, round(time.perf_counter() - begun, 1), tokens, right])
    return result


def run(options: argparse.Namespace) -> bool:
    """Measure, and print the table; there is no target."""
    pages = asked(options.pages)

    def content(path: str) -> bytes:
        place = path.removeprefix("/")
        return pages[int(place)][0].encode() if place.isdecimal() else b""

    with site_of(content) as port, tempfile.TemporaryDirectory() as home:
        known = {"PRUNUS_HOME": home, "PRUNUS_ALLOW_HOSTS": "127.0.0.1", "PRUNUS_PORTS": str(port)}
        command = [sys.executable, "-c", "from prunus.cli.main import main; main()", "serve", "--port", "0"]
        with started([*command, "--shapes", "firecrawl"], **known, PRUNUS_BROWSER="never") as (_, line):
            address = re.search(r"http://[\d.]+:\d+", line)
            if address is None:
                raise BenchError(f"the server did not start: {line.strip()}")
            rows = measured(pages, address[0], port)
    table(f"{len(pages)} pages through /v2/scrape", ["format", "seconds", "tokens", "hold the answer"], rows)
    json_line("shapes", {row[0]: row[1:] for row in rows})
    return True


def main() -> int:
    """Run the benchmark from the command line and return the exit code."""
    options = parser("shapes", __doc__)
    options.add_argument("--pages", type=int, default=10, metavar="N", help="pages (10)")
    return finish(run, options.parse_args())


if __name__ == "__main__":
    sys.exit(main())
