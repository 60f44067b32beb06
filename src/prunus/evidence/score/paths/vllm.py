"""``vllm:http://host:8000/v1#MODEL``: a vLLM server, asked at ``/v1/completions``.

One request of one token for each branching node, with ``logprob_token_ids``: the log probabilities of
exactly the children. It needs a vLLM whose completions take that parameter; an older one leaves it
unread, which is noticed. Serve with prefix caching on, as is the default: then the prompt is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....core.types import Message
from ....web.json_client import Refused
from ._server import Said, Server

_FEW: Final = 20
"""Tokens of one request that no server finds too many (vLLM's own default of ``--max-logprobs``)."""


class Engine(Server):
    """Asks a vLLM server. Its tokenizer and chat template are the server's, unless ``tokenizer`` names one here.

    :param model: address and the name under which the model is served, as ``http://localhost:8000/v1#name``.
    :param door: the way to the network.
    :param key: sent as a bearer token.
    :param options: as of every server: ``tokenizer``, ``stop``, ``context_window``, ``at_once``, ``seconds``,
        ``total``.
    """

    name = "vllm"
    _longest = 0

    def _ask(self, ids: list[int], children: list[int]) -> Said:
        try:
            return self._read(self._service("/completions").post(self._body(ids, children)))
        except Refused as refused:
            if len(children) <= _FEW or refused.status != 400 or "logprob" not in str(refused):
                raise
        half = len(children) // 2
        one, two = self._ask(ids, children[:half]), self._ask(ids, children[half:])
        return Said({**one.logprobs, **two.logprobs}, one.cached + two.cached, one.requests + two.requests)

    def _body(self, ids: list[int], children: list[int]) -> dict[str, Any]:
        return {
            "model": self._model,
            "prompt": ids,
            "max_tokens": 1,
            "temperature": 1.0,
            "logprobs": 1,
            "logprob_token_ids": children,
            "return_tokens_as_token_ids": True,
            "add_special_tokens": False,
        }

    def _read(self, answer: Any) -> Said:
        """Read the numbers of an answer: ``{"token_id:5": -1.2}`` at the first place."""
        try:
            given = answer["choices"][0]["logprobs"]
            top = given["top_logprobs"][0] if given else {}
            found = {
                int(name.removeprefix("token_id:")): float(value)
                for name, value in top.items()
                if name.startswith("token_id:") and value is not None
            }
            details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
            return Said(found, int(details.get("cached_tokens") or 0))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise self._shape(error) from error

    def _tokens(self, text: str) -> list[int]:
        return self._tokenized({"prompt": text, "add_special_tokens": False})

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        turns = [{"role": one.role, "content": one.content} for one in messages]
        return self._tokenized({"messages": turns, "add_generation_prompt": True, "add_special_tokens": False})

    def _tokenized(self, body: dict[str, Any]) -> list[int]:
        answer = self._root("/tokenize").post({"model": self._model, **body})
        try:
            self._longest = int(answer.get("max_model_len") or 0)
            return self._ids(answer["tokens"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._shape(error) from error

    def _window(self) -> int:
        return self._longest

    def _needs(self) -> str:
        return "the completions of this vLLM must take logprob_token_ids, with logprobs switched on"
