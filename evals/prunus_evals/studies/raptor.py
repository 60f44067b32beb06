"""RAPTOR (Sarthi and others, ICLR 2024): the tables that measure answers, and retrieval from trees.

Systems retrieve from trees that :mod:`._trees` builds. With a reader, the tables show the paper's metrics of answers.
On stand-ins they show the recall of the gold evidence, too, which needs no model. That recall judges the retrieval and
hardly the tree: random groups reach the same (:mod:`prunus_evals.trees`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from prunus_evals import harness, metrics, readers, studies, tasks
from prunus_evals.records import Outcome, System
from prunus_evals.stats import mean
from prunus_evals.studies import Choice, Number, Row, Study, Table, _raptor_published
from prunus_evals.studies._baselines import TitleAbstract
from prunus_evals.studies._raptor_published import Published
from prunus_evals.studies._trees import EXTRACTIVE, Forest, Ranker, Recipe, TreeSystem, Way
from prunus_evals.tokens import llama2

BUDGET = 2000
"""Tokens of evidence in the paper; for UnifiedQA 400."""
BUDGET_UNIFIED = 400
STAND_INS = ("qmsum:specific", "xquad:de")
EVIDENCE = "span_recall"
OF_EVIDENCE = {"xquad:de": ("answer survives", "answer")}
"""Titles and metrics of evidence of the stand-ins whose metric is not the recall of the gold evidence."""
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


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How a row retrieves.

    :param tree: the tree, where it is not the one that the user chose.
    :param dpr: retrieve with DPR, and build the tree from its vectors.
    :param abstract: keep the title and the abstract, whatever the question, instead of retrieving.
    """

    way: Way = "collapsed"
    ranker: Ranker = "dense"
    layers: tuple[int, ...] = ()
    top: int = 0
    tree: str = ""
    dpr: bool = False
    abstract: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """What a study measures.

    :param rows: labels of rows, and how each retrieves; ``{dense}`` and ``{tree}`` stand for what the user chose.
    :param columns: titles of the paper's columns, with the task and the metric of each.
    :param published: the paper's numbers.
    :param by_reader: whether the paper has a column for each reader.
    """

    rows: tuple[tuple[str, Retrieval], ...]
    columns: tuple[tuple[str, str, str], ...]
    published: Published
    budget: int = BUDGET
    by_reader: bool = False


WITH_AND_WITHOUT = (
    ("{dense} with {tree} tree", Retrieval()),
    ("{dense} without tree", Retrieval("flat")),
    ("BM25 with {tree} tree", Retrieval(ranker="bm25")),
    ("BM25 without tree", Retrieval("flat", "bm25")),
    ("DPR with {tree} tree", Retrieval(dpr=True)),
    ("DPR without tree", Retrieval("flat", dpr=True)),
)
RETRIEVERS = (
    ("{dense} with {tree} tree", Retrieval()),
    ("BM25", Retrieval("flat", "bm25")),
    ("DPR", Retrieval("flat", dpr=True)),
)
BEGINNING = ("Title + Abstract", Retrieval(abstract=True))
BEST = (("{dense} with {tree} tree", Retrieval()),)
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
        (*BEST, ("Summaries of the top layer only, {tree} tree", Retrieval("roots"))),
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
            ("{dense} with {tree} tree", Retrieval()),
            ("{dense} with contiguous tree", Retrieval(tree="contiguous")),
            ("{dense} with random tree (control)", Retrieval(tree="random")),
            ("{dense} without tree", Retrieval("flat")),
        ),
        (QUALITY,),
        _raptor_published.TABLE_9,
        BUDGET_UNIFIED,
    ),
}


# --- what is run ---------------------------------------------------------------------------------


