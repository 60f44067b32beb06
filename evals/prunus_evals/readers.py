"""Readers: language models that answer questions from evidence.

A reader is any engine of the kind ``llm`` by its spec: ``openai:MODEL``, ``http://localhost:8080/v1#MODEL``,
``transformers:FOLDER``, ``scripted:REPLY``; ``none`` is no reader. A scripted or a tiny reader proves the plumbing and
nothing else: tables say so, and also where the size of a model is not known (:func:`caveat`).
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx

from prunus.core.errors import BadBudget, OutsideFailed, OverWindow, PrunusError, one_line
from prunus.core.events import TokenEvent, UsageEvent
from prunus.core.installation import pip_install
from prunus.core.ports import LLM
from prunus.core.registry import split_spec
from prunus.core.settings import load_settings
from prunus.core.sync import run
from prunus.core.types import Message
from prunus.engines import one_engine
from prunus_evals import prompts
from prunus_evals.errors import DataMissing, EvalError, ReaderFailed, SystemFailed, UnknownName, Unreachable
from prunus_evals.metrics.answers import LETTERS
from prunus_evals.records import Question, Reader, Reading, System
from prunus_evals.store import Store

MAX_TOKENS = {"short": 64, "long": 512, "choice": 8, "yes_no": 8, "tags": 256, "search": 128}
"""Tokens of an answer at most, by the kind of the question."""

SECONDS = 600.0
"""Time for one answer."""

RETRIES = 1
"""How often a server that failed is asked again, unless ``llm_options`` says otherwise.

A silent server takes 120 s of each try. A run that stops loses nothing, so it rather stops soon.
"""

ASK_SECONDS = 5.0
"""Time for a server's list of models."""

TINY = 1_000_000_000
"""A model of fewer parameters is called tiny."""

MORE_TIME = (
    "see whether the server is well, give less to read with --budgets, or raise first (seconds until the first word), "
    "gap and retries of llm_options in prunus.toml"
)
"""The way out where a model is silent."""

_SILENT = "no answer within the time-out"
"""What the engine of servers says of a silent one."""

_SAID = {
    "scripted": "no model answered: replies are scripted, and prove the plumbing alone",
    "tiny": "a model of less than a billion parameters: it answers badly, and proves the plumbing alone",
    "size unknown": "a model of unknown size: neither its server nor its name tells how large it is",
}

CAVEATS = {
    ", ".join(names): "; ".join(_SAID[name] for name in names)
    for count in range(1, len(_SAID) + 1)
    for names in combinations(_SAID, count)
}
"""What tables say of models, by a caveat, or by several as :func:`joined` writes them."""

SERVED = ("openai:", "http://", "https://")
"""What the specs of models on servers begin with."""

_URL = re.compile(r"https?://[^#\s]+")
_BILLIONS = re.compile(r"(?<![0-9a-z.])(?:[0-9]{1,3}x)?([0-9]{1,4}(?:\.[0-9]{1,3})?)b(?![0-9a-z])")
_MILLIONS = re.compile(r"(?<![0-9a-z.])([0-9]{2,4})m(?![0-9a-z])")
"""A size in a name, as 7B, 8x7B, 0.5b or 135M. A single digit, as in 1M, is the length of a context."""


def make(spec: str, prompt: str = "") -> ModelReader | None:
    """Return the reader of a spec; None for ``none``.

    :param prompt: name of the prompt for all questions; '' takes the prompt of the question's kind.
    :raises UnknownName: there is no such engine or prompt, or it cannot be made.
    """
    if spec == "none":
        return None
    if prompt:
        prompts.template(prompt)
    return ModelReader(spec, model(spec), prompt)


def prompt_of(question: Question, name: str = "") -> str:
    """Return the text of the prompt for a question, without what is filled in.

    :param name: a prompt for all questions; '' takes that of the question's kind.
    """
    return prompts.template(name or question.prompt or question.kind)


def caveat(spec: str, real: bool = True) -> str:
    """Return what tables must say of a model: ``scripted``, ``tiny`` or ``size unknown``; '' for nothing.

    :param spec: of the model; '' for none.
    :param real: whether a model answers at all.
    """
    if not spec:
        return ""
    if not real or split_spec(spec)[0] == "scripted":
        return "scripted"
    parameters = size(spec)
    if parameters is None:
        return "size unknown"
    return "tiny" if parameters < TINY else ""


def joined(caveats: Iterable[str]) -> str:
    """Return several caveats as one, each once, in the order of :data:`CAVEATS`."""
    wanted = sorted({part for one in caveats for part in one.split(", ") if part})
    return ", ".join(sorted(wanted, key=[*_SAID, *wanted].index))


