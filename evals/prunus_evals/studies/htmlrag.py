"""HtmlRAG: Tables 1 to 7, Figure 5, and the tokens by stage and by cleaning method.

The embedder is static vectors unless ``--set embedder=`` names another, as ``minilm``, ``e5`` or ``bge``. The second
stage of HtmlRAG needs a trained pruner: ``--set pruner=FOLDER``. Rows that cannot be made here are named under their
table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prunus_evals import harness, systems
from prunus_evals.errors import DataMissing, EvalError
from prunus_evals.harness import Plan
from prunus_evals.records import Outcome
from prunus_evals.studies import Choice, Row, Study, Table, grid, mean, notes, plan
from prunus_evals.studies import _htmlrag_published as published

SHORT, LONG, COARSE = 4096, 131_072, 8192
"""Tokens of the paper's two settings, and of what its first stage hands on."""

HIT, EM = ("Hit@1", "hit1"), ("EM", "em_share")
EVIDENCE_EM = ("EM of the evidence", "evidence_em_share")
WORDS = (64, 128, 256, 512)
"""Words of a block in Figure 5."""


Plans = Callable[[Study, Choice], Mapping[str, Plan]]
Tables = Callable[[Study, Choice, Mapping[str, Sequence[Outcome]]], Sequence[Table]]


@dataclass(frozen=True, slots=True)
class Set:
    """A set of questions in the frame of the paper.

    :param answer: what a reader's answers are scored by: titles and metrics.
    :param html: whether its documents are pages of HTML; else they are paragraphs of plain text.
    """

    title: str
    task: str
    answer: tuple[tuple[str, str], ...]
    html: bool = True

    def measured(self, reader: str) -> tuple[tuple[str, str], ...]:
        """Return titles and metrics: those of answers, or, without a reader, those of the evidence."""
        if reader != harness.NO_READER:
            return self.answer
        return () if self.task.endswith("eli5") else (EVIDENCE_EM,)


SETS = (
    Set("ASQA", "htmlrag:asqa", (HIT, EM)),
    Set("HotpotQA", "htmlrag:hotpot-qa", (EM,)),
    Set("NQ", "htmlrag:nq", (HIT, EM)),
    Set("TriviaQA", "htmlrag:trivia-qa", (HIT, EM)),
    Set("MuSiQue", "htmlrag:musique", (EM,)),
    Set("ELI5", "htmlrag:eli5", (("ROUGE-L", "rouge_l"), ("BLEU", "bleu"))),
)
STAND_INS = (
    Set("table_qa", "table_qa", (HIT, EM)),
    Set("nq", "nq", (HIT, EM)),
    Set("websrc", "websrc", (EM,)),
    Set("hotpot", "hotpot:answer", (EM,), html=False),
    Set("musique", "musique", (EM,), html=False),
)
TASKS, STAND_IN_TASKS = tuple(s.task for s in SETS), tuple(s.task for s in STAND_INS)
HTML_STAND_INS = tuple(s.task for s in STAND_INS if s.html)
"""Of the tables about HTML itself. Tables 1 and 7 compare answers, also to questions over several documents."""
EMBEDDER = {"embedder": "embedder of the block tree and its chunks; static by default"}
BASELINES = {
    "bge": "embedder of the baseline BGE, as minilm or sentence_transformers:FOLDER",
    "e5": "embedder of the baseline E5-Mistral, as e5 (multilingual-e5-small)",
}
REFINERS = {
    "longllmlingua": "the system of the row LongLLMLingua, as longllmlingua:FOLDER",
    "jina": "the system of the row JinaAI Reader, as readerlm:transformers:FOLDER",
}
PRUNER = {"pruner": "folder of a trained pruner, or its server, as llamacpp:http://127.0.0.1:8080"}


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table: its label and its system; ``why`` it is not run, where it is not."""

    label: str
    system: str
    why: str = ""


def sets(study: Study, choice: Choice) -> tuple[Set, ...]:
    """Return the sets of a study."""
    return tuple(s for s in (STAND_INS if choice.stand_ins else SETS) if s.task in study.tasks(choice))


def said(study: Study, choice: Choice, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return what a table says of itself, and which of its sets hold no HTML."""
    plain = " and ".join(s.task for s in sets(study, choice) if not s.html)
    line = f"{plain} hold paragraphs of plain text, no HTML: there, rows of HTML show what bare paragraphs give."
    return (*notes(study, choice, outcomes), *((line,) if plain else ()))


