"""``llm``: a model decides, in one call, whether to search and with which queries (Internet-SAG §3.1)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, structs

from ...core.errors import BadInput, OutsideFailed
from ...core.ports import LLM
from ...core.types import NO_PLAN, Message, Plan, SearchQuery
from ...models.json_reply import read_json, repair, schema_of, text_of
from ...models.prompts.render import Quoted, render
from . import rules

_TURNS: Final = 6
"""Earlier turns that the model is shown, the latest ones."""

_LONGEST_TURN: Final = 2_000
_LONGEST_QUESTION: Final = 8_000
_LONGEST_REPLY: Final = 20_000
_LONGEST_QUERY: Final = 500
_TOKENS: Final = 600

NO_QUERY: Final = "needs_search is true, but queries holds no query of your own: write what to search for"

_COPIED: Final = re.compile(
    r"keywords?|(?:the |last )*question|why, in a few words|text|query|search (?:query|queries|keywords)|string|\W*"
    r"|(?:BEGIN|END) [0-9a-f]{8}.*",
    re.IGNORECASE,
)
"""Words of the prompt that a small model copies instead of writing a query: examples, labels, lines of the fence."""

_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?:-[A-Za-z]{2,4})?")
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


# A server with a grammar lets a model fill what the schema allows, so the schema is narrow. The lengths are only in the
# schema: a longer reply of a server without a grammar is cut, not refused.
class _Query(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": 120})]
    language: Annotated[str, Meta(extra_json_schema={"maxLength": 5})]
    time_range: Annotated[Literal["", "day", "week", "month", "year"], Meta(extra_json_schema={"type": "string"})]


class PlanReply(Struct, forbid_unknown_fields=True):
    """The reply of the model; its JSON schema is sent with the question."""

    needs_search: bool
    reason: Annotated[str, Meta(extra_json_schema={"maxLength": 120})]
    queries: Annotated[list[_Query], Meta(extra_json_schema={"maxItems": 4})]


class Engine:
    """Plans by a model; an unusable reply is sent back once, and after that the rules plan and the reason says so.

    :param llm: the model.
    :param limit: most queries of a plan.
    :param seconds: time limit for both calls together; after it the rules plan.
    :raises BadInput: ``seconds`` is not positive.
    """

    name = "llm"

    def __init__(self, llm: LLM, limit: int = 4, seconds: float = 30.0) -> None:
        if seconds <= 0:
            raise BadInput("planner llm: plan_seconds is positive", subject="plan_seconds")
        self._llm = llm
        self._limit = limit
        self._seconds = seconds
        self._rules = rules.Engine(limit)

    async def plan(self, conversation: Sequence[Message], now: datetime) -> Plan:
        """Return the plan for the last turn of the user.

        :raises BadInput: the conversation holds no turn of a user.
        :raises BadBudget: a limit on tokens or money is reached.
        """
        messages = question_about(conversation, now, self._limit)
        try:
            async with asyncio.timeout(self._seconds):
                plan, fault = await self._ask(messages)
        except TimeoutError:
            plan, fault = None, f"no plan within {self._seconds:g} s"
        except OutsideFailed as error:
            plan, fault = None, str(error)
        if plan is not None:
            return plan
        fallback = await self._rules.plan(conversation, now)
        shown = " ".join(_UNSEEN.sub(" ", fault).split())[:200]
        return Plan(
            fallback.needs_search,
            f"{NO_PLAN} ({shown}): {fallback.reason}",
            fallback.queries,
        )

    async def _ask(self, messages: list[Message]) -> tuple[Plan | None, str]:
        """Return the model's plan, or None and the fault of its second reply."""
        fault = ""
        for _ in range(2):
            stream = self._llm.stream(messages, max_tokens=_TOKENS, temperature=0.0, schema=schema_of(PlanReply))
            reply, _usage = await text_of(stream, _LONGEST_REPLY)
            plan, fault = read_plan(reply, self._limit)
            if plan is not None:
                return plan, ""
            messages = repair(messages, reply, fault)
        return None, fault


def question_about(conversation: Sequence[Message], now: datetime, limit: int = 4) -> list[Message]:
    """Return the messages that ask for a plan of the last turn of the user; training asks the same.

    :raises BadInput: the conversation holds no turn of a user.
    """
    turns = [message for message in conversation if message.role != "system" and message.content.strip()]
    if not any(message.role == "user" for message in turns):
        raise BadInput("planner: there is no question", subject="conversation")
    last = max(index for index, message in enumerate(turns) if message.role == "user")
    return render(
        "plan",
        now=f"{now:%A, %Y-%m-%d %H:%M}",
        limit=limit,
        turns=[_quoted_turn(message) for message in turns[max(0, last - _TURNS) : last]],
        question=Quoted(_middle_out(turns[last].content, _LONGEST_QUESTION), "the question"),
    )


def read_plan(reply: str, limit: int = 4) -> tuple[Plan | None, str]:
    """Read a model's reply: (the plan, ''), or (None, the fault in words)."""
    result, fault = read_json(reply, PlanReply)
    if result is None:
        return None, fault
    plan = _plan(result, limit)
    return (plan, "") if plan else (None, NO_QUERY)


def written_plan(plan: Plan) -> str:
    """Return the reply that says a plan, as the model is asked to write it."""
    queries = [_Query(query.text, query.language, query.time_range) for query in plan.queries]  # type: ignore[arg-type]
    reply = {
        "needs_search": plan.needs_search,
        "reason": plan.reason,
        "queries": [structs.asdict(one) for one in queries],
    }
    return json.dumps(reply, ensure_ascii=False)


def _plan(plan_reply: PlanReply, limit: int) -> Plan | None:
    """Return a valid reply as a plan; None where it needs a search but has no query of its own."""
    reason = " ".join(_UNSEEN.sub(" ", plan_reply.reason).split())[:300]
    reason = "" if _COPIED.fullmatch(reason) else reason
    if not plan_reply.needs_search:
        return Plan(False, reason)
    queries: dict[str, SearchQuery] = {}
    for query in plan_reply.queries:
        text = " ".join(_UNSEEN.sub(" ", query.text).split())[:_LONGEST_QUERY]
        language = query.language if _LANGUAGE.fullmatch(query.language) else ""
        if not _COPIED.fullmatch(text):
            queries.setdefault(text.lower(), SearchQuery(text, language, query.time_range))
    return Plan(True, reason, tuple(queries.values())[:limit]) if queries else None


def _quoted_turn(message: Message) -> Quoted:
    who = "the user said" if message.role == "user" else "was answered"
    return Quoted(_middle_out(message.content, _LONGEST_TURN), who)


def _middle_out(text: str, longest: int) -> str:
    """Return a text without its middle where it is too long."""
    return text if len(text) <= longest else f"{text[: longest // 2]}\n…\n{text[-longest // 2 :]}"
