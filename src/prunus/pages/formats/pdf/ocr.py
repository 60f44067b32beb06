"""Recognise the text of scanned PDF pages with rapidocr.

This module runs in a separate process (see ``COMMAND``), like :mod:`.reader`, and imports nothing from this package. It
reads a PDF from stdin and writes one JSON line for each page to stdout, in the form of :meth:`.reader.PdfReader.page`.
It opens no connection: the models are files of the package rapidocr.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

COMMAND: Final = (
    "import json, runpy, sys; sys.path += json.loads(sys.argv[1]); "
    "runpy.run_path(sys.argv[2], run_name='ocr')['main'](sys.argv[3:])"
)
"""The program of the process. Arguments: folders to import from, as JSON; this file; those of :func:`main`."""

THREADS: Final = 4
"""Threads of one recognition, at most; onnxruntime takes no more than there are processors."""

_PIXELS: Final = 2000  # longest side of a page's picture; rapidocr shrinks larger ones
_LARGEST: Final = 4.0  # pixels a point, at most
_SURE: Final = 0.8  # mean score of lines that stand upright
_LETTER: Final = 0.8  # size of letters as a share of the height of rapidocr's boxes
_BASE: Final = 0.25  # distance of the baseline from the lower edge of a box, as a share of its height
_ALIKE: Final = 0.3  # letters whose size differs by a smaller share are of one size: the heights of boxes vary

Line = tuple[list[list[float]], str, float]
"""The four corners of a line in pixels, its text, its score."""


class Recogniser:
    """Recognises the pages of one document."""

    def __init__(self, data: bytes, threads: int) -> None:
        self.raw = import_module("pypdfium2_raw.bindings")
        self.numpy = import_module("numpy")
        rapidocr = import_module("rapidocr")
        models = Path(rapidocr.__file__ or "").parent / "models"
        paths = {f"{part}.model_path": str(_model(models, part.lower())) for part in ("Det", "Cls", "Rec")}
        threads_of = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": threads for kind in ("intra", "inter")}
        self.read = rapidocr.RapidOCR(params={"Global.log_level": "critical", **threads_of, **paths})
        self.raw.FPDF_InitLibrary()
        self.data = data  # pdfium reads from it as long as the document is open
        self.document = self.raw.FPDF_LoadMemDocument64(data, len(data), None)

    def page(self, number: int) -> dict[str, Any]:
        """Return the words of page ``number``, counted from 0, in the form of :meth:`.reader.PdfReader.page`."""
        image, scale = self.image(number)
        lines, turns = self.lines(image)
        height, width = (image.shape[1], image.shape[0]) if turns % 2 else (image.shape[0], image.shape[1])
        words = [[round(value / scale, 2) for value in word[:4]] + word[4:] for word in _words(lines)]
        return {"page": number, "box": [0, 0, width / scale, height / scale], "words": words}

    def image(self, number: int) -> tuple[Any, float]:
        """Return a page as an array of pixels (blue, green, red), and the pixels a point."""
        raw = self.raw
        page = raw.FPDF_LoadPage(self.document, number)
        wide, high = raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page)
        scale = min(_PIXELS / max(wide, high, 1.0), _LARGEST)
        width, height = max(round(wide * scale), 1), max(round(high * scale), 1)
        bitmap = raw.FPDFBitmap_CreateEx(width, height, raw.FPDFBitmap_BGR, None, 0)
        try:
            raw.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, 0xFFFFFFFF)
            raw.FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, 0)
            stride = raw.FPDFBitmap_GetStride(bitmap)
            address = ctypes.cast(raw.FPDFBitmap_GetBuffer(bitmap), ctypes.POINTER(ctypes.c_ubyte))
            rows = self.numpy.ctypeslib.as_array(address, (height, stride))
            return rows[:, : 3 * width].reshape(height, width, 3).copy(), scale
        finally:
            raw.FPDFBitmap_Destroy(bitmap)
            raw.FPDF_ClosePage(page)

    def lines(self, image: Any) -> tuple[list[Line], int]:
        """Return the lines of a picture, and the quarter turns to the left after which they stand upright."""
        best, turns = self.recognised(image), 0
        letters = sum(len(text) for _, text, _ in best)
        lying = sum(len(text) for corners, text, _ in best if _is_lying(corners))
        on_its_side = 2 * lying > letters
        on_its_head = not on_its_side and _quality(best) < _SURE * letters
        for quarter in (1, 3) if on_its_side else (2,) if on_its_head else ():
            lines = self.recognised(self.numpy.ascontiguousarray(self.numpy.rot90(image, quarter)))
            if _quality(lines) > _quality(best) or (on_its_side and not turns):
                best, turns = lines, quarter
        return best, turns

    def recognised(self, image: Any) -> list[Line]:
        """Return the lines of a picture that stands upright."""
        result = self.read(image, use_cls=False)
        if result.boxes is None or result.txts is None:
            return []
        return [
            (corners.tolist(), " ".join(text.split()), float(score))
            for corners, text, score in zip(result.boxes, result.txts, result.scores, strict=True)
            if text.strip()
        ]


def _model(folder: Path, part: str) -> Path:
    """Return the file of a part's model; the package downloads those of other languages into the same folder.

    :raises FileNotFoundError: there is none.
    """
    result = sorted(folder.glob(f"*_{part}_*.onnx"))
    usual = [path for path in result if path.name.startswith(("PP-", "ch_"))]
    if not result:
        raise FileNotFoundError(f"rapidocr has no model for {part}")
    return (usual or result)[0]


def _is_lying(corners: list[list[float]]) -> bool:
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return max(ys) - min(ys) > 1.5 * (max(xs) - min(xs))


def _quality(lines: list[Line]) -> float:
    """Return the letters of lines, each times the score of its line."""
    return sum(len(text) * score for _, text, score in lines)


def _words(lines: list[Line]) -> list[list[Any]]:
    """Return lines as words, see :mod:`.reader`; a word's width follows from its share of the line's letters."""
    sizes = sorted(size for corners, text, _ in lines for size in [_LETTER * _height(corners)] * len(text))
    usual = sizes[len(sizes) // 2] if sizes else 0.0
    words: list[list[Any]] = []
    for corners, text, _ in lines:
        size = _LETTER * _height(corners)
        size = usual if abs(size - usual) <= _ALIKE * usual else size
        left, right = (corners[0][0] + corners[3][0]) / 2, (corners[1][0] + corners[2][0]) / 2
        base = (corners[2][1] + corners[3][1]) / 2 - _BASE * _height(corners)
        step, at = (right - left) / len(text), 0
        for word in text.split():
            start = left + step * at
            words.append([start, start + step * len(word), base, size, 0, 1, word])
            at += len(word) + 1
    return words


def _height(corners: list[list[float]]) -> float:
    """Return the height of a line in pixels."""
    return (corners[3][1] + corners[2][1] - corners[0][1] - corners[1][1]) / 2


def main(arguments: list[str]) -> None:
    """Recognise pages of the PDF on stdin, and write each to stdout as a JSON line as soon as it is done.

    :param arguments: the pages as a JSON list of numbers from 0; the limits: seconds, MiB of memory.
    """
    numbers, seconds, memory = arguments
    ends = time.monotonic() + float(seconds)
    with suppress(ImportError, ValueError, OSError):  # not every system has such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(memory) << 20, int(memory) << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = round(float(seconds) * THREADS) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
    recogniser = Recogniser(sys.stdin.buffer.read(), THREADS)
    for number in json.loads(numbers):
        if time.monotonic() > ends:
            break
        try:
            page = recogniser.page(number)
        except MemoryError:
            raise
        except Exception as error:  # of a foreign package, at one page: the others are read
            sys.stderr.write(f"{type(error).__name__}\n")
            continue
        sys.stdout.write(json.dumps(page, separators=(",", ":")) + "\n")
        sys.stdout.flush()