def printed(choice: Choice) -> Line:
    """Return HtmlRAG without its generative stage, by the algorithms as they are printed."""
    return Line("HtmlRAG w/o Prune-Gen", f"htmlrag:{choice.options.get('embedder', 'static')}")


def ours(choice: Choice, words: int = 256, options: str = "") -> Line:
    """Return HtmlRAG without its generative stage, as Prunus runs it: blocks pruned by an embedder.

    :param words: words of a block at most.
    :param options: options of the system, as ``@units=leaves``.
    """
    return Line("the same by Prunus", f"prunus:static:html@words={words}{_embedder(choice)}{options}")


def both(choice: Choice, words: int = 128, options: str = "", option: str = "pruner") -> Line:
    """Return HtmlRAG: blocks of 256 words pruned to 8K tokens by an embedder, then finer blocks by the pruner.

    :param words: words of a block of the second stage at most.
    :param option: the choice that names the pruner.
    """
    model = choice.options.get(option)
    if not model:
        return Line("HtmlRAG", "", "it needs a trained pruner, --set pruner=FOLDER")
    sizes = f"@words={words}@coarse_words={max(256, words)}@coarse={COARSE}"
    return Line("HtmlRAG", f"prunus:static>generative:{model}:html{sizes}{_embedder(choice)}{options}")


def _embedder(choice: Choice) -> str:
    name = choice.options.get("embedder", "static")
    return "" if name == "static" else f"@embedder={name}"


def chunks(choice: Choice) -> list[Line]:
    """Return the paper's chunking baselines, cut at headings; static vectors stand beside them.

    Transformers take seconds for a page, so that they are run only where the user names them.
    """
    lines = [Line("BM25", "chunks:headings:bm25"), Line("static vectors", "chunks:headings:static")]
    for label, option in (("BGE", "bge"), ("E5-Mistral", "e5")):
        model = choice.options.get(option, "")
        shown = f"{model}, in the place of {label}" if model else label
        lines.append(Line(shown, f"chunks:headings:{model}", "" if model else f"no embedder: --set {option}="))
    return lines


def refiners(choice: Choice) -> list[Line]:
    """Return the paper's abstractive refiners."""
    return [
        Line(label, choice.options.get(option, ""), "" if option in choice.options else f"no system: --set {option}=")
        for label, option in (("LongLLMLingua", "longllmlingua"), ("JinaAI Reader", "jina"))
    ]


def default() -> list[Line]:
    """Return Prunus as a user gets it; the first line is what others are compared with."""
    return [
        Line("Prunus, the default", systems.DEFAULT),
        Line("Prunus, the default, as Markdown", "prunus:trees:markdown"),
    ]


def short(choice: Choice) -> list[Line]:
    """Return the rows of Table 1."""
    return [*default(), both(choice), printed(choice), ours(choice), *chunks(choice), *refiners(choice)]


def whole(choice: Choice) -> list[Line]:
    """Return the rows of Tables 2 and 6."""
    return [
        Line("HtmlRAG w/o Prune", "whole:lean"),
        Line("HtmlRAG w/o Prune, with addresses", "whole:clean"),
        Line("Vanilla HTML", "whole:html"),
        Line("Plain Text", "whole:soup"),
        Line("Markdown", "whole:markdown"),
    ]


def here(lines: Sequence[Line]) -> tuple[list[Line], tuple[str, ...]]:
    """Return the lines that can be run, and a note on those for which the user names no model.

    :raises DataMissing: a line that the user names lacks something here.
    """
    found, gone = [], []
    for line in lines:
        if line.why:
            gone.append(f"{line.label} ({line.why})")
            continue
        if lacking := systems.missing(line.system):
            raise DataMissing(f"{line.label}, {line.system}: {lacking}")
        found.append(line)
    return found, (f"Not run: {'; '.join(gone)}.",) if gone else ()


