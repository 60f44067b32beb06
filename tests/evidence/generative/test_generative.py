"""The scorer ``generative`` with a back-end that computes its logits from the prompt."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import prunus
from prunus.core.errors import BadInput, MissingExtra, OverWindow, UnknownEngine
from prunus.core.options import Options
from prunus.core.ports import Branches, TokenTree
from prunus.core.settings import load_settings
from prunus.core.types import Message
from prunus.engines import EngineSet
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.score.generative import Engine
from prunus.evidence.score.paths.transformers import engine as transformers
from prunus.pages.clean.walk import clean_tree


class Letters:
    """A back-end whose tokens are letters, and whose logits are drawn from prompt and path."""

    stop = 3
    decode = None

    def __init__(self, window: int = 10**9) -> None:
        self.window = window
        self.asked: list[str] = []

    def encode(self, paths: Sequence[str]) -> list[list[int]]:
        return [[ord(letter) for letter in path] for path in paths]

    def branches(self, prompt: Sequence[Message], tree: TokenTree) -> Branches:
        text = prompt[0].content
        self.asked.append(text)
        if len(text) > self.window:
            raise OverWindow("too long", window=self.window, needed=len(text))
        found = []
        for node, children in zip(tree.branching, tree.children, strict=True):
            seed = hashlib.sha256(f"{text}{tree.path(int(node))}".encode()).digest()
            found.append(np.random.default_rng(list(seed)).normal(size=len(children)))
        return Branches(found, forwards=1, tokens=len(tree.read))


def blocks(count: int = 12) -> Blocks:
    return cut([clean_tree("".join(f"<div><p>Ferry {one} leaves.<p>It is late.</div>" for one in range(count)))], 3)


def test_the_scores_are_log_probabilities_of_the_blocks() -> None:
    found = Engine(Letters()).score("When?", blocks())
    assert found.shape == (24,)
    assert found.dtype == np.float64
    assert np.exp(found).sum() == pytest.approx(1.0)


def test_the_question_changes_the_scores() -> None:
    engine = Engine(Letters())
    assert not np.allclose(engine.score("When?", blocks()), engine.score("Why?", blocks()))


def test_the_tree_says_what_was_read_and_what_was_not() -> None:
    found = Engine(Letters()).tree("When?", blocks())
    assert found.branches.tokens == len(found.tree.read)
    assert 0.2 < found.tree.skipped < 1
    assert found.scores.tolist() == pytest.approx([sum(way(found, leaf)) for leaf in found.leaves.tolist()])


def way(found: object, leaf: int) -> list[float]:
    steps = []
    while leaf >= 0:
        steps.append(float(found.log_p[leaf]))  # type: ignore[attr-defined]
        leaf = int(found.tree.parent[leaf])  # type: ignore[attr-defined]
    return steps


def test_no_block_and_one_block_ask_nothing() -> None:
    back_end = Letters()
    assert Engine(back_end).score("When?", cut([], 10)).tolist() == []
    assert Engine(back_end).score("When?", cut([clean_tree("<p>One block.")], 10)).tolist() == [0.0]
    assert back_end.asked == []


def test_a_page_over_the_window_is_an_error_that_says_by_how_much() -> None:
    with pytest.raises(OverWindow) as caught:
        Engine(Letters(window=100)).score("When?", blocks())
    assert caught.value.window == 100
    assert caught.value.needed > 100
    assert isinstance(caught.value, BadInput)


def test_the_published_prompt_can_be_chosen() -> None:
    back_end = Letters()
    Engine(back_end, prompt="htmlrag").score("When?", blocks())
    assert back_end.asked[0].startswith('**HTML**: "<html>')
    with pytest.raises(BadInput, match="there are: paths, htmlrag"):
        Engine(back_end, prompt="mine")


def test_a_model_is_asked_as_it_was_trained_unless_a_prompt_is_named(tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text('{"prompt": "bare"}')
    trained = transformers.Engine(str(tmp_path))
    assert (Engine(trained).prompt, Engine(trained, prompt="htmlrag").prompt) == ("bare", "htmlrag")
    (tmp_path / "training.json").write_text("[1]")
    assert Engine(trained).prompt == "paths"


# --- from settings -------------------------------------------------------------------------------


def test_the_spec_names_a_back_end_or_a_model_on_this_machine() -> None:
    maker = EngineSet(load_settings({"scorer": "generative:/no/such/model"}, environment={}), Options())
    engine = maker.get("scorer")
    assert engine.path_scorer.model == "/no/such/model"
    assert maker.names["path_scorer"] == "transformers:/no/such/model"
    maker = EngineSet(load_settings({"scorer": "generative:transformers:/a/b"}, environment={}), Options())
    assert maker.get("scorer").path_scorer.model == "/a/b"


def test_options_reach_the_back_end_and_the_prompt_the_scorer() -> None:
    given = {"scorer": "generative:/m", "path_options": {"mode": "depth", "prompt": "htmlrag"}}
    engine = EngineSet(load_settings(given, environment={}), Options()).get("scorer")
    assert engine.prompt == "htmlrag"
    assert engine.path_scorer._options["mode"] == "depth"


@pytest.mark.parametrize("options", [{"speed": 3}, {"mode": "fast"}, {"mode": 3}, {"tree_chunk": 0}])
def test_a_wrong_option_is_named(options: dict[str, object]) -> None:
    given = {"scorer": "generative:/m", "path_options": options}
    with pytest.raises(BadInput, match="path_options"):
        EngineSet(load_settings(given, environment={}), Options()).get("scorer")


def test_a_model_that_is_not_there_is_one_line(tmp_path: object) -> None:
    page = "<p>The ferry leaves at noon.<p>The lighthouse was built in 1871."
    with pytest.raises((BadInput, MissingExtra)) as caught:
        prunus.prune(page, "When?", budget=15, options=Options(scorer=f"generative:{tmp_path}", max_words=5))
    assert "\n" not in str(caught.value)


def test_generative_without_a_model_says_what_to_name() -> None:
    with pytest.raises(BadInput, match="path_scorer"):
        EngineSet(load_settings({"scorer": "generative"}, environment={}), Options()).get("scorer")
    with pytest.raises(UnknownEngine):
        EngineSet(load_settings({"scorer": "generative", "path_scorer": "nobody:x"}, environment={}), Options()).get(
            "scorer"
        )
