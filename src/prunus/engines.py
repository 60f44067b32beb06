"""Makes the engines that settings and options name: one function a task. No other module picks an engine by name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .core.checked_engines import checked, declared, name_of
from .core.errors import BadInput, BadPage
from .core.options import Options
from .core.ports import Extractor, Format, SearchProvider, Segment
from .core.registry import (
    KINDS,
    class_constants,
    engine_class,
    engine_names,
    make_engine,
    needs_of,
    split_spec,
)
from .core.settings import FILE, Settings, load_settings
from .core.sync import run
from .core.text.near import did_you_mean
from .core.text.secrets import hide_logins, hide_secrets
from .core.types import Page
from .evidence.two_stage import Engines
from .pages.clean.parse import check_size
from .web.reader import LazyDoor

if TYPE_CHECKING:
    from .answer.find_pages import WebEngines
    from .answer.run import AnswerEngines
    from .models.meter import Meter, Metered
    from .record.player import Player
    from .record.recorder import Recorder


BY_MODEL: Final = {"planner": ("llm", "rules"), "extractor": ("tags", "sentences"), "generator": ("llm", "quotes")}
"""The default engines: with a language model, and without one."""

_A: Final = {"llm": "a language model", "path_scorer": "a path scorer"}
"""Names of kinds of engines in messages, where they differ from the setting's."""

NO_RERANKER: Final = "none"
"""Names no reranker, where the installed one would be used."""

_SHARED: Final = frozenset({"tokenizer", "embedder", "reranker", "llm"})
"""Kinds of engines that calls may share. A path scorer holds the page that it read last."""


# --- what each task needs --------------------------------------------------------------------------


def prune_engines(settings: Settings, options: Options | None = None) -> Engines:
    """Make the engines that choose evidence. An option wins over the setting of the same name.

    :raises UnknownEngine: a spec names no engine.
    :raises BadInput: an engine needs another engine that no setting names, or model calls are switched off.
    :raises MissingExtra: an engine needs a package that is not installed.
    """
    engines = EngineSet(settings, options)
    return Engines(**_for_evidence(engines), names=engines.names)


def answer_engines(
    settings: Settings,
    options: Options | None = None,
    *,
    web: bool = False,
    recorder: Recorder | Player | None = None,
    shared: SharedEngines | None = None,
) -> AnswerEngines:
    """Make the engines of an answer, and the spare engines that replace failed engines of the model.

    :param web: the web is searched, too.
    :param recorder: records the replies from outside of Prunus, or replays them.
    :raises UnknownEngine, BadInput, MissingExtra: see :func:`prune_engines`; no search provider is named.
    """
    from .answer.run import AnswerEngines, Spare

    engines = EngineSet(settings, options, recorder, shared)
    evidence = _for_evidence(engines)
    extractor, generator = engines.get("extractor"), engines.get("generator")
    names = engines.names
    llm = engines.get("llm") if "llm" in names else None
    spare = None
    if llm is not None:
        spare = Spare(_sentences(engines, 5), make_engine("generator", "quotes"))
    return AnswerEngines(
        **evidence,
        names=names,
        extractor=extractor,
        generator=generator,
        llm=llm,
        embedder=engines.get("embedder"),
        spare=spare,
        meter=engines.meter,
        web=_for_the_web(engines) if web else None,
        min_confidence=_least_confidence(engines),
    )


def _least_confidence(engines: EngineSet) -> float:
    """Return the chance of a passage below which there is no answer without a model.

    :raises BadInput: it is no chance.
    """
    named = engines.options.min_confidence
    least = engines.settings.min_confidence if named is None else named
    if not isinstance(least, int | float) or not 0 <= least <= 1:
        raise BadInput(f"min_confidence is a chance from 0 to 1, not {least!r}", subject="min_confidence")
    return least


def web_engines(settings: Settings, options: Options | None = None) -> WebEngines:
    """Make the engines that find and read pages for a question.

    :raises BadInput: no search provider is named, or a provider cannot be made.
    """
    return _for_the_web(EngineSet(settings, options))


