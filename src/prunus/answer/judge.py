"""A language model as judge of claims: it is shown the sentences of the pages that are nearest to a claim.

Code keeps the last word where it is sure: a claim with a number or a name that no page has is never called supported,
whatever the model says, and a quotation that stands nowhere stays not supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from msgspec import Struct

from ..core.errors import OutsideFailed
from ..core.ports import LLM
from ..core.text.words import guess_language
from ..core.types import CheckedClaim, Verdict
from ..models.json_reply import read_json, repair, text_of
from ..models.prompts.render import Quoted, render
from .check import Claim
from .claims import ClaimPage

_WORDS, _PAGES = 150, 2
"""Words of a page that a judge is shown for a claim, and pages: those whose segments hold most of it."""
_TOKENS: Final = 64
_TRIES: Final = 2
_SHAPE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"verdict": {"enum": [*get_args(Verdict)]}},
    "required": ["verdict"],
    "additionalProperties": False,
}


class _Reply(Struct):
    verdict: Verdict


async def judged(claim: Claim, checked: CheckedClaim, pages: Sequence[ClaimPage], llm: LLM) -> CheckedClaim:
    """Return a claim with the verdict of a model.

    :param checked: the claim as code has checked it. Of its ``reason`` a model takes nothing away.
    :raises OutsideFailed: the model failed, or gave no verdict in two replies.
    """
    cited = [page for page in pages if page.number in claim.numbers] or list(pages)
    language = guess_language(claim.text)
    near = sorted((page.near(claim.text, language, _WORDS) for page in cited), key=lambda found: -found[0])[:_PAGES]
    texts = [text for _, text in near if text]
    if not texts:
        return replace(checked, by="model")  # no page speaks of it: there is nothing to ask
    messages = render("judge", texts=[Quoted(text) for text in texts], claim=Quoted(claim.text, "the claim"))
    fault = ""
    for _ in range(_TRIES):
        reply, _usage = await text_of(llm.stream(messages, max_tokens=_TOKENS, temperature=0.0, schema=_SHAPE))
        told, fault = read_json(reply, _Reply)
        if told is not None:
            return replace(checked, verdict=_least(told.verdict, checked), by="model")
        messages = repair(messages, reply, fault)
    raise OutsideFailed(f"the judge gave no verdict ({fault})", subject="llm")


def _least(verdict: Verdict, checked: CheckedClaim) -> Verdict:
    """Return a model's verdict, no better than what code has found allows."""
    if checked.reason and not checked.citations:  # a quotation that stands nowhere
        return checked.verdict
    if not checked.reason:
        return verdict
    return "partly" if verdict == "supported" else verdict
