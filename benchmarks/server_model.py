"""A scripted language model behind OpenAI's chat API, as cheap as can be: it costs the measured server's cores little.

python -m benchmarks.server_model [--first S] [--gap S] [--words N]; prints its port. A request whose messages hold
the word ``silentmodel`` never gets a reply: the model is dead for it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys

DEAD = "silentmodel"
"""A question with this word gets no reply."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def words(count: int) -> list[bytes]:
    """Return the pieces of the reply as server-sent events; the first sentence cites."""
    text = "The bridge opened in 1932 [1]. " + "Trams run daily from six [1]. " * (count // 6)
    pieces = text.split(" ")[:count]
    return [
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": piece + " "}}]}).encode() + b"\n\n"
        for piece in pieces
    ]


async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: argparse.Namespace) -> None:
    """Answer one request."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        body = await reader.readexactly(length)
        if not head.startswith(b"POST"):  # a question about the model's window
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        elif DEAD.encode() in body:
            await reader.read()  # until the client leaves
        else:
            await asyncio.sleep(options.first)
            writer.write(HEAD)
            for piece in words(options.words):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(options.gap)
            writer.write(b"data: [DONE]\n\n")
            await writer.drain()
    writer.close()


async def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=float, default=0.3, help="seconds before the first word")
    parser.add_argument("--gap", type=float, default=0.25, help="seconds between words")
    parser.add_argument("--words", type=int, default=120)
    options = parser.parse_args()
    server = await asyncio.start_server(lambda reader, writer: reply(reader, writer, options), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
    sys.exit(0)