def search_engine(settings: Settings, options: Options | None = None) -> SearchProvider:
    """Return the named search providers as one provider.

    :raises BadInput: no provider is named, or a provider cannot be made.
    """
    engine: SearchProvider = EngineSet(settings, options).get("search")
    return engine


def one_engine(
    kind: str, settings: Settings, options: Options | None = None, shared: SharedEngines | None = None
) -> Any:
    """Return the engine of one kind, as an embedder.

    :param shared: engines that other calls with the same settings share.
    :raises UnknownEngine, BadInput, MissingExtra: see :func:`prune_engines`.
    """
    return EngineSet(settings, options, shared=shared).get(kind)


def _for_evidence(engines: EngineSet) -> dict[str, Any]:
    scorer, second, first = stages_of(engines.settings, engines.options)
    engines.chosen["scorer"] = scorer
    made = {"counter": engines.get("tokenizer"), "scorer": engines.get("scorer"), "chance": _chance(engines)}
    return made | {"second_scorer": engines.second_scorer(second) if second else None, "first": first}


def _chance(engines: EngineSet) -> Callable[[str, Sequence[Segment]], float]:
    """Return the function that tells the chance that the best of several segments answers, without a model."""

    def chance(question: str, tagged: Sequence[Segment]) -> float:
        choices = run(lambda: _sentences(engines).extract(question, tagged))
        return max((choice.confidence or 0.0 for choice in choices or ()), default=0.0)

    return chance


def _sentences(engines: EngineSet, most: int = 0) -> Extractor:
    """Return the extractor that needs no language model.

    :param most: sentences at most; 0 leaves it to the extractor.
    """
    reranker = engines.get("reranker") if engines.named("reranker") else None
    spec = f"sentences:{most}" if most else "sentences"
    extractor: Extractor = make_engine("extractor", spec, embedder=engines.get("embedder"), reranker=reranker)
    return extractor


def stages_of(settings: Settings, options: Options) -> tuple[Any, Any, str]:
    """Return the scorer of the only or the first stage, the scorer of the second stage or '', and when the first runs.

    A scorer that reads all blocks in one prompt is always the second stage. Where no scorer is named for the first
    stage, the default scorer runs before it on large pages, and chooses the blocks that fit the model's window.

    :raises BadInput: two stages are wanted without a second scorer, or the number of stages is not 0, 1 or 2.
    """
    scorer, second_scorer = options.scorer or settings.scorer, options.second_scorer or settings.second_scorer
    if options.stages not in (0, 1, 2):
        raise BadInput(f"there are 1 or 2 stages, not {options.stages}; 0 leaves it to Prunus", subject="stages")
    first = {0: "large", 1: "never", 2: "always"}[options.stages]
    if options.stages == 1 and not options.second_scorer:
        second_scorer = ""  # a call that wants one stage overrides the second scorer of the settings
    if second_scorer:
        return scorer, second_scorer, first
    kind = engine_class("scorer", scorer) if isinstance(scorer, str) else scorer
    if declared(kind, "scorer", "one_prompt") or (options.stages == 2 and declared(kind, "scorer", "second_stage")):
        return Settings().scorer, scorer, first
    reranker = options.reranker or settings.reranker or installed_reranker()
    if options.stages == 2 and reranker and reranker != NO_RERANKER:
        return scorer, "crossencoder", first
    if options.stages == 2:
        raise BadInput(
            f"two stages need a second scorer, and {name_of(scorer)} is none: name one, as second_scorer = "
            "generative:MODEL, or a reranker",
            subject="second_scorer",
        )
    return scorer, "", first