def size(spec: str) -> int | None:
    """Return the number of parameters of a model: of its weights, else as its server or its name says; None if unknown.

    llama.cpp's server says it.
    """
    folder = _folder(spec)
    counted = _weights(folder) if folder else None
    if counted:
        return counted
    stated = (served(spec) or {}).get("n_params")
    if type(stated) is int and stated > 0:  # a server may say anything
        return stated
    name = _model_name(spec).lower()
    billions = [float(found) for found in _BILLIONS.findall(name)]
    if billions:
        return int(1e9 * max(billions))
    millions = _MILLIONS.findall(name)
    return 1_000_000 * max(map(int, millions)) if millions else None


def served(spec: str) -> dict[str, Any] | None:
    """Return what a model's server says of it, as ``n_params`` and ``size``; None where it says nothing."""
    engine, url, settings = split_spec(spec)[0], _URL.search(spec), load_settings()
    if engine == "scripted" or not settings.model_calls:
        return None
    address = url[0] if url else ""
    return _listed(address.rstrip("/"), _model_name(spec)) if address else None


@cache
def _listed(address: str, model: str) -> dict[str, Any] | None:
    try:
        found = httpx.get(f"{address}/models", timeout=ASK_SECONDS, trust_env=False).json()["data"]
        listed = [one for one in found if isinstance(one, dict)]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return None
    own = [one for one in listed if one.get("id") == model] or listed
    if len(own) != 1:
        return None
    meta = own[0].get("meta")
    return {"id": own[0].get("id"), **(meta if isinstance(meta, dict) else {})}  # the time of the start is left out


def _model_name(spec: str) -> str:
    """Return the name of a model in its spec, without the engine and the server."""
    url = _URL.search(spec)
    return spec[url.end() :].lstrip("#") if url else Path(split_spec(spec)[1]).name


def _folder(spec: str) -> Path | None:
    """Return the folder of a model's files; None where there is none."""
    engine, model = split_spec(spec)
    place = Path(model).expanduser()
    return place if engine == "transformers" and model and place.is_dir() else None


