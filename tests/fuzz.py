"""Fuzz cleaning and pruning with mutated documents until a check fails or time is up.

    python tests/fuzz.py --seconds 600          # as long as you like
    python tests/fuzz.py --count 5000 --seed 7  # the same documents every time

Seeds are the pages of the example site and a few others. A mutation cuts, repeats, swaps or inserts bytes, tags and
attributes, or splices two pages. For each document Prunus must answer or raise one deliberate error within a time limit.
Its promises must hold: cleaning twice changes nothing, the written HTML reads as the tree that was written, blocks hold
every word once, output is within the budget. The first failure is made smaller, written to a file, and ends the run
with exit code 1.
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
from prunus.core.types import Page
from prunus.pages.clean import rules
from prunus.pages.clean.walk import clean_tree
from prunus.pages.tree import Tree
from prunus.pages.write.style import CLEAN, EMIT, Style, actions
from prunus.pages.write.whole import render_tree

SITE = Path(__file__).parents[1] / "examples" / "site"
LIMIT = 10.0
"""Seconds for one document at most."""

QUESTION = "When did the harbour open, and what does it cost?"

TAGS = """a abbr acronym address annotation annotation-xml applet area article aside audio b base basefont bdi bdo bgsound
    big blink blockquote body br button canvas caption center circle cite code col colgroup data datalist dd defs del
    desc details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer foreignObject form frame
    frameset g h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img input ins isindex kbd keygen label legend
    li link listing maction main malignmark map mark marquee math menclose menu menuitem merror meta metadata meter
    mfenced mfrac mglyph mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle
    msub msubsup msup mtable mtd mtext mtr munder munderover nav nobr noembed noframes none noscript object ol optgroup
    option output p p0 param path picture plaintext pre progress q rb rp rt rtc ruby s samp script search section select
    selectedcontent semantics slot small source span strike strong style sub summary sup svg table tbody td template
    text textarea tfoot th thead time title tr track tspan tt u ul use var video wbr x-card xmp""".split()
"""Every element of HTML, MathML and SVG that the parser or Prunus treats in a way of its own, and two unknown ones."""

NESTED = """a applet b button caption code dd dt em fieldset font form h1 h2 html i legend li marquee nobr object
    optgroup option p rp rt ruby select strong table td template th tr""".split()
"""Elements whose nesting the parser repairs: formatting, scopes, and those whose end tags may be left out."""

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


FULL = Style(full=True)
_NOT_ALWAYS = frozenset({"p", "thead", "tbody", "tfoot"})
"""Elements that compact HTML writes only where their tags are needed."""


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


def _soup(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    """Insert words between tags of a few names that nest in every way."""
    names = [*rng.sample(TAGS, 4), *rng.sample(NESTED, 4)]
    parts = []
    for number in range(rng.choice((3, 6, 12))):
        word = rng.choice((f"w{number}", f" w{number}", "\n", ""))
        tag = rng.choice((f"<{rng.choice(names)}>", f"<{rng.choice(names)}>", f"</{rng.choice(names)}>"))
        parts.append((tag + word).encode())
    place = rng.randrange(len(page) + 1)
    return page[:place] + b"".join(parts) + page[place:]


def _attribute(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    place = page.find(b">", rng.randrange(len(page) + 1))
    return page[:place] + b" " + rng.choice(ATTRIBUTES) + page[place:] if place > 0 else page


def _truncate(rng: random.Random, page: bytes, others: list[bytes]) -> bytes:
    return page[: rng.randrange(len(page) + 1)]


MUTATIONS: tuple[Callable[[random.Random, bytes, list[bytes]], bytes], ...] = (
    _insert, _insert, _insert, _soup, _soup, _attribute, _attribute, _delete, _delete, _double, _swap, _flip, _splice, _truncate
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


def check(document: bytes, media_type: str = "") -> str:
    """Clean and prune a document; return 'answered' or the name of the deliberate error.

    :param media_type: as the transport would state it; '' where the content alone decides.
    :raises Failure: a promise is broken. Any other exception is a crash.
    """
    page = Page(document, media_type=media_type)
    try:
        read = prunus.read(page)
    except prunus.PrunusError as error:
        return type(error).__name__
    for style in (CLEAN, FULL):
        _check_again(document, read.trees[0], style)
    for format in ("markdown", "text"):
        prunus.clean(page, format)
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


def _check_again(document: bytes, tree: Tree, style: Style) -> None:
    """Check that the written HTML of a tree reads as that tree: the same words, structure and HTML.

    :raises Failure: it does not.
    """
    written = render_tree(tree, "html", style)
    again = clean_tree(written)
    name = "full" if style.full else "compact"
    wrapper_may_go = style.full and b"<noscript" in document.lower()  # it merges once the noscript in it is gone
    if render_tree(again, "html", style) != written and not wrapper_may_go:
        raise Failure(document, f"cleaning twice changes the {name} HTML")
    if again.canonical.split() != tree.canonical.split():
        raise Failure(document, f"the {name} HTML reads with other words")
    if outline(again, style) != outline(tree, style):
        raise Failure(document, f"the {name} HTML reads with another structure")
    for format in ("markdown", "text"):
        said, before = (render_tree(read, format, style) for read in (again, tree))
        if style.full and "".join(said.split()) != "".join(before.split()):  # white space differs around wrong nesting
            raise Failure(document, f"the {name} HTML reads with another {format}")


def outline(tree: Tree, style: Style) -> list[tuple[str, str]]:
    """Return what a style always writes: start tags with attributes, end tags, and the letters between them.

    Compact HTML shortens attributes: only their names count.
    """
    table = actions(style)
    found: list[tuple[str, str]] = []
    ends: list[int] = []
    for node, tag in enumerate(tree.tag):
        while ends and ends[-1] <= node:
            ends.pop()
            found.append(("end", ""))
        attrs = tree.attrs[node] or {}
        always = tag not in rules.WRAPPERS or attrs if style.full else table.get(tag) == EMIT and tag not in _NOT_ALWAYS
        if tag and always:
            found.append((tag, str(attrs if style.full else [*attrs])))
            ends.append(tree.end[node])
        letters = "" if tag else "".join(tree.text[node].split())
        if letters and found and not found[-1][0]:
            found[-1] = ("", found[-1][1] + letters)
        elif letters:
            found.append(("", letters))
    return found


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