def _for_the_web(engines: EngineSet) -> WebEngines:
    from .answer.find_pages import WebEngines, local_now
    from .web.reader import HitReader

    settings, options, recorder = engines.settings, engines.options.web, engines.recorder
    specs = search_specs(engines.named("search"))
    folders = [split_spec(spec)[1] for spec in specs if split_spec(spec)[0] == "local"]
    if isinstance(folder := getattr(engines.options.search, "folder", None), Path):
        folders.append(str(folder))
    if recorder is not None and not recorder.reaches("search"):
        folders = []  # a recorded run opens no folder that only its file names
    pages = HitReader(settings, [Path(folder).expanduser() for folder in folders if folder]).pages
    by_reranker = options.ranking == "reranker"
    return WebEngines(
        provider=engines.get("search"),
        planner=engines.get("planner"),
        spare_planner=make_engine("planner", "rules"),
        pages=pages if recorder is None else recorder.pages(pages),
        to_html=formats(settings).to_html,
        rank_with=engines.get("reranker", "ranking by a reranker") if by_reranker else engines.get("embedder"),
        price=sum(_price_of_search(settings, split_spec(spec)[0]) for spec in specs),
        names={"planner": engines.named("planner"), "search": hide_secrets(",".join(specs))},
        clock=local_now if recorder is None else recorder.clock(local_now),
        meter=engines.meter,
    )


# --- making them -----------------------------------------------------------------------------------


