"""Settings: the only file that reads the environment.

Order of precedence: keyword arguments > command line > ``PRUNUS_*`` > ``prunus.toml`` > defaults.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from .errors import BadInput

FILE: Final = "prunus.toml"
PREFIX: Final = "PRUNUS_"
_NOT_SETTINGS: Final = frozenset({"DATA", "ALL_EXTRAS", "REFERENCE"})
"""``PRUNUS_DATA`` tells tests and benchmarks where real data is, ``PRUNUS_ALL_EXTRAS`` that nothing may skip."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is in force for a process. Engine specs are ``name`` or ``name:model``.

    Lists are written ``["a", "b"]`` in ``prunus.toml`` and ``a,b`` in the environment; tables only in the file.

    :param scorer: scores blocks.
    :param fine: scores what the first of two stages left, as ``generative:MODEL``; '' for one stage.
    :param path_scorer: the language model of the scorer ``generative``, where its spec names none.
    :param embedder: embeds texts.
    :param reranker: scores pairs of question and text; '' for none.
    :param llm: the language model, as ``openai:gpt-4o-mini`` or ``http://localhost:8000/v1#model``; '' for none.
    :param tokenizer: counts tokens.
    :param extractor: chooses sentences; '' is ``tags`` where there is a language model, else ``sentences``.
    :param generator: composes the answer; '' is ``llm`` where there is a language model, else ``quotes``.
    :param search: providers of web search, separated by commas, as ``searxng:http://localhost:8888,wikipedia``; '' for
        none.
    :param planner: decides whether to search, and for what; '' is ``llm`` where there is a language model, else
        ``rules``.
    :param search_way: of several providers: ``merge`` asks all, ``first`` the next only where one fails or finds
        nothing.
    :param search_key: what is sent to the provider, where one is named; never shown.
    :param search_keys: the same by provider, as ``{"brave": "KEY"}``; never shown.
    :param search_endpoint: where the provider is, in place of its own address, where one is named.
    :param search_seconds: for one request.
    :param search_prices: USD for one request by provider, as ``{"brave": 0.005}``.
    :param clusterer, summarizer: how an index is built.
    :param store: where it is kept: ``file``, or ``postgres:ADDRESS``; the address is never shown.
    :param chunk_tokens: tokens of the chunks of a new index, about.
    :param summary_tokens: tokens of its summaries at most.
    :param tree: ``collection``: one tree over a new index, or ``document``: one over each document.
    :param llm_endpoint: where the model of ``openai:MODEL`` is served; '' is the service of that name.
    :param llm_key, embedder_key, reranker_key, path_key: what is sent to that service; never shown.
    :param tiktoken_folder: where the vocabularies of ``tiktoken:NAME`` lie; '' is a folder of ``home``.
    :param model_calls: whether language models may be called at all.
    :param threads: of local models; 0 leaves it to them.
    :param embed_cache_mb: vectors kept on disk between runs, in MiB; 0 keeps none.
    :param prices: USD per million tokens by model, as ``{"gpt-4o-mini": {"prompt": 0.15, "completion": 0.6}}``.
    :param llm_options: what a language model's engine takes beside its model.
    :param path_options: the same for ``path_scorer``, and ``prompt``: ``paths`` or ``htmlrag``.
    :param budget: tokens of evidence.
    :param max_files: files that a folder may hold.
    :param max_file_mb: size of one file or fetched page, in MiB.
    :param home: folder for what Prunus keeps between runs.
    :param robots: obey robots.txt.
    :param allow_hosts: hosts or networks inside that pages may come from; none by default.
    :param ports: ports that pages may come from.
    :param proxy: HTTP proxy for everything that goes out; it then resolves the names.
    :param ca_file: certificates that are trusted beside the public ones, PEM.
    :param user_agent: '' names Prunus, its version and its home.
    :param languages: Accept-Language of fetched pages.
    :param connect_seconds, read_seconds, total_seconds: limits of one page, in seconds.
    :param at_once, per_host: pages fetched at once, in all and from one host.
    :param delay: least pause between two requests to a host, in seconds.
    :param max_delay: a host whose robots.txt asks for longer pauses is not read.
    :param retries: further tries where a host is busy.
    :param cache_mb: fetched pages kept on disk, in MiB; 0 keeps none.
    :param snapshots_mb: pages that answers were made from, kept so that citations can be checked later, in MiB.
    :param browser: ``auto`` renders pages that are empty shells, ``always`` every page, ``never`` none.
    :param chromium: the browser's program; '' finds an installed one.
    """

    scorer: str = "hybrid"
    fine: str = ""
    path_scorer: str = ""
    embedder: str = "static"
    reranker: str = ""
    llm: str = ""
    tokenizer: str = "llama2"
    extractor: str = ""
    generator: str = ""
    search: str = ""
    planner: str = ""
    search_way: str = "merge"
    search_key: str = field(default="", repr=False)
    search_keys: Mapping[str, Any] = field(default_factory=dict, repr=False)
    search_endpoint: str = ""
    search_seconds: float = 15.0
    search_prices: Mapping[str, Any] = field(default_factory=dict)
    clusterer: str = "ward"
    summarizer: str = "extractive"
    store: str = field(default="file", repr=False)
    chunk_tokens: int = 100
    summary_tokens: int = 100
    tree: str = "collection"
    llm_endpoint: str = ""
    llm_key: str = field(default="", repr=False)
    embedder_key: str = field(default="", repr=False)
    reranker_key: str = field(default="", repr=False)
    path_key: str = field(default="", repr=False)
    model_calls: bool = True
    threads: int = 0
    embed_cache_mb: int = 0
    tiktoken_folder: str = ""
    prices: Mapping[str, Any] = field(default_factory=dict)
    llm_options: Mapping[str, Any] = field(default_factory=dict)
    path_options: Mapping[str, Any] = field(default_factory=dict)
    budget: int = 4096
    max_files: int = 10_000
    max_file_mb: int = 64
    home: str = "~/.prunus"
    robots: bool = True
    allow_hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = (80, 443, 8080, 8443)
    proxy: str = field(default="", repr=False)
    ca_file: str = ""
    user_agent: str = ""
    languages: str = ""
    connect_seconds: float = 10.0
    read_seconds: float = 20.0
    total_seconds: float = 60.0
    at_once: int = 16
    per_host: int = 4
    delay: float = 0.0
    max_delay: float = 60.0
    retries: int = 3
    cache_mb: int = 512
    snapshots_mb: int = 1024
    browser: str = "auto"
    chromium: str = ""

    @property
    def folder(self) -> Path:
        """``home`` as a path."""
        return Path(self.home).expanduser()


SECRETS: Final = frozenset(
    {"llm_key", "embedder_key", "reranker_key", "path_key", "search_key", "search_keys", "proxy"}
)
"""Settings whose values are never shown."""

ADDRESSED: Final = frozenset({"store"})
"""Settings that may hold an address with a password behind the name of an engine; only the name is shown."""

_CHOICES: Final = {
    "browser": ("auto", "always", "never"),
    "search_way": ("merge", "first"),
    "tree": ("collection", "document"),
}


def load_settings(
    overrides: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Read the settings that are in force.

    :param overrides: values that win over everything else; None values are left out.
    :param environment: by default the process's own.
    :param folder: where ``prunus.toml`` is looked for; by default the working folder.
    :raises BadInput: an unknown key, or a value of the wrong kind; the message names it.
    """
    values: dict[str, Any] = {}
    path = (folder or Path.cwd()) / FILE
    if path.is_file():
        try:
            values.update(tomllib.loads(path.read_text("utf-8")))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: not valid TOML ({error})", subject=str(path)) from error
        _check_keys(values, str(path))
    known = {one.name for one in fields(Settings)}
    for name, value in (os.environ if environment is None else environment).items():
        key = name.removeprefix(PREFIX).lower()
        if name.startswith(PREFIX) and key in known:
            values[key] = value
        elif name.startswith(PREFIX) and name.removeprefix(PREFIX) not in _NOT_SETTINGS:
            raise BadInput(f"{name}: no such setting; known: {', '.join(sorted(known))}", subject=name)
    values.update({key: value for key, value in (overrides or {}).items() if value is not None})
    _check_keys(values, "settings")
    return replace(Settings(), **{key: _typed(key, value) for key, value in values.items()})


