"""Read the drawings, links and tags of a PDF page: rulings, fills, pictures, heading levels, alt texts.

This module runs in the reading process, see :mod:`.reader`. It imports nothing from this package.
"""

from __future__ import annotations

import ctypes
import math

TYPE_CHECKING = False  # typing takes a tenth of the process's time to load
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Final

Matrix = tuple[float, float, float, float, float, float]
Box = tuple[float, float, float, float]

_MAX_OBJECTS: Final = 20_000  # drawn objects of a page that are read
_MAX_SEGMENTS: Final = 400  # segments of a path; a path with more is a drawing and no ruling
_MAX_DRAWN: Final = 2_000  # rulings, fills and pictures of a page, each; a page with more holds a drawing
_MAX_DOTS: Final = 400  # dots of a page; a page with more holds a chart
_DOT: Final = 8.0  # points; a smaller path may be the bullet of a list
_THICK, _THICKEST = 1.0, 50.0  # points; strokes between them have a box
_MAX_TAGS: Final = 50_000
_HEADINGS: Final = {"h": 1, "h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_IDENTITY: Final[Matrix] = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def rotated(x: float, y: float, quarter: int) -> tuple[float, float]:
    """Turn a point of the page so that text at ``quarter`` * 90 degrees runs left to right; y points down."""
    return ((x, -y), (y, x), (-x, y), (-y, -x))[quarter]


def rotated_by(x: float, y: float, angle: float) -> tuple[float, float]:
    """Return how far a point lies along a line through the origin at an angle in radians, and how far beside it."""
    along, across = math.cos(angle), math.sin(angle)
    return x * along + y * across, y * along - x * across


def rotated_box(box: Box, quarter: int) -> list[float]:
    """Turn a box (left, bottom, right, top) like :func:`rotated`; return [x0, y0, x1, y1]."""
    ax, ay = rotated(box[0], box[1], quarter)
    bx, by = rotated(box[2], box[3], quarter)
    return [round(value, 2) for value in (min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))]


def combine(inner: Matrix, outer: Matrix) -> Matrix:
    """Return the matrix that applies ``inner``, then ``outer``."""
    a, b, c, d, e, f = inner
    g, h, i, j, k, m = outer
    return (a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m)


def read_utf16(call: Any, *arguments: Any) -> str:
    """Return the UTF-16 text that a function of pdfium writes into a buffer."""
    size = call(*arguments, None, 0)
    if size <= 2 or size > 200_000:
        return ""
    buffer = (ctypes.c_char * size)()
    call(*arguments, ctypes.cast(buffer, call.argtypes[-2]), size)
    return bytes(buffer.raw).decode("utf-16-le", "replace").rstrip("\0").replace("\0", "")


