"""Settings → engines. The only place that picks an engine by name."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from .config import Settings
from .errors import BadPage
from .html.parse import check_size
from .pipeline import Engines
from .ports import Format as FormatPort
from .registry import engine_names, make_engine, needs_of
from .types import Options, Page

_REFERENCE: Final = re.compile(r"&#?\w+;")
_REFERENCE_BYTES: Final = re.compile(rb"&#?\w+;")


def assemble(settings: Settings, options: Options | None = None) -> Engines:
    """Make the engines of a call: options win over settings.

    :raises UnknownEngine: a spec names none.
    :raises MissingExtra: an engine needs a package that is not installed.
    """
    options = options or Options()
    specs = {
        "tokenizer": options.tokenizer or settings.tokenizer,
        "scorer": options.scorer or settings.scorer,
        "embedder": options.embedder or settings.embedder,
        "extractor": settings.extractor,
        "generator": settings.generator,
    }
    made: dict[str, Any] = {}

    def make(kind: str) -> Any:
        if kind not in made:
            made[kind] = None  # an engine that needs its own kind is a bug, and ends here
            made[kind] = make_engine(kind, specs[kind], **{other: make(other) for other in needs_of(kind, specs[kind])})
        return made[kind]

    counter, scorer, extractor, generator = (make(kind) for kind in ("tokenizer", "scorer", "extractor", "generator"))
    names = {kind: specs[kind] for kind in made}
    return Engines(counter, scorer, extractor, generator, names)


@cache
def formats() -> Formats:
    """Return the formats that can be read, found once."""
    return Formats()


class Formats:
    """Every format by name, suffix and media type; turns any page that one of them knows into HTML."""

    def __init__(self) -> None:
        self._by_name: dict[str, FormatPort] = {name: make_engine("format", name) for name in engine_names("format")}

    @property
    def suffixes(self) -> list[str]:
        """Suffixes of the files that can be read."""
        return sorted({suffix for engine in self._by_name.values() for suffix in engine.suffixes})

    def to_html(self, page: Page) -> str | bytes:
        """Return a page as HTML: by content, then media type, then suffix.

        :raises BadPage: the content is empty, or of no format that is known.
        """
        check_size(page.content, page.url or "page")
        if not page.content or page.content.isspace():
            raise BadPage(f"{page.url or 'page'}: the page is empty", subject=page.url)
        return self._choose(page).to_html(page)

    def _choose(self, page: Page) -> FormatPort:
        kind = page.media_type.split(";")[0].strip().lower()
        suffix = page.url[page.url.rfind(".") :].lower() if "." in page.url else ""
        for engine in self._by_name.values():
            if kind in engine.media_types:
                return engine
        if not _looks_like_html(page.content):
            for engine in self._by_name.values():
                if suffix in engine.suffixes and engine is not self._by_name["html"]:
                    return engine
            if suffix not in self._by_name["html"].suffixes and _has_no_markup(page.content):
                return self._by_name["text"]
        return self._by_name["html"]


def _has_no_markup(content: str | bytes) -> bool:
    """Tell whether content is lines with neither a tag nor a character reference: plain text without a name.

    One line may as well be HTML, as cleaning writes it.
    """
    if isinstance(content, str):
        return "<" not in content and "\n" in content.strip() and not _REFERENCE.search(content)
    return b"<" not in content and b"\n" in content.strip() and not _REFERENCE_BYTES.search(content)


def _looks_like_html(content: str | bytes) -> bool:
    """Tell whether content begins like a web page, whatever its name says."""
    head = content[:1024]
    start = (
        (head if isinstance(head, str) else head.decode("latin-1")).lstrip("\ufeff\u00ef\u00bb\u00bf \t\r\n").lower()
    )
    return start.startswith(("<!doctype html", "<html", "<head", "<body", "<!--"))