@cache
def _weights(folder: Path) -> int | None:
    """Return the number of parameters in the safetensors of a folder; None where there are none."""
    from safetensors import SafetensorError, safe_open  # here: few runs have a model of their own

    total = 0
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "numpy") as tensors:
                total += sum(math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
        except (OSError, SafetensorError):  # the engine says it better
            return None
    return total or None


def identity(spec: str, store: Store) -> str:
    """Return what the replies of a model depend on beside the prompt: its spec, its server, its files, its options.

    What a server said of its model is noted in the folder, and counts while the server cannot be reached.
    """
    settings = load_settings()
    known: Mapping[str, Any] = store.fact("models", {})
    said = served(spec)
    if said is None:
        said = known.get(spec)
    elif said != known.get(spec):
        with store.alone():
            store.note({"models": {**store.fact("models", {}), spec: said}})
    facts = [spec, settings.llm_options, said, files(spec)]
    return json.dumps(facts, sort_keys=True, default=str)


def files(spec: str) -> list[tuple[str, int, int]]:
    """Return the names, sizes and times of the files of a model, or of an engine in a file; [] where there are none."""
    engine, model = split_spec(spec)
    found: list[tuple[str, int, int]] = []
    for place in (engine.rpartition(":")[0], model):
        root = Path(place).expanduser()
        paths = [root] if place and root.is_file() else sorted(root.rglob("*")) if place and root.is_dir() else []
        stats = [(path.relative_to(root).as_posix(), path.stat()) for path in paths if path.is_file()]
        found += [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    return found


def made_of(system: System, store: Store) -> str:
    """Return what the evidence of a system depends on: its name, and the identity of each model inside it."""
    models = [identity(spec, store) for spec in getattr(system, "models", ())]
    return json.dumps([system.name, *models]) if models else system.name


def missing(spec: str) -> str:
    """Return what a model of ``transformers`` lacks on this machine: a package, or its files; '' for nothing.

    Prunus loads such a model at its first question; so it would be found missing only then.
    """
    engine, model = split_spec(spec)
    if engine != "transformers":
        return ""
    if find_spec("torch") is None or find_spec("transformers") is None:
        return f"transformers and torch are not installed; run: {pip_install('transformers')}"
    if _folder(spec) is not None or not model:  # that no model is named, the engine says
        return ""
    from huggingface_hub import try_to_load_from_cache  # here: it comes with transformers
    from huggingface_hub.errors import HFValidationError

    try:
        return "" if try_to_load_from_cache(model, "config.json") else f"{model}: not in the hub's local cache"
    except HFValidationError:
        return f"{model}: no such folder, and no hub id either"


def model(spec: str) -> LLM:
    """Return the language model of a spec, with the endpoint, key and timeouts of the settings.

    :raises UnknownName: there is no such engine, or it cannot be made.
    :raises DataMissing: a model of this machine lacks a package or its files.
    """
    if lacking := missing(spec):
        raise DataMissing(f"{spec}: {lacking}")
    settings = replace(load_settings(), llm=spec)
    if spec.startswith(SERVED):
        settings = replace(settings, llm_options={"retries": RETRIES, **settings.llm_options})
    try:
        made: LLM = one_engine("llm", settings)
    except PrunusError as error:
        raise UnknownName(f"reader {spec}: {error}") from error
    return made


class ModelReader:
    """A language model that answers with a prompt.

    :param spec: the name in tables.
    """

    def __init__(self, spec: str, llm: LLM, prompt: str = "") -> None:
        self.name = spec
        self._llm = llm
        self._prompt = prompt

    @property
    def real(self) -> bool:
        """Whether a model answers."""
        return bool(self._llm.real)

    def messages(self, question: Question, evidence: str) -> list[Message]:
        """Return the prompt for a question."""
        listed = "\n".join(f"({letter}) {choice}" for letter, choice in zip(LETTERS, question.choices, strict=False))
        tagged = "\n".join(f"<TAG-{tag}>{text}</TAG-{tag}>" for tag, text in enumerate(question.sentences))
        fields = {"evidence": evidence, "question": question.question, "choices": listed, "sentences": tagged}
        return prompts.render(self._prompt or question.prompt or question.kind, fields)

    def read(self, question: Question, evidence: str) -> Reading:
        """Answer a question from evidence.

        :raises ReaderFailed: the model cannot be reached, refuses, or does not finish in time.
        """
        return ask(self.name, self._llm, self.messages(question, evidence), MAX_TOKENS[question.kind])


def read(reader: Reader, question: Question, evidence: str, store: Store, model: str = "") -> tuple[Reading, str]:
    """Return a reader's answer and the digest of its prompt; a prompt that it answered before is not asked again.

    :param model: what replies depend on beside the prompt (:func:`identity`).
    """
    if not isinstance(reader, ModelReader):
        return reader.read(question, evidence), ""
    digest = prompts.digest(reader.messages(question, evidence))
    key = "\0".join((model or identity(reader.name, store), str(MAX_TOKENS[question.kind]), digest))
    reading = store.reply(key)
    if reading is None:
        reading = reader.read(question, evidence)
        store.keep_reply(key, reading)
    return reading, digest


def ask(name: str, llm: LLM, messages: Sequence[Message], max_tokens: int) -> Reading:
    """Return the reply of a model, deterministic where it can be (temperature 0).

    :param name: of the model, for errors.
    :raises ReaderFailed: the model cannot be reached, refuses, or does not finish in time.
    """
    start = time.perf_counter()
    try:
        text, prompt_tokens, completion_tokens = run(
            lambda: asyncio.wait_for(_reply(llm, messages, max_tokens), SECONDS)
        )
    except TimeoutError as error:
        raise Unreachable(f"{name} did not answer within {SECONDS:.0f} s; {MORE_TIME}") from error
    except PrunusError as error:
        found = failed(name, error, ReaderFailed)
        if _SILENT in str(error):
            tries = load_settings().llm_options.get("retries", RETRIES) + 1
            waited = f"{time.perf_counter() - start:.0f} s, {tries} {'try' if tries == 1 else 'tries'} at most"
            raise type(found)(f"{found}; it was waited for {waited}; {MORE_TIME}") from error
        raise found from error
    except Exception as error:  # the code of another package may raise anything
        raise ReaderFailed(f"{name}: {one_line(f'{type(error).__name__}: {error}', longest=300)}") from error
    return Reading(text, prompt_tokens, completion_tokens, time.perf_counter() - start)


def refused(error: ReaderFailed) -> bool:
    """Return whether a model failed at a prompt because that is longer than its window; it may answer others."""
    return isinstance(error.__cause__, BadBudget | OverWindow)


def failed(name: str, error: PrunusError, otherwise: type[EvalError] = SystemFailed) -> EvalError:
    """Return the error of a reader, or of a system whose model failed.

    :param name: of the reader or the system.
    :param otherwise: what is raised where no model outside failed.
    """
    if not isinstance(error, OutsideFailed):
        return otherwise(f"{name}: {error}")
    return ReaderFailed(f"{name}: {error}") if error.sent else Unreachable(f"{name}: {error}")


async def _reply(llm: LLM, messages: Sequence[Message], max_tokens: int) -> tuple[str, int, int]:
    parts: list[str] = []
    prompt_tokens = completion_tokens = 0
    async with aclosing(llm.stream(messages, max_tokens=max_tokens, temperature=0.0)) as events:  # type: ignore[type-var]
        async for event in events:
            if isinstance(event, TokenEvent):
                parts.append(event.text)
            elif isinstance(event, UsageEvent):
                prompt_tokens += event.usage.prompt_tokens
                completion_tokens += event.usage.completion_tokens
    return "".join(parts), prompt_tokens, completion_tokens
