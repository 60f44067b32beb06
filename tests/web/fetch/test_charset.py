"""Charsets of pages with right, wrong and missing labels; no letter becomes U+FFFD if some charset fits."""

from __future__ import annotations

import codecs

import pytest

from prunus.pages.clean.parse import decode
from prunus.pages.clean.walk import clean_tree

TEXTS = {
    "windows-1251": "Погода в Велмаре: ветер с моря усилится к вечеру, а уровень воды поднимется на сорок сантиметров. Съёмка «Маяка».",
    "koi8-r": "Погода в Велмаре: ветер с моря усилится к вечеру, а уровень воды поднимется на сорок сантиметров.",
    "shift_jis": "港の水位は毎朝六時に観測され、記録は資料館に保存されています。満潮の時刻はこの表のとおりです。",
    "euc-jp": "港の水位は毎朝六時に観測され、記録は資料館に保存されています。満潮の時刻はこの表のとおりです。",
    "gbk": "港口的水位每天早上六点观测一次，记录保存在资料馆里。满潮的时间如下表所示，请注意安全。",
    "big5": "港口的水位每天早上六點觀測一次，紀錄保存在資料館裡。滿潮的時間如下表所示，請注意安全。",
    "euc-kr": "항구의 수위는 매일 아침 여섯 시에 관측되며 기록은 자료관에 보관됩니다. 만조 시각은 아래 표와 같습니다.",
    "iso-8859-2": "Poziom wody w porcie mierzony jest codziennie o szóstej rano, a zapiski trafiają do muzeum. Źródło: żółta łódź.",
    "windows-1250": "Hladina v přístavu se měří každé ráno v šest hodin – zápisy se uchovávají v muzeu. Žluťoučký kůň.",
    "windows-1252": "Der Wasserstand im Hafen wird jeden Morgen um sechs Uhr gemessen – „für später“, heißt es. Größe: 5 €.",
    "windows-1253": "Η στάθμη του νερού στο λιμάνι μετριέται κάθε πρωί στις έξι και οι μετρήσεις φυλάσσονται στο μουσείο.",
    "windows-1255": "מפלס המים בנמל נמדד מדי בוקר בשעה שש, והרישומים נשמרים במוזיאון של העיר העתיקה.",
    "windows-1256": "يقاس منسوب المياه في الميناء كل صباح في الساعة السادسة وتحفظ السجلات في المتحف.",
    "utf-8": "Погода, 港の水位, 항구, żółta łódź, Größe – all in one page.",
    "utf-16-le": "Погода, 港の水位, 항구, żółta łódź, Größe – all in one page.",
    "utf-16-be": "Погода, 港の水位, 항구, żółta łódź, Größe – all in one page.",
}
"""One or two sentences in each encoding that old pages still use."""

GUESSED = frozenset({"windows-1250", "iso-8859-2", "utf-16-le", "utf-16-be"})
"""Ambiguous without a label: the first two share most letters, and UTF-16 without a byte order mark looks binary."""


def page(charset: str, meta: str = "", text: str = "") -> bytes:
    label = f'<meta charset="{meta}">' if meta else ""
    html = (
        f"<!doctype html><html><head>{label}<title>T</title></head><body><p>{text or TEXTS[charset]}</p></body></html>"
    )
    return html.encode(charset)


def words(content: bytes, header: str = "") -> str:
    return clean_tree(content, charset=header).canonical.removeprefix("T\n")


@pytest.mark.parametrize("charset", TEXTS)
def test_the_header_names_the_charset(charset: str) -> None:
    assert words(page(charset), charset.replace("utf-16-", "utf-16")) == TEXTS[charset]


@pytest.mark.parametrize("charset", [name for name in TEXTS if not name.startswith("utf-16")])
def test_the_page_names_the_charset(charset: str) -> None:
    assert words(page(charset, charset)) == TEXTS[charset]
    old = page(charset).replace(
        b"<title>", f'<meta http-equiv="Content-Type" content="text/html; charset={charset}"><title>'.encode(charset)
    )
    assert words(old) == TEXTS[charset]


@pytest.mark.parametrize("charset", [name for name in TEXTS if name not in GUESSED])
def test_nobody_names_the_charset(charset: str) -> None:
    assert words(page(charset)) == TEXTS[charset]


@pytest.mark.parametrize("charset", [name for name in TEXTS if name not in GUESSED and name != "utf-8"])
@pytest.mark.parametrize("header", ["", "utf-8"])
def test_a_page_that_is_wrongly_called_utf_8(charset: str, header: str) -> None:
    """The most common wrong label: a server default or a template's ``<meta>``. The bytes are not UTF-8, so it is ignored."""
    assert words(page(charset, "utf-8"), header) == TEXTS[charset]
    if header:
        assert words(page(charset), header) == TEXTS[charset]


@pytest.mark.parametrize("charset", [name for name in TEXTS if name not in GUESSED and name != "utf-8"])
def test_where_the_header_is_wrong_and_the_page_right_nothing_is_replaced_silently(charset: str) -> None:
    assert words(page(charset, charset), "utf-8") == TEXTS[charset]


