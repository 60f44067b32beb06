"""RAPTOR (Sarthi and others, ICLR 2024): what is measured on trees alone, without questions.

Table 10 (lengths and compression), Figures 5 and 6 (tokens and build time by the length of the document) and Appendix E
(summaries that state what their children do not).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prunus_evals import readers, studies, tasks
from prunus_evals.errors import EvalError
from prunus_evals.judging.judge import Asked, Judge, ModelJudge
from prunus_evals.records import Document
from prunus_evals.stats import counted
from prunus_evals.store import Store, opened
from prunus_evals.studies import Choice, Number, Row, Study, Table, _raptor_published, number
from prunus_evals.studies._raptor_published import Published
from prunus_evals.studies.raptor import OPTIONS, SETS, Running, beside, cited, notes, recipe_of, running
from prunus_evals.systems._trees import Cost, Grown, grown

STAND_INS = ("squality:text", "qmsum:specific", "xquad:de")
TREE_OPTIONS = {name: line for name, line in OPTIONS.items() if name != "dpr"}
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PageTree:
    """A tree of a task's page."""

    task: str
    page: str
    documents: Sequence[Document]
    grown: Grown


def page_trees(run: Running, costs: bool = False) -> Iterator[PageTree]:
    """Build the trees of the pages of a study's tasks, one after another.

    :param costs: build them for their costs.
    """
    study, choice = run.study, run.choice
    for task in study.tasks(choice):
        half = choice.half or tasks.about(task).half
        pages = list(tasks.groups(task, half, choice.limit))
        if not pages:
            raise EvalError(f"{task}: this half has no question; take the other half")
        for done, page in enumerate(pages, 1):
            documents = page[0].documents
            yield PageTree(task, page[0].page, documents, tree_of(run, documents, costs))
            run.progress(f"{study.name}, {task}: {done} of {len(pages)} trees")


def tree_of(run: Running, documents: Sequence[Document], costs: bool = False) -> Grown:
    """Return the tree of documents, which is kept in the folder of the run.

    :param costs: build it for its costs.
    :raises EvalError: it cannot be built, or the documents are empty.
    """
    found = grown(documents, run.recipe, run.counter, run.trees, costs)
    if found is None:
        raise EvalError(f"{run.study.name}: there is no tree of empty documents: {', '.join(d.id for d in documents)}")
    return found


def _said(study: Study, choice: Choice, pages: Mapping[str, int]) -> tuple[str, ...]:
    """Return what a table of trees says of itself.

    :param pages: documents by task.
    """
    parts = [
        f"{task} ({choice.half or tasks.about(task).half} half: {count} documents)" for task, count in pages.items()
    ]
    first = "Stand-ins for the sets of the paper" if choice.stand_ins else "Sets"
    return (f"{first}: {', '.join(parts)}.", *notes(choice))


def with_cited(own: Table, published: Published, stand_ins: bool) -> list[Table]:
    """Return a table with the paper's numbers: below ours, or in a table of their own where ours are of stand-ins."""
    return [own, cited(own.title, published)] if stand_ins else [beside(own, published)]


# --- Table 10: compression -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parent:
    """The lengths, in tokens, of a summary and of its children.

    :param page: unique over all tasks.
    """

    task: str
    page: str
    summary: int
    children: tuple[int, ...]


def parents_of(tree: PageTree) -> list[Parent]:
    """Return the parents of a tree."""
    store = tree.grown.index.store
    view = store.view()
    tokens = dict(zip(view.ids.tolist(), view.tokens.tolist(), strict=True))
    return [
        Parent(tree.task, f"{tree.task}/{tree.page}", tokens[parent], tuple(tokens[child] for child in children))
        for parent, children in store.edges().items()
    ]


