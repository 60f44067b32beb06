"""Pages whose body is an empty frame that scripts fill: their words are taken from the data for these scripts.

The data is JSON in the page: an article's text in JSON-LD, else JSON-LD of other kinds and what frameworks put beside
the frame (``__NEXT_DATA__``, ``__NUXT_DATA__``, ``window.__INITIAL_STATE__ = {...}``). No script is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import escape, unescape
from typing import Any, Final
from urllib.parse import unquote

from ..core.types import Page
from .clean.parse import Document, parse, source_text
from .clean.walk import clean_tree
from .json_ld import is_kind, items_of, json_values
from .tree import Tree

SHELL_ROOT: Final = re.compile(
    r"<(div|main|section|app-root|app|my-app)\b(?=[^>]{0,400}\bid\s*=\s*[\"']?(?:root|app|__next|__nuxt|___gatsby|svelte"
    r"|react-root|app-root|main-app|application|app-container|app-mount|react-app|vue-app|q-app|ember-app"
    r"|container-root|mount)\b|[^>]{0,400}\bng-(?:app|version)\b)[^>]{0,400}>\s*(?:<!--.{0,300}?-->\s*)?</\1>",
    re.IGNORECASE | re.DOTALL,
)
"""An empty root element for a script to fill, with one of the usual ids."""

_MOST_WORDS: Final = 30  # of a body that may be a frame
_MANY_LETTERS: Final = 4_000  # code points of a page that is no frame, whatever its title and <noscript> hold
_LOADING_WORDS: Final = 3  # "Loading, please wait"
_MAX_JSON: Final = 8 << 20  # code points of a script
_MAX_STATES: Final = 50  # of a script
_MAX_VALUES: Final = 50_000
_MAX_DEPTH: Final = 40
_SCRIPT: Final = re.compile(r"<script\b", re.IGNORECASE)
_BODY_END: Final = re.compile(r"</(?:body|html)\b", re.IGNORECASE)
_STATE: Final = re.compile(
    r"(?:\b(?:window|self|globalThis)(?:\.|\[[\"'])\w{1,60}(?:[\"']\])?|\b__\w{1,60}__)\s{0,9}=\s{0,9}"
    r"(?:JSON\.parse\(\s{0,9}|decodeURIComponent\(\s{0,9}){0,2}(?=[{\[\"'])"
)
"""The beginning of a script that gives data to a variable of the page."""

_QUOTED: Final = re.compile(r"'((?:[^'\\\n]|\\.)*+)'")
_BARE_QUOTE: Final = re.compile(r'(?<!\\)"')
_NO_KIND: Final = ("WebSite", "Organization", "BreadcrumbList", "SearchAction", "ImageObject", "NavigationElement")
_SETTING: Final = re.compile(
    r"[_$@].*|(?:.*_)?(?:ids?|uuid|urls?|href|slug|token|hash|class|styles?|icons?|path|key|config|settings|theme|locales?"
    r"|translations|i18n|flags|images?|thumbnails?|query|env|seo|layout|src|srcset|cookies?|assets?)"
    r"|.*(?:I[dD]s?|U[rR][lL]s?|Href|Slug|Token|Hash|ClassName|Styles?|Icons?|Path|Key|Config|Settings|Theme|Locales?"
    r"|Translations|I18n|Flags|Images?|Thumbnails?|Cookies?)|className|pathname|__typename|analytics|tracking"
)
"""Keys of what scripts need and no reader sees."""

_NO_WORDS: Final = re.compile(
    r"(?:https?:|data:|//|[/#.])\S*+|[!-~]{41,}+|[0-9a-f-]{16,}+|[A-Za-z][A-Za-z0-9]*+(?:[_.:][a-z][A-Za-z0-9]*+)++"
    r"|[a-z]{3,}+(?:[A-Z][a-z]++)++|\W*+"
)
"""Addresses, names of files and of properties, tokens."""

_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,500}>")
_BLOCK: Final = re.compile(r"<(?:p|br|div|li|h[1-6]|table|pre)\b", re.IGNORECASE)


def has_few_words(tree: Tree) -> bool:
    """Tell whether a page shows so few words that it may be a frame."""
    letters = 0
    for text in tree.text:  # few pages are short: to count the words of every page costs a twentieth of cleaning
        letters += len(text)
        if letters > _MANY_LETTERS:
            return False
    return _body_words(tree) <= _MOST_WORDS


def _body_words(tree: Tree) -> int:
    """Return the number of words of a page outside its title and what asks readers to turn their scripts on.

    A ``<noscript>`` with more words holds the page's own text, as that of a forum does.
    """
    counts = ((tag, tree.word_count(node)) for node, tag in enumerate(tree.tag) if tag in ("title", "noscript"))
    return tree.words[-1] - sum(words for tag, words in counts if tag == "title" or words <= _MOST_WORDS)


def is_frame(tree: Tree, page: Page) -> bool:
    """Tell whether a page shows hardly any words until its scripts run."""
    if not has_few_words(tree):
        return False
    source = page.content if isinstance(page.content, str) else page.content.decode("latin-1")
    loads = _body_words(tree) <= _LOADING_WORDS or SHELL_ROOT.search(source)
    return bool(loads and _SCRIPT.search(source))


def data_of_frame(tree: Tree, page: Page) -> str:
    """Return the words that a page holds for its scripts, where it shows far fewer; '' for any other page.

    :returns: an article as HTML; else JSON.
    """
    if not has_few_words(tree):
        return ""
    document, frame = parse(page.content, page.charset), is_frame(tree, page)
    data = _article(document)
    if not data and frame:
        shown = _Shown().of([*_items(document), *_states(document)])
        data = json.dumps(shown[0] if len(shown) == 1 else shown, ensure_ascii=False) if shown else ""
    return data if frame or len(data.split()) > 2 * _body_words(tree) else ""


def filled(tree: Tree, page: Page, to_html: Callable[[Page], str | bytes]) -> str:
    """Return a page that is a frame with the words of its data in its body; '' for any other page.

    :param to_html: turns JSON into HTML.
    """
    data = data_of_frame(tree, page)
    if data and not data.startswith("<"):
        made = to_html(Page(data, media_type="application/json"))
        data = made.partition("<body>")[2].rpartition("</body>")[0] if isinstance(made, str) else ""
    if not data:
        return ""
    text = source_text(page.content, page.charset)
    end = max((found.start() for found in _BODY_END.finditer(text)), default=len(text))
    return f"{text[:end]}<main>{data}</main>{text[end:]}"


def _article(document: Document) -> str:
    """Return the texts of articles in JSON-LD as HTML."""
    parts = []
    for item in items_of(document):
        body = item.get("articleBody")
        if not isinstance(body, str) or not body.strip():
            continue
        title = item.get("headline")
        heading = f"<h1>{escape(title)}</h1>" if isinstance(title, str) else ""
        lines = (escape(line) for line in _plain(body).split("\n") if line.strip())
        parts.append(f"<article>{heading}{''.join(f'<p>{line}</p>' for line in lines)}</article>")
    return "".join(parts)


def _plain(text: str) -> str:
    """Return a text without its HTML, if it has any; its lines stay lines."""
    if _TAG.search(text):
        return clean_tree(text if _BLOCK.search(text) else text.replace("\n", "<br>")).canonical
    return unescape(text) if "&" in text else text


def _items(document: Document) -> list[dict[str, Any]]:
    """Return the items of JSON-LD that are about the page; items in other items are left to these."""
    items = items_of(document)
    inner = {id(one) for item in items for one in _listed(item.get("mainEntity"))}
    return [item for item in items if id(item) not in inner and "@graph" not in item and not is_kind(item, _NO_KIND)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _states(document: Document) -> Iterator[Any]:
    """Yield the data that a page holds for its scripts."""
    for script in document.select("script:not([src])"):
        kind = (script.attr("type") or "").lower()
        text = script.text
        if len(text) > _MAX_JSON or "ld+json" in kind:
            continue
        if script.attr("id") == "__NUXT_DATA__":
            yield from (_Nuxt(value).of(0, 0) for value in json_values(text) if isinstance(value, list) and value)
        elif kind.endswith("json"):
            yield from map(_of_page, json_values(text))
        elif kind in ("", "module", "text/javascript"):
            yield from map(_of_page, _assigned(text))


def _of_page(value: Any) -> Any:
    """Return what data says of the page itself: in the data of Next.js, the properties of the page."""
    if isinstance(value, dict) and isinstance(props := value.get("props"), dict) and "pageProps" in props:
        return props["pageProps"]
    return value


def _assigned(script: str) -> Iterator[Any]:
    """Yield the JSON that a script gives to variables, as itself or as a string."""
    decoder = json.JSONDecoder(strict=False)
    end = 0
    for _ in range(_MAX_STATES):
        found = _STATE.search(script, end)
        if found is None:
            return
        end = found.end()
        try:
            if script[end] == "'":
                quoted = _QUOTED.match(script, end)
                inner = _BARE_QUOTE.sub(r"\\\g<0>", quoted[1].replace("\\'", "'")) if quoted else ""
                end = quoted.end() if quoted else end + 1
                value: Any = json.loads(f'"{inner}"', strict=False)
            else:
                value, end = decoder.raw_decode(script, end)
            if isinstance(value, str):
                value = json.loads(unquote(value) if value.startswith("%") else value, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            yield value


class _Shown:
    """Leaves out of data what no reader sees: settings, addresses, tokens, names of properties."""

    def __init__(self) -> None:
        self._left = _MAX_VALUES

    def of(self, value: Any, depth: int = 0) -> Any:
        """Return the part of a value that readers see; None where there is none."""
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            return None
        if isinstance(value, dict):
            kept = {
                key: shown
                for key, inner in value.items()
                if not _SETTING.fullmatch(key) and (shown := self.of(inner, depth + 1)) is not None
            }
            return kept or None
        if isinstance(value, list):
            return [shown for inner in value if (shown := self.of(inner, depth + 1)) is not None] or None
        if isinstance(value, str):
            return None if _NO_WORDS.fullmatch(value) else _plain(value)
        return None if isinstance(value, bool) else value


class _Nuxt:
    """Data of Nuxt 3: a list of values, in which the places of other values stand for these."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values
        self._left = _MAX_VALUES

    def of(self, place: Any, depth: int) -> Any:
        """Return the value at a place of the list."""
        self._left -= 1
        if type(place) is not int or not 0 <= place < len(self._values) or self._left < 0 or depth > _MAX_DEPTH:
            return None
        value = self._values[place]
        if isinstance(value, dict):
            return {key: self.of(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list):
            if value and isinstance(value[0], str):  # a kind of value, as ["Reactive", 1] and ["Date", "2024-05-04"]
                return self.of(value[1], depth + 1) if type(value[-1]) is int else value[-1]
            return [self.of(inner, depth + 1) for inner in value]
        return value
