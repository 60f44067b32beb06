"""Contexts and answers as plain data, which ``--json`` and batches write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..core.types import Answer
from ..evidence.context import Context
from ..pages.metadata import known_metadata
from ..pages.tree import Tree


def context_record(
    context: Context,
    trees: Sequence[Tree],
    before: int,
    seconds: Mapping[str, float],
    failures: Mapping[str, str],
    full: bool = False,
) -> dict[str, Any]:
    """Return a context as a dict of plain data.

    :param trees: the documents of the context, for their metadata.
    :param before: tokens of the whole pages; -1 where they were not counted.
    :param seconds: wall time by stage.
    :param failures: the pages that could not be read, each with the reason.
    :param full: list all blocks and documents; by default those of which something is kept.
    """
    return {
        "question": context.question,
        "format": context.format,
        "output": context.output,
        "tokens": context.tokens,
        "tokens_before": before,
        "budget": context.budget,
        "max_words": context.max_words,
        "blocks": [
            {
                "index": block.index,
                "document": block.document,
                "path": block.path,
                "score": block.score,
                "words": block.words,
                "kept": block.kept,
                "role": block.role,
                "stage": block.stage,
                "text": block.text,
                "place": context.place(block) if block.kept else "",  # each costs a walk to the mark before it
                "span": {"document": block.span.document, "start": block.span.start, "end": block.span.end},
            }
            for block in (context.blocks if full else context.kept)
        ],
        "documents": [
            {"number": number}
            | {name: getattr(document, name) for name in ("document", "url", "title", "kept", "blocks")}
            | {"metadata": asdict(known_metadata(trees[number]))}
            for number, document in enumerate(context.documents)
            if full or document.kept
        ],
        "engines": dict(context.engines),
        "seconds": {stage: round(value, 6) for stage, value in seconds.items()},
        "stages": [
            {"stage": trace.stage, "seconds": round(trace.seconds, 6), **trace.detail} for trace in context.trace
        ],
        "warnings": list(context.warnings),
        "failures": dict(failures),
    }


def answer_record(question: str, answer: Answer) -> dict[str, Any]:
    """Return an answer and its question as a dict of plain data."""
    return {"question": question, **asdict(answer)}
