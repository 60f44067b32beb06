"""Excel workbooks: their visible sheets become sections and tables."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import at_most
from tests.extras import need
from tests.pages.formats.reading import cleaned, survives_damage, tree_of

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats._common.allowance import Allowance
from prunus.pages.formats._sheets.numbers import Code, plain
from prunus.pages.formats._sheets.regions import Sheet, to_markup
from prunus.pages.formats._sheets.workbook import place_of, range_of
from prunus.pages.formats.xlsx import Engine

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(sheets: dict[str, str], states: dict[str, str] | None = None, **parts: str) -> bytes:
    """Write a small workbook by hand: the XML inside each sheet's element by its title."""
    listed, links, buffer = "", "", io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        for number, (title, body) in enumerate(sheets.items(), 1):
            state = f' state="{states[title]}"' if states and title in states else ""
            listed += f'<sheet name="{title}" sheetId="{number}"{state} r:id="r{number}"/>'
            links += (
                f'<Relationship Id="r{number}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{number}.xml"/>'
            )
            package.writestr(f"xl/worksheets/sheet{number}.xml", f'<worksheet xmlns="{MAIN}">{body}</worksheet>')
        for name, body in parts.items():
            links += f'<Relationship Id="{name}" Type="{RELATIONS}/{name}" Target="{name}.xml"/>'
            package.writestr(f"xl/{name}.xml", body)
        package.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>'
        )
        package.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{links}</Relationships>")
    return buffer.getvalue()


def rows(*texts: list[str | float]) -> str:
    """Write rows of texts and numbers."""
    written = ""
    for row in texts:
        cells = "".join(
            f"<c><v>{cell}</v></c>" if isinstance(cell, float | int) else f'<c t="inlineStr"><is><t>{cell}</t></is></c>'
            for cell in row
        )
        written += f"<row>{cells}</row>"
    return f"<sheetData>{written}</sheetData>"


PORTS = rows(["Port", "Depth"], ["Inner", 2.5], ["Outer", 31])
TABLE = "<table><thead><tr><th>Port<th>Depth<tbody><tr><td>Inner<td>2.5<tr><td>Outer<td>31</table>"


def test_visible_sheets_are_sections_in_order() -> None:
    content = workbook(
        {"Ports &amp; more": PORTS, "Deep": PORTS, "Tides": PORTS},
        {"Deep": "veryHidden"},
    )
    assert cleaned(Engine(), content) == (
        f"<section><h2><data value=sheet>Ports & more</data></h2>{TABLE}</section><section><h2><data value=sheet>Tides</data></h2>{TABLE}</section>"
    )


def test_cells_outside_of_a_row_are_those_of_the_first_row() -> None:
    body = '<sheetData><c t="inlineStr"><is><t>Port</t></is></c><row><c><v>2</v></c></row></sheetData>'
    assert "Port" in cleaned(Engine(), workbook({"S": body}))


@pytest.mark.full
def test_a_workbook_that_a_program_wrote() -> None:
    openpyxl = need("openpyxl")
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.title = "Tides"
    sheet["A1"] = "Heights at the harbour"
    sheet.merge_cells("A1:C1")
    sheet.append(["Port", "High", "Low"])
    sheet.append(["Inner", 2.5, datetime.date(2024, 5, 1)])
    sheet.append(["Outer", 0.256, datetime.datetime(2024, 5, 2, 18, 30)])
    sheet["B4"].number_format = "0.0%"
    sheet["C4"].number_format = "d mmm yyyy h:mm AM/PM"
    sheet.append(["Hidden", 1, 2])
    sheet.row_dimensions[5].hidden = True
    sheet["D2"], sheet["D3"], sheet["D4"] = "Secret", "s1", "s2"
    sheet.column_dimensions["D"].hidden = True
    sheet["A9"] = "A note below\nin two lines"
    sheet["F2"], sheet["G2"], sheet["F3"], sheet["G3"] = "id", "ok", 7, True
    sheet["A3"].hyperlink = "https://example.org/inner"
    groups: Any = book.create_sheet("Groups")
    for row in (["Region", "Height", None], [None, "min", "max"], ["North", 1, 2], [None, 3, 4]):
        groups.append(row)
    for span in ("A1:A2", "B1:C1", "A3:A4"):
        groups.merge_cells(span)
    book.create_sheet("Nothing").sheet_state = "hidden"
    buffer = io.BytesIO()
    book.save(buffer)
    assert cleaned(Engine(), buffer.getvalue()) == (
        "<section><h2><data value=sheet>Tides</data></h2><table><caption>Heights at the harbour</caption><thead><tr><th>Port<th>High<th>Low"
        "<tbody><tr><td><a href=https://example.org/inner>Inner</a><td>2.5<td>2024-05-01"
        "<tr><td>Outer<td>25.6%<td>2 May 2024 6:30 PM</table>"
        "<table><thead><tr><th><data value=row-2>id</data><th>ok<tbody><tr><td>7<td>TRUE</table><p><data value=row-9>A note below<br>in two lines</data></section>"
        "<section><h2><data value=sheet>Groups</data></h2><table><thead><tr><th rowspan=2>Region<th colspan=2>Height<tr><th>min<th>max"
        "<tbody><tr><td rowspan=2>North<td>1<td>2<tr><td>3<td>4</table></section>"
    )


