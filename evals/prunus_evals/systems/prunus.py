"""Prunus itself, through ``prunus.prune``: ``prunus:SCORER:FORMAT@option=value``.

SCORER is ``trees``, ``hybrid``, ``bm25``, ``static`` (the scorer ``embedding`` with static vectors) or the spec of
any scorer, as ``generative:FOLDER``; ``SCORER+EMBEDDER`` takes another embedder, as ``embedding+minilm``;
``FIRST>SECOND`` has two stages, as ``bm25>crossencoder`` and ``hybrid>generative:FOLDER``. FORMAT is ``html``,
``markdown`` or ``text``.

=============== ==================================================================================================
``words``       words of a block at most (the granularity); with two stages, of a block of the second
``units``       ``leaves``: the leaves of the DOM instead of the block tree
``stages``      1: only one stage, as for ``generative:FOLDER`` alone; 2: always two; 0: two for large pages
``coarse``      tokens that the first of two stages keeps
``coarse_words`` words of a block of the first stage at most
``from``        ``markdown``, ``text``: the pages are converted first, and Prunus reads and prunes what was written
``then``        ``markdown``, ``text``: what was pruned as FORMAT is converted last, and cut where it is too long
``main``        ``yes``: only the main content of the pages is pruned
``breadcrumbs``, ``fill``, ``links``, ``images``, ``emphasis``, ``full``  ``yes``: as the options of Prunus
``embedder``, ``reranker``  spec of the embedder, and of the reranker of ``crossencoder``
``prompt``      prompt of a generative scorer
``costs``       ``yes``: note tokens and seconds by stage
=============== ==================================================================================================

``prunus:trees:markdown`` prunes, then converts, within a budget of Markdown;
``prunus:trees:markdown@from=markdown`` converts, then refines by the same scorer. ``prunus:sentences``,
``prunus:tags@llm=SPEC``, ``prunus:extract`` and ``prunus:ask`` are the extractors and the answers of Prunus: see
:mod:`._prunus_answers`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import prunus
from prunus.core.registry import engine_names, names_a_file, split_spec
from prunus_evals import readers
from prunus_evals.errors import UnknownName
from prunus_evals.records import Asker, Document, OutputFormat, Reply, System
from prunus_evals.systems import _embed, _prunus_answers
from prunus_evals.systems._documents import page_of, read
from prunus_evals.systems._stages import COSTS, StageTimer
from prunus_evals.systems._variants import Variant
from prunus_evals.systems._variants import read as read_variant
from prunus_evals.tokens import NAME, Counter, llama2

# name of the variant → spec of the scorer; "static" is the embedding scorer with static vectors
SCORERS = {"trees": "trees", "hybrid": "hybrid", "bm25": "bm25", "static": "embedding"}
FORMATS: tuple[OutputFormat, ...] = ("html", "markdown", "text")
VARIANTS = (*(f"{scorer}:{format}" for scorer in SCORERS for format in FORMATS), "sentences", "extract", "ask")
_YES = ("yes", "no")
FLAGS = ("breadcrumbs", "fill", "links", "images", "emphasis", "full")
NUMBERS = {"words": "max_words", "stages": "stages", "coarse": "coarse_budget", "coarse_words": "coarse_words"}
"""Options that are numbers, and their names in ``prunus.Options``."""

OPTIONS: dict[str, Any] = {
    **dict.fromkeys(NUMBERS, int),
    "units": ("blocks", "leaves"),
    "from": ("markdown", "text"),
    "then": ("markdown", "text"),
    "main": _YES,
    **dict.fromkeys(FLAGS, _YES),
    **dict.fromkeys(("embedder", "reranker", "prompt"), str),
    **COSTS,
}
MEDIA = {"markdown": "text/markdown", "text": "text/plain"}
STAGES = {"first": "first stage", "second": "second stage", "window": "first stage, for the window"}
"""Names of the stages of a trace in tables."""


class Prunus:
    """Prunes with one configuration into one format.

    :param scorer: ``scorer``; ``scorer+embedder`` for an embedder other than ``static``; ``scorer>fine`` for a scorer
        of a second stage.
    :param options: the options of the variant.
    """

    def __init__(
        self,
        scorer: str,
        format: OutputFormat,
        options: dict[str, Any] | None = None,
        counter: Counter | None = None,
        name: str = "",
    ) -> None:
        self.name = name or f"prunus:{scorer}:{format}"
        chosen = options or {}
        stages, _, embedder = scorer.partition("+")
        first, _, fine = stages.partition(">")
        known: dict[str, Any] = {NUMBERS[key]: value for key, value in chosen.items() if key in NUMBERS}
        known |= {key: chosen[key] == "yes" for key in FLAGS if key in chosen}
        known = {"stages": 2 if fine else 0, "units": chosen.get("units", "blocks")} | known
        self._options = prunus.Options(
            scorer=SCORERS.get(first, first),
            second_scorer=SCORERS.get(fine, fine),
            embedder="static",
            tokenizer=NAME,
            **known,
        )
        embedder = chosen.get("embedder", embedder)
        hold = chosen.get("costs") != "yes"
        if embedder:
            self._options = replace(self._options, embedder=_embed.embedder(embedder, hold))
        if "reranker" in chosen:
            self._options = replace(self._options, reranker=_embed.reranker(chosen["reranker"], hold))
        settings = prunus.load_settings()
        if "prompt" in chosen:
            settings = replace(settings, path_options={**settings.path_options, "prompt": chosen["prompt"]})
        self._settings = settings
        self._format: OutputFormat = format
        self._chosen = chosen
        self._counter = counter
        self._models = [_model(spec, settings) for spec in (first, fine) if split_spec(spec)[0] == "generative"]
        self.models = (*self._models, *_embed.models(first, fine, embedder, chosen.get("reranker", "")))

    @property
    def caveat(self) -> str:
        """What tables must say of the models of generative scorers."""
        return readers.joined(map(readers.caveat, self._models))

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Clean the pages once, and convert them first where the variant says so."""
        counter = self._counter or llama2()
        stages = StageTimer(counter, self._chosen.get("costs") == "yes")
        start = time.perf_counter()
        pages = read(self._converted(documents))
        seconds = time.perf_counter() - start
        if pages is None:
            return _Nothing(self._format)
        kept = [one for one in documents if one.content.strip() and stages.wanted]
        cleaned = [prunus.clean(page_of(one), style=prunus.LEAN) for one in kept]
        stages.note("clean", seconds, [one.content for one in documents], cleaned)
        return _Asker(pages, self._format, (self._options, self._settings), self._chosen.get("then", ""), stages)

    def _converted(self, documents: Sequence[Document]) -> Sequence[Document]:
        to, main = self._chosen.get("from", ""), self._chosen.get("main") == "yes"
        if not to and not main:
            return documents
        return [
            replace(
                one, content=prunus.clean(page_of(one), to or "html", main=main), media_type=MEDIA.get(to, "text/html")
            )
            for one in documents
            if one.content.strip()
        ]


