"""What Word and PowerPoint documents share: relations between parts, properties, the data of charts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from .write import Cell, table, words
from .xml import below, each, value, whole
from .zip import Archive

_MAX_POINTS: Final = 10_000  # of a chart


class Relation(NamedTuple):
    """Where a part leads: the last word of its kind, a part or an address, whether that is outside."""

    kind: str
    target: str
    outside: bool


def relations(archive: Archive, part: str) -> dict[str, Relation]:
    """Return the relations of a part by their id; nothing outside is ever followed."""
    folder, name = posixpath.split(part)
    rels = posixpath.join(folder, "_rels", f"{name}.rels")
    if rels not in archive:
        return {}
    found = {}
    for one in archive.xml(rels):
        outside = one.get("TargetMode") == "External"
        target = one.get("Target", "")
        if not outside:
            target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        found[one.get("Id", "")] = Relation(one.get("Type", "").rpartition("/")[2], target, outside)
    return found


def main_part(archive: Archive, default: str) -> str:
    """Return the part that the document begins with."""
    for relation in relations(archive, "").values():
        if relation.kind == "officeDocument" and relation.target in archive:
            return relation.target
    return default


def properties(archive: Archive) -> tuple[str, dict[str, str]]:
    """Return the title and what else a document says of itself."""
    part = next((r.target for r in relations(archive, "").values() if r.kind == "core-properties"), "docProps/core.xml")
    if part not in archive:
        return "", {}
    root = archive.xml(part)
    said = {child.tag: " ".join((child.text or "").split()) for child in root}
    meta = {
        "author": said.get("dc:creator", ""),
        "published": said.get("dcterms:created", ""),
        "modified": said.get("dcterms:modified", ""),
    }
    return said.get("dc:title", ""), meta


def chosen(element: Element) -> Iterator[Element]:
    """Yield the children of one branch of an ``mc:AlternateContent``: the first choice, else the fallback."""
    branch = next(each(element, "mc:Choice"), None)
    if branch is None or not len(branch):
        branch = next(each(element, "mc:Fallback"), None)
    return iter(branch if branch is not None else ())


def chart_table(root: Element) -> str:
    """Return the data of a chart as a table, a column for each series, with its title as the caption."""
    title = "".join(text.text or "" for text in _texts(next(root.iter("c:title"), None)))
    series = list(root.iter("c:ser"))
    columns: list[tuple[str, dict[int, str]]] = []
    names: dict[int, str] = {}
    for one in series:
        label = " ".join(_points(below(one, "c:tx")).values())
        names = names or _points(below(one, "c:cat")) or _points(below(one, "c:xVal"))
        found = below(one, "c:val")
        columns.append((label, _points(found if found is not None else below(one, "c:yVal"))))
    rows = sorted({*names, *(at for _, points in columns for at in points)})[:_MAX_POINTS]
    if not columns or not rows:
        return f"<p>{words(title)}</p>" if title else ""
    written: list[list[str | Cell]] = [["", *(words(label) for label, _ in columns)]]
    for at in rows:
        named = Cell(words(names.get(at, str(at + 1))), header=True)
        written.append([named, *(words(points.get(at, "")) for _, points in columns)])
    return table(written, 1, words(title))


def _texts(element: Element | None) -> Iterator[Element]:
    return element.iter("a:t") if element is not None else iter(())


def _points(element: Element | None) -> dict[int, str]:
    """Return the cached points of a reference to a sheet, by their number."""
    found: dict[int, str] = {}
    if element is None:
        return found
    for point in element.iter("c:pt"):
        at, text = whole(value(point, "idx"), -1), below(point, "c:v")
        if at >= 0 and text is not None:
            found[at] = text.text or ""
    if not found:
        text = below(element, "c:v")
        if text is not None and text.text:
            found[0] = text.text
    return found
