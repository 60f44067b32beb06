"""The local server of `benchmarks.fetch`: a thousand pages, gzipped as by most servers.

python -m benchmarks.fetch_server
"""

from __future__ import annotations

import asyncio
import gzip
import random

PAGES = 1000
WORDS = "plum orchard harvest branch stone blossom market river valley winter sugar cellar label price table".split()


def page(number: int) -> bytes:
    """Return one page of 10 to 110 kB, the same on every run."""
    source = random.Random(number)
    lines = (f"<p>{' '.join(source.choices(WORDS, k=60))}.</p>" for _ in range(25 + number * 37 % 250))
    return f"<!doctype html><title>Page {number}</title><h1>Page {number}</h1>{''.join(lines)}".encode()


async def answer_all() -> None:
    """Print the port, then serve the pages until the process ends."""
    heads: dict[str, bytes] = {}
    for number in range(PAGES):
        body = gzip.compress(page(number), 6, mtime=0)
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n"
            f'Cache-Control: max-age=3600\r\nETag: "{number}"\r\nContent-Length: {len(body)}\r\n\r\n'
        )
        heads[f"/{number}"] = head.encode() + body
    heads["/robots.txt"] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                writer.write(heads[line.split()[1].decode()])
                await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(answer_all())
