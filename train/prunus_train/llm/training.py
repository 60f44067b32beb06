"""One training of a language model, by trl's trainers: its data, its checkpoints, its log and its product.

A checkpoint counts when it is whole: a file is written into it last, so that one that was torn by a kill is passed
over. A training that was stopped goes on with the same losses and ends with the same weights as one that was not.
"""

from __future__ import annotations

import errno
import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from prunus_train.errors import DataBroken, Stopped, TrainError
from prunus_train.interrupts import Interrupts
from prunus_train.llm import base as bases
from prunus_train.llm.measures import measure
from prunus_train.llm.presets import TrainingRecipe
from prunus_train.llm.samples import (
    ChatSample,
    EncodedSamples,
    SampleEncoder,
    digest_of,
    read_preferences,
    read_samples,
)

WHOLE = "whole"
"""Name of the empty file that a whole checkpoint has."""

LOGGED = ("loss", "grad_norm", "learning_rate", "eval_loss", "rewards/accuracies", "eval_rewards/accuracies")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_WORDS = ("No space left", "File too large", "PytorchStreamWriter failed", "unexpected pos", "Disk quota")
_MEMORY_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "Cannot allocate memory")


class OutOfMemory(TrainError):
    """The machine has no memory for this training."""


class NoSpace(TrainError):
    """The disk is full."""


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """What is trained, from what, and where.

    :param method: ``sft`` or ``dpo``.
    :param data, valid: files of samples; ``valid`` is measured during training, None for none.
    :param out, work: folder of the product; of checkpoints and log.
    :param base, template: see :mod:`prunus_train.llm.base`.
    :param lora, lora_layers: rank, 0 for all weights; how many of the last layers are adapted, 0 for all.
    :param micro: samples of a process that are in memory at the same time.
    :param steps: optimiser steps; 0: as many as the recipe's epochs have.
    :param minutes: after so many minutes of this run training ends, and the product is written; 0: no limit.
    :param every: steps between checkpoints, and between measurements of ``valid``.
    :param measured: samples of ``valid`` whose replies are measured, beside the loss; 0: none.
    """

    method: Literal["sft", "dpo"]
    data: Path
    out: Path
    work: Path
    base: str
    recipe: TrainingRecipe
    valid: Path | None = None
    template: str = ""
    lora: int = 0
    lora_layers: int = 0
    micro: int = 1
    device: str = "auto"
    bf16: bool = False
    seed: int = 0
    threads: int = 1
    steps: int = 0
    minutes: float = 0.0
    every: int = 50
    measured: int = 32


