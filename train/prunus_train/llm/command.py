"""The commands ``prunus train sft`` and ``prunus train dpo``."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import click

from prunus_train.errors import DataBroken, Stopped
from prunus_train.llm.presets import BASES, PRESETS, TrainingRecipe

LAUNCHES = ("zero3", "sequence")
_PATH = click.Path(path_type=Path, dir_okay=False)
_FROM_0, _FROM_1 = click.IntRange(0), click.IntRange(1)
_ABOVE_0 = click.FloatRange(0, min_open=True)
_SHOWN = ", ".join(f"{name} ({BASES[name]})" for name in PRESETS)


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that both commands share."""
    for option in reversed((
        click.argument("data", type=_PATH),
        click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), required=True,
                     help="Folder for the model; it must be empty or new."),
        click.option("--base", required=True, help="Folder of the model to start from, or a .gguf file."),
        click.option("--work", type=click.Path(path_type=Path, file_okay=False),
                     help="Folder of checkpoints and log.  [default: OUT.work]"),
        click.option("--valid", type=_PATH, help="Samples that are measured during training."),
        click.option("--template", default="", help="File of a chat template; `none`: train without one."),
        click.option("--lora", default=0, type=_FROM_0, show_default=True, help="Rank of LoRA; 0 trains all weights."),
        click.option("--lora-layers", default=0, type=_FROM_0, help="How many of the last layers LoRA adapts; 0: all."),
        click.option("--micro", default=1, type=_FROM_1, show_default=True, help="Samples in memory at the same time."),
        click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True,
                     help="Where to train."),
        click.option("--bf16/--no-bf16", default=False, help="Compute in bfloat16, keep weights in float32."),
        click.option("--checkpointing/--no-checkpointing", default=None, help="Recompute activations to save memory."),
        click.option("--seed", default=0, type=_FROM_0, show_default=True, help="Of the order of samples and of LoRA."),
        click.option("--threads", default=1, type=_FROM_1, show_default=True, help="Threads of the processor."),
        click.option("--steps", default=0, type=_FROM_0, help="Optimiser steps; 0: as many as --epochs have."),
        click.option("--minutes", default=0.0, type=click.FloatRange(0), help="Minutes of training; 0: no limit."),
        click.option("--every", default=50, type=_FROM_1, show_default=True, help="Steps between checkpoints."),
        click.option("--measured", default=32, type=_FROM_0, show_default=True, help="Samples of --valid to reply to."),
        click.option("--window", type=_FROM_1, help="Tokens of a sample at most; longer ones are left out."),
        click.option("--epochs", type=_ABOVE_0, help="Passes over the data."),
        click.option("--rate", type=_ABOVE_0, help="The highest learning rate."),
        click.option("--batch", type=_FROM_1, help="Samples of an optimiser step."),
        click.option("--launch", default="", help="zero3, sequence, or a file for accelerate's launcher."),
        click.option("--processes", default=8, show_default=True, help="GPUs, with --launch."),
        click.option("--dry-run", is_flag=True, help="With --launch: show the command alone."),
    )):  # fmt: skip
        command = option(command)
    return command


