"""``prunus index verify``: check the sentences of summaries against the child nodes that they summarise."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...api.index import Index
from ...core.errors import BadInput
from ...core.options import Options
from ...core.settings import load_settings
from ...core.sync import run
from ...engines import EngineSet
from ...index.verify import CheckedSentence, Judge, exported, imported, keep, kept, sample
from ..choices import common
from ..output import counted, emit, emit_json, one_line, progress, say, write_whole


@click.command("verify")
@click.argument("index", metavar="INDEX")
@click.option(
    "--sample",
    "count",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Random sample; 0: all.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed of --sample.")
@click.option("--llm", default="", metavar="SPEC", help="A language model as judge.")
@click.option("--reranker", default="", metavar="SPEC", help="A cross-encoder as judge, as for entailment.")
@click.option("--threshold", type=float, default=0.5, show_default=True, help="Least supporting score of --reranker.")
@click.option(
    "--export",
    "export",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Write rows for people.",
)
@click.option("--import", "judged", type=click.Path(), metavar="FILE", help="Read rows that people have judged.")
@common
def verify(index: str, **flags: Any) -> None:
    """Check an index for damage, and each sentence of its summaries against their child nodes.

    Everything stored is compared with its checksum. prunus index rebuild builds a damaged index again.

    A sentence that a child contains word for word, or that names rows which the children hold, is supported. The
    others are judged by --llm or --reranker; without a judge they stay unchecked, and --export writes them for people
    to judge. The verdicts are stored in the index.
    An answer that uses an unsupported sentence carries a warning.

    \b
    Examples:
      prunus index verify handbook --sample 150 --llm openai:gpt-4o-mini
      prunus index verify handbook --sample 150 --export rows.jsonl
      prunus index verify handbook --import judged.jsonl
    """
    if flags["llm"] and flags["reranker"]:
        raise BadInput("--llm and --reranker name two judges; give only one of them", subject="--reranker")
    opened = Index.open(index, create=False)
    if damage := opened.store.damage():
        more = f", and {len(damage) - 1:,} more" if damage[1:] else ""
        raise BadInput(f"{damage[0]}{more}; run prunus index rebuild {index}", subject=index)
    if flags["judged"]:
        sentences = imported(opened.store, _lines(flags["judged"]))
    else:
        sentences = _check_sample(opened, flags)
    unsupported = [sentence for sentence in sentences if sentence.verdict == "unsupported"]
    counts = Counter(sentence.verdict for sentence in sentences)
    nodes = len({sentence.node for sentence in sentences})
    if flags["as_json"]:
        verdicts = {name: counts[name] for name in ("supported", "unsupported", "unchecked")}
        emit_json({"summaries": nodes, "sentences": len(sentences), **verdicts,
                   "marked": [asdict(sentence) for sentence in unsupported]})  # fmt: skip
    else:
        share = f", {counts['unsupported'] / len(sentences):.1%} unsupported" if sentences else ""
        emit(
            f"{counted(nodes, 'summary')}, {counted(len(sentences), 'sentence')}: {counts['supported']:,} supported, "
            f"{counts['unsupported']:,} unsupported, {counts['unchecked']:,} unchecked{share}"
        )
        for checked in unsupported:
            emit(f"  node {checked.node}, layer {checked.layer}: {one_line(checked.sentence)}")
    if counts["unchecked"] and not flags["quiet"] and not flags["export"]:
        told = "sentences are in no child word for word, and name no rows of one"
        say(f"{counts['unchecked']:,} {told}: give --llm, --reranker or --export")


def _check_sample(opened: Index, flags: dict[str, Any]) -> list[CheckedSentence]:
    """Check a sample of summaries and store the verdicts; a sentence without a new verdict keeps its earlier one."""
    nodes = sample(opened.store, flags["count"], flags["seed"])
    judge = _judge(flags)
    earlier = {(sentence.node, sentence.number): sentence for sentence in kept(opened.store, nodes)}
    sentences: list[CheckedSentence] = []
    rows: list[dict[str, Any]] = []
    with progress(len(nodes), "summaries", flags["quiet"]) as step:
        for node in nodes:
            children = opened.store.get(node.children)
            judged = run(lambda: judge.check(node, children))  # noqa: B023 - run() ends before the next node
            checked = [
                earlier.get((sentence.node, sentence.number), sentence) if sentence.verdict == "unchecked" else sentence
                for sentence in judged
            ]
            keep(opened.store, node, checked)
            sentences += checked
            rows += exported(node, children, checked)
            step()
    if flags["export"]:
        write_whole(Path(flags["export"]), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return sentences


def _judge(flags: dict[str, Any]) -> Judge:
    """Return the judge that a command line names."""
    options = Options(llm=flags["llm"], reranker=flags["reranker"])
    engines = EngineSet(load_settings(), options)
    llm = engines.get("llm") if flags["llm"] else None
    reranker = engines.get("reranker") if flags["reranker"] else None
    return Judge(llm, reranker, flags["threshold"])


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read ({error})", subject=path) from error
