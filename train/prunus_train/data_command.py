"""The commands ``prunus train data …``: they make the samples that ``prunus train sft`` and ``dpo`` learn from."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from prunus_evals import tasks
from prunus_evals.split import Half
from prunus_train.errors import DataBroken, TrainError

_FILE = click.Path(path_type=Path, dir_okay=False)
_OUT = click.option("-o", "--out", type=_FILE, required=True, help="File for the samples, JSON lines.")
_AT_ONCE = click.option(
    "--at-once", default=1, type=click.IntRange(1), show_default=True, help="Requests that are worked on together."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON.")
_LIMIT = click.option("--limit", default=0, type=click.IntRange(0), help="Requests at most; 0: all.")
_HALF = click.option("--half", type=click.Choice(["dev"]), default="dev", help="The half of tasks: dev alone.")


@click.group("data")
def data_group() -> None:
    """Make training data for the pruner, the parser and the extractor.

    A killed command goes on where it was, and asks no model anything twice. OUT.report.json says what was kept, and
    what was left out, by reason.

    \b
    Examples:
      prunus train data pruner -o pruner.jsonl --from sets:train/ --budgets 2048,4096
      prunus train data parser requests.jsonl -o parser.jsonl --llm openai:gpt-4o --made 400
      prunus train data extractor own:questions.jsonl -o extractor.jsonl --llm openai:gpt-4o
    """


def progress(what: str) -> Callable[[int, int], None]:
    """Return a function that says how far a maker is, every ten seconds and at the end."""
    last = [time.monotonic()]

    def say(done: int, total: int) -> None:
        if done == total or time.monotonic() - last[0] > 10:
            last[0] = time.monotonic()
            click.echo(f"{done} of {total} {what}", err=True)

    return say


def _show(report: dict[str, Any], out: Path, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    reasons = ", ".join(f"{count} × {reason}" for reason, count in report["left_out"].items()) or "nothing"
    click.echo(f"{report['samples']} samples in {out}; left out: {reasons}", err=True)


def numbers(text: str, option: str) -> list[int]:
    """Return the numbers of a list that commas separate.

    :raises click.UsageError: it is none.
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise click.UsageError(f"{option}: {text!r} is no list of numbers; separate them by commas") from error


@data_group.command("pruner")
@_OUT
@click.option(
    "--from",
    "sources",
    default="table_qa,page_qa",
    show_default=True,
    help="Tasks, own:FILE or sets:FOLDER, separated by commas.",
)
@click.option("--bare", type=_FILE, help="Bare questions and answers, JSON lines; their pages are searched for.")
@click.option("--search", default="", help="Provider of the search for --bare, as searxng:http://localhost:8888.")
@click.option(
    "--pages", default=3, type=click.IntRange(1), show_default=True, help="Pages of a question of --bare at most."
)
@click.option("--budgets", default="2048,4096,8192", show_default=True, help="Tokens to prune pages to.")
@click.option("--first-stage", default="trees", show_default=True, help="Scorer of the first stage.")
@click.option(
    "--coarse",
    default=256,
    type=click.IntRange(1),
    show_default=True,
    help="Words of a block of the first stage at most.",
)
@click.option(
    "--fine",
    default=128,
    type=click.IntRange(1),
    show_default=True,
    help="Words of a block of the second stage at most.",
)
@click.option("--prompt", default="htmlrag", show_default=True, help="Name of the prompt.")
@click.option("--limit", default=0, type=click.IntRange(0), help="Pages at most; 0: all.")
@_HALF
@_JSON
def pruner_command(out: Path, sources: str, budgets: str, half: Half, as_json: bool, **chosen: Any) -> None:
    """Make samples of the generative pruner: prompt, path, content (HtmlRAG §3.4.2).

    Of tasks only the dev half is read. OUT.units lists what becomes of each question.

    \b
    Examples:
      prunus train data pruner -o samples.jsonl --budgets 2048,4096,8192,16384,32768
      prunus train data pruner -o samples.jsonl --from own:questions.jsonl
      prunus train data pruner -o samples.jsonl --bare pairs.jsonl --search searxng:http://localhost:8888
    """
    from prunus_evals.labels import PrunerRecipe
    from prunus_train.data import pruner  # here: the help does not need these modules

    sizes = numbers(budgets, "--budgets")
    if min(sizes) < 1:
        raise DataBroken("--budgets are above 0")
    _folder_of(out)
    left: dict[str, int] = {}
    if chosen["bare"] is not None:
        if not chosen["search"]:
            raise DataBroken("--bare needs --search, the provider that finds the pages")
        pages = out.with_name(f"{out.name}.pages.jsonl")
        said = progress("questions searched")
        _, left = pruner.gather(chosen["bare"], pages, chosen["search"], chosen["pages"], said)
        sources = f"own:{pages}"
    names = [name.strip() for name in sources.split(",") if name.strip()]
    wanted = [one for name in names for one in ([name] if ":" in name else tasks.expand(name))]
    recipe = PrunerRecipe(chosen["first_stage"], chosen["coarse"], chosen["fine"], chosen["prompt"])
    report = pruner.make(out, wanted, half, sizes, recipe, progress("pages"), chosen["limit"] or None, left)
    _show(report, out, as_json)
    if not report["samples"]:
        raise TrainError(f"no sample was made; see {out.name}.report.json")


