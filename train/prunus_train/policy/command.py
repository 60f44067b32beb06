"""The commands ``prunus train policy`` and ``prunus train policy-compare``."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from prunus_train.errors import TrainError

_SETS = click.Path(path_type=Path, exists=True, file_okay=False)
METHODS = ("reinforce", "dqn")


def _say(line: str) -> None:
    click.echo(line, err=True)


@click.command("policy")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the policies."
)
@click.option(
    "--sets", type=_SETS, required=True, help="Folder of the training sets: text/NAME.jsonl.xz and table_qa/."
)
@click.option(
    "--method",
    type=click.Choice([*METHODS, "both"]),
    default="both",
    show_default=True,
    help="How the agent learns.",
)
@click.option("--price", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Cost of the whole budget.")
@click.option("--steps", type=click.IntRange(1, 100_000), default=600, show_default=True, help="Batches of 128 walks.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Seed of the draws.")
@click.option(
    "--share", type=click.FloatRange(0.01, 1.0), default=1.0, show_default=True, help="Share of the pages, for a trial."
)
def policy_command(out: Path, sets: Path, method: str, price: float, steps: int, seed: int, share: float) -> None:
    """Train an agent that keeps or drops the blocks of a page: an experiment beside greedy pruning.

    The reward is the share of the answers that survive, less a cost for tokens. OUT gets reinforce.npz, dqn.npz, the
    trees of `learned` that did not see the held-out documents (trees.npz), and log.jsonl with the returns. Figures of
    held-out walks go to standard output as JSON. The same sets and seed give the same files.

    Example: prunus train policy --sets train/ -o policy/
    """
    from prunus.models.boosted import write as write_trees
    from prunus_evals.report import json_line
    from prunus_train.boosted import need_library
    from prunus_train.policy import network, train
    from prunus_train.policy.learn import Plan

    need_library()
    if find_spec("torch") is None:
        raise TrainError("torch is not installed; run: pip install 'prunus[train]'")
    data = train.make(sets, _say, share)
    out.mkdir(parents=True, exist_ok=True)
    write_trees(data.trees, out / "trees.npz")
    with (out / "log.jsonl").open("w", encoding="utf-8") as log:

        def report(line: Any) -> None:
            log.write(json.dumps(line) + "\n")
            log.flush()
            _say(json.dumps(line))

        chosen = METHODS if method == "both" else (method,)
        made, found = train.learn(data, Plan(price=price, steps=steps, seed=seed), chosen, report)
    for name, policy in made.items():
        network.write(policy, out / f"{name}.npz")
    click.echo(json_line(found))


@click.command("policy-compare")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--sets", type=_SETS, help="Folder of the training sets: their held-out documents are pruned.")
@click.option(
    "--half", type=click.Choice(["dev", "report"]), default="dev", show_default=True, help="Half of the data."
)
@click.option("--task", default="table_qa,nq", show_default=True, help="Tasks, separated by commas.")
@click.option("--limit", type=click.IntRange(min=1), help="Pages of every task at most.")
@click.option("--share", type=click.FloatRange(0.01, 1.0), default=1.0, help="Share of the pages of training sets.")
def policy_compare_command(
    folder: Path, sets: Path | None, half: Any, task: str, limit: int | None, share: float
) -> None:
    """Compare the policies in FOLDER with greedy pruning by `hybrid` and `learned`, at 256, 512 and 1,024 tokens.

    With --sets, on held-out documents, with trees that did not see them; else on tasks of the evaluation, with the
    trees of `learned`. Survival of answers, tokens and paired intervals go to standard output as JSON.

    Example: prunus train policy-compare policy/ --half dev
    """
    from prunus.evidence.score.learned import model
    from prunus.models.boosted import load as load_trees
    from prunus_evals import tasks
    from prunus_evals.report import json_line
    from prunus_train.data.blocks import questions
    from prunus_train.policy import compare, network
    from prunus_train.policy.train import BUDGETS

    policies = {name: network.load(folder / f"{name}.npz") for name in METHODS if (folder / f"{name}.npz").exists()}
    if not policies:
        raise TrainError(f"{folder} holds no policy; train one: prunus train policy -o {folder}")
    if sets is not None:
        pages = compare.held_out(questions(sets, _say, share, BUDGETS))
        trees = load_trees(folder / "trees.npz")
    else:
        pages, trees = compare.of_tasks(tasks.expand(task), half, limit), model()
    click.echo(json_line(compare.summary(compare.run(pages, policies, trees, _say))))
