"""Packed samples: token ids in one compressed file, each page part once with all questions about it.

This file needs only numpy and safetensors, so that a machine without Prunus can train from packed samples.
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
"""The kind of a question: made from a block of the page; asked by a person about the page, or about a passage."""

_FILTERS = [
    {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26}
]  # parts of the same page can be far apart in the file


@dataclass(frozen=True, slots=True)
class Ask:
    """One question about a page part.

    :param question: tokens of the prompt from the question on, without the tail that all prompts share.
    :param path, content: tokens of the two parts of the completion, tokenized separately.
    :param kind: index in :data:`KINDS`.
    """

    question: Sequence[int]
    path: Sequence[int]
    content: Sequence[int]
    kind: int


@dataclass(slots=True)
class Packed:
    """Samples as flat arrays.

    :param pages: tokens of all page parts, one after the other; part ``i`` is ``page_start[i]:page_start[i + 1]``.
    :param asks: tokens of all questions with their completions (question, path, content); question ``j`` is
        ``ask_start[j]:ask_start[j + 1]``, its path starts at ``path_at[j]`` in it, its content at ``content_at[j]``.
    :param kind: kind of each question, see :data:`KINDS`.
    :param first_ask: the questions about page part ``i`` are ``first_ask[i]:first_ask[i + 1]``.
    :param tail: tokens of every prompt after the question.
    :param paths: tokens of the paths of all blocks; page part ``i`` has the paths
        ``first_path[i]:first_path[i + 1]``, path ``j`` is ``path_start[j]:path_start[j + 1]``.
    :param tags: which tokens of the vocabulary are tags; not stored, set where the tokenizer is known.
    :param names: which tokens are names of tags, which a number follows; not stored.
    :param words: tokens of rarer words, which :func:`.batches.renamed` exchanges; not stored.
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
        """Return the tokens of question (with the tail), path and content."""
        tokens = self.asks[self.ask_start[number] : self.ask_start[number + 1]]
        path, content = int(self.path_at[number]), int(self.content_at[number])
        return np.concatenate([tokens[:path], self.tail]), tokens[path:content], tokens[content:]

    def all_paths(self, index: int) -> list[Tokens]:
        """Return the tokens of the path of each block of a page part."""
        numbers = range(self.first_path[index], self.first_path[index + 1])
        return [self.paths[self.path_start[number] : self.path_start[number + 1]] for number in numbers]


_STORED = tuple(name for name in Packed.__dataclass_fields__ if name not in ("tags", "words", "names"))


@dataclass(slots=True)
class Packer:
    """Collects samples and writes them as one file."""

    tail: Sequence[int]
    _pages: list[Sequence[int]] = field(default_factory=list)
    _asks: list[Sequence[Ask]] = field(default_factory=list)
    _paths: list[Sequence[Sequence[int]]] = field(default_factory=list)

    def add(self, page: Sequence[int], asks: Sequence[Ask], paths: Sequence[Sequence[int]] = ()) -> None:
        """Add a page part and the questions about it; do nothing without questions.

        :param paths: the paths of all blocks; needed only for training with ``among_steps``.
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
        sequences = [[*ask.question, *ask.path, *ask.content] for ask in flat]
        return Packed(
            pages=_joined(self._pages),
            page_start=_starts(self._pages),
            asks=_joined(sequences),
            ask_start=_starts(sequences),
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
        """Write a compressed file, whole or not at all."""
        found = self.packed()
        arrays = {name: getattr(found, name) for name in _STORED}
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(lzma.compress(save(arrays), format=lzma.FORMAT_XZ, filters=_FILTERS))
        part.replace(path)


def read(path: Path) -> Packed:
    """Read a file that :class:`Packer` wrote.

    :raises DataBroken: the file is missing, damaged or of another kind.
    """
    try:
        arrays = load(lzma.decompress(path.read_bytes()))
        return Packed(**{name: arrays[name] for name in _STORED})
    except (OSError, lzma.LZMAError, SafetensorError, KeyError) as error:
        raise DataBroken(f"{path}: no packed samples can be read ({error}); prunus train pack writes them") from error


def joined(parts: Sequence[Packed]) -> Packed:
    """Return several packed files as one.

    :raises DataBroken: there are none, or their prompts have different tails.
    """
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
    """Return tokens in two bytes each where all ids fit."""
    return tokens.astype(np.uint16) if int(tokens.max(initial=0)) < 1 << 16 else tokens


def _starts(parts: Sequence[Sequence[object]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)


def _chained(starts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Join arrays of starts, each shifted by the end of the one before."""
    found, last = [np.zeros(1, np.int64)], np.int64(0)
    for start in starts:
        found.append(last + start[1:])
        last = found[-1][-1] if len(found[-1]) else last
    return np.concatenate(found)
