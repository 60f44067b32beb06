"""Scanned pages of a PDF: find them, and have their text recognised where rapidocr is installed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ....core.installation import pip_install
from .page import PageWords

_FEW: Final = 100  # letters; a scan may carry a stamp or a line of the archive
_COVERED: Final = 0.5  # share of a page that pictures of a scan cover, at least
_ERROR: Final = re.compile(r"(\w{1,60})(?::|$)")
_NEEDED: Final = ("rapidocr", "onnxruntime", "numpy")

"""The command that installs what recognition needs."""


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
    found, fault = _run(content, [pages[at]["page"] for at in scans[: limits.pages]], limits)
    replaced, left = [], []
    for at in scans:
        page = found.get(pages[at]["page"])
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
