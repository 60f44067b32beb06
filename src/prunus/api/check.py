"""`check`, with its async twin: the claims of a text from anywhere, checked against pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ..core.deadline import check as look_at_the_clock
from ..core.errors import BadInput, Failures
from ..core.options import Options
from ..core.ports import LLM
from ..core.settings import Settings, load_settings
from ..core.sync import in_a_thread, run
from ..core.types import CheckedClaim, CheckedText
from ..evidence.documents import Documents
from ..pages.sources import Source
from .async_api import aread

if TYPE_CHECKING:
    from ..answer.check import Claim
    from ..answer.claims import ClaimPage

LONGEST: Final = 200_000
"""Most letters of a text."""


def check(
    text: str,
    pages: Source | Iterable[Source] | Documents,
    settings: Settings | None = None,
    *,
    llm: str | LLM = "",
) -> CheckedText:
    """Check the claims of a text against pages: a verdict for each sentence, with the sentences of a page that decide.

    No model is asked unless one is named. A claim with a number or a name that no page has is never called supported,
    and a quotation must stand word for word. ``[n]`` behind a claim means the n-th page. What is called supported is
    likely said by the page, and not proven.

    :param text: plain text or Markdown, as a model wrote it; headings, code and rules hold no claim.
    :param pages: one page or several, or the result of :func:`read`.
    :param llm: a language model as judge of each claim, as ``http://127.0.0.1:8080/v1#any``. Its verdict takes the
        place of that by words, but a claim with a number or a name that no page has is never called supported.
    :raises BadInput: the text states nothing, or no page can be read.
    :raises OutsideFailed: the model failed.

    >>> [claim.verdict for claim in check("It opened in 1932. It cost 12 coins.", "<p>It opened in 1932.").claims]
    ['supported', 'not supported']
    """
    return run(lambda: acheck(text, pages, settings, llm=llm))


async def acheck(
    text: str,
    pages: Source | Iterable[Source] | Documents,
    settings: Settings | None = None,
    *,
    llm: str | LLM = "",
) -> CheckedText:
    """Check the claims of a text without blocking the event loop; see :func:`check`."""
    if not isinstance(text, str) or not text.strip():
        raise BadInput("the text to check is empty", subject="text")
    if len(text) > LONGEST:
        raise BadInput(f"the text has {len(text):,} letters; at most {LONGEST:,} are checked", subject="text")
    documents = pages if isinstance(pages, Documents) else await aread(pages, strict=False, settings=settings)
    claims, known, results = await in_a_thread(lambda: _checked(text, documents))
    if llm:
        from ..answer.judge import judged  # here: few calls name a model
        from ..engines import one_engine

        model = one_engine("llm", settings or load_settings(), Options(llm=llm))
        results = [await judged(claim, told, known, model) for claim, told in zip(claims, results, strict=True)]
    return CheckedText(results, Failures(documents.failures))


def _checked(text: str, documents: Documents) -> tuple[list[Claim], list[ClaimPage], list[CheckedClaim]]:
    """Return the claims of a text, the pages, and what their words say of each claim."""
    from ..answer.check import split_claims  # here: most calls check no text
    from ..answer.claims import ClaimPage, check_claim

    claims = split_claims(text)
    if not claims:
        raise BadInput("the text states nothing that can be checked", subject="text")
    if not documents.trees:
        raise BadInput("there is no page to check the text against", subject="pages")
    known = [ClaimPage(number, tree) for number, tree in enumerate(documents.trees, 1)]
    results = []
    for claim in claims:
        look_at_the_clock()
        results.append(check_claim(claim, known))
    return claims, known, results
