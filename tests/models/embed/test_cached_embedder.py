"""The cache of vectors: no text is embedded twice, keys never clash, the size is bounded, a kill loses nothing old."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.core.errors import BadInput, OutsideFailed
from prunus.models.embed._cached import FILE, CachedEmbedder
from prunus.models.embed.static import Engine as Static


class Counting:
    """An embedder that remembers what it was asked."""

    def __init__(self, size: int = 4, identity: str = "counting") -> None:
        self.size = size
        self.identity = identity
        self.asked: list[tuple[str, str]] = []

    def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
        self.asked += [(text, kind) for text in texts]
        found = np.asarray([[len(text) + 1, kind == "query", *[1] * (self.size - 2)] for text in texts], np.float32)
        found = found.reshape(len(texts), self.size)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_what_was_embedded_is_not_embedded_again(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, tmp_path, "x")
    first = cached.embed(["a", "bb", "a"])
    assert inner.asked == [("a", "document"), ("bb", "document")]
    again = CachedEmbedder(inner, tmp_path, "x").embed(["bb", "a", "ccc"])
    assert inner.asked[2:] == [("ccc", "document")]
    assert np.array_equal(again[:2], first[[1, 0]])
    assert np.array_equal(first, inner.embed(["a", "bb", "a"]))


def test_kinds_models_and_engines_are_kept_apart(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, tmp_path, "x")
    cached.embed(["a"], "document")
    assert not np.array_equal(cached.embed(["a"], "query"), cached.embed(["a"], "document"))
    CachedEmbedder(inner, tmp_path, "x:other").embed(["a"])
    CachedEmbedder(Counting(identity="newer file"), tmp_path, "x").embed(["a"])
    assert len(inner.asked) == 3
    assert cached.size()[0] == 4


def test_nothing_stays_nothing(tmp_path: Path) -> None:
    assert CachedEmbedder(Static(), tmp_path, "static").embed([]).shape == (0, 256)


@given(st.lists(st.text(st.characters(), max_size=12), max_size=12))
def test_it_says_what_the_embedder_says(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.getbasetemp() / "cached"
    cached = CachedEmbedder(Static(), folder, "static")
    for _ in range(2):
        assert np.allclose(cached.embed(texts), Static().embed(texts), atol=1e-6)


def test_lone_surrogates_are_texts_too(tmp_path: Path) -> None:
    cached = CachedEmbedder(Counting(), tmp_path, "x")
    assert cached.embed(["\ud800", "\ud801"]).shape == (2, 4)
    assert cached.size()[0] == 2


def test_it_stays_within_its_bound_and_drops_what_was_not_read_for_longest(tmp_path: Path) -> None:
    inner = Counting(size=8000)  # 32 kB a vector: 32 of them are a MiB
    cached = CachedEmbedder(inner, tmp_path, "x", max_mb=1)
    for number in range(120):
        cached.embed([f"text {number}", "often read"])
    count, size = cached.size()
    assert 20 < count <= 32
    assert size <= 1 << 20
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 8 << 20
    assert sum(text == "often read" for text, _ in inner.asked) <= 3
    before = len(inner.asked)
    cached.embed(["text 119"])
    assert len(inner.asked) == before
    cached.embed(["text 0"])
    assert len(inner.asked) == before + 1


def test_its_bytes_are_those_of_its_rows(tmp_path: Path) -> None:
    cached = CachedEmbedder(Counting(size=100), tmp_path, "x", max_mb=1)
    for start in range(0, 3000, 700):
        cached.embed([f"text {number}" for number in range(start, start + 700)])
    count, size = cached.size()
    assert size == count * (400 + 120)
    cached.clear()
    assert cached.size() == (0, 0)


def test_threads_may_share_it(tmp_path: Path) -> None:
    cached = CachedEmbedder(Static(), tmp_path, "static")
    texts = [f"text {number}" for number in range(40)]
    wanted, failed = Static().embed(texts), []

    def work(seed: int) -> None:
        order = np.random.default_rng(seed).permutation(40)
        if not np.allclose(cached.embed([texts[place] for place in order]), wanted[order], atol=1e-6):
            failed.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert cached.size()[0] == 40


WRITER = """
import itertools, sys
from prunus.models.embed._cached import CachedEmbedder
from prunus.models.embed.static import Engine
cached = CachedEmbedder(Engine(), sys.argv[1], "static", max_mb=1)
for number in itertools.count():
    cached.embed([f"{sys.argv[2]} {number} {part}" for part in range(40)])
    print(number, flush=True)
"""


@pytest.mark.slow
def test_two_processes_write_and_one_is_killed(tmp_path: Path) -> None:
    source = str(Path(__file__).parents[3] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)]
    with (
        subprocess.Popen([*command, "one"], stdout=subprocess.PIPE, env=environment) as one,
        subprocess.Popen([*command, "two"], stdout=subprocess.PIPE, env=environment) as two,
    ):
        try:
            for process in (one, two):
                assert process.stdout is not None
                for _ in range(4):
                    assert process.stdout.readline()
        finally:
            one.send_signal(signal.SIGKILL)
            two.send_signal(signal.SIGKILL)
    cached = CachedEmbedder(Static(), tmp_path, "static", max_mb=1)
    count, size = cached.size()
    assert count >= 160
    assert size == count * (1024 + 120)
    with sqlite3.connect(tmp_path / FILE) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    file.close()
    assert np.allclose(cached.embed(["one 0 0", "two 3 39"]), Static().embed(["one 0 0", "two 3 39"]), atol=1e-6)


def test_a_file_that_is_no_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"something else entirely" * 100)
    with pytest.raises(BadInput, match=r"not a cache of vectors .* delete it"):
        CachedEmbedder(Counting(), tmp_path, "x").embed(["a"])


def test_a_cache_of_another_version_is_named(tmp_path: Path) -> None:
    file = sqlite3.connect(tmp_path / FILE)
    file.execute("PRAGMA user_version = 9")
    file.close()
    with pytest.raises(BadInput, match="made by another version; delete it"):
        CachedEmbedder(Counting(), tmp_path, "x").embed(["a"])


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be kept there"):
        CachedEmbedder(Counting(), tmp_path / "file" / "inner", "x").embed(["a"])


def test_a_cache_that_another_holds_too_long_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prunus.models.embed._cached._WAIT", 0.1)
    cached = CachedEmbedder(Counting(), tmp_path, "x")
    cached.embed(["a"])
    holder = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(OutsideFailed, match="database is locked"):
        cached.embed(["b"])
    holder.close()
    assert cached.embed(["b"]).shape == (1, 4)


def test_a_bound_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds nothing"):
        CachedEmbedder(Counting(), tmp_path, "x", max_mb=0)
