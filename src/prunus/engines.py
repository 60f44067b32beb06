"""Makes the engines that settings and options name. No other module picks an engine by name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from .core.checked_engines import adopted, declared
from .core.errors import BadInput, BadPage
from .core.options import Options
from .core.ports import Format, SearchProvider
from .core.registry import (
    KINDS,
    class_constants,
    engine_class,
    engine_names,
    is_built_in,
    make_engine,
    needs_of,
    split_spec,
)
from .core.settings import FILE, Settings, load_settings
from .core.text.near import did_you_mean
from .core.text.secrets import hide_logins, hide_secrets
from .core.types import Page
from .evidence.engines import Engines, Spare
from .pages.clean.parse import check_size

if TYPE_CHECKING:
    from .answer.find_pages import WebEngines
    from .models.meter import Meter, Metered, Price
    from .record.player import Player
    from .record.recorder import Recorder


BY_MODEL: Final = {"planner": ("llm", "rules"), "extractor": ("tags", "sentences"), "generator": ("llm", "quotes")}
"""The default engines: with a language model, and without one."""

_A: Final = {"llm": "a language model", "path_scorer": "a path scorer", "search": "a search provider"}
"""Names of kinds of engines in messages, where they differ from the setting's."""

NO_RERANKER: Final = "none"
"""Names no reranker, where the installed one would be used."""

TAPED: Final = frozenset({"llm", "search", "embedder", "reranker", "path_scorer", "tokenizer"})
"""Kinds of engines whose replies a recorded run holds."""


def assemble(settings: Settings, options: Options | None = None, *, answers: bool = True) -> Engines:
    """Make the engines of a call. An option wins over the setting of the same name.

    :param answers: False for a call that answers no question; then no language model is made.
    :raises UnknownEngine: a spec names no engine.
    :raises BadInput: an engine needs another engine that no setting names, or model calls are switched off.
    :raises MissingExtra: an engine needs a package that is not installed.
    """
    maker = Maker(settings, options or Options())
    if not answers:
        maker.specs |= {kind: without for kind, (_, without) in BY_MODEL.items()}
    return engines_of(maker)


def engines_of(maker: Maker) -> Engines:
    """Make the engines of an answer, and the spare engines that replace failed engines of the model."""
    scorer_choice, second_scorer, first = stages_of(maker.settings, maker.options)
    maker.choose("scorer", scorer_choice)
    counter, scorer, extractor, generator = map(maker.make, ("tokenizer", "scorer", "extractor", "generator"))
    second = maker.make_second_scorer(second_scorer) if second_scorer else None
    names = maker.names
    llm = maker.make("llm") if "llm" in names else None
    embedder = maker.make("embedder")
    spare = None
    if llm is not None:
        reader = maker.make("reranker") if maker.specs["reranker"] else None
        spare = Spare(
            make_engine("extractor", "sentences:5", embedder=embedder, reranker=reader),
            make_engine("generator", "quotes"),
        )
    return Engines(counter, scorer, extractor, generator, names, second, first, llm, embedder, spare, maker.meter)


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


def web_of(maker: Maker, engines: Engines) -> WebEngines:
    """Make the engines that only an answer from the web needs.

    :raises BadInput: no search provider is named, or a provider cannot be made.
    """
    from .answer.find_pages import WebEngines, local_now
    from .answer.pictures import Pages
    from .web.reader import HitReader  # here: reading files needs none

    options, settings = maker.options.web, maker.settings
    specs = maker.search_specs()
    folders = [split_spec(spec)[1] for spec in specs if split_spec(spec)[0] == "local"]
    if isinstance(folder := getattr(maker.options.search, "folder", None), Path):
        folders.append(str(folder))
    if maker.recorder is not None and not maker.recorder.reaches("search"):
        folders = []  # a recorded run opens no folder that only its file names
    reading = HitReader(settings, [Path(folder).expanduser() for folder in folders if folder])
    rank_with = maker.make("reranker", "ranking by a reranker") if options.ranking == "reranker" else engines.embedder
    prices = [maker.price_of_search(split_spec(spec)[0]) for spec in specs]
    names = {**engines.names, "planner": maker.specs["planner"], "search": hide_secrets(",".join(specs))}
    pages: Pages = reading.pages
    clock = local_now
    if maker.recorder is not None:
        pages, clock = maker.recorder.pages(pages), maker.recorder.clock(clock)
    return WebEngines(
        provider=maker.search(),
        planner=maker.make("planner"),
        spare_planner=make_engine("planner", "rules"),
        pages=pages,
        to_html=formats().to_html,
        rank_with=rank_with,
        price=float(sum(prices)),
        names=names,
        clock=clock,
    )


