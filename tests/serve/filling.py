"""Indexes over HTTP in tests: keys, documents, an embedder that takes its time, and what an index holds."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import Any

import httpx

import prunus

QUESTION = "Where do passengers of the night train sleep?"
TRAIN = "<h1>Trains</h1><p>Passengers of the night train sleep in the second carriage.</p>"


def notes(count: int) -> list[dict[str, str]]:
    """Return documents that differ in words and numbers."""
    subjects = ("tide at the harbour", "bread in the oven", "bees in the garden", "glass at the furnace")
    return [
        {
            "id": f"note {number}",
            "html": f"<h1>Note {number}</h1>"
            + "".join(f"<p>Line {line} of note {number} is about {subjects[number % 4]}.</p>" for line in range(4)),
        }
        for number in range(count)
    ]


def key_of(state: str, name: str, *scopes: str, **quotas: int) -> dict[str, str]:
    """Make a key; return the header that carries it."""
    from prunus.serve.keys import new_key
    from prunus.serve.state import ServerState

    opened = ServerState(state)
    try:
        return {"authorization": f"Bearer {new_key(opened, name, scopes, **quotas)}"}
    finally:
        opened.close()


def slow_embedder(folder: Path, pause: float) -> str:
    """Write an embedder that waits before each group of documents; return its spec."""
    path = folder / "slow.py"
    path.write_text(
        textwrap.dedent(f"""
        import time

        from prunus.models.embed.static import Engine as Static

        class Slow(Static):
            def embed(self, texts, kind):
                if kind == "document" and len(texts) > 3:
                    time.sleep({pause})
                return super().embed(texts, kind)
        """),
        "utf-8",
    )
    return f"{path}:Slow"


def ended(http: httpx.Client, job: str, headers: dict[str, str] | None = None, seconds: float = 60) -> dict[str, Any]:
    """Return a job when it has ended."""
    until = time.monotonic() + seconds
    while True:
        found: dict[str, Any] = http.get(f"/v1/jobs/{job}", headers=headers).json()
        if found["ended"]:
            return found
        assert time.monotonic() < until, found
        time.sleep(0.1)


def content(index: prunus.Index) -> tuple[Any, ...]:
    """Return all that an index holds, whatever the numbers of its nodes: each node with what is below it."""
    store = index.store
    nodes = {node.id: node for node in store.get(store.view().ids.tolist())}

    def below(id: int) -> Any:
        node = nodes[id]
        return (node.layer, node.document, node.position, node.text, tuple(sorted(map(below, node.children))))

    children = {child for node in nodes.values() for child in node.children}
    documents = tuple((document.id, document.digest, document.title) for document in store.documents())
    return documents, tuple(sorted(below(id) for id in nodes if id not in children))
