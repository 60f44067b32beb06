"""Select the visible words of a PDF page; a scanned page has its text recognised where rapidocr is installed."""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ....core.installation import pip_install
from .lines import Word, by_place, directions, join_spaced
from .reader import INVISIBLE, WHITE
from .scripts import mark_scripts
from .strikes import StruckWords

TINY: Final = 2.0
"""Points. Nobody reads smaller letters, but hidden instructions have used them, so they are left out."""

_STAMP: Final = 0.25  # letters that can be seen on a scan, for each recognised letter, at most
_SCAN: Final = 0.5  # share of a page that pictures of a scan cover, at least


class PageWords:
    """The visible content of one page, before layout.

    :param raw: content of the page, as :meth:`.reader.PdfReader.page` returns it.
    """

    __slots__ = (
        "alts", "box", "comments", "directed", "fills", "images", "mirrored", "number", "rules", "turned", "words",
    )  # fmt: skip

    def __init__(self, raw: dict[str, Any]) -> None:
        self.number: int = raw["page"]
        self.box: list[float] = raw.get("box") or [0.0, 0.0, 0.0, 0.0]
        # most letters run right to left: the page is laid out in a mirror, from its right edge to its left
        self.directed, self.mirrored = directions([entry[6] for entry in raw.get("words", [])])
        if self.mirrored:
            raw = _mirrored(raw, self.box[0] + self.box[2])
        self.rules: list[Sequence[float]] = raw.get("rules", [])
        self.fills: list[list[float]] = raw.get("fills", [])
        self.images: list[list[Any]] = raw.get("images", [])
        self.alts: list[str] = raw.get("alts", [])
        words = [Word(entry, order, self.number) for order, entry in enumerate(raw.get("words", []))]
        mark_scripts(words)
        if self.directed:
            words = by_place(words)
        self.words = join_spaced(self._visible(words))
        _add_drawn_bullets(self.words, raw.get("dots", []))
        _set_links(self.words, raw.get("links", []))
        self.rules = StruckWords(self.words).mark(raw.get("strikes", []), self.rules)
        self.comments: list[list[str]] = raw.get("comments", [])
        self.turned = [
            [word for order, entry in enumerate(group) if self._readable(word := Word(entry, order, self.number))]
            for group in raw.get("turned", [])
        ]

    @property
    def height(self) -> float:
        """Height of the page in points."""
        return self.box[3] - self.box[1]

    def _readable(self, word: Word) -> bool:
        return word.size >= TINY and not word.flags & (INVISIBLE | WHITE)

    def _visible(self, words: list[Word]) -> list[Word]:
        """Return the words that a reader of the page can see, and the recognised words of a scan."""
        x0, y0, x1, y1 = self.box
        backgrounds, pictures = Boxes([*self.fills, *self.images]), Boxes(self.images)
        scanned = self._is_scan(words)
        visible = []
        for word in words:
            x, y = (word.x0 + word.x1) / 2, word.y - 0.3 * word.size  # about the middle of the letters
            if not (x0 - 1 <= x <= x1 + 1 and y0 - 1 <= y <= y1 + 1) or word.size < TINY:
                continue
            if word.flags & INVISIBLE and not (scanned and pictures.at(x, y)):
                continue
            if word.flags & WHITE and not word.flags & INVISIBLE and backgrounds.at(x, y) is None:
                continue
            visible.append(word)
        return visible

    def _is_scan(self, words: Sequence[Word]) -> bool:
        """Tell whether the page is a scan with recognised text: pictures, and hardly any words beside invisible ones.

        Next to words that can be seen, such as a stamp, the pictures must cover half of the page.
        """
        hidden = sum(len(word.text) for word in words if word.flags & INVISIBLE)
        shown = sum(len(word.text) for word in words) - hidden
        return bool(self.images) and (not shown or (shown <= _STAMP * hidden and self.covered() >= _SCAN))

    def covered(self) -> float:
        """Return the share of the page under pictures; overlaps count twice."""
        x0, y0, x1, y1 = self.box
        areas = [
            max(min(image[2], x1) - max(image[0], x0), 0.0) * max(min(image[3], y1) - max(image[1], y0), 0.0)
            for image in self.images
        ]
        return float(sum(areas)) / max((x1 - x0) * (y1 - y0), 1.0)


