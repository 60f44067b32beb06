"""The settings of a process, and the only code that reads the environment.

Order of precedence: keyword arguments > command line > ``PRUNUS_*`` > ``prunus.toml`` > defaults.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from .errors import BadInput
from .text.near import did_you_mean
from .trust import check_stranger

FILE: Final = "prunus.toml"
PREFIX: Final = "PRUNUS_"
_NOT_SETTINGS: Final = frozenset({"DATA", "ALL_EXTRAS", "REFERENCE"})
"""Variables of tests and benchmarks: ``PRUNUS_DATA`` is a folder of real data, ``PRUNUS_ALL_EXTRAS`` forbids skips."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a process. Engine specs are ``name`` or ``name:model``.

    Lists are written ``["a", "b"]`` in ``prunus.toml`` and ``a,b`` in the environment; tables only in the file.

    :param scorer: engine that scores blocks.
    :param second_scorer: engine that scores the blocks that the first of two stages kept, as ``generative:MODEL``; ''
        for one stage.
    :param path_scorer: the language model of the scorer ``generative``, where its spec names none.
    :param embedder: engine that embeds texts.
    :param reranker: engine that scores pairs of question and text; '' for ``prunus`` where its weights are installed,
        ``none`` for none.
    :param llm: the language model, as ``openai:gpt-4o-mini`` or ``http://localhost:8000/v1#model``; '' for none.
    :param tokenizer: engine that counts tokens.
    :param extractor: engine that chooses sentences, ``sentences:3`` at most three; '' is ``tags`` where there is a
        language model, else ``sentences``.
    :param generator: engine that writes the answer; '' is ``llm`` where there is a language model, else ``quotes``.
    :param search: providers of web search, separated by commas, as ``searxng:http://localhost:8888,wikipedia``; '' for
        none.
    :param planner: engine that decides whether to search, and with which queries; '' is ``llm`` where there is a
        language model, else ``rules``.
    :param search_way: how several providers are used: ``merge`` queries all, ``first`` queries the next one only where
        a provider fails or finds nothing.
    :param search_key: API key of the search provider, where ``search`` names just one; never shown.
    :param search_keys: API keys by provider, as ``{"brave": "KEY"}``; never shown.
    :param search_endpoint: address of the search provider, where ``search`` names just one; '' is its public address.
    :param search_seconds: timeout of one search request, in seconds.
    :param search_prices: USD for one request by provider, as ``{"brave": 0.005}``.
    :param web_options: further options of a web search, the fields of ``prunus.WebOptions`` that no keyword or command
        line sets, as ``{"read": 40, "count": 20, "ranking": "paper", "topic": "news", "safe_search": false}``.
    :param plan_seconds: time for a plan by a language model, in seconds; after it the rules plan.
    :param extract_seconds: time for a language model to read one part of a page, in seconds; after it the part is lost.
    :param extract_summaries: the extractor ``tags`` lets the model write a short summary before each tag (Instruction-A
        of Internet-SAG §4.2), at the cost of more tokens; the summaries are not kept.
    :param clusterer: engine that groups the nodes of an index layer.
    :param summarizer: engine that summarises each group.
    :param store: where an index is kept: ``file``, ``postgres:ADDRESS``, whose address is never shown, or
        ``lance:PLACE``, a folder or an address of object storage.
    :param exact_nodes: most nodes of an index of the stores ``file`` and ``lance`` that each question scores one and
        all; a larger one is searched approximately, in much less time.
    :param chunk_tokens: target size of a chunk of a new index, in tokens.
    :param summary_tokens: tokens of a summary of a new index at most.
    :param tree: ``collection`` builds one tree over a new index, ``document`` one tree for each document.
    :param llm_key, embedder_key, reranker_key, path_key: API key of the service of that engine; never shown.
    :param tiktoken_folder: folder of the vocabularies of ``tiktoken:NAME``; '' is a folder of ``home``.
    :param model_calls: whether language models may be called at all.
    :param threads: threads of local models; 0 leaves the number to the model's runtime.
    :param prices: USD per million tokens by model, as ``{"gpt-4o-mini": {"prompt": 0.15, "completion": 0.6}}``.
    :param llm_options: further options of the language model's engine.
    :param path_options: further options of ``path_scorer``, and ``prompt``: ``paths``, ``htmlrag``,
        ``htmlrag_released`` or ``bare``; by default the one that the model was trained with.
    :param budget: token budget of the evidence.
    :param min_confidence: chance that a quote answers the question, 0 to 1, below which there is no answer without a
        model; 0 always answers.
    :param formats: formats of documents in files of your own, as ``path/to/file.py:Class``, separated by commas; for
        their suffixes and media types they come before those of Prunus.
    :param shown_only: read only what documents show: no speaker notes, no comments, no hidden sheets and slides.
    :param max_files: files that a folder may hold at most.
    :param max_file_mb: size of one file or fetched page, in MiB.
    :param home: folder for caches, snapshots and models that Prunus keeps between runs; where it cannot be written,
        Prunus warns and keeps no pages.
    :param robots: obey robots.txt.
    :param allow_hosts: internal hosts or networks from which pages may be fetched; none by default.
    :param ports: ports from which pages may be fetched.
    :param proxy: HTTP proxy for all requests; the proxy then resolves host names.
    :param ca_file: PEM file of certificates that are trusted beside the public ones.
    :param user_agent: User-Agent of requests; '' names Prunus, its version and its home page.
    :param languages: Accept-Language of fetched pages.
    :param connect_seconds, read_seconds, total_seconds: timeouts of one page: to connect, between two reads, in all.
    :param at_once, per_host: pages fetched at once, in all and from one host.
    :param delay: least pause between two requests to a host, in seconds.
    :param retries: retries where a host is busy.
    :param cache_mb: size of the cache of fetched pages, in MiB; 0 for no cache.
    :param snapshots_mb: size of the store of cited pages, kept so that citations can be checked later, in MiB.
    :param browser: ``auto`` renders pages that are empty without scripts, ``always`` every page, ``never`` none.
    :param serve: options of ``prunus serve``, as ``{"port": 9000, "indexes": {"handbook": "indexes/handbook"}}``.
    :param serve_state: file of the keys and counts of ``prunus serve``, or ``postgres:ADDRESS``, which is never shown;
        '' is ``serve.db`` in ``home``.
    :param serve_index_home: folder of the indexes that clients of ``prunus serve`` make, or ``postgres:ADDRESS``, which
        is never shown; '' lets clients make none.
    :param chromium: path of the browser's program; '' looks for an installed one.
    """

    scorer: str = "trees"
    second_scorer: str = ""
    path_scorer: str = ""
    embedder: str = "static"
    reranker: str = ""
    llm: str = ""
    tokenizer: str = "smollm2"
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
    web_options: Mapping[str, Any] = field(default_factory=dict)
    plan_seconds: float = 30.0
    extract_seconds: float = 60.0
    extract_summaries: bool = False
    clusterer: str = "ward"
    summarizer: str = "extractive"
    store: str = field(default="file", repr=False)
    exact_nodes: int = 50_000
    chunk_tokens: int = 100
    summary_tokens: int = 100
    tree: str = "collection"
    llm_key: str = field(default="", repr=False)
    embedder_key: str = field(default="", repr=False)
    reranker_key: str = field(default="", repr=False)
    path_key: str = field(default="", repr=False)
    model_calls: bool = True
    threads: int = 0
    tiktoken_folder: str = ""
    prices: Mapping[str, Any] = field(default_factory=dict)
    llm_options: Mapping[str, Any] = field(default_factory=dict)
    path_options: Mapping[str, Any] = field(default_factory=dict)
    budget: int = 4096
    min_confidence: float = 0.2
    formats: tuple[str, ...] = ()
    shown_only: bool = False
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
    retries: int = 3
    cache_mb: int = 512
    snapshots_mb: int = 1024
    browser: str = "auto"
    chromium: str = ""
    serve: Mapping[str, Any] = field(default_factory=dict)
    serve_state: str = field(default="", repr=False)
    serve_index_home: str = field(default="", repr=False)

    @property
    def folder(self) -> Path:
        """``home`` as a path."""
        return Path(self.home).expanduser()


SECRETS: Final = frozenset(
    {"llm_key", "embedder_key", "reranker_key", "path_key", "search_key", "search_keys", "proxy"}
)
"""Settings whose values are never shown."""

ADDRESSED: Final = frozenset({"store", "serve_state", "serve_index_home"})
"""Settings whose value may hold an address with a password behind the engine's name; only the name is shown."""

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
    """Read the settings from ``prunus.toml``, the environment and the overrides.

    :param overrides: values that win over everything else; None values are left out.
    :param environment: environment variables; by default those of the process.
    :param folder: folder of ``prunus.toml``; by default the working folder.
    :raises BadInput: unknown key, value of the wrong kind, a file that is not valid TOML, or one that is not trusted;
        the message names it.
    """
    path = (folder or Path.cwd()) / FILE
    variables = os.environ if environment is None else environment
    named = tuple((name, variables[name]) for name in variables if name.startswith(PREFIX))
    if not overrides and not path.is_file():
        return _of_environment(named)
    own, content = _read_file(path) if path.is_file() else ({}, b"")
    users = _of_variables(named)
    users.update({key: value for key, value in (overrides or {}).items() if value is not None})
    values = own | users
    _check_keys(values, "settings")
    in_force = {key: value for key, value in own.items() if key not in users}
    if in_force:
        check_stranger(path, content, in_force, values, state_folder(environment))
    return replace(Settings(), **{key: _typed(key, value) for key, value in values.items()})


