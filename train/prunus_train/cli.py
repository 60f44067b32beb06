"""The command group ``prunus train``: make training data, and train the models of Prunus."""

from __future__ import annotations

from pathlib import Path

import click

from prunus.core.errors import PrunusError
from prunus_evals import tasks
from prunus_evals.errors import EvalError
from prunus_train.errors import TrainError


class _Group(click.Group):
    """Turns expected errors into one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (TrainError, EvalError, PrunusError) as error:
            raise click.UsageError(str(error)) from error


@click.group(name="train", cls=_Group)
def main() -> None:
    """Make training data, and train the models of Prunus.

    \b
    Examples:
      prunus train pack data/ --seeds 1,2
      prunus train pruner data/ -o model/ --preset nano --minutes 10
      prunus train quotes --sets train/ -o weights.json
    """


def _progress(done: int, total: int) -> None:
    if done % 20 == 0 or done == total:
        click.echo(f"{done} of {total} pages", err=True)


def _in_folder(context: click.Context, option: click.Parameter, path: Path) -> Path:
    if not path.parent.is_dir():  # said before the work, not behind it
        raise click.BadParameter(f"there is no folder {path.parent}", context, option)
    return path


_OUT = click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_in_folder,
    required=True,
    help="File for the weights.",
)


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise click.UsageError(f"{option}: {text!r} is no list of numbers; separate them by commas") from error


@main.command("labels")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="File for the samples, JSONL.")
@click.option("--task", default="table_qa,page_qa", show_default=True, help="Tasks, separated by commas.")
@click.option("--budgets", default="2048,4096,8192", show_default=True, help="Tokens to prune pages to.")
@click.option("--first-stage", default="hybrid", show_default=True, help="Scorer of the first stage.")
@click.option("--coarse", default=256, show_default=True, help="Words of a block of the first stage at most.")
@click.option("--fine", default=128, show_default=True, help="Words of a block of the second stage at most.")
@click.option("--prompt", default="htmlrag", show_default=True, help="Name of the prompt.")
def labels_command(out: Path, task: str, budgets: str, first_stage: str, coarse: int, fine: int, prompt: str) -> None:
    """Write the paper's training samples for the generative pruner: prompt, path, content (HtmlRAG §3.4.2).

    Only the dev half of the data is read. OUT.left_out lists the questions that are left out, with the reason. Run
    the same command again to resume after a stop.

    Example: prunus train labels -o samples.jsonl --budgets 2048,4096
    """
    from prunus_train.data import pruner  # here: the help does not need these modules
    from prunus_train.data.labels import Recipe

    recipe = Recipe(first_stage, coarse, fine, prompt)
    made = pruner.make(out, tasks.expand(task), "dev", _numbers(budgets, "--budgets"), recipe, _progress)
    click.echo(f"{made.samples} samples in {out}, {made.left_out} left out", err=True)


@main.command("pack")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--seeds", default="1", show_default=True, help="Seeds, separated by commas; each makes a file of samples."
)
@click.option("--parts", default=36, show_default=True, help="Page parts to try for each page and seed.")
@click.option("--passages", default=1500, show_default=True, help="Pages to make from passages for each seed.")
@click.option("--each", default=6, show_default=True, help="Questions for each page part.")
@click.option("--vocabulary", default=16_000, show_default=True, help="Size of the tokenizer's vocabulary.")
@click.option("--longest", default=1500, show_default=True, help="Tokens of a page part at most.")
@click.option("--small", is_flag=True, help="Short pages, for a quick trial without a GPU.")
@click.option("--prompt", default="bare", show_default=True, help="Name of the prompt.")
def pack_command(folder: Path, seeds: str, prompt: str, vocabulary: int, small: bool, **plan: int) -> None:
    """Write the training data of a small model into FOLDER: tokenizer, first vectors, packed samples.

    Only the dev half of the data is read; a part of it becomes the validation data, valid.xz. Existing files are kept.

    Example: prunus train pack data/ --seeds 1,2,3,4
    """
    from prunus_train.data import pack
    from prunus_train.data.contexts import SMALL, USUAL

    longest = 200 if small else plan["longest"]
    sizes = SMALL if small else USUAL.up_to(longest)
    chosen = pack.Plan(plan["parts"], plan["passages"], plan["each"], longest, sizes)
    pack.make_all(
        folder, _numbers(seeds, "--seeds"), chosen, vocabulary, prompt, lambda name, done, total: _progress(done, total)
    )


@main.command("pack-samples")
@click.argument("samples", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--base", required=True, help="Folder of the model to train.")
@click.option(
    "--window", default=35_000, show_default=True, help="Tokens of a sample at most; longer samples are left out."
)
def pack_samples_command(samples: Path, folder: Path, base: str, window: int) -> None:
    """Tokenize SAMPLES for a published model, and write the packed samples into FOLDER.

    Example: prunus train pack-samples samples.jsonl data/ --base /models/Phi-3.5-mini-instruct
    """
    from prunus_train.data import pack

    packed, long = pack.from_samples(samples, folder, base, window)
    click.echo(f"{packed} samples packed, {long} too long", err=True)


@main.command("pruner", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def pruner_command(arguments: tuple[str, ...]) -> None:
    """Train the generative pruner on packed samples.

    Example: prunus train pruner data/ -o model/ --preset nano --minutes 10
    """
    from prunus_train.pruner_command import run

    run(list(arguments))


@main.command("content")
@_OUT
def content_command(out: Path) -> None:
    """Train the model of main content on the dev half of the marked pages (a quarter of a minute).

    Example: prunus train content -o src/prunus/pages/main/weights.json
    """
    from prunus_train import content

    content.write(content.train(content.load(), lambda line: click.echo(line, err=True)), out)


@main.command("quotes")
@_OUT
@click.option(
    "--sets",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    help="Folder of the training sets: text/NAME.jsonl.xz and table_qa/.",
)
def quotes_command(out: Path, sets: Path) -> None:
    """Train the extractor ``sentences`` on the dev half and on training sets (ten minutes of one core).

    The bar is written to the file that -o names, JSON, and the scorer beside it, with the suffix .npz.
    Figures of the dev half go to standard output as JSON: under the new weights (new), whose scorer has not seen it,
    and under those of this version (shipped).

    Example: prunus train quotes --sets train/ -o src/prunus/answer/extract/weights.json
    """
    from prunus_evals.report import json_line
    from prunus_train import quotes
    from prunus_train.data.quotes import load

    examples = load(sets, lambda line: click.echo(line, err=True))
    segment, stored, found = quotes.train(examples)
    click.echo(json_line(found))
    quotes.write(segment, stored, out)
