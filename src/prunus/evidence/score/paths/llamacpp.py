"""``llamacpp:http://host:8080``: a llama.cpp server, asked at ``/completion``.

One request of one token for each branching node. This server names no tokens: it gives the ``n_probs``
likeliest of the vocabulary. Where a child is not among them it is asked again for sixteen times as many,
up to the whole vocabulary or ``MOST``; a child that is still missing is an error and never a guess.
One request at a time, in the tree's order, so that its cache of the prompt serves each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....core.types import Message
from ._server import Said, Server

FIRST: Final = 64
"""Tokens that are asked for at first, or twice the children where that is more."""

MOST: Final = 300_000
"""Tokens that are asked for at last; no vocabulary is larger."""


class Engine(Server):
    """Asks a llama.cpp server. Its tokenizer and chat template are the server's, unless ``tokenizer`` names one here.

    :param model: its address, as ``http://localhost:8080``.
    :param door: the way to the network.
    :param key: sent as a bearer token.
    :param options: as of every server: ``tokenizer``, ``stop``, ``context_window``, ``seconds``, ``total``; ``at_once``
        is 1 whatever it says.
    """

    name = "llamacpp"
    most_at_once = 1

    def _ask(self, ids: list[int], children: list[int]) -> Said:
        wanted, requests, cached = max(FIRST, 2 * len(children)), 0, 0
        while True:
            answer = self._root("/completion").post(self._body(ids, wanted))
            found, hit = self._read(answer)
            requests, cached = requests + 1, max(cached, hit)
            if all(token in found for token in children) or len(found) < wanted or wanted >= MOST:
                return Said(found, cached, requests)
            wanted = min(MOST, 16 * wanted)

    def _body(self, ids: list[int], count: int) -> dict[str, Any]:
        # a temperature below 0 gives a plain softmax of the logits, whatever the server's samplers are
        return {"prompt": ids, "n_predict": 1, "temperature": -1.0, "n_probs": count, "cache_prompt": True}

    def _read(self, answer: Any) -> tuple[dict[int, float], int]:
        """Return log probabilities by token, and the tokens that were in the cache."""
        try:
            places = answer.get("completion_probabilities") or answer.get("probs") or [{}]
            top = places[0].get("top_logprobs") or []
            found = {int(one["id"]): float(one["logprob"]) for one in top if one["logprob"] is not None}
            timings = answer.get("timings") or {}
            return found, int(timings.get("cache_n") or 0)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise self._shape(error) from error

    def _tokens(self, text: str) -> list[int]:
        return self._tokenized(text, special=False)

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        turns = [{"role": one.role, "content": one.content} for one in messages]
        answer = self._root("/apply-template").post({"messages": turns})
        text = answer.get("prompt") if isinstance(answer, dict) else None
        if not isinstance(text, str):
            raise self._shape(ValueError("no prompt"))
        return self._tokenized(text, special=True)

    def _tokenized(self, text: str, special: bool) -> list[int]:
        body = {"content": text, "add_special": special, "parse_special": special}
        answer = self._root("/tokenize").post(body)
        return self._ids(answer.get("tokens") if isinstance(answer, dict) else None)

    def _needs(self) -> str:
        return "they are not among the likeliest, or this is no llama.cpp server with n_probs"
