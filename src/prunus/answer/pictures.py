"""Load the pictures of the evidence for a model that sees them; they are read like pages, through the egress door."""

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
"""Yields (address, page or error) for many addresses, in the order of arrival."""

_KINDS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_LARGEST: Final = 4 << 20
"""Most bytes of a picture that is sent; many models refuse larger pictures."""

_SECONDS: Final = 20.0
"""Default time limit for all pictures of an answer."""


def addresses(tree: Tree, kept: Sequence[BlockRecord]) -> Iterator[str]:
    """Yield the addresses of the pictures in a document's kept blocks, each once, in order."""
    spans = [(block.span.start, block.span.end) for block in kept if block.span.document == tree.document]
    seen: set[str] = set()
    for node, tag in enumerate(tree.tag):
        attrs = tree.attrs[node] if tag == "img" else None
        source = str(dict(attrs).get("src", "")).strip() if attrs else ""
        if not source or source.startswith("data:"):
            continue
        if not any(start <= tree.starts[node] <= end for start, end in spans):
            continue
        address = urljoin(tree.url, source) if is_address(tree.url) else str(Path(tree.url).parent / source)
        if address not in seen and (is_address(address) or not is_address(tree.url)):
            seen.add(address)
            yield address


async def load(wanted: Sequence[str], pages: Pages, failures: Failures, seconds: float | None) -> dict[str, str]:
    """Return the pictures, by address, as ``data:`` addresses; a picture that cannot be read is noted as a failure.

    :param seconds: time limit for all pictures, at most 20; None is 20.
    """
    result: dict[str, str] = {}
    end = asyncio.get_running_loop().time() + min(_SECONDS, seconds if seconds is not None else _SECONDS)
    async with aclosing(pages(wanted)) as coming:
        while True:
            try:
                async with asyncio.timeout_at(end):
                    arrived = await anext(coming, None)
            except TimeoutError:
                failures["pictures"] = "not all pictures came in the time that was left"
                return result
            if arrived is None:
                return result
            url, page = arrived
            if isinstance(page, PrunusError):
                failures.note(page, f"picture {url}")
                continue
            data = as_data(page)
            if data:
                result[url] = data
            else:
                reason = f"{url}: not a PNG, JPEG, GIF or WebP picture of at most {_LARGEST >> 20} MiB"
                failures.note(OutsideFailed(reason, subject=url), f"picture {url}")


def as_data(page: Page) -> str:
    """Return a picture as a ``data:`` address; '' for bytes of another format, or too many.

    The format is read from the first bytes, because the media type of a server may be wrong.
    """
    content = page.content
    if not isinstance(content, bytes) or len(content) > _LARGEST:
        return ""
    kind = next((kind for start, kind in _KINDS if content.startswith(start)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "image/webp"
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}" if kind else ""
