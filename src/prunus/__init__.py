"""Prunus turns web pages and documents into the evidence that a language model needs.

>>> import prunus
>>> context = prunus.prune("<p>The bridge opened in 1932.</p><p>Trams run daily.</p>", "When did it open?", budget=12)
>>> context.html
'The bridge opened in 1932.'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .api.async_api import aclean, aprune, aread
from .api.pages import clean, extract, metadata, prune, read
from .core.errors import (
    BadBudget,
    BadInput,
    BadPage,
    MissingExtra,
    NothingFound,
    OutsideFailed,
    PrunusError,
    UnknownEngine,
)
from .core.options import Limits, Options, WebOptions
from .core.settings import Settings, load_settings
from .core.text.words import sentences
from .core.types import (
    Answer,
    BlockRecord,
    CheckedClaim,
    CheckedText,
    Citation,
    Filled,
    FilledField,
    Hit,
    Message,
    Metadata,
    Page,
    Passage,
    Results,
    SearchRequest,
    Span,
)
from .core.version import __version__ as __version__
from .evidence.context import Context
from .evidence.documents import Documents
from .pages.write.style import CLEAN, LEAN, Style

if TYPE_CHECKING:
    from .api.answers import Chat, aask, asearch, ask, astream, search
    from .api.check import acheck, check
    from .api.fill import afill, fill
    from .api.index import Index
    from .api.sites import SiteMap, map_site
    from .index.terms import Retrieval
    from .web.site.scope import SiteRules

__all__ = [
    "CLEAN",
    "LEAN",
    "Answer",
    "BadBudget",
    "BadInput",
    "BadPage",
    "BlockRecord",
    "Chat",
    "CheckedClaim",
    "CheckedText",
    "Citation",
    "Context",
    "Documents",
    "Filled",
    "FilledField",
    "Hit",
    "Index",
    "Limits",
    "Message",
    "Metadata",
    "MissingExtra",
    "NothingFound",
    "Options",
    "OutsideFailed",
    "Page",
    "Passage",
    "PrunusError",
    "Results",
    "Retrieval",
    "SearchRequest",
    "Settings",
    "SiteMap",
    "SiteRules",
    "Span",
    "Style",
    "UnknownEngine",
    "WebOptions",
    "aask",
    "acheck",
    "aclean",
    "afill",
    "aprune",
    "aread",
    "asearch",
    "ask",
    "astream",
    "check",
    "clean",
    "extract",
    "fill",
    "load_settings",
    "map_site",
    "metadata",
    "prune",
    "read",
    "search",
    "sentences",
]

_LATER = dict.fromkeys(("Chat", "aask", "asearch", "ask", "astream", "search"), "api.answers")
_LATER |= dict.fromkeys(("acheck", "check"), "api.check")
_LATER |= dict.fromkeys(("afill", "fill"), "api.fill")
_LATER |= {"Index": "api.index", "Retrieval": "index.terms"}
_LATER |= {"SiteMap": "api.sites", "SiteRules": "web.site.scope", "map_site": "api.sites"}
"""Modules that are loaded when a name of theirs is first used: who cleans and prunes pages needs none of them."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
