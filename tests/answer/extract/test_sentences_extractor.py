"""The default extractor: which segments it prefers and leaves out, and when it chooses none."""

from __future__ import annotations

import asyncio

import pytest

import prunus
from prunus.answer.cite import cite
from prunus.answer.extract import _bearing, _features, _weights
from prunus.answer.extract._asks import Asked
from prunus.answer.extract._tables import value_in
from prunus.answer.extract.sentences import cosines
from prunus.core.ports import Tagged
from prunus.core.registry import engine_class, make_engine
from prunus.core.types import Passage, Span

TABLE = """<h1>Levels</h1><table><tr><th>Month<th>North Quay<th>South Quay<th>Old Lock
<tr><td>October<td>0.36<td>0.41<td>1.20<tr><td>November<td><td>0.52<td>1.31</table>
<p>Boats are counted twice a day. The harbour master signs the list."""


def extracted(query: str, *texts: str, above: str = "") -> list[str]:
    tagged = [
        Tagged(number, text, Span("d", 1000 * number, 1000 * number + len(text)), 0.5, above)
        for number, text in enumerate(texts)
    ]
    engine = make_engine("extractor", "sentences", embedder=make_engine("embedder", "static"))
    return [texts[tag] for tag in asyncio.run(engine.extract(query, tagged)) or []]


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
        Tagged(1, "a cone\na key", Span("d", 0, 12), 1.0, "What comes in the box", "", "list"),
        Tagged(2, "a cone", Span("d", 0, 6), 1.0, "What comes in the box"),
        Tagged(3, "a key", Span("d", 7, 12), 1.0, "What comes in the box"),
    ]
    engine = make_engine("extractor", "sentences", embedder=make_engine("embedder", "static"))
    chosen = asyncio.run(engine.extract("What comes in the box?", tagged))
    assert chosen == [1] or (chosen and 1 not in chosen)


def test_a_quoted_row_is_cited_as_a_row_and_shown_under_its_columns() -> None:
    answer = prunus.ask("What was the level at South Quay in November?", TABLE)
    [citation] = [cited for cited in answer.citations if cited.quote.startswith("November")]
    assert citation.found
    assert citation.quote == "November\t0.52\t1.31"
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


def test_one_page_gives_two_quotes_at_most_unless_more_are_asked_for() -> None:
    page = "".join(
        f"<p>The ferry from pier {number} leaves at {number} o'clock for the island." for number in range(1, 9)
    )
    question = "When does the ferry leave for the island?"
    assert len(prunus.ask(question, page).citations) <= 2
    three = prunus.ask(question, page, options=prunus.Options(extractor="sentences:3"))
    assert len(three.citations) == 3
    one = prunus.ask(question, page, options=prunus.Options(extractor="sentences:1"))
    assert one.citations[0].quote == three.citations[0].quote


@pytest.mark.parametrize("spec", ["sentences:none", "sentences:0", "sentences:51", "sentences:-1", "sentences:\u00b2"])
def test_a_number_of_quotes_that_is_none_is_refused_in_one_line(spec: str) -> None:
    with pytest.raises(prunus.BadInput, match="sentences:3"):
        prunus.ask("How many?", PRICES, options=prunus.Options(extractor=spec))


def test_every_feature_and_every_sign_has_a_weight() -> None:
    found = _weights.weights()
    assert found.segment.names == _features.NAMES
    assert len(found.bears) == len(_bearing.BEARING)
    assert found.scale > 0


def test_weights_of_other_features_are_refused() -> None:
    segment = _weights.weights().segment
    with pytest.raises(ValueError, match="prunus train quotes"):
        _weights.weights_of(segment, {"scale": 1.0, "bears": {"one": 1.0}})


LAUNCHES = """<h1>Launches of the Pell yard</h1><table><tr><th>Year<th>Ship<th>Masts<th>Crew
<tr><td>1871<td>Dunnock<td>2<td>14<tr><td>1874<td>Orrel<td>3<td>31<tr><td>1880<td>Linden<td>1<td>6
<tr><td>1883<td>Withy<td>4<td>40<tr><td>1890<td>Kite<td>2<td>9</table>
<p>The yard lies on the river. Visitors are welcome on Thursdays."""


@pytest.mark.parametrize(
    ("question", "ship"),
    [
        ("Which ship was launched after the Orrel?", "Linden"),
        ("Which ship is listed before the Kite?", "Withy"),
        ("Which ship has the fewest masts?", "Linden"),
        ("Which ship had the largest crew?", "Withy"),
        ("What is the last ship on the list?", "Kite"),
        ("Which ship was launched in 1874?", "Orrel"),
    ],
)
def test_a_row_is_found_by_its_place_and_by_its_numbers(question: str, ship: str) -> None:
    assert ship in prunus.extract(question, LAUNCHES)[0].text


def asked(question: str) -> Asked:
    return Asked(question)


@pytest.mark.parametrize(
    ("question", "met", "not_met"),
    [
        ("Which team won at least 3 games?", 3, 2),
        ("Who scored more than five points?", 6, 5),
        ("Which lake is under 10 km long?", 9.5, 10),
        ("Which cities have 4 or fewer stations?", 4, 5),
        ("Who finished below 1:02:00?", 3719, 3720),
        ("Which film came out later than 1999?", 20000000, 19990000),  # dates are numbers of eight digits
    ],
)
def test_a_number_is_in_the_range_that_is_asked_for_or_not(question: str, met: float, not_met: float) -> None:
    demand = asked(question).demand
    assert demand is not None
    assert demand.is_met(met)
    assert not demand.is_met(not_met)


def test_at_least_is_no_superlative() -> None:
    assert asked("Which team won at least 3 games?").extreme is None
    extreme = asked("Which team won the least games?").extreme
    assert extreme is not None
    assert extreme.low
    second = asked("What is the second highest peak?").extreme
    assert second is not None
    assert (second.rank, second.low) == (2, False)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("4 March 2008", 20080304),
        ("Oct 2, 1999", 19991002),
        ("2008", 20080000),
        ("1:02:03", 3723),
        ("12:30.5", 750.5),
        ("1,234", 1234),
        ("\u22125", -5),
        ("W 37\u201334", 37),
        ("nothing", None),
    ],
)
def test_cells_are_sorted_by_date_time_or_number(cell: str, value: float | None) -> None:
    assert value_in(cell) == value


def test_the_chance_that_the_pages_answer_is_higher_where_they_do() -> None:
    embedder = make_engine("embedder", "static")
    chances = []
    for text in (
        "The harbour was built in 1871 by Ada Trelawney.",
        "Salt the water and boil the rice for ten minutes.",
    ):
        tagged = [Tagged(0, text, Span("d", 0, len(text)), 0.5)]
        seen = _features.Question("When was the harbour built?", tagged, cosines(embedder, "When?", tagged)).seen
        chances.append(_weights.weights().chance(seen, _weights.weights().scores(seen)))
    assert 0 <= chances[1] < _weights.BAR <= chances[0] <= 1
