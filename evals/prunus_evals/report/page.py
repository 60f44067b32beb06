"""The report of a run as one page: it has no script and loads nothing, and its policy forbids both.

Names, questions, evidence and pages are escaped wherever they stand: they come from the web.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import product
from typing import Any

from prunus_evals import stats
from prunus_evals.readers import CAVEATS
from prunus_evals.report import plots
from prunus_evals.report.cases import EVIDENCE, Case
from prunus_evals.report.numbers import held, largest, leading
from prunus_evals.report.safe import safe
from prunus_evals.report.text import headline, tokens

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_BREAK = re.compile("[:_/#]")  # where the name of a row may go on in the next line

Cases = Mapping[str, Sequence[Case] | None]
"""The worst cases by task; None where they are not shown."""


def page(facts: Mapping[str, Any], cases: Cases) -> str:
    """Return the page of a run.

    :param facts: what ``report.json`` holds; see :func:`.files.facts_of`.
    """
    tasks: Mapping[str, Any] = facts["tasks"]
    names = ", ".join(tasks) or "nothing was measured"
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f"<title>Evaluation: {safe(names)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n",
        f'<p class="over">Evaluation</p>\n<h1>{safe(names)}</h1>\n',
        _tiles(facts),
        _warnings(facts),
        _contents(tasks),
        _run(facts["run"]),
    ]
    for number, (task, content) in enumerate(tasks.items()):
        parts.extend(_task(number, task, content, cases.get(task)))
    parts.append("</main>\n</body>\n</html>\n")
    return "".join(parts)


def _style() -> str:
    return files(__package__).joinpath("report.css").read_text("utf-8")


def _tiles(facts: Mapping[str, Any]) -> str:
    """Write the totals."""
    tasks, run = facts["tasks"], facts["run"]
    rows = {row for content in tasks.values() for row in content["systems"]}
    end = run["starts"][-1]["end"] if run.get("starts") else "not noted"
    numbers = [
        (f"{sum(content['questions'] for content in tasks.values()):,}", "questions"),
        (f"{sum(content['pages'] for content in tasks.values()):,}", "pages, or texts that are drawn as one"),
        (f"{len(rows):,}", "systems, with their readers"),
        (f"{facts['outcomes']:,}", "outcomes"),
        (end.partition(":")[0], "how the last start ended"),
    ]
    items = "".join(f"<li><b>{safe(value)}</b><span>{safe(name)}</span></li>\n" for value, name in numbers)
    return f'<ul class="tiles">\n{items}</ul>\n'


def _warnings(facts: Mapping[str, Any]) -> str:
    items = "".join(f"<li>{safe(warning)}</li>\n" for warning in facts["warnings"])
    return f'<section class="panel warn" aria-label="Warnings"><ul>\n{items}</ul></section>\n' if items else ""


def _contents(tasks: Mapping[str, Any]) -> str:
    items = "".join(
        f'<li><a href="#t{number}">{safe(headline(task, content))}</a></li>\n'
        for number, (task, content) in enumerate(tasks.items())
    )
    return f'<nav class="panel" aria-label="Tasks"><ol>\n{items}</ol></nav>\n' if len(tasks) > 1 else ""


def _run(run: Mapping[str, Any]) -> str:
    """Write what was run: plans, starts, versions and seeds."""
    parts = ['<details class="panel"><summary>What was run, with which versions, and when</summary>\n']
    for number, plan in enumerate(run.get("plans", ()), 1):
        rows = "".join(f"<dt>{safe(name)}</dt><dd>{safe(_value(value))}</dd>\n" for name, value in plan.items())
        parts.append(f"<h3>Plan {number}</h3>\n<dl>\n{rows}</dl>\n")
    head = ["at", "until", "ended", "plan", "code", "machine"]
    body = [
        [start["at"], start["until"], start["end"], start["plan"] + 1, start["code"], _value(start["machine"])]
        for start in run.get("starts", ())
    ]
    parts.append(f"<h3>Starts</h3>\n{_table(head, body)}")
    if run.get("starts"):
        parts.append(
            f'<h3>Versions of the last start</h3>\n<p class="small">{safe(_value(run["starts"][-1]["versions"]))}</p>\n'
        )
    parts.append(
        f'<h3>Chance</h3>\n<p class="small">Intervals: {stats.SAMPLES:,} samples of pages with all their questions, '
        f"seed {stats.SEED}, the same pages for both sides of a difference. Halves and samples of pages follow from "
        "the sha256 of each page's key, without a seed.</p>\n</details>\n"
    )
    return "".join(parts)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)


def _task(number: int, task: str, content: Mapping[str, Any], cases: Sequence[Case] | None) -> Iterator[str]:
    """Write all of one task."""
    yield f'<section class="task" id="t{number}">\n<h2>{safe(task)}</h2>\n'
    yield f'<p class="half">{safe(headline(task, content))}</p>\n'
    if content["left_out"]:
        why = "; ".join(f"{count} because {reason}" for reason, count in content["left_out"].items())
        yield f'<p class="small">Left out: {safe(why)}.</p>\n'
    figures = plots.plots(content)
    if figures:
        yield f'<div class="figures">\n{"".join(figures)}</div>\n'
    for metric, title in content["metrics"].items():
        yield _metric(task, content, metric, title)
    yield _costs(task, content)
    yield _stages(task, content)
    yield from _groups(task, content)
    yield from _cases(content, cases)
    yield "</section>\n"


def _caption(task: str, content: Mapping[str, Any], title: str) -> str:
    return f"{safe(title[:1].upper() + title[1:])} <small>{safe(headline(task, content))}</small>"


def _name(row: str, content: Mapping[str, Any]) -> str:
    facts = content["rows"][row]
    caveats = (
        f' <em class="caveat" title="{safe(CAVEATS.get(caveat, caveat))}">{safe(caveat)}</em>'
        for caveat in filter(None, facts["caveat"].split(", "))
    )
    return _BREAK.sub(r"\g<0><wbr>", safe(row)) + "".join(caveats)


def _metric(task: str, content: Mapping[str, Any], metric: str, title: str) -> str:
    """Write a metric by row and budget: the mean, its interval, and how far the base is ahead."""
    budgets = [str(budget) for budget in content["budgets"]]
    rows = []
    for row, cells in content["systems"].items():
        if not any(metric in cell for cell in cells.values()):
            continue
        shown = "".join(f"<td>{_cell(cells.get(budget, {}), metric, content)}</td>" for budget in budgets)
        rows.append(f'<tr><th scope="row">{_name(row, content)}</th>{shown}</tr>\n')
    rows_of = content["rows"]
    bases = ", ".join(dict.fromkeys(rows_of[facts["base"]]["system"] for facts in rows_of.values()))
    same = " with the same reader" if any(facts["reader"] != "none" for facts in rows_of.values()) else ""
    note = (
        f"Mean [95 % interval over pages; {stats.NONE_BELOW}]; Δ: how far {bases}{same} is ahead of the row, over the "
        "same questions; bold where the interval excludes 0."
    )
    return _wide(
        _caption(task, content, title),
        _budgets(content),
        rows,
        note,
    )


def _cell(cell: Mapping[str, Any], metric: str, content: Mapping[str, Any]) -> str:
    if metric not in cell:
        return "–"
    parts = [f"{cell[metric][0]:.3f}", _ends(cell[metric])]
    minus = cell.get("differences", {}).get(metric)
    if minus:
        sure = " sure" if stats.apart(*minus[1:]) else ""
        parts.append(f'<span class="i{sure}">Δ {stats.shown(minus, signed=True)}</span>')
    if cell["questions"][metric] != content["questions"]:
        parts.append(f'<span class="i">{cell["questions"][metric]} of {content["questions"]} questions</span>')
    return "".join(parts)


def _budgets(content: Mapping[str, Any]) -> list[str]:
    return ["budget in tokens", *(f"{budget:,}" for budget in content["budgets"])]


def _ends(numbers: Sequence[float | None]) -> str:
    """Write an interval; nothing where there is none."""
    _, space, ends = stats.shown(numbers).partition(" ")
    return f'<span class="i">{ends}</span>' if space else ""


def _costs(task: str, content: Mapping[str, Any]) -> str:
    """Write tokens and seconds by row and budget, with those of the reader."""
    rows = []
    for row, cells in content["systems"].items():
        shown = "".join(f"<td>{_cost(cells.get(str(budget), {}))}</td>" for budget in content["budgets"])
        rows.append(f'<tr><th scope="row">{_name(row, content)}</th>{shown}</tr>\n')
    note = (
        "Tokens of evidence · CPU seconds · seconds of wall time a question, preparation of the page included. "
        "Reader: tokens read + written, – where its server does not count, · seconds. "
        f"{held(content)}"
    )
    return _wide(
        _caption(task, content, "costs"),
        _budgets(content),
        rows,
        note,
    )


def _cost(cell: Mapping[str, Any]) -> str:
    if not cell:
        return "–"
    own = f'{cell["tokens"]:,.0f}<span class="i">{cell["cpu_seconds"]:.3f} s CPU · {cell["seconds"]:.3f} s</span>'
    if "reader" not in cell:
        return own
    read = cell["reader"]
    both = f"{tokens(read['prompt_tokens'])} + {tokens(read['completion_tokens'])}"
    return f'{own}<span class="i">reader {both} · {read["seconds"]:.2f} s</span>'


def _stages(task: str, content: Mapping[str, Any]) -> str:
    """Write what each stage cost at the largest budget of each row."""
    rows = []
    for row, cells in content["systems"].items():
        budget = largest(cells)
        for stage in cells[budget].get("stages", ()):
            skipped = "–" if stage["skipped"] is None else f"{stage['skipped']:.3f}"
            rows.append(
                f'<tr><th scope="row">{_name(row, content)}</th><td>{int(budget):,}</td><td>{safe(stage["name"])}</td>'
                f"<td>{stage['tokens_in']:,.0f}</td><td>{stage['tokens_out']:,.0f}</td><td>{stage['seconds']:.4f}</td>"
                f"<td>{skipped}</td></tr>\n"
            )
    if not rows:
        return ""
    head = ["", "budget", "stage", "tokens in", "tokens out", "seconds", "nodes not scored"]
    return _wide(_caption(task, content, "costs by stage"), head, rows, "Means a question, at the largest budget.")


def _groups(task: str, content: Mapping[str, Any]) -> Iterator[str]:
    """Write the first metric of evidence, and of answers, by the values of each label, at the largest budget."""
    budget = str(max(content["budgets"]))
    for (name, groups), metric in product(content["groups"].items(), leading(content)):
        rows = []
        sizes = [max(cell["questions"] for row in group.values() for cell in row.values()) for group in groups.values()]
        for row in content["systems"]:
            cells = [rows_of.get(row, {}).get(budget, {}) for rows_of in groups.values()]
            if not any(metric in cell for cell in cells):
                continue
            shown = "".join(f"<td>{_grouped(cell, metric, most)}</td>" for cell, most in zip(cells, sizes, strict=True))
            rows.append(f'<tr><th scope="row">{_name(row, content)}</th>{shown}</tr>\n')
        if rows:
            caption = _caption(task, content, f"{content['metrics'][metric]}, by {name}, {int(budget):,} tokens")
            head = [f"{value} ({size} questions)" for value, size in zip(groups, sizes, strict=True)]
            yield _wide(caption, ["", *head], rows, "The other metrics and budgets are in report.json.")


def _grouped(cell: Mapping[str, Any], metric: str, most: int) -> str:
    if metric not in cell:
        return "–"
    few = f'<span class="i">{cell["questions"]} questions</span>' if cell["questions"] < most else ""
    return f"{cell[metric][0]:.3f}{_ends(cell[metric])}{few}"


def _wide(caption: str, head: Sequence[str], rows: Sequence[str], note: str) -> str:
    columns = "".join(f'<th scope="col">{safe(name)}</th>' for name in head)
    return (
        f'<div class="wide"><table>\n<caption>{caption}</caption>\n<thead><tr>{columns}</tr></thead>\n<tbody>\n'
        f'{"".join(rows)}</tbody>\n</table></div>\n<p class="small">{safe(note)}</p>\n'
    )


def _table(head: Sequence[str], body: Sequence[Sequence[object]]) -> str:
    columns = "".join(f'<th scope="col">{safe(name)}</th>' for name in head)
    rows = "".join("<tr>" + "".join(f"<td>{safe(value)}</td>" for value in row) + "</tr>\n" for row in body)
    head_and_body = f"<thead><tr>{columns}</tr></thead><tbody>\n{rows}</tbody>"
    return f'<div class="wide"><table class="plain">{head_and_body}</table></div>\n'


def _cases(content: Mapping[str, Any], cases: Sequence[Case] | None) -> Iterator[str]:
    """Write the worst cases, closed."""
    if cases is None:
        yield (
            '<p class="small">Worst cases of the report half are not shown: nobody should tune on them. '
            "<code>prunus eval report RUN --cases</code> shows them.</p>\n"
        )
        return
    if not cases:
        return
    yield "<h3>Worst cases</h3>\n"
    for case in cases:
        scores = ", ".join(f"{row} {value:.3f}" for row, value in case.scores.items())
        own = case.outcome.scores[case.metric]
        yield f'<details class="case"><summary><span class="score">{own:.3f}</span>'
        yield f' <bdi dir="auto">{safe(case.question)}</bdi></summary>\n<dl>\n'
        yield f'<dt>gold</dt><dd dir="auto">{safe(" · ".join(case.answers) or "none")}</dd>\n'
        if case.outcome.reading is not None:
            caveat = f" ({case.outcome.caveat})" if case.outcome.caveat else ""
            yield f'<dt>answer{safe(caveat)}</dt><dd dir="auto">{safe(case.outcome.reading.text)}</dd>\n'
        yield f"<dt>row</dt><dd>{safe(case.row)} at {case.outcome.budget:,} tokens, {case.outcome.tokens:,} used</dd>\n"
        yield f"<dt>{safe(content['metrics'][case.metric])}</dt><dd>{safe(scores)}</dd>\n"
        yield f"<dt>question</dt><dd>{safe(case.outcome.question)}</dd>\n</dl>\n"
        cut = f"\n… ({len(case.evidence):,} characters in all)" if len(case.evidence) > EVIDENCE else ""
        yield f'<h4>Evidence</h4>\n<pre dir="auto">{safe(case.evidence[:EVIDENCE] + cut) or "(none)"}</pre>\n'
        for passage in case.passages:
            where = (
                f"around “{passage.found}”" if passage.found else "its start: no gold answer stands in it as written"
            )
            yield f"<h4>Page: {safe(passage.title)}, {safe(where)}</h4>\n"
            yield f'<p class="small">{safe(passage.url)}</p>\n' if passage.url else ""
            yield f'<pre dir="auto">{safe(passage.text)}</pre>\n'
        yield "</details>\n"
