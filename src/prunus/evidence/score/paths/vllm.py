"""``vllm:http://host:8000/v1#MODEL``: a vLLM server, through its endpoint ``/v1/completions``.

Each request names the children of a node by ``logprob_token_ids``. An older vLLM ignores that parameter,
which is reported as an error. Serve with prefix caching on, as is the default: then the server reads the
prompt only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....core.types import Message
from ....web.json_client import WRONG_SHAPE, ServiceRefused
from ._server import Logprobs, PathServer, by_tokens, count_in

_FEW: Final = 20
"""Children per request that every server accepts (vLLM's default of ``--max-logprobs``)."""


class Engine(PathServer):
    """Scores branches by a vLLM server.

    The server's tokenizer and chat template are used, unless the option ``tokenizer`` names one on this machine.

    :param model: address, and the name under which the model is served, as ``http://localhost:8000/v1#name``.
    :param door: the egress door.
    :param key: sent as a bearer token; '' sends none.
    :param options: those of every server: ``tokenizer``, ``stop``, ``context_window``, ``at_once``, ``seconds``,
        ``total``.
    """

    name = "vllm"
    _longest = 0

    def _ask(self, ids: list[int], children: list[int]) -> Logprobs:
        try:
            return self._read(self._service("/completions").post(self._body(ids, children)))
        except ServiceRefused as refused:
            if len(children) <= _FEW or refused.status != 400 or "logprob" not in str(refused):
                raise
        half = len(children) // 2  # more children than this server's limit: ask for each half
        left, right = self._ask(ids, children[:half]), self._ask(ids, children[half:])
        both = {**left.by_token, **right.by_token}
        return Logprobs(both, left.cached + right.cached, left.requests + right.requests)

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

    def _read(self, answer: Any) -> Logprobs:
        """Read the log probabilities of an answer: ``{"token_id:5": -1.2}`` for its first token."""
        try:
            logprobs = answer["choices"][0]["logprobs"]
            top = logprobs["top_logprobs"][0] if logprobs else {}
            by_token = by_tokens(
                (name.removeprefix("token_id:"), value) for name, value in top.items() if name.startswith("token_id:")
            )
            details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
            return Logprobs(by_token, count_in(details.get("cached_tokens")))
        except WRONG_SHAPE as error:
            raise self._shape(error) from error

    def _tokens(self, text: str) -> list[int]:
        return self._tokenized({"prompt": text, "add_special_tokens": False})

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        return self._tokenized({"messages": turns, "add_generation_prompt": True, "add_special_tokens": False})

    def _tokenized(self, body: dict[str, Any]) -> list[int]:
        answer = self._root("/tokenize").post({"model": self._model, **body})
        try:
            self._longest = count_in(answer.get("max_model_len"))
            return self._ids(answer["tokens"])
        except WRONG_SHAPE as error:
            raise self._shape(error) from error

    def _window(self) -> int:
        return self._longest

    def _needs(self) -> str:
        return "this vLLM server must support logprob_token_ids in completions, with logprobs switched on"
