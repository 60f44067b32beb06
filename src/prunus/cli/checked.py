"""``prunus index verify``: summaries checked against what they were made of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..api.index import Index
from ..core.errors import BadInput
from ..core.options import Options
from ..core.settings import load_settings
from ..core.sync import run
from ..engines import Maker
from ..index.verify import CheckedSentence, Judge, exported, imported, keep, kept, sample
from .choices import common
from .output import emit, emit_json, one_line, progress, say, write_whole


@click.command("verify")
@click.argument("index", metavar="INDEX")
@click.option("--sample", "count", type=click.IntRange(min=0), default=0, metavar="N", help="Summaries drawn; 0: all.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the draw.")
@click.option("--llm", default="", metavar="SPEC", help="A language model as judge.")
@click.option("--reranker", default="", metavar="SPEC", help="A cross-encoder as judge, such as one for entailment.")
@click.option("--threshold", type=float, default=0.5, show_default=True, help="Least score of the cross-encoder.")
@click.option("--export", "export", type=click.Path(readable=False), metavar="FILE", help="Write rows for people.")
@click.option("--import", "judged", type=click.Path(), metavar="FILE", help="Take in rows that people have judged.")
@common
def verify(index: str, **given: Any) -> None:
    """Check the sentences of summaries against their children, and mark what is unsupported.

    A sentence that a child says word for word is supported. The others are judged by --llm or --reranker; without
    either they stay unchecked, and --export writes them for people. What is found is kept with the index, and an
    answer that leans on an unsupported sentence says so.

    \b
    Examples:
      prunus index verify handbook --sample 150 --llm openai:gpt-4o-mini
      prunus index verify handbook --sample 150 --export rows.jsonl
      prunus index verify handbook --import judged.jsonl
    """
    if given["llm"] and given["reranker"]:
        raise BadInput("--llm and --reranker were both given; one judge is enough", subject="--reranker")
    opened = Index.open(index, create=False)
    if given["judged"]:
        found = imported(opened.store, _lines(given["judged"]))
    else:
        found = _checked(opened, given)
    unsupported = [one for one in found if one.verdict == "unsupported"]
    counts = Counter(one.verdict for one in found)
    if given["as_json"]:
        emit_json({"summaries": len({one.node for one in found}), "sentences": len(found), **_counts(found),
                   "marked": [asdict(one) for one in unsupported]})  # fmt: skip
    else:
        share = f", {counts['unsupported'] / len(found):.1%} unsupported" if found else ""
        nodes = len({one.node for one in found})
        emit(
            f"{nodes:,} summaries, {len(found):,} sentences: {counts['supported']:,} supported, "
            f"{counts['unsupported']:,} unsupported, {counts['unchecked']:,} unchecked{share}"
        )
        for one in unsupported:
            emit(f"  node {one.node}, layer {one.layer}: {one_line(one.sentence)}")
    if counts["unchecked"] and not given["quiet"] and not given["export"]:
        say(f"{counts['unchecked']:,} sentences stand in no child word for word: give --llm, --reranker or --export")


def _checked(opened: Index, given: dict[str, Any]) -> list[CheckedSentence]:
    """Check a sample, and keep what was found; verdicts of before stand where no judge says otherwise."""
    nodes = sample(opened.store, given["count"], given["seed"])
    judge = _judge(given)
    before = {(one.node, one.number): one for one in kept(opened.store, nodes)}
    found: list[CheckedSentence] = []
    rows: list[dict[str, Any]] = []
    with progress(len(nodes), "summaries", given["quiet"]) as step:
        for node in nodes:
            children = opened.store.get(node.children)
            own = [_latest(one, before) for one in run(lambda: judge.check(node, children))]  # noqa: B023 - run ends here
            keep(opened.store, node, own)
            found += own
            rows += exported(node, children, own)
            step()
    if given["export"]:
        write_whole(Path(given["export"]), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return found


def _latest(one: CheckedSentence, before: dict[tuple[int, int], CheckedSentence]) -> CheckedSentence:
    """Return a verdict, the one of before where there is no new one."""
    return before.get((one.node, one.number), one) if one.verdict == "unchecked" else one


def _judge(given: dict[str, Any]) -> Judge:
    """Return the judge that a command line names."""
    options = Options(llm=given["llm"], reranker=given["reranker"])
    maker = Maker(load_settings(), options)
    llm = maker.make("llm") if given["llm"] else None
    reranker = maker.make("reranker") if given["reranker"] else None
    return Judge(llm, reranker, given["threshold"])


def _counts(found: Sequence[CheckedSentence]) -> dict[str, int]:
    return {name: sum(one.verdict == name for one in found) for name in ("supported", "unsupported", "unchecked")}


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read ({error})", subject=path) from error