class SharedEngines:
    """Engines that many calls with the same settings share: a model is loaded once, and asked once for its window."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}
        self._lock = threading.RLock()  # an engine may need another one

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the engine of this key, made at the first call."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]


class EngineSet:
    """The engines of one call by kind. Each is made once, when it is first needed, with the engines that it needs.

    ``chosen`` holds the spec of each kind, or the engine itself where the options hold an object.

    :param recorder: records the replies from outside of Prunus, or replays them.
    :param shared: engines that other calls with the same settings share.
    """

    def __init__(
        self,
        settings: Settings,
        options: Options | None = None,
        recorder: Recorder | Player | None = None,
        shared: SharedEngines | None = None,
    ) -> None:
        self.settings, self.options = settings, options or Options()
        self.recorder, self._shared = recorder, shared
        self.chosen = _chosen(settings, self.options)
        self._made: dict[str, Any] = {}

    def named(self, kind: str) -> str:
        """Return the spec or the name of the engine of a kind; '' where none is named."""
        return name_of(self.chosen[kind])

    @property
    def names(self) -> dict[str, str]:
        """The names of the engines that were made, to show: without passwords and keys."""
        return {kind: hide_secrets(self.named(kind)) for kind in self._made}

    @cached_property
    def meter(self) -> Meter:
        """The tokens, money and seconds of the whole call."""
        from .models.meter import Meter  # here: most calls ask no model

        return Meter(self.options.limits)

    def get(self, kind: str, needed_by: str = "") -> Any:
        """Return the engine of a kind.

        :param needed_by: the spec of the engine that needs it, for the error message.
        :raises BadInput: no engine of this kind is named, or model calls are switched off.
        """
        if kind in self._made:
            return self._made[kind]
        if kind == "path_scorer" and split_spec(needed_by)[1]:  # generative:MODEL names it
            self.chosen[kind] = _path_spec(split_spec(needed_by)[1])
        if kind != "search" and not self.named(kind):
            raise BadInput(f"{needed_by or kind} needs {_A.get(kind, f'a {kind}')}: set {kind} in {FILE}", subject=kind)
        self._made[kind] = None  # an engine that needs an engine of its own kind gets None
        try:
            self._made[kind] = engine = self._new(kind, self.chosen[kind])
        except BaseException:
            del self._made[kind]  # so that the next call raises the same error
            raise
        return engine

    def second_scorer(self, choice: Any) -> Any:
        """Return the scorer of the second stage; a scorer that needs a cheap scorer gets that of the first stage.

        :param choice: its spec, or the scorer as an object.
        """
        if isinstance(choice, str) and split_spec(choice)[1] and "path_scorer" in needs_of("scorer", choice):
            self._made.pop("path_scorer", None)  # the first stage may use another model
        self.chosen["second_scorer"] = choice
        self._made["second_scorer"] = engine = self._new("scorer", choice)
        return engine

    def _new(self, kind: str, choice: Any) -> Any:
        def make() -> Any:
            if kind == "search":
                return _search_providers(self.settings, choice)
            spec, endpoint = _address(kind, name_of(choice))
            is_object = not isinstance(choice, str)
            _check_calls(self.settings, kind, choice if is_object else engine_class(kind, spec), spec)
            if is_object:
                return checked(kind, choice)
            required = needs_of(kind, spec, required=True)
            needed = [other for other in needs_of(kind, spec) if self.chosen[other] or other in required]
            others = {other: self.get(other, spec) for other in needed} | _own_settings(self.settings, kind, endpoint)
            if self._shared is None or kind not in _SHARED or not all(isinstance(self.chosen[n], str) for n in needed):
                return make_engine(kind, spec, **others)
            key = (kind, spec, endpoint, *(self.chosen[other] for other in needed))
            return self._shared.get(key, lambda: make_engine(kind, spec, **others))

        if kind == "search" and isinstance(choice, str):
            choice = ",".join(search_specs(choice))
        if self.recorder is None:
            engine = make()
        else:
            from .record.player import intercepted  # here: most calls are neither recorded nor replayed

            engine = intercepted(self.recorder, kind, choice, make)
        return self._metered(engine) if kind == "llm" else engine

    def _metered(self, llm: Any) -> Metered:
        """Return a language model whose calls are counted and kept within the limits of the whole call."""
        from .models.meter import Metered, price_of, prices_from

        counter = None if llm.count is not None else self.get("tokenizer")
        return Metered(llm, self.meter, counter, price_of(prices_from(self.settings.prices), self.named("llm"), llm))


def _chosen(settings: Settings, options: Options) -> dict[str, Any]:
    """Return the spec of each kind of engine, or the object that the options hold."""
    chosen = {kind: getattr(options, kind, "") or str(getattr(settings, kind)) for kind in KINDS if kind != "format"}
    if isinstance(chosen["reranker"], str) and chosen["reranker"] in ("", NO_RERANKER):
        chosen["reranker"] = "" if chosen["reranker"] else installed_reranker()
    by_model = bool(options.llm) or (bool(settings.llm) and _may_call(settings))
    for kind, (with_model, without) in BY_MODEL.items():
        chosen[kind] = chosen[kind] or (with_model if by_model else without)
    return chosen


def _may_call(settings: Settings) -> bool:
    """Tell whether the model of the settings may be called; otherwise the engines without a model are used."""
    spec, _ = _address("llm", settings.llm)
    known = split_spec(spec)[0] in engine_names("llm")
    return settings.model_calls or not (known and declared(engine_class("llm", spec), "llm", "real"))


def _check_calls(settings: Settings, kind: str, engine: Any, spec: str) -> None:
    """Refuse an engine that calls a model, where model calls are switched off."""
    if not settings.model_calls and kind in ("llm", "path_scorer") and declared(engine, kind, "real"):
        raise BadInput("model calls are switched off (model_calls); scripted: still works", subject=spec)


def _address(kind: str, spec: str) -> tuple[str, str]:
    """Return the spec of an engine, and the address of its server; the spec of a language model may hold both."""
    if kind == "llm" and split_spec(spec)[0] == "http":
        _refuse_login(kind, spec)
        base, _, model = spec.partition("#")
        return f"openai:{model}", base
    return spec, ""


def _own_settings(settings: Settings, kind: str, endpoint: str) -> dict[str, Any]:
    """Return the settings for engines of a kind, by the names of their constructors' parameters."""
    own: dict[str, Any] = {"door": LazyDoor(settings)}
    if kind in ("embedder", "reranker"):
        own |= {"threads": settings.threads, "key": getattr(settings, f"{kind}_key")}
        own["cache_folder"] = str(settings.folder / "models")
    elif kind == "llm":
        own |= {"key": settings.llm_key, "endpoint": endpoint, "options": settings.llm_options}
    elif kind == "path_scorer":
        own["key"] = settings.path_key
        own["options"] = {name: value for name, value in settings.path_options.items() if name != "prompt"}
    elif kind in ("planner", "extractor"):
        own["seconds"] = settings.plan_seconds if kind == "planner" else settings.extract_seconds
        own["summaries"] = settings.extract_summaries
    elif kind == "scorer":
        own["prompt"] = str(settings.path_options.get("prompt", ""))
    elif kind == "tokenizer":
        own["folder"] = settings.tiktoken_folder or str(settings.folder / "tiktoken")
    return own


