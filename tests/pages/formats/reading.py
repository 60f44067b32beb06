"""Helpers for tests of data formats: read a document through the cleaner, and read damaged documents."""

from __future__ import annotations

import random
import time
from typing import Any

import prunus
from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.clean.walk import clean_tree
from prunus.pages.tree import Tree


def tree_of(engine: Any, content: bytes | str, url: str = "x", **page: Any) -> Tree:
    """Return the cleaned tree of a document."""
    return clean_tree(engine.to_html(Page(content, url=url, **page)))


def cleaned(engine: Any, content: bytes | str, url: str = "x", **page: Any) -> str:
    """Return the cleaned HTML of a document."""
    return prunus.clean(engine.to_html(Page(content, url=url, **page)))


def survives_damage(engine: Any, content: bytes, rounds: int = 120, seconds: float = 5.0) -> int:
    """Read damaged copies of a document: each gives HTML or an error of one line, within ``seconds``.

    :returns: number of copies that gave HTML.
    """
    chance = random.Random(7)
    read = 0
    for number in range(rounds):
        broken = bytearray(content)
        if number % 4 == 0:
            del broken[chance.randrange(len(broken)) :]
        elif number % 4 == 1:
            start = chance.randrange(len(broken))
            del broken[start : start + chance.randrange(1, 60)]
        elif number % 4 == 2:
            start = chance.randrange(len(broken))
            broken[start:start] = broken[start : start + chance.randrange(1, 200)] * 3
        for _ in range(chance.choice((0, 1, 3, 20))):
            if broken:
                broken[chance.randrange(len(broken))] = chance.randrange(256)
        started = time.thread_time()
        try:
            html = engine.to_html(Page(bytes(broken), url="broken"))
            assert isinstance(html, str | bytes)
            if html:
                clean_tree(html)
            read += 1
        except BadPage as error:
            assert "\n" not in str(error), error  # noqa: PT017 - an error is a valid result of damage
        assert time.thread_time() - started < seconds
    return read
