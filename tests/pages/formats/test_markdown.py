"""Markdown is converted to the HTML that web pages show for it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import at_most
from tests.pages.formats.reading import cleaned, survives_damage, tree_of

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats.markdown import MAX_NESTING, Engine, front_matter

TEXT = """---
title: "Tides & more"
date: 2024-05-01
lang: en
tags:
  - sea
---
Intro *text* with `code`, math $a^2<b$, a price of $5 and of $10. Note[^1], <b>raw</b><script>bad()</script>

## Heights

| Port | Height |
|------|-------:|
| Inner | 2 m |
| Outer | ~~3 m~~ |

- [x] done
- [ ] open
  1. nested
  2. two

$$
\\sum_i x_i
$$

Term
: its definition

![A map](map.png) and [a link](https://example.org/ "t").

[^1]: The *note*.

```python
def f(): return "<a>"
```
"""


def test_all_of_a_text_is_there_in_order() -> None:
    assert cleaned(Engine(), TEXT.encode()) == (
        "<html lang=en><title>Tides & more</title><h1>Tides & more</h1>"
        "<p>Intro <em>text</em> with <code>code</code>, math <code>a^2&lt;b</code>, a price of $5 and of $10. "
        "Note<sup><a href=#fn1>[1]</a></sup>, <b>raw</b>"
        "<h2>Heights</h2><table><thead><tr><th>Port<th>Height<tbody><tr><td>Inner<td>2 m"
        "<tr><td>Outer<td><s>3 m</s></table>"
        "<ul><li><input type=checkbox checked> done<li><input type=checkbox> open<ol><li>nested<li>two</ol></ul>"
        "<p><code>\\sum_i x_i</code><dl><dt>Term<dd>its definition</dl>"
        '<p><img src=map.png alt="A map"> and <a href=https://example.org/>a link</a>.'
        '<pre class=language-python><code>def f(): return "&lt;a>"\n</code></pre><section><ol><li>The <em>note</em>.</ol></section></html>'
    )


def test_math_is_marked_as_math() -> None:
    html = Engine().to_html(Page("x $a<b$\n\n$$c$$\n\n```math\nd\n```\n"))
    assert '<code class="math">a&lt;b</code>' in html
    assert '<p><code class="math">c</code></p>' in html
    assert '<p><code class="math">d</code></p>' in html


@pytest.mark.parametrize(
    ("text", "fields", "rest"),
    [
        ("---\ntitle: A\n---\nx", {"title": "A"}, "x"),
        ("+++\ntitle = 'A'\n+++\nx", {"title": "A"}, "x"),
        ("---\nTitle: A: b\ntags: [x]\n...\nx", {"title": "A: b", "tags": "[x]"}, "x"),
        ("---\nwords that are no field\n---\nx", {}, None),
        ("---\n\n---\nx", {}, None),
        ("text\n---\ntitle: A\n---\n", {}, None),
        ("---\ntitle: A\n", {}, None),
    ],
)
def test_a_front_matter_is_fields_between_rules(text: str, fields: dict[str, str], rest: str | None) -> None:
    assert front_matter(text) == (fields, text if rest is None else rest)


def test_the_front_matters_title_is_shown_where_the_text_has_no_title() -> None:
    assert cleaned(Engine(), "---\ntitle: A\n---\n# B\n\nx") == "<title>A</title><h1>B</h1><p>x"
    assert cleaned(Engine(), "---\ntitle: A\n---\nx") == "<title>A</title><h1>A</h1><p>x"


def test_the_encoding_is_found() -> None:
    text = "# Überfahrt\n\nDie Fähre fährt täglich außer samstags über die Förde nach Glücksburg.\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252"):
        assert (
            tree_of(Engine(), text.encode(encoding)).canonical == text.replace("# ", "").replace("\n\n", "\n").strip()
        )


@pytest.mark.parametrize("content", [b"", b" \n", b"\x00\x01\x02" * 90, b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_text_is_refused(content: bytes) -> None:
    with pytest.raises(BadPage, match=r"x\.md: (the page is empty|this is binary data, not Markdown)"):
        Engine().to_html(Page(content, url="x.md"))


def test_a_text_over_the_limit_is_refused() -> None:
    with pytest.raises(BadPage, match="11 characters are over the limit of 10; split the file"):
        Engine(max_chars=10).to_html(Page("x" * 11))


def test_when_the_time_is_up_no_word_is_lost_and_the_page_says_so() -> None:
    found = cleaned(Engine(seconds=0), "# A *b*\n\nc `d`\n\n- e")
    assert found.startswith("<h1>A *b*</h1><p>c `d`<ul><li>e</ul><p><em>3 paragraphs were too long")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "![" * 99_000,  # one paragraph: some 15 seconds
        f"| a | b |\n|---|---|\n| {'![' * 99_000} | b |",  # one cell
        "| a | b |\n|---|---|\n" + "| *x* | y |\n" * 50_000,
        "- a\n" * 100_000,
        "> " + "a\n" * 200_000,
    ],
    ids=["paragraph", "cell", "table", "list", "quote"],
)
def test_the_time_limit_holds_inside_a_paragraph_and_a_table_and_no_word_is_lost(text: str) -> None:
    engine = Engine(seconds=0.3)
    start = time.thread_time()
    html = engine.to_html(Page(text))
    assert time.thread_time() - start < 3
    assert html.count("![") + html.count("a") + html.count("x") >= text.count("![") + text.count("a") + text.count("x")
    assert "as written" in html


def test_a_note_tells_of_nesting_over_the_limit() -> None:
    assert f"more than {MAX_NESTING} deep" in cleaned(Engine(), "x\n\n" + ">" * 400 + " deep")


HOSTILE = {
    "images": "![" * 8000, "links": "[a](b" * 8000, "emphasis": "*a **a " * 8000, "ticks": "`" * 20000,
    "quotes": ">" * 20000, "lists": "- " * 20000, "table": "|".join("a" * 3000) + "\n" + "|".join("-" * 3000) + "\na" * 3000,
    "notes": "".join(f"[^{n}]" for n in range(3000)) + "\n\n" + "".join(f"[^{n}]: x\n" for n in range(3000)),
    "dollars": "$a" * 20000, "definitions": "a\n: b\n\n" * 4000, "tags": "<a\n" * 10000, "front": "---\n" + "a: b\n" * 20000,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_takes_seconds_at_most(text: str) -> None:
    with at_most(10):
        Engine().to_html(Page(text))


@given(st.text(alphabet="ab \n*_`[]()<>#-+|$!~:^\\&;1.\t", max_size=200))
def test_any_text_becomes_html(text: str) -> None:
    if text and not text.isspace():
        assert isinstance(Engine().to_html(Page(text)), str)


def test_damage_gives_html_or_one_clear_line() -> None:
    assert survives_damage(Engine(), TEXT.encode()) > 60