def _refuse_login(kind: str, spec: str) -> None:
    """Refuse a login in an address before the spec is split: a password may hold what separates its parts.

    :raises BadInput: an address holds a user name or a password.
    """
    if hide_logins(spec) != spec:
        raise BadInput(f"{kind}: an address may hold no user name or password; give the key as a setting", subject=kind)


def _path_spec(model: str) -> str:
    """Return the path scorer of ``generative:MODEL``: ``transformers``, unless MODEL begins with another one's name."""
    return model if split_spec(model)[0] in engine_names("path_scorer") else f"transformers:{model}"


def installed_reranker() -> str:
    """Return the spec of the reranker that is used where none is named: ``prunus`` where its runtime is installed."""
    return "prunus" if find_spec("onnxruntime") else ""


# --- search providers ------------------------------------------------------------------------------


def search_specs(named: str) -> list[str]:
    """Return the specs of the search providers.

    :param named: the specs, separated by commas.
    :raises BadInput: no provider is named, or an address holds a login.
    """
    _refuse_login("search", named)
    specs = [spec.strip() for spec in named.split(",") if spec.strip()]
    if not specs:
        there = ", ".join(engine_names("search"))
        raise BadInput(f"no search is named: give --search, or set search in {FILE}; there are: {there}")
    return specs


def search_provider(settings: Settings, spec: str, alone: bool = True) -> SearchProvider:
    """Return one search provider.

    :param alone: it is the only provider; then ``search_key`` and ``search_endpoint`` are its own.
    :raises BadInput: its key in the settings is not text, or its price is no number.
    """
    name = split_spec(spec)[0]
    key = settings.search_keys.get(name, settings.search_key if alone else "")
    if not isinstance(key, str):
        raise BadInput(f"setting search_keys: {name}: the key is not text", subject="search_keys")
    own: dict[str, Any] = {"door": LazyDoor(settings), "key": key, "price": _price_of_search(settings, name)}
    own |= {"seconds": settings.search_seconds, "endpoint": settings.search_endpoint if alone else ""}
    if name == "local":
        own |= {"reader": formats(settings).to_html, "suffixes": tuple(formats(settings).suffixes)}
    provider: SearchProvider = make_engine("search", spec, **own)
    return provider


def _search_providers(settings: Settings, choice: Any) -> SearchProvider:
    """Return the chosen search providers as one provider."""
    from .web.search._merge import Merged

    if isinstance(choice, str):
        specs = search_specs(choice)
        providers = [search_provider(settings, spec, alone=len(specs) == 1) for spec in specs]
    else:
        providers = [checked("search", choice)]
    way: Any = settings.search_way
    return Merged(providers, way, settings.search_seconds * 2)


def _price_of_search(settings: Settings, name: str) -> float:
    """Return the price of one request to a search provider, in USD.

    :raises BadInput: the settings give no number.
    """
    price = settings.search_prices.get(name, 0.0)
    if not isinstance(price, int | float) or isinstance(price, bool) or not 0 <= price < 1e6:
        raise BadInput(f"setting search_prices: {name}: {price!r} is no price in US dollars", subject=name)
    return float(price)


# --- formats ---------------------------------------------------------------------------------------


@cache
def _formats(specs: tuple[str, ...], shown_only: bool) -> Formats:
    return Formats(specs, shown_only)


def formats(settings: Settings | None = None) -> Formats:
    """Return the formats that can be read: those of Prunus and of other packages, and those that the settings name.

    :param settings: by default those in force.
    """
    settings = settings or load_settings()
    return _formats(settings.formats, settings.shown_only)


