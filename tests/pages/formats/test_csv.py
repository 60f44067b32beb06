"""CSV and TSV: no cell is lost, and a header row needs evidence."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import at_most
from tests.pages.formats.reading import cleaned, survives_damage, tree_of

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats._sheets.grid import has_header
from prunus.pages.formats.csv import Engine, delimiter_of

PORTS = "port,height,since\nInner,2.5,1932\nOuter,3.0,1951\n"
TABLE = "<table><thead><tr><th>port<th>height<th>since<tbody><tr><td>Inner<td>2.5<td>1932<tr><td>Outer<td>3.0<td>1951</table>"


def test_a_table_with_its_header() -> None:
    assert cleaned(Engine(), PORTS.encode()) == TABLE


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", ","])
def test_the_delimiter_is_found(delimiter: str) -> None:
    assert cleaned(Engine(), PORTS.replace(",", delimiter)) == TABLE
    assert cleaned(Engine(), f"sep={delimiter}\n" + PORTS.replace(",", delimiter)) == TABLE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name;price\nA;1,5\nB;2,5", ";"),
        ("1,5;2,5\n1,6;2,6", ";"),
        ("a,b\n1;x,2\n3,4", ","),
        ('a,b\n"x;y",1\n"z;w",2', ","),
        ("a\tb, c\n1\t2, 3\n", "\t"),
        ("one column\nonly", ","),
        ("", ","),
    ],
)
def test_the_delimiter_splits_most_rows_alike(text: str, expected: str) -> None:
    assert delimiter_of(text) == expected


def test_quotes_line_ends_and_ragged_rows() -> None:
    text = 'a_b,c_d\r\n"x, ""y""","two\r\nlines"\r\n1\r\n1,2,3\r\n\r\n,last\r\n'
    assert cleaned(Engine(), text) == (
        '<table><thead><tr><th>a_b<th>c_d<tbody><tr><td>x, "y"<td>two<br>lines<tr><td>1<tr><td>1<td>2<td>3'
        "<tr><td><td>last</table>"
    )


def test_a_quote_after_a_space_encloses_its_cell() -> None:
    assert cleaned(Engine(), 'port_a, town_b\n"Inner", "Pell, east"\n"Outer",  "Vor ""x"""\n') == (
        '<table><thead><tr><th>port_a<th>town_b<tbody><tr><td>Inner<td>Pell, east<tr><td>Outer<td>Vor "x"</table>'
    )


def test_a_quote_that_is_never_closed_swallows_nothing() -> None:
    text = 'size,name\n5",pipe\n7,rod\n"9,bar\n' + "1,x\n" * 300
    found = cleaned(Engine(), text)
    assert '<td>5"<td>pipe' in found and '<td>"9<td>bar' in found and found.count("<td>x") == 300


SLOPPY = {
    "an inch": ('2,"Pipe 12" long, copper",9', ['2\tPipe 12" long, copper\t9']),
    "two inches": ('2,"5" x 7"",9', ['2\t"5" x 7""\t9']),
    "an inch at the end": ('2,"Pipe, 12"" ,9', ['2\t"Pipe\t12""\t9']),
    "words after the quote": ('2,"a"b,"c, d"', ['2\t"a"b\tc, d']),
    "never closed": ('2,"a,9\n3,"b,c",8', ['2\t"a\t9', "3\tb,c\t8"]),
    "stray quotes close nothing in another line": ('2, "a" b,9\n3,c "d",8', ['2\t"a" b\t9', '3\tc "d"\t8']),
    "a backslash": (r'2,"say \"hi\", then go",9', ['2\tsay "hi", then go\t9']),
    "a backslash that escapes nothing": ('2,"C:\\",9\n3,"x"y,8', ["2\tC:\\\t9", '3\t"x"y\t8']),
    "lines": ('2,"two\n\nlines ""x""",9\n3,"a"b,', ["2\ttwo", 'lines "x"\t9', '3\t"a"b']),
}


@pytest.mark.parametrize(("rows", "expected"), SLOPPY.values(), ids=SLOPPY)
def test_a_badly_quoted_row_leaves_the_others_in_their_columns(rows: str, expected: list[str]) -> None:
    found = tree_of(Engine(), f'sep=,\n1,"Bolt, steel",5"\n{rows}\n7,"Nut, ""x""",6').canonical
    assert found.split("\n") == ['1\tBolt, steel\t5"', *expected, '7\tNut, "x"\t6']


