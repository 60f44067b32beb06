"""``transformers:MODEL``: a causal model on this machine, through transformers and torch.

The model reads the prompt once, and then the whole token tree in one more pass, in which each token
attends only to the prompt and to the tokens above it. The cache is then cropped back to the prompt, so
that the next question on the same page costs only its own tokens. A model without a croppable cache or
without attention masks is read depth-first; a model that does not support this either reads the prompt
again for every branch. A trial on a few tokens before the first question chooses the way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .....core.errors import BadInput, OutsideFailed, OverWindow
from .....core.ports import Branches, TokenTree
from .....core.types import Message
from ... import _trie
from . import passes as _passes
from .loaded import Loaded, load, trained_prompt
from .passes import CountingModel

Frequencies = tuple[Any, ...]
"""The frequencies in use, one tensor per module and kind of layer; keys cached under other frequencies are invalid."""


@contextmanager
def hold_frequencies(model: Any, length: int) -> Iterator[Frequencies]:
    """Hold a model's rotary frequencies at those of a text of ``length`` tokens while one token tree is scored.

    Phi-3.5's ``longrope`` and the ``dynamic`` scaling choose their frequencies in each forward pass, by the largest
    position in it. Prompt and tree would get different frequencies where the prompt crosses the limit between chunks.

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


MODES: Final = ("tree", "depth", "again", "brute")
"""Ways to read a tree: in one pass; depth-first; with the prompt again for every branch, or for every path."""

_DEFAULTS: Final[dict[str, Any]] = {
    "device": "auto", "dtype": "auto", "mode": "auto", "total": 600.0, "context_window": 0,
    "prefill_chunk": 1024, "tree_chunk": 512,
}  # fmt: skip


@dataclass(slots=True)
class _CachedPrompt:
    """The cache of the latest prompt.

    :param ids: tokens whose keys and values the cache holds.
    :param frequencies: the rotary frequencies with which they were computed.
    """

    ids: list[int]
    cache: Any
    frequencies: Frequencies


@dataclass(frozen=True, slots=True)
class _Way:
    """How a model is read.

    :param mode: one of ``MODES``.
    :param rows: whether single rows of its output head can be multiplied.
    :param crops: whether its cache can be cropped.
    """

    mode: str
    rows: bool = True
    crops: bool = True


