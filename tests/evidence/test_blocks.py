"""Blocks: every visible word is in exactly one block at any granularity; units that belong together stay together."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracle
from tests.extras import need
from tests.strategies import Made, articles, worded_documents

from prunus.core.text.words import count_words
from prunus.evidence import blocks as blocks_module
from prunus.evidence.blocks import Blocks, cut, split
from prunus.evidence.breadcrumbs import Breadcrumbs
from prunus.evidence.render import Rendering, render_blocks
from prunus.pages.clean.walk import clean_tree
from prunus.pages.tree import Tree
from prunus.pages.write.selection import AFTER, BEFORE
from prunus.pages.xpath import xpath_of

UNITS = ("blocks", "leaves")
max_words = st.one_of(st.integers(1, 12), st.integers(1, 500))


def blocks_of(*pages: str, max_words: int = 48, units: str = "blocks", whole_words: int = 0) -> Blocks:
    """Cut pages; unlike the default, sentences and rows are cut too, so that small pages show every kind of cut."""
    return cut([clean_tree(page) for page in pages], max_words, units, whole_words)


def texts(*pages: str, max_words: int = 48, units: str = "blocks", whole_words: int = 0) -> list[str]:
    blocks = blocks_of(*pages, max_words=max_words, units=units, whole_words=whole_words)
    return [" ".join(text.split()) for text in blocks.texts]


def paths(*pages: str, max_words: int = 48) -> list[str]:
    blocks = blocks_of(*pages, max_words=max_words)
    return [blocks.path(index) for index in range(len(blocks))]


# --- every word in exactly one block -----------------------------------------------------------


@given(worded_documents, max_words, st.sampled_from(UNITS))
def test_every_visible_word_lies_in_exactly_one_block(made: Made, size: int, units: str) -> None:
    """Cut text may part a word from what is glued to it, so letters are compared, in order."""
    blocks = blocks_of(made.html, max_words=size, units=units)
    said = "".join("".join(text.split()) for text in blocks.texts)
    assert oracle.without_marks(said) == oracle.without_marks("".join(made.words))


@given(worded_documents, max_words)
def test_numbered_words_stay_whole(made: Made, size: int) -> None:
    found = Counter(re.findall(r"w\d+", " ".join(blocks_of(made.html, max_words=size).texts)))
    assert found == Counter(re.findall(r"w\d+", " ".join(made.words)))


@given(worded_documents, max_words, st.sampled_from(UNITS))
def test_blocks_touch_and_stand_in_document_order(made: Made, size: int, units: str) -> None:
    blocks = blocks_of(made.html, max_words=size, units=units)
    spans = [blocks.span(index) for index in range(len(blocks))]
    assert all(start <= end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


@given(worded_documents, max_words, st.sampled_from(UNITS))
def test_all_blocks_together_are_the_whole_document(made: Made, size: int, units: str) -> None:
    blocks = blocks_of(made.html, max_words=size, units=units)
    everything = render_blocks(blocks, range(len(blocks)), Rendering())
    assert oracle.words(everything) == made.words


@given(worded_documents, max_words, st.sampled_from(UNITS))
def test_the_span_of_a_block_is_its_text(made: Made, size: int, units: str) -> None:
    blocks = blocks_of(made.html, max_words=size, units=units)
    for index, text in enumerate(blocks.texts):
        start, end = blocks.span(index)
        assert blocks.trees[0].canonical[start:end] == text


@given(worded_documents, max_words)
def test_the_words_of_blocks_add_up(made: Made, size: int) -> None:
    blocks = blocks_of(made.html, max_words=size)
    for block, text in zip(blocks.blocks, blocks.texts, strict=True):
        assert block.words == pytest.approx(count_words(text), abs=max(3, block.hi - block.lo))


@given(articles(), max_words)
def test_running_text_is_hardly_more_than_a_block_holds(html: str, size: int) -> None:
    blocks = blocks_of(html, max_words=size)
    for block, text in zip(blocks.blocks, blocks.texts, strict=True):
        tree = blocks.trees[0]
        whole = tree.tag[block.node] in ("figure", "td", "th", "tr", "table", "caption")
        assert whole or count_words(text) <= 1.5 * size + 2


@given(st.lists(worded_documents, min_size=2, max_size=3), max_words)
def test_several_documents_are_one_forest(several: list[Made], size: int) -> None:
    together = blocks_of(*(made.html for made in several), max_words=size)
    apart = [blocks_of(made.html, max_words=size) for made in several]
    assert together.texts == [text for blocks in apart for text in blocks.texts]
    assert [block.document for block in together.blocks] == [
        number for number, blocks in enumerate(apart) for _ in blocks.blocks
    ]
    offset = 0
    for blocks in apart:
        for index, block in enumerate(blocks.blocks):
            needed = tuple(number - offset for number in together.blocks[offset + index].requires)
            assert needed == block.requires
        offset += len(blocks)


@given(worded_documents, max_words)
def test_what_a_block_requires_comes_before_it_in_its_own_document(made: Made, size: int) -> None:
    blocks = blocks_of(made.html, made.html, max_words=size)
    for index, block in enumerate(blocks.blocks):
        for needed in block.requires:
            assert 0 <= needed < index
            assert blocks.blocks[needed].document == block.document


# --- numbered paths ------------------------------------------------------------------------------


@given(worded_documents, max_words, st.sampled_from(UNITS))
def test_no_two_blocks_share_a_path(made: Made, size: int, units: str) -> None:
    blocks = blocks_of(made.html, made.html, max_words=size, units=units)
    found = [blocks.path(index) for index in range(len(blocks))]
    assert len(set(found)) == len(found)


def test_siblings_of_one_tag_are_numbered_from_one_and_an_only_one_is_not() -> None:
    page = "<body><div><p>one two three</p></div><div><p>four five six</p><p>seven eight nine</p></div>"
    assert paths(page, max_words=3) == ["html/body/div1", "html/body/div2/p1", "html/body/div2/p2"] or paths(
        page, max_words=3
    ) == ["html/body/p", "html/body/div/p1", "html/body/div/p2"]


def test_the_roots_of_several_documents_are_numbered() -> None:
    assert paths("<p>one", "<p>two") == ["html1/body", "html2/body"]
    assert paths("<p>one") == ["html/body"]


def test_text_attached_to_a_node_is_a_block_of_its_own() -> None:
    page = "<div>lead words here<p>first paragraph here</p>tail words here</div><h2>End</h2>"
    found = blocks_of(page, max_words=3)
    assert [" ".join(text.split()) for text in found.texts] == [
        "lead words here",
        "first paragraph here",
        "tail words here",
        "End",
    ]
    assert [found.path(index).rsplit("/", 1)[1] for index in range(4)] == ["text1", "p", "text2", "h2"]


def test_a_tag_that_looks_like_a_numbered_one_collides_with_nothing() -> None:
    found = paths("<p0>zero zero</p0><p>one one</p><p>two two</p><p1>three three</p1>", max_words=2)
    assert len(set(found)) == 4


# --- units that belong together ------------------------------------------------------------------

TABLE = """<table><caption>Tariffs</caption><thead><tr><th>Zone<th>Price<th>Valid</thead>
<tr><td>A<td>2.40<td>90 minutes<tr><td>B<td>3.10<td>120 minutes<tr><td>C<td>4.00<td>one day</table>"""


def test_a_row_requires_the_header_of_its_table() -> None:
    blocks = blocks_of(TABLE, max_words=5)
    header = next(index for index, text in enumerate(blocks.texts) if "Price" in text)
    rows = [block for block, text in zip(blocks.blocks, blocks.texts, strict=True) if re.search(r"\d", text)]
    assert len(rows) == 3
    assert all(header in row.requires for row in rows)


def test_a_header_row_of_th_alone_counts_as_header_without_thead() -> None:
    page = "<table><tr><th>Zone<th>Price<tr><td>A<td>2.40 coins<tr><td>B<td>3.10 coins</table>"
    blocks = blocks_of(page, max_words=3)
    assert [block.requires for block in blocks.blocks] == [(), (0,), (0,)]


def test_a_row_is_cut_at_its_cells_only_where_it_is_too_large() -> None:
    assert "A 2.40 90 minutes" in texts(TABLE, max_words=5)
    assert "A 2.40 90 minutes" not in texts(TABLE, max_words=2)


@pytest.mark.parametrize("head", ["th", "td"])
def test_a_cell_of_a_cut_row_requires_column_header_and_row_header(head: str) -> None:
    page = (
        f"<table><tr><th>Zone<th>Terms<tr><{head}>Inner<td>valid for ninety minutes<td>and for two children"
        f"<tr><{head}>Outer<td>valid for one whole day<td>and for one dog</table>"
    )
    blocks = blocks_of(page, max_words=4)
    held = dict(zip(blocks.texts, blocks.blocks, strict=True))
    cell = held["and for two children"]
    said = [blocks.texts[index] for index in cell.requires]
    assert "Inner" in said
    assert any("Zone" in text for text in said)


def test_a_sentence_is_one_block_at_any_granularity() -> None:
    found = texts("<p>The north gate closes at seven in the evening. It opens at six.", max_words=2, whole_words=128)
    assert found == ["The north gate closes at seven in the evening.", "It opens at six."]


def test_a_row_of_data_is_one_block_at_any_granularity() -> None:
    assert texts(TABLE, max_words=1, whole_words=128)[-1] == "C 4.00 one day"


def test_a_row_of_a_layout_is_cut_at_the_blocks_in_its_cells() -> None:
    page = "<table><tr><td><p>one two three<p>four five six<td><ul><li>seven eight nine</ul></table>"
    assert texts(page, max_words=3, whole_words=128) == ["one two three", "four five six", "seven eight nine"]


def test_what_is_longer_than_any_sentence_is_cut_between_words() -> None:
    page = "<p>" + " ".join(f"word{number}" for number in range(200))
    blocks = blocks_of(page, max_words=50, whole_words=128)
    assert len(blocks) > 3
    assert [block.ragged for block in blocks.blocks] == [AFTER, *[BEFORE | AFTER] * (len(blocks) - 2), BEFORE]


def test_a_figure_stays_with_its_caption() -> None:
    page = "<p>words before it<figure><img src=/a.png alt='old bridge'><figcaption>seen from the east</figure>"
    assert "old bridge seen from the east" in texts(page, max_words=3)


def test_a_term_stays_with_its_definition() -> None:
    page = "<dl><dt>Ebb<dd>water going out<dt>Flood<dd>water coming in</dl><p>" + "word " * 20
    assert texts(page, max_words=5)[:2] == ["Ebb water going out", "Flood water coming in"]


def test_a_small_section_stays_with_its_heading() -> None:
    page = "<h2>Opening</h2><p>daily from nine</p><h2>Prices</h2><p>four coins each</p><p>" + "word " * 20
    assert texts(page, max_words=6)[0] == "Opening daily from nine"


def test_preformatted_text_is_cut_at_its_lines() -> None:
    page = "<pre>" + "\n".join(f"line {number} of code" for number in range(12)) + "</pre>"
    found = blocks_of(page, max_words=8).texts
    assert len(found) >= 6
    assert all(re.match(r"line \d+", text) for text in found)


def test_a_text_that_is_too_long_is_cut_between_sentences() -> None:
    page = "<p>The mill closed in 1901. It burned down in 1911! Was it rebuilt? Nobody knows for sure today."
    found = texts(page, max_words=6)
    assert found == [
        "The mill closed in 1901.",
        "It burned down in 1911!",
        "Was it rebuilt?",
        "Nobody knows for sure today.",
    ]


def test_an_endless_sentence_is_cut_between_words() -> None:
    page = "<p>" + " ".join(f"word{number}" for number in range(100))
    found = texts(page, max_words=10)
    assert 9 <= len(found) <= 14
    assert " ".join(found).split() == [f"word{number}" for number in range(100)]


@pytest.mark.parametrize("line", ["{} Mill Road", "<b>{} Mill</b> Road", "The mill closed in {}. It burned down"])
def test_lines_are_cut_at_their_ends(line: str) -> None:
    """Nothing but <br> stands between them, no space and no full stop."""
    lines = [line.format(number) for number in range(100, 130)]
    shown = [re.sub("<.*?>", "", line) for line in lines]
    found = [text.replace("\n", " ") for text in texts("<p>" + "<br>".join(lines), max_words=9)]
    assert len(found) >= 10
    assert " ".join(found) == " ".join(shown)
    assert all(text.startswith(tuple(shown)) for text in found)


@pytest.mark.parametrize("picture", ["<img src=x.png alt='picture {}'>", "<input value='picture {}'>"])
def test_pictures_in_a_row_are_cut_between_them(picture: str) -> None:
    found = texts("<p>" + "".join(picture.format(number) for number in range(60)), max_words=8)
    assert len(found) >= 15
    assert " ".join(found).split() == " ".join(f"picture {number}" for number in range(60)).split()
    assert all(text.startswith("picture") and text[-1].isdigit() for text in found)


def test_han_letters_count_as_words() -> None:
    sentence = "潮汐站每天记录水位高度。"
    found = texts(f"<p>{sentence * 6}", max_words=24)
    assert len(found) >= 3
    assert "".join(found) == sentence * 6


def test_thai_counts_by_length() -> None:
    sentence = "สถานีวัดระดับน้ำบันทึกระดับน้ำทุกวัน"
    found = texts(f"<p>{sentence * 8}", max_words=16)
    assert len(found) >= 3
    assert "".join(found) == sentence * 8


def test_leaves_are_the_leaves_of_the_document() -> None:
    page = "<div>lead <b>bold</b> tail<p>para</p></div>"
    assert texts(page, units="leaves") == ["lead", "bold", "tail", "para"]


def test_a_document_that_fits_is_one_block() -> None:
    assert texts("<div>a<p>b<ul><li>c</ul></div>", max_words=10) == ["a b c"]


@pytest.mark.parametrize("size", [0, -3])
def test_a_granularity_below_one_word_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="max_words"):
        blocks_of("<p>x", max_words=size)


def test_cutting_is_linear_in_depth_and_breadth() -> None:
    blocks = blocks_of("<div>" * 400 + "deep words", max_words=1)
    assert len(blocks) == 2
    blocks = blocks_of("<p>two words" * 20_000, max_words=2)
    assert len(blocks) == 20_000
    assert blocks.path(19_999).endswith("p20000")


# --- the way back to the original page -----------------------------------------------------------

ORIGINAL = """<html><head><title>Works</title></head><body><div class=x><div><p>Lead <b>bold</b> words</p></div></div>
<script>1</script><ul><li>one<li>two <i>inner</i></ul><table><tr><th>H<tr><td>cell</table>
<div hidden><p>no</div><p>last<br>line"""


def test_the_xpath_of_every_word_finds_its_element_in_the_original() -> None:
    tree = clean_tree(ORIGINAL)
    page = oracle.parse(ORIGINAL)
    for node, text in enumerate(tree.text):
        if text.strip():
            found = page.xpath(xpath_of(tree, node))
            assert len(found) == 1
            assert text.strip() in " ".join(found[0].text.split())


def test_xpaths_work_in_lxml_too() -> None:
    lxml_html = need("lxml.html")
    tree = clean_tree(ORIGINAL)
    page = lxml_html.document_fromstring(oracle.parse(ORIGINAL).html)
    for node, text in enumerate(tree.text):
        if text.strip():
            (found,) = page.xpath(xpath_of(tree, node))
            assert text.strip() in " ".join(found.text_content().split())


@given(worded_documents)
def test_xpaths_of_generated_pages_find_their_words(made: Made) -> None:
    tree = clean_tree(made.html)
    page = oracle.parse(made.html)
    for node, text in enumerate(tree.text):
        if tree.tag[node] == "" and text.strip():
            (found,) = page.xpath(xpath_of(tree, node))
            assert set(re.findall(r"w\d+", text)) <= set(re.findall(r"w\d+", found.text))


def test_white_space_between_rows_of_preformatted_text_is_a_run() -> None:
    blocks = cut([clean_tree("<pre>a b<table><td>c d e f</tr>\n</table>")], 1)
    assert len({blocks.path(index) for index in range(len(blocks))}) == len(blocks)


@pytest.mark.parametrize(
    "html",
    [
        "<ruby>" + "漢<rt>かん</rt>" * 30 + "</ruby>",
        "<p>a b<b>" + "<i>c d</i> " * 30 + "</b> e",
        "<u>" + "<s>f g</s>" * 30,
    ],
)
@pytest.mark.parametrize("max_words", [5, 7, 28])
def test_a_run_that_ends_inside_an_inline_element_is_cut_finer_where_it_stands(html: str, max_words: int) -> None:
    blocks = blocks_of(html, max_words=max_words)
    assert len(blocks) > 1
    for index, block in enumerate(blocks.blocks):
        parted = Blocks(blocks.trees, split(blocks, index, 2, whole_words=0), 2)
        assert "".join(blocks.texts[index].split()) == "".join("".join(parted.texts).split())
        assert (parted.blocks[0].lo, parted.blocks[-1].hi) == (block.lo, block.hi)


def test_breadcrumbs_are_whole_for_a_thread_that_asks_while_another_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made = blocks_of("<h1>One</h1><p>first", "<h1>Two</h1><p>second")
    seen: list[int] = []
    real = blocks_module.breadcrumbs_of

    def asked_meanwhile(tree: Tree, spans: Iterable[tuple[int, int, int]]) -> Iterable[Breadcrumbs]:
        if tree is made.trees[1] and not seen:
            seen.append(-1)
            seen.append(len(made.contexts))
        return real(tree, spans)

    monkeypatch.setattr(blocks_module, "breadcrumbs_of", asked_meanwhile)
    assert len(made.contexts) == len(made)
    assert seen == [-1, len(made)]
