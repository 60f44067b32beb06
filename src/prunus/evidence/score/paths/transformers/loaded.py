"""A causal language model and its tokenizer, loaded from a folder. Safetensors alone; no code of the folder is run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .....core.errors import BadInput, MissingExtra
from .....core.types import Message
from .....models.model_folder import WEIGHTS, hub_folder

_UNLIMITED: Final = 10_000_000
"""Tokenizers without a limit state a length beyond any model's."""

_FIXED: Final = {"date_string": "26 Jul 2024", "enable_thinking": False}
"""What some templates ask for: Llama-3's writes today's date otherwise, and the scores would change overnight
(this date is its own default); Qwen3's would have the model think before the path. Others take no notice."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with its tokenizer.

    :param forged: texts that the tokenizer reads as marks of its own wherever they stand.
    :param name: for messages.
    """

    model: Any
    tokenizer: Any
    forged: re.Pattern[str]
    name: str

    @property
    def window(self) -> int:
        """Tokens that the model reads; 0 where it states no limit."""
        config = self.model.config.get_text_config(decoder=True)
        stated = [getattr(config, name, 0) for name in ("max_position_embeddings", "n_positions")]
        stated.append(self.tokenizer.model_max_length)
        return min((int(size) for size in stated if size and 0 < size < _UNLIMITED), default=0)

    @property
    def stop(self) -> int:
        """The token that ends a text; -1 for none."""
        found = self.tokenizer.eos_token_id
        return int(found) if found is not None else -1

    def harmless(self, text: str) -> str:
        """Return a text in which nothing is read as a mark between turns, and all of which can be encoded."""
        text = text.encode("utf-8", "replace").decode("utf-8")
        return self.forged.sub(lambda found: f"{found.group()[0]} {found.group()[1:]}", text)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text alone, without special tokens."""
        if not texts:
            return []
        given = [self.harmless(text) for text in texts]
        return [
            [int(one) for one in ids]
            for ids in self.tokenizer(given, add_special_tokens=False, verbose=False)["input_ids"]
        ]

    def decode(self, tokens: Sequence[int]) -> list[str]:
        """Return the text of each token alone, as it can be shown; half a letter shows as a question mark."""
        return [str(self.tokenizer.decode([token])) for token in tokens]

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a conversation that the model is to answer, by its own chat template."""
        turns = [{"role": one.role, "content": self.harmless(one.content)} for one in messages]
        if self.tokenizer.chat_template:
            write = self.tokenizer.apply_chat_template
            text = str(write(turns, tokenize=False, add_generation_prompt=True, **_FIXED))
            return [int(one) for one in self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]]
        text = "\n\n".join(turn["content"] for turn in turns) + "\n"
        ids = [int(one) for one in self.tokenizer(text, verbose=False)["input_ids"]]
        return ids[:-1] if ids and ids[-1] == self.stop else ids  # some tokenizers end every text


def load(model: str, device: str, dtype: str) -> Loaded:
    """Load a model.

    :param model: a folder with ``config.json``, a tokenizer and safetensors, or the hub id of one in the local cache.
    :param device: ``auto`` takes CUDA where there is one.
    :param dtype: ``auto`` is what the weights are in; or ``float32``, ``bfloat16`` and so on.
    :raises MissingExtra: torch or transformers is not installed.
    :raises BadInput: no such folder, or it holds no causal model.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra(
            "generative: transformers and torch are not installed; run: pip install 'prunus[transformers]'",
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
        made, tokenizer = _read(transformers, folder, wanted)
        where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        made = made.to(where).eval()
    except BadInput:
        raise
    except Exception as error:  # configuration, tokenizer and weights are read by libraries with errors of their own
        said = " ".join(str(error).split())[:200]
        raise BadInput(f"generative:{model}: cannot be loaded ({said})", subject=model) from error
    return Loaded(made, tokenizer, forged_marks(tokenizer), Path(model).name)


def forged_marks(tokenizer: Any) -> re.Pattern[str]:
    """Return what matches every text that a tokenizer would read as a special token."""
    marks = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    longest_first = sorted((mark for mark in marks if len(mark) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) if longest_first else r"(?!)")


def _read(transformers: Any, folder: Path, dtype: Any) -> tuple[Any, Any]:
    """Read (model, tokenizer) from a folder."""
    given = {"local_files_only": True, "trust_remote_code": False}
    config = transformers.AutoConfig.from_pretrained(folder, **given)
    if config.is_encoder_decoder:
        raise BadInput(f"generative:{folder}: an encoder and decoder; paths need a causal model", subject=str(folder))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **given)
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        kind = transformers.AutoModelForCausalLM
        try:
            model = kind.from_pretrained(
                folder, use_safetensors=True, dtype=dtype, attn_implementation="sdpa", config=config, **given
            )
        except ValueError as error:
            if "sdpa" not in str(error) and "scaled_dot_product" not in str(error):
                raise
            model = kind.from_pretrained(
                folder, use_safetensors=True, dtype=dtype, attn_implementation="eager", config=config, **given
            )
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()
    return model, tokenizer