def measures(study: Study, choice: Choice) -> tuple[str, ...]:
    """Return the metrics of all sets of a study."""
    readers = choice.readers or (harness.NO_READER,)
    return tuple(dict.fromkeys(name for s in sets(study, choice) for r in readers for _, name in s.measured(r)))


def planned(study: Study, choice: Choice, lines: Sequence[Line], budgets: Sequence[int]) -> Plan:
    """Return the plan of lines, as far as they can be run here.

    :raises EvalError: none of them can be run here.
    """
    usable, gone = here(lines)
    if not usable:
        raise EvalError(f"{study.name}: {gone[0]}")
    names = dict.fromkeys(line.system for line in usable)
    return plan(study, choice, tuple(names), budgets, metrics=measures(study, choice))


def framed(
    study: Study,
    choice: Choice,
    outcomes: Sequence[Outcome],
    title: str,
    lines: Sequence[Line],
    cited: tuple[Sequence[str], Mapping[str, str], str] | None = None,
) -> list[Table]:
    """Return tables of lines: sets in columns at one budget; one table a set, budgets in columns, at several.

    :param cited: the published columns and numbers, and the table's name. They stand in the same table where the sets
        are the paper's and the columns are alike; else in a table of their own.
    """
    usable, gone = here(lines)
    rows = [(line.label, {"system": line.system}) for line in usable]
    budgets = sorted({outcome.budget for outcome in outcomes})
    tables: list[Table] = []
    told = (*said(study, choice, outcomes), *gone)
    for reader in choice.readers or (harness.NO_READER,):
        name = title if reader == harness.NO_READER else f"{title}, answered by {reader}"
        if len(budgets) == 1:
            columns = [
                (f"{s.title} {head}", {"task": s.task, "metric": metric, "budget": budgets[0], "reader": reader})
                for s in sets(study, choice)
                for head, metric in s.measured(reader)
            ]
            heads = tuple(head for head, _ in columns)
            found = grid(outcomes, rows, columns, scale=100)
            together = cited is not None and heads == tuple(cited[0])
            beside = published.rows(dict(cited[1]), cited[2]) if cited and together else []
            tables.append(Table(f"{name}, {budgets[0]:,} tokens", heads, (*found, *beside), told, digits=2))
            continue
        for s in sets(study, choice):
            for head, metric in s.measured(reader):
                columns = [
                    (f"{b:,}", {"task": s.task, "metric": metric, "budget": b, "reader": reader}) for b in budgets
                ]
                found = grid(outcomes, rows, columns, scale=100)
                heads = tuple(head for head, _ in columns)
                tables.append(Table(f"{name}: {s.title}, {head} in percent, by budget", heads, found, told, digits=1))
    if cited is not None and not any(row.cited for table in tables for row in table.rows):
        tables.append(published.table(f"HtmlRAG's {cited[2]}", cited[0], dict(cited[1]), cited[2]))
    return tables


# Tables 1, 2 and 6: readers


def _plans_1(study: Study, choice: Choice) -> dict[str, Plan]:
    return {"short": planned(study, choice, short(choice), (SHORT,))}


def _tables_1(study: Study, choice: Choice, found: Mapping[str, Sequence[Outcome]]) -> list[Table]:
    cited = (published.QA_COLUMNS, published.TABLE_1, "Table 1")
    return framed(study, choice, found["short"], "Short context", short(choice), cited)


def _plans_2(study: Study, choice: Choice) -> dict[str, Plan]:
    return {"long": planned(study, choice, whole(choice), (LONG,))}


def _tables_2(study: Study, choice: Choice, found: Mapping[str, Sequence[Outcome]]) -> list[Table]:
    numbers, where = (published.TABLE_2, "Table 2") if study.name == "htmlrag:2" else (published.TABLE_6, "Table 6")
    cited = (published.QA_COLUMNS, numbers, where)
    return framed(study, choice, found["long"], "Long context, no pruning", whole(choice), cited)


# Table 3: ablation


