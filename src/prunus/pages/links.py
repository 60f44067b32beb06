"""The links of a document: where they lead, absolutely, and what stands around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from .clean import rules
from .clean.parse import Element, parse
from .tree import Tree, subtree_text

_BASE: Final = re.compile(r"<base\b", re.IGNORECASE)
_HEAD: Final = 65_536  # code points, or bytes, in which a page may name its base
_AROUND: Final = 200  # code points on either side of a link that belong to it
_CHROME: Final = frozenset({"nav", "footer", "aside", "header"})
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_PORTS: Final = {"http": ":80", "https": ":443"}
_TRACKING: Final = re.compile(r"(?:^|&)(?:utm_\w+|gclid|fbclid|msclkid|mc_[ce]id|ref_src)=[^&]*")


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a document.

    :param node: its ``<a>``.
    :param target: absolute, without fragment; relative only where the document's own address is.
    :param text: what it says.
    :param around: the rest of its line.
    :param heading: the last heading above it.
    :param chrome: whether it stands in a menu, a header, an aside or a footer.
    """

    node: int
    target: str
    text: str
    around: str
    heading: str
    chrome: bool


def base_of(tree: Tree) -> str:
    """Return what the document's links are relative to: its address, or what its ``<base>`` makes of that."""
    markup = tree._markup[0]
    head = markup[:_HEAD] if isinstance(markup, str) else markup[:_HEAD].decode("latin-1")
    found = _BASE.search(head)
    if found is None:
        return tree.url
    for node in parse(head).descendants:
        if isinstance(node, Element) and node.tag == "base" and node.attrs.get("href"):
            return _joined(tree.url, str(node.attrs["href"]).strip()) or tree.url
    return tree.url


def canonical(url: str) -> str:
    """Return the form in which two addresses of one page are equal: host in lower case, no fragment, no tracking."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    scheme, place = parts.scheme.lower(), parts.netloc.lower()
    place = place.removesuffix(_PORTS.get(scheme, "\0"))
    query = _TRACKING.sub("", parts.query).lstrip("&")
    return urlunsplit((scheme, place, parts.path or ("/" if place else ""), query, ""))


def links_of(tree: Tree) -> list[Link]:
    """Return the links that lead from the document to other pages, in document order.

    Links into the document itself, and those that are no page's address (mail, telephone, script), are left out.
    Their targets are whatever the page says: nobody has checked them.
    """
    base, own = base_of(tree), canonical(tree.url)
    found = []
    heading, chrome_until = -1, 0
    for node, tag in enumerate(tree.tag):
        if tag in rules.HEADINGS:
            heading = node
        elif tag in _CHROME and node >= chrome_until and not (tag == "header" and _inside(tree, node, "article")):
            chrome_until = tree.end[node]
        elif tag == "a":
            target = _joined(base, (tree.attrs[node] or {}).get("href", ""))
            if target and canonical(target) != own:
                above = subtree_text(tree, heading) if heading >= 0 else ""
                chrome = node < chrome_until
                found.append(Link(node, target, subtree_text(tree, node), _around(tree, node), above[:_AROUND], chrome))
    return found


def _joined(base: str, href: str) -> str:
    """Return an absolute http(s) address, or a relative one where the base is; '' for anything else."""
    if not href or href.startswith("#"):
        return ""
    try:
        target = urljoin(base, href).partition("#")[0]
    except ValueError:
        return ""
    scheme = _SCHEME.match(target)
    return target if scheme is None or scheme[0].lower() in ("http:", "https:") else ""


def _inside(tree: Tree, node: int, tag: str) -> bool:
    """Tell whether a node stands inside an element."""
    above = tree.parent[node]
    while above >= 0 and tree.tag[above] != tag:
        above = tree.parent[above]
    return above >= 0


def _around(tree: Tree, node: int) -> str:
    """Return the rest of the line on which a link stands."""
    text, last = tree.canonical, tree.end[node] - 1
    while node < last and not tree.text[node]:
        node += 1  # an element starts before the line break that its words stand after
    start, end = tree.starts[node], tree.starts[last] + len(tree.text[last])
    before = text[max(0, start - _AROUND) : start].rpartition("\n")[2]
    after = text[end : end + _AROUND].partition("\n")[0]
    return " ".join(f"{before} {after}".split())
