"""``transformers:FOLDER``: a causal or encoder–decoder model on this machine, through transformers and torch.

Weights are safetensors alone, and no code of a model's folder is run. Nothing is fetched: the folder
must be there. One call at a time: a model on one machine is busy anyway, and so a seed gives the
same reply on every run.
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
from ...core.ports import LanguageModel
from ...core.types import Message, Usage
from ._shared import CallOptions, Stops, check_messages, encodable, with_schema

_LOCK: Final = threading.Lock()
"""Sampling draws from the one generator of the process; whoever holds this has it for himself."""

_UNLIMITED: Final = 10_000_000
"""Tokenizers without a limit state a length beyond any model's."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A model with its tokenizer."""

    model: Any
    tokenizer: Any
    forged: re.Pattern[str]
    """Texts that the tokenizer reads as marks of its own wherever they stand."""


class Engine(LanguageModel):
    """Writes with a model on this machine.

    :param model: folder with ``config.json``, a tokenizer and safetensors.
    :param options: ``device`` (``cpu``; ``cuda`` where there is one), ``dtype`` (``auto``), ``total``: seconds that
        a call may take (600), ``context_window``: tokens; 0 follows the model.
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
        """Tokens of prompt and reply together, for encoder–decoder models of each; 0: the model has no limit."""
        if self._options["context_window"]:
            return int(self._options["context_window"])
        loaded = self._load()
        config = loaded.model.config
        stated = [getattr(config, name, 0) for name in ("max_position_embeddings", "n_positions")]
        stated.append(loaded.tokenizer.model_max_length)
        return min((int(size) for size in stated if size and 0 < size < _UNLIMITED), default=0)

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the tokens of each text, shape [n]; special tokens are not counted."""
        tokenizer = self._load().tokenizer
        counts = (len(tokenizer(encodable(text), add_special_tokens=False)["input_ids"]) for text in texts)
        return np.fromiter(counts, np.int64, len(texts))

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the reply token by token, and its usage; a stream that is closed ends with the token in work.

        :raises BadInput: the folder holds no model that can be used.
        :raises BadBudget: the prompt is longer than the model's window.
        :raises OutsideFailed: the reply took longer than it may.
        """
        asked = CallOptions.of(options)
        check_messages(messages)
        started = time.monotonic()
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | Usage | BaseException]()
        closed = threading.Event()

        def tell(what: str | Usage | BaseException) -> None:
            if not closed.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, what)

        def work() -> None:
            try:
                tell(self._write(messages, asked, tell, closed))
            except Exception as error:
                tell(error)

        worker = loop.run_in_executor(None, work)
        try:
            while not isinstance(found := await queue.get(), Usage):
                if isinstance(found, BaseException):
                    raise found
                yield TokenEvent(found)
            sides = (found.prompt_tokens, found.completion_tokens)
            yield UsageEvent(Usage(*sides, seconds={"llm": time.monotonic() - started}))
        finally:
            closed.set()
            await asyncio.shield(worker)

    def _write(
        self, messages: Sequence[Message], asked: CallOptions, tell: Callable[[str], None], closed: threading.Event
    ) -> Usage:
        """Generate in a worker thread, telling each piece of text as it is there."""
        import torch

        loaded = self._load()
        ids = self._prompt(messages, asked)
        prompt = int(ids.shape[1])
        room = self._room(prompt, asked)
        watch = _Watch(loaded, asked, closed, time.monotonic() + float(self._options["total"]))
        kept: dict[str, Any] = {"do_sample": asked.temperature > 0, "max_new_tokens": room, "num_beams": 1}
        kept |= (
            {"temperature": asked.temperature}
            if asked.temperature
            else dict.fromkeys(("temperature", "top_p", "top_k"))
        )
        watch.tell = tell
        try:
            with _LOCK, torch.random.fork_rng(devices=range(torch.cuda.device_count())), torch.inference_mode():
                torch.manual_seed(asked.seed or 0)
                loaded.model.generate(
                    input_ids=ids, attention_mask=torch.ones_like(ids), stopping_criteria=[watch], **kept
                )
        except (RuntimeError, MemoryError) as error:
            if "memory" not in str(error):
                raise
            raise OutsideFailed(
                f"{self.model}: no memory for a prompt of {prompt} tokens; lower the budget ({one_line(str(error))})"
            ) from error
        watch.end()
        return Usage(prompt, watch.count)

    def _room(self, prompt: int, asked: CallOptions) -> int:
        """Return how many tokens the reply may have.

        :raises BadBudget: none, since the prompt fills the window.
        """
        window = self.context_window
        if not window:
            return asked.max_tokens
        apart = self._load().model.config.is_encoder_decoder
        if prompt > window or (prompt == window and not apart):
            raise BadBudget(
                f"{self.model}: a prompt of {prompt} tokens is over the window of {window}; lower the budget",
                subject=self.model,
            )
        return min(asked.max_tokens, window if apart else window - prompt)

    def _prompt(self, messages: Sequence[Message], asked: CallOptions) -> Any:
        """Return the token ids of a conversation, int [1, n]."""
        loaded = self._load()
        if asked.schema is not None:
            messages = with_schema(messages, asked.schema)
        turns = [{"role": one.role, "content": self._harmless(one.content)} for one in messages]
        if loaded.tokenizer.chat_template:
            text, special = self._templated(turns), False
        else:
            text, special = "\n\n".join(turn["content"] for turn in turns), True
        ids = loaded.tokenizer(text, add_special_tokens=special, return_tensors="pt")["input_ids"]
        if not ids.shape[1]:
            raise BadInput(f"{self.model}: the prompt has no token", subject=self.model)
        return ids.to(loaded.model.device)

    def _templated(self, turns: list[dict[str, str]]) -> str:
        """Write a conversation by the model's template; one that knows no system role gets it with the user's words."""
        from jinja2.exceptions import TemplateError

        write = self._load().tokenizer.apply_chat_template
        try:
            return str(write(turns, tokenize=False, add_generation_prompt=True))
        except TemplateError:
            first, *rest = turns
            if first["role"] != "system" or not rest:
                raise
            rest[0] = {"role": rest[0]["role"], "content": f"{first['content']}\n\n{rest[0]['content']}"}
            return str(write(rest, tokenize=False, add_generation_prompt=True))

    def _harmless(self, text: str) -> str:
        """Return a text in which nothing is read as a mark between turns."""
        return self._load().forged.sub(lambda found: f"{found.group()[0]} {found.group()[1:]}", encodable(text))

    def _load(self) -> _Loaded:
        """Load the model at its first use.

        :raises BadInput: the folder holds none that can be used.
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
                "llm transformers: transformers and torch are not installed; run: pip install 'prunus[transformers]'",
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
        except (
            Exception
        ) as error:  # configuration, tokenizer and weights are read by libraries with errors of their own
            raise BadInput(
                f"llm transformers:{self._folder}: cannot be loaded ({one_line(str(error))})", subject=str(self._folder)
            ) from error
        if model.generation_config.pad_token_id is None:
            ends = model.generation_config.eos_token_id
            model.generation_config.pad_token_id = (ends[0] if isinstance(ends, list) else ends) or 0
        marks = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
        longest_first = sorted((mark for mark in marks if len(mark) > 1), key=len, reverse=True)
        forged = re.compile("|".join(map(re.escape, longest_first)) if longest_first else r"(?!)")
        return _Loaded(model, tokenizer, forged)

    def _files(self, torch: Any, transformers: Any) -> tuple[Any, Any]:
        """Read (model, tokenizer) from the folder."""
        given = {"local_files_only": True, "trust_remote_code": False}
        device, dtype = self._options["device"], self._options["dtype"]
        config = transformers.AutoConfig.from_pretrained(self._folder, **given)
        tokenizer = transformers.AutoTokenizer.from_pretrained(self._folder, **given)
        kind = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
        wanted = dtype if dtype == "auto" else getattr(torch, dtype)
        model = kind.from_pretrained(self._folder, use_safetensors=True, dtype=wanted, **given)
        return model.to(device).eval(), tokenizer


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """Keep the library's progress bars off the terminal for a while."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


class _Watch:
    """Sees every token as it is written, tells its text, and says when to stop."""

    def __init__(self, loaded: _Loaded, asked: CallOptions, closed: threading.Event, deadline: float) -> None:
        self._tokenizer = loaded.tokenizer
        self._closed = closed
        self._deadline = deadline
        self._stops = Stops(asked.stop)
        self._ids: list[int] = []
        self._from = self._shown = 0
        self.tell: Callable[[str], None] = lambda text: None

    @property
    def count(self) -> int:
        """Tokens that were written."""
        return len(self._ids)

    def __call__(self, ids: Any, scores: Any, **_: Any) -> Any:
        """Take the token that was written last; return whether to stop, bool [1]."""
        import torch

        self._ids.append(int(ids[0, -1]))
        self._say(self._new_text())
        if time.monotonic() > self._deadline:
            raise OutsideFailed("the model on this machine took longer than a call may; see llm_options: total")
        done = self._stops.done or self._closed.is_set()
        return torch.full((ids.shape[0],), done, dtype=torch.bool, device=ids.device)

    def end(self) -> None:
        """Tell what was held back."""
        self._say(self._new_text(last=True))
        if not self._stops.done:
            self.tell_if(self._stops.rest())

    def _say(self, text: str) -> None:
        self.tell_if(self._stops.feed(text))

    def tell_if(self, text: str) -> None:
        """Tell a text that is not empty."""
        if text:
            self.tell(text)

    def _new_text(self, last: bool = False) -> str:
        """Return what the tokens since the last call add to the text; half a letter waits for its other half.

        A token's text depends on the token before it, so both are decoded, and the text of the first is taken off.
        """
        before = self._decode(self._ids[self._from : self._shown])
        now = self._decode(self._ids[self._from :])
        waiting = len(self._ids) - self._shown
        half = now.endswith("\ufffd") and waiting < 8
        if not last and waiting < 64 and (half or len(now) <= len(before)):  # what is decoded again stays short
            return ""
        self._from, self._shown = self._shown, len(self._ids)
        return now[len(before) :]

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