class SharedEngines:
    """Engines that many calls with the same settings share: a model is loaded once, and asked once for its window.

    Path scorers are not shared: they hold the page that they read last.
    """

    KINDS: Final = frozenset({"tokenizer", "embedder", "reranker", "llm"})

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}
        self._lock = threading.RLock()  # an engine may need another one

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the engine of this key, made at the first call."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]


class Maker:
    """Makes engines by kind, each once, with the engines and settings that its constructor has parameters for.

    :param recorder: a recorder or a player between the engines and the services outside.
    :param shared: engines that other calls with the same settings share.
    """

    def __init__(
        self,
        settings: Settings,
        options: Options,
        recorder: Recorder | Player | None = None,
        shared: SharedEngines | None = None,
    ) -> None:
        self.settings = settings
        self.recorder = recorder
        self._shared = shared
        self.specs: dict[str, str] = {}
        self._objects: dict[str, Any] = {}  # engines that the options hold as objects
        for kind in KINDS:
            if kind != "format":
                self.choose(kind, getattr(options, kind, "") or str(getattr(settings, kind)))
        if self.specs["reranker"] in ("", NO_RERANKER):
            self.specs["reranker"] = installed_reranker() if not self.specs["reranker"] else ""
        model = bool(self.specs["llm"]) and (bool(options.llm) or self._may_call())
        for kind, (with_model, without) in BY_MODEL.items():
            self.specs[kind] = self.specs[kind] or (with_model if model else without)
        self.options = options
        self.meter: Meter | None = None  # of tokens, money and seconds; made with the first language model
        self.price: Price | None = None  # of the language model, where it is known
        self._limits = options.limits
        self._made: dict[str, Any] = {}

    def choose(self, kind: str, choice: Any) -> None:
        """Choose an engine, by its spec or as an object."""
        self._objects.pop(kind, None)
        if not isinstance(choice, str):
            self._objects[kind] = choice
        self.specs[kind] = name_of(choice)

    def _may_call(self) -> bool:
        """Tell whether the model of the settings may be called; otherwise the engines without a model are used."""
        spec = self._address("llm", self.specs["llm"])[0]
        known = split_spec(spec)[0] in engine_names("llm")
        return self.settings.model_calls or not (known and declared(engine_class("llm", spec), "llm", "real"))

    @property
    def names(self) -> dict[str, str]:
        """The specs of the engines that were made, to show: without passwords and keys."""
        return {kind: hide_secrets(self.specs[kind]) for kind in self._made}

    def make(self, kind: str, wanted_by: str = "") -> Any:
        """Return the engine of a kind.

        :param wanted_by: the spec of the engine that needs it, for the error message.
        :raises BadInput: no engine of this kind is named, or model calls are switched off.
        """
        if kind in self._made:
            return self._made[kind]
        if kind == "search":
            return self.search()
        if kind in self._objects:
            self._made[kind] = self._wrapped(kind, self._recorded(kind, lambda: self._adopted_object(kind)))
            return self._made[kind]
        if kind == "path_scorer" and split_spec(wanted_by)[1]:  # generative:MODEL names it
            self.specs[kind] = _path_spec(split_spec(wanted_by)[1])
        spec, endpoint = self._address(kind, self.specs[kind])
        if not spec:
            raise BadInput(f"{wanted_by or kind} needs {_A.get(kind, f'a {kind}')}: set {kind} in {FILE}", subject=kind)
        self._made[kind] = None  # an engine that needs an engine of its own kind gets None
        try:
            self._made[kind] = engine = self._new(kind, spec, endpoint)
        except BaseException:
            del self._made[kind]  # so that the next call raises the same error
            raise
        return engine

    def make_second_scorer(self, spec: Any) -> Any:
        """Return the scorer of the second stage; a scorer that needs a cheap scorer gets that of the first stage.

        :param spec: its spec, or the scorer as an object.
        """
        self.specs["second_scorer"] = name_of(spec)
        if not isinstance(spec, str):
            self._made["second_scorer"] = _adopted("scorer", spec)
            return self._made["second_scorer"]
        if split_spec(spec)[1] and "path_scorer" in needs_of("scorer", spec):
            self._made.pop("path_scorer", None)  # the first stage may use another model
        self._made["second_scorer"] = engine = self._new("scorer", spec, "")
        return engine

    def _new(self, kind: str, spec: str, endpoint: str) -> Any:
        def make() -> Any:
            required = needs_of(kind, spec, required=True)
            needed = [other for other in needs_of(kind, spec) if self.specs[other] or other in required]
            self._check_calls(kind, engine_class(kind, spec), spec)
            needed_engines = {other: self.make(other, spec) for other in needed}
            settings = self._settings_for(kind, endpoint)
            if self._shared is None or kind not in SharedEngines.KINDS or set(needed) & set(self._objects):
                return adopted_engine(kind, spec, **needed_engines, **settings)
            key = (kind, spec, endpoint, *(self.specs[other] for other in needed))
            return self._shared.get(key, lambda: adopted_engine(kind, spec, **needed_engines, **settings))

        return self._wrapped(kind, self._recorded(kind, make))

    def _adopted_object(self, kind: str) -> Any:
        self._check_calls(kind, self._objects[kind], self.specs[kind])
        return _adopted(kind, self._objects[kind])

    def _check_calls(self, kind: str, engine: Any, spec: str) -> None:
        """Refuse an engine that calls a model, where model calls are switched off."""
        if self.settings.model_calls or kind not in ("llm", "path_scorer"):
            return
        if declared(engine, kind, "real"):
            raise BadInput("model calls are switched off (model_calls); scripted: still works", subject=spec)

    def _recorded(self, kind: str, make: Callable[[], Any]) -> Any:
        """Make an engine; with a recorder, an engine that reads something outside of Prunus is wrapped by it.

        That is a service, a model's files, or the code of another package: a replay must not depend on them.
        """
        spec = self.specs[kind]
        if self.recorder is None or kind not in TAPED:
            return make()
        from .record.recorder import bare  # here: most calls are neither recorded nor played back

        name, model = split_spec(spec)
        if kind == "llm":
            return self.recorder.model(bare(spec), make)
        if kind == "path_scorer":
            return self.recorder.paths(bare(spec), make)
        if not model and is_built_in(kind, name) and kind not in self._objects and kind != "reranker":
            return make()  # a reranker's weights are in another package
        return adopted(kind, self.recorder.numbers(kind, bare(spec), make), name)

    def search_specs(self) -> list[str]:
        """Return the specs of the search providers.

        :raises BadInput: no provider is named.
        """
        _refuse_login("search", self.specs["search"])
        specs = [spec.strip() for spec in self.specs["search"].split(",") if spec.strip()]
        if not specs:
            there = ", ".join(engine_names("search"))
            raise BadInput(f"no search is named: give --search, or set search in {FILE}; there are: {there}")
        return specs

    def search(self) -> SearchProvider:
        """Return the named search providers as one provider.

        :raises BadInput: no provider is named, or a provider cannot be made.
        """
        from .web.search._merge import Merged  # here: most calls search nothing

        settings, specs = self.settings, self.search_specs()

        def made() -> SearchProvider:
            if "search" in self._objects:
                providers = [_adopted("search", self._objects["search"])]
            else:
                providers = [self.provider(spec, alone=len(specs) == 1) for spec in specs]
            way: Any = settings.search_way
            return Merged(providers, way, settings.search_seconds * 2)

        if self.recorder is None:
            return made()
        from .record.recorder import bare

        return cast(SearchProvider, self.recorder.provider(bare(",".join(specs)), made))

    def price_of_search(self, name: str) -> float:
        """Return the price of one request to a search provider, in USD.

        :raises BadInput: the settings give no number.
        """
        price = self.settings.search_prices.get(name, 0.0)
        if not isinstance(price, int | float) or isinstance(price, bool) or not 0 <= price < 1e6:
            raise BadInput(f"setting search_prices: {name}: {price!r} is no price in US dollars", subject=name)
        return float(price)

    def provider(self, spec: str, alone: bool = True) -> SearchProvider:
        """Return one search provider.

        :param alone: it is the only provider; then ``search_key`` and ``search_endpoint`` are its own.
        :raises BadInput: its key in the settings is not text, or its price is no number.
        """
        from .web.reader import LazyDoor

        settings, name = self.settings, split_spec(spec)[0]
        key = settings.search_keys.get(name, settings.search_key if alone else "")
        price = self.price_of_search(name)
        if not isinstance(key, str):
            raise BadInput(f"setting search_keys: {name}: the key is not text", subject="search_keys")
        own: dict[str, Any] = {"door": LazyDoor(settings), "key": key, "price": price}
        own |= {"seconds": settings.search_seconds, "endpoint": settings.search_endpoint if alone else ""}
        if name == "local":
            own |= {"reader": formats().to_html, "suffixes": tuple(formats().suffixes)}
        provider: SearchProvider = adopted_engine("search", spec, **own)
        return provider

    def _address(self, kind: str, spec: str) -> tuple[str, str]:
        """Return the spec of an engine, and the address of its server; the spec of a language model may hold both."""
        if kind == "llm" and split_spec(spec)[0] == "http":
            _refuse_login(kind, spec)
            base, _, model = spec.partition("#")
            return f"openai:{model}", base
        return spec, ""

    def _settings_for(self, kind: str, endpoint: str) -> dict[str, Any]:
        """Return the settings for engines of a kind, by the names of their constructors' parameters."""
        from .web.reader import LazyDoor  # here: reading files needs none

        settings = self.settings
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
            own["prompt"] = str(settings.path_options.get("prompt", "paths"))
        elif kind == "tokenizer":
            own["folder"] = settings.tiktoken_folder or str(settings.folder / "tiktoken")
        return own

    def _wrapped(self, kind: str, engine: Any) -> Any:
        """Wrap a language model by its meter."""
        return self._metered(engine) if kind == "llm" else engine

    def _metered(self, llm: Any) -> Metered:
        """Return a language model whose calls are counted and kept within the limits of the whole call."""
        from .models.meter import Meter, Metered, price_of, prices_from  # here: most calls ask no model

        self.meter = self.meter or Meter(self._limits)
        counter = None if llm.count is not None else self.make("tokenizer")
        self.price = price_of(prices_from(self.settings.prices), self.specs["llm"], llm)
        return Metered(llm, self.meter, counter, self.price)


