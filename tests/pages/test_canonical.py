"""The canonical text says what the page says where tags change the meaning of words, and spans into it stay right."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clock import at_most

import prunus
from prunus.answer.cite import cite
from prunus.models.prompts.render import Quoted, render
from prunus.pages.clean.walk import clean_tree

MEANINGS = {
    "A cell holds 10<sup>9</sup> molecules": "A cell holds 10⁹ molecules",
    "10<sup>-4</sup> m<sup>2</sup>": "10⁻⁴ m²",
    "10<sup><b>1</b>2</sup>": "10¹²",
    "$11<sup>99</sup>": "$11⁹⁹",
    "5,000<sup>1</sup> boats": "5,000¹ boats",
    "Smith<sup>1,2</sup>": "Smith¹,²",
    "x<sup><i>n</i>+1</sup> y": "x^(n+1) y",
    "a<sup>2.5</sup>": "a^2.5",
    "2<sup>k</sup>": "2^k",
    "e<sup>t</sup> and S<sup>t</sup> Paul": "e^t and St Paul",
    "the 5<sup>th</sup> of M<sup>lle</sup> X": "the 5th of Mlle X",
    "Brand<sup>TM</sup> 1932<sup>[1]</sup>": "BrandTM 1932[1]",
    "CO<sub>2</sub>, log<sub>2</sub>8, V<sub>max</sub>, x<sub>n+1</sub>": "CO₂, log₂8, Vmax, x_(n+1)",
    "3<sup>1</sup>/<sub>2</sub> cups of <sup>14</sup>C": "3¹/₂ cups of ¹⁴C",
    "$698<sup>.00</sup> or 7–6<sup>(11–9)</sup>": "$698.00 or 7–6(11–9)",
    "3 – 0<br><sup>a+b</sup>, $30 <sup>i</sup>": "3 – 0\na+b, $30 i",
    "AB1<sup>CD</sup>, 1234<sup>PH</sup>, G18<sup>X</sup>, but 2<sup>N</sup>": "AB1CD, 1234PH, G18X, but 2^N",
    "Kansas<sup>1[›]</sup>": "Kansas1[›]",
    "since 1890<sup><a href='#n2'>2</a></sup>.": "since 1890.",
    "since 1890<a role=doc-noteref href='#n2'>2</a>.": "since 1890.",
    "since 1890<a epub:type=noteref href='#n2'>2</a>.": "since 1890.",
    "in <a href='#h2'>1890</a>": "in 1890",
    "costs <s>$99</s> $79": "costs ~~$99~~ $79",
    "costs <del> $99 </del>$79": "costs ~~$99~~ $79",
    "costs <span style='text-decoration: line-through'>$99</span> $79": "costs ~~$99~~ $79",
    "he said <q>no</q>": "he said “no”",
    "he said <q>“no”</q>": "he said “no”",
    "<q>she said <q>no <q>x</q></q> to me</q>": "“she said ‘no “x”’ to me”",
    "<q><q>a</q></q> <q>b</q>": "“‘a’” “b”",
    "<p>was <a href=x style='text-decoration:line-through'>$99</a>": "was ~~$99~~",
    "<style>.was{text-decoration:1px line-through}</style><p><i class=was>$99</i> $79": "~~$99~~ $79",
    "<style>.was{text-decoration-line:line-through;display:block}</style><p>now <i class=was>$99</i> $79": "now\n~~$99~~\n$79",
    "<style>.was{text-decoration:line-through}</style><table><tr><td class=was>$99<td>$79</table>": "~~$99~~\t$79",
    "<style>i{text-decoration:line-through}p i{text-decoration:none}</style><p><i>$99</i>": "$99",
    "<style>i{text-decoration:line-through}</style><p><i style='text-decoration:none'>$99</i>": "$99",
    "<style>@media print{i{text-decoration:line-through}}</style><p><i>$99</i>": "$99",
    "<p>2<math><mfrac><mn>1</mn><mn>3</mn></mfrac></math> cups": "2 1/3 cups",
    "<p>x<math><mn>3</mn></math>": "x3",
    "<p class=line-through>old <b>price</b></p>new": "~~old price~~\nnew",
    "<pre>a<sup>2</sup> <s>b</s></pre>": "a² b",
    "2<sup>2<sup>8</sup></sup> and a<sub>n<sub>k</sub></sub>": "2^(2^8) and a_(n_k)",
    "<a href='#size'>5 m<sup>2</sup></a>, Oslo<a href='#n1'><sup>1</sup></a>": "5 m², Oslo",
    "10<span style='vertical-align: super'>9</span>, H<i style='vertical-align:sub'>2</i>O": "10⁹, H₂O",
    "<style>.e{vertical-align:super;font-size:70%}</style><p>10<span class=e>9</span> <b class=e>new</b>": "10⁹ new",
    "<span style='text-decoration:LINE-THROUGH'>61</span> 56": "~~61~~ 56",
    "<table><tr style='text-decoration:line-through'><td>Mon<td>9:00<tr><td>Tue<td>8:00</table>": (
        "~~Mon~~\t~~9:00~~\nTue\t8:00"
    ),
    "<style>.off{text-decoration:line-through}</style><ul class=off><li>one<li>two</ul>": "~~one~~\n~~two~~",
    "<p><ruby>東京<rt>とうきょう</rt></ruby>へ": "東京(とうきょう)へ",
    "<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>": "漢(かん)",
    "<p>open 10<span aria-hidden=true>–</span>20, <i aria-hidden=true>−</i>3 m": "open 10–20, −3 m",
    "<p>Next<i aria-hidden=true>›</i> Menu<i aria-hidden=true>+</i>": "Next Menu",
    "<table><tr><td>Tea<td><i aria-hidden=true>✓</i><td><i aria-hidden=true>✗</i></table>": "Tea\t✓\t✗",
    "<table><tr><td><i aria-hidden=true>✓</i><span class=sr-only>Yes</span></table>": "Yes",
    "<p><input type=checkbox checked>paid <input type=checkbox>sent": "☑ paid ☐ sent",
    "<p>Power <progress value=70 max=100></progress>, <meter value=4 max=5>four</meter>": "Power 70/100 , four",
    "<p>So <script type='math/tex'>E=mc^2</script> holds<script>x=1</script>": "So E=mc^2 holds",
    "<p><span role=checkbox aria-checked=true></span>paid <b role=switch aria-checked=false>sent</b>": "☑ paid ☐ sent",
    "<div role=checkbox aria-checked=true>paid</div>": "☑ paid",
    "<p><span role=checkbox aria-checked=true>✓</span> paid <b role=checkbox aria-checked=mixed>sent</b>": "✓ paid sent",
    "<p><label role=checkbox aria-checked=true><input type=checkbox checked>paid</label>": "☑ paid",
    "<p><b role=tab aria-checked=true>paid</b> <i role=checkbox aria-checked=true hidden>x</i>": "paid",
    "Power<div role=progressbar aria-valuenow=70></div><i role=meter aria-valuenow=4 aria-valuemax=5></i>": "Power\n70/100\n4/5",
    "Power <b role=progressbar aria-valuenow=7 aria-valuetext='7 of 9'></b><i role=meter aria-valuenow=4>four</i>": (
        "Power 7 of 9 four"
    ),
    "<p>Volume <b role=slider aria-valuenow=7></b><b role=meter></b>": "Volume",
    "<p>Price<span class='x sr-only'>now</span>$5": "Price now $5",
    "<p>5<span class=visually-hidden>stars</span><b>of 9</b>": "5 stars of 9",
    "<p><span class=sr-only>Price</span>: 5<span class=sr-only>%</span> boat<span class=sr-only>s</span>": "Price: 5% boats",
    "<table><tr><td><td>Mon<td>Tue<tr><td>Ann<td><td>8</table>": "\tMon\tTue\nAnn\t\t8",
    "<table><tr><td>Basic<td style='visibility:hidden'>-<td>90</table>": "Basic\t\t90",
    "<table><tr><td>Basic<td style='display:none'>-<td>90</table>": "Basic\t90",
    "<style>.h{visibility:hidden}</style><table><tr><td>Basic<td class=h>-<td>90</table>": "Basic\t\t90",
    "<style>.h{opacity:0}</style><table><tr><th class=h>-<td>Basic<td>90</table>": "\tBasic\t90",
    "<style>.h{display:none}</style><table><tr><td>Basic<td class=h>-<td>90</table>": "Basic\t90",
    "<style>.h{opacity:0;position:absolute}</style><table><tr><td>Basic<td class=h>-<td>90</table>": "Basic\t90",
    "<style>.h{visibility:hidden}b{visibility:visible}</style><table><tr><td class=h>-<b>3</b><td>90</table>": "3\t90",
    "<style><!-- .h{display:none} --></style><p class=h>hidden<p>seen": "seen",
    "<svg width=20><path d='M0'/></svg><p>Words": "Words",
    "<p>by <my-user>Ann</my-user> on <x-time>Mar 5</x-time>, <b-price>5</b-price>00": "by Ann on Mar 5, 500",
    "<div>Tug, <relative-time>2 days ago</relative-time>, at sea</div>": "Tug, 2 days ago, at sea",
    "<my-card>Tug</my-card><my-card>Barge</my-card>": "Tug\nBarge",
    "Ports <my-list><p>Tug<p>Barge</my-list>": "Ports\nTug\nBarge",
}
"""What is on the page, and what the canonical text says."""


@pytest.mark.parametrize("html", MEANINGS)
def test_tags_that_change_what_words_mean_are_said(html: str) -> None:
    assert clean_tree(html).canonical == MEANINGS[html]
    assert prunus.clean(html, "text") == MEANINGS[html]


FORMULAS = {
    "<mfrac><mn>1</mn><mn>36</mn></mfrac>": "1/36",
    "<mmultiscripts><mi>C</mi><mn>6</mn><none/><mprescripts/><mn>6</mn><mn>14</mn></mmultiscripts>": "_6^14C_6",
    "<mmultiscripts><mi>R</mi><mi>i</mi><none/><none/><mi>j</mi></mmultiscripts>": "R_i^j",
    "<mi>f</mi><mfenced open='[' close=']' separators=';,'><mi>a</mi><mi>b</mi><mi>c</mi></mfenced>": "f[a; b, c]",
    "<mfenced separators=''><mi>a</mi><mi>b</mi></mfenced>": "(ab)",
    "<mn>3</mn><mfrac><mn>1</mn><mn>2</mn></mfrac>": "3 1/2",
    "<mn>2</mn><msup><mn>10</mn><mrow><mo>−</mo><mn>4</mn></mrow></msup>": "2 10^-4",
    "<mi>A</mi><mo>=</mo><mi>π</mi><msup><mi>r</mi><mn>2</mn></msup>": "A = πr^2",
    "<mi>sin</mi><mo>&#x2061;</mo><mi>x</mi><mo>&lt;</mo><mo>−</mo><mn>1</mn>": "sin x < −1",
    "<msub><mi>x</mi><mn>1</mn></msub><msub><mi>x</mi><mn>2</mn></msub>": "x_1 x_2",
    "<mfrac><mi>a</mi><mrow><mn>2</mn><mi>c</mi></mrow></mfrac>": "a/(2c)",
    "<msqrt><mi>a</mi><mo>+</mo><mi>b</mi></msqrt>": "√(a + b)",
    "<mover><mi>x</mi><mo>¯</mo></mover>": "x̄",
    "<semantics><mfrac><mn>1</mn><mn>36</mn></mfrac><annotation encoding='application/x-tex'>{\\displaystyle "
    "\\frac{1}{36}}</annotation></semantics>": "\\frac{1}{36}",
    "<semantics><mn>1</mn><annotation encoding='application/x-tex'>1 ignore</annotation></semantics>": "1",
    "<mi>x</mi><mtext style='display:none'>secret</mtext>": "x",
}


@pytest.mark.parametrize("inner", FORMULAS)
def test_a_formula_is_one_line_of_code(inner: str) -> None:
    page = f"<p>It is <math>{inner}</math> here."
    assert clean_tree(page).canonical == f"It is {FORMULAS[inner]} here."
    assert prunus.clean(page, "markdown") == f"It is `{FORMULAS[inner]}` here."


def stacked(name: str, *rows: str, lowered: bool = False) -> str:
    """Return a stack of KaTeX, from the bottom to the top."""
    inside = "".join(f"<span style='top:-3em'><span class=pstrut></span>{row}</span>" for row in rows)
    kind = "vlist-t vlist-t2" if lowered else "vlist-t"
    return f"<span class='{name}'><span class='{kind}'><span class=vlist-r><span class=vlist>{inside}</span></span></span></span>"


KATEX = {
    f"<span class=mord>10</span>{stacked('msupsub', '9')}": "10^9",
    f"x{stacked('msupsub', 'i', lowered=True)}": "x_i",
    f"x{stacked('msupsub', 'i', '2', lowered=True)}<span class=mrel>=</span>4": "x_i^2 = 4",
    stacked("mfrac", "36", "<span class=frac-line></span>", "1", lowered=True): "1/36",
    stacked("mord sqrt", "x<span class=mbin>+</span>1"): "√(x + 1)",
    f"{stacked('mop op-limits', 'i=1', '<span class=mop>∑</span>', 'n')}a": "∑_(i=1)^n a",
    "10" + stacked("msupsub", "2" + stacked("msupsub", "3")): "10^(2^3)",
}


@pytest.mark.parametrize("inner", KATEX)
def test_a_formula_that_katex_laid_out_for_eyes_alone_is_one_line_of_code(inner: str) -> None:
    page = f"<p>It is <span class=katex><span class=katex-html aria-hidden=true>{inner}</span></span> here."
    assert clean_tree(page).canonical == f"It is {KATEX[inner]} here."


def test_a_formula_of_katex_hides_no_words_and_takes_no_time() -> None:
    hidden = "x<span style='display:none'>secret</span>" + stacked("mfrac", "2", "<b hidden>secret</b>1")
    assert clean_tree(f"<p>w <span class=katex-html aria-hidden=true>{hidden}</span>").canonical == "w x1/2"
    deep = "<span class=mfrac><span class=vlist><span>" * 200
    with at_most(2.0):
        assert clean_tree(f"<p>w <span class=katex-html aria-hidden=true>{deep}").canonical == "w"


def test_a_formula_that_a_wiki_has_drawn_is_shown_once() -> None:
    math = "<math><mi>r</mi><annotation encoding='application/x-tex'>{\\displaystyle r}</annotation></math>"
    image = "<img src=/r.svg aria-hidden=true alt='{\\displaystyle r}'>"
    assert clean_tree(f"<p>a <span style='display:none'>{math}</span>{image}, b").canonical == "a r, b"
    assert clean_tree(f"<p>a <span>{math}</span>{image}, b").canonical == "a r, b"


TABLES = {
    "<tr><th>Plan<th>Free<th>Pro<tr><td>API<td><td>Yes<tr><td>SSO<td>Yes<td>": "Plan\tFree\tPro\nAPI\t\tYes\nSSO\tYes",
    "<tr><td rowspan=2>2014<td>Q1<td>5<tr><td>Q2<td>7": "2014\tQ1\t5\n\tQ2\t7",
    "<tr><th><th colspan=2>Sold<th>Left<tr><td>a<td>1<td>2<td>3": "\tSold\t\tLeft\na\t1\t2\t3",
    "<caption>c<tr><th><th>Sold<tr><td>a<td>1": "c\n\tSold\na\t1",
    "<tr><td><p>API</p><td></td><td><div>Yes</div>": "API\t\tYes",
    "<tr><td><p>a</p><td><p>b</p>": "a\tb",
    "<tr><td><p>a</p><p>b</p><td>c": "a\nb\nc",
    "<tr><td>a<td><td><sup><a href='#n'>1</a></sup><td>b": "a\t\t\tb",
    "<tr><td><table><tr><td><td>x<td>y</table><td>z": "\tx\ty\nz",
    "<thead><tr><th>Item<th>USD<tfoot><tr><td>Sum<td>9<tbody><tr><td>Tea<td>4": "Item\tUSD\nTea\t4\nSum\t9",
    "<tr><td>Tea<td>4</tbody><thead><tr><th>Item<th>USD<tfoot><tr><td>Sum<td>9": "Item\tUSD\nTea\t4\nSum\t9",
    "<caption>c<tfoot><tr><td>one<tfoot><tr><td>two<tbody><tr><td>Tea": "c\ntwo\nTea\none",
    "<thead><tr><th>Item<tbody><tr><td>Tea<thead><tr><th>Dish<tbody><tr><td>Soup": "Item\nTea\nDish\nSoup",
}
"""The rows of a table, and their lines in the canonical text."""


@pytest.mark.parametrize("rows", TABLES)
def test_columns_keep_their_place_in_text(rows: str) -> None:
    page = f"<p>w</p><table>{rows}</table>"
    assert clean_tree(page).canonical == f"w\n{TABLES[rows]}"
    assert prunus.clean(page, "text") == f"w\n{TABLES[rows]}"


NUMBERED = {
    "<ol start=5><li>a<li>b</ol>": "5. a\n6. b",
    "<ol start=' 3.7'><li>a<li value=x>b</ol>": "3. a\n4. b",
    "<ol start=x><li>a</ol>": "1. a",
    "<ol reversed><li>a<li>b</ol>": "2. a\n1. b",
    "<ol reversed start=9><li>a<li value=4>b<li>c</ol>": "9. a\n4. b\n3. c",
    "<ol start=-1><li>a<li>b</ol>": "- -1. a\n- 0\\. b",
    "<ol start=999999999><li>a<li>b</ol>": "- 999999999\\. a\n- 1000000000. b",
    "<ol type=A start=26><li>a<li>b</ol>": "- Z. a\n- AA. b",
    "<ol type=a start=0><li>a<li>b</ol>": "- 0\\. a\n- a. b",
    "<ol type=i start=3><li>a<li>b</ol>": "- iii. a\n- iv. b",
    "<ol type=I start=3999><li>a<li>b</ol>": "- MMMCMXCIX. a\n- 4000\\. b",
    "<ol type=1><li>a</ol>": "1. a",
    "<ol type=a><li><p>a<p>b<li><ol type=i><li>c</ol><li><ul><li>d</ul></ol>": "- a. a\n  b\n- b.\n  - i. c\n- c.\n  - d",
    "<ol type=a><li><h3>a</h3></ol>": "- a.\n\n  ### a",
    "<p>x<ol type=a><li>a</ol>": "x\n\n- a. a",
    "<ol><li>a<li style='display:none'>b<li hidden>c<li>d</ol>": "1. a\n2. d",
    "<ul><li>a<li><li>b</ul>": "- a\n- b",
}
"""Ordered lists, and their Markdown."""


@pytest.mark.parametrize("html", NUMBERED)
def test_items_keep_the_numbers_that_a_browser_shows(html: str) -> None:
    assert prunus.clean(html, "markdown") == NUMBERED[html]
    assert prunus.clean(prunus.clean(html, "html"), "markdown") == NUMBERED[html]


PARTS = st.lists(
    st.builds(
        lambda tag, words, space: f"<{tag}>{words}</{tag}>{' ' * space}",
        st.sampled_from(["sup", "sub", "s", "q", "b", "p", "td", "del"]),
        st.sampled_from(["1", "12", "n+1", "word", " two words ", "4.5", "“x”"]),
        st.booleans(),
    ),
    max_size=8,
)


@given(PARTS)
def test_every_node_has_its_own_words_in_the_canonical_text(parts: list[str]) -> None:
    tree = clean_tree("<p>base" + "".join(parts))
    for node, text in enumerate(tree.text):
        start, stop = tree.starts[node], tree.stop(node)
        assert 0 <= start <= stop <= len(tree.canonical)
        plain = re.sub("[~“”‘’^_()]", "", tree.canonical[start:stop]).translate(
            str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺₀₁₂₃₄₅₆₇₈₉₊", "0123456789+" * 2)
        )
        assert plain == re.sub("[“”‘’]", "", text)
        for index in range(len(text) + 1):
            assert start <= tree.offset(node, index) <= stop
            assert tree.index(node, tree.offset(node, index)) == index


FIGURES = st.builds(
    lambda number, share: f"{number:,}.{share}" if share else f"{number:,}", st.integers(10, 99_999), st.integers(0, 99)
)
FORMS = [
    "{a}<sup>{b}</sup>",
    "{a}<sub>{b}</sub>",
    "{a}<sup><a href='#n{b}'>[{b}]</a></sup>",
    "{a}<a role=doc-noteref href='#n'>{b}</a>",
    "<math><mfrac><mn>{a}</mn><mn>{b}</mn></mfrac></math>",
    "{a}<math><msup><mn>{b}</mn><mn>{c}</mn></msup></math>",
    "<s>{a}</s>{b}",
    "<span style='text-decoration:line-through'>{a}</span> <b>{b}</b>",
    "<style>.was{{text-decoration:line-through}}</style><i class=was>{a}</i><b>{b}</b>",
    "<span style='display:block'>{a}</span>{b}",
    "<p style='display:flex'><i>{a}</i><i>{b}</i></p>",
    "{a}<span hidden>{b}</span> m",
    "<table><tr><th>Pier<th>m<th>t<tr><td rowspan=2>{a}<td>{b}<td>{c}<tr><td>{b}<td></table>",
    "<table><tr><td colspan=2>{a}<td>{b}<tr><td>x<td><sup>{c}</sup><td>{a}</table>",
    "<q>{a}</q>{b}",
    "<math><mn>{a}</mn></math>{b}",
    "<li value=7>{a}<li>{b}",
    "<h2>{a}<a href='#h'>#</a></h2>{b}",
]
"""Markup around two or three numbers that are words of their own."""

OF_LISTS = {"1", "2", "7", "8"}
"""Numbers of items, which Markdown writes."""

WITHOUT_MODELS = prunus.Settings(reranker="none")
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


def outputs(page: str) -> dict[str, str]:
    """Return all that Prunus says of a page: its text, its formats, the evidence of a prompt, the quotes of an answer."""
    context = prunus.prune(page, "How many boats passed the pier?", budget=400, settings=WITHOUT_MODELS)
    answer = prunus.ask("How many boats passed the pier?", page, settings=WITHOUT_MODELS)
    said = {name: prunus.clean(page, name) for name in ("html", "markdown", "text")}
    prompt = render("answer", sources=[Quoted(context.text, "a page")], turns=[], question=Quoted("How many?", "q"))
    return {
        **{name: re.sub(r"<[^>]*>", "|", text) for name, text in said.items()},
        "canonical": clean_tree(page).canonical,
        "prompt": re.sub(r"<[^>]*>|\b[0-9a-f]{32}\b", "|", prompt[-1].content),
        "quote": " ".join([re.sub(r"\[\d\]", "", answer.text), *(citation.quote for citation in answer.citations)]),
    }


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(FORMS), FIGURES, FIGURES, FIGURES), min_size=1, max_size=5))
def test_no_number_of_a_page_becomes_another_number(parts: list[tuple[str, str, str, str]]) -> None:
    page = "<title>Piers</title><h1>Boats</h1>"
    known = set(OF_LISTS)
    for form, a, b, c in parts:
        page += f"<p>Boats that passed the pier: {form.format(a=a, b=b, c=c)} boats.</p>"
        known |= {a, b, c}
    for name, text in outputs(page).items():
        assert set(_FIGURE.findall(text)) <= known, name


@given(st.integers(2, 99_999), st.integers(2, 99))
def test_a_number_and_its_power_are_not_one_number_of_a_quote(number: int, power: int) -> None:
    page = f"<p>About {number}<sup>{power}</sup> of {number}<sub>{power}</sub>, or <s>{number}</s> {power}."
    assert not cite(1, f"About {number}{power} of", clean_tree(page)).found
