"""The report of a run as one page: it has no script and loads nothing, and its policy forbids both.

Names, questions, evidence and pages are escaped wherever they stand: they come from the web.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from prunus_evals import stats
from prunus_evals.report.cases import EVIDENCE, Case
from prunus_evals.report.tables import Table, as_html, headline, safe, tables

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

Cases = Mapping[str, Sequence[Case] | None]
"""The worst cases by task; None where they are not shown."""


def page(facts: Mapping[str, Any], cases: Cases) -> str:
    """Return the page of a run.

    :param facts: what ``report.json`` holds.
    """
    found: Mapping[str, Any] = facts["tasks"]
    names = safe(", ".join(found) or "nothing was measured")
    style = files(__package__).joinpath("report.css").read_text("utf-8")
    warnings = "".join(f"<li>{safe(warning)}</li>\n" for warning in facts["warnings"])
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        f"<title>Evaluation: {names}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n<h1>{names}</h1>\n",
        f'<ul class="warn">\n{warnings}</ul>\n' if warnings else "",
        _run(facts["run"]),
    ]
    for task, content in found.items():
        parts.extend(_task(task, content, cases.get(task)))
    parts.append("</main>\n</body>\n</html>\n")
    return "".join(parts)


def _run(run: Mapping[str, Any]) -> str:
    """Write what was run: plans, starts, versions and seeds."""
    parts = ["<details><summary>What was run, with which versions, and when</summary>\n"]
    for number, plan in enumerate(run.get("plans", ()), 1):
        fields = "".join(f"<dt>{safe(name)}</dt><dd>{safe(_value(value))}</dd>\n" for name, value in plan.items())
        parts.append(f"<h3>Plan {number}</h3>\n<dl>\n{fields}</dl>\n")
    starts = run.get("starts", ())
    head = ["until", "ended", "plan", "code", "machine", "versions"]
    rows = [
        (start["at"], [start["until"], start["end"], str(start["plan"] + 1), start["code"], _value(start["machine"]),
                       _value(start["versions"])])
        for start in starts
    ]  # fmt: skip
    chance = (
        f"Intervals: {stats.SAMPLES:,} samples of pages with all their questions, seed {stats.SEED}, the same pages "
        "for both sides of a difference. Halves and samples of pages follow from the sha256 of each page's key."
    )
    return "".join([*parts, as_html(Table("starts", head, rows, chance), ""), "</details>\n"])


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in (None, "") else str(value)


def _task(task: str, content: Mapping[str, Any], cases: Sequence[Case] | None) -> Iterator[str]:
    about = headline(task, content)
    yield f'<section class="task">\n<h2>{safe(task)}</h2>\n<p>{safe(about)}</p>\n'
    if content["left_out"]:
        why = "; ".join(f"{count} because {reason}" for reason, count in content["left_out"].items())
        yield f'<p class="small">Left out: {safe(why)}.</p>\n'
    for one in tables(content):
        yield as_html(one, about)
    yield from _cases(content, cases)
    yield "</section>\n"


def _cases(content: Mapping[str, Any], cases: Sequence[Case] | None) -> Iterator[str]:
    """Write the worst cases, closed."""
    if cases is None:
        yield (
            '<p class="small">Worst cases of the report half are not shown: nobody should tune on them. '
            "<code>prunus eval report RUN --cases</code> shows them.</p>\n"
        )
        return
    yield "<h3>Worst cases</h3>\n" if cases else ""
    for case in cases:
        outcome = case.outcome
        facts = {"gold": " · ".join(case.answers) or "none"}
        if outcome.reading is not None:
            facts["answer" + (f" ({outcome.caveat})" if outcome.caveat else "")] = outcome.reading.text
        facts["row"] = f"{case.row} at {outcome.budget:,} tokens, {outcome.tokens:,} used"
        facts[content["metrics"][case.metric]] = ", ".join(f"{row} {value:.3f}" for row, value in case.scores.items())
        facts["question"] = outcome.question
        yield f"<details><summary>{outcome.scores[case.metric]:.3f} "
        yield f'<bdi dir="auto">{safe(case.question)}</bdi></summary>\n<dl>\n'
        yield from (f'<dt>{safe(name)}</dt><dd dir="auto">{safe(text)}</dd>\n' for name, text in facts.items())
        cut = f"\n… ({len(case.evidence):,} characters in all)" if len(case.evidence) > EVIDENCE else ""
        yield f'</dl>\n<h4>Evidence</h4>\n<pre dir="auto">{safe(case.evidence[:EVIDENCE] + cut) or "(none)"}</pre>\n'
        for passage in case.passages:
            where = f"around “{passage.found}”" if passage.found else "its start: it holds no gold answer as written"
            yield f"<h4>Page: {safe(passage.title)}, {safe(where)}</h4>\n"
            yield f'<p class="small">{safe(passage.url)}</p>\n' if passage.url else ""
            yield f'<pre dir="auto">{safe(passage.text)}</pre>\n'
        yield "</details>\n"