def installed_reranker() -> str:
    """Return the spec of the reranker that is used where none is named: ``prunus`` where its weights are installed."""
    return "prunus" if find_spec("prunus_reader") else ""


def adopted_engine(kind: str, spec: str, **others: Any) -> Any:
    """Make an engine by its spec; what an engine of another package returns is checked."""
    engine = make_engine(kind, spec, **others)
    name, _ = split_spec(spec)
    return engine if is_built_in(kind, name) else adopted(kind, engine, name)


def _adopted(kind: str, engine: Any) -> Any:
    """Return an engine that was given as an object; what it returns is checked, unless it comes with Prunus."""
    if isinstance(engine, type):
        raise BadInput(f"{kind}: {engine.__name__} is a class; give an object of it", subject=kind)
    own = type(engine).__module__.startswith("prunus.")
    return engine if own else adopted(kind, engine, name_of(engine))


def name_of(choice: Any) -> str:
    """Return the spec of an engine; for an object its name, or the name of its class."""
    return choice if isinstance(choice, str) else str(getattr(choice, "name", "") or type(choice).__name__)


def _refuse_login(kind: str, spec: str) -> None:
    """Refuse a login in an address before the spec is split: a password may hold what separates its parts.

    :raises BadInput: an address holds a user name or a password.
    """
    if hide_logins(spec) != spec:
        raise BadInput(f"{kind}: an address may hold no user name or password; give the key as a setting", subject=kind)


