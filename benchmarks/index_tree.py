"""The tree above many leaves: CPU seconds and memory of its layers, and the quality of trees of shards.

    python -m benchmarks.index_tree [--sizes N ...] [--workers N ...] [--quality TOKENS] [--quick]

The vectors of ``--sizes`` are made: 256 dimensions, two levels of topics and noise, in a file that is mapped into
memory. Only the tree is built: no text, no store. The peak of memory is that of the process that builds, without the
mapped pages; ``workers`` is the largest worker. ``--quality`` takes the texts of `benchmarks.index_texts` (needs
``PRUNUS_DATA``) and builds the tree of one size as a whole, and by shards of several sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.protocol import Clock, serve
from benchmarks.report import finish, json_line, parser, say, table
from benchmarks.workers import BenchError, Worker
from prunus.core.executor import ProcessExecutor, in_process
from prunus.core.registry import make_engine
from prunus.index.build import Builder, BuildSettings
from prunus.index.nodes import View

DIMENSION = 256
SIZES = (100_000, 1_000_000)
LIMIT = 7200.0
NOTHING: Any = None


class Leaves:
    """A store that holds leaves in a matrix, takes the tree, and nothing else."""

    place, embedder = "made", "made"

    def __init__(self, matrix: NDArray[np.float32], tokens: NDArray[np.int64], document: NDArray[np.int64]) -> None:
        count = len(matrix)
        self.dimension = int(matrix.shape[1])
        numbers, zeros = np.arange(count), np.zeros(count, np.int64)
        names = [str(number) for number in range(int(document.max()) + 1)]
        arrays = (numbers, zeros, document, numbers, tokens, numbers, numbers)
        self._view = View(*arrays, matrix, names, ["en"], 1)
        self.parents: list[Any] = []
        self.routing = np.zeros((0, self.dimension), np.float32)

    def view(self) -> View:
        """Return the leaves."""
        return self._view

    def replace_tree(self, parents: Any, routing: Any, embeddings: Any = None) -> list[int]:
        """Keep the tree."""
        self.parents, self.routing = parents, routing
        return []

    def whole(self) -> tuple[View, dict[int, list[int]]]:
        """Return all nodes and the children of every parent."""
        leaves, count = self._view, len(self._view.ids)
        numbers = np.arange(count + len(self.parents))
        layers = np.concatenate([leaves.layer, [parent.layer for parent in self.parents]])
        document = np.concatenate([leaves.document, np.full(len(self.parents), -1)])
        tokens = np.concatenate([leaves.tokens, np.full(len(self.parents), 100)])
        matrix = np.concatenate([leaves.matrix, self.routing])
        edges = {
            count + place: [child if child >= 0 else count - 1 - child for child in parent.children]
            for place, parent in enumerate(self.parents)
        }
        arrays = (numbers, layers, document, numbers, tokens, numbers, numbers)
        return View(*arrays, matrix, leaves.names, ["en"], 1), edges


def _built(store: Leaves, settings: BuildSettings, workers: int = 1, **ward: int) -> dict[str, Any]:
    builder = Builder(store, NOTHING, NOTHING, make_engine("clusterer", "ward", **ward), NOTHING, settings)  # type: ignore[arg-type]
    builder.executor = ProcessExecutor(workers) if workers > 1 else in_process
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    started = time.perf_counter()
    asyncio.run(builder.build(summaries=False))
    spent = [
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        for after, before in zip(
            (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)),
            (own, others),
            strict=True,
        )
    ]
    return {
        "cpu_s": round(sum(spent), 1),
        "own_s": round(spent[0], 1),
        "wall_s": round(time.perf_counter() - started, 1),
    }


def _memory(name: str) -> float:
    """Return a number of MB from the state of this process: ``RssAnon`` is without the mapped pages."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return 0.0


