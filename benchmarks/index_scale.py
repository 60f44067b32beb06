"""A question against an index of many chunks: build, size, opening, recall, milliseconds and memory.

    python -m benchmarks.index_scale --chunks 1000000 [--store file|postgres:ADDRESS|lance:PLACE] [--folder FOLDER]

The texts are made, the same at every run: words by Zipf's law, each document about three of 2,000 topics, 5 to 80
chunks a document, chunks of about 100 tokens. A question has some words of one chunk among words of questions. The
vectors are those of the default embedder (``static``); ``--cheap`` draws vectors around the topics instead, for
indexes whose building would take hours, and then no question is embedded. Leaves go through the store's ``add_many``.

``recall`` compares the ten best leaves by cosine, and the ten best by BM25, with a scan over all of them. ``ranking``
compares a result of 2,000 tokens with that of the exact way, where the store can be told to take it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import json_line, table
from prunus.core.registry import make_engine
from prunus.index.nodes import IndexedDocument, Leaf, NodeSearch, Preparing
from prunus.index.retrieve import Retriever

TOPICS, WORDS, OWN = 2000, 200_000, 300
"""Topics, words, and words that a topic prefers."""
SHARE = 0.4
"""Share of the words of a chunk that are drawn from the topic."""
IN_TEXT = "the of and to in a is that for it was on are as with at be this by from or have an they not".split()
ASKING = ("what is the {} of {}?", "how does {} change {}?", "why did {} and {} {}?", "when was {} {} for the {}?",
          "who told us about {}, {} and {} {}?", "{} {}", "describe the {} with {} in {}")  # fmt: skip


class Texts:
    """Made documents with their leaves; the same number gives the same document."""

    def __init__(self) -> None:
        draw = np.random.default_rng(1)
        self.words = np.asarray([*IN_TEXT, *_words(draw, WORDS - len(IN_TEXT))])
        rank = np.arange(1, WORDS + 1, dtype=np.float64)
        self._zipf = np.cumsum(1.0 / (rank + 2.7) ** 1.07)
        self._zipf /= self._zipf[-1]
        # a topic prefers words that are neither frequent nor rare
        self._own = np.exp(draw.uniform(np.log(200), np.log(WORDS), (TOPICS, OWN))).astype(np.int64)
        size = np.cumsum(1.0 / (np.arange(OWN) + 5.0))
        self._favour = size / size[-1]

    def document(self, number: int) -> tuple[list[str], NDArray[np.int64]]:
        """Return the texts of a document's chunks, and the topic of each."""
        draw = np.random.default_rng((7, number))
        chunks = int(np.clip(draw.lognormal(2.9, 0.7), 5, 80))
        about = draw.integers(0, TOPICS, 3)
        topics = about[np.minimum(draw.geometric(0.6, chunks) - 1, 2)]
        sizes = np.clip(draw.normal(68, 18, chunks), 12, 110).astype(np.int64)
        picked = np.searchsorted(self._zipf, draw.random(int(sizes.sum())))
        topic = np.repeat(topics, sizes)
        favoured = np.searchsorted(self._favour, draw.random(len(picked)))
        ids = np.where(draw.random(len(picked)) < SHARE, self._own[topic, favoured], picked)
        words = self.words[ids].tolist()
        ends = np.cumsum(sizes).tolist()
        return [" ".join(words[end - size : end]) + "." for end, size in zip(ends, sizes.tolist(), strict=True)], topics

    def question(self, number: int, documents: int) -> str:
        """Return a question with words of one chunk of the first ``documents`` documents."""
        draw = np.random.default_rng((11, number))
        chunks, _ = self.document(int(draw.integers(0, documents)))
        words = [word for word in chunks[int(draw.integers(0, len(chunks)))].rstrip(".").split() if word not in IN_TEXT]
        form = ASKING[int(draw.integers(0, len(ASKING)))]
        return form.format(*draw.choice(words, form.count("{}")))


