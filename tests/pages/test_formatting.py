"""Unclosed formatting: parsers reopen it in every block, and small pages become huge DOMs."""

from __future__ import annotations

import re

import pytest
import turbohtml
from hypothesis import example, given
from hypothesis import strategies as st

import prunus
from prunus.pages.clean import parse as formatting
from prunus.pages.clean.parse import multiplies, renamed
from prunus.pages.clean.walk import clean_tree
from prunus.pages.xpath import xpath_of

BOMBS = {
    "in paragraphs": "<p>" + "".join(f"<b id=b{i}>" for i in range(400)) + "one" + "<p>two" * 6000,
    "in each block": "".join(f"<div><i id=i{i}>one</div>" for i in range(6000)),
    "in capitals": "".join(f"<DIV><FONT ID=i{i}>one</DIV>" for i in range(6000)),
    "in quotes": "".join(f"<div><i id='>{i}'>one</div>" for i in range(6000)),
    "closed in comments": "".join(f"<div><i id=i{i}>one<!--</i>--></div>" for i in range(6000)),
    "closed out of reach": "".join(f"<div><i id=i{i}>one<object></i></object></div>" for i in range(8000)),
    "all alike": "<p>" + "".join(f"<{name}>" * 3 for name in formatting.NAMES) + "one" + "<p>two" * 60_000,
}


def is_rewritten(page: str) -> bool:
    return multiplies(page, page.count("<"))


def elements(page: str | bytes) -> int:
    return sum(1 for _ in turbohtml.parse(page, positions=False).descendants)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_page_that_would_multiply_is_recognised(name: str) -> None:
    page = BOMBS[name]
    assert elements(page) > formatting.MOST_COPIES
    for markup in (page, page + "\u6c34", page + "\ud800"):
        assert is_rewritten(markup)
    assert multiplies(page.encode(), page.count("<"))


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("encoding", ["", "utf-8", "utf-16"])
def test_cleaning_a_bomb_adds_no_element(name: str, encoding: str) -> None:
    page = BOMBS[name]
    tree = clean_tree(page.encode(encoding) if encoding else page)
    assert len(tree) < 4 * page.count("<"), "no element is repeated"
    assert set(tree.tag) <= {"", "html", "body", "p", "div", "object", *formatting.NAMES}, (
        "elements have their own names again"
    )
    assert tree.canonical.replace("~~", "").split() == page_words(page)


def page_words(page: str) -> list[str]:
    return [word for word in page.replace("<", " <").replace(">", "> ").split() if word in ("one", "two")]


def test_elements_of_a_bomb_are_named_as_in_the_page() -> None:
    tree = clean_tree("<p><b>bold</b> <i>slanted</i>" + BOMBS["in each block"])
    assert tree.tag[3:7] == ["b", "", "", "i"]
    assert xpath_of(tree, 3) == "/html/body/p/b"


def test_hidden_words_of_a_bomb_stay_hidden() -> None:
    page = BOMBS["in each block"] + "<b style='display:none'>unseen</b><b hidden>unseen</b> seen"
    words = clean_tree(page).canonical.split()
    assert "seen" in words
    assert "unseen" not in words


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_the_source_of_a_bomb_is_marked(name: str) -> None:
    page = "<h1>Pier</h1>" + BOMBS[name]
    context = prunus.prune(page, "pier", 64)
    marked = context.mark()
    assert 'data-prunus="kept"' in marked
    assert re.sub(r' data-prunus="[a-z-]+"', "", marked) == page
    assert clean_tree(marked).canonical == clean_tree(page).canonical


@pytest.mark.parametrize(
    "item",
    [
        "<p><b>bold</b> and <code class=k>code</code> and <i>slanted</i>",
        "<li><em><strong><u>one</u> two</strong> three</em>",
        "<p><b>never closed, as in thousands of old pages",
        "<p>one<br><img alt='a > {0}'>",
    ],
)
def test_a_long_page_of_closed_formatting_is_not_rewritten(item: str) -> None:
    assert not is_rewritten("".join(item.format(number) for number in range(10_000)))


@pytest.mark.parametrize(
    "item",
    [
        "<p><i lang=l{0}><a href=u{0}>one</a></i> <b id=b{0}>two</b> <code class=k{0}>three</code>",
        "<table><tr><td><font color=c{0} face='{0} f'>one</font><td><b><span id={0}>two</span></b></table>",
        "<ul><li><em id={0}><strong id={0}><u id={0}>one</u> two</strong> three</em></ul>",
    ],
)
def test_rewriting_a_page_of_closed_formatting_changes_nothing(monkeypatch: pytest.MonkeyPatch, item: str) -> None:
    page = "".join(item.format(number) for number in range(600))
    monkeypatch.setattr(formatting, "MOST_COPIES", 10**9)
    before = clean_tree(page)
    monkeypatch.setattr(formatting, "MOST_COPIES", 1000)
    assert is_rewritten(page)
    after = clean_tree(page)
    assert (after.tag, after.text, after.attrs) == (before.tag, before.text, before.attrs)
    assert [xpath_of(after, node) for node in range(99)] == [xpath_of(before, node) for node in range(99)]


PIECES = st.sampled_from(
    """<b> <b\ta=1> <I> <i\ta=1> <i\ta=2> <i\ta='>'> <font\ta="<"> <code> </b> </i> </I> </font> </code> <p> </p> <div>
    </div> <a\th> <a\tg> </a> <nobr> </nobr> <table> </table> <tr> <td> </td> <object> </object> <svg> </svg> <desc>
    <style> </style> <!-- --> <select> <option> </select> <span> </span> <br> <h1> </h1> <template> </template> <math>
    <mi> </math> <title> </title> <textarea> </textarea> word""".split()
).map(lambda piece: piece.replace("\t", " "))


@given(st.lists(PIECES, max_size=12), st.lists(PIECES, min_size=1, max_size=6))
@example(["<i a=1>"], ["<p>", "word"])
@example(["<svg>", "<style>", "<i a=1>", "<i a=2>"], ["<p>", "word"])
@example(["<i a=1>", "<!--", "</i>", "-->"], ["<p>", "word"])
def test_a_page_that_is_not_rewritten_does_not_multiply(start: list[str], repeated: list[str]) -> None:
    page = "".join(start) + "".join(repeated) * 40
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formatting, "MOST_COPIES", 60)
        rewritten = is_rewritten(page)
        tags = page.count("<")
    if not rewritten:
        # the parser adds html, head, body, tbody and tr; a text may follow each tag
        assert elements(page) <= elements(renamed(page)[0]) + 60 + 2 * tags + 40
