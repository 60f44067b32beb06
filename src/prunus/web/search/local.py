"""``local:FOLDER``: search a folder of saved pages with BM25. Nothing leaves the machine.

The index is built in memory at the first search, and again after a file of the folder has changed. The URL of
a hit is the path of its file.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, BadPage, PrunusError, errors_of_page
from ...core.text.bm25 import BM25
from ...core.text.words import guess_language, sentence_spans
from ...core.types import Hit, Page, Results, SearchRequest
from ...pages.clean.walk import clean_tree
from ._wire import check, unsupported

SUFFIXES: Final = (".html", ".htm", ".xhtml", ".txt", ".md")
_MAX_FILES: Final = 10_000
_MAX_FILE: Final = 16 << 20
_MAX_BYTES: Final = 256 << 20
"""Most bytes of all files of a folder."""

_SNIPPET: Final = 300
"""Approximate length of a snippet in code points."""

_FILTERS: Final = frozenset({"page", "want_text"})

ToHtml = Callable[[Page], str | bytes]
State = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Indexed:
    """The index of a folder.

    :param state: path, modification time and size of every file, to notice changes.
    :param index: BM25 over whole pages.
    :param passages: BM25 over the passages of all pages.
    :param starts: the passages of page ``i`` are ``starts[i]:starts[i + 1]``.
    :param skipped: one warning for each unreadable file.
    """

    state: State
    paths: list[Path]
    titles: list[str]
    texts: list[str]
    index: BM25
    passages: BM25
    starts: NDArray[np.int64]
    skipped: list[str]


class Engine:
    """Searches the pages of a folder by BM25 of the page plus BM25 of its best passage, which is the snippet.

    :param model: the folder.
    :param reader: converts a file of another format to HTML, for ``suffixes`` beyond HTML and text.
    :param suffixes: file name suffixes of pages.
    """

    name = "local"
    lacks_key = False
    lacks_address = False

    def __init__(self, model: str = "", reader: ToHtml | None = None, suffixes: tuple[str, ...] = SUFFIXES) -> None:
        if not model:
            raise BadInput("search local needs a folder: local:saved-pages", subject="local")
        self.folder = Path(model).expanduser()
        self._reader = reader
        self._suffixes = suffixes
        self._lock = threading.Lock()
        self._cached: _Indexed | None = None

    async def search(self, request: SearchRequest) -> Results:
        """Return the pages with a positive BM25 score for the query, best first.

        :raises BadInput: the folder is missing, contains no page or too many, or the request is invalid.
        """
        check(request)
        return await asyncio.to_thread(self._search, request)

    def _search(self, request: SearchRequest) -> Results:
        with self._lock:
            indexed = self._indexed()
        passage_scores = indexed.passages.scores(request.query)
        best_passage = np.maximum.reduceat(passage_scores, indexed.starts[:-1])
        scores = indexed.index.scores(request.query) + best_passage
        order = [int(page) for page in np.argsort(-scores, kind="stable") if scores[page] > 0]
        start = (request.page - 1) * request.count
        hits = []
        for rank, page in enumerate(order[start : start + request.count], start + 1):
            first, last = indexed.starts[page], indexed.starts[page + 1]
            passages = _passages(indexed.texts[page])
            snippet = " ".join(passages[int(np.argmax(passage_scores[first:last]))].split())[: 2 * _SNIPPET]
            text = indexed.texts[page] if request.want_text else ""
            hits.append(Hit(str(indexed.paths[page]), indexed.titles[page], snippet, text, "", "", self.name, rank))
        warnings = unsupported(request, self.name, _FILTERS)
        return Results(tuple(hits), (*(w.split("; done")[0] for w in warnings), *indexed.skipped))

    def _indexed(self) -> _Indexed:
        """Return the index of the folder, rebuilt if a file has changed."""
        paths = self._files()
        state = tuple((str(path), info.st_mtime_ns, info.st_size) for path in paths for info in [path.stat()])
        if self._cached is None or self._cached.state != state:
            self._cached = self._index(paths, state)
        return self._cached

    def _files(self) -> list[Path]:
        """Return the pages of the folder in sorted order; symbolic links out of it are ignored."""
        if not self.folder.is_dir():
            raise BadInput(f"search local: {self.folder} is not a folder", subject=str(self.folder))
        root = self.folder.resolve()
        pages: list[Path] = []
        for path in sorted(self.folder.rglob("*")):
            if path.suffix.lower() in self._suffixes and path.is_file() and path.resolve().is_relative_to(root):
                pages.append(path)
            if len(pages) > _MAX_FILES:
                raise BadInput(f"search local: {self.folder}: more than {_MAX_FILES:,} pages; split the folder")
        if not pages:
            raise BadInput(
                f"search local: {self.folder}: no page in this folder; looked for {', '.join(self._suffixes)}",
                subject=str(self.folder),
            )
        return pages

    def _index(self, paths: list[Path], state: State) -> _Indexed:
        kept: list[Path] = []
        titles: list[str] = []
        texts: list[str] = []
        skipped: list[str] = []
        size = 0
        for path, (_, _, length) in zip(paths, state, strict=True):
            size += length
            if size > _MAX_BYTES:
                raise BadInput(f"search local: {self.folder}: more than {_MAX_BYTES >> 20} MiB; split the folder")
            try:
                title, text = self._read(path)
            except (PrunusError, OSError) as error:
                skipped.append(f"local: {path.name} was left out: {error}")
                continue
            kept.append(path)
            titles.append(title)
            texts.append(text)
        if not kept:
            raise BadInput(f"search local: {self.folder}: no page could be read; {skipped[0]}")
        language = guess_language(" ".join(text[:400] for text in texts[:50]))
        index = BM25([f"{title}\n{text}" for title, text in zip(titles, texts, strict=True)], language=language)
        passages = [_passages(text) for text in texts]
        starts = np.cumsum([0, *map(len, passages)], dtype=np.int64)
        passage_index = BM25([passage for page_passages in passages for passage in page_passages], language=language)
        return _Indexed(state, kept, titles, texts, index, passage_index, starts, skipped)

    def _read(self, path: Path) -> tuple[str, str]:
        """Return the title and the visible text of a file."""
        with path.open("rb") as file:
            content = file.read(_MAX_FILE + 1)
        if len(content) > _MAX_FILE:
            raise BadPage(f"over the limit of {_MAX_FILE >> 20} MiB", subject=str(path))
        if path.suffix.lower() in (".txt", ".md"):
            text = content.decode("utf-8", "replace")
            return next((line.strip("# ").strip() for line in text.splitlines() if line.strip()), path.stem)[:200], text
        with errors_of_page(path.name):
            source = self._reader(Page(content, url=str(path))) if self._reader else content
            tree = clean_tree(source, name=str(path))
        return " ".join(tree.title.split())[:200] or path.stem, tree.canonical


def _passages(text: str) -> list[str]:
    """Split a text into runs of sentences of about the length of a snippet."""
    passages: list[str] = []
    begin = last = 0
    for start, end in sentence_spans(text):
        if start > begin and end - begin > _SNIPPET:
            passages.append(text[begin:start])
            begin = start
        last = end
    if last > begin:
        passages.append(text[begin:last])
    return passages or [""]
