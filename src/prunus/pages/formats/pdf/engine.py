"""``pdf``: PDF files, converted to headings, paragraphs, lists and tables."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ....core.errors import BadPage, MissingExtra
from ....core.types import Page

_HEAD: Final = 1024  # bytes; "%PDF-" must be in the first so many
_OUT_OF_TIME: Final = int(getattr(signal, "SIGXCPU", 0))  # the signal at the limit of the processor's time
_TAIL: Final = 4096  # bytes; "%%EOF" must be in the last so many


class Engine:
    """PDF files. A separate process reads each file, so that a hostile file cannot hang, crash or fill this one.

    The first words of page N are in ``<data value="page-N">``, counted from 1; comments follow their page as asides.
    Scanned pages without a text layer are recognised where rapidocr is installed (extra ``ocr``), in another process,
    one file at a time.

    :param max_pages: limit on the pages of a file; default 3,000.
    :param max_chars: limit on the characters of a file; default 5 million.
    :param seconds: limit on the wall time for reading and layout of one file; default 120.
    :param memory_mb: limit on the memory of the reading process, in MiB, where the system supports it; default 1,024.
    :param scans: limit on the scanned pages of a file that are recognised; default 50; 0 for none.
    :param scan_seconds: limit on the wall time for recognising the pages of one file; default 300.
    :param scan_memory_mb: limit on the memory of the recognising process, in MiB, where the system supports it;
        default 2,048.
    """

    name = "pdf"
    media_types = ("application/pdf", "application/x-pdf")
    suffixes = (".pdf",)

    def __init__(  # noqa: PLR0913 - limits
        self,
        max_pages: int = 3000,
        max_chars: int = 5_000_000,
        seconds: float = 120.0,
        memory_mb: int = 1024,
        scans: int = 50,
        scan_seconds: float = 300.0,
        scan_memory_mb: int = 2048,
    ) -> None:
        self.max_pages = max_pages
        self.max_chars = max_chars
        self.seconds = seconds
        self.memory_mb = memory_mb
        self.scans = scans
        self.scan_seconds = scan_seconds
        self.scan_memory_mb = scan_memory_mb
        self._recognising = threading.Lock()

    def to_html(self, page: Page) -> str:
        """Return the visible text of the PDF as HTML.

        :raises BadPage: the page is no PDF, is damaged, cut off or encrypted, exceeds a limit, or shows no text.
        :raises MissingExtra: pypdfium2 is not installed.
        """
        name = page.url or "page"
        content = page.content
        if isinstance(content, str) or b"%PDF-" not in content[:_HEAD]:
            raise BadPage(f"{name}: this is no PDF file", subject=page.url)
        if b"%%EOF" not in content[-_TAIL:]:
            raise BadPage(f"{name}: the PDF is cut off before its end; fetch or copy it again", subject=page.url)
        deadline = time.monotonic() + self.seconds
        metadata, *raw = self._read(content, name)
        from .layout import html_of  # lazy: a program that reads no PDF does not load the layout code
        from .page import scans_of

        scans = scans_of(raw)
        if scans:
            started = time.monotonic()
            metadata["warnings"] = self._recognise(content, raw, scans)
            deadline += time.monotonic() - started
        return html_of(metadata, raw, deadline, name)

    def _recognise(self, content: bytes, raw: list[dict[str, Any]], scans: list[int]) -> list[str]:
        """Recognise the scanned pages among ``raw`` where that is possible; return what a reader should know."""
        from .page import Recognised, ScanLimits, is_installed, recognise, warnings_of

        limits = ScanLimits(self.scans, self.scan_seconds, self.scan_memory_mb)
        done = Recognised([], scans)
        if self.scans and is_installed():
            if self._recognising.acquire(timeout=self.scan_seconds):
                try:
                    done = recognise(content, raw, scans, limits)
                finally:
                    self._recognising.release()
            else:
                done = Recognised([], scans, "another file is being recognised")
        return warnings_of(done, limits)

    def _read(self, content: bytes, name: str) -> list[dict[str, Any]]:
        """Read the file in a separate process; return the document's metadata, then one mapping per page."""
        import subprocess  # lazy: few programs need it

        from .reader import COMMAND

        spec = find_spec("pypdfium2_raw")
        if spec is None or not spec.origin:
            raise MissingExtra(
                "the package pypdfium2 is not installed; run: pip install pypdfium2", subject="pypdfium2"
            )
        folders = (str(Path(__file__).parents[1]), str(Path(spec.origin).parent))
        limits = (self.max_pages, self.max_chars, self.seconds, self.memory_mb)
        command = [sys.executable, "-I", "-S", "-c", COMMAND, *folders, *map(str, limits)]
        try:
            process = subprocess.run(command, input=content, capture_output=True, timeout=self.seconds + 1, check=False)  # noqa: S603 - our own interpreter and file, no shell
        except subprocess.TimeoutExpired as error:
            raise BadPage(f"{name}: reading the PDF takes over {self.seconds:g} s; split it", subject=name) from error
        lines = process.stdout.decode().splitlines() or [""]
        if process.returncode == 0 and lines[-1] == '{"end": true}':
            return [json.loads(line) for line in lines[:-1]]
        fault = json.loads(lines[-1])["error"] if lines[-1].startswith('{"error"') else ""
        if process.returncode > 0 and not fault and b"MemoryError" not in process.stderr:
            raise RuntimeError(
                process.stderr.decode("utf-8", "replace")
            )  # a bug in the reader, not a fault of the file
        if fault == "library":
            raise MissingExtra("pypdfium2 has no library here; run: pip install pypdfium2", subject="pypdfium2")
        if fault == "password":
            raise BadPage(f"{name}: the PDF is encrypted; save it without its password", subject=name)
        if process.returncode < 0 and process.returncode == -_OUT_OF_TIME:
            raise BadPage(f"{name}: reading the PDF takes too long for its size; fetch or save it again", subject=name)
        if fault == "damaged" or process.returncode < 0:
            raise BadPage(f"{name}: the PDF is damaged and cannot be read; fetch or save it again", subject=name)
        reason = fault or f"reading it takes over {self.memory_mb} MiB"
        raise BadPage(f"{name}: the PDF is too large: {reason}; split it", subject=name)
