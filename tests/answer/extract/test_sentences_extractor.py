"""The default extractor: which segments it prefers and leaves out, and when it chooses none."""

from __future__ import annotations

import asyncio

import pytest

import prunus
from prunus.answer.cite import cite
from prunus.answer.extract import _features, _weights
from prunus.core.ports import Segment
from prunus.core.registry import engine_class, make_engine
from prunus.core.types import Passage, Span

TABLE = """<h1>Levels</h1><table><tr><th>Month<th>North Quay<th>South Quay<th>Old Lock
<tr><td>October<td>0.36<td>0.41<td>1.20<tr><td>November<td><td>0.52<td>1.31</table>
<p>Boats are counted twice a day. The harbour master signs the list."""


def extracted(query: str, *texts: str, above: str = "") -> list[str]:
    tagged = [
        Segment(number, text, Span("d", 1000 * number, 1000 * number + len(text)), 0.5, above)
        for number, text in enumerate(texts)
    ]
    engine = make_engine("extractor", "sentences", embedder=make_engine("embedder", "static"))
    return [texts[chosen.tag] for chosen in asyncio.run(engine.extract(query, tagged)) or []]


@pytest.mark.parametrize(
    ("query", "fitting"),
    [
        ("How many boats lie in the harbour?", "In the harbour lie 31 boats."),
        ("When was the harbour built?", "The harbour was built in 1871."),
        ("Who built the harbour?", "The harbour was built by Ada Trelawney."),
    ],
)
def test_what_holds_the_kind_of_thing_that_is_asked_for_comes_first(query: str, fitting: str) -> None:
    others = [
        "In the harbour lie many boats.",
        "The harbour was built of stone.",
        "The harbour was built well.",
    ]
    assert extracted(query, *others, fitting)[0] == fitting


def test_nothing_is_said_twice() -> None:
    found = extracted("When does the ferry leave?", "The ferry leaves at noon.", "the ferry leaves at noon", "Ferry.")
    assert found[0].lower().startswith("the ferry leaves at noon")
    assert len(found) == 1


def test_a_list_is_not_quoted_beside_its_items() -> None:
    tagged = [
        Segment(1, "a cone\na key", Span("d", 0, 12), 1.0, "What comes in the box", "", "list"),
        Segment(2, "a cone", Span("d", 0, 6), 1.0, "What comes in the box"),
        Segment(3, "a key", Span("d", 7, 12), 1.0, "What comes in the box"),
    ]
    engine = make_engine("extractor", "sentences", embedder=make_engine("embedder", "static"))
    chosen = [one.tag for one in asyncio.run(engine.extract("What comes in the box?", tagged)) or []]
    assert chosen == [1] or (chosen and 1 not in chosen)


def test_a_quoted_row_is_cited_as_a_row_and_shown_under_its_columns() -> None:
    answer = prunus.ask("What was the level at South Quay in November?", TABLE)
    [citation] = [cited for cited in answer.citations if cited.quote.startswith("November")]
    assert citation.found
    assert citation.quote == "November\t\t0.52\t1.31"
    assert citation.xpath == "/html/body/table/tbody/tr[3]"
    assert "\u201cNovember | | 0.52 | 1.31\u201d (Month | North Quay | South Quay | Old Lock)" in answer.text


def test_the_xpath_of_a_quote_is_the_element_that_holds_all_of_it() -> None:
    tree = prunus.read("<p><b>The ferry</b> leaves at noon. It is <i>small</i>.<p>x").trees[0]
    assert cite(1, "The ferry leaves", tree).xpath == "/html/body/p[1]"
    assert cite(1, "small", tree).xpath == "/html/body/p[1]/i"


def test_a_header_row_alone_is_no_quote() -> None:
    for passage in prunus.extract("Which months and which quay?", TABLE):
        assert not passage.text.startswith("Month")


def test_quotes_write_lists_and_code_on_one_line() -> None:
    passages = [Passage("a cone\n\ta key ", (Span("d", 0, 9),), 1.0, "In the  box:")]
    found = asyncio.run(engine_class("generator", "quotes")().generate("What?", passages))
    assert found.endswith("\u201ca cone / a key\u201d (In the box:) [1]")


