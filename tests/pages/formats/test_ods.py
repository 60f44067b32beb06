"""OpenDocument spreadsheets: their visible sheets become sections and tables."""

from __future__ import annotations

import io
import zipfile

import pytest
from tests.clock import at_most
from tests.pages.formats.reading import cleaned, survives_damage

import prunus
from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats.ods import Engine


def spreadsheet(body: str, styles: str = "") -> bytes:
    buffer = io.BytesIO()
    names = " ".join(f'xmlns:{prefix}="urn:{prefix}"' for prefix in ("office", "table", "text", "style", "xlink"))
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr(zipfile.ZipInfo("mimetype"), "application/vnd.oasis.opendocument.spreadsheet")
        package.writestr(
            "content.xml",
            f"<office:document-content {names}>{styles}<office:body>{body}</office:body></office:document-content>",
        )
    return buffer.getvalue()


def cell(text: str, **attrs: str) -> str:
    written = "".join(f' table:{key.replace("_", "-")}="{value}"' for key, value in attrs.items())
    return f"<table:table-cell{written}>{f'<text:p>{text}</text:p>' if text else ''}</table:table-cell>"


def row(*cells: str, **attrs: str) -> str:
    written = "".join(f' table:{key.replace("_", "-")}="{value}"' for key, value in attrs.items())
    return f"<table:table-row{written}>{''.join(entry if entry.startswith('<') else cell(entry) for entry in cells)}</table:table-row>"


def sheet(name: str, *rows: str, style: str = "", columns: str = "") -> str:
    return f'<table:table table:name="{name}" table:style-name="{style}">{columns}{"".join(rows)}</table:table>'


BODY = sheet(
    "Tides",
    row(cell("Heights &amp; depths", number_columns_spanned="2"), "<table:covered-table-cell/>"),
    row("Port", "Depth", "secret"),
    row("Inner", "2.5 m", "s1"),
    row("Hidden", "9", "s2", visibility="collapse"),
    row('Outer<text:s text:c="2"/>far', "31", "s3"),
    row("", number_rows_repeated="3"),
    row(
        "<table:table-cell><office:annotation><text:p>a comment</text:p></office:annotation><text:p>See "
        '<text:a xlink:href="https://a.org/">this</text:a></text:p><text:p>two</text:p></table:table-cell>'
    ),
    row("", number_rows_repeated="1048000"),
    columns='<table:table-column table:number-columns-repeated="2"/><table:table-column table:visibility="collapse"/>',
)
STYLES = '<style:style style:name="off"><style:table-properties table:display="false"/></style:style>'


def test_only_visible_rows_and_columns_are_shown() -> None:
    assert cleaned(Engine(), spreadsheet(BODY)) == (
        "<section><h2><data value=sheet>Tides</data></h2><table><caption>Heights & depths</caption><thead><tr><th>Port<th>Depth"
        "<tbody><tr><td>Inner<td>2.5 m<tr><td><data value=row-5>Outer far</data><td>31</table><p><a href=https://a.org/><data value=row-9>See this<br>two</data></a><aside><p><data value=aside-comment>Comment on A9:</data> a comment</aside></section>"
    )


def test_merged_and_repeated_cells() -> None:
    body = sheet(
        "S",
        row(cell("a", number_rows_spanned="2"), "b"),
        row("<table:covered-table-cell/>", "c"),
        row(cell("d", number_columns_repeated="2")),
    )
    assert cleaned(Engine(), spreadsheet(body)) == (
        "<section><h2><data value=sheet>S</data></h2><table><tr><td rowspan=2>a<td>b<tr><td>c<tr><td>d<td>d</table></section>"
    )


def test_a_row_that_is_repeated_over_and_over_is_written_so_often_and_then_named() -> None:
    body = sheet("S", row("a", "b"), row("c", "d", number_rows_repeated="1048000"), row("e", "f"))
    found = cleaned(Engine(), spreadsheet(body))
    assert "<tr><td>c<td>d<tr><td>c<td>d" in found and "<td><data value=row-1048002>e</data><td>f" in found
    assert found.count("<td>c") == 10_001
    assert "repeats the row above, 1,048,000 times in all" in found


