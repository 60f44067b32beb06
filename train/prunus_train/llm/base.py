"""The model that training starts from: a folder or a GGUF file, its tokenizer, its chat template, and LoRA."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prunus.core.installation import pip_install_folder
from prunus_train.errors import DataBroken, TrainError

NEEDED = ("torch", "transformers", "trl", "peft", "accelerate")


def check_packages(*more: str) -> None:
    """Look whether what training needs is installed.

    :raises TrainError: something is missing; the message names the pip line.
    """
    missing = [name for name in (*NEEDED, *more) if find_spec(name) is None]
    if missing:
        command = "pip install deepspeed" if missing == ["deepspeed"] else pip_install_folder("train")
        raise TrainError(f"{', '.join(missing)}: not installed; run: {command}")


def read_tokenizer(base: str, template: str = "") -> Any:
    """Return the tokenizer of a base.

    :param template: file of a chat template, or ``none`` to train without one; '' takes the tokenizer's own.
    :raises DataBroken: there is none that can be read, or it has no chat template.
    """
    import transformers

    place, more = _place(base)
    try:
        with _quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                place, local_files_only=True, trust_remote_code=False, **more
            )
    except Exception as error:  # the libraries that read tokenizers share no error class
        raise DataBroken(f"--base {base}: no tokenizer can be read ({_reason(error)})") from error
    if template == "none":
        tokenizer.chat_template = None
    elif template:
        try:
            tokenizer.chat_template = Path(template).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataBroken(f"--template {template} cannot be read ({_reason(error)})") from error
    elif not tokenizer.chat_template:
        raise DataBroken(
            f"--base {base}: the tokenizer has no chat template; name a file by --template FILE, or train without one "
            "by --template none"
        )
    return tokenizer


def read_model(base: str, tokenizer: Any, dtype: str = "float32") -> Any:
    """Return the causal model of a base, with a vector for each token of the tokenizer.

    :raises DataBroken: it cannot be read, or the tokenizer has tokens that the model does not know.
    """
    import torch
    import transformers

    place, more = _place(base)
    try:
        with _quiet():
            model = transformers.AutoModelForCausalLM.from_pretrained(
                place, local_files_only=True, trust_remote_code=False, dtype=getattr(torch, dtype), **more
            )
            if more:
                model = _plain(model)
    except Exception as error:  # the libraries that read weights share no error class
        raise DataBroken(f"--base {base}: no causal model can be read ({_reason(error)})") from error
    known = model.get_input_embeddings().weight.shape[0]  # 0 where ZeRO-3 has split it
    if known and len(tokenizer) > known:
        raise DataBroken(
            f"--base {base}: the tokenizer has {len(tokenizer)} tokens, and the model vectors for {known}; "
            "give the tokenizer that belongs to the model"
        )
    model.config.use_cache = False
    return model


def lora_of(rank: int, layers: int, model: Any) -> Any:
    """Return the LoRA configuration for ``peft``; None for a full training.

    :param rank: 0 for a full training.
    :param layers: how many of the last layers are adapted; 0 for all.
    """
    if not rank:
        return None
    import peft
    from torch.nn import Linear

    total = model.config.get_text_config().num_hidden_layers
    last = list(range(total - min(layers, total), total)) if layers else None
    head = model.get_output_embeddings()
    linear = [name for name, part in model.named_modules() if isinstance(part, Linear) and part is not head]
    named = {name.rpartition(".")[2] for name in linear}
    return peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules=sorted(named), layers_to_transform=last,
        task_type="CAUSAL_LM",
    )  # fmt: skip


def _place(base: str) -> tuple[str, dict[str, str]]:
    """Return a base as transformers names it: a folder, or a folder and a GGUF file in it.

    :raises DataBroken: there is no such folder or file.
    """
    path = Path(base).expanduser()
    if path.suffix == ".gguf" and path.is_file():
        if find_spec("gguf") is None:
            raise TrainError(f"gguf: not installed; run: {pip_install_folder('train')}")
        return str(path.parent), {"gguf_file": path.name}
    if not (path / "config.json").is_file():
        raise DataBroken(f"--base {base}: give a folder with config.json, a tokenizer and safetensors, or a .gguf file")
    return str(path), {}


def _plain(model: Any) -> Any:
    """Return a model that was read from GGUF as one of plain weights, which can be trained and saved."""
    import torch

    config = model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.random.fork_rng():
        made = type(model)._from_config(config, dtype=model.dtype)
    made.load_state_dict(model.state_dict())
    made.tie_weights()
    return made


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


class _quiet:
    """Switch the progress bars and warnings of transformers off inside a ``with`` block."""

    def __enter__(self) -> None:
        import transformers

        logging = transformers.utils.logging
        self._before = (logging.is_progress_bar_enabled(), logging.get_verbosity())
        logging.disable_progress_bar()
        logging.set_verbosity_error()

    def __exit__(self, *_: object) -> None:
        import transformers

        logging = transformers.utils.logging
        if self._before[0]:
            logging.enable_progress_bar()
        logging.set_verbosity(self._before[1])
