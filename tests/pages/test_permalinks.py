"""The sign of a heading's address is no part of the heading."""

from __future__ import annotations

import pytest

import prunus


@pytest.mark.parametrize(
    ("page", "markdown"),
    [
        ("<h2>Tides<a class=headerlink href='#t'>¶</a></h2>", "## Tides"),
        ("<h2>Tides <span><a href='/page#t'><i>🔗</i></a></span>\n</h2>", "## Tides"),
        ("<h2><a class=anchor href='#t'>§</a>Tides</h2>", "## Tides"),
        ("<dl><dt><code>f(x)</code><a href='#f'>¶</a><dd>Level</dl>", "`f(x)`\n\n: Level"),
        ("<p>Level<h2><a href='#t'>#</a></h2>", "Level"),
        ("<h2><a href='#5'>§</a> 5 Tides</h2>", "## [§](#5) 5 Tides"),
        ("<h2>Tides in <a href='/sharp'>#</a></h2>", "## Tides in [#](/sharp)"),
        ("<h2>Tides in <a href='#c'>C#</a></h2>", "## Tides in [C#](#c)"),
        ("<p>See <a href='#t'>#</a></p>", "See [#](#t)"),
        ("<h2>Tides ¶</h2>", "## Tides ¶"),
    ],
)
def test_the_sign_of_an_address_is_left_out(page: str, markdown: str) -> None:
    assert prunus.clean(page, "markdown") == markdown
    assert ("¶" in prunus.clean(page, "text")) == ("¶" in markdown) == ("¶" in prunus.clean(page))