@data_group.command("parser")
@click.argument("requests", type=_FILE, required=False)
@_OUT
@click.option("--llm", default="", help="Model that writes the truths which the file lacks, as openai:gpt-4o.")
@click.option(
    "--made",
    default=0,
    type=click.IntRange(0),
    help="Made requests with unknown names, in eight languages; they need no model.",
)
@click.option("--seed", default=0, show_default=True, help="Of the made requests.")
@_LIMIT
@_AT_ONCE
@_JSON
def parser_command(requests: Path | None, out: Path, llm: str, made: int, seed: int, **chosen: Any) -> None:
    """Make samples of the parser: in one reply, whether to search and with which keywords (Internet-SAG §3.1).

    A line of REQUESTS is {"request": "…"}, and may have turns, language, now, time (today or any), names and plan, the
    truth.

    Example: prunus train data parser requests.jsonl -o parser.jsonl --llm openai:gpt-4o --made 400
    """
    from prunus_train.data import parser

    if requests is None and not made:
        raise DataBroken("name a file of REQUESTS, or make some by --made 400")
    _folder_of(out)
    wanted = parser.read(requests)[: chosen["limit"] or None] if requests else []
    wanted += list(parser.made_requests(made, seed))
    settings = {"maker": "parser", "requests": str(requests or ""), "made": made, "seed": seed}
    report = parser.make(out, wanted, _model(llm) if llm else None, chosen["at_once"], progress("requests"), settings)
    _show(report, out, chosen["as_json"])
    if not report["samples"]:
        raise TrainError(f"no sample was made; see {out.name}.report.json")


@data_group.command("extractor")
@click.argument("sources")
@_OUT
@click.option("--llm", required=True, help="The strong model that names tags and summaries, as openai:gpt-4o.")
@click.option("--contents", default=2, type=click.IntRange(1), show_default=True, help="Contents of a request at most.")
@click.option(
    "--shortest", default=100, type=click.IntRange(0), show_default=True, help="Tokens of a content at least."
)
@click.option("--none", default=0.05, show_default=True, help="Share of contents that say None.")
@click.option("--elsewhere", default=0.1, show_default=True, help="Share of requests with a page of another request.")
@click.option("--temperature", default=0.7, show_default=True, help="Of the two replies that must agree.")
@click.option(
    "--budget", default=4096, type=click.IntRange(1), show_default=True, help="Tokens to which a page is pruned before."
)
@_LIMIT
@_AT_ONCE
@_JSON
def extractor_command(sources: str, out: Path, llm: str, limit: int, at_once: int, as_json: bool, **plan: Any) -> None:
    """Make samples of the extractor: the tags that bear on a request, with summaries and without (Internet-SAG §4.2).

    SOURCES are tasks or own:FILE, separated by commas: requests with pages. The model is asked twice with different
    seeds; where the replies do not agree, nothing is kept.

    Example: prunus train data extractor own:questions.jsonl -o extractor.jsonl --llm openai:gpt-4o
    """
    from prunus_train.data import extractor
    from prunus_train.data.sample_file import KeptReplies, SampleFile

    if not 0 <= plan["none"] < 1 or not 0 <= plan["elsewhere"] <= 1:
        raise DataBroken("--none and --elsewhere are shares from 0 to 1")
    _folder_of(out)
    questions, model = _questions(sources, limit), _model(llm)
    with SampleFile(out, {"maker": "extractor", "sources": sources, "limit": limit, "model": llm, **plan}) as file:
        cache = KeptReplies(out.with_name(f"{out.name}.replies"), at_once)
        report = extractor.make(file, questions, model, cache, extractor.ExtractorPlan(**plan), progress("requests"))
    _show(report, out, as_json)


