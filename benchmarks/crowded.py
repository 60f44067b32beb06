"""Crowded pages: the memory of pruning pages of many kinds, each as large as is read, against what is promised.

    python -m benchmarks.crowded [--cases a,b] [--most MB] [--ask | --mark]

A page of many elements for its size is refused; each kind of page here grows until it would be, or to the size that
``--most`` says. What pruning it takes above the warm process has to stay under 20 x the page + 100 MB. ``--ask``
measures what asking takes, ``--mark`` what pruning and marking, of pages as large as XPaths are given for, and marks
made: for these a page is parsed once more.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable

from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.workers import BenchError
from prunus.errors import BadPage
from prunus.html.limits import ALLOWED, ALLOWED_PER_BYTE, check_memory, fits_again

Make = Callable[[int], bytes]

SECONDS = 300.0
WITHIN = 0.98  # as large as is read, less what the bisection below leaves

_MEASURED = """
import contextlib
import sys
import prunus
prunus.prune("<p>warm words<p>more", "words?", 64)
page = sys.stdin.buffer.read()
def resident(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
warm = resident("VmRSS")
{call}
print(resident("VmHWM") - warm)
"""
CALLS = {
    "prune": "prunus.prune(page, sys.argv[1], 1024)",
    "ask": """with contextlib.suppress(prunus.NothingFound):
    assert all(found.xpath for found in prunus.ask(sys.argv[1], [page]).citations)""",
    "mark": "assert prunus.prune(page, sys.argv[1], 1024).mark()",
}
"""Nothing is cited where the question, a text from the middle of the page, holds no word that says anything."""


def repeated(unit: str, before: str = "") -> Make:
    """A page of one piece of markup over and over; ``{i}`` in it is the running number."""
    if "{i}" not in unit:
        return lambda number: (before + unit * number).encode()
    return lambda number: (before + "".join(unit.replace("{i}", str(i)) for i in range(number))).encode()


CASES: dict[str, Make] = {
    "paragraphs": repeated("<p>two words"),
    "paragraphs of a letter": repeated("<p>a"),
    "closed paragraphs": repeated("<p>some words here</p>\n"),
    "different paragraphs": repeated("<p>w{i}"),
    "different long paragraphs": repeated("<p>word{i} word{i}"),
    "rows": repeated("<tr><td>1<td>2<td>3", "<table>"),
    "closed rows": repeated("<tr><td>12</td><td>23</td><td>345</td></tr>\n", "<table>"),
    "different rows": repeated("<tr><td>{i}<td>7{i}", "<table>"),
    "rows under a head": repeated("<tr><td>1<td>2\n", "<table><thead><tr><th>a<th>b<tbody>"),
    "rows without a start": repeated("<td>a</tr>", "<table>"),
    "cells": repeated("<td>", "<p>x<table><tr>"),
    "tables": repeated("<table><tr><th>a<tr><td>b</table>"),
    "tables without rows": repeated("<table><td>a</table>"),
    "items": repeated("<li>a", "<ul>"),
    "items with links": repeated("<li><a href=/x><b>a</b></a>\n", "<ul>"),
    "definitions": repeated("<dt>a<dd>b", "<dl>"),
    "options": repeated("<option>a", "<select multiple>"),
    "headings": repeated("<h2>a</h2><p>b"),
    "nothing but headings": repeated("<h1>a<h2>b"),
    "sections": repeated("<section><h2>a</h2><p>b</section>"),
    "boxes": repeated("<div>a</div>"),
    "boxes in boxes": repeated("<div><div><p>a</p></div></div>"),
    "unknown elements": repeated("<x>a</x>"),
    "unclosed formatting": repeated("<b>x "),
    "misnested formatting": repeated("<b><p>a</b>"),
    "formatting misnested thrice": repeated("<b><i><u><p>a</b></i></u>"),
    "inline elements": repeated("<span>a</span> <i>b</i>"),
    "line ends": repeated("a<br>"),
    "links": repeated("<a href=x>a</a> "),
    "different links": repeated("<a href=x{i}>a{i}</a> "),
    "links on lines": repeated("<a href=/page/{i}>Page {i}</a><br>\n"),
    "pictures": repeated("<img src=a alt=b>"),
    "figures": repeated("<figure><img src=a alt=b><figcaption>c</figure>"),
    "inputs": repeated("<input value=a>"),
    "code": repeated("<pre>a b</pre>"),
    "lines of code": repeated("a\n", "<pre>"),
    "attributes": repeated("<p a b c d e f>x"),
    "languages": repeated("<p lang=en>x"),
    "styles": repeated("<p style=a>x"),
    "comments": repeated("<!--x-->", "<p>x"),
    "scripts": repeated("<p>x<script>a<b;c<d;</script>"),
    "drawings": repeated("<g/>", "<p>x<svg>"),
    "noscripts": repeated("<noscript>a</noscript>"),
    "end tags": repeated("</p>", "<p>x"),
    "Chinese": repeated("<p>汉字"),
    "sentences": repeated("A b. ", "<p>"),
    "different words": repeated("w{i} ", "<p>"),
}


def is_read(page: bytes, doing: str = "prune") -> bool:
    """Whether a page is not refused for its elements; or whether its quotes get XPaths, what is kept of it marks."""
    if doing != "prune":
        return fits_again(page, page.count(b"<"), len(page))
    try:
        check_memory(page, page.count(b"<"), len(page))
    except BadPage:
        return False
    return True


def largest(make: Make, most: int, doing: str = "prune") -> bytes:
    """The largest page of a kind that is read, within two hundredths, and no larger than ``most`` bytes."""
    start = make(10_000)
    number = 10_000 * most // len(start)
    if is_read(page := make(number)[:most], doing):
        return page
    low, high = 0, number
    while low < WITHIN * high:
        middle = (low + high) // 2
        low, high = (middle, high) if is_read(make(middle), doing) else (low, middle)
    return make(low)


def peak(page: bytes, doing: str = "prune") -> int:
    """What pruning a page takes above the warm process, in bytes; or marking it, or asking for a text of its own."""
    texts = re.findall(rb">([^<>]{,60}\w)", page) if doing == "ask" else []
    question = texts[len(texts) // 2].decode(errors="ignore") if texts else "When did the harbour open?"
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED.format(call=CALLS[doing]), question],
        input=page,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise BenchError((done.stderr.decode().strip() or "the process died without a word").splitlines()[-1])
    return int(done.stdout)


def run(options: argparse.Namespace) -> bool:
    """The whole benchmark; whether every page stayed within what is promised."""
    names = options.cases.split(",") if options.cases else list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise BenchError(f"unknown case {unknown[0]!r}; there are: {', '.join(CASES)}")
    if options.quick:
        names = names[::6]
    found: dict[str, dict[str, float]] = {}
    for name in names:
        page = largest(CASES[name], int(options.most * 1e6), options.doing)
        allowed = (ALLOWED + ALLOWED_PER_BYTE * len(page)) / 1e6
        taken = peak(page, options.doing) / 1e6
        found[name] = {"mb": len(page) / 1e6, "peak_mb": taken, "allowed_mb": allowed, "share": taken / allowed}
        say(f"{name}: {taken:.0f} MB of {allowed:.0f}")
    rows = [[name, *values.values()] for name, values in found.items()]
    table("Crowded pages, each as large as is read", ["case", "page MB", "peak MB", "allowed MB", "share"], rows)
    print()
    over = [name for name, values in found.items() if values["share"] >= 1]
    text = f"{len(found) - len(over)} of {len(found)} cases within memory" + (
        f"; not: {', '.join(over)}" if over else ""
    )
    met = verdict(text, not over)
    json_line("crowded", {"cases": found, "doing": options.doing, "met": met})
    return met


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = parser("crowded", __doc__)
    options.add_argument("--cases", help="comma-separated; without it, all of them")
    options.add_argument("--most", type=float, default=20.0, help="size of the largest page, in MB (20)")
    options.set_defaults(doing="prune")
    other = options.add_mutually_exclusive_group()
    for doing, text in (("ask", "asking, with XPaths, instead of pruning"), ("mark", "marking what pruning kept")):
        other.add_argument(f"--{doing}", dest="doing", action="store_const", const=doing, help=f"measure {text}")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