def _path_spec(model: str) -> str:
    """Return the path scorer of ``generative:MODEL``: ``transformers``, unless MODEL begins with another one's name."""
    return model if split_spec(model)[0] in engine_names("path_scorer") else f"transformers:{model}"


@cache
def _formats(specs: tuple[str, ...]) -> Formats:
    return Formats(specs)


def formats(settings: Settings | None = None) -> Formats:
    """Return the formats that can be read: those of Prunus and of other packages, and those that the settings name.

    :param settings: by default those in force.
    """
    return _formats((settings or load_settings()).formats)


class Formats:
    """All format engines; the content of a page, its name and its media type choose one. Only that one is loaded.

    :param specs: formats in files, as ``path/to/file.py:Class``; they come before the others.
    """

    def __init__(self, specs: Sequence[str] = ()) -> None:
        self._specs = tuple(specs)
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
            self._made[name] = adopted_engine("format", name)
        return self._made[name].to_html(page)

    def _name_of(self, page: Page) -> str:
        """Return the name of a page's format; '' for a page that is plainly HTML.

        :raises BadPage: the content is empty, or of an unknown format.
        """
        check_size(page.content, page.url or "page")
        if not page.content or page.content.isspace():
            raise BadPage(f"{page.url or 'page'}: the page is empty", subject=page.url)
        if _is_plainly_html(page):  # most pages are, and then no table of formats is made
            return ""
        from .pages.formats._sniff import sniff, suffix_of

        own = self._known.get(suffix_of(page.final_url or page.url)) or self._known.get(page.media_type)
        if own in self._specs:
            return str(own)  # the operator's format wins over what the content looks like
        return sniff(page.content, page.final_url or page.url, page.media_type, self._known)


def _is_plainly_html(page: Page) -> bool:
    """Tell whether a page begins like a web page, and its media type does not contradict."""
    kind = page.media_type.partition(";")[0].strip().lower()
    if kind not in ("", "text/html"):
        return False
    head = page.content[:15]
    start = head.lower() if isinstance(head, str) else head.lower().decode("latin-1")
    return start.startswith(("<!doctype html", "<html>", "<html "))
