"""RAPTOR (Sarthi and others, ICLR 2024): the tables that measure answers, and retrieval from trees.

Rows are systems by name (:mod:`prunus_evals.systems.tree`) whose trees are kept in the folder of the run. With a
reader, the tables show the metrics of answers. On stand-ins they also show the recall of the gold evidence, which needs
no reader. That recall judges the retrieval and hardly the tree: random groups reach the same
(:mod:`prunus_evals.trees`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from prunus_evals import harness, metrics, readers, studies, systems, tasks
from prunus_evals.progress import Progress
from prunus_evals.records import Outcome, System
from prunus_evals.studies import Choice, Number, Row, Study, Table, _raptor_published
from prunus_evals.studies._raptor_published import Published
from prunus_evals.systems import tree as trees
from prunus_evals.systems._trees import Recipe
from prunus_evals.tokens import Counter, llama2

BUDGET = 2000
"""Tokens of evidence in the paper; for UnifiedQA 400."""
BUDGET_UNIFIED = 400
STAND_INS = ("qmsum:specific", "xquad:de")
EVIDENCE = "span_recall"
OF_EVIDENCE = {"xquad:de": ("answer survives", "answer")}
"""Titles and metrics of evidence of the stand-ins whose metric is not the recall of the gold evidence."""
EXTRACTIVE = "extractive"
EVERYTHING = 100_000
"""A budget that holds what a traversal without a limit chooses."""
TOP_LAYER = 3
"""The highest layer of the layer study; the paper's stories end at layer 2."""
STORIES = 5
"""Stories that the layer study shows apart, as the paper does."""

OPTIONS = {
    "tree": "how nodes are grouped: ward (default on stand-ins), raptor (default on the paper's sets), contiguous, "
    "segments or random",
    "embedder": "spec of the dense embedder: static (default on stand-ins), minilm (default on the paper's sets), …",
    "summarizer": "extractive (default), or the spec of a language model",
    "dpr": "spec of an embedder that holds DPR; without it the rows of DPR have no numbers",
}


BEST_NODES = "tree:{tree}@embedder={dense}{llm}"
BEST_CHUNKS = "tree:{tree}@embedder={dense}@way=flat"
BM25_NODES = "tree:{tree}@embedder={dense}{llm}@ranker=bm25"
BM25_CHUNKS = "tree:{tree}@embedder={dense}@way=flat@ranker=bm25"
DPR_NODES = "tree:{tree}@embedder={dpr}{llm}"
DPR_CHUNKS = "tree:{tree}@embedder={dpr}@way=flat"
"""Systems; ``{tree}``, ``{dense}``, ``{dpr}`` and ``{llm}`` stand for what the user chose."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a study measures.

    :param rows: labels of rows, and the system of each; ``{dense}`` and ``{tree}`` stand for what the user chose.
    :param columns: titles of the paper's columns, with the task and the metric of each.
    :param published: the paper's numbers.
    :param by_reader: whether the paper has a column for each reader.
    :param beside: further rows, whatever the user chose; those that lack a package here are left out, and told.
    """

    rows: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str, str], ...]
    published: Published
    budget: int = BUDGET
    by_reader: bool = False
    beside: tuple[tuple[str, str], ...] = ()


WITH_AND_WITHOUT = (
    ("{dense} with {tree} tree", BEST_NODES),
    ("{dense} without tree", BEST_CHUNKS),
    ("BM25 with {tree} tree", BM25_NODES),
    ("BM25 without tree", BM25_CHUNKS),
    ("DPR with {tree} tree", DPR_NODES),
    ("DPR without tree", DPR_CHUNKS),
)
RETRIEVERS = (("{dense} with {tree} tree", BEST_NODES), ("BM25", BM25_CHUNKS), ("DPR", DPR_CHUNKS))
BEGINNING = ("Title + Abstract", "results:title_abstract")
BEST = (("{dense} with {tree} tree", BEST_NODES),)
NARRATIVE = (
    ("ROUGE-L", "narrativeqa:test", "rouge_l_stem"),
    ("BLEU-1", "narrativeqa:test", "bleu1"),
    ("BLEU-4", "narrativeqa:test", "bleu4"),
    ("METEOR without synonyms", "narrativeqa:test", "meteor_exact_stem"),
)
QASPER = ("F-1 Match", "qasper:test", "qasper_f1")
QUALITY = ("Accuracy", "quality:dev", "accuracy")

