"""``sglang:http://host:30000``: an SGLang server, through its endpoint ``/generate``.

Each request names the children of a node by ``token_ids_logprob``. The server's radix cache, on by
default, keeps the prompt. The prompt must be tokenised with the model's own chat template, so that
``path_options`` must name the folder of its ``tokenizer``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.errors import BadInput
from ....core.types import Message
from ....web.json_client import WRONG_SHAPE
from ._server import Logprobs, PathServer, by_tokens, count_in


class Engine(PathServer):
    """Scores branches by an SGLang server.

    :param model: the server's address, as ``http://localhost:30000``.
    :param door: the egress door.
    :param key: sent as a bearer token; '' sends none.
    :param options: those of every server; ``tokenizer``, the folder of the model's tokenizer, is required.
    """

    name = "sglang"

    def _ask(self, ids: list[int], children: list[int]) -> Logprobs:
        body = {
            "input_ids": ids,
            "sampling_params": {"max_new_tokens": 1, "temperature": 1.0},
            "return_logprob": True,
            "logprob_start_len": -1,
            "token_ids_logprob": children,
        }
        answer: Any = self._root("/generate").post(body)
        try:
            meta = (answer[0] if isinstance(answer, list) else answer)["meta_info"]
            places = meta.get("output_token_ids_logprobs") or [[]]
            by_token = by_tokens((entry[1], entry[0]) for entry in places[0] or [])
            return Logprobs(by_token, count_in(meta.get("cached_tokens")))
        except WRONG_SHAPE as error:
            raise self._shape(error) from error

    def _tokens(self, text: str) -> list[int]:
        raise self._no_tokenizer()

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        raise self._no_tokenizer()

    def _no_tokenizer(self) -> BadInput:
        return BadInput(
            'path_scorer sglang: name the model\'s tokenizer, as path_options = { tokenizer = "/models/qwen" }',
            subject="tokenizer",
        )

    def _needs(self) -> str:
        return "this SGLang server must support token_ids_logprob"
