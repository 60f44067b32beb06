"""A stand-in for the three model servers: their endpoints and response shapes, with the numbers of a tiny model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tests.models.embed.server import Answer, as_json

from prunus.core.types import Message


def routes(loaded: Any) -> Callable[[str, Any], Answer]:
    """Answer as vLLM, SGLang and llama.cpp do, with the numbers of a model."""
    import torch

    lock = threading.Lock()

    def logprobs(ids: Sequence[int]) -> list[float]:
        with lock, torch.inference_mode():
            logits = loaded.model(input_ids=torch.tensor([list(ids)])).logits[0, -1].double()
        return list(torch.log_softmax(logits, -1).tolist())

    def vllm(body: dict[str, Any]) -> dict[str, Any]:
        known = logprobs(body["prompt"])
        top = {f"token_id:{token}": known[token] for token in body["logprob_token_ids"]}
        return {"choices": [{"text": "", "logprobs": {"top_logprobs": [top]}}], "usage": {"prompt_tokens": 1}}

    def sglang(body: dict[str, Any]) -> dict[str, Any]:
        known = logprobs(body["input_ids"])
        rows = [[known[token], token, None] for token in body["token_ids_logprob"]]
        return {"text": "", "meta_info": {"output_token_ids_logprobs": [rows], "cached_tokens": 3}}

    def llamacpp(body: dict[str, Any]) -> dict[str, Any]:
        known = logprobs(body["prompt"])
        best = sorted(range(len(known)), key=lambda token: -known[token])[: body["n_probs"]]
        top = [{"id": token, "token": "", "bytes": [], "logprob": known[token]} for token in best]
        return {"content": "", "completion_probabilities": [{"id": best[0], "top_logprobs": top}]}

    def tokenize(body: dict[str, Any]) -> dict[str, Any]:
        if "messages" in body:
            return {"tokens": loaded.prompt(_messages(body)), "max_model_len": loaded.window, "count": 0}
        text = body.get("prompt", body.get("content"))
        if body.get("parse_special"):
            return {"tokens": loaded.tokenizer(text, add_special_tokens=False)["input_ids"]}
        return {"tokens": loaded.encode([text])[0], "max_model_len": loaded.window}

    def apply_template(body: dict[str, Any]) -> dict[str, Any]:
        turns = [{"role": one.role, "content": one.content} for one in _messages(body)]
        return {"prompt": loaded.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)}

    known = {
        "/v1/completions": vllm, "/generate": sglang, "/completion": llamacpp, "/tokenize": tokenize,
        "/apply-template": apply_template,
    }  # fmt: skip

    def route(path: str, body: Any) -> Answer:
        return as_json(known[path](body)) if path in known else as_json({"error": "no such address"}, 404)

    return route


def _messages(body: dict[str, Any]) -> list[Message]:
    return [Message(one["role"], one["content"]) for one in body["messages"]]
