"""Settings → engines. The only place that picks an engine by name."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import FILE, Settings
from .errors import BadInput, BadPage
from .html.parse import check_size
from .pipeline import Engines
from .ports import Format as FormatPort
from .registry import ROOMS, engine_class, engine_names, make_engine, needs_of, split_spec
from .types import Options, Page

if TYPE_CHECKING:
    from .cost import Meter, Metered, Price
    from .embed._cached import CachedEmbedder


def assemble(settings: Settings, options: Options | None = None) -> Engines:
    """Make the engines of a call: options win over settings.

    :raises UnknownEngine: a spec names none.
    :raises BadInput: an engine needs another that no setting names, or model calls are switched off.
    :raises MissingExtra: an engine needs a package that is not installed.
    """
    maker = Maker(settings, options or Options())
    counter, scorer, extractor, generator = map(maker.make, ("tokenizer", "scorer", "extractor", "generator"))
    return Engines(counter, scorer, extractor, generator, maker.names)


class Maker:
    """Makes engines by kind, each once, with the engines and the settings that its constructor asks for."""

    def __init__(self, settings: Settings, options: Options) -> None:
        self.settings = settings
        self.specs = {
            kind: getattr(options, kind, "") or str(getattr(settings, kind)) for kind in ROOMS if kind != "format"
        }
        self.meter: Meter | None = None  # tokens, money and seconds of the models, once one is made
        self.price: Price | None = None  # of the language model, once it is made and where it is known
        self._limits = options.limits
        self._made: dict[str, Any] = {}

    @property
    def names(self) -> dict[str, str]:
        """The specs of the engines that were made."""
        return {kind: self.specs[kind] for kind in self._made}

    def make(self, kind: str, wanted_by: str = "") -> Any:
        """Return the engine of a kind.

        :param wanted_by: the engine that asks for it, for the message where none is named.
        """
        if kind in self._made:
            return self._made[kind]
        spec, endpoint = self._address(kind, self.specs[kind])
        if not spec:
            raise BadInput(f"{wanted_by or kind} needs a {kind}: set {kind} in {FILE}", subject=kind)
        if kind == "llm" and not self.settings.model_calls and getattr(engine_class(kind, spec), "real", True):
            raise BadInput("model calls are switched off (model_calls); scripted: and replay: still work", subject=spec)
        self._made[kind] = None  # an engine that needs its own kind is given none
        try:
            self._made[kind] = engine = self._new(kind, spec, endpoint)
        except BaseException:
            del self._made[kind]  # whoever asks again is told again
            raise
        return engine

    def _new(self, kind: str, spec: str, endpoint: str) -> Any:
        required = needs_of(kind, spec, required=True)
        needed = [other for other in needs_of(kind, spec) if self.specs[other] or other in required]
        given = {other: self.make(other, spec) for other in needed}
        return self._kept(kind, make_engine(kind, spec, **given, **self._own(kind, endpoint)))

    def _address(self, kind: str, spec: str) -> tuple[str, str]:
        """Return the spec of an engine and the address that it holds: a language model's names its server."""
        if kind == "llm" and split_spec(spec)[0] == "http":
            base, _, model = spec.partition("#")
            return f"openai:{model}", base
        return spec, self.settings.llm_endpoint if kind == "llm" else ""

    def _own(self, kind: str, endpoint: str) -> dict[str, Any]:
        """Return the settings of a kind, by the names of constructors' parameters."""
        from .network import LazyDoor  # here: reading files needs none

        settings = self.settings
        own: dict[str, Any] = {"door": LazyDoor(settings)}
        if kind in ("embedder", "reranker"):
            own |= {"threads": settings.threads, "key": getattr(settings, f"{kind}_key")}
            own["cache_folder"] = str(settings.folder / "models")
        elif kind == "llm":
            own |= {"key": settings.llm_key, "endpoint": endpoint, "options": settings.llm_options}
        elif kind == "tokenizer":
            own["folder"] = settings.tiktoken_folder or str(settings.folder / "tiktoken")
        return own

    def _kept(self, kind: str, engine: Any) -> Any:
        """Give an embedder its cache on disk, where the settings want one, and a language model its meter."""
        if kind == "llm":
            return self._metered(engine)
        if kind != "embedder" or not self.settings.embed_cache_mb or self.specs[kind] == "static":
            return engine
        return open_vectors(self.settings, engine, self.specs[kind])

    def _metered(self, llm: Any) -> Metered:
        """Count every call of a language model, and hold it to the limits of the whole call."""
        from .cost import Meter, Metered, price_of, prices_from  # here: most calls ask no model

        if self.meter is None:
            self.meter = Meter(self._limits)
        counter = None if hasattr(llm, "count") else self.make("tokenizer")
        self.price = price_of(prices_from(self.settings.prices), self.specs["llm"], llm)
        return Metered(llm, self.meter, counter, self.price)


def open_vectors(settings: Settings, embedder: Any = None, spec: str = "") -> CachedEmbedder:
    """Return an embedder that keeps its vectors on disk; without one, only to look at what is kept."""
    from .embed._cached import CachedEmbedder  # here: hardly any call has one

    return CachedEmbedder(embedder, vectors_folder(settings), spec, max(1, settings.embed_cache_mb))


def vectors_folder(settings: Settings) -> Path:
    """Return where vectors are kept between runs."""
    return settings.folder / "vectors"


@cache
def formats() -> Formats:
    """Return the formats that can be read, found once."""
    return Formats()


class Formats:
    """Every format by content, name and media type; turns any page that one of them knows into HTML."""

    @cached_property
    def _by_name(self) -> dict[str, FormatPort]:
        return {name: make_engine("format", name) for name in engine_names("format")}

    @cached_property
    def _known(self) -> dict[str, str]:
        return {key: name for name, engine in self._by_name.items() for key in (*engine.suffixes, *engine.media_types)}

    @property
    def suffixes(self) -> list[str]:
        """Suffixes of the files that can be read."""
        return sorted({suffix for engine in self._by_name.values() for suffix in engine.suffixes})

    def to_html(self, page: Page) -> str | bytes:
        """Return a page as HTML; its format is known by its content first, then by name and header.

        :raises BadPage: the content is empty, or of no format that is known.
        """
        check_size(page.content, page.url or "page")
        if not page.content or page.content.isspace():
            raise BadPage(f"{page.url or 'page'}: the page is empty", subject=page.url)
        if _is_plainly_html(page):  # most pages are, and then no other format is loaded
            return page.content
        from .formats._sniff import sniff

        name = sniff(page.content, page.final_url or page.url, page.media_type, self._known)
        return self._by_name[name].to_html(page)


def _is_plainly_html(page: Page) -> bool:
    """Tell whether a page begins as web pages do, and nothing says that it is anything else."""
    kind = page.media_type.partition(";")[0].strip().lower()
    if kind not in ("", "text/html"):
        return False
    head = page.content[:15]
    start = head.lower() if isinstance(head, str) else head.lower().decode("latin-1")
    return start.startswith(("<!doctype html", "<html>", "<html "))
