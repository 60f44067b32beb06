"""Reads what a page says about itself: title, authors, dates, language, site, description, canonical address.

Sources are JSON-LD, OpenGraph and other ``<meta>`` elements, microdata, ``<link>``, ``<title>``, ``<time>`` and
``lang``, and bylines. Format engines write the metadata of other documents (PDF, Office, e-mail, EPUB, …) into the same
elements. The title of a page that says none is its heading, else the name of its file; nothing else is guessed from the
text or the address.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast
from urllib.parse import urljoin, urlsplit

from ..core.types import Metadata, Page
from .clean.elements import kept_address
from .clean.parse import Document, Element, parse, without_surrogates
from .clean.rules import HEADINGS
from .dates import iso_date
from .json_ld import is_kind, items_of
from .read import ToHtml
from .tree import Tree

LONGEST: Final = {"title": 500, "name": 100, "description": 1_000, "address": 2_000}
"""Code points of a value at most; a longer title or description is cut, a longer name or address is not taken."""

_KNOWN: Final = ("metadata", 0)
_NAMED_BY: Final = ("property", "name", "itemprop", "http-equiv")
_MAX_ITEMS: Final = 2_000
_MAX_AUTHORS: Final = 50
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_BY: Final = re.compile(r"(?:by|von|par|por|di)\s*:?\s+", re.IGNORECASE)
_ARTICLES: Final = ("Article", "Posting", "Report", "Review", "Recipe", "Book", "Paper", "Thesis", "Question", "HowTo")
_PAGES: Final = ("Page", "Product", "Event", "VideoObject", "Movie", "Course")
_TITLES: Final = ("og:title", "twitter:title", "citation_title", "dc.title", "dcterms.title", "parsely-title")
_AUTHORS: Final = ("author", "citation_author", "article:author", "dc.creator", "dcterms.creator", "parsely-author",
                   "sailthru.author", "byl")  # fmt: skip
_PUBLISHED: Final = ("article:published_time", "og:published_time", "datepublished", "citation_publication_date",
                     "citation_date", "parsely-pub-date", "sailthru.date", "publishdate", "publish-date", "pubdate",
                     "dc.date.issued", "dcterms.issued", "dcterms.created", "dc.date", "dcterms.date", "date",
                     "article.published", "cxenseparse:recs:publishtime")  # fmt: skip
_MODIFIED: Final = ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "dc.date.modified",
                    "last-modified", "article.updated")  # fmt: skip
_DESCRIPTIONS: Final = ("og:description", "description", "twitter:description", "dc.description")
_SITES: Final = ("og:site_name", "application-name", "citation_journal_title")
_NOT_NAMES: Final = frozenset(
    {"admin", "administrator", "anonymous", "none", "null", "undefined", "author", "unknown", "unspecified"}
)

_BYLINES: Final = (
    "[rel~=author],[class~=author],[class~=username],[class*=byline i],[class*=author-name i],[class*=author_name i],"
    "[class*=authorname i],[class*=post-author i],[class*=entry-author i],[itemprop~=author]"
)
"""Elements that show who wrote a page."""

_WRITTEN_BY: Final = re.compile(
    r"^(?:(?:(?:written|posted|published|words|text|story) +)?(?:by|von|par|por|di|authors?) *:?(?: \|)? +"
    r"|[文作撰]者?[/:／：] *)",
    re.IGNORECASE,
)
_WRITTEN: Final = re.compile(
    r"(?:written|posted) by|(?:geschrieben|verfasst) von|[ée]crit par|escrito por|scritto da|geschreven door",
    re.IGNORECASE,
)
_LINES: Final = "h1,h2,h3,h4,h5,h6,p,div,span,small,address,li"
_MAX_LINES: Final = 40

_NAME: Final = re.compile(r"[^\W\d_][\w.'’-]*+(?: [^\W\d_][\w.'’-]*+,?+){0,4}")
_AFTER_NAME: Final = re.compile(r"[|·•\d]|\b(?:on|published|updated|posted)\b", re.IGNORECASE)
_NO_NAME: Final = re.compile(
    r"^home$|\bby$|^(?:by|updated|published|posted|photos?|images?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tue|wed|thu|fri|sat"
    r"|sun|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b",
    re.IGNORECASE,
)
_BEFORE_DATE: Final = re.compile(r" (?:le|am|el|em|il|den|vom)$")
_LONGEST_NAME: Final = 50

_AND: Final = re.compile(r",? (?:and|und|et|y) ")
_JOINED: Final = re.compile(r" ?\|( ?(?:,|&|and|und|et|y) ?)\|")
"""What stands between two elements that hold names."""

_PERSON: Final = re.compile(
    r"(?:[A-ZÀ-Þ][\w.'’-]*+)(?: (?:(?:van|von|de|der|den|del|la|le|di|da|bin|al|el)|[A-ZÀ-Þ][\w.'’-]*+)){1,4}"
)
"""A name of two words or more, each with a capital letter but for what stands before family names."""

_JOB: Final = re.compile(
    r"\b(?:editor|writer|reporter|correspondent|staff|journalist|contributor|columnist|photographer|news|team|press"
    r"|director|manager|officer|professor|university|institute|inc|ltd|llc|company|department)\b",
    re.IGNORECASE,
)
"""Words of jobs and organisations, which are no second name of a line."""


def read_metadata(page: Page, to_html: ToHtml) -> Metadata:
    """Return what a page or document says about itself.

    :param to_html: turns the page into HTML.
    :raises BadPage: the page cannot be read.
    """
    name = page.url or "page"
    return metadata_of(parse(to_html(page), page.charset, name), page.final_url or page.url)


def known_metadata(tree: Tree) -> Metadata:
    """Return what the page of a cleaned document says about itself; empty where its source is not known.

    The page is parsed for it once.
    """
    known = tree.cache.get(_KNOWN)
    if known is None:
        markup, charset = tree._markup
        known = tree.cache[_KNOWN] = metadata_of(parse(markup, charset), tree.url) if markup else Metadata()
    return cast(Metadata, known)


def title_of(tree: Tree) -> str:
    """Return the title of a document's metadata, else that of its tree, which has no source in some indexes."""
    return known_metadata(tree).title or tree.title or _name_in(tree.url)


