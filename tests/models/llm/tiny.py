"""Tiny random models, built in code: a few thousand weights, but the real classes, files and templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
STRICT_TEMPLATE = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + TEMPLATE


def _tokenizer(template: str = "", longest: int = 256) -> Any:
    """Return a tokenizer of bytes with the marks of a chat."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    marks = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in marks])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>", chat_template=template or None,
        model_max_length=longest,
    )  # fmt: skip


def causal(folder: Path, template: str = TEMPLATE, window: int = 256) -> Path:
    """Write a random Llama of two layers into a folder."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _tokenizer(template, window)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        config = LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=2, max_position_embeddings=window, eos_token_id=tokenizer.eos_token_id, initializer_range=0.2,
        )  # fmt: skip
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def encoder_decoder(folder: Path) -> Path:
    """Write a random T5 of two layers into a folder."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = _tokenizer(longest=128)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        config = T5Config(
            vocab_size=len(tokenizer), d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2, decoder_start_token_id=0,
            eos_token_id=tokenizer.eos_token_id, pad_token_id=0, initializer_factor=2.0,
        )  # fmt: skip
        T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
