"""``transformers:MODEL``: a causal model on this machine, through transformers and torch.

The prompt is read once; the whole token tree behind it in one more pass, in which each token sees the
prompt and the tokens above it and no others. The cache is then cropped back, so that the next question
on the same page pays for its own tokens alone. A model that cannot do this (no croppable cache, no
mask that it obeys) is walked depth-first, and one that cannot do that either reads the prompt anew for
every branch; which way is right is tried out on a few tokens before the first question.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .....core.errors import BadInput, OutsideFailed, OverWindow
from .....core.ports import Branches, TokenTree
from .....core.types import Message
from ... import _trie
from . import passes as _passes
from .loaded import Loaded, load
from .passes import CountingModel
from .rope import Frequencies, held_for, same

MODES: Final = ("tree", "depth", "again", "brute")
"""How a tree is read: in one pass; depth-first; the prompt again for every branch; again for every path."""

_KNOWN: Final[dict[str, Any]] = {
    "device": "auto", "dtype": "auto", "mode": "auto", "total": 600.0, "context_window": 0,
    "prefill_chunk": 1024, "tree_chunk": 512,
}  # fmt: skip


@dataclass(slots=True)
class _Page:
    """What is kept of the latest prompt.

    :param ids: tokens whose keys and values the cache holds.
    :param frequencies: the rotary frequencies under which they were made.
    """

    ids: list[int]
    cache: Any
    frequencies: Frequencies


@dataclass(frozen=True, slots=True)
class _Way:
    """How a model is read: the mode, whether single rows of its head can be multiplied, whether its cache crops."""

    mode: str
    rows: bool = True
    crops: bool = True


class Engine:
    """Reads token trees with a causal language model of transformers. One call at a time; threads may share it.

    :param model: a folder with ``config.json``, a tokenizer and safetensors, or the hub id of one in the cache.
    :param options: ``device`` (``auto``: CUDA where there is one), ``dtype`` (``auto``: as saved), ``mode``
        (``auto``, or one of ``MODES``), ``total``: seconds that a call may take (600), ``context_window``: tokens;
        0 follows the model, ``prefill_chunk`` (1024) and ``tree_chunk`` (512): tokens of a pass.
    :raises BadInput: no model is named, or an option is unknown.
    """

    name = "transformers"
    real = False

    def __init__(self, model: str = "", options: Mapping[str, Any] | None = None) -> None:
        if not model:
            raise BadInput("generative: name a model, as generative:/models/html-pruner", subject="generative")
        self.model = model
        for name, value in (options or {}).items():
            kinds = (int, float) if name == "total" else type(_KNOWN.get(name))
            if name not in _KNOWN or not isinstance(value, kinds) or isinstance(value, bool):
                raise BadInput(f"path_options: {name} = {value!r}; known: {', '.join(_KNOWN)}", subject=name)
        self._options = _KNOWN | dict(options or {})
        mode = self._options["mode"]
        if mode not in ("auto", *MODES):
            raise BadInput(f"path_options: no mode {mode!r}; there are: auto, {', '.join(MODES)}", subject=mode)
        if min(self._options["prefill_chunk"], self._options["tree_chunk"]) < 1:
            raise BadInput("path_options: a chunk holds at least 1 token", subject="prefill_chunk")
        self._lock = threading.RLock()
        self._loaded: Loaded | None = None
        self._found: _Way | None = None
        self._page: _Page | None = None

    @classmethod
    def of(cls, loaded: Loaded, options: Mapping[str, Any] | None = None) -> Engine:
        """Make an engine of a model that is loaded already."""
        made = cls(loaded.name, options)
        made._loaded = loaded
        return made

    @property
    def stop(self) -> int:
        """The token that ends a text; -1 for none."""
        return self._model().stop

    @property
    def window(self) -> int:
        """Tokens that the model reads; 0: no limit is stated."""
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
        """Return the text of each token alone, to be shown."""
        return self._model().decode(tokens)

    def prompt_ids(self, prompt: Sequence[Message]) -> list[int]:
        """Return the tokens of a prompt as the model is asked it: by its chat template, up to where it answers."""
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
        """Drop what is kept of the latest page."""
        with self._lock:
            self._page = None

    def _read(self, ids: list[int], tree: TokenTree, needed: int) -> Branches:
        import torch

        way = self._way()
        reader = CountingModel(self._model().model, way.rows, time.monotonic() + float(self._options["total"]))
        try:
            with torch.inference_mode(), held_for(reader.model, needed) as frequencies:
                self._go(reader, way, ids, tree, frequencies)
        except (RuntimeError, MemoryError) as error:
            self._page = None
            if "memory" not in str(error):
                raise
            said = " ".join(str(error).split())[:160]
            raise OutsideFailed(
                f"{self.model}: no memory for a prompt of {len(ids)} tokens; prune first, or lower prefill_chunk "
                f"({said})"
            ) from error
        except OutsideFailed:
            self._page = None
            raise
        logits = [reader.logits[node] for node in tree.branching.tolist()]
        return Branches(logits, reader.forwards, reader.tokens, reader.reused)

    def _go(self, reader: CountingModel, way: _Way, ids: list[int], tree: TokenTree, frequencies: Frequencies) -> None:
        """Read prompt and tree in one way, and keep the prompt's cache where it can be cropped back."""
        if way.mode == "again":
            return _passes.again_for_every_branch(reader, tree, ids)
        if way.mode == "brute":
            return _passes.again_for_every_path(reader, tree, ids)
        page = self._resumed(ids, frequencies) if way.crops else None
        if page is None:
            page = _Page([], _new_cache(reader.model, way.crops), frequencies)
        self._page = None  # whatever goes wrong from here on leaves no half-read page
        reader.reused = len(page.ids)
        reader.prefill(ids, len(page.ids), page.cache, tree, int(self._options["prefill_chunk"]))
        if way.mode == "tree":
            _passes.tree_pass(reader, tree, len(ids), page.cache, int(self._options["tree_chunk"]))
        else:
            _passes.depth_first(reader, tree, len(ids), page.cache, way.crops)
        if way.crops:
            _passes.crop(page.cache, len(ids))
            self._page = _Page(ids, page.cache, frequencies)
        return None

    def _resumed(self, ids: list[int], frequencies: Frequencies) -> _Page | None:
        """Return the latest page cropped to what it shares with a prompt; at least one token is left to read."""
        page = self._page
        if page is None or not same(page.frequencies, frequencies):
            return None
        shared = 0
        for one, other in zip(page.ids, ids[:-1], strict=False):  # prompts differ in length
            if one != other:
                break
            shared += 1
        if not shared:
            return None
        _passes.crop(page.cache, shared)
        return _Page(ids[:shared], page.cache, frequencies)

    def _model(self) -> Loaded:
        """Load the model at its first use."""
        with self._lock:
            if self._loaded is None:
                self._loaded = load(self.model, str(self._options["device"]), str(self._options["dtype"]))
            return self._loaded

    def _way(self) -> _Way:
        """Find out how this model is read, once."""
        if self._found is None:
            mode = str(self._options["mode"])
            self._found = find_way(self._model(), MODES[:3] if mode == "auto" else (mode,))
        return self._found


