"""Engines from elsewhere: given as objects and as ``file.py:Class``, held to their ports in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prunus
from prunus.core.checked_engines import MEMBERS, adopted
from prunus.core.errors import BadEngine, BadInput, UnknownEngine
from prunus.core.registry import engine_class, engine_names, is_built_in

PAGE = "<p>short one</p><p>this is by far the longest of both paragraphs</p>"


class Longest:
    """Scores a block by its words; ``change`` spoils what it returns."""

    name = "longest"

    def __init__(self, change: Any = lambda scores: scores) -> None:
        self.change = change

    def score(self, query: str, blocks: Any) -> Any:
        return self.change(np.asarray([float(block.words) for block in blocks.blocks]))


def pruned(scorer: Any, **options: Any) -> prunus.Context:
    return prunus.prune(PAGE, "anything?", 14, options=prunus.Options(scorer=scorer, max_words=9, **options))


def test_an_object_is_an_engine() -> None:
    context = pruned(Longest())
    assert context.text == "this is by far the longest of both paragraphs"
    assert context.engines["scorer"] == "longest"


def test_a_class_of_a_file_is_an_engine(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import numpy as np\nclass Mine:\n    def score(self, query, blocks):\n"
                    "        return np.asarray([float(block.words) for block in blocks.blocks])\n")  # fmt: skip
    assert pruned(f"{file}:Mine").text == "this is by far the longest of both paragraphs"


@pytest.mark.parametrize(
    ("code", "spec", "says"),
    [
        (None, "mine.py:Mine", "there is no file"),
        ("x = 1", "mine.py:Mine", "holds no class Mine"),
        ("1 / 0", "mine.py:Mine", "ZeroDivisionError"),
        ("class Mine: pass\nMine.score", "mine.py:Mine", "AttributeError"),
        ("class Mine: pass", "mine.py:Mine", "has no method score"),
    ],
)
def test_a_file_that_holds_no_engine_is_one_line(folder: Path, code: str | None, spec: str, says: str) -> None:
    if code is not None:
        Path("mine.py").write_text(code)
    with pytest.raises(BadInput, match=says) as error:
        pruned(str(folder / spec))
    assert "\n" not in str(error.value)
    assert "mine.py:Mine" in str(error.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda scores: scores[:-1], r"shape \(1,\) for 2 blocks"),
        (lambda scores: scores * np.nan, "not finite"),
        (lambda scores: scores.tolist(), "a list, not a numpy array"),
        (lambda scores: scores.astype(str), "not a numpy array of numbers"),
        (lambda scores: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_scorer_that_breaks_its_port_is_one_line_that_names_it(change: Any, says: str) -> None:
    with pytest.raises(BadEngine, match=says) as error:
        pruned(Longest(change))
    assert str(error.value).startswith("scorer longest: ")
    assert "\n" not in str(error.value)


def test_an_embedder_returns_a_vector_of_unit_norm_for_each_text() -> None:
    class Halves:
        def embed(self, texts: list[str], kind: str = "document") -> Any:
            return np.full((len(texts), 2), 0.5, np.float32)

    with pytest.raises(BadEngine, match="unit norm"):
        adopted("embedder", Halves(), "halves").embed(["a", "b"])


def test_what_an_engine_leaves_out_has_the_default_of_its_port() -> None:
    engine = adopted("scorer", Longest(), "longest")
    assert (engine.second_stage, engine.one_prompt, engine.tree) == (False, False, None)
    with pytest.raises(AttributeError):
        _ = engine.colour


def test_a_generator_that_streams_writes_with_a_model() -> None:
    class Quoting:
        async def generate(self, query: str, passages: Any) -> str:
            return ""

    class Streaming(Quoting):
        def stream(self, query: str, sources: Any, turns: Any = ()) -> Any: ...

    assert not adopted("generator", Quoting(), "quoting").writes
    assert adopted("generator", Streaming(), "streaming").writes


@pytest.mark.parametrize("kind", MEMBERS)
def test_engines_that_come_with_prunus_declare_every_member(kind: str) -> None:
    for name in engine_names(kind):
        if is_built_in(kind, name):
            built = engine_class(kind, name)
            said = {*dir(built), *getattr(built, "__annotations__", ())}
            source = "".join(part for base in built.__mro__[:-1] for part in [Path(_file(base)).read_text("utf-8")])
            missing = [member for member in MEMBERS[kind] if member not in said and f"self.{member} " not in source]
            assert not missing, f"{kind} {name}: {missing}"


def _file(built: type) -> str:
    import inspect

    return inspect.getfile(built)


def test_an_unknown_name_is_still_unknown() -> None:
    with pytest.raises(UnknownEngine, match="no scorer is called 'mine'"):
        pruned("mine")
