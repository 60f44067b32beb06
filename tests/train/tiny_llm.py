"""A tiny causal language model made in code, with a chat template, and samples that it can learn by heart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.evidence.generative import tiny

TEMPLATE = (
    "{% for message in messages %}<s>{{ message['role'] }}\n{{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)


def base(folder: Path, template: str = TEMPLATE, **changes: Any) -> Path:
    """Write a random Llama of two layers with its tokenizer into a folder."""
    sizes = {"hidden_size": 64, "intermediate_size": 128, "initializer_range": 0.02} | changes
    return tiny.saved(folder, "llama3", lambda count: tiny.config("llama", count, sizes), template=template)


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
