"""``transformers:FOLDER``: a causal or encoder–decoder model on this machine, through transformers and torch.

Weights are read from safetensors only, and no code of a model's folder is run. Nothing is downloaded.
Calls run one at a time: one call keeps the machine busy anyway, and so a seed gives the same reply on
every run.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadBudget, BadInput, MissingExtra, OutsideFailed, one_line
from ...core.events import Event, TokenEvent, UsageEvent
from ...core.installation import pip_install
from ...core.ports import LanguageModel
from ...core.types import Message, Usage
from ..chat_prompt import forged_marks, prompt_text
from ._shared import CallOptions, Stops, check_messages, encodable, with_schema

_LOCK: Final = threading.Lock()
"""Sampling uses the random generator of the process; the holder of this lock uses it alone."""

_UNLIMITED: Final = 10_000_000
"""A tokenizer without a limit states a length above this, which no model has."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model with its tokenizer.

    :param forged: matches the texts that the tokenizer reads as special tokens anywhere.
    """

    model: Any
    tokenizer: Any
    forged: re.Pattern[str]


class Engine(LanguageModel):
    """Generates replies with a model on this machine; it is loaded at the first call.

    :param model: folder with ``config.json``, a tokenizer and safetensors.
    :param options: ``device`` (``cpu``, or ``cuda``), ``dtype`` (``auto``: as saved), ``total``: most seconds of
        a call (600), ``context_window``: tokens; 0 takes the model's.
    :raises BadInput: no folder is named, or an option is unknown or has a bad value.
    """

    name = "transformers"
    real = True
    free = True

    def __init__(self, model: str = "", options: Mapping[str, Any] | None = None) -> None:
        if not model:
            raise BadInput("llm transformers: name a folder, as transformers:/models/qwen", subject="llm")
        self._folder = Path(model).expanduser()
        self.model = self._folder.name
        known: dict[str, Any] = {"device": "cpu", "dtype": "auto", "total": 600.0, "context_window": 0}
        for name, value in (options or {}).items():
            kinds = (int, float) if name == "total" else type(known.get(name))
            if name not in known or not isinstance(value, kinds) or isinstance(value, bool):
                raise BadInput(f"llm_options: {name} = {value!r}; known: device, dtype, total, context_window")
        self._options = known | dict(options or {})
        self._loading = threading.Lock()
        self._made: _Loaded | None = None

    @property
    def context_window(self) -> int:  # type: ignore[override]  # the model says it, once it is loaded
        """Most tokens of prompt and reply together, for encoder–decoder models of each; 0 for no limit."""
        if self._options["context_window"]:
            return int(self._options["context_window"])
        loaded = self._load()
        config = loaded.model.config
        stated = [getattr(config, name, 0) for name in ("max_position_embeddings", "n_positions")]
        stated.append(loaded.tokenizer.model_max_length)
        return min((int(size) for size in stated if size and 0 < size < _UNLIMITED), default=0)

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens of each text, shape [n]; special tokens are not counted."""
        tokenizer = self._load().tokenizer
        counts = (len(tokenizer(encodable(text), add_special_tokens=False)["input_ids"]) for text in texts)
        return np.fromiter(counts, np.int64, len(texts))

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the reply token by token, and then its usage; generation ends soon after the stream is closed.

        :raises BadInput: the folder holds no usable model.
        :raises BadBudget: the prompt is longer than the model's window.
        :raises OutsideFailed: the call took too long, or memory ran out.
        """
        call = CallOptions.of(options)
        check_messages(messages)
        started = time.monotonic()
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | Usage | BaseException]()
        closed = threading.Event()

        def send(item: str | Usage | BaseException) -> None:
            if not closed.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, item)

        def work() -> None:
            try:
                send(self._write(messages, call, send, closed))
            except Exception as error:
                send(error)

        worker = loop.run_in_executor(None, work)
        try:
            while not isinstance(item := await queue.get(), Usage):
                if isinstance(item, BaseException):
                    raise item
                yield TokenEvent(item)
            sides = (item.prompt_tokens, item.completion_tokens)
            yield UsageEvent(Usage(*sides, seconds={"llm": time.monotonic() - started}))
        finally:
            closed.set()
            await asyncio.shield(worker)

    def _write(
        self, messages: Sequence[Message], call: CallOptions, send: Callable[[str], None], closed: threading.Event
    ) -> Usage:
        """Generate in a worker thread, and send each piece of text at once."""
        import torch

        loaded = self._load()
        ids = self._prompt(messages, call)
        prompt = int(ids.shape[1])
        room = self._room(prompt, call)
        watch = _Watch(loaded, call, closed, time.monotonic() + float(self._options["total"]))
        settings: dict[str, Any] = {"do_sample": call.temperature > 0, "max_new_tokens": room, "num_beams": 1}
        settings |= (
            {"temperature": call.temperature} if call.temperature else dict.fromkeys(("temperature", "top_p", "top_k"))
        )
        watch.send = send
        try:
            with _LOCK, torch.random.fork_rng(devices=range(torch.cuda.device_count())), torch.inference_mode():
                torch.manual_seed(call.seed or 0)
                loaded.model.generate(
                    input_ids=ids, attention_mask=torch.ones_like(ids), stopping_criteria=[watch], **settings
                )
        except (RuntimeError, MemoryError) as error:
            if "memory" not in str(error):
                raise
            raise OutsideFailed(
                f"{self.model}: no memory for a prompt of {prompt} tokens; lower the budget ({one_line(str(error))})"
            ) from error
        watch.end()
        return Usage(prompt, watch.count)

    def _room(self, prompt: int, call: CallOptions) -> int:
        """Return the most tokens of the reply.

        :raises BadBudget: the prompt fills the window.
        """
        window = self.context_window
        if not window:
            return call.max_tokens
        separate = self._load().model.config.is_encoder_decoder  # prompt and reply have separate windows
        if prompt > window or (prompt == window and not separate):
            raise BadBudget(
                f"{self.model}: a prompt of {prompt} tokens is over the window of {window}; lower the budget",
                subject=self.model,
            )
        return min(call.max_tokens, window if separate else window - prompt)

    def _prompt(self, messages: Sequence[Message], call: CallOptions) -> Any:
        """Return the token ids of a conversation, int [1, n]."""
        loaded = self._load()
        if call.schema is not None:
            messages = with_schema(messages, call.schema)
        text, special = prompt_text(loaded.tokenizer, loaded.forged, messages)
        ids = loaded.tokenizer(text, add_special_tokens=special, return_tensors="pt")["input_ids"]
        if not ids.shape[1]:
            raise BadInput(f"{self.model}: the prompt has no token", subject=self.model)
        return ids.to(loaded.model.device)

    def _load(self) -> _Loaded:
        """Load the model at its first use.

        :raises BadInput: the folder holds no usable model.
        """
        with self._loading:
            if self._made is None:
                self._made = self._read()
            return self._made

    def _read(self) -> _Loaded:
        try:
            import torch
            import transformers
        except ImportError as error:
            raise MissingExtra(
                f"llm transformers: transformers and torch are not installed; run: {pip_install('transformers')}",
                subject="transformers",
            ) from error
        if not (self._folder / "config.json").is_file():
            raise BadInput(
                f"llm transformers:{self._folder}: no model is there; give a folder with config.json, a tokenizer and "
                "safetensors",
                subject=str(self._folder),
            )
        try:
            with _quiet(transformers.utils.logging):
                model, tokenizer = self._files(torch, transformers)
        except Exception as error:  # the libraries that read the files share no error class
            raise BadInput(
                f"llm transformers:{self._folder}: cannot be loaded ({one_line(str(error))})", subject=str(self._folder)
            ) from error
        if model.generation_config.pad_token_id is None:
            ends = model.generation_config.eos_token_id
            model.generation_config.pad_token_id = (ends[0] if isinstance(ends, list) else ends) or 0
        return _Loaded(model, tokenizer, forged_marks(tokenizer))

    def _files(self, torch: Any, transformers: Any) -> tuple[Any, Any]:
        """Read (model, tokenizer) from the folder."""
        safely = {"local_files_only": True, "trust_remote_code": False}
        device, dtype = self._options["device"], self._options["dtype"]
        config = transformers.AutoConfig.from_pretrained(self._folder, **safely)
        tokenizer = transformers.AutoTokenizer.from_pretrained(self._folder, **safely)
        kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
        wanted = dtype if dtype == "auto" else getattr(torch, dtype)
        model = kind.from_pretrained(self._folder, use_safetensors=True, dtype=wanted, **safely)
        return model.to(device).eval(), tokenizer


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """Switch the library's progress bars off inside a ``with`` block."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


