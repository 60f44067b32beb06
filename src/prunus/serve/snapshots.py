"""Snapshots: the cleaned pages that answers cite, kept so that a person can check a quote where it stands.

A snapshot is the tree of a page: tags, texts and no addresses. What a browser gets is written from it anew, with tags
of a fixed list and almost no attributes, so that nothing of the page's own markup reaches the browser.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import re
import secrets
import time
import zlib
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, cast

from ..answer.chat import Conversation
from ..core.errors import PrunusError
from ..core.events import DoneEvent, Event
from ..core.text.numbers import bounded_int
from ..core.types import Answer, Metadata
from ..pages.metadata import known_metadata
from ..pages.tree import Tree
from .mask import Mask
from .state import ServerState

if TYPE_CHECKING:
    from ..answer.check import Reference

log = logging.getLogger("prunus.serve")

MOST: Final = 200
"""Snapshots of a key at most; then the oldest go."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a key's snapshots at most, compressed."""
LARGEST: Final = 4 * 1024 * 1024
"""Bytes of one snapshot at most, compressed; a larger page is not kept."""
_UNPACKED: Final = 32 * 1024 * 1024
"""The same before compression."""
_AGE: Final = 7 * 86_400
"""Seconds that a snapshot is kept after it was cited last."""
_FRESH: Final = 3600
"""Seconds after which citing a page again counts as a new time."""
_TICKET: Final = 600
"""Seconds in which a browser can open the address of a shown snapshot."""

_SCHEMA: Final = (
    """CREATE TABLE IF NOT EXISTS serve_snapshots (
        owner TEXT NOT NULL, id TEXT NOT NULL, cited BIGINT NOT NULL, size BIGINT NOT NULL, secret TEXT NOT NULL,
        about TEXT NOT NULL, page BYTEA NOT NULL, PRIMARY KEY (owner, id))""",
    "CREATE INDEX IF NOT EXISTS serve_snapshots_cited ON serve_snapshots (cited)",
)
_ID: Final = re.compile(r"[0-9a-f]{32}")
_ABOUT: Final = ("document", "snapshot", "url", "title", "published", "site")


@dataclass(frozen=True, slots=True)
class CitedPage:
    """What is known of a kept page.

    :param id: names it among the snapshots of its owner.
    :param document, snapshot: as in the citations of the page.
    :param cited: when it was cited last, in seconds since 1970.
    """

    id: str
    document: str
    snapshot: str
    url: str
    title: str
    published: str
    site: str
    cited: int


