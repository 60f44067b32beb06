"""LLM (the command ``llm``): ``llm -f prunus:PAGE`` adds a cleaned page to a prompt.

PAGE is an address, a file or a folder. Words after it are a question: then the fragment is the evidence for it, within
the budget of the settings.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import llm

from ..api.pages import prune
from ..pages.sources import Source, is_address
from .evidence import named, whole_pages


@llm.hookimpl
def register_fragment_loaders(register: Callable[[str, Callable[[str], list[llm.Fragment]]], None]) -> None:
    """Register the prefix ``prunus``."""
    register("prunus", load_fragments)


def load_fragments(argument: str) -> list[llm.Fragment]:
    """Return a page as Markdown, or its evidence for a question: ``prunus:PAGE`` or ``prunus:PAGE QUESTION``."""
    page, question = _split(argument.strip())
    if not question:
        return [llm.Fragment(text.text, text.metadata["url"] or page) for text in whole_pages(page)]
    sources: list[Source] = named(page)
    return [llm.Fragment(prune(sources, question, format="markdown").output, page)]


def _split(argument: str) -> tuple[str, str]:
    """Return page and question; the name of a file may hold spaces."""
    page, _, question = argument.partition(" ")
    while question and not is_address(page) and not Path(page).exists():
        more, _, question = question.partition(" ")
        page = f"{page} {more}"
    return page, question.strip()