def op_made(clock: Clock, file: str, leaves: int, workers: int) -> dict[str, Any]:
    """Build the tree above made leaves."""
    import threading

    matrix = np.memmap(file, np.float32, "r", shape=(leaves, DIMENSION))
    numbers = np.arange(leaves)
    store = Leaves(matrix, np.full(leaves, 90), numbers // 12)
    peak = [_memory("RssAnon")]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            peak[0] = max(peak[0], _memory("RssAnon"))

    before = _memory("RssAnon")
    watcher = threading.Thread(target=watch)
    watcher.start()
    found = _built(store, BuildSettings(), workers)
    ended.set()
    watcher.join()
    layers = np.bincount([parent.layer for parent in store.parents]).tolist()
    digest = hash(tuple(parent.children for parent in store.parents))
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return found | {
        "leaves": leaves, "workers": workers, "nodes": [leaves, *layers[1:]], "digest": digest,
        "before_mb": round(before), "peak_mb": round(peak[0]), "worker_mb": round(largest),
    }  # fmt: skip


def op_quality(clock: Clock, tokens: int, shards: list[int]) -> list[dict[str, Any]]:
    """Build the tree of real and shuffled texts as a whole and by shards, and compare them."""
    from benchmarks.index_texts import corpus
    from prunus.index.chunk import chunk_text
    from prunus.index.leaves import unit
    from prunus_evals import trees

    counter, embedder = make_engine("tokenizer", "llama2"), make_engine("embedder", "static")
    texts = corpus(tokens, counter)
    vectors, document, sizes = [], [], []
    for _, text in texts.documents:
        for start in range(0, len(text), 6000):
            chunks = chunk_text(text[start : start + 6000], counter, 100, 0)
            if chunks:
                vectors.append(embedder.embed([chunk.text for chunk in chunks], "document"))
                document += [len(vectors)] * len(chunks)
                sizes += [chunk.tokens for chunk in chunks]
    matrix = unit(np.concatenate(vectors))
    drawn = np.sort(np.random.default_rng(1).choice(len(matrix), 600, replace=False))
    asked = {"questions": unit(embedder.embed(texts.questions, "query")), "leaves": matrix[drawn]}
    ways: list[tuple[str, int, dict[str, int]]] = [("whole", 10**9, {"part": 10**9}), ("halves of 8000", 10**9, {})]
    ways += [(f"shards of {size}", size, {"part": 2 * size}) for size in shards]
    rows = []
    for name, size, ward in ways:
        store = Leaves(matrix, np.asarray(sizes), np.asarray(document))
        spent = _built(store, BuildSettings(shard_nodes=size), **ward)
        view, edges = store.whole()
        tree = trees.Tree(view, edges)
        row = {"tree": name, "cpu_s": spent["cpu_s"], "nodes": np.bincount(view.layer).tolist()}
        row |= {f"routing_{of}": float(np.mean(trees.routing(tree, some))) for of, some in asked.items()}
        row |= {"scored": trees.scored(tree, asked["questions"]), "coherence": trees.coherence(tree)}
        rows.append(row | {"purity": trees.purity(tree)})
    return rows


def made(file: Path, leaves: int) -> None:
    """Write made vectors: 60 subjects of 40 topics each, and noise."""
    draw = np.random.default_rng(20261124)
    matrix = np.memmap(file, np.float32, "w+", shape=(leaves, DIMENSION))
    subjects = draw.normal(size=(60, DIMENSION))
    topics = np.asarray(subjects[:, None] + 0.8 * draw.normal(size=(60, 40, DIMENSION)), np.float32).reshape(
        -1, DIMENSION
    )
    for start in range(0, leaves, 10_000):
        count = min(10_000, leaves - start)
        topic = topics[draw.integers(len(topics), size=-(-count // 6))].repeat(6, axis=0)[:count]
        found = topic + np.float32(1.0) * draw.standard_normal((count, DIMENSION), np.float32)
        matrix[start : start + count] = found / np.linalg.norm(found, axis=1, keepdims=True)
    matrix.flush()


def _call(op: str, **arguments: Any) -> Any:
    with Worker("prunus", [sys.executable, "-m", "benchmarks.index_tree", "--serve"], LIMIT) as worker:
        reply = worker.ask(op, **arguments)
    if not reply.ok:
        raise BenchError(str(reply.error))
    return reply.value


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether every number of workers gave the same tree."""
    sizes = options.sizes if options.sizes is not None else ([40_000] if options.quick else SIZES)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="prunus-tree-", dir=options.folder) as name:
        for size in sizes:
            file = Path(name) / f"{size}.f32"
            made(file, size)
            for workers in options.workers:
                rows.append(_call("made", file=str(file), leaves=size, workers=workers))
                say(str(rows[-1]))
            file.unlink()
    head = ["leaves", "workers", "cpu_s", "own_s", "wall_s", "nodes", "before_mb", "peak_mb", "worker_mb"]
    table("The tree above made leaves", head, [[row[key] for key in head] for row in rows])
    same = len({(row["leaves"], row["digest"]) for row in rows}) == len(sizes)
    found = _call("quality", tokens=options.quality, shards=[2000, 4000, 8000, 16000]) if options.quality else []
    if found:
        head = [*found[0]]
        table("Trees as a whole and by shards", head, [[row[key] for key in head] for row in found])
    json_line("index_tree", {"made": rows, "quality": found, "met": same})
    return same


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("index_tree", __doc__)
    options.add_argument("--sizes", type=int, nargs="*", help="made leaves (100,000 and 1,000,000; quick 40,000)")
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="processes (1 and 2)")
    options.add_argument("--quality", type=int, default=0, help="tokens of the texts for the quality of trees")
    options.add_argument("--folder", help="folder for the made vectors; by default that of temporary files")
    return finish(run, options.parse_args(argv))


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve({"made": op_made, "quality": op_quality}, {"subject": "index_tree"})
    else:
        sys.exit(main())
