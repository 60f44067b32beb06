"""Samples of the parser: one reply says whether to search, and with which keywords (Internet-SAG §3.1).

The prompt is that of the planner ``llm``. Truth is a plan in the file of requests, or the reply of a language model
that is asked the same; made requests bring theirs. A truth is left out that splits a name, puts a
year into a question that needs none, or none into one about today, or searches in no language of the question.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from prunus.answer.plan.llm import PlanReply, question_about, read_plan, written_plan
from prunus.core.ports import LLM
from prunus.core.types import Message, Plan
from prunus.models.json_reply import repair, schema_of
from prunus_evals.data import Lines, Row
from prunus_evals.errors import DataWrong
from prunus_evals.split import digest
from prunus_train.data.sample_file import KeptReplies, SampleFile, SampleUnit, TooLong
from prunus_train.errors import DataBroken
from prunus_train.llm.samples import ChatSample, as_row

FIELDS = ("id", "request", "turns", "language", "now", "time", "names", "plan")
TIMES = ("today", "any", "")
MAX_TOKENS = 600
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_FIRST_DAY = datetime(2024, 1, 1, 9)
_DAYS = 1460


@dataclass(frozen=True, slots=True)
class ParserRequest:
    """A conversation, and what is known of its plan.

    :param turns: the conversation; the last turn is the request.
    :param now: the time that the prompt states.
    :param time: ``today`` where the answer depends on the day, ``any`` where a year would narrow the search wrongly.
    :param names: names that a query must hold whole.
    :param plan: the truth as JSON; '' where a model is to be asked.
    """

    id: str
    turns: tuple[Message, ...]
    now: datetime
    language: str = ""
    time: str = ""
    names: tuple[str, ...] = ()
    plan: str = ""
    made: bool = False


def read(path: Path) -> list[ParserRequest]:
    """Return the requests of a file: JSON lines with ``request``, and any of the other ``FIELDS``.

    :raises DataBroken: a line is wrong, or there is none; the message names the line.
    """
    try:
        found = [_request(row) for _, row in Lines(path)]
    except DataWrong as error:
        raise DataBroken(str(error)) from error
    if not found:
        raise DataBroken(f'{path} holds no request; a line is {{"request": "…"}}')
    return found


def _request(row: Row) -> ParserRequest:
    for name in row:
        if name not in FIELDS:
            raise row.wrong(f"unknown field {name!r}; the fields are: {', '.join(FIELDS)}")
    text = row.text("request")
    if not text.strip():
        raise row.wrong("'request' is empty")
    identity = row.name("id") if "id" in row else digest(text)[:12]
    earlier = tuple(Message(turn["role"], turn.text("content")) for turn in row.rows("turns")) if "turns" in row else ()
    if any(message.role not in ("user", "assistant") for message in earlier):
        raise row.wrong("'turns' are of user and assistant")
    time = row.text("time") if "time" in row else ""
    if time not in TIMES:
        raise row.wrong("'time' is today or any")
    try:
        now = datetime.fromisoformat(row.text("now")) if "now" in row else day_of(identity)
    except ValueError:
        raise row.wrong(f"'now' is no time: {row['now']!r}") from None
    plan = ""
    if "plan" in row:
        plan = json.dumps({"reason": "", **row["plan"]}, ensure_ascii=False)
        if (fault := read_plan(plan)[1]) != "":
            raise row.wrong(f"'plan': {fault}")
    language = row.text("language") if "language" in row else ""
    names = row.texts("names") if "names" in row else ()
    return ParserRequest(identity, (*earlier, Message("user", text)), now, language, time, names, plan)


def day_of(identity: str) -> datetime:
    """Return a time for a request, drawn by its id: a model must read the time, not learn one by heart."""
    chance = random.Random(digest(identity))
    return _FIRST_DAY + timedelta(days=chance.randrange(_DAYS), minutes=chance.randrange(600))


def make(
    path: Path, requests: Sequence[ParserRequest], model: tuple[str, LLM] | None, at_once: int,
    progress: Callable[[int, int], None], settings: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Write the samples of requests; return the report.

    :param model: spec and model that is asked for the truths that are missing; None: such requests are left out.
    """
    cache = KeptReplies(path.with_name(f"{path.name}.replies"), at_once)
    with SampleFile(path, {**settings, "model": model[0] if model else ""}) as file:
        seen: set[str] = set()
        new = [request for request in requests if request.id not in file.done]
        for number, unit in enumerate(cache.each(lambda request: _unit(request, model, cache), new), 1):
            file.add(unit)
            progress(len(requests) - len(new) + number, len(requests))
        return file.finish(lambda rows: _each_once(rows, seen))