@lru_cache(maxsize=8)  # cleaning a page reads the settings; whoever changes the environment over and over is slower
def _of_environment(named: tuple[tuple[str, str], ...]) -> Settings:
    """Return the settings of a process without a file and without overrides."""
    return replace(Settings(), **{key: _typed(key, value) for key, value in _of_variables(named).items()})


def _of_variables(named: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the settings that variables name, as text.

    :raises BadInput: a variable names no setting.
    """
    users: dict[str, Any] = {}
    known = {setting.name for setting in fields(Settings)}
    for name, value in named:
        key = name.removeprefix(PREFIX).lower()
        if key in known:
            users[key] = value
        elif name.removeprefix(PREFIX) not in _NOT_SETTINGS:
            hint = did_you_mean(key, known)
            raise BadInput(f"{name}: no such setting; known: {', '.join(sorted(known))}{hint}", subject=name)
    return users


def setting_origins(*, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> dict[str, str]:
    """Return for each setting the variable or file that sets it, or ``default``, for ``prunus doctor``."""
    path = (folder or Path.cwd()) / FILE
    in_file = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    variables = os.environ if environment is None else environment
    origins = {}
    for setting in fields(Settings):
        wanted = PREFIX + setting.name.upper()
        variable = next((name for name in variables if name.startswith(PREFIX) and name.upper() == wanted), "")
        origins[setting.name] = variable or (str(path) if setting.name in in_file else "default")
    return origins


def state_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the user's ``home``: that of the environment, or the default; never that of a file."""
    variables = os.environ if environment is None else environment
    return Path(variables.get(f"{PREFIX}HOME") or Settings().home).expanduser()


def _read_file(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the settings of a file, and its content.

    :raises BadInput: it is not valid TOML, or has an unknown key.
    """
    content = path.read_bytes()
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not valid TOML ({error})", subject=str(path)) from error
    _check_keys(values, str(path))
    return values, content


def _check_keys(values: Mapping[str, Any], where: str) -> None:
    """Refuse keys that are not settings.

    :raises BadInput: an unknown key.
    """
    known = {setting.name for setting in fields(Settings)}
    for key in values:
        if key not in known:
            hint = did_you_mean(key, known)
            raise BadInput(f"{where}: no such setting: {key}; known: {', '.join(sorted(known))}{hint}", subject=key)


def _typed(key: str, value: Any) -> Any:
    """Convert a value to the type of its setting.

    :raises BadInput: the value has the wrong type, is negative, or is not one of the setting's choices.
    """
    default = getattr(Settings(), key)
    wanted = type(default)
    if wanted is tuple:
        return _list_of(key, value, type(default[0]) if default else str)
    if isinstance(value, str) and wanted in _READERS:
        result = _READERS[wanted](value.strip())
    elif wanted is float and type(value) is int:
        result = float(value)
    elif isinstance(value, wanted) and (wanted is bool) == (type(value) is bool):  # bool is a subclass of int
        result = value
    else:
        result = value if wanted is dict and isinstance(value, Mapping) else None
    if result is None or (wanted in (int, float) and result < 0):
        shown = "it" if key in SECRETS | ADDRESSED else repr(value)
        raise BadInput(f"setting {key}: {shown} is not {_KINDS[wanted]}", subject=key)
    if key in _CHOICES and result not in _CHOICES[key]:
        hint = did_you_mean(str(value), _CHOICES[key])
        raise BadInput(f"setting {key}: {value!r} is not one of {', '.join(_CHOICES[key])}{hint}", subject=key)
    return result


def _list_of(key: str, value: Any, kind: type) -> tuple[Any, ...]:
    """Convert a list, or text with commas, to a tuple of numbers or texts."""
    parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise BadInput(f"setting {key}: {value!r} is not a list", subject=key)
    read = [_read_whole(str(part)) if kind is int else part if isinstance(part, str) else None for part in parts]
    if None in read:
        raise BadInput(f"setting {key}: {value!r} is not a list of {_KINDS[kind]}", subject=key)
    return tuple(read)


def _read_whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def _read_number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) else None


def _read_switch(text: str) -> bool | None:
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


_READERS: Final[dict[type, Any]] = {int: _read_whole, float: _read_number, bool: _read_switch}
"""Functions that read a value from text, by the type of its setting."""

_KINDS: Final = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text", dict: "a table of prunus.toml",
}  # fmt: skip