@data_group.command("questions")
@click.argument("pages", nargs=-1, type=click.Path(path_type=Path))
@_OUT
@click.option("--llm", required=True, help="The model that writes questions and answers them, as openai:gpt-4o.")
@click.option("--each", default=2, type=click.IntRange(1), show_default=True, help="Passages of a page.")
@click.option("--limit", default=0, type=click.IntRange(0), help="Pages at most; 0: all.")
@_HALF
@_AT_ONCE
@_JSON
def questions_command(pages: tuple[Path, ...], out: Path, half: Half, as_json: bool, **chosen: Any) -> None:
    """Let a model write questions about PAGES; OUT is a file of questions, as own:OUT reads it.

    PAGES are files; without any, the marked pages of seven kinds in the evaluation data are asked about. The model
    answers each question from its passage alone, and only what it finds again is kept.

    \b
    Examples:
      prunus train data questions handbook/*.html -o questions.jsonl --llm openai:gpt-4o
      prunus eval run --task own:questions.jsonl --out runs/handbook
    """
    from prunus_train.data import questions
    from prunus_train.data.sample_file import KeptReplies, SampleFile

    _folder_of(out)
    asked, model = questions.asked_pages(pages, half, chosen["limit"] or None), _model(chosen["llm"])
    settings = {"maker": "questions", "pages": [str(page) for page in pages], "model": chosen["llm"]}
    with SampleFile(out, {**settings, "each": chosen["each"], "limit": chosen["limit"]}) as file:
        cache = KeptReplies(out.with_name(f"{out.name}.replies"), chosen["at_once"])
        report = questions.make(file, asked, model, cache, chosen["each"], progress("pages"))
    _show(report, out, as_json)


@data_group.command("extractor-dpo")
@click.argument("sources")
@_OUT
@click.option("--extractor", required=True, help="The extractor after sft, as transformers:extractor/.")
@click.option("--stronger", required=True, help="A stronger extractor, as openai:gpt-4o.")
@click.option("--generator", required=True, help="The model that writes the answers.")
@click.option("--judge", required=True, help="The model that grades each answer.")
@click.option("--pages", default=5, type=click.IntRange(1), show_default=True, help="Pages of a request at most.")
@click.option(
    "--pairs", default=2, type=click.IntRange(1), show_default=True, help="Graded pairs of a request at most."
)
@click.option(
    "--budget", default=4096, type=click.IntRange(1), show_default=True, help="Tokens to which a page is pruned before."
)
@_LIMIT
@_AT_ONCE
@_JSON
def dpo_command(sources: str, out: Path, limit: int, at_once: int, as_json: bool, **chosen: Any) -> None:
    """Make pairs of extractions for DPO: the tags that lead to the better answer, and the others (Internet-SAG §4.4).

    SOURCES are tasks or own:FILE: requests with several pages.

    \b
    Example:
      prunus train data extractor-dpo own:questions.jsonl -o pairs.jsonl --extractor transformers:extractor/ \\
        --stronger openai:gpt-4o --generator openai:gpt-4o-mini --judge openai:gpt-4o
    """
    from prunus_train.data import preferences
    from prunus_train.data.sample_file import KeptReplies, SampleFile

    _folder_of(out)
    roles = ("extractor", "stronger", "generator", "judge")
    models = preferences.PreferenceModels(**{role: _model(chosen[role]) for role in roles})
    questions = _questions(sources, limit)
    most = (chosen["pages"], chosen["pairs"], chosen["budget"])
    with SampleFile(out, {"maker": "extractor-dpo", "sources": sources, "limit": limit, **chosen}) as file:
        cache = KeptReplies(out.with_name(f"{out.name}.replies"), at_once)
        report = preferences.make(file, questions, models, cache, most, progress("requests"))
    _show(report, out, as_json)


def _model(spec: str) -> Any:
    """Return a model with its spec."""
    from prunus_evals import readers

    return spec, readers.model(spec)


def _questions(sources: str, limit: int) -> list[Any]:
    """Return the questions of tasks (dev half) and files, each with its pages.

    :raises DataBroken: there is none.
    """
    from prunus_train.data import pruner

    names = [name.strip() for name in sources.split(",") if name.strip()]
    found = [question for name in names for page in pruner.load(name, "dev") for question in page]
    if not found:
        raise DataBroken(f"{sources} holds no request with pages")
    return found[: limit or None]


def _folder_of(out: Path) -> None:
    if not out.parent.is_dir():
        raise DataBroken(f"there is no folder {out.parent}")
