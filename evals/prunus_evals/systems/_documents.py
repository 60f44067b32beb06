"""Shared by the systems: documents as pages, and converted to HTML, text and Markdown."""

from __future__ import annotations

import html
from collections.abc import Sequence

import prunus
from prunus_evals.records import Document, OutputFormat, Reply, Stage
from prunus_evals.tokens import Counter
from prunus_evals.visible import html_text


def page_of(document: Document) -> prunus.Page:
    """Return a document as a page of Prunus."""
    return prunus.Page(content=document.content, media_type=document.media_type, url=document.url)


def read(documents: Sequence[Document]) -> prunus.Documents | None:
    """Read and clean documents; empty ones are left out, None where nothing is left.

    :raises prunus.BadPage: a document that is not empty cannot be read.
    """
    pages = [page_of(document) for document in documents if document.content.strip()]
    return prunus.read(pages) if pages else None


def html_of(document: Document) -> str:
    """Return the HTML of a document; a text becomes one paragraph for each of its blocks of lines."""
    if document.media_type == "text/html":
        return document.content
    blocks = (block.strip() for block in document.content.split("\n\n"))
    title = f"<h1>{html.escape(document.title)}</h1>" if document.title else ""
    return title + "".join(f"<p>{html.escape(block)}</p>" for block in blocks if block)


def text_of(documents: Sequence[Document]) -> str:
    """Return the visible text of documents, one after another."""
    return "\n".join(plain(document) for document in documents)


def plain(document: Document) -> str:
    """Return the visible text of a document."""
    return html_text(document.content) if document.media_type == "text/html" else document.content


def soup_of(document: Document) -> str:
    """Return the text of a document as BeautifulSoup gives it, without scripts and styles."""
    if document.media_type != "text/html":
        return document.content
    from bs4 import BeautifulSoup  # here: only one baseline needs it

    soup = BeautifulSoup(document.content, "lxml")
    for hidden in soup(["script", "style", "noscript", "template"]):
        hidden.decompose()
    return str(soup.get_text("\n", strip=True))


def markdown_of(document: Document) -> str:
    """Return the Markdown of a document as markdownify writes it.

    Links and images are written as their text, as tools that feed models do: with addresses the same budget would hold
    a third of the words.
    """
    if document.media_type == "text/markdown":
        return document.content
    from markdownify import markdownify  # here: only the baselines over Markdown need it

    return str(markdownify(html_of(document), heading_style="ATX", strip=["a", "img", "script", "style"]))


class Head:
    """A text that is cut at the budget.

    :param stages: what it cost to make the text.
    """

    def __init__(self, text: str, format: OutputFormat, counter: Counter, stages: Sequence[Stage] = ()) -> None:
        self._text = text
        self._format: OutputFormat = format
        self._counter = counter
        self._stages = tuple(stages)

    def ask(self, question: str, budget: int) -> Reply:
        """Return the head of the text within the budget."""
        return Reply(self._counter.head(self._text, budget), self._format, stages=self._stages)
