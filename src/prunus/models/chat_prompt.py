"""The tokens of a conversation as a model of ``transformers`` reads it: its chat template, and no forged special token.

Inference and training call the same functions, so that a model is taught exactly what it will be asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..core.types import Message


def forged_marks(tokenizer: Any) -> re.Pattern[str]:
    """Return a pattern of all texts that a tokenizer would read as a special token."""
    marks = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    longest_first = sorted((mark for mark in marks if len(mark) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) if longest_first else r"(?!)")


def without_marks(text: str, forged: re.Pattern[str]) -> str:
    """Return a text with a space inside each forged special token, and without lone surrogates."""
    safe = text.encode("utf-8", "replace").decode("utf-8")
    return forged.sub(lambda mark: f"{mark.group()[0]} {mark.group()[1:]}", safe)


def prompt_text(tokenizer: Any, forged: re.Pattern[str], messages: Sequence[Message]) -> tuple[str, bool]:
    """Return the text of a conversation up to the reply, and whether the tokenizer still adds special tokens.

    For a chat template without a system role, the system message is put before the first user message. A tokenizer
    without a template gets the contents with empty lines between them.
    """
    turns = [{"role": message.role, "content": without_marks(message.content, forged)} for message in messages]
    if not tokenizer.chat_template:
        return "\n\n".join(turn["content"] for turn in turns), True
    from jinja2.exceptions import TemplateError

    write = tokenizer.apply_chat_template
    try:
        return str(write(turns, tokenize=False, add_generation_prompt=True)), False
    except TemplateError:
        first, *rest = turns
        if first["role"] != "system" or not rest:
            raise
        rest[0] = {"role": rest[0]["role"], "content": f"{first['content']}\n\n{rest[0]['content']}"}
        return str(write(rest, tokenize=False, add_generation_prompt=True)), False