def snapshot_id(document: str, snapshot: str) -> str:
    """Return the id of a page from two fields of its citations."""
    return hashlib.sha256(f"{document}\n{snapshot}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


class CitedPages:
    """The snapshots in a server's state. Every call may wait for the disk or the database.

    :param mask: hides folders of the server in the names of documents.
    """

    def __init__(self, state: ServerState, mask: Mask) -> None:
        self._state, self._mask = state, mask
        with state.transaction() as run:
            for statement in _SCHEMA:
                run(statement)

    def put(self, owner: str, page: Tree) -> str:
        """Keep a page, and return its id; '' where it is too large to be kept.

        :param owner: the name of the key whose answer cites it; no other key can read it.
        """
        known = known_metadata(page)
        about = self._mask.record(_about(page, known))
        id = snapshot_id(about["document"], about["snapshot"])
        now = int(time.time())
        with self._state.transaction(writes=False) as run:
            rows = run("SELECT cited FROM serve_snapshots WHERE owner = ? AND id = ?", (owner, id))
        if rows and now - rows[0][0] < _FRESH:
            return id
        packed = _packed(page)
        if not packed or len(packed) > LARGEST:
            return ""
        row = (owner, id, now, len(packed), secrets.token_hex(32), json.dumps(about), packed)
        with self._state.transaction() as run:
            run("DELETE FROM serve_snapshots WHERE cited < ?", (now - _AGE,))
            run(
                "INSERT INTO serve_snapshots (owner, id, cited, size, secret, about, page) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, id) DO UPDATE SET cited = excluded.cited",
                row,
            )
            kept = run("SELECT id, size FROM serve_snapshots WHERE owner = ? ORDER BY cited DESC, id", (owner,))
            size = 0
            for index, (one, bytes_) in enumerate(kept):
                size += bytes_
                if one != id and (index >= MOST or size > MOST_BYTES):
                    run("DELETE FROM serve_snapshots WHERE owner = ? AND id = ?", (owner, one))
        return id

    def get(self, owner: str, id: str) -> Tree | None:
        """Return a kept page with its address, title and ids; None where the owner has none of this id."""
        with self._state.transaction(writes=False) as run:
            rows = run("SELECT about, page FROM serve_snapshots WHERE owner = ? AND id = ?", (owner, id))
        if not rows:
            return None
        about, page = json.loads(rows[0][0]), _unpacked(bytes(rows[0][1]))
        page.document, page.snapshot = about["document"], about["snapshot"]
        page.url, page.title, page.published = about["url"], about["title"], about["published"]
        return page

    def list(self, owner: str) -> list[CitedPage]:
        """Return the snapshots of an owner, the latest cited first."""
        with self._state.transaction(writes=False) as run:
            rows = run("SELECT id, about, cited FROM serve_snapshots WHERE owner = ? ORDER BY cited DESC, id", (owner,))
        return [CitedPage(id=id, cited=cited, **json.loads(about)) for id, about, cited in rows]

    def ticket(self, owner: str, id: str, spans: Sequence[tuple[int, int]]) -> str:
        """Return a text by which a browser can open a snapshot for some minutes; '' where there is none of this id.

        A frame cannot send a key: the ticket stands for it, for this page and these marks alone.

        :param spans: the places to mark; the first is the one to show.
        """
        secret = self._secret(owner, id)
        if not secret:
            return ""
        told = json.dumps([owner, id, int(time.time()) + _TICKET, spans]).encode()
        return base64.urlsafe_b64encode(told).decode().rstrip("=") + "." + _sealed(secret, told)

    def shown(self, ticket: str) -> str | None:
        """Return the page of a ticket as HTML with its places marked; None for a ticket that is not good any more."""
        text, _, seal = ticket.partition(".")
        try:
            told = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            owner, id, ends, spans = json.loads(told)
        except (ValueError, TypeError, RecursionError):
            return None
        named = isinstance(owner, str) and owner.isprintable() and isinstance(id, str) and _ID.fullmatch(id)
        secret = self._secret(owner, id) if named else ""
        if not secret or not hmac.compare_digest(_sealed(secret, told).encode(), seal.encode()) or ends < time.time():
            return None
        page = self.get(owner, id)
        return None if page is None else write_snapshot(page, [(start, end) for start, end in spans])

    def _secret(self, owner: str, id: str) -> str:
        with self._state.transaction(writes=False) as run:
            rows = run("SELECT secret FROM serve_snapshots WHERE owner = ? AND id = ?", (owner, id))
        return str(rows[0][0]) if rows else ""


class KeepsPages(Conversation):
    """A conversation that keeps the pages that its answer cites.

    :param owner: the name of the key that asks.
    """

    def __init__(self, snapshots: CitedPages, owner: str) -> None:
        super().__init__()
        self._snapshots, self._owner = snapshots, owner
        self._cited: list[str] = []
        self._shown: Sequence[Reference] = ()

    def take(self, question: str, answer: Answer, references: Sequence[Reference], cited: Collection[int]) -> None:
        """Add a turn."""
        super().take(question, answer, references, cited)
        self._cited = list(dict.fromkeys(citation.document for citation in answer.citations if citation.found))
        self._shown = references

    async def events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Return the events of an answer, passed through; its pages are kept before its end is told."""
        async with aclosing(cast(Any, events)):
            async for event in events:
                if isinstance(event, DoneEvent):
                    await asyncio.to_thread(self._keep)
                yield event

    def _keep(self) -> None:
        """Keep the cited pages; a page that cannot be kept does not fail the answer."""
        pages = {reference.tree.document: reference.tree for reference in self._shown if reference.origin is None}
        origins = [reference.origin for reference in self._shown if reference.origin is not None]
        try:
            for document in self._cited:
                page = pages.get(document) or next(filter(None, (origin.page(document) for origin in origins)), None)
                if page is not None:
                    self._snapshots.put(self._owner, page)
        except PrunusError as error:
            log.error("the pages of an answer could not be kept: %s", type(error).__name__)


def _about(page: Tree, known: Metadata) -> dict[str, Any]:
    values = (page.document, page.snapshot, page.url, page.title, known.published or page.published, known.site)
    return {name: value.encode("utf-8", "replace").decode() for name, value in zip(_ABOUT, values, strict=True)}


def _sealed(secret: str, told: bytes) -> str:
    return hmac.new(secret.encode(), told, "sha256").hexdigest()


# --- the stored form -------------------------------------------------------------------------------

_NUMBERS: Final = {"td": ("colspan", "rowspan"), "th": ("colspan", "rowspan"), "ol": ("start",), "li": ("value",)}
"""The attributes that are kept: numbers by which a page is understood."""


def _packed(page: Tree) -> bytes:
    """Return tags, ends, texts and numbers of a page, compressed; b'' for a page that is too large.

    No address and no other attribute is kept. Which links may be marks of notes is: they are not in the canonical text.
    """
    numbers, marks = {}, []
    for node, attrs in enumerate(page.attrs):
        if not attrs:
            continue
        if page.tag[node] == "a" and ("role" in attrs or "#" in attrs.get("href", "")):
            marks.append([node, "role" in attrs, "#" in attrs.get("href", "")])
        names = _NUMBERS.get(page.tag[node], ())
        kept = {name: bounded_int(attrs[name], 1, most=1_000_000) for name in names if name in attrs}
        if kept:
            numbers[str(node)] = kept
    record = {"tag": page.tag, "end": list(page.end), "text": page.text, "numbers": numbers, "lang": page.lang}
    record["marks"] = marks
    plain = json.dumps(record).encode()
    return zlib.compress(plain, 6) if len(plain) <= _UNPACKED else b""


def _unpacked(packed: bytes) -> Tree:
    record = json.loads(zlib.decompress(packed))
    ends = record["end"]
    parents: list[int] = []
    open_: list[int] = []
    for node in range(len(ends)):
        while open_ and ends[open_[-1]] <= node:
            open_.pop()
        parents.append(open_[-1] if open_ else -1)
        open_.append(node)
    attrs: list[dict[str, str] | None] = [None] * len(ends)
    for node, numbers in record["numbers"].items():
        attrs[int(node)] = {name: str(number) for name, number in numbers.items()}
    for node, has_role, in_page in record.get("marks", ()):  # pages that were kept earlier have none
        attrs[node] = ({"role": "doc-noteref"} if has_role else {}) | ({"href": "#"} if in_page else {})
    page = Tree(record["tag"], parents, ends, record["text"], attrs)
    page.lang = record["lang"]
    return page


# --- what a browser gets ---------------------------------------------------------------------------

_SHOWN: Final = frozenset(
    """p h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table caption thead tbody tfoot tr td th pre blockquote figure figcaption
    strong b em i u s del ins code kbd samp var sub sup small q abbr cite dfn time ruby rt rp""".split()
)
_INLINE: Final = frozenset(
    """a acronym audio bdi bdo big button data font img input label mark meter nobr noscript object output picture
    progress rb rtc select span strike textarea tt video""".split()
)
"""Elements that become a span; all others become a div."""
_EMPTY: Final = frozenset({"br", "hr"})
_STYLE: Final = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.6 Georgia,'Noto Serif','DejaVu Serif',serif;max-width:44rem;margin:0 auto;"
    "padding:1rem 1.25rem 4rem;color:#25221e;background:#fff;overflow-wrap:anywhere}"
    "h1,h2,h3,h4,h5,h6{font-family:system-ui,sans-serif;line-height:1.25;margin:1.3em 0 .4em}h1{font-size:1.45rem}"
    "h2{font-size:1.2rem}h3,h4,h5,h6{font-size:1rem}p,ul,ol,dl,table,pre,blockquote,figure{margin:.6em 0}"
    "pre,code,kbd,samp{font:.88em ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}pre{white-space:pre-wrap}"
    "table{display:block;overflow-x:auto;border-collapse:collapse;font-size:.92em}"
    "td,th{overflow-wrap:normal;border:1px solid #d9d4cc;padding:.25rem .5rem;"
    "text-align:left;vertical-align:top}th{background:#f2f0ec}blockquote{border-left:3px solid #d9d4cc;margin-left:0;"
    "padding-left:1rem}.alt{color:#655f57;font-style:italic}"
    "mark{background:#fff3c4;color:inherit;border-radius:2px}"
    "mark.chosen{background:#ffd84d;color:#25221e;box-shadow:0 0 0 2px #ffd84d}#quote{scroll-margin-top:35vh}"
    "@media(prefers-color-scheme:dark){body{color:#ece8ea;background:#221f22}td,th{border-color:#3a353a}"
    "th{background:#2b272b}blockquote{border-color:#3a353a}.alt{color:#aba2a9}mark{background:#4a4018}"
    "mark.chosen{background:#e3bd3d;color:#191719;box-shadow:0 0 0 2px #e3bd3d}}"
)
STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY: Final = f"sandbox; default-src 'none'; style-src 'sha256-{STYLE_HASH}'; frame-ancestors 'self'"
"""The policy of a shown snapshot: no script, nothing loaded, no style but its own."""


def write_snapshot(page: Tree, spans: Sequence[tuple[int, int]]) -> str:
    """Return a page as HTML for a sandboxed frame, with places marked; the first has the id ``quote``.

    Only tags of a fixed list are written, with numbers as their only attributes. All text is escaped. Links,
    pictures and controls are shown by their words.

    :param spans: (start, end) in code points of the page's canonical text.
    """
    marks = _marks(spans)
    out = [
        f'<!DOCTYPE html><html lang="{escape(page.lang[:35])}"><meta charset="utf-8">',
        f"<title>{escape(page.title)}</title><style>{_STYLE}</style><body>",
    ]
    closing: list[tuple[int, str]] = []
    named = False
    next_mark = 0
    for node, tag in enumerate(page.tag):
        while closing and closing[-1][0] <= node:
            out.append(closing.pop()[1])
        text, start = page.text[node], page.starts[node]
        if tag in _EMPTY:
            out.append(f"<{tag}>")
        elif tag and tag not in ("html", "body", "head"):
            name = tag if tag in _SHOWN else "span" if tag in _INLINE else "div"
            alt = ' class="alt"' if text and name not in _SHOWN else ""
            numbers = _numbers(page.attrs[node] if name in _NUMBERS else None)
            out.append(f"<{name}{numbers}{alt}>" + ("\n" if name == "pre" else ""))
            closing.append((page.end[node], f"</{name}>"))
        if not text:
            continue
        written, stop = 0, page.stop(node)
        while next_mark < len(marks) and marks[next_mark][1] <= start:
            next_mark += 1
        for from_, to, chosen in marks[next_mark:]:
            if from_ >= stop:
                break
            first, last = page.index(node, max(from_, start)), page.index(node, min(to, stop))
            out.append(escape(text[written:first]))
            label = "" if not chosen else ' class="chosen"' if named else ' class="chosen" id="quote"'
            named = named or chosen
            out.append(f"<mark{label}>{escape(text[first:last])}</mark>")
            written = last
        out.append(escape(text[written:]))
    out.extend(end for _, end in reversed(closing))
    return "".join(out)


def _numbers(attrs: dict[str, str] | None) -> str:
    return "".join(f' {name}="{bounded_int(value, 1, most=1_000_000)}"' for name, value in (attrs or {}).items())


def _marks(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int, bool]]:
    """Return disjoint (start, end, whether it is of the first span) in order; an overlap belongs to the first span."""
    if not spans:
        return []
    first, last = spans[0]
    marks = [(first, last, True)] if first < last else []
    for start, end in spans[1:]:
        marks += [(start, min(end, first), False)] if start < first else []
        marks += [(max(start, last), end, False)] if end > last else []
    joined: list[tuple[int, int, bool]] = []
    for start, end, chosen in sorted(marks):
        start = max(start, joined[-1][1]) if joined else start
        if start < end:
            joined.append((start, end, chosen))
    return joined