def _model(scorer: str, settings: prunus.Settings) -> str:
    """Return the spec of the model of a generative scorer, which is a folder unless it begins with an engine's name."""
    model = split_spec(scorer)[1] or settings.path_scorer
    return model if split_spec(model)[0] in engine_names("path_scorer") else f"transformers:{model}"


class _Nothing:
    """Answers from documents that are all empty."""

    def __init__(self, format: OutputFormat) -> None:
        self._format: OutputFormat = format

    def ask(self, question: str, budget: int) -> Reply:
        return Reply("", self._format)


class _Asker:
    def __init__(
        self,
        pages: prunus.Documents,
        format: OutputFormat,
        choices: tuple[prunus.Options, prunus.Settings],
        then: str,
        stages: StageTimer,
    ) -> None:
        self._pages = pages
        self._format: OutputFormat = format
        self._choices = choices
        self._then = then
        self._stages = stages

    def ask(self, question: str, budget: int) -> Reply:
        format: OutputFormat = (
            "markdown" if self._then == "markdown" else "text" if self._then == "text" else self._format
        )
        options, settings = self._choices
        try:
            context = prunus.prune(self._pages, question, budget, self._format, options, settings)
        except prunus.BadBudget as error:  # nothing fits: that is what a user gets, and it is scored as it is
            return Reply("", format, facts={"nothing": str(error)})
        text = context.render(format)
        if self._then and context.tokens_of(format) > budget:
            text = self._stages.counter.head(text, budget)
        if not self._stages.wanted:
            return Reply(text, format)
        return Reply(text, format, stages=tuple(noted(self._stages, context).found), facts=facts_of(context))


