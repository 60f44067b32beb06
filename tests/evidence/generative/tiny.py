"""Tokenizers in the four styles that language models use, trained on tags; and tiny random models of published shapes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

TAGS = ("html", "body", "div", "p", "ul", "li", "table", "tbody", "tr", "td", "section", "article", "text", "h2")
STYLES = ("spm", "gpt2", "llama3", "qwen2")
FAMILIES = ("llama", "phi3", "qwen2", "mistral", "gemma2")
WINDOW = 24
"""The sliding window of the models that have one: far below the prompts of the tests."""

SPLITS = {
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
}


def corpus() -> list[str]:
    """Return texts in which tags are frequent enough to become tokens, alone and against their neighbours."""
    lines = []
    for number in range(60):
        tags = [TAGS[(number * step + step) % len(TAGS)] for step in range(1, 7)]
        lines.append("<html><body>" + "".join(f"<{tag}{number % 13 or ''}>" for tag in tags) + "Some words of a page")
        lines.append("The question: which block answers it? " + "".join(f"</{tag}>" for tag in tags))
    return lines


@cache
def tokenizer(style: str, template: str = "", longest: int = 100_000) -> Any:
    """Train a tokenizer of a style; it can write any text."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    marks = ["<unk>", "<s>", "</s>"]
    if style == "spm":
        made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
        alphabet = [chr(one) for one in range(33, 127)] + ["\u2581"]
        letters = [f"<0x{one:02X}>" for one in range(256)]
    else:
        made = Tokenizer(models.BPE())
        if style == "gpt2":
            made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        else:
            made.pre_tokenizer = pre_tokenizers.Sequence([
                pre_tokenizers.Split(Regex(SPLITS[style]), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ])  # fmt: skip
        if style == "qwen2":
            made.normalizer = normalizers.NFC()
        made.decoder = decoders.ByteLevel()
        alphabet, letters = sorted(pre_tokenizers.ByteLevel.alphabet()), []
    made.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(
            vocab_size=700, special_tokens=[*marks, *letters], initial_alphabet=alphabet, show_progress=False,
            max_token_length=12,
        ),
    )  # fmt: skip
    return PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>", model_max_length=longest,
        chat_template=template or None,
    )  # fmt: skip


def config(family: str, vocabulary: int, changes: Mapping[str, Any] | None = None) -> Any:
    """Return a configuration of a family with its structural flags, in tiny widths."""
    import transformers

    given: dict[str, Any] = {
        "vocab_size": vocabulary, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 4096, "initializer_range": 0.3,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    if family == "html-pruner-llama-1b":  # Llama-3.2-1B: tied, grouped queries, llama3 rope, 128k
        given |= {"num_key_value_heads": 1, "max_position_embeddings": 131_072, "tie_word_embeddings": True}
        given["rope_parameters"] = {
            "rope_type": "llama3", "rope_theta": 500_000.0, "factor": 32.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
        }  # fmt: skip
        return transformers.LlamaConfig(**given | dict(changes or {}))
    if family == "html-pruner-phi-3.8b":  # Phi-3.5-mini: not tied, as many keys as queries, longrope, 128k, a window
        given |= {"num_key_value_heads": 4, "max_position_embeddings": 131_072, "sliding_window": 262_144}
        given |= {"original_max_position_embeddings": 4096, "rope_parameters": longrope(4096)}
        return transformers.Phi3Config(**given | dict(changes or {}))
    if family == "mistral":
        given["sliding_window"] = WINDOW
    if family == "gemma2":
        given |= {"sliding_window": WINDOW, "head_dim": 8, "query_pre_attn_scalar": 8, "final_logit_softcapping": 5.0}
    name = {"llama": "Llama", "phi3": "Phi3", "qwen2": "Qwen2", "mistral": "Mistral", "gemma2": "Gemma2"}[family]
    return getattr(transformers, f"{name}Config")(**given | dict(changes or {}))


def longrope(original: int) -> dict[str, Any]:
    """Return longrope parameters for heads of width 8, with factors that differ much."""
    return {
        "rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": original,
        "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 4.0, 9.0, 20.0],
    }  # fmt: skip


def model(config: Any, dtype: str = "float64", attention: str = "sdpa", seed: int = 3) -> Any:
    """Make a random model of a configuration."""
    import torch
    import transformers

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    return made.to(getattr(torch, dtype)).eval()


def saved(folder: Path, style: str, config_of: Any, **more: Any) -> Path:
    """Write a random model and its tokenizer into a folder."""
    made = tokenizer(style, **more)
    model(config_of(len(made)), "float32").save_pretrained(folder)
    made.save_pretrained(folder)
    return folder
