"""Read a PDF page by page: words with positions, lines, fills, pictures, links, bookmarks.

This module runs in a separate process (see ``COMMAND``), so that a hostile file can neither hang, crash nor fill the
calling process. It imports only ``drawn``, ``layers``, ``pdfium``, ``rtl`` and ``typed`` from this package. It reads a
PDF from stdin and writes JSON lines to stdout: one for the document, one per page, one at the end.

Coordinates are points, x to the right and y down, turned so that most of the page's text runs left to right.
A word is ``[x0, x1, baseline, size, flags, space before, text]``. Its letters stand in the order in which they are
read, also where that is from right to left.
"""

from __future__ import annotations

import ctypes
import json
import math
import re
import sys
import time

from .drawn import Box, PdfDrawing, read_utf16, rotated, rotated_box, rotated_by
from .layers import has_layers, remove_hidden
from .pdfium import Pdfium
from .rtl import RtlLetters, is_rtl
from .typed import PdfTyped

TYPE_CHECKING = False  # typing takes a tenth of the process's time to load
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

BOLD, ITALIC, MONO, WHITE, INVISIBLE, SYMBOL = 1, 2, 4, 8, 16, 32
LEVEL: Final = 256
"""Flags of a word are below LEVEL. The heading level from a tagged PDF is added times LEVEL."""

_LEAST_LETTERS: Final = 200_000
_MAX_GROWTH: Final = 100
"""Letters that any PDF may show, and further letters for each of its bytes: forms that show forms may show one word a
million times."""

_LEAST_SECONDS: Final = 8
_BYTES_PER_SECOND: Final = 10_000
"""Seconds of the processor that any PDF may take, and bytes for which it may take a second more."""

_MAX_BOOKMARKS: Final = 5_000
_MONO_NAMES: Final = (
    *("mono", "courier", "consol", "cmtt", "lmtt", "txtt", "typewriter", "menlo", "nimbusmon", "inconsolata"),
    *("sourcecode", "andale", "fixed"),
)
_BOLD_NAMES: Final = ("bold", "black", "heavy", "demi", "-bd", "cmbx", "sfbx", "cmssbx", "lmbx")
_LEVEL_TEXT: Final = math.radians(8)  # text that leans further against the edges of the page is read along its own line
_RUN: Final = re.compile("[^\\0\\t-\\r \\xa0\\u2000-\\u200b\\u202f\\u3000\\ufeff]+")  # letters between two spaces
_PLAIN: Final = re.compile(
    "[!-\\u02ff\\u0370-\\u0482\\u048a-\\u058f\\u2010-\\u2027\\u2030-\\u205e\\u20a0-\\u20cf\\u2100-\\ud7a3\\uff01-\\uff60]+"
)
"""Letters that run left to right, each of them one character without marks of its own."""

_LIGATURES: Final = dict(zip(range(0xFB00, 0xFB07), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))


COMMAND: Final = "import sys; sys.path.append(sys.argv[1]); from pdf.reader import main; main(sys.argv[2:])"
"""The program of the reading process. Arguments: the folder of pdf/, those of :func:`main`."""

MAX_OUTPUT: Final = 192 * 1024 * 1024
"""Limit on the bytes of output for one document."""


Style = tuple[float, int, int, float, "float | None"]
"""Size in points, flags, rotation in quarter turns, slant and baseline of letters. The slant is the angle of their line
in radians where that leans against the edges of the page, else 0. The baseline is None unless the line is level."""


class TooMuch(Exception):
    """The document exceeds a limit or cannot be opened; the message says why."""


