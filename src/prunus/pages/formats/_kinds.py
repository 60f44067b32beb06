"""Recognise files by their first bytes: documents in a zip, and files that no format reads."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from ...core.errors import BadPage, one_line

_PICTURE: Final = "binary data, {}, which holds no text to read; give the page that shows it"
_MEDIA: Final = "binary data, {}; give a transcript of it"
_PROGRAM: Final = "binary data, {}; programs are not read"
_ARCHIVE: Final = "binary data, {}; archives are not read; unpack it and give the folder"
_DATA: Final = "binary data, {}; export it as CSV or JSON"

MAGIC: Final[tuple[tuple[bytes, str, str], ...]] = (
    (b"\x89PNG", _PICTURE, "a PNG picture"),
    (b"\xff\xd8\xff", _PICTURE, "a JPEG picture"),
    (b"GIF87a", _PICTURE, "a GIF picture"),
    (b"GIF89a", _PICTURE, "a GIF picture"),
    (b"II*\0", _PICTURE, "a TIFF picture"),
    (b"MM\0*", _PICTURE, "a TIFF picture"),
    (b"8BPS\0", _PICTURE, "a Photoshop picture"),
    (b"\0\0\1\0", _PICTURE, "an icon"),
    (b"\0\0\0\x0cJXL ", _PICTURE, "a JPEG XL picture"),
    (b"\0\0\0\x0cjP  ", _PICTURE, "a JPEG 2000 picture"),
    (b"ID3", _MEDIA, "an MP3 recording"),
    (b"\xff\xfb", _MEDIA, "an MP3 recording"),
    (b"\xff\xf3", _MEDIA, "an MP3 recording"),
    (b"OggS", _MEDIA, "an Ogg recording"),
    (b"fLaC", _MEDIA, "a FLAC recording"),
    (b"MThd", _MEDIA, "a MIDI file"),
    (b"\x1aE\xdf\xa3", _MEDIA, "a Matroska or WebM film"),
    (b"FLV\1", _MEDIA, "a Flash film"),
    (b"\0\0\1\xba", _MEDIA, "an MPEG film"),
    (b"\0\0\1\xb3", _MEDIA, "an MPEG film"),
    (b"\x7fELF", _PROGRAM, "an ELF program"),
    (b"\xcf\xfa\xed\xfe", _PROGRAM, "a Mach-O program"),
    (b"\xce\xfa\xed\xfe", _PROGRAM, "a Mach-O program"),
    (b"\xca\xfe\xba\xbe", _PROGRAM, "a Java class or a Mach-O program"),
    (b"\0asm", _PROGRAM, "a WebAssembly program"),
    (b"\x1f\x8b", _ARCHIVE, "a gzip archive"),
    (b"BZh", _ARCHIVE, "a bzip2 archive"),
    (b"\xfd7zXZ\0", _ARCHIVE, "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", _ARCHIVE, "a 7z archive"),
    (b"Rar!\x1a\x07", _ARCHIVE, "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", _ARCHIVE, "a Zstandard archive"),
    (b"\x04\x22\x4d\x18", _ARCHIVE, "an LZ4 archive"),
    (b"MSCF\0\0\0\0", _ARCHIVE, "a cabinet archive"),
    (b"!<arch>\n", _ARCHIVE, "an ar archive"),
    (b"PK\x05\x06", _ARCHIVE, "an empty zip archive"),
    (b"PK\x07\x08", _ARCHIVE, "a split zip archive"),
    (b"PAR1", _DATA, "a Parquet file"),
    (b"ARROW1\0\0", _DATA, "an Arrow file"),
    (b"\x89HDF\r\n", _DATA, "an HDF5 file"),
    (b"\x93NUMPY", _DATA, "a NumPy array"),
    (b"OTTO\0", _PROGRAM, "a font"),
    (b"\0\1\0\0\0", _PROGRAM, "a font"),
    (b"wOFF", _PROGRAM, "a font"),
    (b"wOF2", _PROGRAM, "a font"),
)
"""First bytes, template of the refusal, and name of the kind of file. :func:`refusal` checks further kinds."""

OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_STREAMS: Final[tuple[tuple[str, str], ...]] = (
    ("EncryptedPackage", "a password-protected Office document; save it without its password"),
    ("WordDocument", "an old Word document (.doc); save it as .docx or .pdf"),
    ("PowerPoint Document", "an old PowerPoint file (.ppt); save it as .pptx or .pdf"),
    ("Workbook", "an old Excel workbook (.xls); save it as .xlsx or .csv"),
    ("Book", "an old Excel workbook (.xls); save it as .xlsx or .csv"),
    ("__properties_version1.0", "an Outlook message (.msg); save it as .eml"),
)

_OASIS: Final = "application/vnd.oasis.opendocument."
_DECLARED: Final = {
    f"{_OASIS}text": "odt",
    f"{_OASIS}text-template": "odt",
    f"{_OASIS}spreadsheet": "ods",
    f"{_OASIS}spreadsheet-template": "ods",
    "application/epub+zip": "epub",
}
_PARTS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"word/document.xml", "docx"),
    (b"ppt/presentation.xml", "pptx"),
    (b"xl/workbook.xml", "xlsx"),
    (b"META-INF/container.xml", "epub"),
)
_MAIN_ROOTS: Final = {"document": "docx", "presentation": "pptx", "workbook": "xlsx"}
_MAX_PARTS: Final = 4000  # entries of a zip that are read
_MAX_DIRECTORY: Final = 1 << 20  # bytes of the zip's directory


def refusal(head: bytes, content: bytes) -> str:
    """Return the reason why no format reads a file, or '' where its first bytes give none.

    :param head: the first 1,024 bytes or more.
    :param content: the whole file.
    """
    for magic, template, kind in MAGIC:
        if head.startswith(magic):
            return template.format(kind)
    riff_type = head[8:12]
    if head.startswith(b"RIFF") and riff_type in (b"WEBP", b"WAVE", b"AVI "):
        return (_PICTURE if riff_type == b"WEBP" else _MEDIA).format(f"a {riff_type.decode().strip()} file")
    if head[4:8] == b"ftyp":
        is_picture = head[8:12] in (b"heic", b"heix", b"mif1", b"avif", b"avis")
        return _PICTURE.format("an HEIC or AVIF picture") if is_picture else _MEDIA.format("an MP4 film or recording")
    if head.startswith(b"BM") and head[6:10] == b"\0\0\0\0" and len(head) > 26:
        return _PICTURE.format("a BMP picture")
    if head.startswith(b"MZ") and b"\0" in head[:64]:
        return _PROGRAM.format("a Windows program")
    if head[257:262] == b"ustar":
        return _ARCHIVE.format("a tar archive")
    if head.startswith(OLE):
        return f"binary data, {_compound(content)}"
    return ""


def _compound(content: bytes) -> str:
    """Name the document in an OLE compound file, by the stream names in its directory."""
    if len(content) >= 512:
        shift, first = struct.unpack_from("<H", content, 30)[0], struct.unpack_from("<I", content, 48)[0]
        start = (first + 1) << min(shift, 16)
        directory = content[start : start + 65536]
        for name, kind in _STREAMS:
            if name.encode("utf-16-le") + b"\0\0" in directory:
                return kind
    return "an old Office document; save it as .docx, .xlsx, .pptx or .pdf"


def kind_of_zip(content: bytes) -> tuple[str, str]:
    """Return (format name, '') for a document in a zip, or ('', reason of the refusal)."""
    if content[30:38] == b"mimetype" and len(content) > 38:
        size, extra = struct.unpack_from("<I", content, 18)[0], struct.unpack_from("<H", content, 28)[0]
        start = 38 + extra
        declared = content[start : start + min(size or 64, 100)].split(b"PK", 1)[0].strip().decode("ascii", "replace")
        format_name, reason = kind_of_declared(declared)
        if format_name or reason:
            return format_name, f"binary data, {reason}" if reason else ""
    names = {name.replace(b"\\", b"/") for name in _names(content)}
    for part, name in _PARTS:
        if part in names:
            return name, ""
    if b"xl/workbook.bin" in names:
        return "", "binary data, a binary Excel workbook (.xlsb); save it as .xlsx"
    if b"Index/Document.iwa" in names or b"Index.zip" in names:
        return "", "binary data, a Pages, Numbers or Keynote document; export it as .docx, .xlsx, .pptx or .pdf"
    if b"AndroidManifest.xml" in names or b"META-INF/MANIFEST.MF" in names:
        return "", _PROGRAM.format("a Java or Android package")
    for folder, name in ((b"word/", "docx"), (b"ppt/", "pptx"), (b"xl/", "xlsx")):
        if any(part.startswith(folder) for part in names):
            return name, ""
    format_name, reason = _kind_inside(content, names)
    return format_name, reason if format_name or reason else _ARCHIVE.format("a zip archive")


class _Root:
    """Takes the name of the root element."""

    name = ""

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        from ._common.xml import StopReading

        self.name = name
        raise StopReading

    def end(self, name: str) -> None: ...

    def data(self, text: str) -> None: ...


def _kind_inside(content: bytes, names: Collection[bytes]) -> tuple[str, str]:
    """Return what :func:`kind_of_zip` returns, for a document whose parts stand in an unusual order or place."""
    if b"mimetype" not in names and b"_rels/.rels" not in names:
        return "", ""
    from ._common.allowance import Allowance  # lazy: few documents need it
    from ._common.ooxml import main_part
    from ._common.zip import Archive

    root = _Root()
    try:
        archive = Archive(content, "document", Allowance(""))
        if b"mimetype" in names:
            format_name, reason = kind_of_declared(archive.read("mimetype")[:100].strip().decode("ascii", "replace"))
            return format_name, f"binary data, {reason}" if reason else ""
        archive.walk(main_part(archive, ""), root)
    except BadPage:
        return "", ""
    return _MAIN_ROOTS.get(root.name, ""), ""


def kind_of_declared(media_type: str) -> tuple[str, str]:
    """Return (format name, '') or ('', reason of the refusal) for the type that a document declares of itself.

    Both are '' for any other type.
    """
    is_refused = media_type not in _DECLARED and media_type.startswith(_OASIS)
    kind = one_line(media_type.removeprefix(_OASIS), longest=40) if is_refused else ""
    reason = f"an OpenDocument {kind}; save it as .pdf" if is_refused else ""
    return _DECLARED.get(media_type, ""), reason


def _names(content: bytes) -> Iterator[bytes]:
    """Yield the names in a zip's directory, or the names before each part where the directory is cut off."""
    end = content.rfind(b"PK\x05\x06", max(0, len(content) - 65557))
    # offsets of the name's length and of the name: first in a local header, then in a directory entry
    start, signature, offsets = 0, b"PK\x03\x04", (26, 30)
    if end >= 0 and len(content) >= end + 20:
        size, start = struct.unpack_from("<II", content, end + 12)
        start = start if content[start : start + 4] == b"PK\x01\x02" else max(0, end - size)
        signature, offsets = b"PK\x01\x02", (28, 46)
    directory = content[start : start + _MAX_DIRECTORY]
    position = directory.find(signature)
    for _ in range(_MAX_PARTS):
        if position < 0 or position + offsets[1] > len(directory):
            return
        length = struct.unpack_from("<H", directory, position + offsets[0])[0]
        yield directory[position + offsets[1] : position + offsets[1] + length]
        position = directory.find(signature, position + offsets[1] + length)
