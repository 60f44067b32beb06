"""``pdf``: PDF files with a text layer, laid out again as headings, paragraphs, lists and tables."""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ....core.errors import BadPage, MissingExtra
from ....core.types import Page

_HEAD: Final = 1024  # bytes in which a PDF begins
_TAIL: Final = 4096  # bytes in which it ends


class Engine:
    """PDF files. A process of its own reads each, so that none can hang, crash or fill this one.

    The first words of page N stand in ``<data value="page-N">``, counted from 1.

    :param max_pages: pages of a file.
    :param max_chars: letters of a file.
    :param seconds: wall time for one file, reading and laying out together.
    :param memory_mb: memory of the reading process, in MiB, where the system can limit it.
    """

    name = "pdf"
    media_types = ("application/pdf", "application/x-pdf")
    suffixes = (".pdf",)

    def __init__(
        self, max_pages: int = 3000, max_chars: int = 5_000_000, seconds: float = 120.0, memory_mb: int = 1024
    ) -> None:
        self.max_pages = max_pages
        self.max_chars = max_chars
        self.seconds = seconds
        self.memory_mb = memory_mb

    def to_html(self, page: Page) -> str:
        """Return what the PDF shows as HTML.

        :raises BadPage: it is no PDF, damaged, cut off, encrypted, over a limit, or has no text layer.
        :raises MissingExtra: pypdfium2 is not installed.
        """
        name = page.url or "page"
        content = page.content
        if isinstance(content, str) or b"%PDF-" not in content[:_HEAD]:
            raise BadPage(f"{name}: this is no PDF file", subject=page.url)
        if b"%%EOF" not in content[-_TAIL:]:
            raise BadPage(f"{name}: the PDF is cut off before its end; fetch or copy it again", subject=page.url)
        ends = time.monotonic() + self.seconds
        about, *raw = self._read(content, name)
        from .layout import html_of  # here: a program that reads no PDF does not load what lays it out

        return html_of(about, raw, ends, name)

    def _read(self, content: bytes, name: str) -> list[dict[str, Any]]:
        """Have the file read by a process of its own."""
        import subprocess  # here: hardly any program needs it

        from .reader import COMMAND

        spec = find_spec("pypdfium2_raw")
        if spec is None or not spec.origin:
            raise MissingExtra(
                "the package pypdfium2 is not installed; run: pip install pypdfium2", subject="pypdfium2"
            )
        folders = (str(Path(__file__).parents[1]), str(Path(spec.origin).parents[1]))
        limits = (self.max_pages, self.max_chars, self.seconds, self.memory_mb)
        command = [sys.executable, "-I", "-S", "-c", COMMAND, *folders, *map(str, limits)]
        try:
            done = subprocess.run(command, input=content, capture_output=True, timeout=self.seconds + 1, check=False)  # noqa: S603 - our own interpreter and file, no shell
        except subprocess.TimeoutExpired as error:
            raise BadPage(f"{name}: reading the PDF takes over {self.seconds:g} s; split it", subject=name) from error
        lines = done.stdout.decode().splitlines() or [""]
        if done.returncode == 0 and lines[-1] == '{"end": true}':
            return [json.loads(line) for line in lines[:-1]]
        said = json.loads(lines[-1])["error"] if lines[-1].startswith('{"error"') else ""
        if done.returncode > 0 and not said and b"MemoryError" not in done.stderr:
            raise RuntimeError(done.stderr.decode("utf-8", "replace"))  # a bug of the reader, not of the file
        if said == "password":
            raise BadPage(f"{name}: the PDF is encrypted; save it without its password", subject=name)
        if said == "damaged" or done.returncode < 0:
            raise BadPage(f"{name}: the PDF is damaged and cannot be read; fetch or save it again", subject=name)
        reason = said or f"reading it takes over {self.memory_mb} MiB"
        raise BadPage(f"{name}: the PDF is too large: {reason}; split it", subject=name)