def noted(stages: StageTimer, context: prunus.Context) -> StageTimer:
    """Return the stages of a pruning after those of its preparation.

    A generative stage reads the tokens that its model read; ``skipped`` is the share of the token tree that it did not
    have to read.
    """
    stages = stages.copy()
    seconds, tree = dict(context.seconds), context.tree
    before = context.tokens_before()
    stages.note("cut into blocks", seconds.pop("blocks", 0.0), before, before)
    for record in context.trace:
        after = int(record.detail.get("tokens", context.tokens))
        generative = record.stage == "second" and tree is not None
        read_tokens = tree.branches.tokens if generative else before
        skipped = tree.tree.skipped if generative else None
        stages.note(STAGES.get(record.stage, record.stage), record.seconds, read_tokens, after, skipped)
        seconds.pop(f"score, {record.stage}", None)
        before = after
    if not context.trace:
        stages.note("score", seconds.pop("score", 0.0), before, before)
    stages.note("choose and write", sum(seconds.values()), before, context.tokens)
    return stages


def facts_of(context: prunus.Context) -> dict[str, Any]:
    """Return what a study wants to know of a pruning, ready for JSON."""
    facts: dict[str, Any] = {"words": context.max_words, "blocks": len(context.blocks), "kept": len(context.kept)}
    if context.tree is not None:
        branches = context.tree.branches
        facts |= {"forwards": branches.forwards, "tokens read": branches.tokens, "tokens reused": branches.reused}
    return facts


def _split(variant: str) -> tuple[str, OutputFormat, dict[str, Any]]:
    """Return scorer, format and options of a variant.

    :raises UnknownName: an option, or the format, is not known.
    """
    found: Variant = read_variant("prunus", variant, OPTIONS)
    scorer, _, format = found.head.rpartition(":")
    if scorer and format not in FORMATS:
        raise UnknownName(f"prunus:{variant}: {format} is no format; the formats are: {', '.join(FORMATS)}")
    return scorer, "html" if format == "html" else "markdown" if format == "markdown" else "text", dict(found.options)


def _answers(variant: str) -> Variant | None:
    """Return the variant of an extractor or of answers; None for one that prunes."""
    if variant.partition("@")[0] not in _prunus_answers.HEADS:
        return None
    return read_variant("prunus", variant, _prunus_answers.OPTIONS)


def make(counter: Counter, variant: str) -> System:
    """Return the system of a variant; Prunus counts with its own default counter, which is the same.

    :raises UnknownName: an engine cannot be made.
    """
    answers = _answers(variant)
    if answers is not None:
        return _prunus_answers.make(counter, answers, f"prunus:{variant}")
    scorer, format, options = _split(variant)
    return Prunus(scorer, format, options, counter, f"prunus:{variant}")


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed."""
    answers = _answers(variant)
    if answers is not None:
        return _embed.is_embedder(answers.options.get("embedder", "static"))
    scorer, _, options = _split(variant)
    stages, plus, embedder = scorer.partition("+")
    first, parted, fine = stages.partition(">")
    if plus and first == "bm25" and not parted:  # it embeds nothing
        return False
    if not _is_scorer(first) or (parted and not _is_scorer(fine)) or (plus and not _embed.is_embedder(embedder)):
        return False
    return "embedder" not in options or _embed.is_embedder(options["embedder"])


def _is_scorer(spec: str) -> bool:
    known = spec in SCORERS or (bool(spec) and split_spec(spec)[0] in engine_names("scorer"))
    return known or names_a_file(spec)


NEEDS = f"{_embed.NEEDS}; a generative scorer or an answer with llm: a language model"


def missing(variant: str) -> str:
    """Return which package an embedder lacks, or what the model of a generative scorer does; '' for nothing."""
    answers = _answers(variant)
    if answers is not None:
        return _embed.missing(answers.options.get("embedder", "static"))
    scorer, _, options = _split(variant)
    stages, _, embedder = scorer.partition("+")
    settings = prunus.load_settings()
    for spec in stages.split(">"):
        if split_spec(spec)[0] == "generative" and (lacking := readers.missing(_model(spec, settings))):
            return lacking
    embedder = options.get("embedder", embedder)
    return _embed.missing(embedder) if embedder else ""
