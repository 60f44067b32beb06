"""XML of documents: no document type, no entities, nothing fetched, bounded in size, depth and number.

Names come out with short prefixes (``w:p``), whatever the document calls them; those of a name
space that is not in the table have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from ..errors import BadPage

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_TAGS: Final = 4_000_000
MAX_DEPTH: Final = 120
"""Elements within each other; walks that recurse stay far from the limit of Python."""

_CHUNK: Final = 4096
_OOXML: Final = "http://schemas.openxmlformats.org/"
_STRICT: Final = "http://purl.oclc.org/ooxml/"
_OASIS: Final = "urn:oasis:names:tc:opendocument:xmlns:"
_SPACES: Final = {
    **{
        root + path: prefix
        for prefix, one, other in (
            ("w", "wordprocessingml/2006/main", "wordprocessingml/main"),
            ("r", "officeDocument/2006/relationships", "officeDocument/relationships"),
            ("a", "drawingml/2006/main", "drawingml/main"),
            ("p", "presentationml/2006/main", "presentationml/main"),
            ("c", "drawingml/2006/chart", "drawingml/chart"),
            ("m", "officeDocument/2006/math", "officeDocument/math"),
            ("wp", "drawingml/2006/wordprocessingDrawing", "drawingml/wordprocessingDrawing"),
            ("dgm", "drawingml/2006/diagram", "drawingml/diagram"),
            ("pic", "drawingml/2006/picture", "drawingml/picture"),
        )
        for root, path in ((_OOXML, one), (_STRICT, other))
    },
    "http://schemas.microsoft.com/office/word/2010/wordprocessingShape": "wps",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.microsoft.com/office/drawing/2010/main": "a14",
    "urn:schemas-microsoft-com:vml": "v",
    "urn:schemas-microsoft-com:office:office": "o",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
    "http://www.w3.org/1999/xlink": "xlink",
    "http://www.w3.org/XML/1998/namespace": "xml",
    "http://www.w3.org/1998/Math/MathML": "math",
    "http://www.idpf.org/2007/opf": "opf",
    "http://www.idpf.org/2007/ops": "epub",
    **{f"{_OASIS}{name}:1.0": name for name in ("office", "text", "table", "draw", "style", "meta", "presentation")},
    f"{_OASIS}xsl-fo-compatible:1.0": "fo",
    f"{_OASIS}svg-compatible:1.0": "svg",
}


class _Begun(Exception):
    """The root element has begun: the prolog held nothing bad."""


def parse_xml(data: bytes, name: str, part: str) -> Element:
    """Parse a part of a document.

    :param name: how errors call the document.
    :param part: how they call the part.
    :raises BadPage: it is no XML, has a document type or entities, or is over a limit.
    """
    if len(data) > MAX_BYTES or data.count(b"<") > MAX_TAGS:
        raise BadPage(f"{name}: its part {part[:80]!r} is too large; split it", subject=name)
    try:
        _check_prolog(data, name, part)
        root = ElementTree.fromstring(data)  # noqa: S314 - the prolog was checked
    except (ElementTree.ParseError, expat.ExpatError, ValueError, LookupError) as error:
        raise BadPage(
            f"{name}: its part {part[:80]!r} is no valid XML; fetch or save it again", subject=name
        ) from error
    _check_depth(root, name, part)
    _shorten(root)
    return root


def _check_prolog(data: bytes, name: str, part: str) -> None:
    """Refuse a document type: with it go entities, and all that they can do."""
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise BadPage(f"{name}: its part {part[:80]!r} declares a document type or entities; refused", subject=name)

    def begin(*_: object) -> None:
        raise _Begun

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = begin
    try:
        for start in range(0, len(data), _CHUNK):  # after an exception expat reads on to the end of what it was given
            parser.Parse(data[start : start + _CHUNK], False)
    except _Begun:
        return


def _check_depth(root: Element, name: str, part: str) -> None:
    level, depth = [root], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise BadPage(f"{name}: its part {part[:80]!r} is nested too deep", subject=name)
        level = [child for element in level for child in element]


def _shorten(root: Element) -> None:
    """Write names with short prefixes."""
    known: dict[str, str] = {}

    def short(name: str) -> str:
        space, _, local = name[1:].rpartition("}") if name[:1] == "{" else ("", "", name)
        prefix = _SPACES.get(space, "")
        return f"{prefix}:{local}" if prefix else local

    for element in root.iter():
        tag = element.tag
        if tag not in known:
            known[tag] = short(tag)
        element.tag = known[tag]
        attributes = element.attrib
        if any(key[:1] == "{" for key in attributes):
            for key in list(attributes):
                if key[:1] == "{":
                    if key not in known:
                        known[key] = short(key)
                    attributes[known[key]] = attributes.pop(key)


def below(element: Element | None, *path: str) -> Element | None:
    """Return the element that a path of names leads to, the first of each, or None."""
    for tag in path:
        element = next((child for child in element if child.tag == tag), None) if element is not None else None
    return element


def value(element: Element | None, key: str, default: str = "") -> str:
    """Return an attribute of an element that may be missing."""
    return default if element is None else element.get(key, default)


def each(element: Element | None, tag: str) -> Iterator[Element]:
    """Yield the children of a name."""
    return (child for child in element if child.tag == tag) if element is not None else iter(())
