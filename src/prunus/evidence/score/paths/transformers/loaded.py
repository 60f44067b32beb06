"""Load a causal language model and its tokenizer from a folder: safetensors only, and no code of the folder is run."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .....core.errors import BadInput, MissingExtra
from .....core.installation import pip_install
from .....core.types import Message
from .....models.chat_prompt import forged_marks, without_marks
from .....models.model_folder import WEIGHTS, hub_folder

_UNLIMITED: Final = 10_000_000
"""A tokenizer without a limit states a length above this, which no model has."""

_FIXED: Final = {"date_string": "26 Jul 2024", "enable_thinking": False}
"""Variables of chat templates. Llama-3's template would write today's date, so that scores would change overnight;
this date is its default. Qwen3's template would let the model think before the path. Other templates ignore both."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with its tokenizer.

    :param forged: matches the texts that the tokenizer reads as special tokens anywhere.
    :param name: name of the model, for messages.
    """

    model: Any
    tokenizer: Any
    forged: re.Pattern[str]
    name: str

    @property
    def window(self) -> int:
        """The model's context window in tokens; 0 where it states no limit."""
        config = self.model.config.get_text_config(decoder=True)
        stated = [getattr(config, name, 0) for name in ("max_position_embeddings", "n_positions")]
        stated.append(self.tokenizer.model_max_length)
        return min((int(size) for size in stated if size and 0 < size < _UNLIMITED), default=0)

    @property
    def stop(self) -> int:
        """The token that ends a text; -1 for none."""
        token = self.tokenizer.eos_token_id
        return int(token) if token is not None else -1

    def harmless(self, text: str) -> str:
        """Return the text with a space inside each forged special token, and without lone surrogates."""
        return without_marks(text, self.forged)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text alone, without special tokens."""
        if not texts:
            return []
        safe = [self.harmless(text) for text in texts]
        rows = self.tokenizer(safe, add_special_tokens=False, verbose=False)["input_ids"]
        return [[int(token) for token in row] for row in rows]

    def decode(self, tokens: Sequence[int]) -> list[str]:
        """Return the text of each token alone, for display; half a letter becomes a replacement character."""
        return [str(self.tokenizer.decode([token])) for token in tokens]

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a conversation by the model's chat template, up to the beginning of the reply."""
        turns = [{"role": message.role, "content": self.harmless(message.content)} for message in messages]
        if self.tokenizer.chat_template:
            write = self.tokenizer.apply_chat_template
            text = str(write(turns, tokenize=False, add_generation_prompt=True, **_FIXED))
            return [int(token) for token in self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]]
        text = "\n\n".join(turn["content"] for turn in turns) + "\n"
        ids = [int(token) for token in self.tokenizer(text, verbose=False)["input_ids"]]
        return ids[:-1] if ids and ids[-1] == self.stop else ids  # some tokenizers append the stop token to every text


def trained_prompt(model: str) -> str:
    """Return the prompt that ``training.json`` in the folder of a model names; '' without one."""
    try:
        noted = json.loads((Path(model).expanduser() / "training.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    prompt = noted.get("prompt", "") if isinstance(noted, dict) else ""
    return prompt if isinstance(prompt, str) else ""


def load(model: str, device: str, dtype: str) -> Loaded:
    """Load a model.

    :param model: a folder with ``config.json``, a tokenizer and safetensors, or a hub id in the local cache.
    :param device: torch's name of a device; ``auto`` takes CUDA if present.
    :param dtype: ``auto`` is the type of the saved weights; or ``float32``, ``bfloat16`` and so on.
    :raises MissingExtra: torch or transformers is not installed.
    :raises BadInput: there is no such folder, or it holds no causal model.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra(
            f"generative: transformers and torch are not installed; run: {pip_install('transformers')}",
            subject="transformers",
        ) from error
    folder = Path(model).expanduser()
    if not folder.is_dir():
        folder = hub_folder(model, WEIGHTS, download=False)
    if not (folder / "config.json").is_file():
        raise BadInput(f"generative:{model}: no config.json there; give a folder with a causal model", subject=model)
    wanted = dtype if dtype == "auto" else getattr(torch, dtype, None)
    if wanted is None:
        raise BadInput(f"path_options: there is no dtype {dtype!r}; auto, float32, bfloat16, float16", subject=dtype)
    try:
        network, tokenizer = _read(transformers, folder, wanted)
        where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        network = network.to(where).eval()
    except BadInput:
        raise
    except Exception as error:  # the libraries that read configuration, tokenizer and weights share no error class
        reason = " ".join(str(error).split())[:200]
        raise BadInput(f"generative:{model}: cannot be loaded ({reason})", subject=model) from error
    return Loaded(network, tokenizer, forged_marks(tokenizer), Path(model).name)


def _read(transformers: Any, folder: Path, dtype: Any) -> tuple[Any, Any]:
    """Read (model, tokenizer) from a folder."""
    safely = {"local_files_only": True, "trust_remote_code": False}
    config = transformers.AutoConfig.from_pretrained(folder, **safely)
    if config.is_encoder_decoder:
        raise BadInput(f"generative:{folder}: is an encoder-decoder model; give a causal model", subject=str(folder))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **safely)
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        kind = transformers.AutoModelForCausalLM
        try:
            model = kind.from_pretrained(
                folder, use_safetensors=True, dtype=dtype, attn_implementation="sdpa", config=config, **safely
            )
        except ValueError as error:
            if "sdpa" not in str(error) and "scaled_dot_product" not in str(error):
                raise
            model = kind.from_pretrained(
                folder, use_safetensors=True, dtype=dtype, attn_implementation="eager", config=config, **safely
            )
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()
    return model, tokenizer
