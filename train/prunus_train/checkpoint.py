"""Checkpoints, from which training resumes; written whole or not at all, as safetensors without pickle."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prunus_train.errors import DataBroken

FILE = "checkpoint.safetensors"


@dataclass(slots=True)
class Place:
    """The progress of a training.

    :param step: number of optimiser steps done.
    :param epoch, batch: the next micro-batch.
    :param seconds: training time so far, over all runs.
    :param best: the lowest validation loss so far; -1 before the first validation.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    best: float = -1.0


def save(folder: Path, model: Any, optimizer: Any, place: Place, settings: dict[str, Any]) -> None:
    """Write the weights, the optimiser's state, the progress and the settings into one file of the folder."""
    from safetensors.torch import save_file

    tensors = {f"model.{name}": value for name, value in model.state_dict().items() if name != "lm_head.weight"}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
    tensors = {name: value.detach().contiguous().cpu() for name, value in tensors.items()}
    part = folder / f"{FILE}.part"
    save_file(tensors, str(part), {"place": json.dumps(asdict(place)), "settings": json.dumps(settings)})
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(folder / FILE)


def load(folder: Path, model: Any, optimizer: Any, settings: dict[str, Any]) -> Place | None:
    """Load a checkpoint into model and optimiser and return its progress; None where there is no checkpoint.

    :raises DataBroken: the file is damaged, or belongs to a training with other settings.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / FILE
    if not path.exists():
        return None
    try:
        with safe_open(str(path), "pt") as file:
            about = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is not a mapping
    except (SafetensorError, OSError) as error:
        raise DataBroken(f"{path} is not a checkpoint ({error}); remove it to start anew") from error
    if json.loads(about["settings"]) != settings:
        raise DataBroken(f"{path} belongs to a training with other settings; use them, or remove it to start anew")
    weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    model.load_state_dict(weights, strict=False)  # `save` leaves out the output head, which shares the tokens' vectors
    states: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            states.setdefault(int(number), {})[key] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})
    return Place(**json.loads(about["place"]))
