"""Jupyter notebooks: text, code and outputs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.clock import at_most
from tests.pages.formats.reading import cleaned, survives_damage

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats.notebook import Engine


def code(source: Any, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {}}


def shown(**data: Any) -> dict[str, Any]:
    return {"output_type": "execute_result", "data": {key.replace("_", "/"): inner for key, inner in data.items()}}


def notebook(*cells: dict[str, Any], **metadata: Any) -> bytes:
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}).encode()


BOOK = notebook(
    {"cell_type": "markdown", "source": ["# Tides of *May*\n", "\n", "With $h<2$ and ![A map](attachment:map.png)."]},
    code(["import tides\n", "tides.show('<a>')"], {"output_type": "stream", "name": "stdout", "text": ["12 %\r", "99 %\n", "\x1b[31mdone\x1b[0m\n"]}),
    code("table", shown(text_html="<table><tr><th>Port<tr><td>Inner</table>", text_plain="  Port\n0 Inner")),
    code("draw()", shown(image_png="iVBOR", text_plain="<Figure size 640x480>"), shown(image_png="iVBOR", text_plain="Heights by day")),
    code("1/0", {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": ["\x1b[0;31mlong"] * 50}),
    code("sum", shown(text_latex="$$\\sum x$$", text_plain="Sum")),
    code("w", shown(text_html="<script>draw()</script><div></div>", text_plain="Widget(3)")),
    {"cell_type": "raw", "source": "as it is"},
    language_info={"name": "python"},
)  # fmt: skip


def test_cells_and_outputs_in_order() -> None:
    assert cleaned(Engine(), BOOK) == (
        "<title>Tides of *May</title><h1>Tides of <em>May</em></h1><p>With <code>h&lt;2</code> and "
        "<img src=#attachment-map.png alt=\"A map\">.<pre PY><code>import tides\ntides.show('&lt;a>')</code></pre>"
        "<pre><code>99 %\ndone\n</code></pre><pre PY><code>table</code></pre><table><tr><th>Port<tr><td>Inner</table>"
        "<pre PY><code>draw()</code></pre><figure><figcaption>Heights by day</figcaption></figure><pre PY><code>1/0</code></pre>"
        "<pre><code>ZeroDivisionError: division by zero</code></pre><pre PY><code>sum</code></pre>"
        "<p><code>\\sum x</code><pre PY><code>w</code></pre><pre><code>Widget(3)</code></pre><pre><code>as it is</code></pre>"
    ).replace("PY", "class=language-python")


def test_code_and_math_are_marked() -> None:
    html = Engine().to_html(Page(BOOK))
    assert '<code class="language-python">' in html and '<code class="math">\\sum x</code>' in html


def test_notebooks_of_version_three() -> None:
    book = {
        "nbformat": 3,
        "worksheets": [{"cells": [
            {"cell_type": "heading", "level": 2, "source": "Tides"},
            {"cell_type": "code", "input": "x", "outputs": [{"output_type": "pyout", "text": "7", "png": ""}, {"output_type": "pyout", "text": "8"}]},
        ]}],
    }  # fmt: skip
    assert cleaned(Engine(), json.dumps(book)) == (
        "<h2>Tides</h2><pre class=language-python><code>x</code></pre><figure><figcaption>7</figcaption></figure><pre><code>8</code></pre>"
    )


def test_a_long_output_is_cut_and_says_so() -> None:
    content = notebook(code("x", {"output_type": "stream", "text": "y" * 30}, shown(text_html="<p>" + "z" * 900)))
    found = cleaned(Engine(max_output=10), content)
    assert "<code>yyyyyyyyyy</code></pre><p><em>20 more characters of this output are not shown.</em>" in found
    assert "too large" in found


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"), (b"{}", "it has no cells"), (b"[1]", "it has no cells"), (b"{", "not valid JSON"),
        (BOOK[:300], "not valid JSON"), (b"[" * 200_000, "nested too deep|not valid JSON"), (b"\x00\x01" * 99, "binary"),
    ],
)  # fmt: skip
def test_what_is_no_notebook_is_one_clear_line(content: bytes, reason: str) -> None:
    with pytest.raises(BadPage, match=reason) as caught:
        Engine().to_html(Page(content, url="x.ipynb"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "cell",
    [None, 5, {}, {"cell_type": 7}, code(None), code({"a": 1}), code("x", {}), {"cell_type": "code", "outputs": {"a": 1}},
     {"cell_type": "heading", "level": "x", "source": 5}, code("x", {"output_type": "error"}), code([5, "y"])],
)  # fmt: skip
def test_odd_cells_do_no_harm(cell: Any) -> None:
    found = cleaned(
        Engine(), notebook({"cell_type": "markdown", "source": "before"}, cell, {"cell_type": "raw", "source": "after"})
    )
    assert found.startswith("<p>before") and found.endswith("<pre><code>after</code></pre>")


@pytest.mark.slow
def test_many_cells_take_seconds_at_most() -> None:
    with at_most(20):
        Engine(seconds=2).to_html(Page(notebook(*[{"cell_type": "markdown", "source": "![" * 50}] * 2000)))


def test_damage_gives_html_or_one_clear_line() -> None:
    survives_damage(Engine(), BOOK)