class PdfReader:
    """One open document."""

    def __init__(self, raw: Any, data: bytes, max_pages: int, max_chars: int, seconds: float) -> None:
        self.raw = raw
        self.max_chars = min(max_chars, _LEAST_LETTERS + _MAX_GROWTH * len(data))
        self.ends = time.monotonic() + seconds
        self.seconds = seconds
        self.chars = 0
        raw.FPDF_InitLibrary()
        self.data = data  # pdfium reads from it as long as the document is open
        self.document = raw.FPDF_LoadMemDocument64(data, len(data), None)
        if not self.document:
            raise TooMuch("password" if raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD else "damaged")
        self.pages = raw.FPDF_GetPageCount(self.document)
        if self.pages > max_pages:
            raise TooMuch(f"{self.pages} pages are over the limit of {max_pages}")
        self.typed = PdfTyped(raw, self.document)
        self.layers = has_layers(data)
        self.shown: set[str] = set()  # layers that are on
        self.tagged = bool(raw.FPDFCatalog_IsTagged(self.document))

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the document: title, author, dates, language, number of pages, outline."""
        raw = self.raw
        keys = ("Title", "Author", "CreationDate", "ModDate")
        metadata = {key.lower(): read_utf16(raw.FPDF_GetMetaText, self.document, key.encode() + b"\0") for key in keys}
        return {
            **metadata,
            "lang": read_utf16(raw.FPDFCatalog_GetLanguage, self.document),
            "pages": self.pages,
            "outline": list(self.outline()),
        }

    def outline(self) -> Iterator[list[Any]]:
        """Yield the bookmarks as [depth, page, title]. ``_MAX_BOOKMARKS`` ends a circle of bookmarks."""
        raw = self.raw
        stack = [(raw.FPDFBookmark_GetFirstChild(self.document, None), 0)]
        seen = 0
        while stack and seen < _MAX_BOOKMARKS:
            mark, depth = stack.pop()
            if not mark or depth > 8:
                continue
            seen += 1
            target = raw.FPDFBookmark_GetDest(self.document, mark)
            page = raw.FPDFDest_GetDestPageIndex(self.document, target) if target else -1
            yield [depth, page, read_utf16(raw.FPDFBookmark_GetTitle, mark)]
            stack.append((raw.FPDFBookmark_GetNextSibling(self.document, mark), depth))
            stack.append((raw.FPDFBookmark_GetFirstChild(self.document, mark), depth + 1))

    def check_time(self) -> None:
        """Raise :class:`TooMuch` after the time limit."""
        if time.monotonic() > self.ends:
            raise TooMuch(f"reading it takes over {self.seconds:g} s")

    def page(self, number: int) -> dict[str, Any]:
        """Return the content of page ``number``, counted from 0."""
        raw = self.raw
        self.check_time()
        page = raw.FPDF_LoadPage(self.document, number)
        if not page:
            return {"page": number, "damaged": True}
        if self.layers:
            remove_hidden(raw, page, self.shown, self.check_time)
        text = raw.FPDFText_LoadPage(page)
        try:
            drawing = PdfDrawing(raw, self.document, page, self.check_time)
            levels, alts = drawing.tags() if self.tagged else ({}, {})
            words = self.words(text, levels)
            quarter = max(words, key=lambda key: sum(len(word[6]) for word in words[key])) if words else 0
            comments = self.typed.add(page, words.setdefault(quarter, []), quarter)
            box = self.bounds(page)
            content: dict[str, Any] = {
                "page": number,
                "box": rotated_box(box, quarter),
                "comments": comments,
                "strikes": self.typed.strikes,
                "words": words.pop(quarter, []),
                "turned": [words[key] for key in sorted(words)],
                "links": [[*rotated_box(place, quarter), target] for place, target in drawing.links()],
            }
            content.update(drawing.drawn(quarter, alts))
            flattened = bool(self.typed.stamps) and self.typed.flatten(page)
        finally:
            raw.FPDFText_ClosePage(text)
            raw.FPDF_ClosePage(page)
        if flattened:
            # like words that lie on their side, those of stamps belong to no sentence of the page
            content["turned"].append(self.stamped(number, quarter, content["words"]))
        return content

    def stamped(self, number: int, quarter: int, words: list[list[Any]]) -> list[list[Any]]:
        """Return the words of the stamps on a page that was flattened.

        :param quarter: rotation of the page's text in quarter turns.
        :param words: the other words of the page.
        """
        raw = self.raw
        page = raw.FPDF_LoadPage(self.document, number)
        if not page:
            return []
        if self.layers:
            remove_hidden(raw, page, self.shown, self.check_time)
        counted = self.chars
        text = raw.FPDFText_LoadPage(page)
        try:
            found = self.words(text, {}).get(quarter, [])
            self.chars = counted  # most of its letters were counted before
        finally:
            raw.FPDFText_ClosePage(text)
            raw.FPDF_ClosePage(page)
        known = {(word[0], word[2], word[6]) for word in words}
        return [word for word in found if (word[0], word[2], word[6]) not in known and self.typed.is_stamped(word)]

    def bounds(self, page: Any) -> Box:
        """Return the visible part of a page: left, bottom, right, top."""
        box = self.raw.FS_RECTF()
        self.raw.FPDF_GetPageBoundingBox(page, ctypes.byref(box))
        return (box.left, box.bottom, box.right, box.top)

    def codes(self, text: Any) -> str:
        """Return the characters of a page: one code point for each of pdfium's characters.

        :raises TooMuch: the document has more than ``max_chars`` so far.
        """
        raw = self.raw
        count = max(int(self.raw.FPDFText_CountChars(text)), 0)
        self.chars += count
        if self.chars > self.max_chars:
            raise TooMuch(f"its text is over the limit of {self.max_chars} letters")
        buffer = ctypes.create_string_buffer(2 * count + 64)
        held = raw.FPDFText_GetText(text, 0, count, buffer) - 1
        whole = buffer.raw[: 2 * count].decode("utf-16-le", "surrogatepass") if held == count else "\ufffe" * count
        if "\ufffe" not in whole:
            return whole
        # it stands there for unknown letters and for hyphens at the ends of lines
        return "".join(
            letter if letter != "\ufffe" else chr(min(raw.FPDFText_GetUnicode(text, at), 0x10FFFF))
            for at, letter in enumerate(whole)
        )

    # --- words -----------------------------------------------------------------------------------

    def words(self, text: Any, levels: dict[int, int]) -> dict[int, list[list[Any]]]:
        """Return the words of a page in the order of its content, by their rotation in quarter turns."""
        raw = self.raw
        codes = self.codes(text)
        box_of, origin_of = raw.FPDFText_GetLooseCharBox, raw.FPDFText_GetCharOrigin
        object_of = raw.FPDFText_GetTextObject
        styles = PdfStyles(raw, text, levels)
        box, x, y = raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
        box_at, x_at, y_at = ctypes.byref(box), ctypes.byref(x), ctypes.byref(y)
        by_quarter: dict[int, list[list[Any]]] = {}
        word: list[Any] | None = None
        high, before = 0, 0.0
        backwards, letters = False, RtlLetters()
        leaning: tuple[float, float, float] | None = None
        checked = 0

        for run in _RUN.finditer(codes):
            begin, end = run.span()
            if begin - checked > 4096:
                checked = begin
                self.check_time()
            gap = True
            if end - begin > 1 and _PLAIN.fullmatch(run[0]):
                key = object_of(text, begin) or 0
                if key and key == object_of(text, end - 1):
                    # pdfium finds the spaces inside an object: where its letters are on one line, they are a word
                    box_of(text, begin, box_at)
                    start, under, over = box.left, box.bottom, box.top
                    size, flags, quarter, slant, base = styles.of(begin, key, under, over)
                    box_of(text, end - 1, box_at)
                    last, stop = box.left, box.right
                    if base is not None and under == box.bottom and over == box.top and start < last:
                        word = [start, stop, base, size, flags, 1, run[0]]
                        by_quarter.setdefault(0, []).append(word)
                        leaning, backwards, before = None, False, last
                        letters.begin(run[0][-1], last, stop)
                        continue
            for index in range(begin, end):
                code = ord(codes[index])
                if not index & 4095:
                    self.check_time()
                if 0xD800 <= code < 0xDC00:
                    high = code
                    continue
                letter = _letter(code, high)
                high = 0
                key = object_of(text, index) or 0
                box_of(text, index, box_at)
                start, stop = box.left, box.right
                size, flags, quarter, slant, known = styles.of(index, key, box.bottom, box.top)
                if known is None:
                    origin_of(text, index, x_at, y_at)
                if slant:  # a line of leaning text is one word, which takes the place of its first letter
                    along, across = rotated_by(x.value, y.value, slant)
                    follows = leaning and leaning[0] == slant and abs(leaning[1] - across) < 0.3 * size
                    if word is not None and leaning and follows and abs(along - leaning[2]) < 3 * size == 3 * word[3]:
                        word[6] += " " * gap + letter
                    else:
                        word = [box.left, box.right, -y.value, size, flags, 1, letter]
                        by_quarter.setdefault(0, []).append(word)
                    leaning, gap, backwards = (slant, across, along), False, False
                    continue
                if leaning:
                    leaning, word = None, None
                if known is None:
                    left, base = rotated(x.value, y.value, quarter)
                    if quarter:
                        start, _, stop, _ = rotated_box((start, box.bottom, stop, box.top), quarter)
                    start = min(start, left)
                else:
                    base = known
                is_backwards = letter >= "\u0590" and is_rtl(letter)
                joins = word is not None and not gap and word[4] == flags and abs(word[2] - base) < 0.15 * size
                if word is not None and (backwards or is_backwards):
                    fits = backwards or not any(map(str.isalnum, word[6])) if is_backwards else not letter.isalnum()
                    before = start
                    if fits and letters.join(word, letter, (start, stop), base, joins and word[3] == size):
                        gap, backwards = False, True
                        continue
                elif word is not None and joins:
                    space = start - word[1] if start != before else 0.0  # the letters of a ligature share its position
                    before = start
                    if -0.6 * size < space < 0.35 * size and word[3] == size:
                        word[6] += letter
                        if stop > word[1]:
                            word[1] = stop
                        continue
                # how far words against the line's direction stand apart shows when their line is put in order
                apart = gap or word is None or not (backwards or -0.6 * size < start - word[1] < 0.3 * size)
                word = [start, stop, base, size, flags, int(apart), letter]
                by_quarter.setdefault(quarter, []).append(word)
                gap, before = False, start
                backwards = is_backwards
                letters.begin(letter, start, stop)
        for entry in (entry for words in by_quarter.values() for entry in words):
            entry[:3] = round(entry[0], 2), round(entry[1], 2), round(entry[2], 2)
        return by_quarter


class PdfStyles:
    """The styles of the letters of one page. A file may hold one object for each letter, so what letters share is kept.

    :param levels: heading levels by marked-content id.
    """

    def __init__(self, raw: Any, text: Any, levels: dict[int, int]) -> None:
        self.raw = raw
        self.text = text
        self.levels = levels
        self.styles: dict[tuple[int, float, float], Style] = {}
        self.lines: dict[tuple[int, float, float], tuple[float, int, float, float | None]] = {}
        self.fonts: dict[int, int] = {}
        self.matrix, self.x, self.y = raw.FS_MATRIX(), ctypes.c_double(), ctypes.c_double()
        self.colour = [ctypes.c_uint() for _ in range(4)]
        self.colour_at = [ctypes.byref(part) for part in self.colour]

    def of(self, index: int, key: int, under: float, over: float) -> Style:
        """Return the style of a letter.

        :param key: its object.
        :param under, over: lower and upper edge of the letter.
        """
        style = self.styles.get((key, under, over))
        if style is None:
            font = self.raw.FPDFTextObj_GetFont(key) if key else 0
            line = self.lines.get((font, under, over))  # letters of one font that share both edges are on one line
            if line is None:
                line = self._line(index)
                if font and line[3] is not None:
                    self.lines[font, under, over] = line
            size, quarter, slant, base = line
            style = self.styles[key, under, over] = (size, self._flags(index, key, font), quarter, slant, base)
        return style

    def _line(self, index: int) -> tuple[float, int, float, float | None]:
        """Return size, rotation, slant and baseline of a letter."""
        raw, text, matrix, base = self.raw, self.text, self.matrix, None
        raw.FPDFText_GetMatrix(text, index, ctypes.byref(matrix))
        size = raw.FPDFText_GetFontSize(text, index) * (math.hypot(matrix.c, matrix.d) or 1.0)
        angle = math.atan2(matrix.b, matrix.a) if matrix.a or matrix.b else 0.0
        turns = round(angle / (math.pi / 2))
        slant = angle if abs(angle - turns * math.pi / 2) > _LEVEL_TEXT else 0.0
        if not turns % 4 and not slant:
            raw.FPDFText_GetCharOrigin(text, index, ctypes.byref(self.x), ctypes.byref(self.y))
            base = -self.y.value
        return round(abs(size), 1) or 0.1, turns % 4, slant, base

    def _flags(self, index: int, key: int, font: int) -> int:
        """Return the flags of a letter."""
        raw, text = self.raw, self.text
        flags = self.fonts.get(font)
        if flags is None:
            buffer, kind = (ctypes.c_char * 256)(), ctypes.c_int()
            raw.FPDFText_GetFontInfo(text, index, buffer, 256, ctypes.byref(kind))
            name = buffer.value.decode("utf-8", "replace").lower()
            flags = _font_flags(name, raw.FPDFText_GetFontWeight(text, index), kind.value)
            if font:
                self.fonts[font] = flags
        if raw.FPDFText_GetFillColor(text, index, *self.colour_at):
            red, green, blue, alpha = self.colour
            if red.value >= 250 <= green.value and blue.value >= 250:
                flags |= WHITE
            if alpha.value < 8:
                flags |= INVISIBLE
        if key:
            if raw.FPDFTextObj_GetTextRenderMode(key) in (3, 7):
                flags |= INVISIBLE
            if self.levels:
                flags += LEVEL * self.levels.get(raw.FPDFPageObj_GetMarkedContentID(key), 0)
        return flags


def _letter(code: int, high: int) -> str:
    """Return the character of a code. ``high`` is the first half of a surrogate pair, or 0."""
    if 0xDC00 <= code < 0xE000:
        return chr(0x10000 + ((high - 0xD800) << 10) + code - 0xDC00) if high else "\ufffd"
    if code in _LIGATURES:
        return _LIGATURES[code]
    if code == 2:  # pdfium's mark for a hyphen at the end of a line
        return "-"
    return chr(code) if 32 < code < 0x110000 and code not in (0xFFFE, 0xFFFF) else "\ufffd"


def _font_flags(name: str, weight: int, kind: int) -> int:
    """Return the flags that follow from a font's name, weight and descriptor."""
    bold = weight >= 600 or kind & 1 << 18 or any(part in name for part in _BOLD_NAMES) or name.endswith("-medi")
    slanted = kind & 1 << 6 or any(part in name for part in ("italic", "oblique", "slanted", "cmti", "-it"))
    mono = kind & 1 or any(part in name for part in _MONO_NAMES)
    symbol = any(part in name for part in ("wingdings", "dingbats", "webdings"))
    return BOLD * bool(bold) | ITALIC * bool(slanted) | MONO * bool(mono) | SYMBOL * symbol


