"""Helpers for tests of document formats: inspect the cleaned tree of a document, and damage documents."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.clean.walk import clean_tree
from prunus.pages.tree import Tree

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def read(engine: Any, content: bytes, url: str = "file") -> Tree:
    """Return a document as the cleaned tree."""
    return clean_tree(engine.to_html(Page(content, url=url)))


def text(tree: Tree, node: int) -> str:
    """Return the text below a node on one line."""
    inner = "".join(tree.text[at] for at in range(node, tree.end[node]))
    return " ".join(inner.split())


def every(tree: Tree, *tags: str) -> list[int]:
    """Return the nodes with any of the tags, in order."""
    return [at for at, tag in enumerate(tree.tag) if tag in tags]


def texts(tree: Tree, *tags: str) -> list[str]:
    """Return the texts of the nodes with any of the tags, in order."""
    return [text(tree, node) for node in every(tree, *tags)]


def headings(tree: Tree) -> list[tuple[str, str]]:
    """Return the headings as (tag, text)."""
    return [(tree.tag[node], text(tree, node)) for node in every(tree, *HEADINGS)]


def table(tree: Tree, number: int = 0) -> list[list[str]]:
    """Return a table as rows of cell texts. ``#`` marks a header cell, `` WxH`` a cell with colspan and rowspan."""
    node = every(tree, "table")[number]
    rows = []
    for row in (at for at in range(node, tree.end[node]) if tree.tag[at] == "tr"):
        cells = []
        for at in tree.children(row):
            attrs = tree.attrs[at] or {}
            wide, high = attrs.get("colspan", "1"), attrs.get("rowspan", "1")
            span = f" {wide}x{high}" if (wide, high) != ("1", "1") else ""
            cells.append(("#" if tree.tag[at] == "th" else "") + text(tree, at) + span)
        rows.append(cells)
    return rows


def outline(tree: Tree, node: int) -> list[Any]:
    """Return a list as nested Python lists: the text of each item, then its inner lists."""
    found: list[Any] = []
    for item in tree.children(node):
        text_parts, inner = [], []
        for child in tree.children(item):
            if tree.tag[child] in ("ul", "ol"):
                inner.append(outline(tree, child))
            else:
                text_parts.append(text(tree, child))
        found += [" ".join(word for word in text_parts if word), *inner]
    return found


def words(tree: Tree) -> list[str]:
    """Return every word of the document in order, without the title element."""
    title = every(tree, "title")
    skipped = {at for node in title for at in range(node, tree.end[node])}
    shown = "\n".join(line for at, line in enumerate(tree.text) if at not in skipped and line)
    return re.findall(r"\w+", shown)


def mutated(content: bytes, count: int, seed: int = 7) -> Iterator[bytes]:
    """Yield damaged copies of a document: cut off, with changed bytes, with a part missing or repeated."""
    rng = random.Random(seed)
    for number in range(count):
        kind = number % 4
        at = rng.randrange(len(content))
        if kind == 0:
            yield content[:at]
        elif kind == 1:
            changed = bytearray(content)
            for _ in range(rng.choice((1, 5, 40))):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            yield bytes(changed)
        elif kind == 2:
            yield content[:at] + content[at + rng.choice((1, 30, 500)) :]
        else:
            yield content[:at] + content[at : at + 200] * 3 + content[at:]


def mutated_parts(content: bytes, count: int, seed: int = 7) -> Iterator[bytes]:
    """Yield copies of a zipped document with damaged parts, packed again so that the zip itself is valid."""
    rng = random.Random(seed)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    names = [name for name in parts if name.endswith((".xml", ".rels", ".xhtml", ".opf"))]
    for _ in range(count):
        name = rng.choice(names)
        part = parts[name]
        choice = rng.random()
        if choice < 0.5:  # attributes, names and numbers change, and the XML stays well-formed
            values = list(re.finditer(rb'"([^"<>&]*)"', part))
            if values:
                match = rng.choice(values)
                new = rng.choice((b"", b"-1", b"99999999999", b"x", b"0", b"../../x", b"\xc3\xa9", b"1e9"))
                part = part[: match.start(1)] + new + part[match.end(1) :]
        elif choice < 0.8:  # an empty element is removed
            tags = list(re.finditer(rb"<([\w:]+)[^>]*/>", part))
            if tags:
                match = rng.choice(tags)
                part = part[: match.start()] + part[match.end() :]
        else:
            at = rng.randrange(len(part) + 1)
            part = part[:at] + bytes([rng.randrange(256)]) + part[at + 1 :]
        yield packed({**parts, name: part})


def packed(parts: dict[str, bytes | str]) -> bytes:
    """Return a zip file of parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def unpacked(content: bytes) -> dict[str, bytes]:
    """Return the parts of a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def refused(engine: Any, content: bytes | str, url: str = "file.x") -> str:
    """Return the message of the :class:`BadPage` that refuses a document; it must be a single line."""
    with pytest.raises(BadPage) as caught:
        engine.to_html(Page(content, url=url))
    message = str(caught.value)
    assert message.startswith(url)
    assert "\n" not in message
    assert len(message) < 300
    return message


def answers_or_refuses(engine: Any, content: bytes) -> None:
    """Read a damaged document: the result is HTML or an error of one line."""
    refusal = ""
    try:
        clean_tree(engine.to_html(Page(content, url="file.x")) or "-")
    except BadPage as error:
        refusal = str(error)
    assert "\n" not in refusal
