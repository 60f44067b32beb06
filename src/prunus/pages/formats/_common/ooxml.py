"""Parts that Word, PowerPoint and Excel files share: relations, document properties, alternatives."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element

from .xml import children
from .zip import Archive


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