def _new_cache(model: Any, crops: bool) -> Any:
    from transformers import DynamicCache

    # made without the configuration, no layer of the cache forgets what has left its window
    return DynamicCache() if crops else DynamicCache(config=model.config)


# --- which way is right --------------------------------------------------------------------------

_PATHS: Final = ((3, 4, 5, 6), (3, 4, 5, 7), (3, 4, 8, 6), (3, 4, 8, 9, 6), (3, 4, 8, 9, 7), (3, 5, 6), (3, 5, 7))
_PROMPT: Final = (7, 3, 9, 4, 8, 5, 6, 3, 7, 9, 4)


def find_way(loaded: Loaded, modes: Sequence[str]) -> _Way:
    """Return the first of some modes that a model can be read by, tried on a few tokens against plain passes.

    :raises BadInput: there is none; the model gives no logits.
    """
    import torch

    vocabulary = loaded.model.config.get_text_config().vocab_size
    tree, _ = _trie.grow([[token % vocabulary for token in one] for one in _PATHS])
    failed = ""
    with torch.inference_mode(), held_for(loaded.model, len(_PROMPT) + tree.deepest):
        try:
            oracle = CountingModel(loaded.model, rows=False)
            _passes.again_for_every_path(oracle, tree, _PROMPT)
        except Exception as error:  # of whatever kind: the model is not one that can be asked
            raise BadInput(
                f"generative:{loaded.name}: gives no logits of next tokens ({' '.join(str(error).split())[:160]})",
                subject=loaded.name,
            ) from error
        for way in _ways(loaded.model, modes):
            reader = CountingModel(loaded.model, way.rows)
            try:
                _try(reader, way, tree)
            except Exception as error:  # a model that cannot be read this way fails in a way of its own
                failed = " ".join(str(error).split())[:160]
                continue
            if agree(reader, oracle, loaded.model.dtype.itemsize):
                return way
    raise BadInput(
        f"generative:{loaded.name}: cannot be read by {', '.join(modes)} {f'({failed})' if failed else ''}".rstrip(),
        subject=loaded.name,
    )


def _ways(model: Any, modes: Sequence[str]) -> list[_Way]:
    """Return the ways worth trying for a model, the cheapest first."""
    masked = _passes.takes_positions(model) and set(_passes.layer_kinds(model)) <= _passes.KINDS
    found = []
    for mode in modes:
        crops = (True, False) if mode == "depth" else (True,)
        found += [
            _Way(mode, rows, crop)
            for crop in crops
            for rows in (True, False)
            if (masked or mode != "tree") and (masked or not crop or mode in ("again", "brute"))
        ]
    return found


def _try(reader: CountingModel, way: _Way, tree: TokenTree) -> None:
    """Read the trial tree in one way, in small chunks."""
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
    """Tell whether two readings say the same, up to the rounding of numbers of ``width`` bytes."""
    mine = np.concatenate([reader.logits[node] - reader.logits[node].mean() for node in sorted(oracle.logits)])
    theirs = np.concatenate([oracle.logits[node] - oracle.logits[node].mean() for node in sorted(oracle.logits)])
    scale = max(float(theirs.std()), 1e-9)
    return bool(np.isfinite(mine).all() and np.abs(mine - theirs).max() <= scale * (0.3 if width < 4 else 2e-3))