def main(arguments: list[str]) -> None:
    """Read a PDF from stdin, and write its content to stdout as JSON lines.

    :param arguments: the folder of pdfium; the limits: pages, characters, seconds, MiB of memory.
    """
    folder, max_pages, max_chars, seconds, memory = arguments
    out = sys.stdout
    try:
        raw = Pdfium(folder)
    except OSError:
        out.write(json.dumps({"error": "library"}) + "\n")
        return
    data = sys.stdin.buffer.read()
    try:
        import resource  # not on every system

        resource.setrlimit(resource.RLIMIT_AS, (int(memory) << 20, int(memory) << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = _LEAST_SECONDS + len(data) // _BYTES_PER_SECOND
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
    except (ImportError, ValueError, OSError):
        sys.stderr.write("this system has no memory limit\n")
    try:
        reader = PdfReader(raw, data, int(max_pages), int(max_chars), float(seconds))
        out.write(json.dumps(reader.metadata()) + "\n")
        left = MAX_OUTPUT
        for number in range(reader.pages):
            line = json.dumps(reader.page(number), separators=(",", ":"))
            left -= len(line)
            if left < 0:
                raise TooMuch(f"the content of its pages takes over {MAX_OUTPUT >> 20} MiB")
            out.write(line + "\n")
    except TooMuch as error:
        out.write(json.dumps({"error": str(error)}) + "\n")
    except MemoryError:
        out.write(json.dumps({"error": f"reading it takes over {memory} MiB"}) + "\n")
    else:
        out.write(json.dumps({"end": True}) + "\n")
    out.flush()