def test_a_question_about_something_else_finds_nothing() -> None:
    for question in ("Which enzyme drives photosynthesis?", "What is the capital of France?"):
        with pytest.raises(prunus.NothingFound):
            prunus.ask(question, TABLE)


PRICES = """<h1>Gauges</h1><table><tr><th>Gauge<th>Price<th>Weight
<tr><td>Mini<td>149<td>0.8<tr><td>Pell 2<td>289<td>2.1<tr><td>Harbour<td>412<td>3.4</table>
<p>All gauges are built by hand in Kestermouth. The workshop opened in 2009. Visitors are welcome on Thursdays.</p>"""


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("What is the price of the Pell 2?", "Pell 2\t289\t2.1"),
        ("Which gauge has the highest price?", "Harbour\t412\t3.4"),
        ("Which gauge has the lowest weight?", "Mini\t149\t0.8"),
        ("When did the workshop open?", "The workshop opened in 2009."),
    ],
)
def test_the_best_quote_is_the_first(question: str, quote: str) -> None:
    assert prunus.extract(question, PRICES)[0].text == quote


def test_one_page_gives_three_passages_at_most_unless_more_are_asked_for() -> None:
    page = "".join(
        f"<p>The ferry from pier {number} leaves at {number} o'clock for the island." for number in range(1, 9)
    )
    question = "When does the ferry leave for the island?"
    assert len(prunus.ask(question, page).citations) <= 3
    four = prunus.ask(question, page, options=prunus.Options(extractor="sentences:4"))
    assert len(four.citations) == 4
    one = prunus.ask(question, page, options=prunus.Options(extractor="sentences:1"))
    assert one.citations[0].quote == four.citations[0].quote


@pytest.mark.parametrize("spec", ["sentences:none", "sentences:0", "sentences:51", "sentences:-1", "sentences:\u00b2"])
def test_a_number_of_quotes_that_is_none_is_refused_in_one_line(spec: str) -> None:
    with pytest.raises(prunus.BadInput, match="sentences:3"):
        prunus.ask("How many?", PRICES, options=prunus.Options(extractor=spec))


def test_every_feature_has_a_weight() -> None:
    found = _weights.weights()
    assert len(found.text) == len(found.row) == len(_features.NAMES)
    assert len(found.sure) == len(_weights.SIGNS)
    assert len(found.sure_read) == len(_weights.SIGNS) + len(_weights.READ_SIGNS)


def test_weights_of_other_features_are_refused() -> None:
    with pytest.raises(ValueError, match="prunus train quotes"):
        _weights.weights_of({"segment": {"bm25": [1.0, 1.0]}, "confidence": {}})


@pytest.mark.parametrize(
    ("page", "question", "marked"),
    [
        ("<p>by A. N. Author</p><p>We recommended a grant.", "Who wrote this post?", "by A. N. Author"),
        (
            "<h1>Grants</h1><p>Ann Lee | 3 May 2024</p><p>We gave a grant in 2019.",
            "When was this article published?",
            "Ann Lee | 3 May 2024",
        ),
        ("<h1>The canteen opens at 11:30.</h1>", "When does the canteen open?", "The canteen opens at 11:30."),
        ("<p>Combined Fuel Economy</p><p>20 MPG</p>", "What is the combined fuel economy?", "20 MPG"),
    ],
)
def test_headings_bylines_and_values_answer(page: str, question: str, marked: str) -> None:
    [citation] = prunus.ask(question, page).citations
    [mark] = citation.marks or [citation.span]
    start = citation.span.start
    assert citation.quote[mark.start - start : mark.end - start] == marked


def test_who_wrote_another_work_is_not_told_by_the_byline() -> None:
    page = "<h1>On plays</h1><p>By Ann Lee</p><p>Shakespeare wrote Hamlet about 1600."
    assert "Shakespeare wrote Hamlet" in prunus.extract("Who wrote Hamlet?", page)[0].text
