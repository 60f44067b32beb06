"""The common part of the server back-ends: one request for each branching node, all behind the same prompt.

The model writes no reply: each request asks for the log probabilities of the children of one node, over
the whole vocabulary, at one new token. Adding a constant to all of them changes nothing, so a request
may be split. The server's prefix cache holds the prompt, so that each request costs only its own tokens.
"""

from __future__ import annotations

import json
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....core.errors import BadInput, MissingExtra, OutsideFailed, OverWindow
from ....core.installation import pip_install
from ....core.ports import Branches, Door, TokenTree
from ....core.text.numbers import bounded_float, bounded_int
from ....core.types import Message
from ....models.chat_prompt import forged_marks
from ....models.model_folder import hub_folder
from ....web.json_client import WRONG_SHAPE, Service, ServiceRefused, endpoint, error_text
from .transformers.loaded import Loaded

_LAST_TOKEN: Final = 2**31
_DEFAULTS: Final[dict[str, Any]] = {
    "tokenizer": "", "stop": -1, "context_window": 0, "at_once": 8, "seconds": 120.0, "total": 600.0,
}  # fmt: skip

"""The options with their defaults; the type of a default is the type of the option."""

_TOO_LONG: Final = re.compile(
    r"context (?:length|size|window)|too long|longer than|max_model_len|exceeds", re.IGNORECASE
)
_STATED_WINDOW: Final = re.compile(
    r"(?:context (?:length|size|window)|model length|max_model_len)[^0-9]{0,40}([0-9]{2,9})", re.IGNORECASE
)
_TOKENIZER_FILES: Final = ("tokenizer*", "special_tokens_map.json", "*.jinja", "*.model", "vocab*", "merges.txt")


@dataclass(frozen=True, slots=True)
class Logprobs:
    """The log probabilities that a server gives for the tokens behind one node.

    :param by_token: log probability by token; the requested tokens, and perhaps more.
    :param cached: tokens of the request that the server reports as cached.
    :param requests: number of requests that were sent.
    """

    by_token: Mapping[int, float]
    cached: int = 0
    requests: int = 1


