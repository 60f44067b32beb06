"""Shared by the systems: documents as pages, as HTML and as text."""

from __future__ import annotations

import html
from collections.abc import Sequence

import prunus
from prunus_evals.records import Document
from prunus_evals.visible import html_text


def page_of(document: Document) -> prunus.Page:
    """Return a document as a page of Prunus."""
    return prunus.Page(content=document.content, media_type=document.media_type, url=document.url)


def html_of(document: Document) -> str:
    """Return the HTML of a document; a text becomes one paragraph for each of its blocks of lines."""
    if document.media_type == "text/html":
        return document.content
    blocks = (block.strip() for block in document.content.split("\n\n"))
    title = f"<h1>{html.escape(document.title)}</h1>" if document.title else ""
    return title + "".join(f"<p>{html.escape(block)}</p>" for block in blocks if block)


def text_of(documents: Sequence[Document]) -> str:
    """Return the visible text of documents, one after another."""
    return "\n".join(
        html_text(document.content) if document.media_type == "text/html" else document.content
        for document in documents
    )