def _words(draw: np.random.Generator, count: int) -> list[str]:
    """Return the English words of a vocabulary of pieces, the frequent first, and compounds of two of them after."""
    from prunus.models.wordllama import llama2_tokenizer

    pieces = sorted(llama2_tokenizer().get_vocab().items(), key=lambda item: item[1])
    known = [piece[1:] for piece, _ in pieces if len(piece) > 3 and piece[0] == "\u2581" and piece[1:].isascii()]
    found = dict.fromkeys(word for word in known if word.isalpha() and word.islower() and word not in IN_TEXT)
    single = np.asarray([*found])
    while len(found) < count:
        first, second = draw.choice(single, (2, count))
        found |= dict.fromkeys(np.char.add(first, second).tolist())
    return [*found][:count]


def documents(texts: Texts, chunks: int, embedder: Any, cheap: bool) -> Iterator[list[tuple[Any, list[Leaf], Any]]]:
    """Yield batches of documents for a store's ``add_many``, with about ``chunks`` leaves together."""
    centres = np.random.default_rng(3).normal(size=(TOPICS, embedder.dimension)).astype(np.float32)
    made = number = 0
    while made < chunks:
        batch: list[tuple[IndexedDocument, list[str], NDArray[np.int64]]] = []
        size = 0
        while size < BATCH and made + size < chunks:
            parts, topics = texts.document(number)
            parts, topics = parts[: chunks - made - size], topics[: chunks - made - size]
            batch.append((IndexedDocument(f"document {number}", "\n".join(parts), language="en"), parts, topics))
            size, number = size + len(parts), number + 1
        flat = [text for _, parts, _ in batch for text in parts]
        if cheap:
            noise = np.random.default_rng((5, number)).normal(size=(size, embedder.dimension)).astype(np.float32)
            vectors = centres[np.concatenate([topics for *_, topics in batch])] + 1.2 * noise
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        else:
            vectors = embedder.embed(flat, "document")
        tokens = [max(1, round(len(text) / LETTERS)) for text in flat]
        found, at = [], 0
        for document, parts, _ in batch:
            ends = np.cumsum([len(text) + 1 for text in parts]).tolist()
            leaves = [Leaf(end - len(text) - 1, end - 1, text, tokens[at + place])
                      for place, (text, end) in enumerate(zip(parts, ends, strict=True))]  # fmt: skip
            found.append((document, leaves, vectors[at : at + len(parts)]))
            at += len(parts)
        yield found
        made += size


BATCH = 20_000
"""Leaves of one transaction."""
LETTERS = 4.73
"""Letters of a token: counting a million chunks would take longer than storing them."""


class Cheap:
    """Stands for the embedder where vectors are drawn: a question gets a vector near a topic."""

    identity, dimension = "drawn", 256

    def __init__(self) -> None:
        self._centres = np.random.default_rng(3).normal(size=(TOPICS, self.dimension)).astype(np.float32)

    def embed(self, texts: Any, kind: str = "document") -> Any:
        """Return a vector for each text, drawn by its letters."""
        found = []
        for text in texts:
            draw = np.random.default_rng(list(text.encode()))
            near = self._centres[draw.integers(0, TOPICS)] + 1.2 * draw.normal(size=self.dimension)
            found.append(near / np.linalg.norm(near))
        return np.asarray(found, np.float32)


def store_of(options: argparse.Namespace, embedder: Any, create: bool) -> Any:
    """Return the store that the options name."""
    name, _, address = options.store.partition(":")
    place = address or str(options.folder / f"{name}-{options.chunks}")
    at: dict[str, Any] = {"uri" if name == "lance" else "folder": place}
    if name == "postgres":
        at = {"dsn": address, "schema": f"scale_{options.chunks}"}
    if create:
        at |= {"embedder": embedder.identity, "dimension": embedder.dimension, "create": True}
    return make_engine("store", name, **at)


