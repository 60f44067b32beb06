"""The links of a document: absolute targets, link texts, and the text around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from ..core.text.numbers import bounded_int
from .clean import rules
from .clean.elements import scheme_of
from .clean.parse import Element, parse
from .tree import Tree, subtree_text

_BASE: Final = re.compile(r"<base\b", re.IGNORECASE)
_HEAD: Final = 65_536  # code points or bytes at a page's start in which <base> is looked for
_REFRESH: Final = re.compile(rb"http-equiv\s*+=[\s\"']*+refresh", re.IGNORECASE)
_REFRESHED: Final = re.compile(
    r"\s*(\d{1,4})[\d.]*(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(.*))", re.IGNORECASE | re.DOTALL
)
_AROUND: Final = 200  # code points of context on each side of a link
_CHROME: Final = frozenset({"nav", "footer", "aside", "header"})
_PORTS: Final = {"http": ":80", "https": ":443"}
_TRACKING: Final = re.compile(r"(?:^|&)(?:utm_\w+|gclid|fbclid|msclkid|mc_[ce]id|ref_src)=[^&]*")


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a document.

    :param node: number of its ``<a>`` in the tree.
    :param target: address of the target without fragment; absolute, unless the document itself has no address.
    :param text: text of the link.
    :param around: the rest of the link's line, up to 200 code points on each side.
    :param heading: the last heading above the link.
    :param chrome: whether the link is in a menu, a header, an aside or a footer of the page.
    """

    node: int
    target: str
    text: str
    around: str
    heading: str
    chrome: bool


def base_of(tree: Tree) -> str:
    """Return the base address of the document's links: its ``<base>``, else its own address."""
    markup = tree._markup[0]
    head = markup[:_HEAD] if isinstance(markup, str) else markup[:_HEAD].decode("latin-1")
    if _BASE.search(head) is None:  # parsing is far slower than this search, and most pages have no <base>
        return tree.url
    for node in parse(head).descendants:
        if isinstance(node, Element) and node.tag == "base" and node.attrs.get("href"):
            return _resolve(tree.url, str(node.attrs["href"]).strip()) or tree.url
    return tree.url


def refresh_target(content: bytes, charset: str, most: int) -> str:
    """Return the address to which a page's ``<meta http-equiv=refresh>`` leads within some seconds; '' without one.

    It is as relative as it is written. One in ``<noscript>`` leads only readers without scripts, to a lesser page.

    :param most: seconds.
    """
    head = content[:_HEAD]
    if _REFRESH.search(head) is None:
        return ""
    base = ""
    for node in parse(head, charset).descendants:
        if not isinstance(node, Element):
            continue
        if node.tag == "base":
            base = base or (node.attr("href") or "").strip()
        elif node.tag == "meta" and (node.attr("http-equiv") or "").strip().lower() == "refresh":
            said = _REFRESHED.match(node.attr("content") or "")
            above = node.parent
            shown = isinstance(above, Element) and above.tag != "noscript"  # nor in a <template>
            if said and shown and bounded_int(said[1], most + 1, most=most + 1) <= most:
                return _absolute(base, (said[2] or said[3] or said[4] or "").strip())
    return ""


def canonical(url: str) -> str:
    """Return an address in canonical form: host in lower case, no default port, no fragment, no tracking parameters."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    scheme, place = parts.scheme.lower(), parts.netloc.lower()
    place = place.removesuffix(_PORTS.get(scheme, "\0"))
    query = _TRACKING.sub("", parts.query).lstrip("&")
    return urlunsplit((scheme, place, parts.path or ("/" if place else ""), query, ""))


def links_of(tree: Tree) -> list[Link]:
    """Return the links from the document to other pages, in document order.

    Links into the document itself are left out, and so are mail, telephone and script links. The targets come from the
    page and are not checked: fetch them through the egress door.
    """
    base, own_address = base_of(tree), canonical(tree.url)
    links = []
    heading, chrome_until = -1, 0
    for node, tag in enumerate(tree.tag):
        if tag in rules.HEADINGS:
            heading = node
        elif tag in _CHROME and node >= chrome_until and not (tag == "header" and _inside(tree, node, "article")):
            chrome_until = tree.end[node]
        elif tag == "a":
            target = _resolve(base, (tree.attrs[node] or {}).get("href", ""))
            if target and canonical(target) != own_address:
                above = subtree_text(tree, heading)[:_AROUND] if heading >= 0 else ""
                text, around = subtree_text(tree, node), _text_around(tree, node)
                links.append(Link(node, target, text, around, above, chrome=node < chrome_until))
    return links


def make_absolute(tree: Tree) -> None:
    """Replace the relative addresses in a tree (links, pictures, media) by absolute ones; fragments stay."""
    base = base_of(tree)
    for node, attrs in enumerate(tree.attrs):
        if attrs and not rules.URL_ATTRIBUTES.isdisjoint(attrs):
            tree.attrs[node] = {
                name: _absolute(base, value) if name in rules.URL_ATTRIBUTES else value for name, value in attrs.items()
            }


def _absolute(base: str, address: str) -> str:
    if not address or address.startswith("#") or scheme_of(address):
        return address
    try:
        return urljoin(base, address)
    except ValueError:  # neither can a browser follow it
        return address


def _resolve(base: str, href: str) -> str:
    """Return an http(s) address resolved against the base; '' for fragments and other schemes."""
    if not href or href.startswith("#"):
        return ""
    try:
        target = urljoin(base, href).partition("#")[0]
    except ValueError:
        return ""
    return target if scheme_of(target) in ("", "http", "https") else ""


def _inside(tree: Tree, node: int, tag: str) -> bool:
    """Tell whether a node is inside an element with a tag."""
    above = tree.parent[node]
    while above >= 0 and tree.tag[above] != tag:
        above = tree.parent[above]
    return above >= 0


def _text_around(tree: Tree, node: int) -> str:
    """Return the rest of a link's line."""
    text, last = tree.canonical, tree.end[node] - 1
    while node < last and not tree.text[node]:
        node += 1  # an element's offset is before the line break, its words are after it
    start, end = tree.starts[node], tree.stop(last)
    before = text[max(0, start - _AROUND) : start].rpartition("\n")[2]
    after = text[end : end + _AROUND].partition("\n")[0]
    return " ".join(f"{before} {after}".split())
