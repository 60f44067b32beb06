"""`aclean`, `aread` and `aprune`: the functions of :mod:`.pages` for callers with an event loop.

Addresses are fetched in the caller's loop; reading of files, cleaning and pruning run in threads with the caller's
context variables. A call that is cancelled ends at once, and so do its requests. A computation in a thread cannot be
stopped: it goes on to its end, and its result is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing

from ..core.errors import PrunusError
from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..core.sync import in_a_thread
from ..core.types import OutputFormat, Page
from ..evidence.context import Context
from ..evidence.documents import Documents
from ..pages.sources import Source, is_address, listed
from ..pages.write.style import CLEAN, Style
from .pages import Pruner, check_format, clean, read_with


async def aclean(
    page: Source,
    format: OutputFormat = "html",
    style: Style = CLEAN,
    *,
    main: bool = False,
    shown_only: bool = False,
) -> str:
    """Clean a page without blocking the event loop; see :func:`prunus.clean`."""
    check_format(format)
    if isinstance(page, str) and is_address(page):
        [fetched] = await _fetched([page.strip()], await in_a_thread(load_settings), strict=True)
        if isinstance(fetched, PrunusError):
            raise fetched
        page = fetched
    source = page
    return await in_a_thread(lambda: clean(source, format, style, main=main, shown_only=shown_only))


async def aread(
    pages: Source | Iterable[Source],
    *,
    strict: bool = True,
    keep: bool = False,
    done: Callable[[Page], None] | None = None,
    settings: Settings | None = None,
) -> Documents:
    """Read and clean pages without blocking the event loop; see :func:`prunus.read`.

    All addresses are fetched before the first page is cleaned. ``done`` is called in a thread.
    """
    chosen: Settings = settings if settings is not None else await in_a_thread(load_settings)
    is_list = isinstance(pages, str | bytes | list | tuple)
    sources = listed(pages) if is_list else await in_a_thread(lambda: listed(pages))  # a generator may read files
    addresses = [source.strip() for source in sources if isinstance(source, str) and is_address(source)]
    fetched = await _fetched(addresses, chosen, strict) if addresses else []
    return await in_a_thread(lambda: read_with(lambda _: iter(fetched), sources, chosen, strict, keep, done))


async def aprune(
    pages: Source | Iterable[Source] | Documents,
    question: str,
    budget: int | None = None,
    format: OutputFormat = "html",
    options: Options | None = None,
    settings: Settings | None = None,
) -> Context:
    """Keep the evidence for a question without blocking the event loop; see :func:`prunus.prune`."""
    pruner = await in_a_thread(lambda: Pruner(options, settings))
    task = pruner.task(pages, question, budget, format)
    documents = pages if isinstance(pages, Documents) else await aread(pages, settings=pruner.settings)
    return await in_a_thread(lambda: task(documents))


async def _fetched(addresses: Sequence[str], settings: Settings, strict: bool) -> list[Page | PrunusError]:
    """Return the page or the error of each address, in order; with ``strict`` up to the first error."""
    from ..web.reader import PageReader  # here: most calls fetch nothing

    reader = await in_a_thread(lambda: PageReader(settings))
    result: list[Page | PrunusError] = []
    async with aclosing(reader.fetch_many(addresses)) as pages:
        async for page in pages:
            result.append(page)
            if strict and isinstance(page, PrunusError):
                break
    return result