@pytest.mark.parametrize(
    ("mark", "charset"),
    [(codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")],
)
@pytest.mark.parametrize("header", ["", "windows-1251", "utf-8", "shift_jis", "no-such-charset"])
def test_a_byte_order_mark_wins_over_every_label(mark: bytes, charset: str, header: str) -> None:
    content = mark + page(charset, "iso-8859-2")
    assert words(content, header) == TEXTS[charset]


def test_the_header_wins_over_the_page() -> None:
    """Both charsets fit; the HTML standard gives the HTTP header precedence."""
    assert words(page("windows-1251", "koi8-r"), "windows-1251") == TEXTS["windows-1251"]
    assert words(page("koi8-r", "windows-1251"), "koi8-r") == TEXTS["koi8-r"]


@pytest.mark.parametrize(
    "header", ["no-such-charset", "utf8mb4", '"windows-1251"', "none", "binary", "; ", "x" * 5_000, "идзл"]
)
def test_a_label_that_nobody_knows_is_passed_over(header: str) -> None:
    assert words(page("windows-1251", "windows-1251"), header) == TEXTS["windows-1251"]
    assert words(page("utf-8"), header) == TEXTS["utf-8"]


@pytest.mark.parametrize(("label", "charset"), [("latin1", "windows-1252"), ("iso-8859-1", "windows-1252"), ("us-ascii", "windows-1252"),
    ("gb2312", "gbk"), ("x-sjis", "shift_jis"), ("ks_c_5601-1987", "euc-kr"), ("cp1251", "windows-1251"), ("latin2", "iso-8859-2"),
    ("big5-hkscs", "big5"), ("x-gbk", "gbk"), ("UTF8", "utf-8")])  # fmt: skip
def test_labels_mean_what_browsers_take_them_to_mean(label: str, charset: str) -> None:
    assert words(page(charset, label)) == TEXTS[charset]
    assert words(page(charset), label) == TEXTS[charset]


def test_a_label_of_utf_16_inside_a_page_means_utf_8() -> None:
    assert words(page("utf-8", "utf-16")) == TEXTS["utf-8"]


def test_a_few_stray_bytes_cost_themselves_and_not_the_page() -> None:
    content = page("utf-8").replace(b" all in", b" \x93all\x94 in")
    assert words(content, "utf-8") == TEXTS["utf-8"].replace("all in", "\u201call\u201d in")


@pytest.mark.parametrize("charset", ["windows-1251", "shift_jis", "gbk", "big5", "euc-kr"])
def test_a_label_far_behind_is_not_needed(charset: str) -> None:
    """Browsers look only at the first 1,024 bytes."""
    content = page(charset, charset).replace(b"<meta", b"<!--" + b" " * 3_000 + b"--><meta")
    assert words(content) == TEXTS[charset]


@pytest.mark.parametrize("charset", ["windows-1251", "shift_jis", "gbk", "big5", "euc-kr", "iso-8859-2", "utf-16-le"])
@pytest.mark.parametrize(
    "header", ["windows-1251", "shift_jis", "gbk", "big5", "euc-kr", "iso-8859-2", "utf-16le", "utf-8"]
)
def test_no_wrong_header_leaves_replacement_characters_where_the_page_can_be_read(charset: str, header: str) -> None:
    """Wrong labels of single bytes can be taken for true; but never is a letter replaced while the page names a charset that fits."""
    content = codecs.BOM_UTF16_LE + page(charset) if charset == "utf-16-le" else page(charset, charset)
    assert "\ufffd" not in words(content, header)


@pytest.mark.parametrize("label", ["gb2312", "big5", "shift_jis", "windows-1251", "iso-8859-1", "utf-16", "koi8-r"])
def test_bytes_that_are_utf_8_throughout_are_utf_8(label: str) -> None:
    assert words(page("utf-8", label)) == TEXTS["utf-8"]
    assert words(page("utf-8"), label) == TEXTS["utf-8"]
    assert decode(TEXTS["utf-8"].encode(), label) == TEXTS["utf-8"]


@pytest.mark.parametrize("header", ["", "utf-8", "UTF8", "iso-8859-1"])
@pytest.mark.parametrize(
    ("bad", "right"),
    [
        (b"caf\xe9.", "caf\u00e9."),
        (b"\xd7 3", "\u00d7 3"),
        (b"Stra\xc3...", "Stra\ufffd..."),  # a teaser cut after a number of bytes
        (b"5 \xe2\x82", "5 \ufffd"),
        (b"Hi \xf0\x9f\x98 you", "Hi \ufffd you"),
        (b"Hi \xed\xa0\xbd\xed\xb8\x80", "Hi \U0001f600"),  # surrogates, as MySQL and Java write them
    ],
)
def test_a_bad_byte_costs_one_letter(bad: bytes, right: str, header: str) -> None:
    text = "Gr\u00f6\u00dfe der Stra\u00dfe, na\u00efve R\u00e4tsel, \u00dcber\u00e4nderung, \u2013 sch\u00f6n"
    content = text.encode() + b" " + bad
    assert words(page("utf-8", "utf-8", "X").replace(b"X", content), header) == f"{text} {right}".strip()
    assert decode(content, header) == f"{text} {right}"


@pytest.mark.parametrize("label", ["<meta charset=utf-8>", ""])
def test_one_letter_of_utf_8_among_windows_1252_is_read(label: str) -> None:
    content = f"{label}<p>na\u00efve ".encode() + b"caf\xe9s, r\xe9sum\xe9s, 20\xb0C, \x80 5"
    assert words(content) == "na\u00efve caf\u00e9s, r\u00e9sum\u00e9s, 20\u00b0C, \u20ac 5"


@pytest.mark.parametrize("header", ["utf-16", "UTF-16LE"])
def test_ascii_under_a_header_of_utf_16_is_read(header: str) -> None:
    assert words(b"<p>Tide at 9", header) == decode(b"Tide at 9", header) == "Tide at 9"
