"""``prunus train policy``: both ways to learn find the best choices of tiny walks, the same ones every time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("selectolax")

from tests.extras import need
from tests.train.test_train_blocks import sets as sets  # the tiny training sets are a fixture

import prunus
from prunus_train.cli import main
from prunus_train.errors import DataBroken
from prunus_train.policy import network
from prunus_train.policy.episodes import ANSWERS, CANDIDATES, STATIC, TERMS, Episodes
from prunus_train.policy.learn import LEARNERS, Plan, figures
from prunus_train.policy.network import Policy
from prunus_train.policy.walk import INPUTS, Walk

MARK = STATIC.index("bm25")
PLAN = Plan(price=0.1, steps=120, batch=32, hidden=8, rate=0.01, replay=5_000, draws=128, target=0.05, tell=60)


def tiny(count: int = 40, seed: int = 1) -> Episodes:
    """Return walks of six blocks of 10 tokens with room for three, of which the marked ones hold the two answers.

    Greedy pruning takes the first three. The best choice is to take marked blocks alone.
    """
    draw = np.random.default_rng(seed)
    shape = (count, CANDIDATES)
    made = Episodes(
        static=np.zeros((*shape, len(STATIC)), np.float32),
        cost=np.full(shape, np.inf, np.float32),
        need=np.full(shape, -1, np.int32),
        need_cost=np.zeros(shape, np.float32),
        table=np.full(shape, -1, np.int32),
        section=np.full(shape, -1, np.int32),
        place=np.full(shape, -9, np.int32),
        chance=np.zeros(shape, np.float32),
        terms=np.zeros((*shape, TERMS), bool),
        idf=np.zeros((count, TERMS), np.float32),
        holds=np.zeros((*shape, ANSWERS), bool),
        answers=np.full(count, 2, np.int32),
        budget=np.full(count, 30, np.float32),
    )
    made.cost[:, :6] = 10
    made.place[:, :6] = np.arange(6)
    for row in range(count):
        gold = draw.permutation(6)[:2]
        made.static[row, gold, MARK] = 1
        made.holds[row, gold, [0, 1]] = True
    return made


@pytest.mark.parametrize("method", ["reinforce", "dqn"])
def test_each_method_learns_the_best_choices_of_tiny_walks(method: str) -> None:
    need("torch")
    train, held = tiny(), tiny(20, seed=2)
    said: list[float] = []
    policy = LEARNERS[method](train, held, PLAN, lambda line: said.append(line["held"]["return"]))
    found = figures(held, 0.1, policy)
    assert found["survival"] == 1.0
    assert found["spent"] < 0.7  # 20 of 30 tokens; everything else was dropped
    assert found["return"] > figures(held, 0.1, None)["return"] + 0.2
    assert said[-1] == found["return"]


@pytest.mark.parametrize("method", ["reinforce", "dqn"])
def test_the_same_seed_gives_the_same_policy_and_another_seed_another(method: str) -> None:
    need("torch")
    plan = replace(PLAN, steps=5, tell=5)
    one, two, other = (LEARNERS[method](tiny(), tiny(), replace(plan, seed=seed), lambda _: None) for seed in (3, 3, 4))
    assert np.array_equal(one.weights[0], two.weights[0]) and np.array_equal(one.biases[1], two.biases[1])
    assert not np.array_equal(one.weights[0], other.weights[0])


def test_a_walk_keeps_the_budget_pays_a_header_once_and_pays_for_what_survives() -> None:
    episodes = tiny(1)
    episodes.need[0, :2], episodes.need_cost[0, :2] = 0, 5
    episodes.holds[0], episodes.answers[0] = False, 1
    episodes.holds[0, 1, 0] = True
    walk = Walk(episodes, price=0.3)
    rewards = [float(walk.step(walk.open(), np.asarray([True]))[0]) for _ in range(2)]
    assert rewards == pytest.approx([-0.15, 0.9])  # 15 of 30 tokens; then 10, and the answer
    assert walk.open().size == 0  # five tokens are left, and no block fits
    assert walk.left[0] == 5 and walk.survival()[0] == 1


def test_what_does_not_fit_is_passed_over_without_a_choice() -> None:
    episodes = tiny(1)
    episodes.cost[0, 0] = 31
    walk = Walk(episodes, price=0.0)
    assert walk.at[0] == 1
    assert walk.states(walk.open()).shape == (1, INPUTS)


def always(keep: bool) -> Policy:
    """Return a policy that keeps everything, or nothing."""
    flat = np.zeros(INPUTS, np.float32)
    weights = np.zeros((INPUTS, 2), np.float32), np.zeros((2, 2), np.float32)
    return Policy("dqn", flat, flat + 1, weights, (flat[:2], np.asarray([0, 1 if keep else -1], np.float32)))


def test_a_policy_comes_back_from_its_file(tmp_path: Path) -> None:
    network.write(always(True), tmp_path / "one.npz")
    network.write(network.load(tmp_path / "one.npz"), tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_a_damaged_policy_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(b"PK\3\4 nothing")
    with pytest.raises(DataBroken, match=r"bad\.npz is no pruning policy: [^\n]+$"):
        network.load(tmp_path / "bad.npz")
    with pytest.raises(DataBroken, match="no pruning policy"):
        network.load(tmp_path / "missing.npz")


PAGE = "<h1>Quay</h1>" + "".join(
    f"<p>Pier {place} of the quay was built in {1800 + place} by the town, and it still stands there today.</p>"
    for place in range(60)
)


def test_the_choices_of_a_policy_rank_first_in_the_pruner(tmp_path: Path) -> None:
    from prunus.core.settings import Settings
    from prunus.engines import assemble
    from prunus.evidence.score import learned
    from prunus_train.policy.scorer import Asked, Chooser

    engines = assemble(Settings())
    asked = Asked(learned.model(), engines.embedder, engines.counter)  # type: ignore[arg-type]
    pages = prunus.read(PAGE)
    question = "When was pier 41 built?"
    whole = prunus.prune(pages, question, 256, "html", prunus.Options(scorer=Chooser(always(True), 256, asked)))
    assert "1841" in whole.output and whole.tokens <= 256
    alone = Chooser(always(True), 256, asked).alone(pages, question)
    assert "1841" in alone.output and 0 < alone.tokens <= 256
    nothing = Chooser(always(False), 256, asked)
    assert nothing.alone(pages, question).kept == []
    filled = prunus.prune(pages, question, 256, "html", prunus.Options(scorer=nothing))
    assert "1841" in filled.output  # what was dropped comes back where there is room


def test_a_policy_of_a_file_is_a_scorer_at_the_command_line(tmp_path: Path) -> None:
    from prunus.cli.main import app
    from prunus_train.policy import scorer

    network.write(always(True), tmp_path / "dqn.npz")
    (tmp_path / "page.html").write_text(PAGE)
    spec = f"{scorer.__file__}:Scorer:{tmp_path / 'dqn.npz'}:256"
    arguments = ["prune", str(tmp_path / "page.html"), "-q", "When was pier 41 built?", "--budget", "256"]
    shown = CliRunner().invoke(app, [*arguments, "--scorer", spec])
    assert shown.exit_code == 0, shown.output
    assert "1841" in shown.output


def test_training_and_comparison_run_from_sets_to_tables_twice_alike(sets: Path, tmp_path: Path) -> None:
    need("lightgbm"), need("torch"), need("wordllama")
    arguments = ["policy", "--sets", str(sets), "--steps", "2"]
    found = [CliRunner().invoke(main, [*arguments, "-o", str(tmp_path / name)]) for name in ("one", "two")]
    assert [result.exit_code for result in found] == [0, 0], found[0].output
    for name in ("reinforce.npz", "dqn.npz", "trees.npz", "log.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    said = json.loads(found[0].stdout.strip().splitlines()[-1])
    assert set(said) == {"greedy", "reinforce", "dqn"}
    compared = CliRunner().invoke(main, ["policy-compare", str(tmp_path / "one"), "--sets", str(sets)])
    assert compared.exit_code == 0, compared.output
    tables = json.loads(compared.stdout.strip().splitlines()[-1])
    assert {"hybrid", "learned", "dqn", "dqn alone", "learned 75%"} <= set(next(iter(tables["texts"].values())))


def test_a_folder_without_policies_and_a_missing_set_are_one_line(sets: Path, tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["policy-compare", str(tmp_path)])
    assert shown.exit_code == 2 and "holds no policy" in " ".join(shown.output.split())
    need("lightgbm"), need("torch"), need("wordllama")
    (sets / "text/qed_en.jsonl.xz").unlink()
    shown = CliRunner().invoke(main, ["policy", "--sets", str(sets), "-o", str(tmp_path / "out")])
    assert shown.exit_code == 2 and "qed_en" in shown.output
    assert not (tmp_path / "out").exists()
