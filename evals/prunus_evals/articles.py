"""Task ``articles``: the share of a news article's words that cleaning keeps; people marked the articles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import prunus
from prunus_evals import stats
from prunus_evals.data import reference_folder, rows
from prunus_evals.errors import UnknownName
from prunus_evals.metrics import matching
from prunus_evals.records import Article, OutputFormat
from prunus_evals.reference import Reference
from prunus_evals.split import Half, digest, half
from prunus_evals.visible import html_text, visible_text

CLEANERS = ("prunus:html", "prunus:markdown", "prunus:text", "reference")
WORST = 5


@dataclass(frozen=True, slots=True)
class Kept:
    """The words of one article that one cleaner kept.

    :param survived: words that the cleaner kept, in order.
    :param could: words that a trusted parser sees; see :func:`.metrics.matching.body_survives`.
    """

    cleaner: str
    page: str
    survived: int
    could: int


def load(wanted: Half, limit: int | None = None) -> list[Article]:
    """Return the articles of a half, in the order of their key's digest."""
    found = [
        Article(page=row["id"], html=row["html"], body=row["article_body"])
        for row in rows("clean/articles")
        if half(row["id"]) == wanted
    ]
    return sorted(found, key=lambda article: digest(article.page))[:limit]


def cleaner(name: str) -> tuple[Callable[[str], str], OutputFormat]:
    """Return a cleaning function and the format of its output.

    :raises UnknownName: there is no such cleaner.
    """
    if name == "reference":
        reference = Reference(reference_folder())
        return lambda html: str(reference.call("clean", html)), "html"
    format: OutputFormat
    for format in ("html", "markdown", "text"):
        if name == f"prunus:{format}":
            return _prunus(format), format
    raise UnknownName(f"unknown cleaner {name}; the cleaners are: {', '.join(CLEANERS)}")


def _prunus(format: OutputFormat) -> Callable[[str], str]:
    def clean(html: str) -> str:
        cleaned: str = prunus.clean(html, format=format)
        return cleaned

    return clean


def run(articles: Sequence[Article], names: Sequence[str]) -> list[Kept]:
    """Clean every article with every cleaner, and count the words that survive in order."""
    kept: list[Kept] = []
    for name in names:
        clean, format = cleaner(name)
        for article in articles:
            output = visible_text(clean(article.html), format)
            visible = html_text(article.html)
            survived, could = matching.body_survives(article.body, visible, output)
            kept.append(Kept(name, article.page, survived, could))
    return kept


def summary(kept: Sequence[Kept], wanted: Half) -> dict[str, object]:
    """Return the share of words that survived, over all words and as a mean over pages.

    The worst pages are named on the dev half only: nobody should tune on the report half.
    """
    cleaners: dict[str, object] = {}
    for name in dict.fromkeys(item.cleaner for item in kept):
        own = [item for item in kept if item.cleaner == name]
        shares = {item.page: [item.survived / item.could] for item in own}
        worst = sorted(shares, key=lambda page: shares[page][0])
        cleaners[name] = {
            "words": sum(item.could for item in own),
            "survived": sum(item.survived for item in own) / sum(item.could for item in own),
            "page_mean": stats.mean(shares).numbers(None),
            "page_min": shares[worst[0]][0],
            "pages": len(own),
            "worst": [[page, shares[page][0]] for page in worst[:WORST] if wanted == "dev"],
        }
    return {"half": wanted, "task": "articles", "cleaners": cleaners}


def table(result: dict[str, object]) -> str:
    """Return a summary as plain text."""
    lines = [f"articles, {result['half']} half: share of the article's words that survive"]
    cleaners = result["cleaners"]
    if not isinstance(cleaners, dict):
        raise TypeError("the summary of articles has no table of cleaners")
    for name, found in cleaners.items():
        mean = stats.shown(found["page_mean"], digits=4)
        lines.append(
            f"{name:18} {found['survived']:.5f} of {found['words']} words;"
            f" page mean {mean}, min {found['page_min']:.4f}, {stats.counted(found['pages'], 'page')}"
        )
        lines += [f"    {share:.4f} {page}" for page, share in found["worst"] if share < 1]
    return "\n".join(lines)
