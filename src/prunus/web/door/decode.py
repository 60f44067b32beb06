"""Decompression of response bodies, piece by piece, so that a decompression bomb never fills the memory."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

import brotli

from .errors import FetchFailed

PIECE: Final = 256 * 1024
"""Largest decompressed piece, in bytes."""

_CODINGS: Final = frozenset(
    {"gzip", "deflate", "br", "zstd", "compress", "pack200-gzip", "exi", "aes128gcm", "dcb", "dcz"}
)
"""The registered content codings, but ``identity``."""

_HEAD: Final = 4096


class Decoder(Protocol):
    """Decompresses one content coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed data in pieces of at most about :data:`PIECE` bytes."""
        ...

    def whole(self) -> bool:
        """Tell whether the compressed stream is complete; True for an empty body."""
        ...


@cache
def accept_encoding() -> str:
    """Return the Accept-Encoding header for the installed decompressors."""
    return "gzip, deflate, br" + (", zstd" if _zstd() else "")


def decoder(coding: str, url: str) -> Decoder | None:
    """Return the decoder for a Content-Encoding header; None for an uncompressed body.

    Names of no coding (``utf-8``, ``none``) are passed over, as in browsers, and so is a repeated header.

    :raises FetchFailed: the coding is not in :func:`accept_encoding`, or the header lists several codings.
    """
    names = {name.strip().lower().removeprefix("x-") for name in coding.split(",")} & _CODINGS
    if not names:
        return None
    name = ", ".join(sorted(names))
    if name in ("gzip", "deflate"):
        return _OrPlain(_Zlib(gzip=name == "gzip"))
    if name == "br":
        return _OrPlain(_Brotli(brotli.Decompressor()))
    if name == "zstd" and _zstd():
        return _OrPlain(_Zstd(_zstd()))
    raise FetchFailed(
        url, "encoding", f"the content coding {name[:40]!r} is not supported; accepted: {accept_encoding()}"
    )


def decompress(body_decoder: Decoder, data: bytes, url: str) -> Iterator[bytes]:
    """Yield the decompressed pieces of some received bytes.

    :raises FetchFailed: the bytes are damaged.
    """
    try:
        yield from body_decoder.feed(data)
    except Exception as error:
        if not _is_damage(error):
            raise
        raise FetchFailed(url, "encoding", f"the compressed response is damaged ({str(error)[:80]})") from error


def _is_damage(error: Exception) -> bool:
    """Tell whether a library raised its error for damaged data; any other error is a bug."""
    return isinstance(error, zlib.error | EOFError) or type(error).__name__ in ("error", "ZstdError")


def _is_text(data: bytes) -> bool:
    """Tell whether a body is markup or UTF-8 text, by its beginning."""
    head = data[:_HEAD]
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return True
    try:
        text, _ = codecs.utf_8_decode(head, "strict", False)
    except UnicodeDecodeError:
        return False
    return "".join(text.split()).isprintable()


class _OrPlain:
    """Decompresses a body, and passes on one that is plain text although its header names a coding."""

    def __init__(self, inner: Decoder) -> None:
        self._inner = inner
        self._held: bytes | None = b""  # the body until anything was decompressed
        self._plain = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._plain:
            yield data
            return
        if self._held is not None:
            self._held += data
        try:
            for piece in self._inner.feed(data):
                self._held = None
                yield piece
        except Exception as error:
            if not _is_damage(error) or self._held is None or not _is_text(self._held):
                raise
            self._plain = True
            yield self._held

    def whole(self) -> bool:
        return self._plain or self._inner.whole()


class _Zlib:
    """gzip with any number of members, and deflate with or without the zlib wrapper that RFC 9110 requires."""

    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._held = b""
        self._inner: Any = zlib.decompressobj(31) if gzip else None
        self._ended = False
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inner is None:
            self._held += data
            if len(self._held) < 2:
                return
            data, self._held = self._held, b""
            wrapped = data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._inner = zlib.decompressobj(15 if wrapped else -15)
        while data:
            if self._ended:
                if not self._gzip or data[:1] != b"\x1f":  # bytes after the last member are padding
                    return
                self._inner, self._ended = zlib.decompressobj(31), False
            self._begun = True
            piece = self._inner.decompress(data, PIECE)
            if piece:
                yield piece
            self._ended = self._inner.eof
            data = self._inner.unused_data if self._ended else self._inner.unconsumed_tail
        while not self._ended and self._inner is not None:  # output may be pending although the input is used up
            piece = self._inner.decompress(b"", PIECE)
            self._ended = self._inner.eof
            if not piece:
                return
            yield piece

    def whole(self) -> bool:
        return self._ended or not (self._begun or self._held)


class _Brotli:
    """Brotli; the library bounds the output of one call."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._begun = self._begun or bool(data)
        if self._inner.is_finished():
            return
        piece = self._inner.process(data, output_buffer_limit=PIECE)
        while piece or not self._inner.can_accept_more_data():
            yield piece
            if self._inner.is_finished():
                return
            piece = self._inner.process(b"", output_buffer_limit=PIECE)

    def whole(self) -> bool:
        return not self._begun or bool(self._inner.is_finished())


class _Zstd:
    """Zstandard, with any number of frames; a frame may ask for a window of 8 MiB at most (RFC 9659)."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._inner: Any = self._new()
        self._begun = False

    def _new(self) -> Any:
        return self._module.ZstdDecompressor(options={self._module.DecompressionParameter.window_log_max: 23})

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._begun = self._begun or bool(data)
        while data or not (self._inner.eof or self._inner.needs_input):
            if self._inner.eof:
                self._inner = self._new()
            piece = self._inner.decompress(data, PIECE)
            data = self._inner.unused_data if self._inner.eof else b""
            if piece:
                yield piece

    def whole(self) -> bool:
        return not self._begun or bool(self._inner.eof)


@cache
def _zstd() -> Any:
    """Return the standard library's zstd module or its backport, or None."""
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return import_module(name)
    return None
