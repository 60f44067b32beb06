"""Hostile zip documents: each is refused with one line, quickly and with little memory."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from typing import Any

import pytest
from tests.clock import within
from tests.pages.formats.documents import packed, refused

from prunus.core.errors import BadPage
from prunus.core.registry import make_engine
from prunus.pages.formats._common import zip as _zip
from prunus.pages.formats._common.allowance import Allowance

ZIPPED = ("docx", "pptx", "epub", "odt", "xlsx", "ods")
FIRST = {
    "docx": "word/document.xml",
    "pptx": "ppt/presentation.xml",
    "epub": "META-INF/container.xml",
    "odt": "content.xml",
    "xlsx": "xl/workbook.xml",
    "ods": "content.xml",
}

XXE = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'
REMOTE = '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/evil.dtd"><x/>'
LAUGHS = (
    "<!DOCTYPE x [<!ENTITY a0 'ha'>"
    + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12))
    + "]><x>&a11;</x>"
)
QUADRATIC = f"<!DOCTYPE x [<!ENTITY a '{'a' * 50_000}'>]><x>{'&a;' * 20_000}</x>"
PARAMETER = "<!DOCTYPE x [<!ENTITY % p SYSTEM 'file:///etc/passwd'> %p;]><x/>"


def entries(*written: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in written:
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture(params=ZIPPED)
def name(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def engine(name: str) -> Any:
    return make_engine("format", name)


@pytest.mark.parametrize(
    "bad", [XXE, REMOTE, LAUGHS, QUADRATIC, PARAMETER], ids="xxe remote laughs quadratic parameter".split()
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_and_its_entities_are_refused(engine: Any, name: str, bad: str, encoding: str) -> None:
    content = packed({FIRST[name]: bad.encode(encoding)})

    def use() -> None:
        message = refused(engine, content)
        assert "document type" in message
        assert "root:" not in message

    assert within(2, use)


def test_a_part_that_unpacks_to_a_thousand_times_its_size_is_refused(engine: Any, name: str) -> None:
    bomb = packed({FIRST[name]: b" " * 30_000_000})
    assert len(bomb) < 100_000
    tracemalloc.start()
    message = refused(engine, bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "times its size" in message
    assert peak < 5_000_000


def test_a_picture_of_any_ratio_is_no_reason_to_refuse_the_words_around_it() -> None:
    archive = _zip.Archive(packed({"a.xml": b"<x/>", "blank.emf": bytes(2_000_000)}), "deck", Allowance("file.x"))
    assert archive.read("a.xml") == b"<x/>"
    with pytest.raises(BadPage, match="times its size"):
        archive.read("blank.emf")


def test_parts_that_are_too_large_together_are_refused(engine: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_zip, "MAX_TOTAL", 1_000_000)
    several = packed({f"part{number}": b"x" * 300_000 for number in range(4)})
    assert "unpacks to more than" in refused(engine, several)


def test_too_many_parts_are_refused(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_zip, "MAX_ENTRIES", 50)
    assert "60 parts" in refused(engine, packed({f"p{number}": b"" for number in range(60)}))


def test_a_size_that_the_directory_understates_is_found_while_reading(engine: Any, name: str) -> None:
    whole = bytearray(packed({FIRST[name]: b"<x>" + b"word " * 200_000 + b"</x>"}))
    at = whole.rfind(b"PK\x01\x02")
    struct.pack_into("<L", whole, at + 24, 10)  # the unpacked size that the directory declares
    refused(engine, bytes(whole))


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a/../../b", "..\\..\\windows\\x", "\\x"])
def test_names_that_lead_out_of_the_document_are_refused(engine: Any, path: str) -> None:
    assert "leads out of it" in refused(engine, entries((path, b"x")))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_of_one_name_are_refused(engine: Any, name: str) -> None:
    assert "two parts of one name" in refused(engine, entries((FIRST[name], b"<a/>"), (FIRST[name], b"<b/>")))


def test_links_are_refused(engine: Any) -> None:
    link = zipfile.ZipInfo("link.xml")
    link.external_attr = 0o120777 << 16
    assert "holds a link" in refused(engine, entries((link, b"/etc/passwd")))


def test_encrypted_parts_are_refused(engine: Any, name: str) -> None:
    whole = bytearray(packed({FIRST[name]: b"<x/>"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.find(mark) + offset] |= 1
    assert "encrypted" in refused(engine, bytes(whole))


def test_parts_that_overlap_are_refused(engine: Any, name: str) -> None:
    whole = bytearray(entries((FIRST[name], b"<x/>" * 50), ("other.xml", b"<y/>" * 50)))
    first = whole.find(b"PK\x01\x02")
    second = whole.find(b"PK\x01\x02", first + 4)
    whole[second + 42 : second + 46] = whole[first + 42 : first + 46]
    assert "overlap" in refused(engine, bytes(whole))


def test_a_zip_inside_is_never_opened(name: str, engine: Any) -> None:
    inner = packed({FIRST[name]: b"\0" * 20_000_000})
    message = refused(engine, packed({FIRST[name]: b"<x/>", "inner.zip": inner}))
    assert "inner" not in message


def test_an_archive_that_is_no_document_is_refused(engine: Any) -> None:
    refused(engine, packed({"photo.jpg": b"\xff\xd8\xff", "readme.txt": b"hello"}))


def test_reading_ends_when_its_time_is_over() -> None:
    archive = _zip.Archive(packed({"a.xml": b"<x/>"}), "Word document", Allowance("file.x", -1.0))
    with pytest.raises(BadPage, match="took too long to read"):
        archive.read("a.xml")


def test_a_part_is_found_as_some_programs_write_its_name() -> None:
    archive = _zip.Archive(packed({"XL\\Styles.xml": b"<x/>"}), "Excel workbook", Allowance("file.x"))
    assert "xl/styles.xml" in archive and archive.read("xl/styles.xml") == b"<x/>"
