"""A tiny causal language model made in code, with a chat template, and samples that it can learn by heart."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests.evidence.generative import tiny

TEMPLATE = (
    "{% for message in messages %}<s>{{ message['role'] }}\n{{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)


@cache
def tokenizer(template: str = TEMPLATE) -> Any:
    """Train a tokenizer on the prompts of Prunus, which are short for it, so that training on them is quick."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    prompts = [
        file.read_text("utf-8") for file in files("prunus.models.prompts").iterdir() if file.name.endswith("txt")
    ]
    trainer = trainers.BpeTrainer(
        vocab_size=1600, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )  # fmt: skip
    made.train_from_iterator([*prompts * 3, *tiny.corpus()], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>", chat_template=template or None
    )


def base(folder: Path, template: str = TEMPLATE, **changes: Any) -> Path:
    """Write a random Llama of two layers with its tokenizer into a folder."""
    sizes = {"hidden_size": 64, "intermediate_size": 128, "initializer_range": 0.02} | changes
    made = tokenizer(template)
    tiny.model(tiny.config("llama", len(made), sizes), "float32").save_pretrained(folder)
    made.save_pretrained(folder)
    return folder


def chats(path: Path, count: int = 4, kind: str = "chat") -> Path:
    """Write samples whose replies depend on the question alone."""
    rows = [
        {
            "id": f"s{number}",
            "kind": kind,
            "messages": [{"role": "user", "content": f"question {number * 37}"}],
            "target": f"the answer {number * 11}",
        }
        for number in range(count)
    ]
    return lines(path, rows)


def pairs(path: Path, count: int = 4) -> Path:
    """Write preferences: one reply is always the better one."""
    rows = [
        {
            "id": f"p{number}",
            "messages": [{"role": "user", "content": f"question {number * 37}"}],
            "chosen": "<TAG-1>",
            "rejected": "<TAG-2>",
        }
        for number in range(count)
    ]
    return lines(path, rows)


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def log(work: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (work / "log.jsonl").read_text(encoding="utf-8").splitlines()]
