"""Samples as numbers, in one small file: each page part once, with all questions about it.

Needs numpy and safetensors only, so that a bare machine can train from it.
"""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from prunus_train.errors import DataBroken

Tokens = NDArray[np.uint16] | NDArray[np.uint32]
KINDS = ("synthetic", "page", "passages")
"""What asked: a block of the page, a person about the page, a person about one of some passages."""

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26}]  # the same page comes back far behind


@dataclass(frozen=True, slots=True)
class Ask:
    """One question about a page part.

    :param question: tokens of the prompt from the question on, without the tail that all prompts share.
    :param path, content: tokens of the completion, encoded apart.
    """

    question: Sequence[int]
    path: Sequence[int]
    content: Sequence[int]
    kind: int


@dataclass(slots=True)
class Packed:
    """Samples as flat arrays.

    :param pages: tokens of all page parts, one after the other; part ``i`` is ``page_start[i]:page_start[i + 1]``.
    :param asks: tokens of all questions with their completions: question, path, content.
    :param first_ask: the questions about page part ``i`` are ``first_ask[i]:first_ask[i + 1]``.
    :param tail: tokens of every prompt behind the question.
    :param paths: tokens of the paths of all blocks; those of page part ``i`` are numbers
        ``first_path[i]:first_path[i + 1]``, path ``j`` is ``path_start[j]:path_start[j + 1]``.
    :param tags: which tokens of the vocabulary are a tag; known where the tokenizer is, not stored.
    :param names: which of the tags are a name that a number closes; not stored.
    :param words: tokens of rarer words, which may stand for each other; not stored either.
    """

    pages: Tokens
    page_start: NDArray[np.int64]
    asks: Tokens
    ask_start: NDArray[np.int64]
    path_at: NDArray[np.int32]
    content_at: NDArray[np.int32]
    kind: NDArray[np.uint8]
    first_ask: NDArray[np.int64]
    tail: Tokens
    paths: Tokens
    path_start: NDArray[np.int64]
    first_path: NDArray[np.int64]
    tags: NDArray[np.bool_] | None = None
    words: NDArray[np.int64] | None = None
    names: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.page_start) - 1

    def page(self, index: int) -> Tokens:
        """Return the tokens of a page part."""
        return self.pages[self.page_start[index] : self.page_start[index + 1]]

    def ask(self, number: int) -> tuple[Tokens, Tokens, Tokens]:
        """Return question (with the tail), path and content of a question."""
        own = self.asks[self.ask_start[number] : self.ask_start[number + 1]]
        path, content = int(self.path_at[number]), int(self.content_at[number])
        return np.concatenate([own[:path], self.tail]), own[path:content], own[content:]

    def all_paths(self, index: int) -> list[Tokens]:
        """Return the path of each block of a page part."""
        numbers = range(self.first_path[index], self.first_path[index + 1])
        return [self.paths[self.path_start[one] : self.path_start[one + 1]] for one in numbers]


_STORED = tuple(name for name in Packed.__dataclass_fields__ if name not in ("tags", "words", "names"))


@dataclass(slots=True)
class Packer:
    """Collects samples and writes them as one file."""

    tail: Sequence[int]
    _pages: list[Sequence[int]] = field(default_factory=list)
    _asks: list[Sequence[Ask]] = field(default_factory=list)
    _paths: list[Sequence[Sequence[int]]] = field(default_factory=list)

    def add(self, page: Sequence[int], asks: Sequence[Ask], paths: Sequence[Sequence[int]] = ()) -> None:
        """Add a page part and the questions about it.

        :param paths: of all of its blocks; needed to train on the choices of inference alone.
        """
        if asks:
            self._pages.append(page)
            self._asks.append(asks)
            self._paths.append(paths)

    def __len__(self) -> int:
        return len(self._pages)

    def packed(self) -> Packed:
        """Return everything as arrays."""
        flat = [ask for asks in self._asks for ask in asks]
        wholes = [[*ask.question, *ask.path, *ask.content] for ask in flat]
        return Packed(
            pages=_joined(self._pages),
            page_start=_starts(self._pages),
            asks=_joined(wholes),
            ask_start=_starts(wholes),
            path_at=np.array([len(ask.question) for ask in flat], np.int32),
            content_at=np.array([len(ask.question) + len(ask.path) for ask in flat], np.int32),
            kind=np.array([ask.kind for ask in flat], np.uint8),
            first_ask=_starts(self._asks),
            tail=_smallest(np.array(self.tail, np.uint32)),
            paths=_joined([path for paths in self._paths for path in paths]),
            path_start=_starts([path for paths in self._paths for path in paths]),
            first_path=_starts(self._paths),
        )

    def write(self, path: Path) -> None:
        """Write a compressed file; it appears whole or not at all."""
        found = self.packed()
        arrays = {name: getattr(found, name) for name in _STORED}
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(lzma.compress(save(arrays), format=lzma.FORMAT_XZ, filters=_FILTERS))
        part.replace(path)


def read(path: Path) -> Packed:
    """Read a file that :class:`Packer` wrote.

    :raises DataBroken: it is missing, torn or something else.
    """
    try:
        arrays = load(lzma.decompress(path.read_bytes()))
        return Packed(**{name: arrays[name] for name in _STORED})
    except (OSError, lzma.LZMAError, SafetensorError, KeyError) as error:
        raise DataBroken(f"{path} holds no packed samples ({error})") from error


def joined(parts: Sequence[Packed]) -> Packed:
    """Return several files as one; they must share the tail."""
    if not parts:
        raise DataBroken("there are no packed samples")
    if any(not np.array_equal(part.tail, parts[0].tail) for part in parts):
        raise DataBroken("the files of samples were made with different prompts or tokenizers")
    return Packed(
        pages=np.concatenate([part.pages for part in parts]),
        page_start=_chained([part.page_start for part in parts]),
        asks=np.concatenate([part.asks for part in parts]),
        ask_start=_chained([part.ask_start for part in parts]),
        path_at=np.concatenate([part.path_at for part in parts]),
        content_at=np.concatenate([part.content_at for part in parts]),
        kind=np.concatenate([part.kind for part in parts]),
        first_ask=_chained([part.first_ask for part in parts]),
        tail=parts[0].tail,
        paths=np.concatenate([part.paths for part in parts]),
        path_start=_chained([part.path_start for part in parts]),
        first_path=_chained([part.first_path for part in parts]),
    )


def _joined(parts: Sequence[Sequence[int]]) -> Tokens:
    return _smallest(np.fromiter((token for part in parts for token in part), np.uint32))


def _smallest(tokens: NDArray[np.uint32]) -> Tokens:
    """Return tokens in two bytes each where their vocabulary allows it."""
    return tokens.astype(np.uint16) if int(tokens.max(initial=0)) < 1 << 16 else tokens


def _starts(parts: Sequence[Sequence[object]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _chained(starts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    found, last = [np.zeros(1, np.int64)], np.int64(0)
    for start in starts:
        found.append(last + start[1:])
        last = found[-1][-1] if len(found[-1]) else last
    return np.concatenate(found)
