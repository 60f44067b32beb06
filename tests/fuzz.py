"""Fuzz cleaning and pruning with mutated documents until a check fails or time is up.

    python tests/fuzz.py --seconds 600          # as long as you like
    python tests/fuzz.py --count 5000 --seed 7  # the same documents every time

Seeds are the pages of the example site and a few others. A mutation cuts, repeats, swaps or inserts bytes, tags and
attributes, or splices two pages. For each document Prunus must answer or raise one deliberate error within a time limit.
Its promises must hold: cleaning twice changes nothing, blocks hold every word once, output is within the budget. The
first failure is made smaller, written to a file, and ends the run with exit code 1.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import prunus

SITE = Path(__file__).parents[1] / "examples" / "site"
LIMIT = 10.0
"""Seconds for one document at most."""

QUESTION = "When did the harbour open, and what does it cost?"

TAGS = """p div span b i a td th tr table tbody thead caption ul ol li dl dt dd pre code h1 h3 br hr img select option
    script style template noscript svg math iframe textarea title form button input details summary figure figcaption
    blockquote section object video body html head frameset ruby rt font nobr x-card p0""".split()

MARKS = rb"""< > & </ <! <!-- --> --!> <![CDATA[ ]]> <? /> &# &#x0; &amp &lt; &#xd800; &#x1f600; ' " = ` | * [ ]( \
    <meta/charset=utf-16> <meta/charset=gbk> <base/href=x> <!doctype/html>""".split()

ATTRIBUTES = b"""hidden style='display:none' style=visibility:hidden style=visibility:visible aria-hidden=true colspan=3
    rowspan=0 rowspan=65535 colspan=-1 start=x value=9999999999999999999999 lang=zh open selected multiple alt=''
    width=1 src=data:x href=javascript:x""".split()

ODD = (
    *(b" ", b"\n\n", b"\t", b"\r", b"\x0c", b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbf\xbe"),
    *("\u200b".encode(), "\U0001f600".encode(), "\u6c34".encode(), "\u202e".encode(), "\u0301".encode()),
)

PIECES = (*MARKS, *(b" " + attribute for attribute in ATTRIBUTES), *ODD)
"""Bytes that a mutation inserts."""

GENERATED = (
    "<h1>Harbour</h1>" + "<p>The harbour opened in 1932. Entry costs 4.50 coins.</p>" * 3,
    "<table><caption>Fares</caption><thead><tr><th colspan=2>Zone<th rowspan=2>Coins</thead>"
    "<tr><td>inner<td><td>2<tr><td rowspan=2>outer<td>a<td>3<tr><td>b<td>4</table>",
    "<ul><li>one<ul><li>two<ol start=4><li>three<li value=9>four</ol></ul><li><p>five</ul><dl><dt>a<dd>b<dd>c</dl>",
    "<pre>\n\n  def f():\n\treturn `x`\n</pre><p>a<b>b<i>c</b>d</i> <code>`</code> a*b_c [d](e) &amp;amp; 1. x</p>",
    "<div><div hidden>h</div>text<p>para</p>tail<br><img src=a.png alt=map><noscript><img src=b.png></noscript></div>",
    "<figure><img src=a.png alt=x><figcaption>y</figcaption></figure><select><option>a<option selected>b</select>",
    "<p>潮汐站每天记录水位高度。港口一九三二年开放。</p><p>สถานีวัดระดับน้ำเปิดทุกวัน</p><p dir=rtl>الميناء مفتوح</p>",
    "<math><mi>x</mi><mo>=</mo></math><svg><text>s</text></svg><ruby>漢<rt>kan</rt></ruby><details><summary>s</summary>d</details>",
)


@dataclass
class Summary:
    """Counts and times of a run."""

    documents: int = 0
    answered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        refused = ", ".join(f"{count} {name}" for name, count in sorted(self.refused.items())) or "none"
        rate = self.documents / max(self.seconds, 1e-9)
        return (
            f"{self.documents} documents in {self.seconds:.1f} s ({rate:.0f} a second): {self.answered} answered, "
            f"refused: {refused}; slowest {self.slowest:.2f} s"
        )


class Failure(Exception):
    """A document that breaks a promise."""

    def __init__(self, document: bytes, reason: str) -> None:
        super().__init__(reason)
        self.document = document


class TooLong(Exception):
    """A document took longer than the limit."""


def seeds() -> list[bytes]:
    """Return the documents that mutations start from, as bytes."""
    return [path.read_bytes() for path in sorted(SITE.glob("*.html"))] + [page.encode() for page in GENERATED]


# --- mutations -----------------------------------------------------------------------------------


def _tag(rng: random.Random) -> bytes:
    name = rng.choice(TAGS)
    return rng.choice((f"<{name}>", f"</{name}>", f"<{name}", f"<{name}/>", f"<{name.upper()}>")).encode()


def _insert(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    place = rng.randrange(len(page) + 1)
    return (
        page[:place]
        + (_tag(rng) if rng.random() < 0.6 else rng.choice(PIECES)) * rng.choice((1, 1, 1, 2, 30))
        + page[place:]
    )


def _delete(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    place = rng.randrange(len(page) + 1)
    return page[:place] + page[place + rng.choice((1, 2, 5, 20, 300)) :]


def _double(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    place = rng.randrange(len(page) + 1)
    part = page[place : place + rng.choice((3, 20, 200))]
    return page[:place] + part * rng.choice((2, 3, 40)) + page[place:]


def _swap(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    first, second = sorted(rng.randrange(len(page) + 1) for _ in range(2))
    size = rng.choice((1, 10, 100))
    return (
        page[:first]
        + page[second : second + size]
        + page[first + size : second]
        + page[first : first + size]
        + page[second + size :]
    )


def _flip(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    changed = bytearray(page)
    for _ in range(rng.choice((1, 3, 30))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _splice(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    other = rng.choice(others)
    place = rng.randrange(len(other) + 1)
    return page[: rng.randrange(len(page) + 1)] + other[place : place + 3000]


def _attribute(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    place = page.find(b">", rng.randrange(len(page) + 1))
    return page[:place] + b" " + rng.choice(ATTRIBUTES) + page[place:] if place > 0 else page


def _truncate(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    return page[: rng.randrange(len(page) + 1)]


MUTATIONS: tuple[Callable[[random.Random, bytes, list[bytes]], bytes], ...] = (
    _insert, _insert, _insert, _attribute, _attribute, _delete, _delete, _double, _swap, _flip, _splice, _truncate
)  # fmt: skip


def documents(seed: int) -> Iterator[bytes]:
    """Yield mutated documents without end; the same for the same seed."""
    rng = random.Random(seed)
    known = seeds()
    small = [page if len(page) < 6000 else b"" for page in known]
    while True:
        page = rng.choice(known)
        if len(page) > 6000:  # a window of a large page, to check more documents a second
            start = rng.randrange(len(page) - 4000)
            page = page[start : start + rng.choice((500, 2000, 4000))] if rng.random() < 0.97 else page
        for _ in range(rng.choice((1, 1, 2, 3, 6, 12))):
            page = rng.choice(MUTATIONS)(rng, page, [seed for seed in small if seed])
        yield page


# --- what must hold ------------------------------------------------------------------------------


def check(document: bytes) -> str:
    """Clean and prune a document; return 'answered' or the name of the deliberate error.

    :raises Failure: a promise is broken. Any other exception is a crash.
    """
    try:
        once = prunus.clean(document)
    except prunus.PrunusError as error:
        return type(error).__name__
    if prunus.clean(prunus.Page(once, media_type="text/html")) != once:
        raise Failure(document, "cleaning twice changes something")
    for format in ("markdown", "text"):
        prunus.clean(document, format)
    read = prunus.read(document)
    spread = len(document)
    for max_words, budget, format in (
        (spread % 7 + 1, 40, "html"),
        (48, 200, "markdown"),
        (spread % 200 + 1, 20, "text"),
    ):
        options = prunus.Options(max_words=max_words, tokenizer="approx", scorer="bm25", breadcrumbs=spread % 2 == 0)
        try:
            context = prunus.prune(read, QUESTION, budget, format, options)
        except prunus.BadBudget:
            continue
        if context.tokens > budget:
            raise Failure(document, f"{context.tokens} tokens at a budget of {budget}")
        in_blocks = "".join("".join(block.text.split()) for block in context.blocks)
        whole = "".join("".join(tree.canonical.split()) for tree in read.trees)
        if in_blocks != whole:
            raise Failure(document, f"blocks of {max_words} words do not hold every word once")
    return "answered"


def _alarm(signum: int, frame: FrameType | None) -> None:
    raise TooLong


def run(seconds: float, count: int, seed: int, limit: float = LIMIT) -> Summary:
    """Fuzz until time is up or enough documents are checked; 0 is no limit.

    :raises Failure: at the first document that crashes, hangs or breaks a promise.
    """
    summary = Summary()
    start = time.perf_counter()
    timed = hasattr(signal, "setitimer")  # without it a hang is not interrupted
    before = signal.signal(signal.SIGALRM, _alarm) if timed else None
    try:
        for document in documents(seed):
            if (count and summary.documents >= count) or (seconds and time.perf_counter() - start >= seconds):
                break
            began = time.perf_counter()
            result = _guarded(document, limit if timed else 0.0)
            taken = time.perf_counter() - began
            summary.documents += 1
            summary.slowest = max(summary.slowest, taken)
            summary.seconds = time.perf_counter() - start
            if result == "answered":
                summary.answered += 1
            else:
                summary.refused[result] += 1
    finally:
        if timed:
            signal.signal(signal.SIGALRM, before)
    return summary


def _guarded(document: bytes, limit: float) -> str:
    """Check one document under a time limit; every exception becomes a Failure."""
    if limit:
        signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return check(document)
    except Failure:
        raise
    except TooLong:
        raise Failure(document, f"takes longer than {limit:.0f} s") from None
    except Exception as error:
        raise Failure(document, f"{type(error).__name__}: {error}") from error
    finally:
        if limit:
            signal.setitimer(signal.ITIMER_REAL, 0)


def smaller(failure: Failure, seconds: float = 60.0) -> bytes:
    """Make a failing document smaller: remove pieces while it still fails for the same reason."""
    kind = str(failure).split(":")[0].split("  ")[0]
    page = failure.document
    end = time.perf_counter() + seconds
    size = max(1, len(page) // 2)
    while size and time.perf_counter() < end:
        place = 0
        while place < len(page) and time.perf_counter() < end:
            shorter = page[:place] + page[place + size :]
            if _fails_alike(shorter, kind):
                page = shorter
            else:
                place += size
        size //= 2
    return page


def _fails_alike(document: bytes, kind: str) -> bool:
    try:
        _guarded(document, LIMIT if hasattr(signal, "setitimer") else 0.0)
    except Failure as failure:
        return str(failure).split(":")[0].split("  ")[0] == kind
    return False


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after this long")
    parser.add_argument("--count", type=int, default=0, help="stop after so many documents")
    parser.add_argument("--seed", type=int, default=None, help="the same documents every time; random by default")
    parser.add_argument("--output", type=Path, default=Path("fuzz-failure.html"), help="where a failing document goes")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    try:
        print(run(options.seconds, options.count, seed))
    except Failure as failure:
        print(f"failed: {failure}; making the document smaller", flush=True)
        old = signal.signal(signal.SIGALRM, _alarm) if hasattr(signal, "setitimer") else None
        document = smaller(failure)
        if old is not None:
            signal.signal(signal.SIGALRM, old)
        options.output.write_bytes(document)
        print(f"{options.output}: {len(document)} bytes that fail")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
