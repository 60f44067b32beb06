"""What the tests of formats of data share: a document read as the pipeline reads it, and documents that were damaged."""

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
    """Read a document to its cleaned tree."""
    return clean_tree(engine.to_html(Page(content, url=url, **page)))


def cleaned(engine: Any, content: bytes | str, url: str = "x", **page: Any) -> str:
    """Read a document to its cleaned HTML."""
    return prunus.clean(engine.to_html(Page(content, url=url, **page)))


def survives_damage(engine: Any, content: bytes, rounds: int = 120, seconds: float = 5.0) -> int:
    """Flip, cut out, double and cut off bytes; each time HTML or one clear line comes out, soon.

    :returns: how often it was HTML.
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
        started = time.perf_counter()
        try:
            found = engine.to_html(Page(bytes(broken), url="broken"))
            assert isinstance(found, str | bytes)
            if found:
                clean_tree(found)
            read += 1
        except BadPage as error:
            assert "\n" not in str(error), error  # noqa: PT017 - most damage ends here, and may
        assert time.perf_counter() - started < seconds
    return read
