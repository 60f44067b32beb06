"""Prunus turns web pages and documents into the evidence that a language model needs.

>>> import prunus
>>> context = prunus.prune("<p>The bridge opened in 1932.</p><p>Trams run daily.</p>", "When did it open?", budget=12)
>>> context.html
'The bridge opened in 1932.'
"""

from .api.answers import Chat, aask, asearch, ask, astream, search
from .api.async_api import aclean, aprune, aread
from .api.index import Index
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
    Citation,
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
from .index.terms import Retrieval
from .pages.write.style import CLEAN, LEAN, Style

__all__ = [
    "CLEAN",
    "LEAN",
    "Answer",
    "BadBudget",
    "BadInput",
    "BadPage",
    "BlockRecord",
    "Chat",
    "Citation",
    "Context",
    "Documents",
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
    "Span",
    "Style",
    "UnknownEngine",
    "WebOptions",
    "aask",
    "aclean",
    "aprune",
    "aread",
    "asearch",
    "ask",
    "astream",
    "clean",
    "extract",
    "load_settings",
    "metadata",
    "prune",
    "read",
    "search",
    "sentences",
]
