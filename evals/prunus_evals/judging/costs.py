"""The tokens that readers read and wrote, summed over the questions of each system (Internet-SAG, Table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prunus_evals.records import Outcome


def sums(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return the sums of each task, system, reader, prompt and budget, ready for JSON.

    Without a reader they are those of the evidence. ``prompt_tokens`` and ``completion_tokens`` are as the reader's
    server counts them, and None where it counted none of one question; ``evidence_tokens`` are Llama-2's. A question
    that was measured twice counts once.
    """
    last = {(o.task, o.system, o.reader, o.prompt_name, o.budget, o.question): o for o in outcomes}
    groups: dict[tuple[str, str, str, str, int], list[Outcome]] = {}
    for key, outcome in last.items():
        groups.setdefault(key[:5], []).append(outcome)
    return [
        {
            "task": task,
            "system": system,
            "reader": reader,
            "prompt": prompt,
            "budget": budget,
            "questions": len(own),
            "evidence_tokens": sum(outcome.tokens for outcome in own),
            "prompt_tokens": _sum(own, "prompt_tokens"),
            "completion_tokens": _sum(own, "completion_tokens"),
        }
        for (task, system, reader, prompt, budget), own in sorted(groups.items())
    ]


def _sum(own: Sequence[Outcome], name: str) -> int | None:
    readings = [outcome.reading for outcome in own]
    if not all(reading and reading.prompt_tokens for reading in readings):
        return None
    return sum(int(getattr(reading, name)) for reading in readings)


def _name(row: Mapping[str, Any]) -> str:
    reader = "" if row["reader"] == "none" else f" > {row['reader']}"
    return str(row["system"]) + reader + (f", prompt {row['prompt']}" if row["prompt"] else "")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the sums as text."""
    names = [_name(row) for row in rows]
    width = max([24, *(len(name) + 2 for name in names)])
    heads = {"budget": 8, "questions": 11, "evidence_tokens": 11, "prompt_tokens": 11, "completion_tokens": 12}
    head = f"{'sums of tokens':{width}}" + "".join(f"{name.partition('_')[0]:>{size}}" for name, size in heads.items())
    lines = []
    for task in dict.fromkeys(row["task"] for row in rows):
        lines += [f"{task}:", head]
        for name, row in zip(names, rows, strict=True):
            if row["task"] == task:
                cells = ("-" if row[key] is None else str(row[key]) for key in heads)
                lines.append(f"{name:{width}}" + "".join(map(str.rjust, cells, heads.values())))
    return "\n".join(lines)
