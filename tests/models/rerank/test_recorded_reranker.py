"""A recorded run keeps what a reranker declares, so that its scorer weighs the same at the replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from prunus.core.checked_engines import adopted
from prunus.evidence.blocks import cut
from prunus.evidence.score import bm25
from prunus.evidence.score.crossencoder import Engine
from prunus.pages.clean.walk import clean_tree
from prunus.record.file import pack, unpack
from prunus.record.player import Player
from prunus.record.recorder import Recorder


class Reranker:
    name = "declaring"
    above = 7
    beside = 1.5

    def rerank(self, query: str, texts: Sequence[str]) -> np.ndarray:
        return np.asarray([float(len(text) % 5) for text in texts])


def test_a_replay_weighs_as_the_run_did(tmp_path: Path) -> None:
    blocks = cut([clean_tree("<h1>Harbour town</h1>" + "".join(f"<p>Ferry {'x' * n} {n}.</p>" for n in range(9)))], 4)
    recorder = Recorder()

    def scores(reranker: object) -> list[float]:
        blocks.cache.clear()
        return list(Engine(adopted("reranker", reranker, "mine"), scorer=bm25.Engine()).score("ferry", blocks))

    bare = scores(Reranker())
    assert scores(recorder.numbers("reranker", "mine", Reranker)) == bare
    (tmp_path / "run").write_bytes(pack(recorder.run))
    played = Player(unpack(tmp_path / "run")).numbers("reranker", "mine", lambda: None)
    assert scores(played) == bare
    assert (played.above, played.beside) == (7, 1.5)