def _each_once(rows: list[dict[str, Any]], seen: set[str]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    kept = []
    for row in rows:
        key = row["messages"][-1]["content"].casefold()
        if key not in seen:
            seen.add(key)
            kept.append(row)
    return kept, {"the same request twice": len(rows) - len(kept)}


def _unit(request: ParserRequest, model: tuple[str, LLM] | None, cache: KeptReplies) -> SampleUnit:
    messages = question_about(request.turns, request.now)
    if request.plan:
        plan, fault = read_plan(request.plan)
    elif model is None:
        return SampleUnit(request.id, left_out=["no truth in the file, and no model is named"])
    else:
        try:
            plan, fault = _asked(messages, model, cache)
        except TooLong:
            return SampleUnit(request.id, left_out=["the prompt is over the model's window"])
    if plan is None:
        return SampleUnit(request.id, left_out=["the model wrote no plan"])
    fault = fault_of(request, plan)
    if fault:
        return SampleUnit(request.id, left_out=[fault])
    counts = ["search" if plan.needs_search else "no search", f"language {request.language or 'unknown'}"]
    counts += [f"time {request.time}"] * bool(request.time) + ["made-up name"] * bool(request.made and request.names)
    sample = ChatSample(request.id, "parser", tuple(messages), (written_plan(plan),))
    return SampleUnit(request.id, [as_row(sample)], counts=counts)


def _asked(messages: list[Message], model: tuple[str, LLM], cache: KeptReplies) -> tuple[Plan | None, str]:
    """Return a model's plan as the planner gets it: a reply that cannot be used is sent back once."""
    fault, schema = "", schema_of(PlanReply)
    for _ in range(2):
        reply = cache.reply(*model, messages, max_tokens=MAX_TOKENS, temperature=0.0, schema=schema)
        plan, fault = read_plan(reply)
        if plan is not None:
            return plan, ""
        messages = repair(messages, reply, fault)
    return None, fault


def fault_of(request: ParserRequest, plan: Plan) -> str:
    """Return why a plan must not be taught; '' where it may."""
    if not plan.needs_search:
        return "no search for a question about today" if request.time == "today" else ""
    queries, text = [query.text for query in plan.queries], request.turns[-1].content
    for name in request.names:
        if not any(name.casefold() in query.casefold() for query in queries):
            return "a name is split, changed or missing"
    years = {year for query in queries for year in _YEAR.findall(query)} - {*_YEAR.findall(text)}
    if request.time == "any" and (years or any(query.time_range for query in plan.queries)):
        return "a time narrows a question that has none"
    dated = years or any(query.time_range for query in plan.queries)
    if request.time == "today" and not dated:
        return "a question about today has no time"
    if request.language and all(query.language.split("-")[0] != request.language for query in plan.queries):
        return "no query is in the language of the question"
    return ""


# --- made requests ------------------------------------------------------------------------------
# A name that no model saw stays whole; a question about today gets the date, one that a year would narrow gets none;
# writing and arithmetic need no search. The truths stand in the frames, so that no model is asked.


def made_requests(count: int, seed: int) -> Iterator[ParserRequest]:
    """Yield made requests, alike over languages and frames; the same for the same seed."""
    table: dict[str, Any] = json.loads(files(__package__).joinpath("parser_frames.json").read_text("utf-8"))
    languages = list(table)
    for number in range(count):
        language = languages[number % len(languages)]
        frames = table[language]["frames"]
        frame = frames[number // len(languages) % len(frames)]
        chance = random.Random(f"{seed} {number}")
        yield _filled(f"made-{seed}-{number}", language, frame, table[language], chance)


def _filled(
    identity: str, language: str, frame: dict[str, Any], about: dict[str, Any], chance: random.Random
) -> ParserRequest:
    now = day_of(identity)
    name = "".join(chance.choice(about["syllables"]) for _ in range(chance.randint(2, 3)))
    fields = {
        "name": name[:1].upper() + name[1:],
        "year": str(now.year),
        "month": f"{now.year}-{now.month:02}",
        "a": str(chance.randint(12, 980)),
        "b": str(chance.randint(12, 980)),
    }

    def fill(text: str) -> str:
        for key, value in fields.items():
            text = text.replace("{" + key + "}", value)
        return text

    queries = [
        {"text": fill(text), "language": language, "time_range": frame.get("range", "")} for text in frame["queries"]
    ]
    plan = {"needs_search": bool(queries), "reason": frame["why"], "queries": queries}
    named = "{name}" in frame["request"] and bool(queries)
    return ParserRequest(
        identity, (Message("user", fill(frame["request"])),), now, language, frame.get("time", ""),
        (fields["name"],) if named else (), json.dumps(plan, ensure_ascii=False), made=True,
    )  # fmt: skip
