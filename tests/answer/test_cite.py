"""Promise 7: a citation is found in the page by code, or marked as not found; the page's own slice is stored."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracle
from tests.strategies import Made, worded_documents

import prunus
from prunus.answer.cite import cite, is_found, locate
from prunus.cli.commands.ask import sources
from prunus.core.text.words import normalise
from prunus.core.types import Span
from prunus.pages.clean.walk import clean_tree

PAGE = """<title>Works</title><h1>Harbour</h1><p>The “old” bridge, finished in 1932–1933, isn’t open.</p>
<p>It cost <b>3.50</b> coins.<br>Nobody   paid.</p>
<p>About 10<sup>9</sup> cells<sup><a href=#n>2</a></sup> of CO<sub>2</sub> in it.
<table><tr><td>soft\u00adhyphen<td>cafe\u0301 zero\u200bwidth</table>"""
TREE = clean_tree(PAGE)


@given(worded_documents, st.data())
def test_any_slice_of_a_page_is_found_where_it_stands(made: Made, data: st.DataObject) -> None:
    tree = clean_tree(made.html)
    start = data.draw(st.integers(0, len(tree.canonical) - 1))
    end = data.draw(st.integers(start + 1, len(tree.canonical)))
    quote = tree.canonical[start:end]
    if normalise(quote):
        found = cite(1, quote, tree, Span(tree.document, start, end))
        assert found.found
        assert (found.quote, found.span.start, found.span.end) == (quote, start, end)
        around = tree.canonical[max(0, start - 1) : start + 1], tree.canonical[end - 1 : end + 1]
        if not any(pair[0].isdigit() and pair[-1].isdigit() and len(pair) == 2 for pair in around):  # a whole number
            assert cite(1, quote, tree).found


@pytest.mark.parametrize(
    ("quote", "slice_"),
    [
        ('The "old" bridge', "The “old” bridge"),
        ("finished in 1932-1933", "finished in 1932–1933"),
        ("isn't open", "isn’t open"),
        ("It cost 3.50 coins. Nobody paid.", "It cost 3.50 coins.\nNobody paid."),
        ("  3.50\n coins ", "3.50 coins"),
        ("Harbour The “old”", "Harbour\nThe “old”"),
        ("harbour", "Harbour"),
        ("the “old” bridge", "The “old” bridge"),
        ("**finished** in `1932–1933`", "finished in 1932–1933"),
        ("...finished in 1932–1933…", "finished in 1932–1933"),
        ('"isn’t open"', "isn’t open"),
        ("The “old” bridge, [...] isn't open", "The “old” bridge, finished in 1932–1933, isn’t open"),
        ("about 10^9 cells of CO2 in it", "About 10⁹ cells of CO₂ in it"),
        ("10<sup>9</sup> cells [1] of CO₂", "10⁹ cells of CO₂"),
    ],
)
def test_a_quote_is_found_up_to_typography_and_stored_as_the_page_has_it(quote: str, slice_: str) -> None:
    found = cite(3, quote, TREE)
    assert found.found
    assert found.quote == slice_
    assert TREE.canonical[found.span.start : found.span.end] == slice_
    assert (found.number, found.title) == (3, "Works")


@pytest.mark.parametrize(
    ("quote", "slice_"),
    [("softhyphen", "soft\u00adhyphen"), ("caf\u00e9", "cafe\u0301"), ("zerowidth", "zero\u200bwidth")],
)
def test_letters_that_do_not_show_do_not_hide_a_quote(quote: str, slice_: str) -> None:
    found = cite(1, quote, TREE)
    assert found.found
    assert found.quote == slice_


@pytest.mark.parametrize(
    "quote",
    [
        "The new bridge",
        "3.51 coins",
        "",
        "   ",
        "bridge finished",
        "coins (.*)",
        "HARBOUR",
        "\u200b",
        "32–1933",
        "193",
        "3.5",
        "0 coins",
        "109 cells",
        "10 cells",
        "10",
        "Works … open",
    ],
)
def test_what_the_page_does_not_say_is_marked_as_not_found(quote: str) -> None:
    found = cite(1, quote, TREE)
    assert not found.found
    assert found.quote == quote
    assert found.xpath == ""
    assert found.support == 0


def test_a_wrong_span_is_not_believed() -> None:
    assert not is_found("3.50 coins", TREE, Span(TREE.document, 0, 10))
    found = cite(1, "3.50 coins", TREE, Span(TREE.document, 0, 10))
    assert TREE.canonical[found.span.start : found.span.end] == "3.50 coins"


def test_a_wild_span_is_not_believed() -> None:
    for span in (Span("d", -5, 3), Span("d", 10**9, 10**9 + 5), Span("d", 9, 3)):
        assert not is_found("anything", TREE, span)


def test_the_xpath_of_a_citation_holds_its_words() -> None:
    found = cite(1, "Nobody paid.", TREE)
    (element,) = oracle.parse(PAGE).xpath(found.xpath)
    assert "Nobody" in element.text


@given(worded_documents, st.data())
def test_the_xpath_of_any_word_holds_it(made: Made, data: st.DataObject) -> None:
    tree = clean_tree(made.html)
    numbered = [word for word in tree.canonical.split() if word.isalnum() and word.isascii()]
    if numbered:
        word = data.draw(st.sampled_from(numbered))
        found = cite(1, word, tree)
        (element,) = oracle.parse(made.html).xpath(found.xpath)
        said = element.text + str(element.attrs.get("alt") or "") + str(element.attrs.get("value") or "")
        assert word in said


@pytest.mark.slow
def test_locating_takes_time_linear_in_page_and_quote() -> None:
    tree = clean_tree("<p>" + "a b " * 100_000)
    assert locate("a " * 1500 + "c", tree) is None
    assert locate("a b " * 1500 + "c", tree) is None
    assert locate("x" * 100_000, tree) is None


# --- answers -------------------------------------------------------------------------------------


def test_every_quote_of_an_answer_stands_in_the_page_that_it_cites(site: dict[str, str]) -> None:
    pages = [prunus.Page(html, url=f"https://example.org/{name}") for name, html in site.items()]
    documents = prunus.read(pages)
    trees = {tree.document: tree for tree in documents.trees}
    answer = prunus.ask("How much did the Linden Trust pay towards reading the rolls?", documents)
    assert answer.citations
    for number, citation in enumerate(answer.citations, 1):
        tree = trees[citation.document]
        assert citation.number == number
        assert citation.found
        assert citation.quote == tree.canonical[citation.span.start : citation.span.end]
        assert (citation.url, citation.snapshot) == (tree.url, tree.snapshot)
        html = site[citation.url.rsplit("/", 1)[1]]
        (element,) = oracle.parse(html).xpath(citation.xpath)
        assert citation.quote.split()[0] in element.text
    assert not answer.unsupported


def test_an_answer_that_no_page_holds_is_not_invented() -> None:
    with pytest.raises(prunus.NothingFound):
        prunus.ask("Which enzyme drives photosynthesis?", "<p>Charts are sold at the harbour office.")


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.html", "<title>Piers | Moor</title><meta property=og:site_name content=Moor><h1>Old piers</h1>", "Piers"),
        ("b.html", "<h1>North</h1><h1>South</h1>", "North"),
        ("c.html", "<h2>Piers</h2>", "Piers"),
        ("d.html", "<h2>Prices</h2><p>x<h2>Hours</h2>", "d.html"),
        ("s.html", "<section><h2><data value=slide-1>Piers</data></h2></section><h2>Prices</h2>", "Piers"),
        ("e.md", "# Piers\n\n", "Piers"),
        ("f.txt", "", "f.txt"),
    ],
)
def test_metadata_citations_and_indexes_agree_on_the_title(tmp_path: Path, name: str, text: str, title: str) -> None:
    file = tmp_path / name
    file.write_text(text + "The pier opened in 1911.")
    (citation, *_) = prunus.ask("When did the pier open?", file).citations
    index = prunus.Index.open(tmp_path / "index")
    index.add(file)
    (indexed, *_) = prunus.ask("When did the pier open?", index=index).citations
    assert (prunus.metadata(file).title, citation.title, indexed.title) == (title, title, title)


def test_a_citation_says_where_it_stands_in_a_document_and_so_does_the_terminal() -> None:
    pages = (
        "<p><data value=page-1>The pier is long.</data><p><data value=page-2>Dates</data><p>The pier opened in 1911."
    )
    answer = prunus.ask("When did the pier open?", prunus.Page(pages, url="pier.pdf"))
    assert answer.citations[0].place == "page 2"
    assert "pier.pdf  page 2  /html/body/p[3]" in sources(answer)
    assert prunus.ask("When did the pier open?", "<p>The pier opened in 1911.").citations[0].place == ""


def test_hidden_text_is_never_quoted(site: dict[str, str]) -> None:
    page = "<p>The ferry leaves at noon.<p hidden>The ferry leaves at midnight."
    answer = prunus.ask("When does the ferry leave?", page)
    assert "noon" in answer.text
    assert "midnight" not in answer.text + str(answer.citations)
