"""Training on several GPUs: files for accelerate's launcher, and the command that starts it.

``zero3`` splits weights, gradients and Adam's moments over the GPUs (DeepSpeed ZeRO 3). ``sequence`` splits each sample
over them, too (DeepSpeed's Ulysses), as HtmlRAG does over 8 for its window of 35,000 tokens.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prunus_train.errors import DataBroken

KNOWN = ("zero3", "sequence")


def deepspeed_file() -> dict[str, Any]:
    """Return DeepSpeed's configuration; ``auto`` takes the value of the recipe."""
    return {
        "zero_optimization": {
            "stage": 3,
            "overlap_comm": True,
            "contiguous_gradients": True,
            "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "stage3_gather_16bit_weights_on_model_save": True,
        },
        "bf16": {"enabled": "auto"},
        "gradient_clipping": "auto",
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "wall_clock_breakdown": False,
    }


def accelerate_file(kind: str, processes: int, deepspeed: Path) -> dict[str, Any]:
    """Return the configuration of accelerate's launcher.

    :param kind: one of :data:`KNOWN`.
    :param processes: GPUs; with ``sequence`` each sample is split over all of them.
    :param deepspeed: the file of DeepSpeed's configuration.
    """
    found: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "DEEPSPEED",
        "deepspeed_config": {"deepspeed_config_file": str(deepspeed), "zero3_init_flag": True},
        "machine_rank": 0,
        "main_training_function": "main",
        "num_machines": 1,
        "num_processes": processes,
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": False,
    }
    if kind == "sequence":
        found["parallelism_config"] = {
            "parallelism_config_sp_size": processes,
            "parallelism_config_sp_backend": "deepspeed",
            "parallelism_config_sp_seq_length_is_variable": True,
            "parallelism_config_sp_attn_implementation": "sdpa",
        }
    return found


def config_of(launch: str, folder: Path, processes: int) -> Path:
    """Write the files of a launch into a folder, and return the one for accelerate; a file of your own is taken as is.

    :raises DataBroken: it is neither a known name nor a file, or there are too few processes.
    """
    if launch not in KNOWN:
        if not Path(launch).is_file():
            raise DataBroken(f"--launch {launch}: give zero3, sequence or a file of `accelerate config`")
        return Path(launch)
    if processes < 2:
        raise DataBroken(f"--launch {launch}: splits a training over several GPUs; give --processes 2 or more")
    folder.mkdir(parents=True, exist_ok=True)
    deepspeed, file = folder / "deepspeed.json", folder / f"{launch}.yaml"
    deepspeed.write_text(json.dumps(deepspeed_file(), indent=1) + "\n", encoding="utf-8")
    # JSON is YAML: no second library is needed to write it
    file.write_text(json.dumps(accelerate_file(launch, processes, deepspeed.resolve()), indent=1) + "\n", "utf-8")
    return file


def command_of(config: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command that trains by accelerate's launcher.

    :param arguments: of ``prunus train``, without ``--launch``.
    """
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(config)]
    return [*launcher, "-m", "prunus_train", *arguments]
