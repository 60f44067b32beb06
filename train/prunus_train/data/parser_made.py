"""Made requests for the parser: frames in several languages, filled with names that nobody knows.

They teach what requests of a log seldom show: a name that the model never saw stays whole; a question about today gets
the date; one that a year would narrow gets none; writing and arithmetic need no search. Their truths stand in the
frames, so that no model is asked.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from prunus.core.types import Message
from prunus_train.data.parser import ParserRequest, day_of


def requests(count: int, seed: int) -> Iterator[ParserRequest]:
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