def setting_origins(*, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> dict[str, str]:
    """Return where each setting that :func:`load_settings` reads comes from, for the doctor."""
    path = (folder or Path.cwd()) / FILE
    written = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    given = os.environ if environment is None else environment
    origins = {}
    for one in fields(Settings):
        variable = PREFIX + one.name.upper()
        named = next((name for name in given if name.startswith(PREFIX) and name.upper() == variable), "")
        origins[one.name] = named or (str(path) if one.name in written else "default")
    return origins


def _check_keys(values: Mapping[str, Any], where: str) -> None:
    """Refuse keys that no setting has."""
    known = {one.name for one in fields(Settings)}
    for key in values:
        if key not in known:
            raise BadInput(f"{where}: no such setting: {key}; known: {', '.join(sorted(known))}", subject=key)


def _typed(key: str, value: Any) -> Any:
    """Convert a value to the type of its setting."""
    default = getattr(Settings(), key)
    wanted = type(default)
    if wanted is tuple:
        return _list_of(key, value, type(default[0]) if default else str)
    if isinstance(value, str) and wanted in _READ:
        found = _READ[wanted](value.strip())
    elif wanted is float and type(value) is int:
        found = float(value)
    elif isinstance(value, wanted) and (wanted is bool) == (type(value) is bool):
        found = value
    else:
        found = value if wanted is dict and isinstance(value, Mapping) else None
    if found is None or (wanted in (int, float) and found < 0):
        shown = "it" if key in SECRETS | ADDRESSED else repr(value)
        raise BadInput(f"setting {key}: {shown} is not {_KINDS[wanted]}", subject=key)
    if key in _CHOICES and found not in _CHOICES[key]:
        raise BadInput(f"setting {key}: {value!r} is none of {', '.join(_CHOICES[key])}", subject=key)
    return found


def _list_of(key: str, value: Any, kind: type) -> tuple[Any, ...]:
    """Convert a list, or text with commas, to a tuple of one kind."""
    parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise BadInput(f"setting {key}: {value!r} is not a list", subject=key)
    read = [_whole(str(part)) if kind is int else part if isinstance(part, str) else None for part in parts]
    if None in read:
        raise BadInput(f"setting {key}: {value!r} is not a list of {_KINDS[kind]}", subject=key)
    return tuple(read)


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) else None


def _switch(text: str) -> bool | None:
    return {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }.get(text.lower())


_READ: Final[dict[type, Any]] = {int: _whole, float: _number, bool: _switch}
"""How a value that is written as text is read, by the type of its setting."""

_KINDS: Final = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text", dict: "a table of prunus.toml",
}  # fmt: skip
