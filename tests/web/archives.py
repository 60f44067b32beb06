"""Web archives made by hand, byte by byte, for the tests of what reads them."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from pathlib import Path

HTML = b"Content-Type: text/html; charset=utf-8\r\n"


def record(
    number: int, body: bytes, *, kind: str = "response", headers: bytes = HTML, status: int = 200, content: str = ""
) -> bytes:
    """Return one record of an archive."""
    http = kind in ("response", "request")
    if kind == "response":
        body = b"HTTP/1.1 %d OK\r\n" % status + headers + b"\r\n" + body
    content = content or f"application/http; msgtype={kind}" if http else content or "text/plain"
    named = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: https://example.org/{number}\r\n"
        f"WARC-Date: 2024-11-05T08:30:00Z\r\nWARC-Record-ID: <urn:uuid:{number:032}>\r\n"
        f"Content-Type: {content}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return named.encode() + body + b"\r\n\r\n"


def page(number: int) -> bytes:
    """Return the HTML of a page with a fact of its own."""
    return (
        f"<html><head><title>Bridge {number}</title></head><body><h1>Bridge {number}</h1>"
        f"<p>Bridge number {number} opened in {1800 + number}.<p>Trams run daily from the harbour.<script>x()</script>"
    ).encode()


def packed(records: Sequence[bytes]) -> bytes:
    """Return an archive in which each record is compressed by itself, as crawlers write it."""
    return b"".join(gzip.compress(record) for record in records)


def write_archive(path: Path, pages: int, first: int = 0) -> Path:
    """Write an archive with a request, a page and a note of the crawler for each page."""
    records = [record(0, b"software: test\r\n", kind="warcinfo", content="application/warc-fields")]
    for number in range(first, first + pages):
        records.append(record(number, b"GET / HTTP/1.1\r\n\r\n", kind="request"))
        records.append(record(number, page(number)))
        records.append(record(number, b"fetchTimeMs: 3\r\n", kind="metadata", content="application/warc-fields"))
    path.write_bytes(packed(records) if path.name.endswith(".gz") else b"".join(records))
    return path


def write_wacz(path: Path, archives: Sequence[bytes]) -> Path:
    """Write a WACZ file with several archives in it."""
    with zipfile.ZipFile(path, "w") as wacz:
        wacz.writestr("datapackage.json", "{}")
        for number, archive in enumerate(archives):
            wacz.writestr(f"archive/data-{number}.warc.gz", archive)
    return path