def ablation(choice: Choice) -> list[Line]:
    """Return the rows of Table 3, and beside them what the default gains by its blocks and by its two scores."""
    whole_method = both(choice)
    model = choice.options.get("pruner")
    alone = Line("w/o Prune-Embed", f"prunus:generative:{model}:html@words=128@stages=1", whole_method.why)
    return [
        *default()[:1],
        whole_method,
        replace(both(choice, options="@units=leaves"), label="w/o Block Tree (DOM leaves)"),
        alone,
        replace(printed(choice), label="w/o Prune-Gen"),
        ours(choice),
        replace(ours(choice, options="@units=leaves"), label="the same by Prunus, w/o Block Tree"),
        Line("the default w/o Block Tree", f"{systems.DEFAULT}@units=leaves"),
        Line("the default w/o embedder (BM25)", "prunus:bm25:html"),
    ]


def _plans_3(study: Study, choice: Choice) -> dict[str, Plan]:
    return {"ablation": planned(study, choice, ablation(choice), (SHORT,))}


def _tables_3(study: Study, choice: Choice, found: Mapping[str, Sequence[Outcome]]) -> list[Table]:
    cited = (published.QA_COLUMNS[:8], published.TABLE_3, "Table 3")
    return framed(study, choice, found["ablation"], "Ablation", ablation(choice), cited)


# Table 5: loss of information


def loss(choice: Choice) -> dict[int, list[Line]]:
    """Return the columns of Table 5: systems by their tokens."""
    first = printed(choice)
    return {
        LONG: [line for line in whole(choice) if line.system != "whole:clean"],
        COARSE: [first],
        SHORT: [*default(), *chunks(choice), *refiners(choice), first, ours(choice), both(choice)],
    }


def by_budget(choice: Choice) -> list[Line]:
    """Return the systems of Table 5 that are compared on equal budgets."""
    return [*short(choice), *whole(choice)]


def _plans_5(study: Study, choice: Choice) -> dict[str, Plan]:
    plans = {
        str(size): replace(planned(study, choice, lines, (size,)), budgets=(size,))
        for size, lines in loss(choice).items()
    }
    if choice.budgets:
        plans["by budget"] = planned(study, choice, by_budget(choice), choice.budgets)
    return plans


def _tables_5(study: Study, choice: Choice, found: Mapping[str, Sequence[Outcome]]) -> list[Table]:
    columns: list[tuple[str, dict[str, object]]] = []
    gone: tuple[str, ...] = ()
    every = [outcome for name in found if name != "by budget" for outcome in found[name]]
    for size, lines in loss(choice).items():
        usable, missing = here(lines)
        gone += missing
        columns += [
            (f"{line.label}, {size // 1024}k", {"system": line.system, "budget": size, "metric": EVIDENCE_EM[1]})
            for line in usable
        ]
    rows = [(s.title, {"task": s.task}) for s in sets(study, choice) if s.measured(harness.NO_READER)]
    numbers = grid(every, rows, columns, scale=100, compare=False)
    told = (*said(study, choice, every), *dict.fromkeys(gone))
    tables = [Table("Loss of information: EM of the evidence", tuple(c for c, _ in columns), numbers, told, digits=2)]
    tables.append(published.table("HtmlRAG's Table 5", published.TABLE_5_COLUMNS, published.TABLE_5, "Table 5"))
    if "by budget" in found:
        tables += framed(study, choice, found["by budget"], "Loss of information", by_budget(choice))
    return tables


# Table 7: the size of the pruner

SIZES = {"large": "Pruner of 3.8B in the paper", "small": "Pruner of 1.5B in the paper"}


def sizes(choice: Choice) -> list[Line]:
    """Return the rows of Table 7: HtmlRAG with two pruners, and without."""
    pairs = [
        replace(both(choice, option=option), label=f"HtmlRAG with {choice.options.get(option, option)}")
        for option in SIZES
    ]
    return [*pairs, printed(choice)]


def _plans_7(study: Study, choice: Choice) -> dict[str, Plan]:
    return {"sizes": planned(study, choice, sizes(choice), (SHORT,))}


def _tables_7(study: Study, choice: Choice, found: Mapping[str, Sequence[Outcome]]) -> list[Table]:
    cited = (published.TABLE_7_COLUMNS, published.TABLE_7, "Table 7")
    return framed(study, choice, found["sizes"], "Two pruners", sizes(choice), cited)