def _mirrored(raw: dict[str, Any], width: float) -> dict[str, Any]:
    """Return the content of a page with left and right exchanged.

    :param width: sum of the left and the right edge.
    """
    boxes = {
        key: [[width - box[2], box[1], width - box[0], *box[3:]] for box in raw.get(key, [])]
        for key in ("rules", "fills", "images", "dots", "links", "strikes")
    }
    words = [[width - entry[1], width - entry[0], *entry[2:]] for entry in raw.get("words", [])]
    return {**raw, **boxes, "words": words}


class Boxes:
    """An index of boxes by horizontal bands, for fast lookup of the box at a point."""

    _BAND: Final = 20.0  # points
    _TALL: Final = 200  # bands that one box is entered into; a bound for hostile boxes

    def __init__(self, boxes: Iterable[Sequence[Any]]) -> None:
        self.bands: dict[int, list[Sequence[Any]]] = {}
        for box in boxes:
            first = int(box[1] // self._BAND)
            for band in range(first, min(int(box[3] // self._BAND), first + self._TALL) + 1):
                held = self.bands.setdefault(band, [])
                if len(held) < 100:  # a hundred overlapping boxes are a drawing
                    held.append(box)

    def at(self, x: float, y: float) -> Sequence[Any] | None:
        """Return a box that contains a point, or None."""
        for box in self.bands.get(int(y // self._BAND), ()):
            if box[0] - 1 <= x <= box[2] + 1 and box[1] - 1 <= y <= box[3] + 1:
                return box
        return None


def _add_drawn_bullets(words: list[Word], dots: Sequence[Sequence[float]]) -> None:
    """Add a bullet before each line that follows a drawn dot: browsers draw list bullets when they print to PDF."""
    if not dots or len(dots) >= 400:
        return
    lines = sorted(words, key=lambda word: word.y)
    heights = [word.y for word in lines]
    bullets: dict[int, Word] = {}
    for x0, y0, x1, y1 in dots:
        middle = (y0 + y1) / 2
        beside = [
            word
            for word in lines[bisect_left(heights, middle) : bisect_right(heights, middle + 20)]
            if word.y - 0.75 * word.size < middle and max(x1 - x0, y1 - y0) < 0.7 * word.size
        ]
        after = min((word for word in beside if word.x0 >= x1 - 1), key=lambda word: word.x0, default=None)
        close_before = any(x0 - 2 * word.size < word.x1 <= x0 + 1 for word in beside)
        if after is None or close_before or after.x0 - x1 > 2.5 * after.size or x1 - x0 < 0.15 * after.size:
            continue
        bullet = Word([x0, x1, after.y, after.size, after.flags, 1, "•"], after.order, after.page)
        after.space = True
        bullets[id(after)] = bullet
    words[:] = [entry for word in words for entry in (bullets.get(id(word)), word) if entry is not None]


def _set_links(words: Iterable[Word], links: Sequence[Sequence[Any]]) -> None:
    """Set the URL of the words under each link."""
    boxes = Boxes(links)
    for word in words if links else ():
        under = boxes.at((word.x0 + word.x1) / 2, word.y - 0.3 * word.size)
        word.href = under[4] if under else ""


_FEW: Final = 100  # letters; a scan may carry a stamp or a line of the archive
_COVERED: Final = 0.5  # share of a page that pictures of a scan cover, at least
_ERROR: Final = re.compile(r"(\w{1,60})(?::|$)")
_NEEDED: Final = ("rapidocr", "onnxruntime", "numpy")


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Limits on the recognition of one file.

    :param pages: scanned pages; 0 recognises none.
    :param seconds: wall time; what is recognised by then is kept.
    :param memory_mb: memory of the recognising process, in MiB, where the system supports a limit.
    """

    pages: int
    seconds: float
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Recognised:
    """What came of the recognition of scanned pages.

    :param replaced: places of the pages whose words are now those that were recognised.
    :param left: places of the pages that were not tried, or at which recognition failed.
    :param fault: why some are left; '' where a limit was reached.
    """

    replaced: Sequence[int]
    left: Sequence[int]
    fault: str = ""


def is_installed() -> bool:
    """Tell whether scanned pages can be recognised."""
    return all(find_spec(name) is not None for name in _NEEDED)


def scans_of(pages: Sequence[dict[str, Any]]) -> list[int]:
    """Return the places of pages that show pictures and hardly any text."""
    return [at for at, page in enumerate(pages) if page.get("images") and _is_scan(page)]


def _is_scan(page: dict[str, Any]) -> bool:
    visible = PageWords(page)
    return _letters(visible.words) <= _FEW and visible.covered() >= _COVERED


def _letters(words: Sequence[Any]) -> int:
    return sum(len(word.text) for word in words)


def recognise(content: bytes, pages: list[dict[str, Any]], scans: Sequence[int], limits: ScanLimits) -> Recognised:
    """Replace scanned pages by their recognised words; return their places, and why others were not tried.

    A page keeps its own few words where recognition finds hardly more, as in a photograph; it counts as neither.

    :param content: the PDF.
    :param pages: content of each page, as :meth:`.reader.PdfReader.page` returns it.
    """
    result, fault = _run(content, [pages[at]["page"] for at in scans[: limits.pages]], limits)
    replaced, left = [], []
    for at in scans:
        page = result.get(pages[at]["page"])
        if page is None:
            left.append(at)
        elif sum(len(word[6]) for word in page["words"]) > 2 * _letters(PageWords(pages[at]).words):
            pages[at] = page
            replaced.append(at)
    return Recognised(replaced, left, fault)


def _run(content: bytes, numbers: Sequence[int], limits: ScanLimits) -> tuple[dict[int, dict[str, Any]], str]:
    """Recognise pages in a separate process; return those that were done, and why the process ended before, or ''."""
    import subprocess  # lazy: few programs need it

    from .ocr import COMMAND

    folders = json.dumps([path for path in sys.path if path])
    program = str(Path(__file__).with_name("ocr.py"))
    arguments = (json.dumps(list(numbers)), str(limits.seconds), str(limits.memory_mb))
    command = [sys.executable, "-I", "-S", "-c", COMMAND, folders, program, *arguments]
    try:
        ran = subprocess.run(command, input=content, capture_output=True, timeout=limits.seconds + 5, check=False)  # noqa: S603 - our own interpreter and file, no shell
        written, said = ran.stdout, ran.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    except subprocess.TimeoutExpired as error:
        written, said = error.stdout or b"", []
    lines = written.split(b"\n")[:-1]  # the last line may be cut off
    done = {page["page"]: page for page in map(json.loads, lines)}
    # of the process's last words only the name of the error: its text may hold paths of this machine
    named = _ERROR.match(said[0]) if said and len(done) < len(numbers) else None
    return done, f"recognition failed ({named[1]})" if named else ""


def warnings_of(recognised: Recognised, limits: ScanLimits) -> list[str]:
    """Return what a reader should know of scanned pages."""
    left, fault, said = recognised.left, recognised.fault, []
    if recognised.replaced:
        scans = _pages(recognised.replaced, "a scan", "scans")
        said.append(f"{scans}; the text was recognised by OCR and may have errors")
    if left and not is_installed():
        said.append(f"{_pages(left, 'a picture', 'pictures')} with hardly any text; for OCR run: {pip_install('ocr')}")
    elif left and limits.pages:
        most = f"OCR ends after {limits.pages} pages, {limits.seconds:g} s and {limits.memory_mb} MiB"
        said.append(f"{_pages(left, 'a picture', 'pictures')} and not recognised: {fault or most}")
    return said


def _pages(places: Sequence[int], one: str, several: str) -> str:
    """Return the pages at places and what they are: ``page 3 is a scan``, ``pages 1, 2 and 3 are scans``."""
    numbers = [str(place + 1) for place in places]
    if len(numbers) == 1:
        return f"page {numbers[0]} is {one}"
    most = 5 if len(numbers) > 6 else len(numbers) - 1
    rest = f"{len(numbers) - most} others" if len(numbers) > 6 else numbers[-1]
    return f"pages {', '.join(numbers[:most])} and {rest} are {several}"