def metadata_of(document: Document, base: str = "") -> Metadata:
    """Return what a parsed page says about itself.

    :param base: the page's address or path, for relative canonical addresses and for the title of a page that has none;
        '' when unknown.
    """
    meta = _meta(document)
    item, site = _json_items(document)
    scope = _microdata(document)

    def said(names: Sequence[str]) -> Iterator[str]:
        return (value for name in names for value in meta.get(name, ()))

    names = _names(item.get("author")) or list(said(_AUTHORS)) or _properties(scope, "author", "name")
    names = names or _byline(document) or _labelled(meta) or _line_under_heading(document)
    site_name = _first(*said(_SITES), _name(item.get("publisher")), site)
    language = _language(
        document,
        [
            *meta.get("content-language", ()),
            *meta.get("dc.language", ()),
            *meta.get("og:locale", ()),
            _text(item.get("inLanguage")),
        ],
    )
    title = _first(_text(item.get("headline")), *said(_TITLES), *_properties(scope, "headline"), _title(document))
    return Metadata(
        title=(_without_site(title, site_name) or _first(_heading(document), _name_in(base)))[: LONGEST["title"]],
        authors=_authors(names),
        published=_date(language, _text(item.get("datePublished")), *said(_PUBLISHED),
                        *_properties(scope, "datePublished"), _text(item.get("dateCreated")),
                        *_properties(scope, "dateCreated"), _time(document)),
        modified=_date(language, _text(item.get("dateModified")), *said(_MODIFIED),
                       *_properties(scope, "dateModified")),
        language=language,
        site=site_name if len(site_name) <= LONGEST["name"] else "",
        description=_first(*said(_DESCRIPTIONS), _text(item.get("description")))[: LONGEST["description"]],
        address=_address(document, [*meta.get("og:url", ()), _text(item.get("url"))], base),
    )  # fmt: skip


def plain(value: str) -> str:
    """Return a value on one line, without control characters and other letters that no reader sees."""
    text = without_surrogates(html.unescape(value) if "&" in value else value)
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


def _first(*values: str) -> str:
    """Return the first value that is not blank, on one line."""
    return next((text for value in values if value and (text := plain(value[:4_000]))), "")


def _date(language: str, *values: str) -> str:
    return next((result for value in values if value and (result := iso_date(value, language))), "")


def _meta(document: Document) -> dict[str, list[str]]:
    """Return the contents of ``<meta>`` elements by their name, in lower case."""
    result: dict[str, list[str]] = {}
    for element in document.select("meta[content]")[:_MAX_ITEMS]:
        name = (
            element.attr("property") or element.attr("name") or element.attr("itemprop") or element.attr("http-equiv")
        )
        content = element.attr("content")
        if name and content and content.strip():
            result.setdefault(name.strip().lower(), []).append(content)
    return result