@dataclass(slots=True)
class Running:
    """A study that runs: what the user chose, and its folder."""

    study: Study
    choice: Choice
    folder: Path | None
    trees: Path
    progress: Callable[[str], None]
    forests: dict[Recipe, Forest]

    @property
    def recipe(self) -> Recipe:
        """The trees that the user chose."""
        return recipe_of(self.choice)

    def system(self, retrieval: Retrieval) -> System | None:
        """Return the system of a row; None for DPR where no embedder is named for it."""
        recipe = self.recipe
        if retrieval.abstract:
            return TitleAbstract(llama2())
        if retrieval.dpr:
            if "dpr" not in self.choice.options:
                return None
            recipe = replace(recipe, embedder=self.choice.options["dpr"])
        recipe = replace(recipe, tree=retrieval.tree or recipe.tree)
        if recipe not in self.forests:
            self.forests[recipe] = Forest(self.trees, recipe)
        return TreeSystem(self.forests[recipe], retrieval.way, retrieval.ranker, retrieval.layers, retrieval.top)

    def measured(self, retrievals: Sequence[Retrieval], budgets: Sequence[int], wanted: Sequence[str]) -> list[Outcome]:
        """Run retrievals over the tasks of the study.

        :param wanted: names of metrics.
        """
        made = [system for system in map(self.system, retrievals) if system is not None]
        plan = studies.plan(self.study, self.choice, [system.name for system in made], budgets, metrics=tuple(wanted))
        plan = replace(plan, budgets=tuple(budgets))
        engines = harness.Engines(llama2(), list(made), {spec: readers.make(spec) for spec in plan.readers})

        def tell(state: harness.Progress) -> None:
            self.progress(f"{self.study.name}, {state.task}: {state.pages} pages, {state.outcomes} outcomes")

        return harness.run(plan, self.folder, tell, engines, add=True)


def recipe_of(choice: Choice) -> Recipe:
    """Return the trees that the user chose."""
    tree, embedder = ("ward", "static") if choice.stand_ins else ("raptor", "minilm")
    options = choice.options
    return Recipe(options.get("tree", tree), options.get("embedder", embedder), options.get("summarizer", EXTRACTIVE))


