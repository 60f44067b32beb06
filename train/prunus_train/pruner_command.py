"""The command that trains the generative pruner: ``prunus train pruner``, or this module without Prunus installed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from prunus_train import packed
from prunus_train.errors import DataBroken, Stopped, TrainError
from prunus_train.presets import PRESETS, Hyper, Shape

EXAMPLES = """examples:
  a quick trial without a GPU:
    prunus train pruner data/ -o model/ --preset nano --minutes 10
  train a small model on a GPU:
    prunus train pruner data/ -o model/ --preset tiny --device cuda --bf16 --minutes 8
  fine-tune a published model, with the paper's hyper-parameters:
    prunus train pruner data/ -o model/ --preset paper --base /models/Phi-3.5-mini-instruct --device cuda

DATA is a folder with train-*.xz, valid.xz, tokenizer files and vectors.safetensors, as `prunus train pack`
writes it. Ctrl-C saves a checkpoint; run the same command again to resume. Without Prunus, write
`python -m prunus_train.pruner_command` instead of `prunus train pruner`."""


def parser() -> argparse.ArgumentParser:
    """Return the parser; every field of :class:`Shape` and :class:`Hyper` is an option."""
    found = argparse.ArgumentParser(
        prog="prunus train pruner",
        description="Train the generative pruner on packed samples (HtmlRAG, section 3.4.2 and Appendix B).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("data", type=Path, help="folder of packed samples")
    found.add_argument("-o", "--out", type=Path, required=True, help="folder for the model")
    found.add_argument("--work", type=Path, help="folder for checkpoint and log (default: OUT.work)")
    found.add_argument("--preset", choices=sorted(PRESETS), default="tiny", help="default: %(default)s")
    found.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: %(default)s")
    found.add_argument("--bf16", action="store_true", help="compute in bfloat16, keep weights in float32")
    found.add_argument("--minutes", type=float, default=0.0, help="length of the training; 0: train for --epochs")
    found.add_argument("--every", type=float, default=60.0, help="seconds between checkpoints (%(default)s)")
    found.add_argument("--seed", type=int, default=0)
    found.add_argument("--threads", type=int, default=1, help="threads of the processor (%(default)s)")
    found.add_argument("--shards", default="train-*.xz", help="files of samples to train on (%(default)s)")
    for group, kind in (("shape", Shape), ("hyper", Hyper)):
        options = found.add_argument_group(group, "default: that of the preset")
        for field in fields(kind):
            option = f"--{field.name.replace('_', '-')}"
            options.add_argument(option, type=_reader(str(field.type)), help=argparse.SUPPRESS)
    return found


def _reader(kind: str) -> Any:
    return {"int": int, "float": float, "str": str, "bool": lambda text: text.lower() in ("1", "true", "yes")}[kind]


def run(arguments: list[str] | None = None) -> None:
    """Train and write the model; an error is one line and exit code 2, an interruption 130."""
    options = parser().parse_args(arguments)
    try:
        _run(options)
    except Stopped as stopped:
        print(stopped, file=sys.stderr)  # noqa: T201
        raise SystemExit(130) from stopped
    except TrainError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from error


def _changed(preset: Any, options: argparse.Namespace) -> Any:
    """Return a preset with the values that the command line sets."""
    values = {field.name: getattr(options, field.name) for field in fields(preset)}
    return replace(preset, **{name: value for name, value in values.items() if value is not None})


def _run(options: argparse.Namespace) -> None:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from safetensors.numpy import load_file

    from prunus_train import model as models
    from prunus_train import pruner

    if options.device == "cuda" and not torch.cuda.is_available():
        raise DataBroken("this machine has no CUDA device; use --device cpu")
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    shape, hyper = (_changed(preset, options) for preset in PRESETS[options.preset])
    files = sorted(options.data.glob(options.shards))
    if not files:
        raise DataBroken(f"{options.data} holds no {options.shards}; `prunus train pack` writes them")
    data = packed.joined([packed.read(path) for path in files])
    valid = options.data / "valid.xz"
    validation = packed.read(valid) if valid.exists() else None
    vocabulary = {} if shape.base else _vocabulary(options.data / "tokenizer.json")
    for samples in (data, validation):
        if samples is not None and vocabulary:
            mark_tokens(samples, vocabulary)
    vectors = load_file(str(options.data / "vectors.safetensors"))["vectors"] if not shape.base else None
    special = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}
    work = options.work or options.out.with_name(f"{options.out.name}.work")
    settings = {"files": [path.name for path in files], "minutes": options.minutes}
    about = pruner.Run(
        shape, hyper, work, options.device, options.bf16, options.seed, options.minutes, options.every, settings
    )
    built = models.build(shape, vectors, special, hyper, vocabulary)
    count = sum(parameter.numel() for parameter in built.parameters())
    sizes = f"{len(data)} page parts, {len(data.kind)} questions, {len(data.pages)} tokens"
    _say(f"{count / 1e6:.1f} M parameters, {sizes}")
    pruner.train(about, built, data, validation, _say)
    options.out.mkdir(parents=True, exist_ok=True)
    pruner.finish(built, options.out)
    for path in [*options.data.glob("tokenizer*.json"), work / "log.jsonl"]:
        shutil.copy(path, options.out / path.name)
    _say(f"wrote {options.out}")


COMMON = 3500
"""Ids below this are the tokens that the tokenizer learned first: signs, tags, endings, the commonest words."""


def _vocabulary(path: Path) -> dict[str, int]:
    if not path.exists():
        raise DataBroken(f"{path} is missing; `prunus train pack` writes it")
    found: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    return found


def mark_tokens(data: packed.Packed, vocabulary: dict[str, int]) -> None:
    """Set which tokens are tags, names of tags (as ``<div``) and rarer words."""
    data.tags, data.names = (np.zeros(max(vocabulary.values()) + 1, np.bool_) for _ in range(2))
    tags = {token: place for token, place in vocabulary.items() if token[0] == "<" and len(token) > 1}
    data.tags[list(tags.values())] = True
    data.names[[place for token, place in tags.items() if token[-1] != ">"]] = True
    plain = [place for token, place in vocabulary.items() if place >= COMMON and token.removeprefix("##").isalpha()]
    data.words = np.array(sorted(plain), np.int64)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    run()
