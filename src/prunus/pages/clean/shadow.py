"""Puts declarative shadow roots (``<template shadowrootmode>``) where a browser shows them: in their hosts.

A closed root is closed to scripts alone, and is shown as an open one is. Slots get what is assigned to them; other
children of a host are not shown, and go. A shadow root's own style sheets apply to it alone: what they hide is marked
as ``hidden``, and the sheets go.
"""

from __future__ import annotations

import re
from typing import Any, Final

from . import rules
from .cascade import Sheets, hidden_by_sheets
from .css import declared, unseen_by
from .hidden import Styles
from .parse import Document, Element, SelectorSyntaxError

_ROOTS: Final = "template[shadowrootmode=open i],template[shadowrootmode=closed i]"
_HOSTS: Final = rules.HEADINGS | frozenset(
    "article aside blockquote body div footer header main nav p section span".split()
)
"""Elements that can have a shadow root, besides those that a page names itself."""

_OF_LIGHT: Final = re.compile(r":(?:host|:slotted\(([^()]*)\))\s*\{([^{}]*)\}")
"""A rule for the host of a shadow root, or for what is in its slots."""


def show_shadows(document: Document) -> None:
    """Move the content of each shadow root of a document into its host."""
    templates = document.select(_ROOTS)
    if not templates:
        return
    for template in templates:
        host: Any = template.parent
        if isinstance(host, Element) and (host.tag in _HOSTS or "-" in host.tag) and host.shadow_root is None:
            root = host.attach_shadow()
            for node in [inner for content in template.children for inner in content.children]:
                root.append(node)
            template.decompose()
    waiting = [element for element in document.select("*") if element.shadow_root]
    while waiting:
        host = waiting.pop()
        waiting += _fill(host)


class _Shadow:
    """A shadow root as a document of its own."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.select = root.select


def _fill(host: Element) -> list[Element]:
    """Move the content of an element's shadow root into it; return the hosts in this content."""
    shadow: Any = host.shadow_root
    slots = [(slot, slot.assigned_nodes()) for slot in shadow.select("slot")]
    as_document: Any = _Shadow(shadow)
    for element in hidden_by_sheets(as_document, Sheets(as_document), Styles(None)):
        element.attrs["hidden"] = ""
    for style in shadow.select("style"):
        for of_slot, body in _OF_LIGHT.findall(style.text):
            if unseen_by(declared(body)):
                _hide([host] if not of_slot else [node for _, nodes in slots for node in nodes], of_slot)
        style.decompose()
    for slot, nodes in slots:
        if nodes:
            _replace_children(slot, nodes)
    inner = [element for element in shadow.select("*") if element.shadow_root and len(element.shadow_root.children)]
    _replace_children(host, shadow.children)
    return inner


def _hide(nodes: list[Any], selector: str) -> None:
    """Mark the elements among some nodes that a selector matches as hidden; '' matches all."""
    for node in nodes:
        try:
            if isinstance(node, Element) and (not selector or node.matches(selector)):
                node.attrs["hidden"] = ""
        except SelectorSyntaxError:
            return


def _replace_children(element: Element, nodes: Any) -> None:
    """Put nodes in the place of an element's children."""
    for child in list(element.children):
        child.replace_with()
    for node in list(nodes):
        element.append(node)
