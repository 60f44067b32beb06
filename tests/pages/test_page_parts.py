"""A page's Markdown by parts: each fits, together they are the whole, and an outline leads to every heading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import Made, documents

from prunus.core.ports import TokenCounter
from prunus.core.settings import load_settings
from prunus.engines import one_engine
from prunus.pages.clean.walk import clean_tree
from prunus.pages.write.parts import above, outline, part_of, sections_of
from prunus.pages.write.whole import render_tree

PAGE = """\
Before.

# Town

## Prices

|Who|Price|
|-|-|
|car|4 coins|
|lorry|9 coins|

```
# no heading
```

- ## In a list

### Deep

Last."""


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    found: TokenCounter = one_engine("tokenizer", load_settings())
    return found


@given(documents, st.integers(16, 200))
def test_parts_fit_and_are_the_whole_together(made: Made, most: int) -> None:
    counter: TokenCounter = one_engine("tokenizer", load_settings())
    markdown = render_tree(clean_tree(made.html), "markdown")
    start, texts = 0, []
    while start < len(markdown):
        part = part_of(markdown, start, most, counter)
        assert part.start == start < part.end and part.tokens == counter.count([part.text])[0] <= most
        texts.append(part.text)
        start = part.end
    assert "".join(texts) == markdown


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("word " * 15 + "\n\n" + "word " * 60, "\n\n"),
        ("|a|b|\n" * 60, "|\n"),
        ("<table>" + "<tr><td>a<td>b" * 60, "<td>b"),
        ("word " * 60, " "),
        ("x" * 600, "x"),
    ],
)
def test_a_part_ends_between_blocks_lines_rows_or_words(counter: TokenCounter, text: str, end: str) -> None:
    part = part_of(text, 0, 25, counter)
    assert part.end < len(text) and part.text.endswith(end)


def test_an_outline_leads_to_every_heading(counter: TokenCounter) -> None:
    sections = sections_of(PAGE, counter)
    assert [(section.level, section.title) for section in sections] == [
        (0, ""), (1, "Town"), (2, "Prices"), (2, "In a list"), (3, "Deep"),
    ]  # fmt: skip
    assert all(PAGE[section.start :].lstrip("#- ").startswith(section.title) for section in sections)
    text, missing, tokens = outline(sections, 1_000, counter)
    assert (
        missing == 0 and f"    - Deep (start {PAGE.index('### Deep')}, " in text and tokens == counter.count([text])[0]
    )


def test_an_outline_that_does_not_fit_says_how_many_headings_are_left_out(counter: TokenCounter) -> None:
    sections = sections_of("\n\n".join(f"# Chapter {n}\n\n## Part {n}" for n in range(50)), counter)
    text, missing, tokens = outline(sections, 900, counter)
    assert missing == 50 and "Part" not in text and text.count("Chapter") == 50 and tokens <= 900
    text, missing, tokens = outline(sections, 100, counter)
    assert 0 < text.count("Chapter") == 100 - missing and tokens <= 100


def test_a_later_part_names_its_headings_and_the_head_of_its_table() -> None:
    assert above(PAGE, PAGE.index("|lorry")) == "Town > Prices\n|Who|Price|"
    assert above(PAGE, PAGE.index("|Who")) == above(PAGE, PAGE.index("```")) == "Town > Prices"
    assert above(PAGE, PAGE.index("Last")) == "Town > In a list > Deep"
    table = "# Town\n\n<table><tr><th colspan=2>Price<tr><td>car<td>4<tr><td>lorry<td>9</table>\n\nEnd."
    assert above(table, table.index("<tr><td>lorry")) == "Town\n<table><tr><th colspan=2>Price"
    assert above(table, table.index("End")) == "Town"