class PathServer(ABC):
    """A back-end on a server. Nothing is sent before the first call; threads may share it.

    :param model: address and name of the model, as ``http://host:8000/v1#name``.
    :param door: the egress door.
    :param key: sent as a bearer token; '' sends none.
    :param options: ``tokenizer``: a folder with the model's tokenizer, or its hub id in the cache; with it, texts are
        tokenised on this machine. ``stop``: the token that ends a text; -1 takes the tokenizer's or the server's.
        ``context_window``: tokens; 0 takes the server's. ``at_once``: requests at a time (8).
        ``seconds``: timeout of a request (120). ``total``: timeout of a whole question (600).
    :raises BadInput: an option is unknown or has a bad value.
    """

    name = ""
    real = True
    prompt = ""
    most_at_once = 64
    sleep: Callable[[float], None] = staticmethod(time.sleep)
    """Waits before a request to a busy server is retried; tests replace it."""

    def __init__(
        self, model: str = "", door: Door | None = None, key: str = "", options: Mapping[str, Any] | None = None
    ) -> None:
        _, self._url, self._model = endpoint(model, (), f"path_scorer {self.name}")
        for name, value in (options or {}).items():
            kinds = (int, float) if isinstance(_DEFAULTS.get(name), float) else type(_DEFAULTS.get(name))
            if name not in _DEFAULTS or not isinstance(value, kinds) or isinstance(value, bool):
                raise BadInput(f"path_options: {name} = {value!r}; known: {', '.join(_DEFAULTS)}", subject=name)
        self._options = _DEFAULTS | dict(options or {})
        if self._options["at_once"] < 1:
            raise BadInput("path_options: at_once is at least 1", subject="at_once")
        self._door, self._key = door, key
        self._local: Loaded | None = None
        self._known: dict[str, list[int]] = {}

    # -- what differs from server to server ---------------------------------------------------

    @abstractmethod
    def _ask(self, ids: list[int], children: list[int]) -> Logprobs:
        """Return the log probabilities of the tokens ``children`` behind the tokens ``ids``."""

    @abstractmethod
    def _tokens(self, text: str) -> list[int]:
        """Return the tokens of a text alone from the server's tokenizer; it is called once for each text."""

    @abstractmethod
    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        """Return the tokens of a conversation up to the model's reply, from the server's chat template."""

    def _window(self) -> int:
        """Return the context window of the server's model, in tokens; 0 where it is unknown."""
        return 0

    def _end(self) -> int:
        """Return the token that ends a text, from the server; -1 where it does not say."""
        return -1

    # -- the port -----------------------------------------------------------------------------

    @property
    def stop(self) -> int:
        """The token that ends a text; -1 for none."""
        if self._options["stop"] >= 0:
            return int(self._options["stop"])
        return self._tokenizer().stop if self._options["tokenizer"] else self._end()

    def encode(self, paths: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each path (or of any text) alone, without special tokens."""
        if self._options["tokenizer"]:
            return self._tokenizer().encode(paths)
        new = [text for text in dict.fromkeys(paths) if text not in self._known]
        if len(self._known) + len(new) > 100_000:
            self._known.clear()
            new = list(dict.fromkeys(paths))
        with ThreadPoolExecutor(min(self._options["at_once"], self.most_at_once)) as pool:
            self._known |= dict(zip(new, pool.map(self._tokens, new), strict=True))
        return [self._known[text] for text in paths]

    def decode(self, tokens: Sequence[int]) -> list[str]:
        """Return the text of each token for display; its number where the tokenizer is the server's."""
        return self._tokenizer().decode(tokens) if self._options["tokenizer"] else [f"#{token}" for token in tokens]

    def branches(self, prompt: Sequence[Message], tree: TokenTree) -> Branches:
        """Return the log probabilities of every branch behind a prompt.

        :raises OverWindow: prompt and paths together are over the model's window.
        :raises OutsideFailed: the server failed, is of another kind, or does not give these log probabilities.
        """
        if not len(tree.branching):
            return Branches([])
        ids = self._tokenizer().prompt(prompt) if self._options["tokenizer"] else self._prompt(prompt)
        if not ids:
            raise BadInput(f"{self._url}: the prompt has no token", subject=self._url)
        nodes = tree.branching.tolist()
        needed = len(ids) + max(int(tree.depth[node]) for node in nodes) + 1
        window = int(self._options["context_window"]) or self._window()
        if window and needed > window:
            raise self._over(window, needed)
        end = time.monotonic() + float(self._options["total"])

        def score_branch(place: int) -> Logprobs:
            if time.monotonic() > end:
                raise OutsideFailed(
                    f"{self._url}: not done within {self._options['total']:g} s (path_options: total)",
                    subject=self._url,
                )
            below = [int(tree.token[child]) for child in tree.children[place]]
            return self._ask_checked([*ids, *tree.path(nodes[place])], below, needed)

        first = score_branch(0)  # alone, so that the prompt is in the server's cache for the other requests
        with ThreadPoolExecutor(min(self._options["at_once"], self.most_at_once)) as pool:
            waiting = [pool.submit(score_branch, place) for place in range(1, len(nodes))]
            try:
                answers = [first, *(future.result() for future in waiting)]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        logits = [
            np.asarray([answer.by_token[int(tree.token[child])] for child in children])
            for answer, children in zip(answers, tree.children, strict=True)
        ]
        sent = sum(len(ids) + int(tree.depth[node]) for node in nodes)
        cached = sum(answer.cached for answer in answers)
        return Branches(logits, sum(answer.requests for answer in answers), max(0, sent - cached), cached)

    # -- shared -------------------------------------------------------------------------------

    def _ask_checked(self, ids: list[int], children: list[int], needed: int) -> Logprobs:
        """Ask for the children of one node, and check that every child has a finite log probability."""
        try:
            answer = self._ask(ids, children)
        except ServiceRefused as refused:
            if _TOO_LONG.search(str(refused)):
                raise self._over(_window_in(refused, needed), needed) from refused
            raise
        missing = [token for token in children if not math.isfinite(answer.by_token.get(token, math.nan))]
        if missing:
            raise OutsideFailed(
                f"{self._url}: gives no log probability for {len(missing)} of {len(children)} tokens; {self._needs()}",
                subject=self._url,
            )
        return answer

    def _needs(self) -> str:
        """Return the words for errors that name what the server must support."""
        return "is it another kind of server?"

    def _over(self, window: int, needed: int) -> OverWindow:
        return OverWindow(
            f"{self._url}: page, question and paths are {needed} tokens, over the model's window of {window}; prune "
            "the page by a cheaper scorer first",
            window=window,
            needed=needed,
            subject=self._url,
        )

    def _service(self, path: str) -> Service:
        """Return the service at a path below the address of the server."""
        if self._door is None:
            raise BadInput(f"{self._url}: path_scorer {self.name} needs an egress door; pass door=", subject=self.name)
        return Service(self._url + path, self._door, self._key, float(self._options["seconds"]), self.sleep)

    def _root(self, path: str) -> Service:
        """Return the service at a path beside ``/v1``."""
        service = self._service("")
        return replace(service, url=self._url.removesuffix("/v1") + path)

    def _shape(self, error: Exception) -> OutsideFailed:
        failed = OutsideFailed(
            f"{self._url}: the answer is not in the shape of {self.name}'s; {self._needs()}", subject=self._url
        )
        failed.__cause__ = error
        return failed

    def _ids(self, tokens: Any) -> list[int]:
        """Check a list of tokens from the server."""
        if not isinstance(tokens, list) or not all(type(token) is int and token >= 0 for token in tokens):
            raise self._shape(ValueError("no list of tokens"))
        return tokens

    def _tokenizer(self) -> Loaded:
        """Load the tokenizer of the option ``tokenizer`` at its first use.

        :raises MissingExtra: transformers is not installed.
        :raises BadInput: there is no tokenizer.
        """
        if self._local is None:
            self._local = _load_tokenizer(str(self._options["tokenizer"]))
        return self._local


def by_tokens(stated: Iterable[tuple[object, object]]) -> dict[int, float]:
    """Return the log probabilities in a server's answer by token; a pair that states no number is left out."""
    pairs = (
        (bounded_int(token, -1, least=-1, most=_LAST_TOKEN), bounded_float(value, math.nan, least=-math.inf))
        for token, value in stated
    )
    return {token: value for token, value in pairs if token >= 0 and not math.isnan(value)}


def count_in(stated: object) -> int:
    """Return a number of tokens in a server's answer; 0 where it states none."""
    return bounded_int(stated, 0, most=_LAST_TOKEN)


def _load_tokenizer(name: str) -> Loaded:
    """Load a tokenizer with its chat template from a folder or from the hub's local cache."""
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra(
            f"path_scorer: a tokenizer on this machine needs transformers; run: {pip_install('transformers')}",
            subject="transformers",
        ) from error
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = hub_folder(name, _TOKENIZER_FILES, download=False)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the library's errors share no public base
        reason = " ".join(str(error).split())[:200]
        raise BadInput(f"path_options: tokenizer {name}: cannot be loaded ({reason})", subject=name) from error
    return Loaded(None, tokenizer, forged_marks(tokenizer), folder.name)


def _window_in(refused: ServiceRefused, needed: int) -> int:
    """Return the window that a refusal states, in its JSON (llama.cpp) or its text; half the needed tokens if none."""
    try:
        stated = count_in(json.loads(refused.content)["error"]["n_ctx"])
    except (*WRONG_SHAPE, RecursionError):
        stated = 0
    said = None if stated else _STATED_WINDOW.search(error_text(refused.content))
    return stated or (bounded_int(said.group(1), 0, most=10**9) if said else 0) or needed // 2