def memory_mb() -> float:
    """Return the most memory that this process has held, in MB; pages of mapped files count where they were read."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def own_mb() -> float:
    """Return the memory of this process without pages of files, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def build(options: argparse.Namespace, embedder: Any) -> dict[str, float]:
    """Fill the store; return seconds."""
    start, cpu = time.perf_counter(), time.process_time()
    store = store_of(options, embedder, True)
    texts, done, inside, inside_cpu = Texts(), 0, 0.0, 0.0
    for batch in documents(texts, options.chunks, embedder, options.cheap):
        before = time.perf_counter(), time.process_time()
        store.add_many(batch)
        inside += time.perf_counter() - before[0]
        inside_cpu += time.process_time() - before[1]
        done += sum(len(leaves) for _, leaves, _ in batch)
        print(f"{done} chunks, {inside_cpu:.0f} CPU s in the store, {time.process_time() - cpu:.0f} in all",
              file=sys.stderr, flush=True)  # fmt: skip
    before = time.perf_counter(), time.process_time()
    if isinstance(store, Preparing):  # as `prunus index add` does at its end
        store.prepare()
    prepared = {"prepare_s": time.perf_counter() - before[0], "prepare_cpu_s": time.process_time() - before[1]}
    return prepared | {"build_s": time.perf_counter() - start, "build_cpu_s": time.process_time() - cpu,
            "store_s": inside, "store_cpu_s": inside_cpu, "build_mb": memory_mb()}  # fmt: skip


def opening(options: argparse.Namespace, embedder: Any) -> dict[str, float]:
    """Open the index and ask once; return seconds."""
    embedder.embed(["warm"], "query")
    counter = make_engine("tokenizer", "llama2")
    counter.count(["warm"])
    start, cpu = time.perf_counter(), time.process_time()
    store = store_of(options, embedder, False)
    opened = time.perf_counter()
    found = Retriever(store, embedder, counter).hybrid("what is the first question about?")
    if not found.nodes:
        raise SystemExit("the index gave no evidence")
    return {"open_s": opened - start, "open_and_ask_s": time.perf_counter() - start,
            "open_and_ask_cpu_s": time.process_time() - cpu, "open_mb": memory_mb()}  # fmt: skip