FRAMES = {
    "1": Frame(WITH_AND_WITHOUT, NARRATIVE, _raptor_published.TABLE_1, BUDGET_UNIFIED),
    "2": Frame(
        WITH_AND_WITHOUT,
        (("Accuracy (QuALITY)", *QUALITY[1:]), ("Answer F1 (QASPER)", *QASPER[1:])),
        _raptor_published.TABLE_2,
        BUDGET_UNIFIED,
    ),
    "3": Frame((*RETRIEVERS, BEGINNING), (QASPER,), _raptor_published.TABLE_3, by_reader=True),
    "4": Frame(RETRIEVERS, (("Acc.", "quality:dev", "accuracy"),), _raptor_published.TABLE_4, by_reader=True),
    "5": Frame(BEST, (QASPER,), _raptor_published.TABLE_5),
    "6": Frame(
        (*BEST, ("Summaries of the top layer only, {tree} tree", f"{BEST_NODES}@way=root")),
        NARRATIVE,
        _raptor_published.TABLE_6,
        BUDGET_UNIFIED,
    ),
    "7": Frame(
        BEST,
        (("Dev Set", "quality:dev", "accuracy"), ("Hard Subset of dev", "quality:hard", "accuracy")),
        _raptor_published.TABLE_7,
    ),
    "9": Frame(
        (
            ("{dense} with {tree} tree", BEST_NODES),
            ("{dense} with contiguous tree", BEST_NODES.replace("{tree}", "contiguous")),
            ("{dense} with random tree (control)", BEST_NODES.replace("{tree}", "random")),
            ("{dense} without tree", BEST_CHUNKS),
        ),
        (QUALITY,),
        _raptor_published.TABLE_9,
        BUDGET_UNIFIED,
        beside=(
            ("Dense (static) with ward tree", "tree:ward@embedder=static{llm}"),
            ("Dense (static) with raptor tree", "tree:raptor@embedder=static{llm}"),
            ("Dense (minilm) with ward tree", "tree:ward@embedder=minilm{llm}"),
            ("Dense (minilm) with raptor tree", "tree:raptor@embedder=minilm{llm}"),
            ("Dense (minilm) without tree, chunks of raptor", "tree:raptor@embedder=minilm@way=flat"),
        ),
    ),
}


# --- what is run ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Running:
    """A study that runs: what the user chose, and its folders."""

    study: Study
    choice: Choice
    folder: Path | None
    trees: Path
    progress: Callable[[str], None]
    counter: Counter

    @property
    def recipe(self) -> Recipe:
        """The trees that the user chose."""
        return recipe_of(self.choice)

    def named(self, system: str) -> str:
        """Return the name of a row's system with what the user chose; '' for DPR where no embedder is named for it."""
        recipe, dpr = self.recipe, self.choice.options.get("dpr", "")
        if "{dpr}" in system and not dpr:
            return ""
        llm = f"@llm={recipe.llm}" if recipe.llm else ""
        for place, chosen in {"tree": recipe.tree, "dense": recipe.embedder, "dpr": dpr, "llm": llm}.items():
            system = system.replace(f"{{{place}}}", chosen)
        return system

    def system(self, name: str) -> System:
        """Make a system; a tree is kept in the folder of trees."""
        file, _, variant = name.partition(":")
        return trees.make(self.counter, variant, self.trees) if file == "tree" else systems.make(name, self.counter)

    def measured(self, wanted_systems: Sequence[str], budgets: Sequence[int], wanted: Sequence[str]) -> list[Outcome]:
        """Run systems over the tasks of the study; one that is not here is left out.

        :param wanted: names of metrics.
        """
        made = [self.system(name) for name in dict.fromkeys(map(self.named, wanted_systems)) if name]
        plan = studies.plan(self.study, self.choice, [system.name for system in made], budgets, metrics=tuple(wanted))
        plan = replace(plan, budgets=tuple(budgets))
        engines = harness.Engines(self.counter, made, {spec: readers.make(spec) for spec in plan.readers})
        tell = Progress(before=f"{self.study.name}, ", write=self.progress)
        return harness.run(plan, self.folder, tell, engines, add=True)


