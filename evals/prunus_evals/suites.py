"""Suites: many studies by one command, which can be resumed, and their tables as pages of Markdown.

``offline`` runs every study that needs no language model. ``smoke`` runs every study that a language model answers in,
on a handful of items, to see that all of it works with that model.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prunus.core.errors import PrunusError, one_line
from prunus_evals import provenance, studies
from prunus_evals.errors import EvalError, UnknownName, Unreachable
from prunus_evals.studies import Choice, Study, Table

PAGES = {
    "htmlrag": "HtmlRAG: Tan et al., HTML is Better Than Plain Text for Modeling Retrieved Knowledge in RAG Systems",
    "raptor": "RAPTOR: Sarthi et al., Recursive Abstractive Processing for Tree-Organized Retrieval",
    "sag": "Internet-SAG: He et al., Zero-Indexing Internet Search Augmented Generation for Large Language Models",
    "conversion": "Prune, then convert; or convert, then refine",
}
"""The titles of pages, by the name of the paper."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Many studies.

    :param belongs: whether a study is one of the suite.
    :param choice: what is chosen where the user chooses nothing.
    :param trial: it shows that all of it runs, and measures nothing: its budgets come before those of a study, since
        small models have small windows, and the first reader judges where no judge is named.
    """

    title: str
    belongs: Callable[[Study], bool]
    choice: Choice
    trial: bool = False


SUITES = {
    "offline": Suite(
        "every study that needs no language model",
        lambda study: not study.reader and not study.needs,
        Choice(budgets=(256, 512, 1024, 2048, 4096, 8192)),
    ),
    "smoke": Suite(
        "every study that a language model answers in, on a handful of items",
        lambda study: study.reader or study.answers or bool(study.needs),
        Choice(budgets=(1024,), limit=2, questions=1),
        trial=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Done:
    """A study of a suite: its tables, or why there are none.

    :param failed: why there are none; '' where there are.
    :param unreachable: whether a language model could not be reached: the studies after it were not begun.
    :param absent: whether its data, or a model that it cannot do without, is not here: that is no failure.
    """

    study: str
    title: str
    tables: tuple[Table, ...]
    seconds: float
    failed: str = ""
    unreachable: bool = False
    absent: bool = False


def named(name: str) -> Suite:
    """Return a suite.

    :raises UnknownName: there is no such suite.
    """
    if name not in SUITES:
        raise UnknownName.among("suite", name, SUITES)
    return SUITES[name]


def chosen(suite: Suite, study: Study, choice: Choice) -> Choice:
    """Return the choice for one study: the paper's sets where all are here, else stand-ins; options that it takes.

    Budgets are those of the user, else of the study, else of the suite; in a trial those of the suite come second.
    """
    default = suite.choice
    options = {name: value for name, value in choice.options.items() if name in study.options}
    if suite.trial and "judge" in study.needs and choice.readers:
        options = {"judge": choice.readers[0], **options}
    of_study = () if suite.trial else study.budgets
    found = replace(
        choice,
        budgets=choice.budgets or of_study or default.budgets,
        limit=choice.limit or default.limit,
        questions=choice.questions or default.questions,
        options=options,
    )
    if study.stand_ins and studies.missing(study, replace(found, stand_ins=False)):
        return replace(found, stand_ins=True)
    return found


def run(
    name: str,
    choice: Choice,
    folder: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
    wanted: Sequence[str] = (),
) -> list[Done]:
    """Run the studies of a suite. A study that fails is told, and the others are run.

    A study whose data is not here counts as failed only where ``wanted`` names it. Where a language model cannot be
    reached, no further study is begun, and each of them is told.

    :param folder: where outcomes are kept; the suite goes on where it was.
    :param wanted: names of studies, or of papers; none: all of the suite.
    :raises UnknownName: there is no such suite or study, or no study of the suite takes a choice.
    """
    suite = named(name)
    own = [study for study in studies.known().values() if suite.belongs(study)]
    for part in wanted:
        if not any(part in (study.name, study.paper) for study in own):
            raise UnknownName(f"unknown study {part} of the suite {name}; its studies are: {_names(own)}")
    if wanted:
        own = [study for study in own if study.name in wanted or study.paper in wanted]
    for option in choice.options:
        if not any(option in study.options for study in own):
            raise UnknownName(f"no study of the suite {name} has a choice {option}")
    found: list[Done] = []
    for number, study in enumerate(own, 1):
        progress(f"study {number} of {len(own)}: {study.name}, {study.title}")
        own_choice = chosen(suite, study, choice)
        lacking = "" if study.name in wanted else _absent(study, own_choice)
        if lacking:
            found.append(Done(study.name, study.title, (), 0.0, lacking, absent=True))
        else:
            found.append(_run(study, own_choice, folder, progress))
        if found[-1].failed:
            progress(f"{study.name} {'was not run' if lacking else 'failed'}: {found[-1].failed}")
        if found[-1].unreachable:
            left = f"it was not begun, since the model of {study.name} could not be reached"
            return [*found, *(Done(one.name, one.title, (), 0.0, left) for one in own[number:])]
    return found


def _absent(study: Study, choice: Choice) -> str:
    """Return which data or models are not here; '' for nothing, and where only a reader is: a suite needs it."""
    return "" if study.reader and not choice.readers else "; ".join(studies.missing(study, choice))


def _names(own: Sequence[Study]) -> str:
    return ", ".join(study.name for study in own)


def _run(study: Study, choice: Choice, folder: Path | None, progress: Callable[[str], None]) -> Done:
    """Run a study. Its tables are made anew from the outcomes in its folder, which know what they depend on."""
    start = time.perf_counter()
    try:
        tables = tuple(studies.run(study, choice, folder, progress))
    except Unreachable as error:
        return Done(study.name, study.title, (), time.perf_counter() - start, str(error), unreachable=True)
    except Exception as error:  # whatever one study raises, the others are run
        said = one_line(str(error), longest=600)
        if not isinstance(error, EvalError | PrunusError):
            said = f"{type(error).__name__}: {said}"
        return Done(study.name, study.title, (), time.perf_counter() - start, said)
    return Done(study.name, study.title, tables, time.perf_counter() - start)


def write(name: str, done: Sequence[Done], command: str, folder: Path) -> list[Path]:
    """Write the tables as Markdown: a page for each paper, with the command and the versions that made it.

    :param command: the command that made them.
    :raises EvalError: a page cannot be written.
    """
    papers: dict[str, list[Done]] = {}
    for one in done:
        papers.setdefault(one.study.partition(":")[0], []).append(one)
    written: list[Path] = []
    for paper, own in papers.items():
        path = folder / (f"{paper}.md" if name == "offline" else f"{name}-{paper}.md")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(page(paper, name, own, command), encoding="utf-8")
        except OSError as error:
            raise EvalError(f"{path} cannot be written: {error.strerror}") from error
        written.append(path)
    return written


def page(paper: str, name: str, done: Sequence[Done], command: str) -> str:
    """Return a page of Markdown with the tables of a paper's studies."""
    around = provenance.surroundings()
    versions = ", ".join(f"{package} {version}" for package, version in around["versions"].items())
    lines = [f"# {PAGES.get(paper, paper)}", "", f"The suite `{name}`: {SUITES[name].title}. Made by:", ""]
    lines += ["```sh", command, "```", ""]
    lines += [f"Versions: {versions}. Code {around['code']}. {time.strftime('%Y-%m-%d')}.", ""]
    above: dict[str, str] = {}
    for one in done:
        lines += [f"## `{one.study}`: {one.title}", ""]
        failed = one.failed.replace(
            os.environ.get("PRUNUS_DATA") or "\0", "PRUNUS_DATA"
        )  # a page is for other machines
        lines += [f"Not run: {failed}.", ""] if failed else [f"{one.seconds:.0f} s.", ""]
        common = _common(one.tables)
        lines += [*(f"{line}  " for line in common), ""] if common else []
        for table in _once(one.tables, one.study, above):
            own = tuple(note for note in table.notes if note not in common)
            lines += [studies.markdown(replace(table, notes=own)), ""]
    return "\n".join(lines)


def _once(tables: Sequence[Table], study: str, above: dict[str, str]) -> Iterator[Table]:
    """Yield tables without the rows that a study above has; a first row stays, as far as others are compared with it.

    :param above: the study that has a row, by what the row measured; rows of these tables are added.
    """
    for table in tables:
        known = [row for row in table.rows if row.measured in above]
        rows = tuple(row for row in table.rows if row not in known or (row is table.rows[0] and known != [*table.rows]))
        above |= {row.measured: study for row in table.rows if row.measured and row.measured not in above}
        labels: dict[str, list[str]] = {}
        for row in known:
            if row not in rows:
                labels.setdefault(above[row.measured], []).append(row.label)
        left = tuple(f"`{other}` has above: {', '.join(own)}." for other, own in labels.items())
        yield replace(table, rows=rows, notes=(*table.notes, *left))


def _common(tables: Sequence[Table]) -> list[str]:
    """Return the notes that all tables with numbers of ours share, to be written once."""
    own = [table.notes for table in tables if table.notes]
    return [note for note in own[0] if all(note in notes for notes in own)] if own else []
