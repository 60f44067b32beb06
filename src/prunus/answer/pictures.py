"""Pictures of the evidence, sent along to a model that sees them: read like pages, through the egress door."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urljoin

from ..core.errors import Failures, OutsideFailed, PrunusError
from ..core.types import BlockRecord, Page
from ..pages.sources import is_address
from ..pages.tree import Tree

Pages: TypeAlias = Callable[[Sequence[str]], AsyncGenerator[tuple[str, Page | PrunusError], None]]
"""Yields (address, page or error) for many addresses, as they come."""

_KINDS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_LARGEST: Final = 4 << 20
"""Bytes of a picture that is sent; models take few larger ones."""

_SECONDS: Final = 20.0


def addresses(tree: Tree, kept: Sequence[BlockRecord]) -> Iterator[str]:
    """Yield the addresses of the pictures in a document's kept blocks, each once, in order."""
    spans = [(one.span.start, one.span.end) for one in kept if one.span.document == tree.document]
    seen: set[str] = set()
    for node, tag in enumerate(tree.tag):
        attrs = tree.attrs[node] if tag == "img" else None
        source = str(dict(attrs).get("src", "")).strip() if attrs else ""
        if not source or source.startswith("data:"):
            continue
        if not any(start <= tree.starts[node] <= end for start, end in spans):
            continue
        found = urljoin(tree.url, source) if is_address(tree.url) else str(Path(tree.url).parent / source)
        if found not in seen and (is_address(found) or not is_address(tree.url)):
            seen.add(found)
            yield found


async def load(wanted: Sequence[str], pages: Pages, failures: Failures, seconds: float | None) -> dict[str, str]:
    """Return pictures by address, as ``data:`` addresses; one that cannot be had is noted.

    :param seconds: for all of them; None is 20.
    """
    found: dict[str, str] = {}
    end = asyncio.get_running_loop().time() + min(_SECONDS, seconds if seconds is not None else _SECONDS)
    async with aclosing(pages(wanted)) as coming:
        while True:
            try:
                async with asyncio.timeout_at(end):
                    arrived = await anext(coming, None)
            except TimeoutError:
                failures["pictures"] = "not all pictures came in the time that was left"
                return found
            if arrived is None:
                return found
            url, page = arrived
            if isinstance(page, PrunusError):
                failures.note(page, f"picture {url}")
                continue
            data = as_data(page)
            if data:
                found[url] = data
            else:
                failures.note(OutsideFailed(f"{url}: no picture that a model reads", subject=url), f"picture {url}")


def as_data(page: Page) -> str:
    """Return a picture as a ``data:`` address, by what its bytes are; '' for what is none, or too large."""
    content = page.content
    if not isinstance(content, bytes) or len(content) > _LARGEST:
        return ""
    kind = next((kind for start, kind in _KINDS if content.startswith(start)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "image/webp"
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}" if kind else ""