class _Watch:
    """Stopping criterion of ``generate``: receives every token, sends its text on, and decides when to stop."""

    def __init__(self, loaded: _Loaded, call: CallOptions, closed: threading.Event, deadline: float) -> None:
        self._tokenizer = loaded.tokenizer
        self._closed = closed
        self._deadline = deadline
        self._stops = Stops(call.stop)
        self._ids: list[int] = []
        self._from = self._shown = 0
        self.send: Callable[[str], None] = lambda text: None

    @property
    def count(self) -> int:
        """Number of tokens that were generated."""
        return len(self._ids)

    def __call__(self, ids: Any, scores: Any, **_: Any) -> Any:
        """Take the token that was generated last; return whether to stop, bool [1]."""
        import torch

        self._ids.append(int(ids[0, -1]))
        self._send(self._stops.feed(self._new_text()))
        if time.monotonic() > self._deadline:
            raise OutsideFailed("the model on this machine took longer than a call may; see llm_options: total")
        done = self._stops.done or self._closed.is_set()
        return torch.full((ids.shape[0],), done, dtype=torch.bool, device=ids.device)

    def end(self) -> None:
        """Send the text that was held back."""
        self._send(self._stops.feed(self._new_text(last=True)))
        if not self._stops.done:
            self._send(self._stops.rest())

    def _send(self, text: str) -> None:
        if text:
            self.send(text)

    def _new_text(self, last: bool = False) -> str:
        """Return the text that the tokens since the last call add; an incomplete letter waits for its other bytes.

        The text of a token depends on the token before it, so that both are decoded and the first text is removed.
        """
        before = self._decode(self._ids[self._from : self._shown])
        now = self._decode(self._ids[self._from :])
        waiting = len(self._ids) - self._shown
        half = now.endswith("\ufffd") and waiting < 8
        if not last and waiting < 64 and (half or len(now) <= len(before)):  # a bound on the text that is decoded again
            return ""
        self._from, self._shown = self._shown, len(self._ids)
        return now[len(before) :]

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
