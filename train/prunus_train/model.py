"""A small causal language model with new weights, and its loss on a batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prunus_train import wired
from prunus_train.batches import Batch
from prunus_train.errors import DataBroken
from prunus_train.presets import Hyper, Shape


def build(
    shape: Shape,
    vectors: NDArray[np.float16] | None,
    special: dict[str, int],
    hyper: Hyper,
    vocabulary: dict[str, int] | None = None,
) -> Any:
    """Return a model: the one in the folder ``shape.base``, or a new Llama.

    The input and output layers of a new model share the tokens' vectors. The queries and keys of a head start with the
    same weights, so that a token attends to equal tokens from the first step on (mimetic initialisation, Trockman and
    Kolter 2023); without it a small model spends most of its training on learning to look a word up.

    :param vectors: the first vectors of the tokens, [tokens, at least ``shape.hidden``].
    :param special: ids of special tokens, for the configuration.
    :param vocabulary: token → id; only for wired models.
    :raises DataBroken: the folder or the vectors are missing.
    """
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    if shape.base:
        if not Path(shape.base).is_dir():
            raise DataBroken(f"{shape.base} is not a folder with a model; --base needs one")
        return AutoModelForCausalLM.from_pretrained(
            shape.base, attn_implementation="sdpa", dtype=torch.float32, local_files_only=True
        )
    if vectors is None:
        raise DataBroken("a new model needs vectors for its tokens; prunus train pack writes them")
    config = LlamaConfig(
        vocab_size=len(vectors),
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        intermediate_size=shape.inner,
        max_position_embeddings=shape.window,
        rope_theta=shape.theta,
        tie_word_embeddings=True,
        attn_implementation="sdpa",
        **special,
    )
    config.rope_parameters = {"rope_type": "default", "rope_theta": shape.theta}
    model = LlamaForCausalLM(config)
    if shape.wired:
        wired.wire(model, shape, vocabulary or {}, vectors, wired.Gains())
        return _frozen(model, hyper)
    first = torch.from_numpy(np.asarray(vectors[:, : shape.hidden], np.float32))
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(first / first.norm(dim=1, keepdim=True).clamp(min=1e-6))
        for layer in model.model.layers:
            attention = layer.self_attn
            alike = torch.randn_like(attention.q_proj.weight) / shape.hidden**0.5
            attention.q_proj.weight.copy_(alike)
            attention.k_proj.weight.copy_(alike)
            for last in (attention.o_proj.weight, layer.mlp.down_proj.weight):
                last.mul_((2 * shape.layers) ** -0.5)
    return _frozen(model, hyper)


def _frozen(model: Any, hyper: Hyper) -> Any:
    model.model.embed_tokens.weight.requires_grad_(not hyper.freeze_vectors)
    for layer in model.model.layers[: hyper.freeze_layers]:
        layer.requires_grad_(False)
    return model


def attention_mask(segment: Any) -> Any:
    """Return which earlier tokens each token attends to, the page's and its own question's.

    :returns: bool [rows, 1, tokens, tokens].
    """
    import torch

    size = segment.shape[1]
    causal = torch.ones(size, size, dtype=torch.bool, device=segment.device).tril()
    own, other = segment[:, :, None], segment[:, None, :]
    return (((other == 0) | (own == other)) & causal)[:, None]


def losses(model: Any, batch: Batch, device: str) -> tuple[Any, Any]:
    """Return the loss of a batch, and the sums for the log.

    Only positions with a weight go through the output head, which saves memory and time.

    :returns: the weighted loss, summed and not divided by the weights; and a tensor of sums: weight, path loss, path
        tokens, paths that are right in every token, questions.
    """
    import torch
    from torch.nn.functional import cross_entropy

    tokens, segment, position, target, weight, path = (
        torch.from_numpy(part).to(device, non_blocking=True)
        for part in (batch.tokens, batch.segment, batch.position, batch.target, batch.weight, batch.path)
    )
    hidden = model.model(
        input_ids=tokens, attention_mask=attention_mask(segment), position_ids=position, use_cache=False
    ).last_hidden_state
    counts = weight > 0
    logits = model.lm_head(hidden[counts]).float()
    wanted, weights, on_path = target[counts], weight[counts], path[counts]
    if batch.among is not None:
        logits[on_path] = _masked(logits[on_path], batch.among)
    token_losses = cross_entropy(logits, wanted, reduction="none")
    rows = torch.arange(len(tokens), device=device)[:, None].expand_as(segment)[counts]
    asks = rows[on_path] * 256 + segment[counts][on_path]  # one number per question: a row has less than 256
    with torch.no_grad():
        wrong = (logits[on_path].argmax(1) != wanted[on_path]).float()
        _, number = asks.unique(return_inverse=True)
        total = int(number.max()) + 1 if len(number) else 0
        missed = torch.zeros(total, device=device).index_add_(0, number, wrong)
        sums = torch.stack(
            [
                weights.sum(),
                token_losses[on_path].sum(),
                on_path.sum(),
                (missed == 0).sum(),
                torch.tensor(float(total), device=device),
            ]
        )
    return (token_losses * weights).sum(), sums


def _masked(logits: Any, choices: Sequence[NDArray[np.int64]]) -> Any:
    """Return logits where, in each row, all tokens but the choices are impossible."""
    import torch

    rows = np.repeat(np.arange(len(choices)), [len(tokens) for tokens in choices])
    impossible = torch.ones_like(logits, dtype=torch.bool)
    impossible[torch.from_numpy(rows), torch.from_numpy(np.concatenate(choices))] = False
    return logits.masked_fill(impossible, float("-inf"))