def train(job: TrainingJob, say: Callable[[str], None]) -> dict[str, Any]:
    """Train, and write the product; return what ``training.json`` of the product holds.

    :param say: called with each line of the log.
    :raises Stopped: the user interrupted the training; a checkpoint was written.
    :raises TrainError: the data, the base, the checkpoints or the machine do not allow it.
    """
    bases.check_packages()
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()  # the log has a line for each step

    torch.set_num_threads(job.threads)
    if job.device == "cuda" and not torch.cuda.is_available():
        raise DataBroken("this machine has no CUDA device; use --device cpu")
    job.work.mkdir(parents=True, exist_ok=True)
    tokenizer = bases.read_tokenizer(job.base, job.template)
    data = _Data.of(job, SampleEncoder(tokenizer, job.base))
    settings = _settings(job)
    resumed = _checked(job, settings)
    with plain_faults(job.work):
        # before the model: under ZeRO-3 they say that its weights are split while they are read
        arguments = _arguments(job)
        model = bases.read_model(job.base, tokenizer)
        _say_sizes(model, data, job, say)
        trainer = _trainer(job, arguments, model, tokenizer, data)
        if trainer.args.should_save:
            (job.work / "settings.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
            check_space(job.work, _bytes_needed(trainer.model))
        watch = _watch(job, data, trainer, tokenizer, resumed, say)
        trainer.add_callback(watch.callback)
        with Interrupts() as interrupts, warnings.catch_warnings():
            # peft looks for one beside a GGUF file at each checkpoint; the vocabulary is that of the base
            warnings.filterwarnings("ignore", "Could not find a config file")
            watch.interrupts = interrupts
            trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
        if interrupts.received and trainer.state.global_step < trainer.state.max_steps:
            raise Stopped(f"interrupted at step {trainer.state.global_step}; run the same command to go on")
        about = {**settings, "steps": trainer.state.global_step, "supervised_tokens": data.train.supervised,
                 "samples": len(data.train.rows), "left_out_long": len(data.train.long), **watch.last}  # fmt: skip
        if data.prompt:
            about["prompt"] = data.prompt
        write_product(trainer, tokenizer, job.out, about)
    return about


@dataclass(slots=True)
class _Data:
    """The tokens of the data, the samples of ``valid`` whose replies are measured, and the prompt of a pruner."""

    train: EncodedSamples
    valid: EncodedSamples | None = None
    asked: list[ChatSample] = field(default_factory=list)
    prompt: str = ""

    @classmethod
    def of(cls, job: TrainingJob, encoder: SampleEncoder) -> _Data:
        window = job.recipe.window
        if job.method == "dpo":
            pairs = read_preferences(job.data)
            valid = encoder.preferred(read_preferences(job.valid), window) if job.valid else None
            return cls(encoder.preferred(pairs, window), valid)
        given = read_samples(job.data)
        prompts = sorted({sample.prompt for sample in given if sample.prompt})
        if len(prompts) > 1:
            raise DataBroken(f"{job.data}: samples of several prompts ({', '.join(prompts)}); train with those of one")
        samples, prompt = encoder.supervised(given, window), "".join(prompts)
        if job.valid is None:
            return cls(samples, prompt=prompt)
        asked = read_samples(job.valid)
        return cls(samples, encoder.supervised(asked, window), asked[: job.measured], prompt)


def _settings(job: TrainingJob) -> dict[str, Any]:
    """Return what a resumed training must share with the one before."""
    import transformers
    import trl

    recipe = {name: value for name, value in asdict(job.recipe).items() if name != "checkpointing"}
    names = ("method", "base", "template", "lora", "lora_layers", "micro", "bf16", "seed", "steps")
    own = {name: getattr(job, name) for name in names}
    versions = {"transformers": transformers.__version__, "trl": trl.__version__}
    return {**own, "recipe": recipe, "data": digest_of(job.data), "versions": versions}


def _checked(job: TrainingJob, settings: Mapping[str, Any]) -> Path | None:
    """Return the last whole checkpoint; None where there is none.

    :raises DataBroken: the folder belongs to another training, or the product is already there.
    """
    if job.out.exists() and any(job.out.iterdir()):
        raise DataBroken(f"{job.out} is not empty; name another folder, or remove it")
    beside = job.work / "settings.json"
    if beside.exists():
        try:
            before = json.loads(beside.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataBroken(f"{beside} is damaged; remove {job.work} to start anew") from error
        other = [name for name in settings if before.get(name) != settings[name]]
        if other:
            raise DataBroken(
                f"{job.work} belongs to a training with another {', '.join(other)}; use the same, name another --work, "
                "or remove it to start anew"
            )
    found = [path for path in job.work.glob("checkpoint-*") if (path / WHOLE).exists()]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _trainer(job: TrainingJob, arguments: Any, model: Any, tokenizer: Any, data: _Data) -> Any:
    """Return trl's trainer for a job; the rows are tokens already, and are taken as they are."""
    import torch
    import trl
    from datasets import Dataset

    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    rows = Dataset.from_list(data.train.rows)
    valid = Dataset.from_list(data.valid.rows) if data.valid else None
    lora = bases.lora_of(job.lora, job.lora_layers, model)
    torch.manual_seed(job.seed)
    common: dict[str, Any] = {
        "model": model, "train_dataset": rows, "eval_dataset": valid, "processing_class": tokenizer,
        "peft_config": lora,
    }  # fmt: skip
    if job.method == "sft":
        return trl.SFTTrainer(args=arguments, **common)

    class Taken(trl.DPOTrainer):  # type: ignore[misc]  # trl is not typed
        def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
            return dataset  # trl would tokenize the texts anew, without the forms of inference

    return Taken(args=arguments, **common)


def _arguments(job: TrainingJob) -> Any:
    """Return the settings of trl's trainer for a job."""
    import torch
    import trl
    from accelerate import ParallelismConfig, PartialState

    recipe = job.recipe
    on_cpu = job.device == "cpu" or not torch.cuda.is_available()  # transformers takes bfloat16 there only if told so
    # with --launch sequence several processes share one sample: the launcher says how many
    processes = PartialState(cpu=on_cpu).num_processes // ParallelismConfig().sp_size
    constant = recipe.schedule == "constant"
    settings = {
        "output_dir": str(job.work),
        "max_length": None,
        "num_train_epochs": recipe.epochs,
        "max_steps": job.steps or -1,
        "per_device_train_batch_size": job.micro,
        "per_device_eval_batch_size": job.micro,
        "gradient_accumulation_steps": _accumulated(recipe.batch, job.micro * processes),
        "learning_rate": recipe.rate,
        "lr_scheduler_type": "constant_with_warmup" if constant else "cosine_with_min_lr",
        "lr_scheduler_kwargs": {} if constant else {"min_lr": recipe.least_rate},
        "warmup_steps": recipe.warmup,  # below 1: a share of all steps
        "optim": "adamw_torch",
        "adam_beta1": recipe.beta1,
        "adam_beta2": recipe.beta2,
        "adam_epsilon": recipe.epsilon,
        "max_grad_norm": recipe.clip,
        "weight_decay": recipe.decay,
        "bf16": job.bf16,
        _checkpointing(): recipe.checkpointing,
        "use_cpu": on_cpu,
        "save_strategy": "steps",
        "save_steps": job.every,
        "save_total_limit": 2,  # the last whole one stays while the next is written
        "eval_strategy": "steps" if job.valid else "no",
        "eval_steps": job.every,
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
        "seed": job.seed,
        "data_seed": job.seed,
        "dataloader_pin_memory": False,
    }
    if job.method == "sft":
        return trl.SFTConfig(**settings, dataset_kwargs={"skip_prepare_dataset": True})
    return trl.DPOConfig(**settings, beta=recipe.beta)


def _checkpointing() -> str:
    """Return how this version of transformers calls the recomputing of activations."""
    from transformers import TrainingArguments

    names = ("activation_checkpointing", "gradient_checkpointing")
    return next(name for name in names if name in TrainingArguments.__dataclass_fields__)


def _accumulated(batch: int, together: int) -> int:
    """Return the steps whose gradients are added up for a batch.

    :param together: samples of one step, of all processes.
    :raises DataBroken: they make no such batch.
    """
    if batch % together:
        raise DataBroken(f"--batch {batch} is no multiple of the {together} samples that all processes take in a step")
    return batch // together


@dataclass(slots=True)
class _Watch:
    """The log of a training, and the measurements between its steps.

    :param last: the last measurement.
    """

    callback: Any = None
    interrupts: Interrupts | None = None
    last: dict[str, Any] = field(default_factory=dict)


def _watch(
    job: TrainingJob, data: _Data, trainer: Any, tokenizer: Any, resumed: Path | None, say: Callable[[str], None]
) -> _Watch:
    """Return what writes the log, marks whole checkpoints, measures replies and ends a training on a signal."""
    from transformers import PrinterCallback, TrainerCallback

    watch, log, started = _Watch(), job.work / "log.jsonl", time.monotonic()
    trainer.remove_callback(PrinterCallback)
    _cut_log(log, int(resumed.name.rpartition("-")[2]) if resumed else 0)

    def note(line: dict[str, Any]) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        say(json.dumps(line))

    class Callback(TrainerCallback):  # type: ignore[misc]  # transformers is not typed
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            kept = {name: logs[name] for name in LOGGED if name in (logs or {})}
            if kept and state.is_world_process_zero:
                note({"step": state.global_step, "of": state.max_steps, **kept})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            over = job.minutes and time.monotonic() - started > 60 * job.minutes
            if over or (watch.interrupts is not None and watch.interrupts.received):
                control.should_save = control.should_training_stop = True

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if args.should_save:
                (job.work / f"checkpoint-{state.global_step}" / WHOLE).touch()

        def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
            watch.last = {"valid_loss": (metrics or {}).get("eval_loss")}
            if data.asked and not trainer.is_deepspeed_enabled:
                found = measure(trainer.accelerator.unwrap_model(trainer.model), tokenizer, data.asked)
                watch.last |= found
                note({"step": state.global_step, **found})

    watch.callback = Callback()
    return watch


def _cut_log(path: Path, step: int) -> None:
    """Drop lines of a log behind the step from which a training goes on: they will be written again."""
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
    path.write_text("".join(kept), encoding="utf-8")


def _say_sizes(model: Any, data: _Data, job: TrainingJob, say: Callable[[str], None]) -> None:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    counted = f"{len(data.train.rows)} samples, {data.train.supervised} supervised tokens"
    line = f"{parameters / 1e6:.1f} M parameters, {counted}"
    if data.train.long:
        line += f"; {len(data.train.long)} samples over the window of {job.recipe.window} tokens are left out"
    say(line)


def _bytes_needed(model: Any) -> int:
    """Return the bytes of two checkpoints with Adam's two moments, and of the product."""
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return int(2 * 12 * trained + 4 * sum(parameter.numel() for parameter in model.parameters()))


def write_product(trainer: Any, tokenizer: Any, out: Path, about: Mapping[str, Any]) -> None:
    """Write a trained model as a folder that the engines of Prunus load: whole, or not at all. LoRA is merged."""
    part = out.with_name(f"{out.name}.part")
    if trainer.args.should_save:
        shutil.rmtree(part, ignore_errors=True)
    model = trainer.accelerator.unwrap_model(trainer.model)
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
        model.config.use_cache = True
        model.save_pretrained(str(part))
    else:
        model.config.use_cache = True
        trainer.save_model(str(part))  # every process takes part where the weights are split
    if not trainer.args.should_save:
        return
    tokenizer.save_pretrained(str(part))
    (part / "training_args.bin").unlink(missing_ok=True)  # a pickle, which nothing needs
    (part / "training.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    if out.exists():
        out.rmdir()  # it is empty: that was looked at before
    part.replace(out)


@contextmanager
def plain_faults(work: Path) -> Iterator[None]:
    """Turn faults of the machine into errors of one line.

    :param work: folder of the checkpoints, which stay.
    :raises OutOfMemory: with advice.
    :raises NoSpace: a file could not be written.
    """
    try:
        yield
    except TrainError:
        raise
    except Exception as error:
        chain = list(_chain(error))
        kept = f"checkpoints in {work} are kept; run the same command to go on"
        if any(isinstance(one, MemoryError) or _says(one, _MEMORY_WORDS) for one in chain):
            raise OutOfMemory(
                "out of memory: give --checkpointing, a smaller --window (longer samples are left out) or --lora 16; "
                f"checkpoints in {work} are kept, and go on after a change of --checkpointing alone"
            ) from error
        if any((isinstance(one, OSError) and one.errno in _FULL) or _says(one, _FULL_WORDS) for one in chain):
            raise NoSpace(f"no space left to write in {work}: free some; {kept}") from error
        raise


def check_space(folder: Path, needed: int) -> None:
    """Look whether a disk has room for the checkpoints, before hours of work.

    :param needed: bytes.
    :raises NoSpace: it has not.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NoSpace(
            f"{folder} has {free / 1e9:.1f} GB free, and two checkpoints and the model need about {needed / 1e9:.1f}: "
            "free some, name another folder by --work, or train by LoRA (--lora 16)"
        )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    return (isinstance(error, RuntimeError | OSError | ValueError) and any(word in str(error) for word in words)) or (
        type(error).__name__ == "SafetensorError" and any(word in str(error) for word in words)
    )