@pytest.mark.full
def test_a_declared_table_has_a_header_without_further_evidence() -> None:
    openpyxl = need("openpyxl")
    from openpyxl.worksheet.table import Table

    book = openpyxl.Workbook()
    sheet: Any = book.active
    for row in (["Inner", "quiet"], ["Outer", "rough"]):
        sheet.append(row)
    sheet.add_table(Table(displayName="Ports", ref="A1:B2"))
    buffer = io.BytesIO()
    book.save(buffer)
    assert "<thead><tr><th>Inner<th>quiet<tbody>" in cleaned(Engine(), buffer.getvalue())


def test_shared_strings_keep_their_runs_and_leave_readings_out() -> None:
    texts = (
        "<sst><si><r><t>Hafen </t></r><r><t>West</t></r><rPh><t>reading</t></rPh></si><si><t>a_x000A_b</t></si></sst>"
    )
    body = '<sheetData><row><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>99</v></c></row></sheetData>'
    assert cleaned(Engine(), workbook({"S": body}, sharedStrings=texts)) == (
        "<section><h2><data value=sheet>S</data></h2><table><tr><td>Hafen West<td>a<br>b</table></section>"
    )


def test_numbers_that_a_cell_raises_or_lowers_are_no_part_of_the_number_before() -> None:
    def cell(base: str, align: str, script: str) -> str:
        raised = f'<r><rPr><vertAlign val="{align}"/></rPr><t>{script}</t></r>'
        return f"<r><t>{base}</t></r>{raised}<r><t> a</t></r>"

    texts = f"<sst><si>{cell('10', 'superscript', '6')}</si><si>{cell('1', 'superscript', 'st')}</si></sst>"
    inline = f'<c t="inlineStr"><is>{cell("H", "subscript", "2")}</is></c><c t="inlineStr"><is><t>2</t></is></c>'
    body = f'<sheetData><row><c t="s"><v>0</v></c><c t="s"><v>1</v></c>{inline}</row></sheetData>'
    assert "<td>10<sup>6</sup> a<td>1<sup>st</sup> a<td>H<sub>2</sub> a<td>2" in cleaned(
        Engine(), workbook({"S": body}, sharedStrings=texts)
    )


def test_formulas_show_what_was_saved_with_them() -> None:
    body = '<sheetData><row><c t="str"><f>EXEC("x")</f><v>done</v></c><c><f>1+1</f><v>2</v></c><c t="e"><f>1/0</f><v>#DIV/0!</v></c></row></sheetData>'
    found = cleaned(Engine(), workbook({"S": body}))
    assert "<td>done<td>2<td>#DIV/0!" in found and "EXEC" not in found