class Engine:
    """Reads token trees with a causal language model of transformers. One call at a time; threads may share it.

    :param model: a folder with ``config.json``, a tokenizer and safetensors, or the hub id of a model in the cache.
    :param options: ``device`` (``auto``: CUDA if present), ``dtype`` (``auto``: as saved), ``mode``
        (``auto``, or one of ``MODES``), ``total``: most seconds of a call (600), ``context_window``: tokens;
        0 takes the model's, ``prefill_chunk`` (1024) and ``tree_chunk`` (512): tokens of a pass.
    :raises BadInput: no model is named, or an option is unknown or has a bad value.
    """

    name = "transformers"
    real = False

    def __init__(self, model: str = "", options: Mapping[str, Any] | None = None) -> None:
        if not model:
            raise BadInput("generative: name a model, as generative:/models/html-pruner", subject="generative")
        self.model = model
        for name, value in (options or {}).items():
            kinds = (int, float) if name == "total" else type(_DEFAULTS.get(name))
            if name not in _DEFAULTS or not isinstance(value, kinds) or isinstance(value, bool):
                raise BadInput(f"path_options: {name} = {value!r}; known: {', '.join(_DEFAULTS)}", subject=name)
        self._options = _DEFAULTS | dict(options or {})
        mode = self._options["mode"]
        if mode not in ("auto", *MODES):
            raise BadInput(f"path_options: no mode {mode!r}; there are: auto, {', '.join(MODES)}", subject=mode)
        if min(self._options["prefill_chunk"], self._options["tree_chunk"]) < 1:
            raise BadInput("path_options: a chunk holds at least 1 token", subject="prefill_chunk")
        self._lock = threading.RLock()
        self._loaded: Loaded | None = None
        self._chosen: _Way | None = None
        self._page: _CachedPrompt | None = None

    @classmethod
    def of(cls, loaded: Loaded, options: Mapping[str, Any] | None = None) -> Engine:
        """Make an engine from a loaded model."""
        made = cls(loaded.name, options)
        made._loaded = loaded
        return made

    @property
    def prompt(self) -> str:
        """Name of the prompt that the model was trained with, as ``prunus train`` notes it; '' where it did not."""
        return trained_prompt(self.model)

    @property
    def stop(self) -> int:
        """The token that ends a text; -1 for none."""
        return self._model().stop

    @property
    def window(self) -> int:
        """The model's context window in tokens; 0 where it states no limit."""
        return int(self._options["context_window"]) or self._model().window

    @property
    def mode(self) -> str:
        """How trees are read: one of ``MODES``."""
        with self._lock:
            return self._way().mode

    def encode(self, paths: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each path (or of any text) alone, without special tokens."""
        return self._model().encode(paths)

    def decode(self, tokens: Sequence[int]) -> list[str]:
        """Return the text of each token alone, for display."""
        return self._model().decode(tokens)

    def prompt_ids(self, prompt: Sequence[Message]) -> list[int]:
        """Return the tokens of a prompt by the model's chat template, up to the beginning of the reply."""
        return self._model().prompt(prompt)

    def branches(self, prompt: Sequence[Message], tree: TokenTree) -> Branches:
        """Return the logits of every branch behind a prompt.

        :raises OverWindow: prompt and paths together are over the model's window.
        :raises OutsideFailed: out of memory or time.
        """
        ids = self.prompt_ids(prompt)
        if not ids:
            raise BadInput(f"{self.model}: the prompt has no token", subject=self.model)
        needed, window = len(ids) + tree.deepest, self.window
        if window and needed > window:
            raise OverWindow(
                f"{self.model}: page, question and paths are {needed} tokens, over the model's window of {window}; "
                "prune the page by a cheaper scorer first",
                window=window,
                needed=needed,
                subject=self.model,
            )
        if not len(tree.branching):
            return Branches([])
        with self._lock:
            return self._read(ids, tree, needed)

    def forget(self) -> None:
        """Drop the cache of the latest prompt."""
        with self._lock:
            self._page = None

    def _read(self, ids: list[int], tree: TokenTree, needed: int) -> Branches:
        import torch

        way = self._way()
        reader = CountingModel(self._model().model, way.rows, time.monotonic() + float(self._options["total"]))
        try:
            with torch.inference_mode(), hold_frequencies(reader.model, needed) as frequencies:
                self._go(reader, way, ids, tree, frequencies)
        except (RuntimeError, MemoryError) as error:
            self._page = None
            if "memory" not in str(error):
                raise
            reason = " ".join(str(error).split())[:160]
            raise OutsideFailed(
                f"{self.model}: no memory for a prompt of {len(ids)} tokens; prune first, or lower prefill_chunk "
                f"({reason})"
            ) from error
        except OutsideFailed:
            self._page = None
            raise
        logits = [reader.logits[node] for node in tree.branching.tolist()]
        return Branches(logits, reader.forwards, reader.tokens, reader.reused)

    def _go(self, reader: CountingModel, way: _Way, ids: list[int], tree: TokenTree, frequencies: Frequencies) -> None:
        """Read prompt and tree in a given way; keep the prompt's cache if it can be cropped."""
        if way.mode == "again":
            return _passes.again_for_every_branch(reader, tree, ids)
        if way.mode == "brute":
            return _passes.again_for_every_path(reader, tree, ids)
        page = self._resumed(ids, frequencies) if way.crops else None
        if page is None:
            page = _CachedPrompt([], _new_cache(reader.model, way.crops), frequencies)
        self._page = None  # an error from here on must not leave a half-read prompt behind
        reader.reused = len(page.ids)
        reader.prefill(ids, len(page.ids), page.cache, tree, int(self._options["prefill_chunk"]))
        if way.mode == "tree":
            _passes.tree_pass(reader, tree, len(ids), page.cache, int(self._options["tree_chunk"]))
        else:
            _passes.depth_first(reader, tree, len(ids), page.cache, way.crops)
        if way.crops:
            _passes.crop(page.cache, len(ids))
            self._page = _CachedPrompt(ids, page.cache, frequencies)
        return None

    def _resumed(self, ids: list[int], frequencies: Frequencies) -> _CachedPrompt | None:
        """Return the cache cropped to the tokens that it shares with a prompt; at least one token is left to read."""
        page = self._page
        if page is None or not same_frequencies(page.frequencies, frequencies):
            return None
        shared = 0
        for cached, new in zip(page.ids, ids[:-1], strict=False):  # prompts differ in length
            if cached != new:
                break
            shared += 1
        if not shared:
            return None
        _passes.crop(page.cache, shared)
        return _CachedPrompt(ids[:shared], page.cache, frequencies)

    def _model(self) -> Loaded:
        """Load the model at its first use."""
        with self._lock:
            if self._loaded is None:
                self._loaded = load(self.model, str(self._options["device"]), str(self._options["dtype"]))
            return self._loaded

    def _way(self) -> _Way:
        """Return the way in which this model is read; it is chosen once."""
        if self._chosen is None:
            mode = str(self._options["mode"])
            self._chosen = find_way(self._model(), MODES[:3] if mode == "auto" else (mode,))
        return self._chosen


def _new_cache(model: Any, crops: bool) -> Any:
    from transformers import DynamicCache

    # a cache made without the configuration keeps tokens that have left a layer's window, so that it can be cropped
    return DynamicCache() if crops else DynamicCache(config=model.config)


# --- the trial that chooses a way ----------------------------------------------------------------

_PATHS: Final = ((3, 4, 5, 6), (3, 4, 5, 7), (3, 4, 8, 6), (3, 4, 8, 9, 6), (3, 4, 8, 9, 7), (3, 5, 6), (3, 5, 7))
_PROMPT: Final = (7, 3, 9, 4, 8, 5, 6, 3, 7, 9, 4)


def find_way(loaded: Loaded, modes: Sequence[str]) -> _Way:
    """Return the first way that gives the same logits as plain passes, in a trial of a few tokens.

    :param modes: the modes to try, in this order.
    :raises BadInput: no way is right, or the model gives no logits.
    """
    import torch

    vocabulary = loaded.model.config.get_text_config().vocab_size
    tree, _ = _trie.grow([[token % vocabulary for token in path] for path in _PATHS])
    failed = ""
    with torch.inference_mode(), hold_frequencies(loaded.model, len(_PROMPT) + tree.deepest):
        try:
            oracle = CountingModel(loaded.model, rows=False)
            _passes.again_for_every_path(oracle, tree, _PROMPT)
        except Exception as error:  # any error means that this model is no causal language model
            raise BadInput(
                f"generative:{loaded.name}: gives no logits of next tokens ({' '.join(str(error).split())[:160]})",
                subject=loaded.name,
            ) from error
        for way in _ways(loaded.model, modes):
            reader = CountingModel(loaded.model, way.rows)
            try:
                _try(reader, way, tree)
            except Exception as error:  # models that do not support a way raise errors of many kinds
                failed = " ".join(str(error).split())[:160]
                continue
            if agree(reader, oracle, loaded.model.dtype.itemsize):
                return way
    raise BadInput(
        f"generative:{loaded.name}: cannot be read by {', '.join(modes)} {f'({failed})' if failed else ''}".rstrip(),
        subject=loaded.name,
    )


def _ways(model: Any, modes: Sequence[str]) -> list[_Way]:
    """Return the ways to try for a model, the cheapest first."""
    masked = _passes.takes_positions(model) and set(_passes.layer_kinds(model)) <= _passes.KINDS
    ways = []
    for mode in modes:
        crops = (True, False) if mode == "depth" else (True,)
        ways += [
            _Way(mode, rows, crop)
            for crop in crops
            for rows in (True, False)
            if (masked or mode != "tree") and (masked or not crop or mode in ("again", "brute"))
        ]
    return ways


def _try(reader: CountingModel, way: _Way, tree: TokenTree) -> None:
    """Read the trial tree in one way; small chunks exercise the boundaries between chunks."""
    if way.mode in ("again", "brute"):
        read = _passes.again_for_every_branch if way.mode == "again" else _passes.again_for_every_path
        return read(reader, tree, _PROMPT)
    cache = _new_cache(reader.model, way.crops)
    reader.prefill(_PROMPT, 0, cache, tree, 6)
    if way.mode == "tree":
        _passes.tree_pass(reader, tree, len(_PROMPT), cache, 4)
        _passes.crop(cache, len(_PROMPT))
    else:
        _passes.depth_first(reader, tree, len(_PROMPT), cache, way.crops)
    return None


def agree(reader: CountingModel, oracle: CountingModel, width: int) -> bool:
    """Tell whether two readings give the same logits, up to the rounding of numbers of ``width`` bytes."""
    mine = np.concatenate([reader.logits[node] - reader.logits[node].mean() for node in sorted(oracle.logits)])
    theirs = np.concatenate([oracle.logits[node] - oracle.logits[node].mean() for node in sorted(oracle.logits)])
    scale = max(float(theirs.std()), 1e-9)
    return bool(np.isfinite(mine).all() and np.abs(mine - theirs).max() <= scale * (0.3 if width < 4 else 2e-3))
