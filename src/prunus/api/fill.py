"""`fill`, with its async twin: a JSON object by a schema, filled from pages, each field with its citation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ..core.errors import BadInput, Failures
from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..core.sync import in_a_thread, run
from ..core.types import Filled
from ..engines import SharedEngines, answer_engines
from ..evidence.documents import Documents
from .answers import Pages, found_pages
from .arguments import check_choices
from .async_api import aread

if TYPE_CHECKING:
    from ..answer.run import AnswerEngines


class FillChoices(TypedDict, total=False):
    """The optional arguments of :func:`fill`."""

    search: str
    budget: int | None
    options: Options | None
    settings: Settings | None


def fill(schema: Mapping[str, Any], pages: Pages = None, question: str = "", **choices: Unpack[FillChoices]) -> Filled:
    """Fill the fields of a JSON schema from pages, with the words of a page for each.

    Without a model, fields are texts, numbers, dates and lists of these that a page labels or that its best passage
    says. With one, its reply is checked against the schema, and every value is looked up in the pages. A field of
    which nothing is found is None, and says why.

    :param schema: of an object; titles and descriptions of its fields say what is meant. ``pattern`` is refused.
    :param pages: one page or several, or the result of :func:`read`; without pages the web is searched.
    :param question: what the fields are about, where the pages are about more.
    :param search: search providers separated by commas; by default those of the settings.
    :param budget: tokens of evidence for a model; by default that of the settings.
    :param options, settings: as for :func:`ask`.
    :raises BadInput: the schema cannot be used.
    :raises MissingExtra: the extra ``schema`` is not installed.
    :raises UnreadableReply: the model's reply does not fit the schema, on a second try either.
    """
    return run(lambda: filled_from(schema, pages, question, choices))


async def afill(
    schema: Mapping[str, Any], pages: Pages = None, question: str = "", **choices: Unpack[FillChoices]
) -> Filled:
    """Fill the fields of a JSON schema without blocking the event loop; see :func:`fill`."""
    return await filled_from(schema, pages, question, choices)


async def filled_from(
    schema: Mapping[str, Any], pages: Pages, question: str, choices: FillChoices, shared: SharedEngines | None = None
) -> Filled:
    """Fill the fields of a JSON schema; the library, the command line and the server call this function.

    :param shared: engines that other calls with the same settings share.
    """
    from ..answer.fields.by_model import Form, fill_by_model  # here: most calls fill no schema
    from ..answer.fields.find import by_relevance, filled_data, find_field
    from ..answer.fields.schema import fields_of, plain_schema

    budget = choices.get("budget")
    check_choices(budget, choices.get("options"), choices.get("settings"))
    settings, options = choices.get("settings") or load_settings(), choices.get("options") or Options()
    plain = plain_schema(schema)
    fields = fields_of(plain)
    engines = await in_a_thread(lambda: answer_engines(settings, options, shared=shared))
    documents = await _documents(pages, question, choices.get("search", ""), options, settings)
    if engines.llm is not None:
        tokens = settings.budget if budget is None else budget
        data, filled = await fill_by_model(Form(plain, fields, question), documents, tokens, engines, options)
    else:
        filled = []
        documents = await by_relevance(documents, question, engines, options)
        for field in fields:
            filled.append(await find_field(field, documents, question, engines, options, len(filled) + 1))
        data = filled_data(fields, filled)
    return Filled(data, filled, _names(engines), engines.meter.total, Failures(documents.failures))


def _names(engines: AnswerEngines) -> dict[str, str]:
    return {kind: spec for kind, spec in engines.names.items() if kind != "generator"}


async def _documents(pages: Pages, question: str, search: str, options: Options, settings: Settings) -> Documents:
    """Return the pages of a call, read; or those that a search finds.

    :raises BadInput: there is neither a page nor a question to search for.
    """
    if isinstance(pages, Documents):
        return pages
    if pages is None or (isinstance(pages, tuple | list) and not pages):
        if not question.strip():
            raise BadInput("fill(schema, pages): give pages, or a question to search for", subject="pages")
        return await found_pages(question, search, options, settings)
    return await aread(pages, strict=False, keep=True, settings=settings)
