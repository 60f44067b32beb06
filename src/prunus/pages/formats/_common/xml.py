"""Read the XML of documents safely: no entities, no fetching, limits on size, depth and number of tags.

:func:`parse_xml` returns a tree. Its names carry the short prefixes of ``_SPACES`` (``w:p``), whichever prefixes the
document uses; names of an unknown name space carry none. :func:`walk_xml` sends events; their names have no prefix.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from ....core.errors import BadPage
from ....core.text.numbers import bounded_int

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_MARKS: Final = 3_000_000
"""Limit of :func:`count_marks` for one tree."""

MAX_DEPTH: Final = 120
"""Nesting depth of elements. It keeps recursive walks far from Python's recursion limit."""

_CHUNK: Final = 4096
_NO_XML: Final = (ElementTree.ParseError, expat.ExpatError, ValueError, LookupError, OverflowError)
_OOXML: Final = "http://schemas.openxmlformats.org/"
_STRICT: Final = "http://purl.oclc.org/ooxml/"
_OASIS: Final = "urn:oasis:names:tc:opendocument:xmlns:"
_SPACES: Final = {
    **{
        root + path: prefix
        for prefix, transitional, strict in (
            ("w", "wordprocessingml/2006/main", "wordprocessingml/main"),
            ("r", "officeDocument/2006/relationships", "officeDocument/relationships"),
            ("a", "drawingml/2006/main", "drawingml/main"),
            ("p", "presentationml/2006/main", "presentationml/main"),
            ("c", "drawingml/2006/chart", "drawingml/chart"),
            ("m", "officeDocument/2006/math", "officeDocument/math"),
            ("wp", "drawingml/2006/wordprocessingDrawing", "drawingml/wordprocessingDrawing"),
            ("dgm", "drawingml/2006/diagram", "drawingml/diagram"),
            ("pic", "drawingml/2006/picture", "drawingml/picture"),
            ("xdr", "drawingml/2006/spreadsheetDrawing", "drawingml/spreadsheetDrawing"),
        )
        for root, path in ((_OOXML, transitional), (_STRICT, strict))
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
    **{f"{_OASIS}{name}:1.0": name for name in ("office", "text", "table", "style", "meta", "presentation")},
    f"{_OASIS}drawing:1.0": "draw",
    f"{_OASIS}xsl-fo-compatible:1.0": "fo",
    f"{_OASIS}svg-compatible:1.0": "svg",
}


FaultMaker = Callable[[str], BadPage]
"""Makes the error for a fault in the XML, for example ``is nested too deep``. It adds the document's name."""


class StopReading(Exception):
    """A listener raises this to stop reading before the end of the XML."""


class XmlListener(Protocol):
    """Receives the elements of an XML document as events."""

    def start(self, name: str, attrs: Mapping[str, str], /) -> object:
        """Enter an element. Its name and its attributes' names carry no prefix."""
        ...

    def end(self, name: str, /) -> object:
        """Leave an element."""
        ...

    def data(self, text: str, /) -> object:
        """Read words."""
        ...


class _PrologCheck:
    """Stops when the root element begins: what the prolog before it may not hold was refused by then."""

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        raise StopReading

    def end(self, name: str) -> None: ...

    def data(self, text: str) -> None: ...


class _Names(dict[str, str]):
    """Cache of names without their prefix, by the name as written. Names that only serve XML itself map to ''."""

    def __missing__(self, name: str) -> str:
        self[name] = "" if name.startswith(("xmlns", "xsi:")) else sys.intern(name.rpartition(":")[2])
        return self[name]


def walk_xml(
    chunks: Iterable[bytes],
    listener: XmlListener,
    fault: FaultMaker,
    encoding: str | None = None,
    *,
    doctype: bool = False,
    named_doctype: bool = False,
) -> None:
    """Send the elements of XML to a listener, until the end or until the listener raises :class:`StopReading`.

    :param encoding: encoding of the bytes; by default the XML's own declaration decides.
    :param doctype: accept a document type that declares no entities; named entities then mean the same as in HTML.
    :param named_doctype: accept a document type that only names a file, which is never read.
    :raises BadPage: the bytes are not XML, declare a document type or entities, or are nested too deep.
    """
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    names = _Names()
    depth = 0

    def start(tag: str, attrs: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise fault(f"is nested too deep (over {MAX_DEPTH} levels); save it with fewer levels")
        if attrs:
            attrs = {names[key]: text for key, text in attrs.items()}
            attrs.pop("", None)
        listener.start(names[tag] or tag, attrs)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        listener.end(names[tag] or tag)

    def refuse(*_: object) -> None:
        raise fault("declares a document type or entities, which are never read; remove the declaration")

    def refuse_declarations(name: str, file: str | None, public: str | None, declares: bool) -> None:
        if declares:  # also defaults of attributes, which every element would get
            refuse()

    def skipped(name: str, is_parameter: bool) -> None:
        if not is_parameter:
            listener.data(html.unescape(f"&{name};"))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = listener.data, refuse
    if doctype:
        parser.SkippedEntityHandler = skipped
    elif named_doctype:
        parser.StartDoctypeDeclHandler = refuse_declarations
    else:
        parser.StartDoctypeDeclHandler = refuse
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except StopReading:
        return
    except _NO_XML as error:
        raise fault(f"is no valid XML ({error}); fetch or save it again") from error


def cut_bytes(data: bytes, size: int = _CHUNK) -> Iterator[bytes]:
    """Cut bytes into small pieces.

    After an error in a handler, expat still reads to the end of the bytes it was passed, so each piece stays small.
    """
    return (data[start : start + size] for start in range(0, len(data), size))


def count_marks(data: bytes) -> int:
    """Return the number of "<" and "=" in XML: an upper bound of its elements and attributes, and so of its memory."""
    return data.count(b"<") + data.count(b"=")


def is_flat(content: bytes | str) -> bool:
    """Tell whether an OpenDocument file is plain XML, and no zip file."""
    if isinstance(content, str):
        return content.lstrip("\ufeff \r\n\t").startswith("<")
    return content.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \r\n\t").startswith(b"<")


def xml_bytes(content: bytes | str) -> tuple[bytes, str | None]:
    """Return XML as bytes, and their encoding where the XML's own declaration must not decide."""
    return (content, None) if isinstance(content, bytes) else (content.encode("utf-8", "replace"), "utf-8")


def parse_xml(data: bytes | str, fault: FaultMaker, *, doctype: bool = False) -> Element:
    """Return XML as a tree.

    :param data: text is taken as it is, whatever encoding it declares.
    :param doctype: skip a document type that only names a file; the file is never read.
    :raises BadPage: the bytes are not XML, declare a document type or entities, or exceed a limit.
    """
    data, encoding = xml_bytes(data)
    if len(data) > MAX_BYTES or count_marks(data) > MAX_MARKS:
        raise fault("is too large; split it")
    # expat first reads the prolog alone: ElementTree would expand entities before anything could refuse them
    walk_xml(cut_bytes(data), _PrologCheck(), fault, encoding, named_doctype=doctype)
    try:
        root = ElementTree.fromstring(data, ElementTree.XMLParser(encoding=encoding))  # noqa: S314 - the prolog was checked
    except _NO_XML as error:
        raise fault(f"is no valid XML ({error}); fetch or save it again") from error
    _check_depth(root, fault)
    _shorten(root)
    return root


def _check_depth(root: Element, fault: FaultMaker) -> None:
    level, depth = [root], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise fault(f"is nested too deep (over {MAX_DEPTH} levels); save it with fewer levels")
        level = [child for element in level for child in element]


def _shorten(root: Element) -> None:
    """Replace the name spaces of all names in a tree by short prefixes."""
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


def find_path(element: Element | None, *path: str) -> Element | None:
    """Return the element at a path of child names, the first match at each step, or None."""
    for tag in path:
        element = next((child for child in element if child.tag == tag), None) if element is not None else None
    return element


def attribute(element: Element | None, key: str, default: str = "") -> str:
    """Return an attribute; ``default`` where the element is None or lacks the attribute."""
    return default if element is None else element.get(key, default)


def whole_number(text: str | None, otherwise: int = 0, most: int = 99_999_999) -> int:
    """Return the whole number from 0 that a text holds, capped at ``most``; ``otherwise`` where it holds none."""
    number = bounded_int(text, -1, least=-1, most=most)
    return number if number >= 0 else otherwise


def children(element: Element | None, tag: str) -> Iterator[Element]:
    """Yield the children with a tag; none where the element is None."""
    return (child for child in element if child.tag == tag) if element is not None else iter(())
