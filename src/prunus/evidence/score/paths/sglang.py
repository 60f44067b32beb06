"""``sglang:http://host:30000``: an SGLang server, asked at ``/generate``.

One request of one token for each branching node, with ``token_ids_logprob``: the log probabilities of
exactly the children. The radix cache, on by default, keeps the prompt. The tokenizer is read here, from
the folder that ``tokenizer`` in ``path_options`` names: the prompt must be tokenised with the model's own
chat template.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.errors import BadInput
from ....core.types import Message
from ._server import Said, Server


class Engine(Server):
    """Asks an SGLang server.

    :param model: its address, as ``http://localhost:30000``.
    :param door: the way to the network.
    :param key: sent as a bearer token.
    :param options: as of every server, and ``tokenizer`` must be among them: the folder of the model's tokenizer.
    """

    name = "sglang"

    def _ask(self, ids: list[int], children: list[int]) -> Said:
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
            found = {int(one[1]): float(one[0]) for one in places[0] or [] if one[0] is not None}
            return Said(found, int(meta.get("cached_tokens") or 0))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise self._shape(error) from error

    def _tokens(self, text: str) -> list[int]:
        raise self._nameless()

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        raise self._nameless()

    def _nameless(self) -> BadInput:
        return BadInput(
            'path_scorer sglang: name the model\'s tokenizer, as path_options = { tokenizer = "/models/qwen" }',
            subject="tokenizer",
        )

    def _needs(self) -> str:
        return "this SGLang must take token_ids_logprob"
