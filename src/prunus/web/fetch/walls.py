"""Pages that are no content: bot checks, consent and login walls, paywalls, soft 404s, parked domains, empty shells.

Precision comes first: a wall that is missed is one poor page among others, a page that is taken for
a wall is lost. So every rule asks for its marks *and* for a page that says hardly anything else; an
article about CAPTCHAs, cookies or the status 404 has too much to say. The marks are data, in
:mod:`._markers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final
from urllib.parse import urlsplit

from ...core.types import Page
from ...pages.tree import Tree, subtree_text
from . import _markers
from ._markers import MARKERS, Kind, Marker

MOST_WORDS: Final = 700
"""Words of running text above which only a header can make a page a wall."""

_HTML: Final = ("", "text/html", "application/xhtml+xml", "text/plain")
_CHROME: Final = frozenset({"nav", "footer", "aside", "button", "select", "a", "title"})
_CONTROLS: Final = frozenset({"button", "a", "input"})
_HEADINGS: Final = frozenset({"h1", "h2"})
_TITLE_PARTS: Final = re.compile(r"\s+[|–—·•»:-]\s+|\s*[|»]\s*|:\s+")
_SCRIPT: Final = re.compile(r"<script\b", re.IGNORECASE)
_TEXT_READ: Final = 6_000
_SOURCE_READ: Final = 400_000

_FORM_WORDS: Final = 120
_CONSENT_WORDS: Final = 400
_CONSENT_SHARE: Final = 0.06
_PAYWALL_WORDS: Final = 80
_SOFT_404_WORDS: Final = 120
_SHELL_WORDS: Final = 60
_LOADING_WORDS: Final = 12
_REDIRECT_WORDS: Final = 25


@dataclass(frozen=True, slots=True)
class Wall:
    """Why a page is no content.

    :param kind: ``bot``, ``consent``, ``login``, ``paywall``, ``soft404``, ``parked`` or ``shell``
        (an empty frame for a program to fill: a browser may read it).
    :param reason: for users, one line.
    """

    kind: Kind
    reason: str

    def __str__(self) -> str:
        return self.reason


class _Seen:
    """What the rules look at, each computed when it is first asked for."""

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
        """Words that stand there for those without scripts."""
        return sum(self.tree.word_count(node) for node, tag in enumerate(self.tree.tag) if tag == "noscript")

    @cached_property
    def text(self) -> str:
        """The head of the visible text, the title left out."""
        start = self.tree.starts[self.tree.end[1]] if len(self.tree) > 1 and self.tree.tag[1] == "title" else 0
        return self.tree.canonical[start : start + _TEXT_READ].strip()

    @cached_property
    def source(self) -> str:
        """The head of the source; letters beyond ASCII are of no interest."""
        content = self.page.content[:_SOURCE_READ]
        return content if isinstance(content, str) else content.decode("latin-1")

    @cached_property
    def controls(self) -> list[str]:
        """What the buttons and links say."""
        tree = self.tree
        return [subtree_text(tree, node) for node, tag in enumerate(tree.tag) if tag in _CONTROLS]

    @cached_property
    def names(self) -> list[str]:
        """The title, its parts, and the first headings: what the page calls itself."""
        tree = self.tree
        found = [self.title, *_TITLE_PARTS.split(self.title)]
        found += [subtree_text(tree, node) for node, tag in enumerate(tree.tag) if tag in _HEADINGS][:2]
        return [" ".join(name.split()) for name in found if name.strip()]

    @cached_property
    def redirected(self) -> bool:
        """Whether another page was asked for than the one that came."""
        asked, came = urlsplit(self.page.url), urlsplit(self.page.final_url or self.page.url)
        return (asked.hostname, asked.path.rstrip("/")) != (came.hostname, came.path.rstrip("/"))


def detect(page: Page, tree: Tree) -> Wall | None:
    """Tell whether a page is a wall or a shell rather than content.

    :param page: as it came: status, headers and source are looked at.
    :param tree: the same page, cleaned.
    :returns: None for a page that is content, or may be.
    """
    if page.media_type.partition(";")[0].strip().lower() not in _HTML:
        return None
    seen = _Seen(page, tree)
    return next(_walls(seen), None)


def _walls(seen: _Seen) -> Iterator[Wall]:
    """Yield what a page is found to be, the surest first."""
    for marker in MARKERS:
        if _fits(marker, seen):
            yield Wall(marker.kind, f"{_NAMES[marker.kind]} ({marker.who})")
    if seen.prose > MOST_WORDS:
        return
    for rule in (_consent, _login, _paywall, _soft_404, _shell):
        wall = rule(seen)
        if wall is not None:
            yield wall


_NAMES: Final[dict[Kind, str]] = {
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


def _fits(marker: Marker, seen: _Seen) -> bool:
    """Tell whether all conditions of a marker hold; the cheap ones are asked first."""
    if marker.statuses and seen.page.status not in marker.statuses:
        return False
    name, value = marker.header
    if name and not _pattern(value).search(seen.headers.get(name, "")):
        return False
    if marker.title and not _pattern(marker.title).search(seen.title):
        return False
    if seen.words > 4 * marker.most or seen.prose > marker.most:
        return False
    if marker.text and not _pattern(marker.text).search(seen.text):
        return False
    return not marker.markup or bool(_pattern(marker.markup).search(seen.source))


def _consent(seen: _Seen) -> Wall | None:
    """Consent on a page of its own: little else is spoken of, and a control lets one pass."""
    if seen.words > _CONSENT_WORDS or seen.words < 10:
        return None
    share = len(_markers.CONSENT_WORDS.findall(seen.text)) / seen.words
    if share < _CONSENT_SHARE or not any(_markers.CONSENT_CONTROL.match(said) for said in seen.controls):
        return None
    if any(_markers.CONSENT_SUBJECT.search(name) for name in seen.names):
        return None
    away = seen.redirected and _markers.CONSENT_ADDRESS.search(seen.page.final_url)
    if not away and not (share > 2 * _CONSENT_SHARE and _markers.CONSENT_SOURCE.search(seen.source)):
        return None
    return Wall("consent", f"{_NAMES['consent']} ({share:.0%} of its {seen.words} words are about consent)")


def _login(seen: _Seen) -> Wall | None:
    """A form that asks for a password, on a page that is for nothing else."""
    if seen.page.status == 401 and seen.words <= _FORM_WORDS:
        return Wall("login", f"{_NAMES['login']} (status 401)")
    if seen.prose > _FORM_WORDS or seen.words > 2 * _FORM_WORDS or not _markers.PASSWORD.search(seen.source):
        return None
    if seen.redirected and _markers.LOGIN_ADDRESS.search(seen.page.final_url):
        return Wall("login", f"{_NAMES['login']} (sent on to {urlsplit(seen.page.final_url).hostname})")
    if any(_markers.LOGIN_TITLE.match(name) for name in seen.names):
        return Wall("login", f"{_NAMES['login']} (its name, and a form with a password)")
    return None


def _paywall(seen: _Seen) -> Wall | None:
    """A paywall and hardly a word before it; a page that shows its beginning is content."""
    if seen.prose > _PAYWALL_WORDS or not _markers.PAYWALL_TEXT.search(seen.text):
        return None
    if not _markers.PAYWALL_SOURCE.search(seen.source):
        return None
    return Wall("paywall", f"{_NAMES['paywall']} ({seen.prose} words before it)")


def _soft_404(seen: _Seen) -> Wall | None:
    """Success that says of itself that there is nothing."""
    if not 200 <= seen.page.status < 300 or seen.prose > _SOFT_404_WORDS:
        return None
    named = next((name for name in seen.names if _markers.SOFT_404_TITLE.match(name)), "")
    if not named or not _markers.SOFT_404_TEXT.search(f"{seen.title}. {seen.text}"):
        return None
    return Wall("soft404", f"{_NAMES['soft404']} (it calls itself {named[:60]!r})")


def _shell(seen: _Seen) -> Wall | None:
    """Scripts, and no text until they have run; or a page that only sends on."""
    if seen.words > _SHELL_WORDS + _LOADING_WORDS:
        return None
    scripts = len(_SCRIPT.findall(seen.source))
    sends_on = seen.words <= _REDIRECT_WORDS and _markers.REDIRECT_TEXT.search(seen.text)
    if sends_on and _markers.REDIRECT.search(seen.source):
        return Wall("shell", f"{_NAMES['shell']} (it sends on by itself)")
    if not scripts or seen.prose - seen.fallback > _LOADING_WORDS:
        asks = (
            scripts and not seen.fallback and seen.prose <= _SHELL_WORDS and _markers.SHELL_TEXT.search(seen.text[:160])
        )
        return Wall("shell", f"{_NAMES['shell']} (it asks for JavaScript)") if asks else None
    if _markers.SHELL_TEXT.search(seen.text) or _markers.SHELL_TEXT.search(seen.title):
        return Wall("shell", f"{_NAMES['shell']} (it asks for JavaScript)")
    if not seen.words or _markers.SHELL_ROOT.search(seen.source):
        return Wall("shell", f"{_NAMES['shell']} ({seen.words} words and {scripts} scripts)")
    return None