def _preset(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    names = click.Choice(list(PRESETS))
    return click.option("--preset", type=names, default=default, show_default=True, help=f"Hyper-parameters: {_SHOWN}.")


@click.command("sft")
@_options
@_preset("extractor")
def sft_command(data: Path, **chosen: Any) -> None:
    """Train a language model on DATA, samples that `prunus train data` wrote; only the replies count in the loss.

    Ctrl-C saves a checkpoint; the same command goes on from the last one, also after a kill. LoRA is merged in OUT,
    which the engines `transformers:OUT` and `generative:OUT` load.

    \b
    Examples:
      prunus train sft pruner.jsonl -o pruner/ --base /models/Llama-3.2-1B-Instruct --preset pruner --bf16
      prunus train sft parser.jsonl -o parser/ --base /models/Yi-6B-Chat --preset parser --bf16 --launch zero3
      prunus train sft pruner.jsonl -o small/ --base SmolLM2-135M-Instruct.Q4_1.gguf --preset small --lora 16
    """
    _run("sft", data, chosen)


@click.command("dpo")
@_options
@_preset("extractor-dpo")
@click.option("--beta", type=float, help="How strongly the model is held to the one that it starts from.")
def dpo_command(data: Path, **chosen: Any) -> None:
    """Train a language model on DATA, pairs of a better and a worse reply, by direct preference optimisation.

    Example: prunus train dpo pairs.jsonl -o extractor-dpo/ --base extractor/ --bf16
    """
    _run("dpo", data, chosen)


def _run(method: Literal["sft", "dpo"], data: Path, chosen: dict[str, Any]) -> None:
    launch, processes, dry = chosen.pop("launch"), chosen.pop("processes"), chosen.pop("dry_run")
    preset = PRESETS[chosen.pop("preset")]
    named = {field.name for field in fields(TrainingRecipe)}
    given = {name: chosen.pop(name) for name in list(chosen) if name in named}
    recipe = replace(preset, **{name: value for name, value in given.items() if value is not None})
    _check(recipe, chosen, launch, method)
    if launch:
        _launch(launch, processes, dry)
        return
    work = chosen.pop("work") or chosen["out"].with_name(f"{chosen['out'].name}.work")
    from prunus_train.llm import training  # here: the help does not need it

    try:
        about = training.train(training.TrainingJob(method, data, work=work, recipe=recipe, **chosen), _say)
    except Stopped as stopped:
        _say(str(stopped))
        raise SystemExit(130) from stopped
    _say(f"wrote {chosen['out']}: {about['steps']} steps on data with {about['supervised_tokens']} supervised tokens")


def _check(recipe: TrainingRecipe, chosen: dict[str, Any], launch: str, method: str) -> None:
    """Look whether the choices fit each other.

    :raises DataBroken: they do not.
    """
    if recipe.batch % chosen["micro"]:
        raise DataBroken(f"--batch {recipe.batch} is no multiple of --micro {chosen['micro']}")
    if launch and chosen["lora"]:
        raise DataBroken("--lora trains on one device: split weights cannot be merged; leave --launch or --lora out")
    if launch == "sequence" and method == "dpo":
        raise DataBroken("--launch sequence: trl splits samples over GPUs in sft alone; use zero3 for dpo")


def _launch(launch: str, processes: int, dry: bool) -> None:
    from prunus_train.llm import base

    command = launch_command(launch, processes, _without_launch(sys.argv[1:]))
    if dry:
        click.echo(shlex.join(command))
        return
    base.check_packages(*(["deepspeed"] if launch in LAUNCHES else []))
    ended = subprocess.run(command, check=False)  # noqa: S603 - our own command, and the arguments that we were given
    if ended.returncode:
        raise SystemExit(ended.returncode)


def launch_command(launch: str, processes: int, arguments: Sequence[str]) -> list[str]:
    """Return the command that trains on several GPUs by accelerate's launcher.

    :param launch: one of `LAUNCHES`, whose files lie beside this one, or a file of ``accelerate config``.
    :param arguments: of ``prunus train``, without those of the launch.
    :raises DataBroken: it is neither, or there are too few processes.
    """
    given = ["--config_file", launch]
    if launch in LAUNCHES:
        if processes < 2:
            raise DataBroken(f"--launch {launch}: splits a training over several GPUs; give --processes 2 or more")
        folder = Path(__file__).parent
        given = ["--config_file", str(folder / f"{launch}.yaml"), "--num_processes", str(processes)]
        given += ["--deepspeed_config_file", str(folder / "deepspeed.json")]
        if launch == "sequence":
            given += ["--parallelism_config_sp_size", str(processes)]
    elif not Path(launch).is_file():
        raise DataBroken(f"--launch {launch}: give zero3, sequence or a file of `accelerate config`")
    return [sys.executable, "-m", "accelerate.commands.launch", *given, "-m", "prunus_train", *arguments]


def _without_launch(arguments: list[str]) -> list[str]:
    """Return the arguments of this command as ``python -m prunus_train`` takes them, without those of the launch."""
    start = next((place for place, word in enumerate(arguments) if word in ("sft", "dpo")), 0)
    found, words = [], iter(arguments[start:])
    for word in words:
        name = word.partition("=")[0]
        if name in ("--launch", "--processes"):
            if "=" not in word:
                next(words, None)
        elif word != "--dry-run":
            found.append(word)
    return found


def _say(line: str) -> None:
    click.echo(line, err=True)
