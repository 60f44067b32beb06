"""Parts that Word, PowerPoint and Excel files share: relations, document properties, chart data."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from .allowance import Allowance
from .write import Cell, escape_text, table
from .xml import attribute, children, find_path, whole_number
from .zip import Archive

SCRIPTS: Final = {"superscript": "sup", "subscript": "sub"}
"""The element of HTML for each vertical alignment of a run."""

_MAX_POINTS: Final = 10_000  # rows of the table that shows a chart


class Relation(NamedTuple):
    """A link from one part of a package to another part, or to an outside address.

    :param kind: last segment of the relation's type, for example ``styles``.
    :param target: path of a part, or an address.
    :param outside: whether ``target`` is an address outside the package.
    """

    kind: str
    target: str
    outside: bool


def relations(archive: Archive, part: str) -> dict[str, Relation]:
    """Return the relations of a part by id. Outside targets are never fetched."""
    folder, name = posixpath.split(part)
    rels = posixpath.join(folder, "_rels", f"{name}.rels")
    if rels not in archive:
        return {}
    by_id = {}
    for element in archive.xml(rels):
        outside = element.get("TargetMode") == "External"
        target = element.get("Target", "")
        if not outside:
            target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        by_id[element.get("Id", "")] = Relation(element.get("Type", "").rpartition("/")[2], target, outside)
    return by_id


def main_part(archive: Archive, default: str) -> str:
    """Return the path of the document's main part."""
    for relation in relations(archive, "").values():
        if relation.kind == "officeDocument" and relation.target in archive:
            return relation.target
    return default


def properties(archive: Archive) -> tuple[str, dict[str, str]]:
    """Return the title and the metadata (author, published, modified) of a document."""
    part = next((r.target for r in relations(archive, "").values() if r.kind == "core-properties"), "docProps/core.xml")
    if part not in archive:
        return "", {}
    root = archive.xml(part)
    fields = {child.tag: " ".join((child.text or "").split()) for child in root}
    meta = {
        "author": fields.get("dc:creator", ""),
        "published": fields.get("dcterms:created", ""),
        "modified": fields.get("dcterms:modified", ""),
    }
    return fields.get("dc:title", ""), meta


def chosen_branch(element: Element) -> Iterator[Element]:
    """Yield the children of one branch of an ``mc:AlternateContent``: the first choice, or else the fallback."""
    branch = next(children(element, "mc:Choice"), None)
    if branch is None or not len(branch):
        branch = next(children(element, "mc:Fallback"), None)
    return iter(branch if branch is not None else ())


def chart_table(root: Element, allowance: Allowance) -> str:
    """Return the data of a chart as a table with one column per series. The caption is the chart's title.

    :raises BadPage: the table has more cells than the document may have.
    """
    title = "".join(text.text or "" for text in _texts(next(root.iter("c:title"), None)))
    series = list(root.iter("c:ser"))
    columns: list[tuple[str, dict[int, str]]] = []
    names: dict[int, str] = {}
    for element in series:
        label = " ".join(_points(find_path(element, "c:tx")).values())
        names = names or _points(find_path(element, "c:cat")) or _points(find_path(element, "c:xVal"))
        values = find_path(element, "c:val")
        columns.append((label, _points(values if values is not None else find_path(element, "c:yVal"))))
    rows = sorted({*names, *(index for _, points in columns for index in points)})[:_MAX_POINTS]
    if not columns or not rows:
        return f"<p>{escape_text(title)}</p>" if title else ""
    allowance.spend("cells", (len(rows) + 1) * (len(columns) + 1))
    table_rows: list[list[str | Cell]] = [["", *(escape_text(label) for label, _ in columns)]]
    for index in rows:
        name_cell = Cell(escape_text(names.get(index, str(index + 1))), header=True)
        table_rows.append([name_cell, *(escape_text(points.get(index, "")) for _, points in columns)])
    return table(table_rows, 1, escape_text(title))


def _texts(element: Element | None) -> Iterator[Element]:
    return element.iter("a:t") if element is not None else iter(())


def _points(element: Element | None) -> dict[int, str]:
    """Return the cached points of a sheet reference, by their index."""
    texts: dict[int, str] = {}
    if element is None:
        return texts
    for point in element.iter("c:pt"):
        index, text = whole_number(attribute(point, "idx"), -1), find_path(point, "c:v")
        if index >= 0 and text is not None:
            texts[index] = text.text or ""
    if not texts:
        text = find_path(element, "c:v")
        if text is not None and text.text:
            texts[0] = text.text
    return texts