class PdfDrawing:
    """The drawings, links and tags of one open page.

    :param raw: the bindings of pdfium.
    :param check_time: raises after the time limit.
    """

    def __init__(self, raw: Any, document: Any, page: Any, check_time: Callable[[], None]) -> None:
        self.raw = raw
        self.document = document
        self.page = page
        self.check_time = check_time

    def drawn(self, quarter: int, alts: dict[int, str]) -> dict[str, Any]:
        """Return rulings, filled boxes, dots, and pictures.

        :param quarter: rotation of the page's text in quarter turns.
        :param alts: alt texts by marked-content id; the alt texts of pictures are removed from it.
        """
        raw = self.raw
        rules: list[list[float]] = []
        fills: list[list[float]] = []
        images: list[list[Any]] = []
        dots: list[list[float]] = []
        for handle, kind, matrix in self.objects():
            if kind == raw.FPDF_PAGEOBJ_PATH:
                place = rotated_box(self.place(handle, matrix), quarter)
                if max(place[2] - place[0], place[3] - place[1]) <= _DOT:
                    dots.append(place)
                else:
                    self.path(handle, matrix, quarter, place, (rules, fills))
                continue
            box = rotated_box(self.place(handle, matrix), quarter)
            if kind == raw.FPDF_PAGEOBJ_IMAGE:
                alt = alts.pop(raw.FPDFPageObj_GetMarkedContentID(handle), "") if alts else ""
                images.append([*box, alt])
            elif kind == raw.FPDF_PAGEOBJ_SHADING:
                fills.append(box)
        left = [alt for alt in alts.values() if alt]
        del rules[_MAX_DRAWN:], fills[_MAX_DRAWN:], images[_MAX_DRAWN:], dots[_MAX_DOTS:]
        return {"rules": rules, "fills": fills, "images": images, "alts": left, "dots": dots}

    def objects(self) -> Iterator[tuple[Any, int, Matrix]]:
        """Yield the objects of a page as (handle, type, matrix), also those inside forms."""
        raw = self.raw
        seen = 0
        stack: list[Iterator[tuple[Any, Matrix]]] = [
            ((raw.FPDFPage_GetObject(self.page, at), _IDENTITY) for at in range(raw.FPDFPage_CountObjects(self.page)))
        ]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                continue
            handle, matrix = step
            seen += 1
            if seen > _MAX_OBJECTS:
                return
            if not seen & 1023:
                self.check_time()
            kind = raw.FPDFPageObj_GetType(handle)
            if kind == raw.FPDF_PAGEOBJ_FORM and len(stack) < 8:
                stack.append(self.inside(handle, combine(self.matrix(handle), matrix)))
            elif kind != raw.FPDF_PAGEOBJ_TEXT:
                yield handle, kind, matrix

    def inside(self, form: Any, matrix: Matrix) -> Iterator[tuple[Any, Matrix]]:
        """Yield the objects of a form."""
        for at in range(max(self.raw.FPDFFormObj_CountObjects(form), 0)):
            yield self.raw.FPDFFormObj_GetObject(form, at), matrix

    def matrix(self, handle: Any) -> Matrix:
        """Return the matrix of an object."""
        matrix = self.raw.FS_MATRIX()
        if not self.raw.FPDFPageObj_GetMatrix(handle, ctypes.byref(matrix)):
            return _IDENTITY
        return (matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)

    def place(self, handle: Any, matrix: Matrix) -> Box:
        """Return the bounds of an object on the page: left, bottom, right, top."""
        sides = [ctypes.c_float() for _ in range(4)]
        self.raw.FPDFPageObj_GetBounds(handle, *[ctypes.byref(side) for side in sides])
        left, bottom, right, top = (side.value for side in sides)
        corners = [_transformed(x, y, matrix) for x in (left, right) for y in (bottom, top)]
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return (min(xs), min(ys), max(xs), max(ys))

    def path(
        self, handle: Any, matrix: Matrix, quarter: int, place: list[float], into: tuple[list[Any], list[Any]]
    ) -> None:
        """Add the straight strokes and thin boxes of a path to the rules, and its filled box to the fills."""
        raw = self.raw
        rules, fills = into
        mode, stroke = ctypes.c_int(), ctypes.c_int()
        raw.FPDFPath_GetDrawMode(handle, ctypes.byref(mode), ctypes.byref(stroke))
        if not mode.value and not stroke.value:
            return
        count = raw.FPDFPath_CountSegments(handle)
        if stroke.value and 0 < count <= _MAX_SEGMENTS:
            thick = self.thickness(handle, matrix)
            rules += [_thickened(rotated_box(line, quarter), thick) for line in self.strokes(handle, count, matrix)]
        if mode.value:
            thin = min(place[2] - place[0], place[3] - place[1]) <= 3
            parts = [ctypes.c_uint() for _ in range(4)]
            raw.FPDFPageObj_GetFillColor(handle, *[ctypes.byref(part) for part in parts])
            if min(part.value for part in parts[:3]) >= 250:
                return
            if count > 6 and count <= _MAX_SEGMENTS:  # one path may hold several thin boxes, each of them a rule
                rules += [rotated_box(line, quarter) for line in self.strokes(handle, count, matrix)]
            (rules if thin else fills).append(place)

    def thickness(self, handle: Any, matrix: Matrix) -> float:
        """Return the width of the strokes of a path."""
        width = ctypes.c_float()
        self.raw.FPDFPageObj_GetStrokeWidth(handle, ctypes.byref(width))
        a, b, c, d, _, _ = combine(self.matrix(handle), matrix)
        return width.value * math.sqrt(abs(a * d - b * c))

    def strokes(self, handle: Any, count: int, matrix: Matrix) -> Iterator[Box]:
        """Yield the horizontal and vertical strokes of a path."""
        raw = self.raw
        matrix = combine(self.matrix(handle), matrix)
        x, y = ctypes.c_float(), ctypes.c_float()
        here = start = (0.0, 0.0)
        for at in range(count):
            segment = raw.FPDFPath_GetPathSegment(handle, at)
            raw.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
            kind, there = raw.FPDFPathSegment_GetType(segment), _transformed(x.value, y.value, matrix)
            steps = [(here, there)] if kind == raw.FPDF_SEGMENT_LINETO else []
            if kind == raw.FPDF_SEGMENT_MOVETO:
                start = there
            if raw.FPDFPathSegment_GetClose(segment):
                steps.append((there, start))
            for (ax, ay), (bx, by) in steps:
                width, height = abs(ax - bx), abs(ay - by)
                if min(width, height) < 1 <= max(width, height):
                    yield (min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))
            here = there

    # --- links and tags --------------------------------------------------------------------------

    def links(self) -> Iterator[tuple[Box, str]]:
        """Yield the links of a page that lead to a URL, as (box, URL)."""
        raw = self.raw
        position, link, box = ctypes.c_int(0), ctypes.c_void_p(), raw.FS_RECTF()
        for _ in range(_MAX_OBJECTS):
            if not raw.FPDFLink_Enumerate(self.page, ctypes.byref(position), ctypes.byref(link)):
                return
            action = raw.FPDFLink_GetAction(link)
            if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
                continue
            size = raw.FPDFAction_GetURIPath(self.document, action, None, 0)
            if 1 < size < 10_000 and raw.FPDFLink_GetAnnotRect(link, ctypes.byref(box)):
                buffer = (ctypes.c_char * size)()
                raw.FPDFAction_GetURIPath(self.document, action, buffer, size)
                low, high = sorted((box.bottom, box.top))
                yield (box.left, low, box.right, high), buffer.value.decode("utf-8", "replace")

    def tags(self) -> tuple[dict[int, int], dict[int, str]]:
        """Return the heading levels and the alt texts of a tagged page, by marked-content id."""
        raw = self.raw
        levels: dict[int, int] = {}
        alts: dict[int, str] = {}
        tree = raw.FPDF_StructTree_GetForPage(self.page)
        if not tree:
            return levels, alts
        count = raw.FPDF_StructTree_CountChildren(tree)
        stack = [(raw.FPDF_StructTree_GetChildAtIndex(tree, at), 0, 0) for at in range(min(count, _MAX_TAGS))]
        for _ in range(_MAX_TAGS):
            if not stack:
                break
            element, depth, level = stack.pop()
            if not element or depth > 60:
                continue
            kind = read_utf16(raw.FPDF_StructElement_GetType, element).lower()
            level = _HEADINGS.get(kind, level)
            content_ids = [
                raw.FPDF_StructElement_GetMarkedContentIdAtIndex(element, at)
                for at in range(min(raw.FPDF_StructElement_GetMarkedContentIdCount(element), 1000))
            ]
            levels.update(dict.fromkeys(content_ids, level) if level else {})
            alt = read_utf16(raw.FPDF_StructElement_GetAltText, element) if kind in ("figure", "formula") else ""
            if alt.strip():
                alts[content_ids[0] if content_ids else -len(alts) - 2] = " ".join(alt.split())
            children = min(max(raw.FPDF_StructElement_CountChildren(element), 0), _MAX_TAGS)
            stack += [(raw.FPDF_StructElement_GetChildAtIndex(element, at), depth + 1, level) for at in range(children)]
        raw.FPDF_StructTree_Close(tree)
        return levels, alts


def _transformed(x: float, y: float, matrix: Matrix) -> tuple[float, float]:
    """Apply a matrix to a point."""
    a, b, c, d, e, f = matrix
    return (a * x + c * y + e, b * x + d * y + f)


def _thickened(line: list[float], thick: float) -> list[float]:
    """Return the box of a stroke; a thin stroke has none but its line."""
    x0, y0, x1, y1 = line
    half = thick / 2 if _THICK < thick < min(_THICKEST, max(x1 - x0, y1 - y0)) else 0.0
    return [x0, y0 - half, x1, y1 + half] if x1 - x0 > y1 - y0 else [x0 - half, y0, x1 + half, y1]