@contextmanager
def running(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Iterator[Running]:
    """Give a study its folder of trees; without a folder of the run, one that is deleted at the end."""
    if folder is not None:
        yield Running(study, choice, folder, folder / "trees", progress, {})
        return
    with TemporaryDirectory(ignore_cleanup_errors=True) as place:
        yield Running(study, choice, None, Path(place), progress, {})


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
                parts = [title]
                parts += [reader] * (frame.by_reader or (len(asked) > 1 and metric != EVIDENCE))
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
        outcomes = run.measured(
            [retrieval for _, retrieval in frame.rows],
            choice.budgets or (frame.budget,),
            list(dict.fromkeys(column.metric for column in columns)),
        )
        names = {label: system.name if system else "" for label, system in _labelled(run, frame.rows)}
    return framed(study, choice, frame, columns, names, outcomes)


def _labelled(run: Running, rows: Sequence[tuple[str, Retrieval]]) -> Iterator[tuple[str, System | None]]:
    for label, retrieval in rows:
        yield label_of(label, run.recipe), run.system(retrieval)


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
    said = [*studies.notes(study, choice, outcomes), *notes(choice, "" in names.values())]
    said.append(f"Budget: {', '.join(map(str, choice.budgets or (frame.budget,)))} tokens of evidence.")
    said += [RECALL] if choice.stand_ins else []
    rows = [(label, {"system": name}) for label, name in names.items()]
    groups = [list(columns)]
    if choice.stand_ins:
        groups = [[column for column in columns if column.task == task] for task in study.tasks(choice)]
    found = []
    for group in groups:
        fields = [{"metric": c.metric, "task": c.task, "reader": c.reader, "budget": c.budget} for c in group]
        titles = [column.title for column in group]
        ours = studies.grid(outcomes, rows, list(zip(titles, fields, strict=True)), scale=100.0)
        where = f" ({group[0].task}, a stand-in)" if choice.stand_ins else ""
        found.append(Table(f"{study.title}{where}, %", tuple(titles), ours, digits=1))
    if choice.stand_ins:
        return [replace(table, notes=tuple(said)) for table in found] + [cited(f"{study.title}, %", frame.published)]
    return [beside(found[0], frame.published, said)]


def cited(title: str, published: Published, digits: int = 1) -> Table:
    """Return a table of the paper as it was printed."""
    return beside(Table(f"{title} (as printed)", (), (), digits=digits), published)


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
    lines = [f"Trees: {recipe.name}, one for each document; budgets by the Llama-2 tokenizer."]
    if recipe.caveat:
        lines.append(f"Summaries: {readers.CAVEATS[recipe.caveat]}.")
    if lacks_dpr:
        lines.append("DPR is not here: name an embedder that holds it with --set dpr=SPEC.")
    return lines


RECALL = (
    "recall: share of the letters of the gold evidence that were kept; a sentence of an extractive summary counts at "
    "its place in the text. It hardly judges the tree: random groups reach the same."
)


# --- the layer study: Tables 8 and 14 to 17 ------------------------------------------------------


def layer_retrievals(top: int = TOP_LAYER) -> dict[tuple[int, int], Retrieval]:
    """Return the retrievals of the layer study by number of layers and start layer (the highest)."""
    return {
        (count, start): Retrieval(layers=tuple(range(start - count + 1, start + 1)))
        for start in range(top + 1)
        for count in range(1, start + 2)
    }


def _run_layers(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Sequence[Table]:
    reader = (choice.readers or (harness.NO_READER,))[0]
    task = study.tasks(choice)[0]
    metric = EVIDENCE if reader == harness.NO_READER else _answer_metric(task)
    budget = (choice.budgets or (BUDGET,))[0]
    with running(study, replace(choice, readers=choice.readers[:1]), folder, progress) as run:
        cells = layer_retrievals()
        outcomes = run.measured(list(cells.values()), (budget,), (metric,))
        names = {cell: system.name for cell, retrieval in cells.items() if (system := run.system(retrieval))}
    said = (*studies.notes(study, choice, outcomes), *notes(choice), f"{_titled(metric)}, %, {budget} tokens.")
    said += (RECALL,) if metric == EVIDENCE else ()
    return layer_tables(names, outcomes, metric, said)


def _titled(metric: str) -> str:
    return "recall" if metric == EVIDENCE else metric


def _answer_metric(task: str) -> str:
    """Return the first metric of answers of a task."""
    return next(metric.name for metric in metrics.named(tasks.about(task).metrics) if metric.of == "answer")


def layer_tables(
    names: Mapping[tuple[int, int], str], outcomes: Sequence[Outcome], metric: str, said: tuple[str, ...]
) -> list[Table]:
    """Return the tables of the layer study: of all stories whose trees are equally high, of single stories, and the
    paper's.

    :param names: names of systems by number of layers and start layer.
    """
    heights: dict[int, dict[str, None]] = {}
    for outcome in outcomes:
        heights.setdefault(int(outcome.facts["height"]), {})[outcome.page] = None
    found = []
    for height, pages in sorted(heights.items()):
        title = f"RAPTOR, Tables 8 and 14-17: trees of {height + 1} layers, {len(pages)} documents"
        found.append(_layer_table(title, list(pages), height, names, outcomes, metric, said))
    shown = [(page, height) for height, pages in sorted(heights.items(), reverse=True) for page in pages][:STORIES]
    for page, height in shown:
        title = f"RAPTOR, Tables 8 and 14-17: the document {page}"
        found.append(_layer_table(title, [page], height, names, outcomes, metric, said))
    return found + [cited(title, published) for title, published in _raptor_published.LAYERS.items()]


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
    return Table(title, columns, tuple(rows), (*said, "Columns: start layer. Rows: layers queried."), digits=1)


# --- where retrieved nodes come from: Tables 18 to 21, Figure 7 ----------------------------------

RANKERS = {"DPR": Retrieval(dpr=True), "SBERT": Retrieval(), "BM25": Retrieval(ranker="bm25")}
SETS = {"NarrativeQA": "narrativeqa:test", "Quality": "quality", "Qasper": "qasper"}


def _run_sources(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Sequence[Table]:
    silent = replace(choice, readers=())
    budget = (choice.budgets or (BUDGET,))[0]
    with running(study, silent, folder, progress) as run:
        outcomes = run.measured(list(RANKERS.values()), (budget,), (EVIDENCE,))
        names = {ranker: system.name if (system := run.system(way)) else "" for ranker, way in RANKERS.items()}
    said = (*studies.notes(study, silent, outcomes), *notes(silent, "" in names.values()), f"{budget} tokens.")
    return source_tables(study.tasks(choice), names, outcomes, said)


def source_tables(
    wanted: Sequence[str], names: Mapping[str, str], outcomes: Sequence[Outcome], said: tuple[str, ...]
) -> list[Table]:
    """Return Tables 18 to 21: the share of the retrieved nodes that come from each layer, in percent of all nodes.

    :param wanted: tasks.
    :param names: names of systems by retriever; '' for one that is not here.
    """
    columns = {task: next((title for title, own in SETS.items() if own == task), task) for task in wanted}
    highest = max((int(layer) for outcome in outcomes for layer in outcome.facts["layers"]), default=0)
    upper = set(range(1, highest + 1))
    rows = [
        Row(title, tuple(share(outcomes, task, name, upper) for name in names.values()))
        for task, title in columns.items()
    ]
    upper_nodes = Table("RAPTOR, Table 18: nodes that are not leaves, %", tuple(names), tuple(rows), digits=2)
    tables = [beside(upper_nodes, _raptor_published.TABLE_18, said)]
    for ranker, (number, published) in _raptor_published.SOURCES.items():
        rows = [
            Row(
                str(layer),
                tuple(share(outcomes, task, names[ranker], {layer}) for task in columns),
            )
            for layer in range(highest + 1)
        ]
        title = f"RAPTOR, Table {number} and Figure 7: nodes by layer with {ranker}, %"
        tables.append(beside(Table(title, tuple(columns.values()), tuple(rows), digits=2), published, said))
    return tables


def share(outcomes: Sequence[Outcome], task: str, system: str, layers: Container[int]) -> Number | None:
    """Return the share of the retrieved nodes that come from layers, in percent; the bootstrap draws pages."""
    values: dict[str, list[float]] = {}
    for outcome in outcomes:
        if outcome.task == task and outcome.system == system:
            for layer, count in outcome.facts["layers"].items():
                values.setdefault(outcome.page, []).extend([100.0 * (int(layer) in layers)] * count)
    if not values:
        return None
    estimate = mean(values)
    return Number(estimate.mean, estimate.low, estimate.high)


# --- Figure 3: two ways of querying --------------------------------------------------------------

TOPS = (1, 2, 3, 5, 8)
LENGTHS = (500, 1000, 2000, 3000, 4000)


def _run_ways(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Sequence[Table]:
    reader = (choice.readers or (harness.NO_READER,))[0]
    task = study.tasks(choice)[0]
    metric = EVIDENCE if reader == harness.NO_READER else _answer_metric(task)
    lengths = choice.budgets or LENGTHS
    with running(study, replace(choice, readers=choice.readers[:1]), folder, progress) as run:
        falls = {top: Retrieval("traversal", top=top) for top in TOPS}
        outcomes = run.measured(list(falls.values()), (EVERYTHING,), (metric,))
        outcomes += run.measured([Retrieval()], lengths, (metric,))
        found = {f"Tree traversal, top-{top}": (run.system(way), EVERYTHING) for top, way in falls.items()}
        found |= {f"Collapsed tree, {length} tokens": (run.system(Retrieval()), length) for length in lengths}
        fields = {label: (system.name, budget) for label, (system, budget) in found.items() if system}
    said = (*studies.notes(study, choice, outcomes), *notes(choice))
    said += (RECALL,) if metric == EVIDENCE else ()
    said += ("The paper prints Figure 3 without numbers: collapsed trees were best, at 2,000 tokens.",)
    return [way_table(fields, outcomes, metric, said)]


def way_table(
    fields: Mapping[str, tuple[str, int]], outcomes: Sequence[Outcome], metric: str, said: tuple[str, ...]
) -> Table:
    """Return Figure 3 as a table: tokens of context, and the metric in percent.

    :param fields: system and budget of each row.
    """
    rows = []
    for label, (system, budget) in fields.items():
        tokens = studies.mean(outcomes, "tokens", system=system, budget=budget)
        found = studies.mean(outcomes, metric, scale=100.0, system=system, budget=budget)
        rows.append(Row(label, (tokens, found)))
    title = "RAPTOR, Figure 3: tree traversal against the collapsed tree"
    return Table(title, ("tokens of context", f"{_titled(metric)}, %"), tuple(rows), said, digits=1)


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
        run=_run_layers,
    ),
    Study(
        "raptor:18",
        "RAPTOR, Tables 18-21 and Figure 7: where retrieved nodes come from",
        tuple(SETS.values()),
        (*STAND_INS, "squality:text"),
        options=OPTIONS,
        run=_run_sources,
    ),
    Study(
        "raptor:figure-3",
        "RAPTOR, Figure 3: tree traversal against the collapsed tree",
        ("qasper:test",),
        STAND_INS[:1],
        answers=True,
        options=OPTIONS,
        run=_run_ways,
    ),
)
