"""JSON and JSON Lines: lists of flat objects become tables, other values lists; no value is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import at_most
from tests.pages.formats.reading import cleaned, survives_damage, tree_of

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats.json import Engine

PORTS = [{"port": "Inner", "depth": 2.50, "tags": ["a", "b"]}, {"port": "Outer", "depth": 31, "open": True}]
TABLE = (
    "<table><thead><tr><th>port<th>depth<th>tags<th>open<tbody><tr><td>Inner<td>2.5<td>a, b<td><tr><td>Outer<td>31<td><td>true"
    "</table>"
)

SHAPES: dict[str, tuple[str, str]] = {
    "flat objects": (json.dumps(PORTS), TABLE),
    "lines": ("\n".join(map(json.dumps, PORTS)) + "\n", TABLE),
    "an object": ('{"a": 1, "b": {"c": [2, null], "d": ""}}', "<dl><dt>a<dd>1<dt>b<dd><dl><dt>c<dd><ul><li>2</ul><dt>d</dl></dl>"),
    "a matrix": ("[[1, 2], [3, 4]]", "<table><tr><td>1<td>2<tr><td>3<td>4</table>"),
    "a table in an object": (json.dumps({"ports": PORTS}), f"<dl><dt>ports<dd>{TABLE}</dl>"),
    "objects of different things": ('[{"a": 1}, {"b": 2}, {"c": 3}]', "<ul><li><dl><dt>a<dd>1</dl><li><dl><dt>b<dd>2</dl><li><dl><dt>c<dd>3</dl></ul>"),
    "nested objects": ('[{"a": {"b": 1}}, {"a": {"b": 2}}]', "<ul><li><dl><dt>a<dd><dl><dt>b<dd>1</dl></dl><li><dl><dt>a<dd><dl><dt>b<dd>2</dl></dl></ul>"),
    "numbers as written": ("[1.50, 1e3, 12345678901234567890, NaN]", "<ul><li>1.50<li>1e3<li>12345678901234567890<li>NaN</ul>"),
    "one key twice": ('{"a": 1, "a": 2}', "<dl><dt>a<dd><ul><li>1<li>2</ul></dl>"),
    "an address": ('{"at": "https://a.org/b?c"}', '<dl><dt>at<dd><a href="https://a.org/b?c">https://a.org/b?c</a></dl>'),
    "markup is text": ('["<b>x</b> & y"]', "<ul><li>&lt;b>x&lt;/b> & y</ul>"),
    "line ends": ('["a\\nb"]', "<ul><li>a<br>b</ul>"),
    "one value": ('"words"', "<p>words"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SHAPES.values(), ids=SHAPES)
def test_each_shape_of_json_has_its_html(text: str, expected: str) -> None:
    assert cleaned(Engine(), text.encode()).replace('"https://a.org/b?c"', "https://a.org/b?c") == expected.replace(
        '"https://a.org/b?c"', "https://a.org/b?c"
    )


VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text(alphabet="abc é<&", min_size=1, max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text("xyz", min_size=1, max_size=3), inner, max_size=4)),
    max_leaves=20,
)  # fmt: skip


def leaves(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [word for key, child in node.items() for word in [key, *leaves(child)]]
    if isinstance(node, list):
        return [word for child in node for word in leaves(child)]
    return (str(node).lower() if isinstance(node, bool) else str(node)).split()


@given(VALUES)
def test_no_value_is_lost(node: Any) -> None:
    expected = leaves(node)
    if [word for word in expected if word.strip()]:
        shown = tree_of(Engine(), json.dumps(node)).canonical.replace(",", " ").split()
        assert set(shown) == set(expected)
        assert len(shown) >= len(set(expected))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_encoding_is_found(encoding: str) -> None:
    assert tree_of(Engine(), '{"Ort": "Mürwik"}'.encode(encoding)).canonical == "Ort\nMürwik"


def test_a_line_that_is_no_json_is_shown_as_written() -> None:
    text = "".join(f'{{"a": {n}, "b": 1}}\n' for n in range(10)) + "{broken\n"
    found = cleaned(Engine(), text)
    assert "<em>Line 11 is no JSON and stands as written: {broken</em>" in found and found.count("<tr>") == 11


BAD = {
    "empty": (b"", "the page is empty"), "binary": (b"\x00\x01\x02" * 90, "binary data, not JSON"),
    "cut off": (b'{"a": [1, 2', r"not valid JSON \(line 1, column 12: "), "words": (b"words", "not valid JSON"),
    "deep": (b"[" * 200_000, "nested too deep|not valid JSON"), "comments": (b'{\n// x\n"a": 1}', r"line 2, column 1"),
    "two texts": (b"[1] [2]", "not valid JSON"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_json_is_one_line_that_says_where(content: bytes, reason: str) -> None:
    with pytest.raises(BadPage, match=reason):
        Engine().to_html(Page(content, url="x.json"))


def test_a_note_tells_of_each_limit() -> None:
    assert "2 more are not shown: the limit of values is reached." in cleaned(Engine(max_values=2), '["x", "y", "z"]')
    assert "1 more are not shown" in cleaned(Engine(max_values=2), '[{"a": 1}, {"a": 2}]')
    assert "1 more are not shown" in cleaned(Engine(max_values=2), '{"a": 1, "b": 2}')
    assert cleaned(Engine(max_depth=1), '{"a": {"b": [1]}}') == '<dl><dt>a<dd><pre><code>{"b": ["1"]}</code></pre></dl>'
    with pytest.raises(BadPage, match="over the limit of 3"):
        Engine(max_chars=3).to_html(Page("[1, 2]"))


HOSTILE = {
    "deep": "[" * 900 + "]" * 900,
    "deep objects": '{"a":' * 900 + "1" + "}" * 900,
    "keys": json.dumps([{f"k{n}": 1} for n in range(50_000)]),
    "wide and high": json.dumps([{f"k{n}": 1 for n in range(2000)}] + [{"k0": 1}] * 20_000),
    "a long number": "1" * 1_000_000,
    "many lists": "[" + "[]," * 500_000 + "1]",
    "bad lines": "{x\n" * 300_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_json_takes_seconds_at_most(text: str) -> None:
    with at_most(10):
        try:
            assert len(Engine().to_html(Page(text))) < 30_000_000
        except BadPage as error:
            assert "JSON" in str(error) or "deep" in str(error)  # noqa: PT017 - some are refused


def test_damage_gives_html_or_one_clear_line() -> None:
    assert survives_damage(Engine(), json.dumps({"ports": PORTS * 9}, ensure_ascii=False).encode()) > 3
