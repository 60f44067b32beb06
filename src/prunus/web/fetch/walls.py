"""Pages that are no content: bot checks, consent and login walls, paywalls, soft 404s, parked domains, empty shells.

Precision matters more than recall: a missed wall adds one poor page, but a page taken for a wall is lost. So
every rule requires both a known pattern and a page with hardly any other text; an article about CAPTCHAs,
cookies or the status 404 has more text. The patterns are data, in :mod:`._markers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final
from urllib.parse import urlsplit

from ...core.types import Page
from ...pages.frame import SHELL_ROOT
from ...pages.tree import Tree, subtree_text
from . import _markers
from ._markers import MARKERS, Kind, Marker

MOST_WORDS: Final = 700
"""Words of running text above which only a response header identifies a wall."""

_HTML: Final = ("", "text/html", "application/xhtml+xml", "text/plain")
_CHROME: Final = frozenset({"nav", "footer", "aside", "button", "select", "a", "title"})
_CONTROLS: Final = frozenset({"button", "a", "input"})
_HEADINGS: Final = frozenset({"h1", "h2"})
_TITLE_PARTS: Final = re.compile(r" [|–—·•»:-] | ?[|»] ?|: ")
_SCRIPT: Final = re.compile(r"<script\b", re.IGNORECASE)
_TEXT_READ: Final = 6_000  # code points of the visible text that patterns search
_SOURCE_READ: Final = 400_000  # code points or bytes of the source that patterns search

# Most words of a page that each rule takes for a wall: a longer page is content.
_FORM_WORDS: Final = 120
_CONSENT_WORDS: Final = 400
_CONSENT_SHARE: Final = 0.06  # least share of consent vocabulary among all words
_PAYWALL_WORDS: Final = 80
_SOFT_404_WORDS: Final = 120
_SHELL_WORDS: Final = 60
_LOADING_WORDS: Final = 12
_REDIRECT_WORDS: Final = 25


@dataclass(frozen=True, slots=True)
class Wall:
    """The finding that a page is a wall, not content.

    :param kind: ``bot``, ``consent``, ``login``, ``paywall``, ``soft404``, ``parked`` or ``shell``
        (an empty frame that scripts fill: a browser may be able to read it).
    :param reason: one line for users.
    """

    kind: Kind
    reason: str

    def __str__(self) -> str:
        return self.reason


class _PageFacts:
    """The properties of a page that the rules use; each is computed at first use.

    :ivar words: visible words, the title left out.
    """

    def __init__(self, page: Page, tree: Tree) -> None:
        self.page = page
        self.tree = tree
        self.headers = {name.lower(): value for name, value in page.headers.items()}
        self.title = " ".join(tree.title.split())
        self.words = tree.words[-1] - (tree.word_count(1) if len(tree) > 1 and tree.tag[1] == "title" else 0)

    @cached_property
    def prose(self) -> int:
        """Words of running text: outside links, buttons, menus and footers."""
        tree, count, node = self.tree, 0, 0
        while node < len(tree):
            if tree.tag[node] in _CHROME:
                node = tree.end[node]
                continue
            if tree.text[node]:
                count += tree.words[node + 1] - tree.words[node]
            node += 1
        return count

    @cached_property
    def fallback(self) -> int:
        """Words in ``noscript`` elements."""
        return sum(self.tree.word_count(node) for node, tag in enumerate(self.tree.tag) if tag == "noscript")

    @cached_property
    def text(self) -> str:
        """The beginning of the visible text, without the title."""
        start = self.tree.starts[self.tree.end[1]] if len(self.tree) > 1 and self.tree.tag[1] == "title" else 0
        return self.tree.canonical[start : start + _TEXT_READ].strip()

    @cached_property
    def source(self) -> str:
        """The beginning of the source. Latin-1 never fails, and the patterns for the source are ASCII."""
        content = self.page.content[:_SOURCE_READ]
        return content if isinstance(content, str) else content.decode("latin-1")

    @cached_property
    def controls(self) -> list[str]:
        """The texts of buttons and links."""
        tree = self.tree
        return [subtree_text(tree, node) for node, tag in enumerate(tree.tag) if tag in _CONTROLS]

    @cached_property
    def names(self) -> list[str]:
        """The title, its parts, and the first two headings."""
        tree = self.tree
        names = [self.title, *_TITLE_PARTS.split(self.title)]
        names += [subtree_text(tree, node) for node, tag in enumerate(tree.tag) if tag in _HEADINGS][:2]
        return [" ".join(name.split()) for name in names if name.strip()]

    @cached_property
    def redirected(self) -> bool:
        """Whether a redirect led to another host or path."""
        requested, final = urlsplit(self.page.url), urlsplit(self.page.final_url or self.page.url)
        return (requested.hostname, requested.path.rstrip("/")) != (final.hostname, final.path.rstrip("/"))


def detect(page: Page, tree: Tree) -> Wall | None:
    """Tell whether a page is a wall or a shell instead of content.

    :param page: the fetched page, with status, headers and source.
    :param tree: the cleaned tree of the same page.
    :returns: None for content, and in case of doubt.
    """
    if page.media_type.partition(";")[0].strip().lower() not in _HTML:
        return None
    facts = _PageFacts(page, tree)
    return next(_walls(facts), None)


def _walls(facts: _PageFacts) -> Iterator[Wall]:
    """Yield the findings for a page, the most certain first."""
    for marker in MARKERS:
        if _matches(marker, facts):
            yield Wall(marker.kind, f"{_REASONS[marker.kind]} ({marker.who})")
    if facts.prose > MOST_WORDS:
        return
    for rule in (_consent, _login, _paywall, _soft_404, _shell):
        wall = rule(facts)
        if wall is not None:
            yield wall


_REASONS: Final[dict[Kind, str]] = {
    "bot": "a check for bots instead of the page",
    "consent": "a request for consent instead of the page",
    "login": "a login instead of the page",
    "paywall": "a paywall instead of the page",
    "soft404": "there is no such page, though the server reports success",
    "parked": "a domain without a site",
    "shell": "an empty frame that a program fills",
}


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE | re.DOTALL)


def _matches(marker: Marker, facts: _PageFacts) -> bool:
    """Tell whether all conditions of a marker hold; the cheap conditions are tested first."""
    if marker.statuses and facts.page.status not in marker.statuses:
        return False
    name, value = marker.header
    if name and not _pattern(value).search(facts.headers.get(name, "")):
        return False
    if marker.title and not _pattern(marker.title).search(facts.title):
        return False
    if facts.words > 4 * marker.most or facts.prose > marker.most:
        return False
    if marker.text and not _pattern(marker.text).search(facts.text):
        return False
    return not marker.markup or bool(_pattern(marker.markup).search(facts.source))


def _consent(facts: _PageFacts) -> Wall | None:
    """Detect a separate consent page: its text is mostly about consent, and a button accepts or rejects it."""
    if facts.words > _CONSENT_WORDS or facts.words < 10:
        return None
    share = len(_markers.CONSENT_WORDS.findall(facts.text)) / facts.words
    if share < _CONSENT_SHARE or not any(_markers.CONSENT_CONTROL.match(label) for label in facts.controls):
        return None
    if any(_markers.CONSENT_SUBJECT.search(name) for name in facts.names):
        return None
    on_consent_url = facts.redirected and _markers.CONSENT_ADDRESS.search(facts.page.final_url)
    if not on_consent_url and not (share > 2 * _CONSENT_SHARE and _markers.CONSENT_SOURCE.search(facts.source)):
        return None
    return Wall("consent", f"{_REASONS['consent']} ({share:.0%} of its {facts.words} words are about consent)")


def _login(facts: _PageFacts) -> Wall | None:
    """Detect a login page: a password form with hardly any other text."""
    if facts.page.status == 401 and facts.words <= _FORM_WORDS:
        return Wall("login", f"{_REASONS['login']} (status 401)")
    if facts.prose > _FORM_WORDS or facts.words > 2 * _FORM_WORDS or not _markers.PASSWORD.search(facts.source):
        return None
    if facts.redirected and _markers.LOGIN_ADDRESS.search(facts.page.final_url):
        return Wall("login", f"{_REASONS['login']} (redirected to {urlsplit(facts.page.final_url).hostname})")
    if any(_markers.LOGIN_TITLE.match(name) for name in facts.names):
        return Wall("login", f"{_REASONS['login']} (its name, and a form with a password)")
    return None


def _paywall(facts: _PageFacts) -> Wall | None:
    """Detect a paywall with hardly any text before it; a page that shows the beginning of its article is content."""
    if facts.prose > _PAYWALL_WORDS or not _markers.PAYWALL_TEXT.search(facts.text):
        return None
    if not _markers.PAYWALL_SOURCE.search(facts.source):
        return None
    return Wall("paywall", f"{_REASONS['paywall']} ({facts.prose} words before it)")


def _soft_404(facts: _PageFacts) -> Wall | None:
    """Detect a page with a success status that tells the visitor that there is no such page."""
    if not 200 <= facts.page.status < 300 or facts.prose > _SOFT_404_WORDS:
        return None
    named = next((name for name in facts.names if _markers.SOFT_404_TITLE.match(name)), "")
    if not named or not _markers.SOFT_404_TEXT.search(f"{facts.title}. {facts.text}"):
        return None
    return Wall("soft404", f"{_REASONS['soft404']} (it calls itself {named[:60]!r})")


def _shell(facts: _PageFacts) -> Wall | None:
    """Detect a page without text until its scripts run, and a page that only redirects."""
    if facts.words > _SHELL_WORDS + _LOADING_WORDS:
        return None
    scripts = len(_SCRIPT.findall(facts.source))
    redirects = facts.words <= _REDIRECT_WORDS and _markers.REDIRECT_TEXT.search(facts.text)
    if redirects and _markers.REDIRECT.search(facts.source):
        return Wall("shell", f"{_REASONS['shell']} (it redirects by itself)")
    if not scripts or facts.prose - facts.fallback > _LOADING_WORDS:
        may_be_shell = scripts and not facts.fallback and facts.prose <= _SHELL_WORDS
        if may_be_shell and _markers.SHELL_TEXT.search(facts.text[:160]):
            return Wall("shell", f"{_REASONS['shell']} (it asks for JavaScript)")
        return None
    if _markers.SHELL_TEXT.search(facts.text) or _markers.SHELL_TEXT.search(facts.title):
        return Wall("shell", f"{_REASONS['shell']} (it asks for JavaScript)")
    if not facts.words or SHELL_ROOT.search(facts.source):
        return Wall("shell", f"{_REASONS['shell']} ({facts.words} words and {scripts} scripts)")
    return None
