"""An index that is built on Ray is the index that one process builds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.extras import need
from tests.index.library import SUBJECTS, builder, page

from prunus import Index
from prunus.core.errors import BadInput
from prunus.index.build import BuildSettings, DocumentSource
from prunus.index.store.file.engine import Engine as Store

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # Ray warns of itself


def test_ray_builds_the_index_of_one_process(tmp_path: Path) -> None:
    need("ray")
    from prunus.batch.on_ray import RayExecutor

    for number in range(40):
        name = list(SUBJECTS)[number % len(SUBJECTS)]
        (tmp_path / f"{number}.html").write_text(page(name).replace("note", f"note {number}"))
    (tmp_path / "bad.html").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with RayExecutor(workers=2) as executor:
        plain, shared = Index.open(tmp_path / "plain"), Index.open(tmp_path / "shared")
        shared.executor = executor
        told = [index.add(sorted(tmp_path.glob("*.html")), strict=False) for index in (plain, shared)]
        assert told[0] == told[1] and len(told[0].failures) == 1
        assert same(plain.store, shared.store)

        trees = []
        for name in ("here", "there"):
            made = builder(tmp_path / name, BuildSettings(chunk_tokens=40, shard_nodes=100))
            made.add(
                DocumentSource(f"{number}", text=page("bees", 6).replace("note", f"{number}")) for number in range(120)
            )
            if name == "there":
                made.executor = executor
            asyncio.run(made.build(summaries=False))
            trees.append(made.store)
        assert trees[0].view().leaves > 4 * 100 and same(*trees)

        def failing_at(wrong: int) -> Callable[[], Callable[[int], int]]:  # inside: actors cannot import this file
            def fail(number: int) -> int:
                if number == wrong:
                    raise BadInput("the third is wrong", subject="3")
                return number

            return lambda: fail

        with pytest.raises(BadInput, match="the third is wrong"):
            list(executor(failing_at(3), range(9)))
        assert list(executor(failing_at(-1), range(9))) == [*range(9)]  # the cores are free again


def same(one: Store, other: Store) -> bool:
    views = one.view(), other.view()
    equal = np.array_equal(views[0].matrix, views[1].matrix) and [*views[0].names] == [*views[1].names]
    return equal and one.edges() == other.edges()
