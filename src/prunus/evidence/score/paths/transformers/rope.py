"""Hold rotary frequencies constant while one token tree is scored.

Phi-3.5's ``longrope`` and the ``dynamic`` scaling choose their frequencies in each forward pass, by the
largest position in it. Prompt and tree then get different frequencies if the prompt crosses the limit
between two chunks. Here the frequencies are chosen once, for the longest text that will be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Frequencies = tuple[Any, ...]
"""The frequencies in use, one tensor per module and kind of layer; keys cached under other frequencies are invalid."""


@contextmanager
def hold_frequencies(model: Any, length: int) -> Iterator[Frequencies]:
    """Hold a model's rotary frequencies at those of a text of ``length`` tokens.

    :returns: the frequencies; () for models whose frequencies do not depend on the length.
    """
    held: list[tuple[Any, Any]] = []
    frequencies: list[Any] = []
    try:
        for module in model.modules():
            kinds = getattr(module, "rope_type", None)
            if not _varies(kinds):
                continue
            frequencies.extend(_choose(module, kinds, length))
            held.append((module, kinds))
            module.rope_type = dict.fromkeys(kinds, "default") if isinstance(kinds, dict) else "default"
        yield tuple(frequencies)
    finally:
        for module, kinds in held:
            module.rope_type = kinds


def same_frequencies(first: Frequencies, second: Frequencies) -> bool:
    """Tell whether two sets of frequencies are equal."""
    if len(first) != len(second):
        return False
    return all(a.shape == b.shape and bool((a == b).all()) for a, b in zip(first, second, strict=True))


def _varies(kinds: Any) -> bool:
    """Tell whether a module chooses its frequencies by the length of the text."""
    names = kinds.values() if isinstance(kinds, dict) else [kinds]
    return any(isinstance(kind, str) and (kind == "longrope" or "dynamic" in kind) for kind in names)


def _choose(module: Any, kinds: Any, length: int) -> list[Any]:
    """Let a module choose its frequencies for a length, independent of earlier texts; return them."""
    import torch

    chosen = []
    for layer in kinds if isinstance(kinds, dict) else [None]:
        prefix = f"{layer}_" if layer else ""
        frequencies = getattr(module, f"{prefix}inv_freq")
        original = getattr(module, f"{prefix}original_inv_freq").to(frequencies.device)
        module.register_buffer(f"{prefix}inv_freq", original.clone(), persistent=False)
        for attribute in ("max_seq_len_cached", f"{prefix}max_seq_len_cached"):
            if hasattr(module, attribute):
                setattr(module, attribute, module.original_max_seq_len)
        last = torch.tensor([[max(0, length - 1)]], device=frequencies.device)
        module(torch.zeros(1, 1, 1, device=frequencies.device), last, **({"layer_type": layer} if layer else {}))
        chosen.append(getattr(module, f"{prefix}inv_freq").clone())
    return chosen