class Formats:
    """All format engines; the content of a page, its name and its media type choose one. Only that one is loaded.

    :param specs: formats in files, as ``path/to/file.py:Class``; they come before the others.
    :param shown_only: read only what documents show: no speaker notes, no comments, no hidden sheets and slides.
    """

    def __init__(self, specs: Sequence[str] = (), shown_only: bool = False) -> None:
        self._specs = tuple(specs)
        self._shown_only = shown_only
        self._made: dict[str, Format] = {}

    @cached_property
    def _claims(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """The suffixes and the media types of each format."""
        names = [*engine_names("format"), *self._specs]
        return {name: class_constants("format", name, ("suffixes", "media_types")) for name in names}

    @cached_property
    def _known(self) -> dict[str, str]:
        """The format of each suffix and media type."""
        return {key: name for name, claims in self._claims.items() for key in (*claims[0], *claims[1])}

    @property
    def suffixes(self) -> list[str]:
        """Suffixes of the files that can be read."""
        return sorted({suffix for suffixes, _ in self._claims.values() for suffix in suffixes})

    def media_type(self, kind: str) -> str:
        """Return the media type that a kind of document is read by.

        :param kind: a media type, a suffix or the name of a format, as ``text/csv``, ``.csv`` and ``csv``.
        :raises BadInput: no format is known by that name.
        """
        import mimetypes  # here: most calls name no type

        wanted = kind.strip().lower()
        for name, (suffixes, media_types) in self._claims.items():
            if wanted in {*media_types, *suffixes, *(suffix[1:] for suffix in suffixes), name}:
                guessed = mimetypes.guess_type(f"page.{wanted.lstrip('.')}")[0]  # a format may have several, as tsv
                exact = [media_type for media_type in media_types if media_type in (wanted, guessed)]
                return (exact or [*media_types, ""])[0]
        raise BadInput(
            f"no format is called {kind!r}; there are: {', '.join(self._claims)}{did_you_mean(wanted, self._claims)}",
            subject=kind,
        )

    def file_suffix(self, page: Page) -> str:
        """Return the suffix by which a page's file is found and read again, as ``.html``.

        :raises BadPage: the content is empty, or of a kind that no format reads.
        """
        from .pages.clean.parse import is_binary  # here: only `prunus fetch` writes pages to files
        from .pages.formats._sniff import suffix_of

        name = self._name_of(page) or "html"
        if name in ("html", "text") and isinstance(page.content, bytes) and is_binary(page.content):
            raise BadPage(f"{page.url or 'page'}: this is binary data, which no format here reads", subject=page.url)
        own, suffixes = suffix_of(page.final_url or page.url), self._claims[name][0]
        return own if own in suffixes else suffixes[0]

    def to_html(self, page: Page) -> str | bytes:
        """Return a page as HTML; its content decides the format first, then its name and its media type.

        :raises BadPage: the content is empty, or of an unknown format.
        """
        name = self._name_of(page)
        if name == "":
            return page.content
        if name not in self._made:
            self._made[name] = make_engine("format", name)
        html = self._made[name].to_html(page)
        if self._shown_only and isinstance(html, str) and html is not page.content:
            from .pages.asides import without_asides  # here: most calls read all of a document

            return without_asides(html)
        return html

    def _name_of(self, page: Page) -> str:
        """Return the name of a page's format; '' for a page that is plainly HTML.

        :raises BadPage: the content is empty, or of an unknown format.
        """
        if _is_plainly_html(page):  # most pages are, and then no table of formats is made
            return ""
        check_size(page.content, page.url or "page")
        if not page.content or page.content.isspace():
            raise BadPage(f"{page.url or 'page'}: the page is empty", subject=page.url)
        from .pages.formats._sniff import sniff, suffix_of

        name = page.final_url or page.url
        if not name and not page.media_type:  # the content alone decides: no table of formats is made
            return sniff(page.content, "", "")
        own = self._known.get(suffix_of(name)) or self._known.get(page.media_type)
        if own in self._specs:
            return str(own)  # the operator's format wins over what the content looks like
        return sniff(page.content, name, page.media_type, self._known)


def _is_plainly_html(page: Page) -> bool:
    """Tell whether a page begins like a web page, and its media type does not contradict."""
    kind = page.media_type.partition(";")[0].strip().lower()
    if kind not in ("", "text/html") or (page.final_url or page.url).endswith((".xhtml", ".xht")):
        return False
    head = page.content[:15]
    start = head.lower() if isinstance(head, str) else head.lower().decode("latin-1")
    return start.startswith(("<!doctype html", "<html>", "<html "))
