"""Icons and ratings have the words that the page gives in their place."""

from __future__ import annotations

import pytest

import prunus

NAMED = {
    "an icon with a label": ("<i class=tick role=img aria-label='Included'></i>", "Included"),
    "a drawing with a title": ("<svg viewBox='0 0 9 9'><title>Included</title><path d='M1 1'/></svg>", "Included"),
    "a label before a title": ("<svg aria-label='Not included'><title>Cross</title></svg>", "Not included"),
    "an empty element with a title": ("<span class=tick title='Included'></span>", "Included"),
    "stars of several drawings": (
        "<div role=img aria-label='4 of 5 stars'><svg><title>Star</title></svg><svg><title>Star</title></svg></div>",
        "4 of 5 stars",
    ),
    "stars as letters": ("<span role=img aria-label='3.5 of 5'>★★★☆</span>", "3.5 of 5"),
    "a letter of a symbol font": ("<span title='Included'>\ue876</span>", "Included"),
    "a picture whose only name is its title": ("<img src=c.svg title='Included'>", "Included"),
    "emoji": ("<span role=img aria-label='rocket'>🚀</span>", "🚀"),
    "words of its own": ("<span title='Recommended price'>$99</span>", "$99"),
    "a sign of mathematics": ("<span title='times'>×</span>", "×"),
}


@pytest.mark.parametrize("case", NAMED)
def test_an_icon_has_its_words(case: str) -> None:
    icon, expected = NAMED[case]
    page = f"<table><tr><td>SSO<td>{icon}<td>yes</table>"
    assert prunus.clean(page, format="text") == f"SSO\t{expected}\tyes"
    cleaned = prunus.clean(page)
    assert prunus.clean(cleaned) == cleaned


def test_a_cell_with_a_title_alone_says_it() -> None:
    assert prunus.clean("<table><tr><td>SSO<td class=no title='Not included'></td></table>", format="text") == (
        "SSO\tNot included"
    )


def test_the_words_of_an_icon_join_none_beside_it() -> None:
    page = "<p>Rated<svg aria-label='4 of 5'></svg>by 12</p>"
    assert prunus.clean(page, format="text") == "Rated 4 of 5 by 12"


@pytest.mark.parametrize(
    "icon",
    [
        "<button><svg><title>Publish</title></svg></button>",
        "<a href=/x><svg><title>Our channel</title></svg></a>",
        "<i aria-hidden=true title='Pin'></i>",
        "<svg><title>chevron-down</title></svg>",
        "<svg><title>Menu</title></svg>",
        "<span title='Verified'></span> Verified buyer",
        "<span style='display:none' title='Pin'></span>",
        "<img src=c.svg alt='' title='Pin'>",
    ],
)
def test_signs_for_use_and_doubled_names_are_no_words(icon: str) -> None:
    text = prunus.clean(f"<p>Words {icon}</p>", format="text")
    assert text in ("Words", "Words Verified buyer")
