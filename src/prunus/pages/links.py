"""The links of a document: absolute targets, link texts, and the text around them; and what it tells crawlers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urljoin, urlsplit, urlunsplit

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
_NOISE: Final = re.compile(
    r"utm_\w+|gclid|dclid|gbraid|wbraid|fbclid|msclkid|yclid|igshid|mc_[ce]id|_hs\w+|ref_src|srsltid|spm"
    r"|phpsessid|jsessionid|aspsessionid\w*|session_?id|cfid|cftoken|zenid|oscsid",
    re.IGNORECASE,
)
"""Parameters that track a reader or hold a session: they change no page."""

_SHORT_SESSION: Final = re.compile(r"(?:sid|s)=[0-9a-f]{20,128}", re.IGNORECASE)
"""A session under a name that may also be that of something else."""

_PATH_SESSION: Final = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/;]*", re.IGNORECASE)
_FEEDS: Final = frozenset({"application/rss+xml", "application/atom+xml"})
_INDEX: Final = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?|jsp)$", re.IGNORECASE)
_SAFE_PATH: Final = "/:@!$&'()*+,;=-._~"
_MOST_LINKS: Final = 5_000  # links of one page that a crawler is told


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


@dataclass(frozen=True, slots=True)
class Outline:
    """What a page tells a crawler.

    :param links: target and text of each link that may be followed, each target once; targets are absolute, without
        fragments, and not checked.
    :param noindex: the page asks not to be kept.
    :param feeds: addresses of its feeds.
    """

    links: tuple[tuple[str, str], ...] = ()
    noindex: bool = False
    feeds: tuple[str, ...] = ()


def canonical(url: str) -> str:
    """Return an address in canonical form: host in lower case, no default port, no fragment, no tracking, no session.

    It can be fetched; :func:`page_key` tells whether two addresses are those of one page.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    scheme, place = parts.scheme.lower(), parts.netloc.lower()
    place = place.removesuffix(_PORTS.get(scheme, "\0"))
    path = _PATH_SESSION.sub("", parts.path) if ";" in parts.path else parts.path
    query = "&".join(pair for pair in parts.query.split("&") if not _is_noise(pair)) if parts.query else ""
    return urlunsplit((scheme, place, path or ("/" if place else ""), query, ""))


def page_key(url: str) -> str:
    """Return what the addresses of one page have in common; it cannot be fetched.

    Left out are the scheme, ``www.``, a default port, the fragment, tracking and sessions, a slash or ``index.html``
    at the end of the path, and the order of parameters.
    """
    try:
        parts = urlsplit(canonical(url))
        port = parts.port
    except ValueError:
        return url
    if parts.scheme not in ("http", "https"):
        return url
    host = (parts.hostname or "").rstrip(".").removeprefix("www.")
    host_and_port = f"{host}:{port}" if port and port not in (80, 443) else host
    path = parts.path.replace("%2f", "%2F").replace("%2F", "%252F")  # a slash that separates nothing
    path = quote(unquote(path, errors="replace"), safe=_SAFE_PATH, errors="replace")
    path = _INDEX.sub("", path).rstrip("/")
    query = urlencode(sorted(parse_qsl(parts.query[:4_000], keep_blank_values=True)), errors="replace")
    return f"{host_and_port}{path}{'?' + query if query else ''}"


def _is_noise(pair: str) -> bool:
    """Tell whether ``name=value`` changes no page."""
    return bool(_NOISE.fullmatch(pair.partition("=")[0]) or _SHORT_SESSION.fullmatch(pair))


def outline_of(content: bytes | str, url: str, charset: str = "", robots_tag: str = "", agent: str = "") -> Outline:
    """Return what an HTML page tells a crawler: its links, also hidden ones, and its wishes.

    ``nofollow`` of a link or of the page takes its links away.

    :param robots_tag: the header X-Robots-Tag.
    :param agent: the crawler's name, which a page may name in place of ``robots``.
    """
    base, feeds = "", list[str]()
    wishes = _wishes(robots_tag, agent)
    found: dict[str, str] = {}
    for node in parse(content, charset).descendants:
        if not isinstance(node, Element):
            continue
        if node.tag in ("a", "area"):
            target = _resolve(base or url, (node.attr("href") or "").strip())
            if target and "nofollow" not in (node.attr("rel") or "").lower().split() and len(found) < _MOST_LINKS:
                text = " ".join(node.text[:_AROUND].split())
                found[target] = found.get(target) or text
        elif node.tag == "base" and not base:
            base = _resolve(url, (node.attr("href") or "").strip())
        elif node.tag == "meta" and (node.attr("name") or "").strip().lower() in ("robots", agent.lower()):
            wishes |= _wishes(node.attr("content") or "", agent)
        elif node.tag == "link" and (node.attr("type") or "").strip().lower() in _FEEDS:
            feeds.append(_resolve(base or url, (node.attr("href") or "").strip()))
    links = {} if wishes & {"nofollow", "none"} else found
    return Outline(tuple(links.items()), bool(wishes & {"noindex", "none"}), tuple(filter(None, feeds)))


def _wishes(text: str, agent: str) -> set[str]:
    """Return the words of a robots tag that are for everyone or for one crawler: ``noindex, other: nofollow``."""
    wishes, named = set[str](), ""
    for part in text[: _AROUND * 5].lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"):
            named, part = name.strip(), rest
        if named in ("", agent.lower()):
            wishes.add(part.strip())
    return wishes


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