# Figure 5: granularity


def granular(choice: Choice, stage: str, words: int) -> Line:
    """Return a stage of HtmlRAG, or the default, with blocks of some words at most."""
    if stage == "Prune-Gen":
        return both(choice, words)
    if stage == "Prune-Embed":
        return ours(choice, words)
    return Line(stage, f"{systems.DEFAULT}@words={words}")


RED = "The paper draws its best chunks as a red line. Every row of chunks here is such a line; none is marked as best."
STAGES = ("Prunus, the default", "Prune-Embed", "Prune-Gen")


def _lines_figure(choice: Choice) -> list[Line]:
    return [granular(choice, stage, words) for stage in STAGES for words in WORDS] + chunks(choice)


def _plans_figure(study: Study, choice: Choice) -> dict[str, Plan]:
    return {"granularity": planned(study, choice, _lines_figure(choice), (SHORT,))}


def _tables_figure(study: Study, choice: Choice, found: Mapping[str, Sequence[Outcome]]) -> list[Table]:
    outcomes = found["granularity"]
    _, gone = here(_lines_figure(choice))
    told = (*said(study, choice, outcomes), *gone, RED)
    budgets = sorted({outcome.budget for outcome in outcomes})
    red, _ = here(chunks(choice))
    tables = []
    for reader in choice.readers or (harness.NO_READER,):
        for s in sets(study, choice):
            for head, metric in s.measured(reader):
                for budget in budgets:
                    fields = {"task": s.task, "budget": budget, "reader": reader}
                    rows = []
                    for stage in STAGES:
                        usable, _ = here([granular(choice, stage, words) for words in WORDS])
                        cells = [mean(outcomes, metric, None, 100, system=line.system, **fields) for line in usable]
                        rows += [Row(stage, tuple(cells))] if cells else []
                    for line in red:
                        number = mean(outcomes, metric, None, 100, system=line.system, **fields)
                        rows += [Row(f"chunks, {line.label}", (number,) * len(WORDS))] if number else []
                    title = f"Granularity: {s.title}, {head} in percent, {budget:,} tokens"
                    title += f", answered by {reader}" if reader != harness.NO_READER else ""
                    heads = tuple(f"{words} words" for words in WORDS)
                    tables.append(Table(title, heads, tuple(rows), told, digits=1))
    return tables


def _study(name: str, title: str, plans: Plans, tables: Tables, **rest: Any) -> Study:
    """Return a study over the sets of the paper, or over pages of HTML that stand in for them."""
    fields = {"stand_ins": HTML_STAND_INS, **rest}
    return Study(name, title, paper_tasks=TASKS, plans=plans, tables=tables, **fields)


BOTH = EMBEDDER | BASELINES | PRUNER
SHORT_OPTIONS = BOTH | REFINERS
SIZED = EMBEDDER | {name: f"a trained pruner: {title}" for name, title in SIZES.items()}

STUDIES = (
    _study(
        "htmlrag:1",
        "Table 1: answers at 4K tokens",
        _plans_1,
        _tables_1,
        stand_ins=STAND_IN_TASKS,
        reader=True,
        options=SHORT_OPTIONS,
    ),
    _study("htmlrag:2", "Table 2: answers at 128K tokens", _plans_2, _tables_2, reader=True),
    _study("htmlrag:3", "Table 3: what each part adds", _plans_3, _tables_3, answers=True, options=BOTH),
    _study("htmlrag:5", "Table 5: loss of information", _plans_5, _tables_5, options=SHORT_OPTIONS),
    _study("htmlrag:6", "Table 6: answers at 128K tokens", _plans_2, _tables_2, reader=True),
    _study(
        "htmlrag:7",
        "Table 7: two sizes of the pruner",
        _plans_7,
        _tables_7,
        stand_ins=STAND_IN_TASKS,
        answers=True,
        options=SIZED,
        needs=tuple(SIZES),
    ),
    _study(
        "htmlrag:figure5", "Figure 5: granularity of blocks", _plans_figure, _tables_figure, answers=True, options=BOTH
    ),
)