def asking(options: argparse.Namespace, embedder: Any) -> dict[str, Any]:
    """Ask with one client and with many; return milliseconds."""
    texts = Texts()
    total = max(1, options.chunks // 25)
    questions = [texts.question(number, total) for number in range(options.questions)]
    counter = make_engine("tokenizer", "llama2")
    store = store_of(options, embedder, False)
    retriever = Retriever(store, embedder, counter)
    for number in range(30):  # what is mapped gets read, and the parts that questions touch are checked
        retriever.hybrid(texts.question(-1 - number + 10**6, total))
    found: dict[str, Any] = {}
    for clients in options.clients:
        took: list[float] = []

        def ask(share: list[str], took: list[float] = took) -> None:
            for question in share:
                start = time.perf_counter()
                retriever.hybrid(question)
                took.append(1000 * (time.perf_counter() - start))

        cpu, wall = time.process_time(), time.perf_counter()
        threads = [threading.Thread(target=ask, args=(questions[at::clients],)) for at in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took.sort()
        found[str(clients)] = {"p50_ms": statistics.median(took), "p95_ms": took[int(0.95 * (len(took) - 1))],
                               "cpu_ms": 1000 * (time.process_time() - cpu) / len(took),
                               "questions_s": len(took) / (time.perf_counter() - wall)}  # fmt: skip
    found["ask_mb"], found["own_mb"] = memory_mb(), own_mb()
    return found


def agreement(options: argparse.Namespace, embedder: Any) -> dict[str, float]:
    """Compare the store's search with the exact way."""
    store = store_of(options, embedder, False)
    if not hasattr(store, "candidates"):
        return {}
    counter = make_engine("tokenizer", "llama2")
    texts, total = Texts(), max(1, options.chunks // 25)
    exact, fast = Retriever(store, embedder, counter, exact=True), Retriever(store, embedder, counter)
    recalls: dict[str, list[float]] = {name: [] for name in ("cosine", "bm25", "top10", "tokens", "nodes")}
    view = store.view()
    for number in range(options.compared):
        question = texts.question(number, total)
        vector = embedder.embed([question], "query")[0]
        found = store.candidates(NodeSearch(question, vector, fast.weights.candidates, 2000, fast.weights.reach))
        if found is None:
            return {}
        known = {*found.ids.tolist()}
        best = view.ids[np.argsort(-view.similarities(vector), kind="stable")[:10]].tolist()
        recalls["cosine"].append(len(known.intersection(best)) / 10)
        lexical = store.lexical(question)
        order = sorted(lexical.items(), key=lambda item: (-item[1], item[0]))[:10]
        if order:
            least = order[-1][1] - 1e-6  # of equal scores, any will do
            got = sorted(found.bm25.tolist(), reverse=True)[: len(order)]
            recalls["bm25"].append(sum(score >= least for score in got) / len(order))
        a, b = exact.hybrid(question), fast.hybrid(question)
        size = {node.id: node.tokens for node in (*a.nodes, *b.nodes)}
        first, second = {node.id for node in a.nodes}, {node.id for node in b.nodes}
        recalls["nodes"].append(len(first & second) / max(1, len(first)))
        recalls["tokens"].append(sum(map(size.__getitem__, first & second)) / max(1, sum(map(size.__getitem__, first))))
        top = [id for _, id in sorted(zip((-s for s in a.scores), (n.id for n in a.nodes), strict=True))[:10]]
        other = {id for _, id in sorted(zip((-s for s in b.scores), (n.id for n in b.nodes), strict=True))[:10]}
        recalls["top10"].append(len(other.intersection(top)) / max(1, len(top)))
    return {name: statistics.mean(values) for name, values in recalls.items() if values} | {
        "least_top10": min(recalls["top10"]), "least_tokens": min(recalls["tokens"])}  # fmt: skip


STAGES = {"build": build, "open": opening, "ask": asking, "agreement": agreement}


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Return the options."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.index_scale", description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    options.add_argument("--chunks", type=int, default=100_000)
    options.add_argument("--store", default="file", help="file, postgres:ADDRESS or lance:PLACE")
    options.add_argument("--folder", type=Path, help="where an index without a place is made; it stays there")
    options.add_argument("--clients", type=lambda text: [int(part) for part in text.split(",")], default=[1, 8])
    options.add_argument("--questions", type=int, default=200)
    options.add_argument("--compared", type=int, default=50, help="questions that are compared with the exact way")
    options.add_argument("--cheap", action="store_true", help="draw vectors around the topics")
    options.add_argument("--stages", default=",".join(STAGES), help="of build, open, ask, agreement")
    return options.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Run the stages, each in a process of its own; return the exit code."""
    import json

    options = arguments(argv)
    stages = options.stages.split(",")
    if len(stages) == 1:
        embedder = Cheap() if options.cheap else make_engine("embedder", "static")
        value = STAGES[stages[0]](options, embedder)
        if stages[0] == "build":
            value["bytes"] = store_of(options, embedder, False).size()
        print(json.dumps(value))
        return 0
    made = options.folder is None
    folder = Path(tempfile.mkdtemp(prefix="prunus-scale-")) if made else options.folder
    given = list(argv if argv is not None else sys.argv[1:])
    name = options.store.partition(":")[0]
    result: dict[str, Any] = {"chunks": options.chunks, "store": name, "cheap": options.cheap}
    try:
        for stage in stages:
            names = (stage, stage) if stage == "open" else (stage,)
            for turn, _ in enumerate(names):
                command = [sys.executable, "-m", "benchmarks.index_scale", *given, "--stages", stage]
                done = subprocess.run([*command, "--folder", str(folder)], stdout=subprocess.PIPE, env=os.environ)
                if done.returncode:
                    return done.returncode
                found = json.loads(done.stdout.splitlines()[-1])
                result["first_open" if stage == "open" and not turn else stage] = found
                print(stage, json.dumps(found), file=sys.stderr, flush=True)
    finally:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
    _show(result)
    json_line("index_scale", result)
    return 0


def _show(result: dict[str, Any]) -> None:
    rows: list[list[object]] = []
    for stage in ("build", "first_open", "open", "agreement"):
        rows += [[f"{stage}: {name}", value] for name, value in result.get(stage, {}).items()]
    table(f"{result['chunks']} chunks, store {result['store']}", ["", "value"], rows)
    asked = result.get("ask", {})
    lines = [[f"{name} clients", *value.values()] for name, value in asked.items() if isinstance(value, dict)]
    if lines:
        table("Questions (hybrid, 2,000 tokens)", ["", "p50 ms", "p95 ms", "CPU ms", "questions/s"], lines)
        print(f"memory {asked['ask_mb']:.0f} MB with mapped files, {asked['own_mb']:.0f} MB without")


if __name__ == "__main__":
    sys.exit(main())