BAD = {
    "empty": (b"", "empty"), "text": ("words", "this is no OpenDocument spreadsheet"), "no zip": (b"PK\x03\x04xx", "damaged"),
    "cut off": (spreadsheet(BODY)[:-60], "damaged"), "no sheet": (spreadsheet(""), "shows no cells"),
    "hidden": (spreadsheet(sheet("x", style="off"), STYLES), "shows no cells"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_spreadsheet_is_one_clear_line(content: bytes | str, reason: str) -> None:
    with pytest.raises(BadPage, match=reason):
        Engine().to_html(Page(content, url="x.ods"))


def test_a_flat_spreadsheet_is_read_like_a_zipped_one() -> None:
    names = " ".join(f'xmlns:{name}="urn:{name}"' for name in ("table", "text", "style", "xlink"))
    office = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    kind = 'office:mimetype="application/vnd.oasis.opendocument.spreadsheet"'
    deleted = "<table:tracked-changes><table:deletion><text:p>SECRET</text:p></table:deletion></table:tracked-changes>"
    flat = f"<?xml version='1.0'?><office:document {office} {names} {kind}>{STYLES}<office:body>{deleted}{BODY}</office:body></office:document>"
    for content in (flat.encode(), flat):
        assert prunus.clean(Page(content, url="harbour.fods")) == cleaned(Engine(), spreadsheet(BODY, STYLES))


def test_cells_over_the_limit_are_left_out_with_a_note() -> None:
    found = cleaned(Engine(max_cells=2), spreadsheet(sheet("S", row("a", "b"), row("c", "d")) + sheet("T", row("e"))))
    assert (
        found
        == "<section><h2><data value=sheet>S</data></h2><p><em>The sheet is cut at row 2: the limit of cells is reached.</em></p><table><tr><td>a<td>b</table></section>"
    )


HOSTILE = {
    "repeated": sheet("S", row(cell("x", number_columns_repeated="16384"), number_rows_repeated="1048576")),
    "columns": sheet("S", row("x"), columns='<table:table-column table:visibility="collapse" table:number-columns-repeated="99999999"/>'),
    "spans": sheet("S", *[row(*[cell("x", number_columns_spanned="99999", number_rows_spanned="99999")] * 50)] * 50),
}  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_sheets_take_seconds_at_most(body: str) -> None:
    with at_most(10):
        assert len(Engine(max_cells=50_000).to_html(Page(spreadsheet(body)))) < 10_000_000


def test_damage_gives_html_or_one_clear_line() -> None:
    survives_damage(Engine(), spreadsheet(BODY))


def test_formulas_without_a_saved_value_are_counted() -> None:
    computed = '<table:table-cell table:formula="of:=[.A1]+1"{}/>'
    saved = computed.format(' office:value-type="float" office:value="3"')
    found = cleaned(Engine(), spreadsheet(sheet("S", row("a", computed.format(""), saved))))
    assert "1 formula has no saved value" in found


def test_raised_lowered_and_struck_words_of_cells() -> None:
    def look(name: str, family: str, said: str) -> str:
        return f'<style:style style:name="{name}" style:family="{family}"><style:text-properties {said}/></style:style>'

    styles = (
        look("up", "text", 'style:text-position="super 58%"')
        + look("down", "text", 'style:text-position="-33% 58%"')
        + look("kept", "text", 'style:text-line-through-style="none"')
        + look("gone", "table-cell", 'style:text-line-through-style="solid"')
        + '<style:default-style style:family="table-cell"><style:text-properties style:text-line-through-type="single"/></style:default-style>'
    )
    span = '<text:span text:style-name="{}">{}</text:span>'.format
    struck = f'<table:table-cell table:style-name="gone"><text:p>5 x 10{span("up", "6")} </text:p><text:p>{span("kept", "new")}</text:p></table:table-cell>'
    body = sheet("A", row(cell(f"10{span('up', '6')} H{span('down', '2')}O"), cell("plain")), row(struck, cell("7")))
    html = Engine().to_html(Page(spreadsheet(body, f"<office:automatic-styles>{styles}</office:automatic-styles>")))
    assert "<th>10<sup>6</sup> H<sub>2</sub>O</th><th>plain</th>" in html
    assert "<td><s>5 x 10<sup>6</sup></s> <br>new</td><td>7</td>" in html


def test_cells_with_a_value_alone_show_it() -> None:
    def value(kind: str, said: str, inner: str = "") -> str:
        return f'<table:table-cell office:value-type="{kind}" {said}>{inner}</table:table-cell>'

    values = (
        value("string", 'office:string-value="Tea &amp; milk"'),
        value("float", 'office:value="5.50"'),
        value("percentage", 'office:value="0.07"'),
        value("currency", 'office:value="12" office:currency="EUR"'),
        value("date", 'office:date-value="2024-05-06T00:00:00"'),
        value("time", 'office:time-value="PT1H30M05.5S"'),
        value("boolean", 'office:boolean-value="true"'),
    )
    quiet = (
        value("float", 'office:value="1e400"'),
        value("float", 'office:value="ten"'),
        value("float", 'office:value="5"', "<text:p/>"),
        value("void", 'office:value="5"'),
        value("float", 'office:value="5"', "<text:p>five</text:p>"),
    )
    html = Engine().to_html(Page(spreadsheet(sheet("S", row("a", *values), row("b", *quiet)))))
    shown = (
        "<td>Tea &amp; milk</td><td>5.5</td><td>7%</td><td>12 EUR</td><td>2024-05-06</td><td>01:30:05</td><td>TRUE</td>"
    )
    assert shown in html
    assert "<td>b</td><td></td><td></td><td></td><td></td><td>five</td>" in html