AREAS = {
    "one empty row": (
        {(0, 0): "a", (0, 1): "b", (2, 0): "c"},
        "<table><tr><td>a<td>b</table><p><data value=row-3>c</data>",
    ),
    "one empty column": (
        {(0, 0): "a", (1, 0): "b", (0, 2): "c"},
        "<table><tr><td>a<tr><td>b</table><p><data value=row-1>c</data>",
    ),
    "an empty cell is no gap": ({(0, 0): "a", (1, 1): "b"}, "<table><tr><td>a<td><tr><td><td>b</table>"),
    "far away": ({(0, 0): "a", (900_000, 9000): "b"}, "<p>a<p><data value=row-900001>b</data>"),
    "one table with a gap": (
        {(0, 0): "Port", (0, 1): "Depth", (1, 0): "x", (1, 1): "1", (3, 0): "y", (3, 1): "2"},
        "<table><thead><tr><th>Port<th>Depth<tbody><tr><td>x<td>1<tr><td><data value=row-4>y</data><td>2</table>",
    ),
}


@pytest.mark.parametrize(("cells", "expected"), AREAS.values(), ids=AREAS)
def test_empty_rows_and_columns_separate_tables(cells: dict[tuple[int, int], str], expected: str) -> None:
    import prunus

    html = prunus.clean(to_markup(Sheet("S", cells), Allowance("")))
    assert html == f"<section><h2><data value=sheet>S</data></h2>{expected}</section>"


@pytest.mark.parametrize(
    ("grid", "headers"),
    [
        ([["", "2022", "", "2023", ""], ["Port", "In", "Out", "In", "Out"], ["Pell", "1", "2", "3", "4"]], 2),
        ([["Port", "Ships", "", "Cars", ""], ["", "in", "out", "in", "out"], ["Pell", "1", "2", "3", "4"]], 2),
        ([["", "2022", "2023"], ["Pell", "1", "2"], ["Vor", "3", "4"]], 0),
        ([["x", "1999", "", "2001", ""], ["Vor", "7", "8", "9", "10"], ["Pell", "1", "2", "3", "4"]], 0),
        ([["one", "two", "", "three"], ["four", "five", "six", "seven"], ["eight", "nine", "ten", "eleven"]], 0),
    ],
)
def test_a_header_of_two_rows_names_groups_of_columns(grid: list[list[str]], headers: int) -> None:
    cells = {(row, column): cell for row, line in enumerate(grid) for column, cell in enumerate(line) if cell}
    head = to_markup(Sheet("S", cells), Allowance("")).partition("<tbody>")[0]
    assert head.count("<tr>") * head.count("<thead>") == headers


def test_merged_years_head_their_columns() -> None:
    cells = {(0, 1): "2022", (0, 3): "2023", (1, 1): "In", (1, 2): "Out", (1, 3): "In", (1, 4): "Out", (0, 0): "Port"}
    body = {(2, column): text for column, text in enumerate(["Pell", "1", "2", "3", "4"])}
    spans = {(0, 0): (2, 1), (0, 1): (1, 2), (0, 3): (1, 2)}
    html = to_markup(Sheet("S", cells | body, spans), Allowance(""))
    assert html.partition("<tbody>")[0].count("<th") == 7 + html.count("<thead>") == 8


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 8), st.integers(0, 8)),
        st.from_regex(r"[a-z]{3}[0-9]", fullmatch=True),
        min_size=1,
        max_size=30,
    )
)
def test_every_cell_is_in_one_area(cells: dict[tuple[int, int], str]) -> None:
    body = ""
    for row in range(9):
        for column in range(9):
            if (row, column) in cells:
                body += f'<row r="{row + 1}"><c r="{"ABCDEFGHI"[column]}{row + 1}" t="str"><v>{cells[row, column]}</v></c></row>'
    found = tree_of(Engine(), workbook({"S": f"<sheetData>{body}</sheetData>"})).canonical.split()
    assert sorted(found[1:]) == sorted(cells.values())


