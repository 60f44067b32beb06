"""The cost of the missing summaries, estimated before money is spent, and the statistics of an index."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..models.meter import Price
from ..models.prompts.render import Quoted, render
from .build import Builder
from .nodes import NodeStore
from .terms import Bill

_CHILDREN: Final = 5.5
"""About how many children a parent has in the paper's trees."""
_READ: Final = 1.3
"""Tokens that the summariser reads per token of the leaves: 1.13 in the paper's trees, and a margin."""


def bill_of(builder: Builder, price: Price | None, pays: bool) -> Bill:
    """Return the largest cost of the missing summaries.

    :param price: the model's price; None where it is not known.
    :param pays: whether a paid model writes the summaries.
    """
    view, store = builder.store.view(), builder.store
    exact = not builder.clusterer.needs_summaries
    if exact:
        missing = [node for _, node in store.unsummarised()]
        edges = store.edges()
        known = dict(zip(view.ids.tolist(), view.tokens.tolist(), strict=True))
        planned: dict[int, int] = dict.fromkeys(missing, builder.settings.summary_tokens)
        children = [child for node in missing for child in edges.get(node, ())]
        calls, texts = len(missing), len(children)
        prompt = sum(planned.get(child) or known.get(child, 0) for child in children)  # one may be gone since
    elif len(view.ids) == view.leaves or store.unsummarised():
        calls = round(view.leaves / (_CHILDREN - 1))
        texts, prompt = round(calls * _CHILDREN), round(_READ * int(view.tokens[: view.leaves].sum()))
    else:
        calls = texts = prompt = 0
    if not pays:
        return Bill(calls, 0, 0, 0.0, exact)
    frame, fence = _frame(builder)
    prompt += calls * frame + texts * fence
    completion = calls * builder.settings.summary_tokens
    return Bill(calls, prompt, completion, price.usd(prompt, completion) if price else None, exact)


def _frame(builder: Builder) -> tuple[int, int]:
    """Return the tokens of the prompt without texts, and the tokens of the fence around each text."""

    def size(texts: int) -> int:
        messages = render("summarize", words=100, texts=[Quoted("")] * texts)
        return int(builder.tokenizer.count([message.content for message in messages]).sum()) + 8

    return size(1), size(2) - size(1)


def described(store: NodeStore) -> dict[str, Any]:
    """Return the statistics of an index, with nodes, tokens, mean children and compression of each layer."""
    info = dict(store.info())
    view, edges = store.view(), store.edges()
    place = {id: index for index, id in enumerate(view.ids.tolist())}
    layers = []
    for layer in sorted({*view.layer.tolist()}):
        members = np.flatnonzero(view.layer == layer)
        parents = [id for id in view.ids[members].tolist() if id in edges]
        children = [len(edges[id]) for id in parents]
        summarised = [id for id in parents if view.tokens[place[id]] > 0]
        read = sum(int(view.tokens[place[child]]) for id in summarised for child in edges[id])
        written = sum(int(view.tokens[place[id]]) for id in summarised)
        layers.append(
            {
                "layer": int(layer),
                "nodes": len(members),
                "tokens": int(view.tokens[members].sum()),
                "children": round(sum(children) / len(children), 2) if children else 0.0,
                "compression": round(written / read, 4) if read else 0.0,
                "unsummarised": int(np.count_nonzero(view.row[members] < 0)) if layer else 0,
            }
        )
    for name in ("nodes", "tokens"):
        info.pop(name, None)
    leaves = sum(int(layer_info["tokens"]) for layer_info in layers if not layer_info["layer"])
    return {**info, "layers": layers, "leaf_tokens": leaves}
