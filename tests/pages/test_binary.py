"""Binary data is refused as such; text in any encoding is not."""

from __future__ import annotations

import random
from typing import Any

import pytest

import prunus
from prunus.pages.clean.parse import is_binary

TEXTS = {
    "Die Größe des Flusses änderte sich über die Jahre – „sehr“ deutlich, schrieb der Müller 1894. ": "cp1252 latin-1 cp850 mac_roman utf-8",
    "Уровень воды в реке поднимался каждую весну, и мельник записывал его в тетрадь. ": "koi8-r cp1251 cp866 iso8859-5 mac_cyrillic utf-8",
    "潮汐站每天记录水位，红灯亮着时请更换电池组。": "gb18030 gbk gb2312 big5hkscs hz utf-8 utf-16",
    "港の水位は毎日記録されています。赤いランプが点いたら電池を交換してください。カタカナ ": "shift_jis euc-jp iso-2022-jp cp932 utf-8 utf-16",
    "항구의 수위는 매일 기록됩니다. 빨간 불이 켜지면 배터리를 교체하십시오. ": "euc-kr cp949 johab iso-2022-kr utf-8",
    "كان مستوى الماء في النهر يرتفع كل ربيع وكان الطحان يسجله في دفتره ": "cp1256 iso8859-6 utf-8",
    "Η στάθμη του νερού ανέβαινε κάθε άνοιξη και ο μυλωνάς την έγραφε. ": "cp1253 iso8859-7 utf-8",
    "מפלס המים בנהר עלה בכל אביב והטוחן רשם אותו במחברת ": "cp1255 iso8859-8 utf-8",
    "ระดับน้ำในแม่น้ำสูงขึ้นทุกฤดูใบไม้ผลิ ": "tis-620 cp874 utf-8",
    "Mực nước sông dâng lên mỗi mùa xuân. ": "utf-8",
    "Poziom wody w rzece podnosił się każdej wiosny, a młynarz zapisywał go w zeszycie. ": "iso8859-2 cp1250 utf-8",
}  # fmt: skip
CASES = [(text, codec) for text, codecs in TEXTS.items() for codec in codecs.split()]


@pytest.mark.parametrize(("text", "codec"), CASES, ids=[codec for _, codec in CASES])
def test_text_in_an_old_encoding_is_no_binary(text: str, codec: str) -> None:
    try:
        written = (text * 40).encode(codec)
    except UnicodeEncodeError:
        written = (text * 40).encode(codec, "replace")
    head = written[:2] if codec == "utf-16" else b""
    for size in (1, 3, 20, 100, 333, len(written)):
        for start in range(0, min(len(written) - size + 1, 400), 2 if codec == "utf-16" else 7):
            assert not is_binary(head + written[start : start + size], "utf-16" if codec == "utf-16" else "")


@pytest.mark.parametrize(
    "page",
    [
        b"<p>a page with one null byte \x00 in its words, and caf\xe9",
        b"<p>b\xe4r\x0b\x0bf\xfc\xdfe with two vertical tabs",
        b"\x1b[1mbold\x1b[0m in a typescript\x07 of the caf\xe9\x08 ",
        b"a DOS file, caf\x82, with its end\r\n\x1a",
    ],
)
def test_text_with_a_few_controls_is_no_binary(page: bytes) -> None:
    assert not is_binary(page)


@pytest.mark.parametrize(("size", "let_through"), [(100, 0.05), (200, 0.01), (1000, 0.0), (10_000, 0.0)])
def test_random_bytes_are_binary(size: int, let_through: float) -> None:
    rng = random.Random(size)
    passed = sum(not is_binary(rng.randbytes(size)) for _ in range(400))
    assert passed <= 400 * let_through


def test_random_bytes_get_one_clear_error() -> None:
    with pytest.raises(prunus.BadPage, match="binary"):
        prunus.clean(random.Random(7).randbytes(400))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "codecs"),
    [("xquad_zh", "gb18030 big5 utf-16"), ("xquad_de", "latin-1 cp1252 cp437"), ("xquad_ar", "cp1256 iso8859-6")],
)
def test_real_texts_are_no_binary(rows: Any, name: str, codecs: str) -> None:
    for row in rows(f"multilingual/{name}", 60):
        text = " ".join(str(value) for value in row.values() if isinstance(value, str))
        for codec in codecs.split():
            written = text.encode(codec, "replace")
            assert not is_binary(written), codec
            assert not is_binary(written[:100]), codec
