"""A small writer of PDF files with exact positions, for tests."""

from __future__ import annotations

import zlib

FONTS = {"F1": "Helvetica", "F2": "Helvetica-Bold", "F3": "Courier", "F4": "Helvetica-Oblique"}
WIDTH, HEIGHT = 600, 800
_HEBREW = "1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <61> <7b> <05d0> endbfrange"
"""The letters a to { of font F5 are those of the Hebrew alphabet; each is half as wide as high."""


class Sheet:
    """One page. Positions are points from the top left corner."""

    def __init__(self, rotate: int = 0) -> None:
        self.content: list[str] = []
        self.links: list[tuple[float, float, float, float, str]] = []
        self.notes: list[str] = []
        self.rotate = rotate

    def text(self, x: float, y: float, words: str, size: float = 10, font: str = "F1", extra: str = "") -> Sheet:
        """Write words on one line. ``extra`` holds PDF operators before the text."""
        escaped = words.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        self.content.append(f"q BT {extra} /{font} {size} Tf {x} {HEIGHT - y} Td ({escaped}) Tj ET Q")
        return self

    def hebrew(self, right: float, y: float, words: str, size: float = 10) -> Sheet:
        """Write Hebrew words that begin at the right, as typesetters do: the letters reversed, from the left."""
        codes = "".join(chr(ord(letter) - 0x5D0 + 0x61) if letter >= "\u05d0" else letter for letter in words[::-1])
        return self.text(right - 0.5 * size * len(words), y, codes, size, "F5")

    def lines(
        self, x: float, y: float, lines: list[str], size: float = 10, leading: float = 12, font: str = "F1"
    ) -> float:
        """Write lines below each other; return y of the next line."""
        for line in lines:
            self.text(x, y, line, size, font)
            y += leading
        return y

    def rule(self, x0: float, y0: float, x1: float, y1: float) -> Sheet:
        """Draw a line."""
        self.content.append(f"0.5 w {x0} {HEIGHT - y0} m {x1} {HEIGHT - y1} l S")
        return self

    def box(self, x0: float, y0: float, x1: float, y1: float, grey: float = 0.2) -> Sheet:
        """Fill a box."""
        self.content.append(f"q {grey} g {x0} {HEIGHT - y1} {x1 - x0} {y1 - y0} re f Q")
        return self

    def picture(self) -> Sheet:
        """Put a picture over the whole page."""
        self.content.append(f"q {WIDTH} 0 0 {HEIGHT} 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x7f EI Q")
        return self

    def link(self, x0: float, y0: float, x1: float, y1: float, address: str) -> Sheet:
        """Make a part of the page a link."""
        self.links.append((x0, HEIGHT - y1, x1, HEIGHT - y0, address))
        return self


def note(kind: str, x0: float, y0: float, x1: float, y1: float, entries: str) -> str:
    """Return an annotation with further entries."""
    return f"<< /Type /Annot /Subtype /{kind} /Rect [{x0} {HEIGHT - y1} {x1} {HEIGHT - y0}] {entries} >>"


def pdf(*sheets: Sheet, info: str = "", catalog: str = "", trailer: str = "", objects: tuple[str, ...] = ()) -> bytes:
    """Return a PDF file of sheets.

    :param objects: further objects, numbered from 10 + 2 * sheets.
    """
    hebrew = 8 + 2 * len(sheets)
    fonts = " ".join([*(f"/{key} {3 + at} 0 R" for at, key in enumerate(FONTS)), f"/F5 {hebrew} 0 R"])
    bodies = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
        f"<< /Type /Pages /Count {len(sheets)} /Kids [{' '.join(f'{8 + 2 * at} 0 R' for at in range(len(sheets)))}] >>",
        *(f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>" for name in FONTS.values()),
        f"<< {info} >>",
    ]
    streams: dict[int, bytes] = {}
    for at, sheet in enumerate(sheets):
        notes = " ".join(
            f"<< /Type /Annot /Subtype /Link /Rect [{a} {b} {c} {d}] /A << /S /URI /URI ({address}) >> >>"
            for a, b, c, d, address in sheet.links
        )
        notes += " ".join(sheet.notes)
        bodies.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Rotate {sheet.rotate} /Annots [{notes}] "
            f"/Resources << /Font << {fonts} >> >> /Contents {9 + 2 * at} 0 R >>"
        )
        streams[len(bodies) + 1] = zlib.compress("\n".join(sheet.content).encode("latin-1"))
        bodies.append(f"<< /Filter /FlateDecode /Length {len(streams[len(bodies) + 1])} >>")
    bodies.append(
        "<< /Type /Font /Subtype /TrueType /BaseFont /Arial /FirstChar 32 /LastChar 123 "
        f"/Widths [{'500 ' * 92}] /Encoding /WinAnsiEncoding /ToUnicode {hebrew + 1} 0 R >>"
    )
    streams[hebrew + 1] = f"begincmap {_HEBREW} endcmap".encode()
    bodies.append(f"<< /Length {len(streams[hebrew + 1])} >>")
    return assembled([*bodies, *objects], streams, trailer)


def assembled(bodies: list[str], streams: dict[int, bytes], trailer: str = "") -> bytes:
    """Return a PDF file of numbered objects, with its cross-reference table."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\n".encode("latin-1")
        if number in streams:
            out += b"stream\n" + streams[number] + b"\nendstream\n"
        out += b"endobj\n"
    start = len(out)
    out += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010d} 00000 n \n".encode() for place in places)
    out += f"trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R /Info 7 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)
