"""The cross-encoder of ``prunus train reader``: a BERT encoder that starts as the bi-encoder whose weights it takes.

Question and text stand in one row, each with its own [CLS] and its own positions. Attention between the two has a
learned bias in every head; it starts below zero, so the first scores are like those of the bi-encoder, and training
opens the heads that need it. Tokens that stand in both texts are marked. A second head points at the answer
in the text; it is for training only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus_train.errors import DataBroken

_CLOSED: Final = -1.0
"""Bias of attention between question and text at the start: about a third of what it would be."""

_SCALE: Final = 20.0
"""What the cosine of question and text is multiplied by at the start, as in the training of the bi-encoder."""

_SPECIAL: Final = 1000
"""Token ids of BERT's vocabulary below are special or unused; they are no matches."""

_SPECIAL_TINY: Final = 5
"""The same of a vocabulary without unused tokens, as in tests."""

_MASKED: Final = -10_000.0


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the encoder.

    :param frozen: first layers that are not trained; the tokens' vectors never are.
    :param first_word: first token id that is a word, and may be a match.
    """

    vocabulary: int
    hidden: int = 384
    layers: int = 6
    heads: int = 12
    inner: int = 1536
    positions: int = 512
    frozen: int = 2
    first_word: int = _SPECIAL


class Layer(nn.Module):  # type: ignore[misc, unused-ignore]
    """A layer of BERT with a bias for attention between the two texts."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.query = nn.Linear(shape.hidden, shape.hidden)
        self.key = nn.Linear(shape.hidden, shape.hidden)
        self.value = nn.Linear(shape.hidden, shape.hidden)
        self.out = nn.Linear(shape.hidden, shape.hidden)
        self.norm = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.widen = nn.Linear(shape.hidden, shape.inner)
        self.narrow = nn.Linear(shape.inner, shape.hidden)
        self.norm_out = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.gate = nn.Parameter(torch.full((shape.heads, 1, 1), _CLOSED))
        self.same = nn.Parameter(torch.zeros(shape.heads, 1, 1))

    def forward(self, states: Tensor, mask: Tensor, across: Tensor, same: Tensor) -> Tensor:
        """Return the states of the next layer, [rows, tokens, hidden].

        :param mask: 0 for tokens, far below 0 for padding, [rows, 1, 1, tokens].
        :param across: 1 where a token looks at the other text, [rows, 1, tokens, tokens].
        :param same: 1 where it looks at an equal token there, as ``across``.
        """
        rows, tokens, hidden = states.shape
        form = (rows, tokens, self.heads, hidden // self.heads)
        query, key, value = (part(states).reshape(form).transpose(1, 2) for part in (self.query, self.key, self.value))
        bias = mask + across * self.gate + same * self.same
        weights = (query @ key.transpose(2, 3)) * (1 / math.sqrt(form[3])) + bias
        seen = (torch.softmax(weights, -1).to(value.dtype) @ value).transpose(1, 2).reshape(rows, tokens, hidden)
        states = self.norm(states + self.out(seen))
        return self.norm_out(states + self.narrow(functional.gelu(self.widen(states))))


class CrossEncoder(nn.Module):  # type: ignore[misc, unused-ignore]
    """Question and text → relevance, and where the answer begins and ends."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.vocabulary, shape.hidden)
        self.positions = nn.Embedding(shape.positions, shape.hidden)
        self.types = nn.Embedding(2, shape.hidden)
        self.norm = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.match = nn.Parameter(torch.zeros(2, shape.hidden))  # marks of matches in the question, and in the text
        self.scale = nn.Parameter(torch.tensor(_SCALE))
        self.mix = nn.Linear(4 * shape.hidden, 128)
        self.relevance = nn.Linear(128, 1)
        self.span = nn.Linear(shape.hidden, 2)
        nn.init.zeros_(self.relevance.weight)
        nn.init.zeros_(self.relevance.bias)
        nn.init.zeros_(self.span.weight)
        frozen = [self.words, self.positions, self.types, self.norm, *self.layers[: shape.frozen]]
        for parameter in (parameter for part in frozen for parameter in part.parameters()):
            parameter.requires_grad = False

    def states(self, ids: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the last states, and what marks the tokens of the question and of the text, [rows, tokens, 1]."""
        second = types * mask
        first = mask - second
        places = torch.cumsum(mask, 1) - 1 - second * first.sum(1, keepdim=True)
        states = self.words(ids) + self.positions(places.clamp(min=0)) + self.types.weight[0]
        states = self.norm(states)
        one, two = first.to(states.dtype), second.to(states.dtype)
        across = one[:, :, None] * two[:, None, :]
        across = across + across.transpose(1, 2)
        is_word = (ids >= self.shape.first_word).to(states.dtype)
        same = across * (ids[:, :, None] == ids[:, None, :]).to(states.dtype) * is_word[:, :, None]
        matched = same.amax(2)[:, :, None]
        padding = (1 - mask).to(states.dtype)[:, None, None, :] * _MASKED
        for number, layer in enumerate(self.layers):
            if number == self.shape.frozen:
                states = states + matched * (one[:, :, None] * self.match[0] + two[:, :, None] * self.match[1])
            states = layer(states, padding, across[:, None], same[:, None])
        return states, one[:, :, None], two[:, :, None]

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """Return the relevance of each row, [rows, 1]."""
        states, first, second = self.states(input_ids, attention_mask, token_type_ids)
        return self.score(states, first, second)

    def score(self, states: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Return the relevance of each row from the last states, [rows, 1]."""
        question = (states * first).sum(1) / first.sum(1).clamp(min=1)
        text = (states * second).sum(1) / second.sum(1).clamp(min=1)
        lengths = question.pow(2).sum(1, keepdim=True) * text.pow(2).sum(1, keepdim=True)
        cosine = (question * text).sum(1, keepdim=True) / lengths.clamp(min=1e-9).sqrt()
        both = torch.cat([states[:, 0], question, text, question * text], 1)
        return self.scale * cosine + self.relevance(functional.gelu(self.mix(both)))


_NAMES: Final = {
    "attention.self.query": "query", "attention.self.key": "key", "attention.self.value": "value",
    "attention.output.dense": "out", "attention.output.LayerNorm": "norm", "intermediate.dense": "widen",
    "output.dense": "narrow", "output.LayerNorm": "norm_out",
}  # fmt: skip


def from_folder(folder: Path, frozen: int = 2) -> CrossEncoder:
    """Return a cross-encoder with the weights of a BERT in a folder (``config.json``, ``model.safetensors``).

    :raises DataBroken: the folder holds no BERT.
    """
    from safetensors.torch import load_file

    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        weights = load_file(str(folder / "model.safetensors"))
        shape = Shape(
            config["vocab_size"], config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"],
            config["intermediate_size"], config["max_position_embeddings"], min(frozen, config["num_hidden_layers"]),
            _SPECIAL if config["vocab_size"] > 2 * _SPECIAL else _SPECIAL_TINY,
        )  # fmt: skip
    except (OSError, ValueError, KeyError) as error:
        raise DataBroken(f"{folder} holds no BERT with safetensors ({error})") from error
    model = CrossEncoder(shape)
    missing = model.load_state_dict(_renamed(weights), strict=False).missing_keys
    lost = [name for name in missing if not name.startswith(("match", "scale", "mix", "relevance", "span"))]
    if lost := [name for name in lost if not name.endswith((".gate", ".same"))]:
        raise DataBroken(f"{folder}: the weights lack {lost[0]}")
    return model


def _renamed(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return BERT's weights under the names of this model; those that it does not have are left out."""
    found: dict[str, Any] = {}
    for name, value in weights.items():
        name = name.removeprefix("bert.")
        if name.startswith("embeddings."):
            part = name.removeprefix("embeddings.").replace("_embeddings", "").replace("token_type", "types")
            part = part.replace("word.", "words.").replace("position.", "positions.").replace("LayerNorm", "norm")
            found[part] = value
        elif name.startswith("encoder.layer."):
            number, _, rest = name.removeprefix("encoder.layer.").partition(".")
            inside, _, kind = rest.rpartition(".")
            found[f"layers.{number}.{_NAMES[inside]}.{kind}"] = value
    found.pop("position_ids", None)
    return found