NUMBERS = [
    (45413, "yyyy-mm-dd", "2024-05-01"), (45413.75, "m/d/yy h:mm AM/PM", "5/1/24 6:00 PM"), (1.5, "[h]:mm", "36:00"),
    (-1234.5, "#,##0.00;[Red](#,##0.00)", "(1,234.50)"), (0.256, "0.0%", "25.6%"), (12, '0" kg"', "12 kg"),
    (1234567, '#,##0.0,,"M"', "1.2M"), (7, "00000", "00007"), (0.5, "#.##", ".5"), (3.14159, "0.0##", "3.142"),
    (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"), (123456, "0.00E+00", "1.23E+05"), (0, '0;-0;"-"', "-"),
    (45413, "dddd, d mmmm yyyy", "Wednesday, 1 May 2024"), (2, "_($* #,##0.00_)", "$2.00"), (5, "@", "5"),
    (0.999, "# ?/?", "1"), (1.5, "# ?/?", "1 1/2"), (0.3125, "# ??/16", "5/16"), (-2.25, "?/?", "-9/4"),
    (123456789, "000-00-0000", "123-45-6789"), (5551234, "[<=9999999]###-####;(###) ###-####", "555-1234"),
    (8005551234, "[<=9999999]###-####;(###) ###-####", "(800) 555-1234"), (-5, "$#,##0", "-$5"), (-0.4, "0", "0"),
    (12345.6, "##0.0E+0", "12.3E+3"), (9.996, "0.00E+00", "1.00E+01"), (1234567, "0.0,,", "1.2"), (5, "0;;", "5"),
    (1234, "0,.0", "1.2"), (-5, "0;;", ""), (0, "0;-0;;@", ""), (-5, "#,##0;", "-5"), (0, "0.00E+00", "0.00E+00"),
    (45413, 'ggge"年"m"月"d"日"', "2024年5月1日"), (5, "0,000", "0,005"), (12345678901234.5, "0", "12345678901235"), (3.14159, "[h]:mm:ss.0", "75:23:53.4"), (3.14159, "[s].000", "271433.376"),
    (1 / 3, "", "0.333333333"), (1e-9, "", "0.000000001"), (1.123459e-10, "", "1.12346E-10"), (12.5, "", "12.5"),
    (-1234567.891234, "", "-1234567.891"), (4006381333931, "", "4006381333931"), (1.5e15 + 0.5, "", "1.5E+15"),
    (1e300, "#,##0", "1E+300"), (5e-324, "0.0E+0", "4.9E-324"), (float("nan"), "0.0", "nan"), (-1, "yyyy", "-1"), (5, "", "5"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "code", "expected"), NUMBERS)
def test_numbers_are_shown_in_their_format(number: float, code: str, expected: str) -> None:
    assert (Code(code).format_number(number) if code else plain(number)) == expected


MILLIONS = '[>999999]#,,"M";[>999]#,"K";General'
ANSWERS = '[=1]"yes";[=0]"no";"unknown: "0'
CONDITIONS = [
    (2_500_000, MILLIONS, "3M"), (2_500, MILLIONS, "3K"), (25, MILLIONS, "25"), (-7, MILLIONS, "-7"),
    (999_999, MILLIONS, "1000K"), (1, ANSWERS, "yes"), (0, ANSWERS, "no"), (-3, ANSWERS, "-unknown: 3"),
    (5, '[>9]"high"', "5"), (50, '[Red][>=50]0.0;[Blue]0', "50.0"), (-50, '[Red][>=50]0.0;[Blue]0', "-50"),
    (-5, "[<0](0);0", "(5)"), (-5, "[>=0]0;(0)", "(5)"), (3, "[<>3]0;[=3]0.0", "3.0"), (3, "[>5]0;[<2]0", "3"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "code", "expected"), CONDITIONS)
def test_a_section_with_a_condition_shows_the_numbers_it_names(number: float, code: str, expected: str) -> None:
    assert Code(code).format_number(number) == expected


HALVES = [
    (43.625, "0.00", "43.63"), (-43.625, "0.00", "-43.63"), (2.5, "0", "3"), (0.5, "0", "1"), (1.005, "0.00", "1.01"),
    (0.285, "0%", "29%"), (2.675, "#,##0.00", "2.68"), (1234.5, "#,##0", "1,235"), (0.045, "0.0%", "4.5%"),
    (1e15 + 0.5, "0.0", "1000000000000000.0"), (0.1 + 0.2, "0.00000000000000000", "0.300000000000000"),
    (2.5e-7, "0.000000", "0.000000"), (5e-7, "0.000000", "0.000001"), (1.25, "0.0E+0", "1.3E+0"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "code", "expected"), HALVES)
def test_halves_are_rounded_away_from_zero_by_the_first_15_digits_as_in_excel(
    number: float, code: str, expected: str
) -> None:
    assert Code(code).format_number(number) == expected


@given(st.floats(), st.text(alphabet='0#?.,%E+-/;"[]\\_*ymdhsAPG$@<=>1 general', max_size=14))
def test_any_format_code_accepts_any_number(number: float, code: str) -> None:
    assert isinstance(Code(code).format_number(number), str)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("A1", (0, 0)), ("$XFD$2", (1, 16383)), ("XFE1", None), ("A0", None), ("7", None), ("", None)],
)
def test_references(text: str, expected: tuple[int, int] | None) -> None:
    assert place_of(text) == expected
    assert range_of(f"{text}:{text}") == ((expected, expected) if expected else None)


