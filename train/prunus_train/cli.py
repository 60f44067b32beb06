"""The command group ``prunus train``."""

from __future__ import annotations

from pathlib import Path

import click

from prunus.core.errors import PrunusError
from prunus_evals import tasks
from prunus_evals.errors import EvalError
from prunus_train.errors import TrainError


class _Group(click.Group):
    """Turns errors that are meant for users into one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (TrainError, EvalError, PrunusError) as error:
            raise click.UsageError(str(error)) from error


@click.group(name="train", cls=_Group)
def main() -> None:
    """Make training data, and train."""


def _progress(done: int, total: int) -> None:
    if done % 20 == 0 or done == total:
        click.echo(f"{done} of {total} pages", err=True)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise click.UsageError(f"budgets must be numbers, not {text}") from error


@main.command("labels")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="File of samples, JSONL.")
@click.option("--task", default="table_qa,page_qa", show_default=True, help="Tasks, by comma.")
@click.option("--budgets", default="2048,4096,8192", show_default=True, help="Tokens that pages are pruned to.")
@click.option("--first-stage", default="hybrid", show_default=True, help="Scorer that prunes them.")
@click.option("--coarse", default=256, show_default=True, help="Words a block of the first stage.")
@click.option("--fine", default=128, show_default=True, help="Words a block of the second stage.")
@click.option("--prompt", default="htmlrag", show_default=True, help="Prompt that asks for a path.")
def labels_command(out: Path, task: str, budgets: str, first_stage: str, coarse: int, fine: int, prompt: str) -> None:
    """Write the paper's samples for the generative pruner: prompt, path, content (HtmlRAG §3.4.2).

    Only the dev half is read. What is left out is listed in OUT.left_out. Killed, it goes on where it stopped.

    Example: prunus train labels -o samples.jsonl --budgets 2048,4096
    """
    from prunus_train.data import pruner  # here: the group's help needs none of it
    from prunus_train.data.labels import Recipe

    recipe = Recipe(first_stage, coarse, fine, prompt)
    made = pruner.make(out, tasks.expand(task), "dev", _numbers(budgets), recipe, _progress)
    click.echo(f"{made.samples} samples in {out}, {made.left_out} left out", err=True)


@main.command("pack")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--seeds", default="1", show_default=True, help="One file of samples for each, by comma.")
@click.option("--parts", default=36, show_default=True, help="Page parts to try for each page and seed.")
@click.option("--passages", default=1500, show_default=True, help="Pages of put together passages for each seed.")
@click.option("--each", default=6, show_default=True, help="Questions a page part.")
@click.option("--vocabulary", default=16_000, show_default=True, help="Tokens of the tokenizer.")
@click.option("--longest", default=1500, show_default=True, help="Tokens of a page part at most.")
@click.option("--small", is_flag=True, help="Short pages, to see on a processor that a model learns.")
@click.option("--prompt", default="bare", show_default=True, help="Prompt that asks for a path.")
def pack_command(folder: Path, seeds: str, prompt: str, vocabulary: int, small: bool, **plan: int) -> None:
    """Write what a small model is trained from into FOLDER: tokenizer, first vectors, packed samples.

    Only the dev half is read, and a part of it is held back as valid.xz. Files that are there are kept.

    Example: prunus train pack data/ --seeds 1,2,3,4
    """
    from prunus_train.data import pack
    from prunus_train.data.contexts import SMALL, USUAL

    longest = 200 if small else plan["longest"]
    sizes = SMALL if small else USUAL.up_to(longest)
    chosen = pack.Plan(plan["parts"], plan["passages"], plan["each"], longest, sizes)
    pack.make_all(folder, _numbers(seeds), chosen, vocabulary, prompt, lambda name, a, b: _progress(a, b))


@main.command("pack-samples")
@click.argument("samples", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--base", required=True, help="Folder of the model that is to be trained.")
@click.option("--window", default=35_000, show_default=True, help="Tokens of a sample; longer ones are left out.")
def pack_samples_command(samples: Path, folder: Path, base: str, window: int) -> None:
    """Write the tokens of SAMPLES, for a model of a published size, into FOLDER.

    Example: prunus train pack-samples samples.jsonl data/ --base /models/Phi-3.5-mini-instruct
    """
    from prunus_train.data import pack

    packed, long = pack.from_samples(samples, folder, base, window)
    click.echo(f"{packed} samples packed, {long} too long", err=True)


@main.command("pruner", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def pruner_command(arguments: tuple[str, ...]) -> None:
    """Train the generative pruner on packed samples."""
    from prunus_train.pruner_command import run

    run(list(arguments))