def _json_items(document: Document) -> tuple[dict[str, Any], str]:
    """Return the item of JSON-LD that describes the page, {} where there is none, and the name of the site."""
    items = items_of(document)
    best: dict[str, Any] = {}
    site = ""
    for kinds in (_ARTICLES, _PAGES):
        best = best or next((item for item in items if is_kind(item, kinds)), {})
    for item in items:
        if not site and is_kind(item, ("WebSite",)):
            site = _name(item)
    people = {identity: item for item in items if isinstance(identity := item.get("@id"), str)}
    if best:
        best = {**best, **{key: _resolved(best.get(key), people) for key in ("author", "publisher")}}
    return best, site


def _resolved(value: Any, items: dict[str, dict[str, Any]]) -> Any:
    """Return a value of JSON-LD with its references to other items replaced."""
    if isinstance(value, list):
        return [_resolved(one, items) if isinstance(one, dict) else one for one in value[:_MAX_AUTHORS]]
    if isinstance(value, dict) and "name" not in value and isinstance(identity := value.get("@id"), str):
        return items.get(identity, value)
    return value


def _text(value: Any) -> str:
    """Return a value of JSON-LD as text; '' where it is none."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("@value", value.get("name", value.get("alternateName", "")))
    return value if isinstance(value, str) else ""


def _name(value: Any) -> str:
    return _text(value.get("name")) if isinstance(value, dict) else _text(value)


def _names(value: Any) -> list[str]:
    """Return the names of people or organisations in JSON-LD."""
    values = value[:_MAX_AUTHORS] if isinstance(value, list) else [value]
    return [name for one in values if (name := _name(one))]


def _microdata(document: Document) -> Element | None:
    """Return the first element whose microdata describe an article."""
    for element in document.select("[itemscope][itemtype]")[:_MAX_ITEMS]:
        if (element.attr("itemtype") or "").strip().endswith(_ARTICLES):
            return element
    return None


def _properties(scope: Element | None, *path: str) -> list[str]:
    """Return the values of a property of a microdata item; of a property in it where the path has two names.

    What is a property of an item inside this one, as the author of a comment, is left out.
    """
    if scope is None:
        return []
    values: list[str] = []
    named = scope.select(f"[itemprop~={path[0]}]")[:_MAX_ITEMS]
    for element in [element for element in named if _item_around(element) == scope][:_MAX_AUTHORS]:
        inner = element.select_one(f"[itemprop~={path[1]}]") if len(path) > 1 else None
        chosen = inner or element
        values.append(chosen.attr("content") or chosen.attr("datetime") or chosen.text[:4_000])
    return values


def _item_around(element: Element) -> Element | None:
    """Return the nearest microdata item around an element."""
    around = element.parent
    while isinstance(around, Element) and around.attr("itemscope") is None:
        around = around.parent
    return around if isinstance(around, Element) else None


def _title(document: Document) -> str:
    """Return the page's ``<title>``."""
    title = document.select_one("head title") or document.select_one("title")
    return title.text if title is not None else ""


def _heading(document: Document) -> str:
    """Return the page's first ``<h1>``, or its only heading of the next level; of slides the title of the first."""
    slide = document.select_one('h1 data[value="slide-1"], h2 data[value="slide-1"]')
    if slide is not None:
        return slide.text
    for tag in sorted(HEADINGS):
        headings = [heading.text for heading in document.select(tag)[:_MAX_ITEMS] if heading.text.strip()]
        if headings:
            return headings[0] if tag == "h1" or len(headings) == 1 else ""
    return ""


def _name_in(address: str) -> str:
    """Return the last name in an address or a path."""
    return re.split(r"[?#]", address)[0].rstrip("/").rpartition("/")[2]


def _without_site(title: str, site: str) -> str:
    """Return a title without the name of the site at its end or its beginning."""
    for separator in (" | ", " - ", " – ", " — ", " :: ", " · ", " » "):
        if site and title.casefold().endswith((separator + site).casefold()):
            return title[: -len(separator + site)].strip() or title
        if site and title.casefold().startswith((site + separator).casefold()):
            return title[len(site + separator) :].strip() or title
    return title


def _authors(names: Sequence[str]) -> tuple[str, ...]:
    """Return names on one line each, without "by", addresses and repetitions."""
    result: dict[str, str] = {}
    for line in names[:_MAX_AUTHORS]:
        text = _BY.sub("", plain(line[:4_000]), count=1) if _BY.match(plain(line[:20])) else plain(line[:4_000])
        for name in _people(text):
            if name and len(name) <= LONGEST["name"] and "://" not in name and name.casefold() not in _NOT_NAMES:
                result.setdefault(name.casefold(), name)
    return tuple(result.values())[:_MAX_AUTHORS]