def _run_compression(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    with running(study, choice, folder, progress) as run:
        found: list[Parent] = []
        pages: dict[str, int] = {}
        for tree in page_trees(run):
            found += parents_of(tree)
            pages[tree.task] = pages.get(tree.task, 0) + 1
    return with_cited(
        compression_table(study.title, found, _said(study, choice, pages)), _raptor_published.TABLE_10, choice.stand_ins
    )


TITLES = {"quality": "QuALITY", "narrativeqa": "NarrativeQA", "qasper": "QASPER"}
"""What the paper calls its sets."""


def compression_table(title: str, parents: Sequence[Parent], said: Sequence[str]) -> Table:
    """Return Table 10 without the paper's rows.

    :param said: notes.
    """
    rows = [_compression("All Datasets", parents)]
    for task in dict.fromkeys(parent.task for parent in parents):
        label = TITLES.get(task.partition(":")[0], task)
        rows.append(_compression(label, [parent for parent in parents if parent.task == task]))
    lines = (*said, "Compression ratio: tokens of a summary by those of all its children.", studies.ALONE)
    return Table(title, _raptor_published.TABLE_10.columns, tuple(rows), lines, digits=2)


def _compression(label: str, parents: Sequence[Parent]) -> Row:
    columns: list[list[tuple[str, float]]] = [
        [(parent.page, parent.summary) for parent in parents],
        [(parent.page, child) for parent in parents for child in parent.children],
        [(parent.page, len(parent.children)) for parent in parents],
        [(parent.page, parent.summary / sum(parent.children)) for parent in parents if sum(parent.children)],
    ]
    return Row(label, tuple(_mean(column) for column in columns))


def _mean(values: Sequence[tuple[str, float]]) -> Number | None:
    """Return a mean of values by page, with its interval."""
    by_page: dict[str, list[float]] = {}
    for page, value in values:
        by_page.setdefault(page, []).append(float(value))
    return number(by_page)


# --- Figures 5 and 6: the cost of building -------------------------------------------------------

JOINED = (12_500, 25_000, 50_000, 78_000)
"""Lengths in tokens of the texts that are joined from the documents of a task; the paper's lengths lie between."""


def _run_cost(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    found: dict[str, list[Cost]] = {}
    with running(study, choice, folder, progress) as run:
        texts: dict[str, list[str]] = {}
        pages: dict[str, int] = {}
        for tree in page_trees(run, costs=True):
            found.setdefault(tree.task, []).append(tree.grown.cost)
            texts.setdefault(tree.task, []).extend(document.content for document in tree.documents)
            pages[tree.task] = pages.get(tree.task, 0) + 1
        for task, parts in texts.items():
            whole = "\n\n".join(parts)
            for length in JOINED:
                text = run.counter.head(whole, length)
                if len(text) < len(whole):  # else it would be as long as the one before
                    joined = Document(f"{task} joined to {length} tokens", text, "text/plain")
                    found[task].append(tree_of(run, [joined], costs=True).cost)
                    progress(f"{study.name}, {task}: joined to {length} tokens")
    said = [*_said(study, choice, pages)]
    moments = sorted(cost.at for costs in found.values() for cost in costs)
    said.append(
        f"Seconds: wall time, measured from {moments[0]} to {moments[-1]}; no vector or summary was known before."
    )
    said.append(
        f"The documents of a task, as far as they reach, are also joined into {', '.join(map(str, JOINED))} tokens."
    )
    if not recipe_of(choice).llm:
        said.append(
            "Tokens are estimates: what a model would have read and written, without its prompt; none was called."
        )
    else:
        said.append("Tokens: of the texts that the model read and wrote, by the Llama-2 tokenizer, without its prompt.")
    said.append("The paper prints Figures 5 and 6 without numbers: both costs grow linearly.")
    return cost_tables(found, said)


def cost_tables(found: Mapping[str, Sequence[Cost]], said: Sequence[str]) -> list[Table]:
    """Return the linear fits of Figures 5 and 6, and their points.

    :param found: what trees cost, by task.
    """
    everything = {"all texts": [cost for costs in found.values() for cost in costs], **found}
    tokens = {task: [float(cost.read + cost.written) for cost in costs] for task, costs in everything.items()}
    seconds = {task: [cost.seconds for cost in costs] for task, costs in everything.items()}
    lengths = {task: [float(cost.tokens) for cost in costs] for task, costs in everything.items()}
    fit = "Lines by least squares: slope, and intercept (in any case); R²: share of the variance that they explain."
    notes = (fit, *said)
    rows5 = [fit_row(task, lengths[task], tokens[task]) for task in everything]
    rows6 = [fit_row(task, lengths[task], seconds[task], 1000.0) for task in everything]
    points = [
        Row(
            f"{task}, {cost.tokens} tokens",
            (Number(cost.read / 1000), Number(cost.written / 1000), Number(cost.seconds)),
        )
        for task, costs in found.items()
        for cost in sorted(costs, key=lambda cost: cost.tokens)
    ]
    return [
        Table(
            "RAPTOR, Figure 5: tokens read and written to build a tree, by the length of the text",
            ("tokens for each token of text", "and in any case", "R²"),
            tuple(rows5),
            notes,
        ),
        Table(
            "RAPTOR, Figure 6: seconds to build a tree, by the length of the text",
            ("seconds for 1,000 tokens of text", "and in any case", "R²"),
            tuple(rows6),
            notes,
        ),
        Table(
            "RAPTOR, Figures 5 and 6: what each tree cost",
            ("tokens read, thousands", "tokens written, thousands", "seconds"),
            tuple(points),
            notes,
            2,
        ),
    ]


def fit_row(label: str, lengths: Sequence[float], costs: Sequence[float], scale: float = 1.0) -> Row:
    """Return the linear fit of costs by lengths; without two different lengths there is none.

    :param scale: tokens of a length for which the slope is shown.
    """
    many = f"{len(lengths)} text{'s' * (len(lengths) > 1)}"
    label = f"{label}: {many} of {min(lengths):.0f} to {max(lengths):.0f} tokens"
    if len(set(lengths)) < 2:
        return Row(label, (None, None, None))
    slope, intercept = np.polyfit(lengths, costs, 1)
    spread = float(np.var(costs))
    left = float(np.mean((np.asarray(costs) - slope * np.asarray(lengths) - intercept) ** 2))
    explained = 1 - left / spread if spread else 1.0
    return Row(label, (Number(scale * float(slope)), Number(float(intercept)), Number(explained)))


# --- Appendix E: hallucinations ------------------------------------------------------------------

SAMPLE = 150
"""Summaries that the paper judged."""
SEED = 20261123

HALLUCINATION_OPTIONS = {
    **TREE_OPTIONS,
    "export": "file to which the sample is written, one JSON object a line, for people to judge; "
    "hallucination.jsonl in the folder of the run by default",
    "import": "file with judgements: an exported file in which `hallucinated` is true or false",
    "judge": "spec of a language model that judges the summaries; the first reader by default",
    "sample": f"summaries that are judged, {SAMPLE} by default",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A summary with the texts of its children, and whether it states what they do not.

    :param parent: id of the summary above it in the sample; '' where there is none.
    :param hallucinated: None until it is judged.
    :param judge: who judged: ``people``, or the spec of a model.
    """

    id: str
    task: str
    document: str
    layer: int
    summary: str
    children: tuple[str, ...]
    parent: str = ""
    hallucinated: bool | None = None
    judge: str = ""


def sampled(trees: Iterator[PageTree], size: int) -> list[Judged]:
    """Return a seeded sample of summaries, with the parents of the sampled ones where these are sampled, too."""
    found: list[Judged] = []
    for tree in trees:
        store = tree.grown.index.store
        edges = store.edges()
        above = {child: parent for parent, children in edges.items() for child in children}
        for node in store.get(list(edges)):
            texts = tuple(child.text for child in store.get(edges[node.id]))
            name = f"{tree.task}/{tree.page}/{node.id}"
            parent = f"{tree.task}/{tree.page}/{above[node.id]}" if node.id in above else ""
            found.append(Judged(name, tree.task, tree.page, node.layer, node.text, texts, parent))
    return sorted(random.Random(SEED).sample(found, min(size, len(found))), key=lambda one: one.id)


def write_sample(path: Path, sample: Sequence[Judged]) -> None:
    """Write a sample, one JSON object a line; people fill in ``hallucinated``.

    :raises EvalError: the file cannot be written, or people filled it in.
    """
    if by_people(path):
        raise EvalError(f"{path} holds judgements of people; read them with --set import={path}, or take another name")
    lines = [json.dumps(asdict(one), ensure_ascii=False) for one in sample]
    try:
        path.write_text("\n".join(lines) + "\n", "utf-8")
    except OSError as error:
        raise EvalError(f"{path} cannot be written: {error.strerror}") from error


def by_people(path: Path) -> bool:
    """Return whether a file may hold judgements of people: a line has one, or cannot be read."""
    if not path.exists():
        return False
    try:
        found = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        return any(one["hallucinated"] is not None and one["judge"] in ("", "people") for one in found)
    except (OSError, ValueError, TypeError, KeyError):  # a person edited it, or it is another file
        return True


def read_sample(path: Path) -> list[Judged]:
    """Return the judgements of a file; what nobody named counts as judged by people.

    :raises EvalError: the file cannot be read, or a line is no judgement; the message names the line.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EvalError(f"{path} cannot be read: {error}") from error
    found = [_judgement(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise EvalError(f"{path} holds no judgement")
    return found


def _judgement(line: str, place: str) -> Judged:
    try:
        value: Any = json.loads(line)
        one = Judged(**{**value, "children": tuple(value["children"])})
    except (ValueError, TypeError, KeyError) as error:
        raise EvalError(f"{place}: not a line of an exported sample ({error})") from error
    if not isinstance(one.hallucinated, bool):
        raise EvalError(f"{place}: `hallucinated` must be true or false; {one.id} is not judged")
    return replace(one, judge=one.judge or "people")


def read_word(reply: str) -> bool | None:
    """Return whether a reply says yes; None where it says neither yes nor no."""
    return {"yes": True, "no": False}.get(reply.strip().strip("*.\"'").lower()[:4].strip(" ,.!"))


def judged(sample: Sequence[Judged], judge: Judge, store: Store, progress: Tell) -> list[Judged]:
    """Return a sample with the judgements of a model; a reply that cannot be read, twice, is no judgement.

    :param store: keeps the replies, so that none is asked for again.
    :raises ReaderFailed: the model cannot be reached, or only failed.
    """
    found, asked = [], Asked(judge, store)
    for done, one in enumerate(sample, 1):
        fields = {"texts": "\n\n".join(one.children), "summary": one.summary}
        found.append(replace(one, hallucinated=asked.read("hallucination", fields, read_word).value, judge=judge.name))
        if done % 10 == 0 or done == len(sample):
            progress(f"{judge.name}: {done} of {len(sample)} summaries judged")
    asked.end()
    return found


def _run_hallucination(study: Study, choice: Choice, folder: Path | None, progress: Tell) -> Sequence[Table]:
    options = choice.options
    if "import" in options:
        sample = read_sample(Path(options["import"]))
        documents = {
            task: {one.document for one in sample if one.task == task}
            for task in dict.fromkeys(one.task for one in sample)
        }
        sets = ", ".join(f"{task} ({counted(len(found), 'document')})" for task, found in documents.items())
        lines = [f"Judgements: {options['import']}.", f"Sets: {sets}. The file does not say of which half."]
        own = hallucination_table(study.title, sample, lines)
        return with_cited(own, _raptor_published.HALLUCINATION, choice.stand_ins)
    export = options.get("export") or (str(folder / "hallucination.jsonl") if folder else "")
    if not export and "judge" not in options and not choice.readers:
        raise EvalError(
            f"{study.name}: people judge the summaries: write them with --set export=FILE or --out FOLDER, fill in "
            "`hallucinated`, and read them with --set import=FILE; or let a model judge with --set judge=SPEC"
        )
    size = options.get("sample", str(SAMPLE))
    if not size.isdecimal():
        raise EvalError(f"{study.name}: sample={size} is no number of summaries")
    spec = options.get("judge") or next(iter(choice.readers), "")
    judge = ModelJudge(spec) if spec else None  # before any tree is built
    filled = bool(export) and by_people(Path(export))
    if filled and "export" in options:
        write_sample(Path(export), ())  # refuses
    with running(study, choice, folder, progress) as run:
        sample = sampled(page_trees(run), min(int(size), 10**6))
    if judge:
        with opened(folder, make=True) as store:
            sample = judged(sample, judge, store, progress)
    if export and not filled:
        write_sample(Path(export), sample)
        progress(f"{study.name}: {len(sample)} summaries are in {export}")
    said = _said(
        study, choice, {task: len({o.document for o in sample if o.task == task}) for task in study.tasks(choice)}
    )
    if not recipe_of(choice).llm:
        said += ("Extractive summaries consist of sentences of their texts: they can state nothing else.",)
    if filled:
        said += (f"{export} holds judgements of people, and was left as it was; --set import={export} reads it.",)
    own = hallucination_table(study.title, sample, said)
    return with_cited(own, _raptor_published.HALLUCINATION, choice.stand_ins)


def hallucination_table(title: str, sample: Sequence[Judged], said: Sequence[str] = ()) -> Table:
    """Return Appendix E as a table without the paper's row, one row for each judge.

    A hallucination is carried on where the summary above it, in the sample, is judged to have one, too.
    """
    rows = []
    for judge in dict.fromkeys(one.judge for one in sample if one.hallucinated is not None):
        own = {one.id: one for one in sample if one.judge == judge and one.hallucinated is not None}
        wrong = [one for one in own.values() if one.hallucinated]
        carried = sum(one.parent in own and bool(own[one.parent].hallucinated) for one in wrong)
        share = _mean([(one.document, 100.0 * bool(one.hallucinated)) for one in own.values()])
        caveat = readers.caveat(judge, not judge.startswith("scripted:")) if judge != "people" else ""
        label = f"judged by {judge}" + (f" ({caveat})" if caveat else "")
        rows.append(Row(label, (Number(len(own)), Number(len(wrong)), share, Number(carried))))
    lines = list(said)
    open_ones = sum(one.hallucinated is None and not one.judge for one in sample)
    if open_ones:
        lines.append(f"{open_ones} of {len(sample)} sampled summaries are not judged yet.")
    unread = sum(one.hallucinated is None and bool(one.judge) for one in sample)
    if unread:
        lines.append(f"{unread} of {len(sample)} replies of the judge could not be read or failed, and are left out.")
    lines.append(studies.ALONE)
    return Table(title, _raptor_published.HALLUCINATION.columns, tuple(rows), tuple(lines), digits=1)


STUDIES = (
    Study(
        "raptor:10",
        "RAPTOR, Table 10: lengths of summaries, and compression",
        tuple(SETS.values()),
        STAND_INS,
        options=TREE_OPTIONS,
        run=_run_compression,
    ),
    Study(
        "raptor:figure-5",
        "RAPTOR, Figures 5 and 6: tokens and seconds of building by the length of the document",
        tuple(SETS.values()),
        STAND_INS[:2],
        options=TREE_OPTIONS,
        run=_run_cost,
    ),
    Study(
        "raptor:hallucination",
        "RAPTOR, Appendix E: summaries that state what their children do not",
        tuple(SETS.values()),
        STAND_INS[:1],
        answers=True,
        options=HALLUCINATION_OPTIONS,
        run=_run_hallucination,
    ),
)
