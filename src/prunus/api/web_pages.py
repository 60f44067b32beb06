"""The pages that a web search finds for a question: read and ranked, without an answer."""

from __future__ import annotations

from dataclasses import replace

from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..core.sync import in_a_thread
from ..core.types import Message
from ..engines import web_engines
from ..evidence.documents import Documents
from .arguments import check_choices, question_of


async def found_pages(
    question: str, search: str = "", options: Options | None = None, settings: Settings | None = None
) -> Documents:
    """Search for a question, and return the pages from which :func:`prunus.ask` would answer it, best first.

    :param search: search providers separated by commas; by default those of the settings.
    :raises NothingFound: there is no hit.
    :raises OutsideFailed: no provider answered, or no page could be read.
    """
    from ..answer.find_pages import FoundPages, Search, find_pages, plan_search  # here: they load asyncio
    from ..answer.trace import StageTimer

    question = question_of(question, None, "found_pages(question)")
    check_choices(None, options, settings)
    settings, chosen = settings or load_settings(), options or Options()
    options = replace(chosen, search=search or chosen.search, web=replace(chosen.web, always=True))
    web = await in_a_thread(lambda: web_engines(settings, options))
    stages = StageTimer(web.meter, options.trace)
    found = FoundPages()
    wanted = Search([Message("user", question)], web, options.web, stages)
    found.plan, failed = await plan_search(wanted)
    if failed:
        found.failures["planner"] = failed
    async for _ in find_pages(wanted, found):
        pass
    return Documents(found.trees[: options.web.pages], found.failures)