def test_markup_in_cells_is_text() -> None:
    assert "<td>&lt;b>x&lt;/b><td>a & b" in cleaned(Engine(), "id,note\n<b>x</b>,a & b\n")


HEADERS = {
    "numbers below": ([["Port", "Depth"], ["Inner", "2.5"]], True),
    "measures below": ([["Port", "Depth"], ["Inner", "2.5 m"]], True),
    "dates below": ([["Port", "Seit"], ["Inner", "2024-05-01"]], True),
    "a known word": ([["Name", "Beschreibung"], ["Inner", "quiet"]], True),
    "names of programs": ([["port_x", "b"], ["Inner", "quiet"]], True),
    "values that repeat": ([["Hafen", "Farbe"], *[[f"H{n}x", "rot"] for n in range(9)]], True),
    "words only": ([["Inner", "quiet"], ["Outer", "rough"]], False),
    "a number in it": ([["Name", "7"], ["Inner", "8"]], False),
    "twice the same": ([["Name", "Name"], ["a", "1"]], False),
    "a sentence": ([["Name", "x" * 90], ["a", "1"]], False),
    "one row": ([["Name", "Price"]], False),
    "one column": ([["Name"], ["a"]], False),
    "mostly empty": ([["Name", "", "", "x"], ["a", "1", "2", "3"]], False),
    "no corner": ([["", "2023 total", "2024 total"], ["a", "1", "2"]], True),
}


@pytest.mark.parametrize(("rows", "expected"), HEADERS.values(), ids=HEADERS)
def test_a_header_needs_evidence(rows: list[list[str]], expected: bool) -> None:
    assert has_header(rows) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_is_found(encoding: str) -> None:
    text = "Ort;Höhe\nGlücksburg;2,5\nFlensburg-Mürwik;3,5\nKöln;4\n"
    assert tree_of(Engine(), text.encode(encoding)).canonical == text.replace(";", "\t").strip()


def test_a_note_says_what_is_left_out() -> None:
    assert cleaned(Engine(max_rows=2), "a,b\nc,d\ne,f\n").startswith("<p><em>Rows 1 to 2 of 3 are shown.</em>")
    assert cleaned(Engine(max_cells=5), "a,b\nc,d\ne,f\n").startswith("<p><em>Rows 1 to 2 of 3 are shown.</em>")
    assert cleaned(Engine(max_columns=1), "a,b\nc,d\n").startswith("<p><em>Columns 1 to 1 of 2 are shown.</em>")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00\x01\x02" * 90, b"PK\x03\x04\0\0"])
def test_what_is_no_table_is_refused(content: bytes) -> None:
    with pytest.raises(BadPage, match=r"x\.csv: (the page is empty|this is binary data, not a CSV file)"):
        Engine().to_html(Page(content, url="x.csv"))


HOSTILE = {
    "ten million columns": "," * 10_000_000 + "x",
    "a million rows": "a,b\n" * 1_000_000,
    "quotes": '"' * 2_000_001,
    "a space and a quote a line": 'a, "b\n' * 200_000 + '"",',
    "stray quotes": ', "a"b' * 200_000,
    "pairs": ',""a' * 200_000,
    "a quote a line": '"a,b\n' * 200_000,
    "a long cell": '"' + "x" * 3_000_000 + '",b\nc,d',
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_tables_take_seconds_at_most(text: str) -> None:
    with at_most(10):
        Engine().to_html(Page(text))


@given(st.lists(st.lists(st.text(alphabet='ab1 ,;"\n.é', max_size=6), min_size=2, max_size=4), min_size=1, max_size=6))
def test_what_the_standard_library_writes_is_read_whole(rows: list[list[str]]) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows(rows)
    expected = [word for row in rows for cell in row for word in cell.replace(",", " ").replace(";", " ").split()]
    if expected:
        found = tree_of(Engine(), "sep=,\n" + buffer.getvalue()).canonical
        assert found.replace(",", " ").replace(";", " ").split() == expected


def test_damage_gives_html_or_one_clear_line() -> None:
    assert survives_damage(Engine(), PORTS.encode() * 20) > 60
