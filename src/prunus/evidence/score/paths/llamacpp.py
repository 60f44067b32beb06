"""``llamacpp:http://host:8080``: a llama.cpp server, through its endpoint ``/completion``.

A request cannot name tokens: the server returns the ``n_probs`` likeliest tokens of the vocabulary. If a
child is not among them, the next request wants sixteen times as many, up to the whole vocabulary or
``MOST``; a child that is still missing is an error and never a guess. The window and the token that ends a
text are read from ``/props``. Requests run one at a time, in the
tree's order, so that all of them use the server's cache of the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ....core.types import Message
from ....web.json_client import WRONG_SHAPE, ServiceRefused
from ._server import Logprobs, PathServer, by_tokens, count_in

FIRST: Final = 64
"""Tokens of the first request, or twice the number of children if that is more."""

MOST: Final = 300_000
"""Most tokens of a request; no vocabulary is larger."""


class Engine(PathServer):
    """Scores branches by a llama.cpp server.

    The server's tokenizer and chat template are used, unless the option ``tokenizer`` names one on this machine.

    :param model: the server's address, as ``http://localhost:8080``.
    :param door: the egress door.
    :param key: sent as a bearer token; '' sends none.
    :param options: those of every server: ``tokenizer``, ``stop``, ``context_window``, ``seconds``, ``total``;
        ``at_once`` has no effect.
    """

    name = "llamacpp"
    most_at_once = 1
    _properties: Mapping[str, Any] | None = None
    _ending: int | None = None

    def _ask(self, ids: list[int], children: list[int]) -> Logprobs:
        wanted, requests, cached = max(FIRST, 2 * len(children)), 0, 0
        while True:
            answer = self._root("/completion").post(self._body(ids, wanted))
            by_token, hits = self._read(answer)
            requests, cached = requests + 1, max(cached, hits)
            if all(token in by_token for token in children) or len(by_token) < wanted or wanted >= MOST:
                return Logprobs(by_token, cached, requests)
            wanted = min(MOST, 16 * wanted)

    def _body(self, ids: list[int], count: int) -> dict[str, Any]:
        # a temperature below 0 makes the server return a plain softmax of the logits, whatever its samplers are
        return {"prompt": ids, "n_predict": 1, "temperature": -1.0, "n_probs": count, "cache_prompt": True}

    def _read(self, answer: Any) -> tuple[dict[int, float], int]:
        """Return the log probabilities by token, and the number of cached tokens."""
        try:
            places = answer.get("completion_probabilities") or answer.get("probs") or [{}]
            top = places[0].get("top_logprobs") or []
            by_token = by_tokens((entry["id"], entry["logprob"]) for entry in top)
            return by_token, count_in((answer.get("timings") or {}).get("cache_n"))
        except WRONG_SHAPE as error:
            raise self._shape(error) from error

    def _window(self) -> int:
        settings = self._served().get("default_generation_settings")
        return count_in(settings.get("n_ctx")) if isinstance(settings, Mapping) else 0

    def _end(self) -> int:
        if self._ending is None:
            word = self._served().get("eos_token")
            tokens = self._tokenized(word, begin=False, special=True) if isinstance(word, str) and word else []
            self._ending = tokens[0] if len(tokens) == 1 else -1
        return self._ending

    def _served(self) -> Mapping[str, Any]:
        """Return what ``/props`` says about the model; nothing where the server has no such address."""
        if self._properties is None:
            try:
                answer = self._root("/props").get()
            except ServiceRefused:
                answer = {}
            self._properties = answer if isinstance(answer, Mapping) else {}
        return self._properties

    def _tokens(self, text: str) -> list[int]:
        return self._tokenized(text, begin=False, special=False)

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        answer = self._root("/apply-template").post({"messages": turns})
        text = answer.get("prompt") if isinstance(answer, dict) else None
        if not isinstance(text, str):
            raise self._shape(ValueError("no prompt"))
        return self._tokenized(text, begin=True, special=True)

    def _tokenized(self, text: str, begin: bool, special: bool) -> list[int]:
        """Return the tokens of a text.

        :param begin: put the token that begins a text before it, where the model has one.
        :param special: read the marks of the chat template in it as such.
        """
        body = {"content": text, "add_special": begin, "parse_special": special}
        answer = self._root("/tokenize").post(body)
        return self._ids(answer.get("tokens") if isinstance(answer, dict) else None)

    def _needs(self) -> str:
        return "they are not among the likeliest tokens, or this is no llama.cpp server with n_probs"