def _people(line: str) -> list[str]:
    """Return the names of a line: between semicolons, or as "A B, C D and E F" where each part is a full name."""
    if ";" in line:
        return [part.strip() for part in line.split(";")]
    parts = _AND.sub(", ", line).split(", ") if _AND.search(line) else [line]
    return parts if all(_PERSON.fullmatch(part) and not _JOB.search(part) for part in parts) else [line]


def _labelled(meta: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names that a page gives for cards of social networks, under the label "Written by"."""
    return [
        name
        for number in "12"
        if any(_WRITTEN.fullmatch(label.strip()) for label in meta.get(f"twitter:label{number}", ()))
        for name in meta.get(f"twitter:data{number}", ())
    ]


def _byline(document: Document) -> list[str]:
    """Return the names that the bylines of a page show, where all show the same; of a listing they show many."""
    lines = (_line(element) for element in document.select(_BYLINES)[:_MAX_AUTHORS])
    found: dict[str, list[str]] = {}
    for names in filter(None, map(_names_of, lines)):
        found.setdefault(names[0].casefold(), names)
    return next(iter(found.values())) if len(found) == 1 else []


def _line_under_heading(document: Document) -> list[str]:
    """Return the full names of the first line shortly after the page's first ``<h1>`` that begins with "by"."""
    elements = iter(document.select(_LINES)[:_MAX_ITEMS])
    if not any(element.tag == "h1" for element in elements):
        return []
    for element in islice(elements, _MAX_LINES):
        first = next((word for word in element.strings if not word.isspace()), "")
        if _WRITTEN_BY.match(first.strip()[:100] + " ") is not None:
            names = _names_of(_line(element))
            if names and all(_PERSON.fullmatch(name) and not _JOB.search(name) for name in names):
                return names
    return []


def _line(element: Element) -> str:
    """Return the words of an element on one line, with "|" between those of elements in it."""
    return plain(" | ".join(words for words in element.strings if not words.isspace())[:300])


def _names_of(line: str) -> list[str]:
    """Return the names at the beginning of a byline whose elements stand between "|"."""
    text = _WRITTEN_BY.sub("", " ".join(_JOINED.sub(r"\1", line).replace(" ,", ",").split())).strip(" |·•,:–-")
    first = _BEFORE_DATE.sub("", _AFTER_NAME.split(text, maxsplit=1)[0].strip(" ,"))
    name, _, rest = first.partition(",")
    names = _people(name if _JOB.search(rest) else first)
    if any(len(name) > _LONGEST_NAME or not _NAME.fullmatch(name) or _NO_NAME.search(name) for name in names):
        return []
    return names


def _time(document: Document) -> str:
    """Return the date of the page's ``<time>`` elements, where they mark it, or all give the same day."""
    marked = document.select_one('time[pubdate], time[itemprop~="datePublished"], time.published[datetime]')
    if marked is not None:
        return marked.attr("datetime") or marked.text[:100]
    dates = [element.attr("datetime") or "" for element in document.select("time[datetime]")[:_MAX_ITEMS]]
    return dates[0] if dates and len({iso_date(one)[:10] for one in dates}) == 1 else ""


def _language(document: Document, others: Sequence[str]) -> str:
    """Return the language of a page as a tag."""
    root = document.root
    stated = [root.attr("lang") or root.attr("xml:lang") or ""] if root is not None else []
    for value in [*stated, *others]:
        tag = value.split(",")[0].strip().replace("_", "-")
        if len(tag) <= 35 and _LANGUAGE.fullmatch(tag):
            return tag
    return ""


def _address(document: Document, others: Sequence[str], base: str) -> str:
    """Return the canonical address, absolute; '' where the page gives none with http or https."""
    link = document.select_one('link[rel~="canonical" i][href]')
    root = document.select_one("base[href]")
    for value in [(link.attr("href") or "") if link is not None else "", *others]:
        if not value.strip() or len(value) > LONGEST["address"]:
            continue
        try:
            own = urljoin(base, (root.attr("href") or "")[:2_000]) if root is not None else base
            address = kept_address(urljoin(own, value.strip()))
            parts = urlsplit(address or "")
        except ValueError:
            continue
        if address and parts.scheme in ("http", "https") and parts.hostname and not parts.username:
            return plain(address)
    return ""