def recipe_of(choice: Choice) -> Recipe:
    """Return the trees that the user chose.

    :raises UnknownName: there is no such tree or engine.
    """
    tree, embedder = ("ward", "static") if choice.stand_ins else ("raptor", "minilm")
    options = choice.options
    summarizer = options.get("summarizer", EXTRACTIVE)
    llm = "" if summarizer == EXTRACTIVE else summarizer
    return Recipe(options.get("tree", tree), options.get("embedder", embedder), llm)


@contextmanager
def running(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Iterator[Running]:
    """Give a study its folder of trees; without a folder of the run, one that is deleted at the end."""
    if folder is not None:
        yield Running(study, choice, folder, folder / "trees", progress, llama2())
        return
    with TemporaryDirectory(ignore_cleanup_errors=True) as place:
        yield Running(study, choice, None, Path(place), progress, llama2())


# --- Tables 1 to 7 and 9 -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column of our numbers."""

    title: str
    task: str
    metric: str
    reader: str
    budget: int


def columns_of(study: Study, choice: Choice, frame: Frame) -> list[Column]:
    """Return our columns. A title is the paper's where there is one reader and one budget."""
    budgets = choice.budgets or (frame.budget,)
    asked = choice.readers or (harness.NO_READER,)
    found = []
    for budget in budgets:
        for reader in asked:
            for title, task, metric in _measures(study, choice, frame, reader != harness.NO_READER):
                of_evidence = metric in MEANINGS
                if of_evidence and reader != asked[0]:  # it is the same for every reader
                    continue
                by_reader = choice.readers and not of_evidence and (frame.by_reader or len(asked) > 1)
                parts = [title, *([reader] if by_reader else ())]
                parts += [f"{budget} tokens"] * (len(budgets) > 1)
                found.append(Column(", ".join(parts), task, metric, reader, budget))
    return found


def _measures(study: Study, choice: Choice, frame: Frame, answers: bool) -> Iterator[tuple[str, str, str]]:
    """Yield titles, tasks and metrics of columns."""
    if not choice.stand_ins:
        yield from frame.columns
        return
    for task in study.tasks(choice):
        title, metric = OF_EVIDENCE.get(task, ("recall", EVIDENCE))
        yield title, task, metric
        if answers:
            known = tasks.about(task).metrics
            yield from ((m, task, m) for m in known if metrics.named([m])[0].of == "answer")


def _run_frame(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Sequence[Table]:
    frame = FRAMES[study.name.partition(":")[2]]
    columns = columns_of(study, choice, frame)
    with running(study, choice, folder, progress) as run:
        lacking = {label: systems.missing(run.named(system)) for label, system in frame.beside}
        rows = [*frame.rows, *(row for row in frame.beside if not lacking[row[0]])]
        outcomes = run.measured(
            [system for _, system in rows],
            choice.budgets or (frame.budget,),
            list(dict.fromkeys(column.metric for column in columns)),
        )
        names = {label_of(label, run.recipe): run.named(system) for label, system in rows}
    tables = framed(study, choice, frame, columns, names, outcomes)
    left = tuple(f"Left out: {label}; it needs {need}." for label, need in lacking.items() if need)
    return [replace(table, notes=(*table.notes, *left)) if table.notes else table for table in tables]


def label_of(label: str, recipe: Recipe) -> str:
    """Return the label of a row with what the user chose."""
    return label.replace("{dense}", f"Dense ({recipe.embedder})").replace("{tree}", recipe.tree)


def framed(
    study: Study,
    choice: Choice,
    frame: Frame,
    columns: Sequence[Column],
    names: Mapping[str, str],
    outcomes: Sequence[Outcome],
) -> list[Table]:
    """Return a table of the paper: our rows, then the cited ones.

    A column of ours that has the title of one of the paper's is the same column. On stand-ins each task has a table of
    its own, and the cited one stands apart.

    :param names: names of systems by the label of their row; '' for a system that is not here.
    """
    said = said_of(study, choice, outcomes, "" in names.values(), paired=True)
    said.append(f"Budget: {', '.join(map(str, choice.budgets or (frame.budget,)))} tokens of evidence.")
    rows = [(label, {"system": name}) for label, name in names.items()]
    groups = [list(columns)]
    if choice.stand_ins:
        groups = [[column for column in columns if column.task == task] for task in study.tasks(choice)]
    found = []
    for group in groups:
        fields = [{"metric": c.metric, "task": c.task, "reader": c.reader, "budget": c.budget} for c in group]
        titles = [column.title for column in group]
        ours = studies.grid(outcomes, rows, list(zip(titles, fields, strict=True)), scale=100.0)
        where = f" (here {group[0].task}, a stand-in)" if choice.stand_ins else ""
        meant = [MEANINGS[metric] for metric in dict.fromkeys(column.metric for column in group) if metric in MEANINGS]
        found.append(Table(f"{study.title}{where}, %", tuple(titles), ours, (*said, *meant), digits=1))
    if choice.stand_ins:
        return [*found, cited(f"{study.title}, %", frame.published)]
    return [beside(found[0], frame.published)]


def said_of(
    study: Study, choice: Choice, outcomes: Sequence[Outcome], lacks_dpr: bool = False, paired: bool = False
) -> list[str]:
    """Return what tables of outcomes say of themselves.

    :param paired: whether rows are compared with the first.
    """
    said = [line for line in studies.notes(study, choice, outcomes) if OF_SYSTEMS not in line]
    if not paired:
        said = [studies.ALONE if line == studies.INTERVALS else line for line in said]
    return [*said, *notes(choice, lacks_dpr)]


OF_SYSTEMS = " works with a model: "
"""What a note of studies on a system holds: the note on summaries says it once for all systems."""


def cited(title: str, published: Published, digits: int | None = None) -> Table:
    """Return a table of the paper as it was printed.

    :param digits: decimals; by default as many as the paper prints.
    """
    values = (value for _, row in published.rows for value in row if value is not None)
    printed = max(len(f"{value:.3f}".rstrip("0").partition(".")[2]) for value in values)
    return beside(Table(f"{title} (as printed)", (), (), digits=printed if digits is None else digits), published)


def beside(own: Table, published: Published, notes: Sequence[str] = ()) -> Table:
    """Return a table with the cited rows of the paper below ours, each number under its own column."""
    kept = [place for place, _ in enumerate(own.columns) if any(row.numbers[place] for row in own.rows)]
    titles = tuple(dict.fromkeys([*published.columns, *(own.columns[place] for place in kept)]))
    rows = []
    for row in own.rows:
        known = {own.columns[place]: row.numbers[place] for place in kept}
        rows.append(Row(row.label, tuple(known.get(title) for title in titles)))
    for label, values in published.rows:
        cited = dict(zip(published.columns, values, strict=True))
        shown = (cited.get(title) for title in titles)
        rows.append(Row(label, tuple(None if v is None else Number(v) for v in shown), published.source))
    return replace(own, columns=titles, rows=tuple(rows), notes=(*own.notes, *notes))


def notes(choice: Choice, lacks_dpr: bool = False) -> list[str]:
    """Return what tables of trees say of themselves."""
    recipe = recipe_of(choice)
    lines = [f"Trees: {recipe.name}, one for the documents of each question; tokens by the Llama-2 tokenizer."]
    if recipe.caveat:
        lines.append(f"Summaries: {readers.CAVEATS[recipe.caveat]}.")
    if lacks_dpr:
        lines.append("DPR is not here: name an embedder that holds it with --set dpr=SPEC.")
    return lines


RECALL = (  # of the metric span_recall
    "recall: share of the letters of the gold evidence that were kept; a sentence of an extractive summary counts at "
    "its place in the text. It hardly judges the tree: random groups reach the same. Evidence whose places "
    "are not known has none."
)
SURVIVES = "answer survives: share of the questions whose answer stands in the evidence, word for word."
MEANINGS = {EVIDENCE: RECALL, "answer": SURVIVES}
"""What columns of evidence show, by metric."""


# --- the layer study: Tables 8 and 14 to 17 ------------------------------------------------------


def layer_systems(top: int = TOP_LAYER) -> dict[tuple[int, int], str]:
    """Return the systems of the layer study by number of layers and start layer (the highest)."""
    return {
        (count, start): f"{BEST_NODES}@start={start}@count={count}"
        for start in range(top + 1)
        for count in range(1, start + 2)
    }


def _run_layers(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Sequence[Table]:
    task = study.tasks(choice)[0]
    metric = _answer_metric(task) if choice.readers else EVIDENCE
    with running(study, choice, folder, progress) as run:
        cells = layer_systems()
        outcomes = run.measured(list(cells.values()), choice.budgets or study.budgets, (metric,))
        names = {cell: run.named(system) for cell, system in cells.items()}
    said = (*said_of(study, choice, outcomes), *((RECALL,) if metric == EVIDENCE else ()))
    found: list[Table] = []
    for budget in choice.budgets or study.budgets:
        for reader in choice.readers or (harness.NO_READER,):
            own = [outcome for outcome in outcomes if (outcome.budget, outcome.reader) == (budget, reader)]
            by = f", {reader}" if choice.readers else ""
            found += layer_tables(names, own, metric, said, f"{_titled(metric)}, %, {budget} tokens{by}")
    return found + [cited(f"{title}, accuracy, %", own) for title, own in _raptor_published.LAYERS.items()]


def _titled(metric: str) -> str:
    return "recall of the gold evidence" if metric == EVIDENCE else metric


def _answer_metric(task: str) -> str:
    """Return the first metric of answers of a task."""
    return next(metric.name for metric in metrics.named(tasks.about(task).metrics) if metric.of == "answer")


def layer_tables(
    names: Mapping[tuple[int, int], str], outcomes: Sequence[Outcome], metric: str, said: tuple[str, ...], what: str
) -> list[Table]:
    """Return the tables of the layer study for one budget and reader: of all documents whose trees are equally high,
    and of single documents, as the paper has them.

    :param names: names of systems by number of layers and start layer.
    :param what: what the numbers are, for titles.
    """
    heights: dict[int, dict[str, None]] = {}
    for outcome in outcomes:
        heights.setdefault(int(outcome.facts["height"]), {})[outcome.page] = None
    found = []
    for height, pages in sorted(heights.items()):
        many = f"{len(pages)} document{'s' * (len(pages) > 1)}"
        title = f"RAPTOR, Tables 8 and 14-17: trees of {height + 1} layers, {many}, {what}"
        found.append(_layer_table(title, list(pages), height, names, outcomes, metric, said))
    shown = [(page, height) for height, pages in sorted(heights.items(), reverse=True) for page in pages][:STORIES]
    for page, height in shown:
        title = f"RAPTOR, Tables 8 and 14-17: the document {page}, {what}"
        found.append(_layer_table(title, [page], height, names, outcomes, metric, said))
    return found


def _layer_table(
    title: str,
    pages: Sequence[str],
    height: int,
    names: Mapping[tuple[int, int], str],
    outcomes: Sequence[Outcome],
    metric: str,
    said: tuple[str, ...],
) -> Table:
    own = [outcome for outcome in outcomes if outcome.page in set(pages)]
    top = min(height, TOP_LAYER)
    rows = []
    for count in range(1, top + 2):
        numbers = [
            studies.mean(own, metric, scale=100.0, system=names[count, start]) if count <= start + 1 else None
            for start in range(top + 1)
        ]
        rows.append(Row(f"{count} layer{'s' * (count > 1)}", tuple(numbers)))
    columns = tuple(f"Layer {start}" + " (Leaf Nodes)" * (start == 0) for start in range(top + 1))
    return Table(title, columns, tuple(rows), (*said, LAYERS), digits=1)


LAYERS = (
    "Columns: the highest layer that is retrieved from (the start layer). Rows: how many layers, from it down. The "
    "last cell is the whole tree."
)


# --- where retrieved nodes come from: Tables 18 to 21, Figure 7 ----------------------------------

RANKERS = {"DPR": DPR_NODES, "SBERT": BEST_NODES, "BM25": BM25_NODES}
RANKER_LABELS = {"DPR": "DPR", "SBERT": "{dense}", "BM25": "BM25"}
"""The paper's retrievers, and what stands for each."""
SETS = {"NarrativeQA": "narrativeqa:test", "Quality": "quality", "Qasper": "qasper"}


def _run_sources(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Sequence[Table]:
    with running(study, replace(choice, readers=()), folder, progress) as run:  # an answer would change nothing
        outcomes = run.measured(list(RANKERS.values()), choice.budgets or study.budgets, (EVIDENCE,))
        names = {ranker: run.named(system) for ranker, system in RANKERS.items()}
        labels = {ranker: label_of(RANKER_LABELS[ranker], run.recipe) for ranker in RANKERS}
    said = tuple(said_of(study, choice, outcomes, "" in names.values()))
    said += ("What is retrieved is measured, and no answer: readers are not asked.",) if choice.readers else ()
    found: list[Table] = []
    for budget in choice.budgets or study.budgets:
        own = [outcome for outcome in outcomes if outcome.budget == budget]
        found += source_tables(study.tasks(choice), (names, labels), own, said, budget, choice.stand_ins)
    return found + (cited_sources() if choice.stand_ins else [])


def cited_sources() -> list[Table]:
    """Return Tables 18 to 21 as they were printed."""
    tables = [cited("RAPTOR, Table 18: nodes that are not leaves, %", _raptor_published.TABLE_18)]
    for ranker, (number, published) in _raptor_published.SOURCES.items():
        tables.append(cited(f"RAPTOR, Table {number}: nodes by layer with {ranker}, %", published))
    return tables


def source_tables(
    wanted: Sequence[str],
    retrievers: tuple[Mapping[str, str], Mapping[str, str]],
    outcomes: Sequence[Outcome],
    said: tuple[str, ...],
    budget: int,
    stand_ins: bool,
) -> list[Table]:
    """Return Tables 18 to 21: the share of the retrieved nodes that come from each layer, in percent of all nodes.

    :param wanted: tasks.
    :param retrievers: by the paper's name of a retriever: the name of its system, '' for one that is not here; its
        label.
    :param stand_ins: leave the paper's numbers out, which are of other sets.
    """
    names, labels = retrievers
    columns = {task: next((title for title, own in SETS.items() if own == task), task) for task in wanted}
    highest = max((int(layer) for outcome in outcomes for layer in outcome.facts["layers"]), default=0)
    upper = set(range(1, highest + 1))
    rows = [
        Row(title, tuple(share(outcomes, task, name, upper) for name in names.values()))
        for task, title in columns.items()
    ]
    where = f"% of the nodes retrieved within {budget} tokens" + ", stand-ins" * stand_ins
    heads = tuple(labels.values()) if stand_ins else tuple(names)
    upper_nodes = Table(f"RAPTOR, Table 18: nodes that are not leaves, {where}", heads, tuple(rows), said, digits=2)
    tables = [upper_nodes if stand_ins else beside(upper_nodes, _raptor_published.TABLE_18)]
    for ranker, (number, published) in _raptor_published.SOURCES.items():
        if not names[ranker] and stand_ins:
            continue
        rows = [
            Row(f"layer {layer}", tuple(share(outcomes, task, names[ranker], {layer}) for task in columns))
            for layer in range(highest + 1)
        ]
        title = f"RAPTOR, Table {number} and Figure 7: nodes by layer with {labels[ranker]}, {where}"
        own = Table(title, tuple(columns.values()), tuple(rows), (*said, BY_LAYER), digits=2)
        tables.append(own if stand_ins else beside(own, published))
    return tables


BY_LAYER = "Layer 0 holds the chunks (leaves); a layer that no tree of a set has is 0 there."


def share(outcomes: Sequence[Outcome], task: str, system: str, layers: Container[int]) -> Number | None:
    """Return the share of the retrieved nodes that come from layers, in percent; the bootstrap draws pages."""
    values: dict[str, list[float]] = {}
    for outcome in outcomes:
        if outcome.task == task and outcome.system == system:
            for layer, count in outcome.facts["layers"].items():
                values.setdefault(outcome.page, []).extend([100.0 * (int(layer) in layers)] * count)
    return studies.number(values)


# --- Figure 3: two ways of querying --------------------------------------------------------------

TOPS = (1, 2, 3, 5, 8)
LENGTHS = (500, 1000, 2000, 3000, 4000)


def _run_ways(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Sequence[Table]:
    task = study.tasks(choice)[0]
    metric = _answer_metric(task) if choice.readers else EVIDENCE
    lengths = choice.budgets or study.budgets
    with running(study, choice, folder, progress) as run:
        falls = {top: f"{BEST_NODES}@way=traversal@top={top}" for top in TOPS}
        outcomes = run.measured(list(falls.values()), (EVERYTHING,), (metric,))
        outcomes += run.measured([BEST_NODES], lengths, (metric,))
        fields = {f"Tree traversal, top-{top}": (run.named(way), EVERYTHING) for top, way in falls.items()}
        fields |= {f"Collapsed tree, {length} tokens": (run.named(BEST_NODES), length) for length in lengths}
    said = (*said_of(study, choice, outcomes), *((RECALL,) if metric == EVIDENCE else ()))
    said += (
        "Tree traversal takes the k best nodes of each layer (top-k), whatever their tokens.",
        "The paper prints Figure 3 without numbers: collapsed trees were best, at 2,000 tokens.",
    )
    return [way_table(study.title, fields, outcomes, metric, said, choice.readers or (harness.NO_READER,))]


def way_table(
    title: str,
    fields: Mapping[str, tuple[str, int]],
    outcomes: Sequence[Outcome],
    metric: str,
    said: tuple[str, ...],
    by: Sequence[str],
) -> Table:
    """Return Figure 3 as a table: tokens of context, and the metric in percent, a column for each reader.

    :param fields: system and budget of each row.
    :param by: readers.
    """
    rows = []
    for label, (system, budget) in fields.items():
        tokens = studies.mean(outcomes, "tokens", system=system, budget=budget, reader=by[0])
        found = [studies.mean(outcomes, metric, scale=100.0, system=system, budget=budget, reader=one) for one in by]
        rows.append(Row(label, (tokens, *found)))
    titled = (f"{_titled(metric)}, %" + f", {one}" * (one != harness.NO_READER) for one in by)
    return Table(title, ("tokens of context", *titled), tuple(rows), said, digits=1)


# --- the studies ---------------------------------------------------------------------------------

TITLES = {
    "1": "RAPTOR, Table 1: NarrativeQA with and without the tree",
    "2": "RAPTOR, Table 2: QuALITY and QASPER with and without the tree",
    "3": "RAPTOR, Table 3: QASPER by retriever and reader",
    "4": "RAPTOR, Table 4: QuALITY dev by retriever and reader",
    "5": "RAPTOR, Table 5: QASPER beside other systems",
    "6": "RAPTOR, Table 6: NarrativeQA beside other systems",
    "7": "RAPTOR, Table 7: QuALITY and its hard subset beside other systems",
    "9": "RAPTOR, Table 9: grouped by likeness against contiguous groups",
}

STUDIES = (
    *(
        Study(
            f"raptor:{number}",
            title,
            tuple(dict.fromkeys(task for _, task, _ in FRAMES[number].columns)),
            STAND_INS,
            answers=True,
            options=OPTIONS,
            run=_run_frame,
        )
        for number, title in TITLES.items()
    ),
    Study(
        "raptor:8",
        "RAPTOR, Tables 8 and 14-17: start layer and number of layers",
        ("quality:dev",),
        STAND_INS[:1],
        answers=True,
        options=OPTIONS,
        budgets=(BUDGET,),
        run=_run_layers,
    ),
    Study(
        "raptor:18",
        "RAPTOR, Tables 18-21 and Figure 7: where retrieved nodes come from",
        tuple(SETS.values()),
        (*STAND_INS, "squality:text"),
        options=OPTIONS,
        budgets=(BUDGET,),
        run=_run_sources,
    ),
    Study(
        "raptor:figure-3",
        "RAPTOR, Figure 3: tree traversal against the collapsed tree",
        ("qasper:test",),
        STAND_INS[:1],
        answers=True,
        options=OPTIONS,
        budgets=LENGTHS,
        run=_run_ways,
    ),
)