def damaged(part: str, content: str) -> bytes:
    buffer = io.BytesIO(workbook({"S": PORTS}))
    with zipfile.ZipFile(buffer, "a") as package:
        package.writestr(part, content)
    return buffer.getvalue()


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><worksheet>&b;</worksheet>'
BAD = {
    "empty": (b"", "the page is empty"),
    "text": (b"port,depth\n", "this is no Excel workbook"),
    "cut off": (workbook({"S": PORTS})[:-200], "damaged"),
    "another document": (workbook({}), "shows no sheet"),
    "a sheet that is not listed": (workbook({}, worksheet="x"), "shows no sheet"),
    "no workbook": (damaged("nothing", "x").replace(b"xl/workbook.xml", b"xl/wOrkbxxk.xml"), "lacks its part"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_workbook_is_one_clear_line(content: bytes, reason: str) -> None:
    with pytest.raises(BadPage, match=reason) as caught:
        Engine().to_html(Page(content, url="x.xlsx"))
    assert str(caught.value).startswith("x.xlsx: ") and "\n" not in str(caught.value)


def test_entities_and_document_types_are_refused() -> None:
    content = workbook({"S": PORTS}, sharedStrings=BOMB)
    with pytest.raises(BadPage, match="declares a document type"):
        Engine().to_html(Page(content))


def test_a_bomb_ends_at_the_limit() -> None:
    content = workbook({"S": "<sheetData>" + "<row><c t='n'><v>10</v></c></row>" * 80_000 + "</sheetData>"})
    assert len(content) < 20_000
    with pytest.raises(BadPage, match="unpacks to more than 2 MiB"):
        Engine(max_mb=2).to_html(Page(content))


def test_cells_over_the_limit_are_left_out_with_a_note() -> None:
    found = cleaned(Engine(max_cells=3), workbook({"S": PORTS}))
    assert "<em>The sheet is cut at row 2: the limit of cells is reached.</em>" in found and "31" not in found
    with pytest.raises(BadPage, match="more than 5 shared letters; split the document"):
        Engine(max_chars=5).to_html(
            Page(workbook({"S": PORTS}, sharedStrings="<sst><si><t>seven letters</t></si></sst>"))
        )


HOSTILE = {
    "merged": "<sheetData><row><c><v>1</v></c></row></sheetData><mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * 9000 + "</mergeCells>",
    "columns": '<cols><col min="1" max="999999999" hidden="1"/></cols>' + PORTS,
    "far": '<sheetData><row r="999999999"><c r="XFD1048576"><v>1</v></c></row></sheetData>',
    "diagonal": "<sheetData>" + "".join(f'<row r="{n}"><c r="{"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 26]}{n}"><v>1</v></c></row>' for n in range(1, 20000, 2)) + "</sheetData>",
    "wide and high": "<sheetData><row>" + "<c><v>1</v></c>" * 9000 + "</row>" + "<row><c><v>1</v></c></row>" * 9000 + "</sheetData>",
    "deep": "<a>" * 500,
    "a row before the first": '<sheetData><row r="0"><c><v>1</v></c></row></sheetData>',
}  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_sheets_take_seconds_at_most(body: str) -> None:
    with at_most(10):
        try:
            found = Engine().to_html(Page(workbook({"S": body})))
            assert len(found) < 10_000_000
        except BadPage as error:
            assert "deep" in str(error)  # noqa: PT017 - only one of them is refused


def test_damage_gives_html_or_one_clear_line() -> None:
    survives_damage(Engine(), workbook({"S": PORTS * 3, "T": PORTS}))


def test_formulas_without_a_saved_value_are_counted() -> None:
    body = (
        '<sheetData><row><c t="str"><f>A1</f><v></v></c><c><v>7</v></c><c><f>1+1</f></c><c><f>2+2</f><v/></c></row>'
        '<row r="3" hidden="1"><c><f>3+3</f></c></row></sheetData>'
    )
    found = cleaned(Engine(), workbook({"S": body}))
    assert "2 formulas have no saved value" in found
    assert "<p>7" in found


def test_raised_lowered_and_struck_parts_of_cells() -> None:
    up, gone = '<rPr><vertAlign val="superscript"/></rPr>', "<rPr><strike/></rPr>"
    plainly = '<rPr><strike val="0"/><vertAlign val="baseline"/></rPr>'
    shared = (
        f"<si><r><t>5 x 10</t></r><r>{up}<t>6</t></r><r>{plainly}<t xml:space='preserve'> per m</t></r><r>{up}<t>2</t></r></si>"
        f"<si><r>{gone}<t>500 </t></r><r>{gone}<t>EUR</t></r><r>{plainly}<t>&#10;700 &lt;EUR&gt;</t></r></si>"
        f"<si><r><t>not this, </t></r><r>{plainly}<t>but this</t></r></si><si><t>plain</t></si>"
    )
    down = '<rPr><vertAlign val="subscript"/></rPr>'
    cells = "".join(
        f'<row><c t="s" s="{s}"><v>{v}</v></c><c><v>{v}</v></c></row>' for v, s in ((0, 0), (1, 0), (2, 1), (3, 1))
    )
    cells += f'<row><c t="inlineStr"><is><r><t>H</t></r><r>{down}<t>2</t></r><r><t>O</t></r></is></c><c s="1"><v>90</v></c></row>'
    styles = (
        f'<styleSheet xmlns="{MAIN}"><fonts><font/><font><strike/></font></fonts><cellXfs><xf/><xf fontId="1"/></cellXfs>'
        "<dxfs><dxf><font><strike/></font></dxf></dxfs></styleSheet>"
    )
    content = workbook(
        {"A": f"<sheetData>{cells}</sheetData>"}, sharedStrings=f'<sst xmlns="{MAIN}">{shared}</sst>', styles=styles
    )
    html = Engine().to_html(Page(content))
    assert "<td>5 x 10<sup>6</sup> per m<sup>2</sup></td>" in html
    assert "<td><s>500 EUR</s><br>700 &lt;EUR&gt;</td>" in html
    assert "<td><s>not this,</s> but this</td>" in html, "a part with a font of its own is not struck by its cell"
    assert "<td><s>plain</s></td>" in html
    assert "<td>H<sub>2</sub>O</td><td><s>90</s></td>" in html


def test_letters_of_symbol_fonts_are_what_they_show() -> None:
    signs = '<rPr><rFont val="Wingdings"/></rPr>'
    shared = f"<si><t>ü</t></si><si><r><t>done </t></r><r>{signs}<t>ü</t></r></si><si><r><rPr><rFont val='Arial'/></rPr><t>ü</t></r></si>"
    cells = "".join(f'<c t="s" s="{style}"><v>{text}</v></c>' for text in (0, 1, 2) for style in (0, 1))
    fonts = '<font><name val="Calibri"/></font><font><name val="Wingdings"/></font>'
    styles = f'<styleSheet xmlns="{MAIN}"><fonts>{fonts}</fonts><cellXfs><xf/><xf fontId="1"/></cellXfs></styleSheet>'
    content = workbook(
        {"A": f"<sheetData><row>{cells}</row></sheetData>"},
        sharedStrings=f'<sst xmlns="{MAIN}">{shared}</sst>',
        styles=styles,
    )
    found = re.findall("<td>(.*?)</td>", Engine().to_html(Page(content)))
    assert found == ["ü", "✓", "done ✓", "done ✓", "ü", "ü"]


def test_text_boxes_stand_behind_the_cells_of_their_sheet() -> None:
    drawing, shape = RELATIONS.replace("officeDocument", "drawingml"), "<xdr:sp><xdr:nvSpPr><xdr:cNvPr{}/></xdr:nvSpPr>"
    spaces = f'xmlns:xdr="{drawing.replace("relationships", "spreadsheetDrawing")}" xmlns:a="{drawing.replace("relationships", "main")}"'
    words = (
        "<xdr:txBody>" + "<a:p><a:r><a:t>Rates are net &amp; final.</a:t></a:r></a:p><a:p/>" + "</xdr:txBody></xdr:sp>"
    )
    boxes = shape.format("") + words + shape.format(' hidden="1"') + words.replace("Rates", "Secret")
    content = io.BytesIO(workbook({"A": rows(["Port"])}))
    with zipfile.ZipFile(content, "a") as package:
        package.writestr(
            "xl/drawings/drawing1.xml", f"<xdr:wsDr {spaces}><xdr:twoCellAnchor>{boxes}</xdr:twoCellAnchor></xdr:wsDr>"
        )
        link = f'<Relationship Id="d" Type="{RELATIONS}/drawing" Target="../drawings/drawing1.xml"/>'
        package.writestr("xl/worksheets/_rels/sheet1.xml.rels", f"<Relationships>{link}</Relationships>")
    html = Engine().to_html(Page(content.getvalue()))
    assert html.index("Port") < html.index("<p>Rates are net &amp; final.</p>") and "Secret" not in html


def test_a_merged_cell_whose_first_row_or_column_is_hidden_shows_in_the_rest() -> None:
    body = (
        '<cols><col min="2" max="3" hidden="1"/></cols><sheetData>'
        '<row r="1"><c r="A1" t="str"><v>Year</v></c><c r="B1" t="str"><v>Total</v></c><c r="F1" t="str"><v>Note</v></c></row>'
        '<row r="2" hidden="1"><c r="A2" t="str"><v>North</v></c><c r="F2" t="str"><v>gone</v></c></row>'
        '<row r="3"><c r="F3"><v>2</v></c></row><row r="4"><c r="F4"><v>3</v></c></row></sheetData><mergeCells>'
        '<mergeCell ref="A2:A4"/><mergeCell ref="B1:E1"/><mergeCell ref="F2:F2"/></mergeCells>'
    )
    html = Engine().to_html(Page(workbook({"S": body})))
    assert '<td rowspan="2">' in html and "North" in html and "gone" not in html
    assert '<th colspan="2">Total</th>' in html or '<td colspan="2">Total</td>' in html


@pytest.mark.parametrize(
    ("code", "text", "shown"),
    [
        (";;;", "secret", ""),
        ('@" kg"', "5", "5 kg"),
        ('0.00;-0.00;"nil";"see "@', "page 3", "see page 3"),
        ("_(* #,##0_);_(* (#,##0);_(@_)", " as it is ", " as it is "),
        ("@@", "ab", "abab"),
        ('0;0;0;"no text"', "a", "no text"),
        ("0.00", "a", "a"),
        ("General;General;General;General", "a", "a"),
        ('"x"@', "\ue000\ue005", "x\ue000\ue005"),
    ],
)
def test_texts_in_the_form_of_a_code(code: str, text: str, shown: str) -> None:
    assert Code(code).format_text(text) == shown


@pytest.mark.parametrize(
    ("code", "number", "shown"),
    [
        ("# ##0.00", 1234.5, "1 234.50"),
        ("# ##0.00", 12, "12.00"),
        ("# ##0.00", -1234.567, "-1 234.57"),
        ("# ##0.0#", 999999.999, "1000 000.0"),
        ('# ##0.00" €"', 0.5, "0.50 €"),
        ("# ##0.0 %", 12.5, "1 250.0 %"),
        ("# ##0.0 0", 5, "5"),
        ("# ##0.00,", 5, "5"),
    ],
)
def test_other_letters_than_commas_part_digits(code: str, number: float, shown: str) -> None:
    assert Code(code).format_number(number) == shown
