"""XML as a small tree: read by a parser that follows no entity and no address, under limits."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from ..types import Page
from ._write import bad

MAX_DEPTH: Final = 100
_OF_XML: Final = ("xmlns", "xsi:")
_NONE: Final[dict[str, str]] = {}
"""The attributes of all elements that have none: a dictionary of its own costs more than the element."""

_CHUNK: Final = 1 << 20


@dataclass(slots=True)
class Element:
    """An element with its local name; ``children`` holds elements and texts in order."""

    name: str
    attrs: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def elements(self) -> list[Element]:
        """The elements right below."""
        return [child for child in self.children if isinstance(child, Element)]

    @property
    def has_words(self) -> bool:
        """Whether words stand right below."""
        return any(isinstance(child, str) and not child.isspace() for child in self.children)

    def find(self, *names: str) -> Element | None:
        """Return the first element right below that has one of the names, tried in their order."""
        below = self.elements
        return next((child for name in names for child in below if child.name == name), None)

    def texts(self) -> Iterator[str]:
        """Yield all texts below in order."""
        waiting: list[Element | str] = [self]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                yield one
            else:
                waiting.extend(reversed(one.children))

    @property
    def text(self) -> str:
        """All words below, in one line."""
        return " ".join("".join(self.texts()).split())


class _Builder:
    def __init__(self, page: Page, max_nodes: int) -> None:
        self.page, self.left, self.max_nodes = page, max_nodes, max_nodes
        self.root = Element("", {})
        self.open = [self.root]

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        self.left -= 1 + len(attrs)
        if self.left < 0:
            raise bad(self.page, f"XML of more than {self.max_nodes:,} elements is not read; split the file")
        if len(self.open) > MAX_DEPTH:
            raise bad(self.page, f"XML nested more than {MAX_DEPTH} deep is not read")
        kept = _NONE
        if attrs:
            kept = {key.rpartition(":")[2]: text for key, text in attrs.items() if not key.startswith(_OF_XML)}
        element = Element(sys.intern(tag.rpartition(":")[2]), kept)
        self.open[-1].children.append(element)
        self.open.append(element)

    def end(self, tag: str) -> None:
        self.open.pop()

    def data(self, text: str) -> None:
        below = self.open[-1].children
        if below and isinstance(below[-1], str):
            below[-1] += text
        else:
            below.append(text)

    def skipped(self, name: str, is_parameter: bool) -> None:
        """Put in what a page means by an entity that HTML knows, else its name."""
        if not is_parameter:
            self.data(html.unescape(f"&{name};"))

    def refuse(self, name: str, *_: object) -> None:
        raise bad(self.page, f"XML that declares entities of its own is not read ({name[:40]!r})")


def parse(page: Page, text: str, max_nodes: int) -> Element:
    """Return the root element.

    :raises BadPage: it is no XML, over a limit, or declares entities.
    """
    builder = _Builder(page, max_nodes)
    parser = expat.ParserCreate("utf-8")  # what the declaration says was heeded when the bytes were decoded
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = builder.data, builder.refuse
    parser.SkippedEntityHandler = builder.skipped
    data = text.encode("utf-8", "replace")
    try:
        for start in range(0, len(data), _CHUNK):
            parser.Parse(data[start : start + _CHUNK], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise bad(page, f"this is not well-formed XML ({error})") from error
    found = builder.root.elements
    if not found:
        raise bad(page, "this XML has no element")
    return found[0]
