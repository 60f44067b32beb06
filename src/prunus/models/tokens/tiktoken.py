"""``tiktoken:NAME``: counts tokens as OpenAI's models do, by encoding (``o200k_base``) or model (``gpt-4o-mini``).

The package would fetch its vocabularies from the network by itself. Here a vocabulary is read from a
folder, checked by its digest, and fetched only through the egress door.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, MissingExtra, OutsideFailed
from ...core.installation import pip_install
from ...core.ports import Door

if TYPE_CHECKING:
    from tiktoken import Encoding

_LARGEST: Final = 32 * 1024 * 1024
"""Most bytes of a vocabulary."""

_LONGEST_RUN: Final = 20_000
_RUN: Final = re.compile(rf"\s{{{_LONGEST_RUN + 1},}}|\S{{{_LONGEST_RUN + 1},}}")
"""Runs that are cut: on millions of spaces the package's patterns would overflow their stack."""


class Engine:
    """Counts tokens with a vocabulary of tiktoken; special tokens are plain text.

    A run of more than 20,000 letters without a space, or of more than 20,000 spaces, is counted in parts of
    that length; each part may add a token.

    :param model: an encoding, or a model that tiktoken knows.
    :param folder: folder of the vocabularies, by their file names; tiktoken's cache is read, too.
    :param door: the egress door that fetches a missing vocabulary; None: nothing is fetched.
    :raises MissingExtra: tiktoken is not installed.
    :raises BadInput: there is no such encoding or model.
    """

    name = "tiktoken"

    def __init__(self, model: str = "", folder: str = "", door: Door | None = None) -> None:
        try:
            import tiktoken.load  # noqa: F401
            import tiktoken_ext.openai_public as known
            from tiktoken.model import encoding_name_for_model
        except ImportError as error:
            raise MissingExtra(
                f"tokenizer tiktoken: the package tiktoken is not installed; run: {pip_install('tiktoken')}",
                subject="tiktoken",
            ) from error
        encodings = known.ENCODING_CONSTRUCTORS
        try:
            encoding = model if model in encodings else encoding_name_for_model(model)
        except KeyError:
            raise BadInput(
                f"tokenizer tiktoken:{model}: no such encoding or model; encodings: {', '.join(sorted(encodings))}",
                subject=f"tiktoken:{model}",
            ) from None
        self._spec = f"tiktoken:{model}"
        self._make: Callable[[], dict[str, Any]] = encodings[encoding]
        self._folder = Path(folder).expanduser() if folder else None
        self._door = door
        self._lock = threading.Lock()
        self._made: Encoding | None = None

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens of each text, shape [n].

        :raises BadInput: the vocabulary is not on this machine, and no door was given.
        :raises OutsideFailed: the vocabulary could not be fetched.
        """
        encode = self._encoding().encode_ordinary
        counts = (sum(len(encode(part)) for part in _parts(text)) for text in texts)
        return np.fromiter(counts, np.int64, len(texts))

    def _encoding(self) -> Encoding:
        with self._lock:
            if self._made is None:
                from tiktoken import Encoding, load

                loaders = (load.load_tiktoken_bpe, load.data_gym_to_mergeable_bpe_ranks)
                ours = {loader.__name__: _with(loader, read_file_cached=self._read) for loader in loaders}
                self._made = Encoding(**_with(self._make, **ours)())
            return self._made

    def _read(self, url: str, digest: str | None = None) -> bytes:
        """Return a vocabulary from this machine or through the door; it replaces tiktoken's loader."""
        cached = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()  # the file's name in tiktoken's cache
        places = [Path(tempfile.gettempdir()) / "data-gym-cache" / cached]
        if self._folder is not None:
            places[:0] = [self._folder / url.rsplit("/", 1)[-1], self._folder / cached]
        for place in places:
            if place.is_file() and place.stat().st_size <= _LARGEST:
                data = place.read_bytes()
                if hashlib.sha256(data).hexdigest() == digest:
                    return data
        if self._door is None:
            where = self._folder or places[0].parent
            raise BadInput(
                f"tokenizer {self._spec}: its vocabulary is not on this machine, and fetching it needs the network; "
                f"put {url} into {where}",
                subject=self._spec,
            )
        data = self._fetch(self._door, url, digest)
        if self._folder is not None:
            _keep(self._folder / url.rsplit("/", 1)[-1], data)
        return data

    def _fetch(self, door: Door, url: str, digest: str | None) -> bytes:
        data = bytearray()
        with door.client(seconds=60.0) as client, client.stream("GET", url) as response:
            if response.status_code != 200:
                raise OutsideFailed(f"tokenizer {self._spec}: HTTP {response.status_code} from {url}", subject=url)
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > _LARGEST:
                    raise OutsideFailed(f"tokenizer {self._spec}: {url} is over 32 MiB", subject=url)
        if hashlib.sha256(data).hexdigest() != digest:
            raise OutsideFailed(f"tokenizer {self._spec}: {url} is not the file that tiktoken expects", subject=url)
        return bytes(data)


def _parts(text: str) -> Iterator[str]:
    """Yield the parts of a text, which is cut only inside runs that are too long."""
    done = 0
    for run in _RUN.finditer(text):
        for cut in range(run.start() + _LONGEST_RUN, run.end(), _LONGEST_RUN):
            yield text[done:cut]
            done = cut
    yield text[done:]


def _with(make: Callable[..., Any], **replacements: Any) -> Callable[..., Any]:
    """Return a copy of a function of tiktoken in which some global names have other values.

    The functions of the same module that it calls are copied, too. The package has no parameter for its
    loader, and replacing the loader in the module would change it for the whole process.
    """
    assert isinstance(make, FunctionType)
    names = dict(make.__globals__)
    for name, value in list(names.items()):
        if isinstance(value, FunctionType) and value.__globals__ is make.__globals__:
            names[name] = FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
    names.update(replacements)
    return FunctionType(make.__code__, names, make.__name__, make.__defaults__, make.__closure__)


def _keep(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
