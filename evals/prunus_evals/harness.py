"""The harness: questions × systems × budgets × readers → answers, scores, tokens and seconds.

A run is a folder. Every outcome is stored as soon as it exists, so that a run that was stopped goes on where it was
(:mod:`.store`). Every reply of a reader is stored under its model and prompt: two runs in one folder never ask a model
the same thing twice. The folder also knows what was run, with which versions, when, and how it ended
(:mod:`.provenance`).
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from prunus.core.errors import PrunusError, one_line
from prunus_evals import metrics, provenance, readers, systems, tasks
from prunus_evals.errors import BudgetBroken, EvalError, MetricError, SystemFailed
from prunus_evals.metrics import Metric
from prunus_evals.records import Asker, LeftOut, Outcome, Output, Question, Reader, Reading, Reply, System
from prunus_evals.split import Wanted
from prunus_evals.store import Store
from prunus_evals.tokens import Counter, llama2
from prunus_evals.visible import visible_text

BUDGETS = (512, 1024, 2048, 4096)
NO_READER = "none"
PATIENCE = 10.0
"""Seconds after which progress tells what an outcome waits for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run measures.

    :param tasks: names of tasks, with variants.
    :param half: None takes each task's own.
    :param limit: pages of every task at most.
    :param budgets: tokens of evidence at most, by the Llama-2 tokenizer for every system alike.
    :param readers: specs of readers; ``none`` measures the evidence alone.
    :param prompt: name of the reader's prompt; '' takes that of the question's kind.
    :param metrics: names of metrics; none: those of each task.
    :param questions: questions of a page at most.
    """

    tasks: tuple[str, ...]
    systems: tuple[str, ...]
    half: Wanted | None = None
    limit: int | None = None
    budgets: tuple[int, ...] = BUDGETS
    readers: tuple[str, ...] = (NO_READER,)
    prompt: str = ""
    metrics: tuple[str, ...] = ()
    questions: int | None = None

    def metrics_of(self, task: str) -> tuple[Metric, ...]:
        """Return the metrics of a task.

        :raises UnknownName: there is no such metric.
        """
        return tuple(metrics.named(self.metrics or tasks.about(task).metrics))


def check_metrics(plan: Plan, outcomes: Sequence[Outcome] | None = None) -> None:
    """Check that each metric that a plan names has something to score.

    :param outcomes: those of the plan; before it is run, only a missing reader can be known.
    :raises MetricError: a metric has nothing to score.
    """
    for metric in metrics.named(plan.metrics):
        if metric.of == "answer" and not {*plan.readers} - {NO_READER}:
            raise MetricError(f"{metric.name} scores answers, and nothing answers: name a language model with --reader")
        if outcomes is not None and not any(metric.name in outcome.scores for outcome in outcomes):
            raise MetricError(f"{metric.name} applies to nothing that was measured: take other metrics, or other tasks")


@dataclass(slots=True)
class Progress:
    """How far a run is: told when a task begins, and after every page.

    :param number, tasks: the place of the task among the tasks of the plan, from 1, and their number.
    :param pages, total: pages of the task that are done, and all of them, with those that have no fair question.
    :param outcomes: of the whole run; ``reused`` of them were stored before.
    :param asked: the outcome that is measured now: its question, system and reader; ``since``: when it began, by the
        monotonic clock.
    :param waited: seconds that it has taken so far, where these are many; else 0.
    :param stopped: whether the run ends here, before its end.
    :param changed: whether code, packages or settings are not those that the folder's outcomes were measured with.
    """

    task: str = ""
    number: int = 0
    tasks: int = 0
    pages: int = 0
    total: int = 0
    outcomes: int = 0
    reused: int = 0
    changed: bool = False
    stopped: bool = False
    asked: str = ""
    since: float = 0.0
    waited: float = 0.0


@dataclass(slots=True)
class Engines:
    """The counter, systems and readers of a run, each made once."""

    counter: Counter
    systems: list[System]
    readers: dict[str, Reader | None] = field(default_factory=dict)


def run(
    plan: Plan,
    folder: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    engines: Engines | None = None,
    add: bool = False,
    left_out: dict[str, dict[str, int]] | None = None,
) -> list[Outcome]:
    """Run a plan, and return its outcomes in the order of the questions.

    :param folder: where outcomes are stored; a plan goes on where it was stopped. None keeps them in memory.
    :param engines: systems and readers that are made already; by default those that the plan names.
    :param add: add the plan to a folder that holds another one.
    :param left_out: gets how many questions of each task were left out, by reason.
    :raises UnknownName: there is no such task, system, metric or reader; nothing was run then.
    :raises EvalError: data is missing, the folder holds another plan, a metric cannot be computed, or a reader failed.
        What was measured is kept.
    """
    for task in plan.tasks:
        chosen = plan.metrics_of(task)
        tasks.check(task, chosen if plan.metrics else ())
    made = engines or engines_of(plan)
    halves = {task: plan.half or tasks.about(task).half for task in plan.tasks}
    found: list[Outcome] = []
    try:
        with closing(Store(folder)) as store, provenance.noted(store, asdict(plan), halves, add):
            changed = store.fact("state") not in (None, provenance.state())
            state = Progress(tasks=len(plan.tasks), changed=changed)
            with _watched(state, progress):
                for state.number, state.task in enumerate(plan.tasks, 1):
                    unasked: list[LeftOut] = []
                    found += _run_task(plan, halves[state.task], made, store, state, progress, unasked)
                    if left_out is not None:
                        left_out[state.task] = provenance.reasons(unasked)
    except sqlite3.Error as error:
        raise EvalError(f"{folder} cannot be written: {error}; what was measured before is kept") from error
    return found


@contextmanager
def _watched(state: Progress, progress: Callable[[Progress], None] | None) -> Iterator[None]:
    """Tell, every :data:`PATIENCE` seconds, which outcome takes longer than that."""
    if progress is None:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(PATIENCE):
            now = replace(state)  # the run goes on meanwhile
            waited = time.monotonic() - now.since
            if now.asked and waited >= PATIENCE:
                progress(replace(now, waited=waited))

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def _run_task(
    plan: Plan,
    half: Wanted,
    engines: Engines,
    store: Store,
    state: Progress,
    progress: Callable[[Progress], None] | None,
    left_out: list[LeftOut],
) -> list[Outcome]:
    """Run all pages of a task.

    :param left_out: gets the questions that the task does not ask.
    :raises EvalError: the half has no question.
    """
    found: list[Outcome] = []

    state.pages = state.total = 0

    def begin(pages: int) -> None:
        state.total = pages
        if progress is not None:
            progress(state)

    try:
        with store.asking(state.task, repr(plan)):
            for page in tasks.groups(state.task, half, plan.limit, left_out=left_out, count=begin):
                for outcome in run_page(page[: plan.questions], engines, plan.budgets, plan, store, state):
                    found.append(outcome)
                    state.outcomes += 1
                state.pages += 1
                if progress is not None:
                    progress(state)
    except BaseException:  # Ctrl-C, too: what is told last is what was measured
        state.stopped = True
        if progress is not None and state.total:
            progress(state)
        raise
    if not found:
        raise EvalError(f"{state.task}: this half has no question; take the other half")
    provenance.note_left_out(store, state.task, left_out)
    if state.pages < state.total:  # some pages had no question that can be asked
        state.total = state.pages
        if progress is not None:
            progress(state)
    return found


def engines_of(plan: Plan) -> Engines:
    """Make the systems and readers that a plan names.

    :raises UnknownName: there is no such system or reader.
    """
    counter = llama2()
    made = [systems.make(name, counter) for name in plan.systems]
    return Engines(counter, made, {spec: readers.make(spec, plan.prompt) for spec in plan.readers})


def run_page(
    page: Sequence[Question],
    engines: Engines,
    budgets: Sequence[int],
    plan: Plan | None = None,
    store: Store | None = None,
    state: Progress | None = None,
) -> Iterator[Outcome]:
    """Yield the outcomes of the questions about one page; what the store holds is not measured again.

    What other code, packages or settings measured is measured again; see :func:`.provenance.state`.
    """
    store, measured_by = store or Store(None), provenance.state()
    models = {spec: readers.identity(spec, store) for spec, reader in engines.readers.items() if reader}
    for system in engines.systems:
        preparing, made_of = _Preparing(system), readers.made_of(system, store)
        for question in page:
            chosen = plan.metrics_of(question.task) if plan else metrics.named(tasks.about(question.task).metrics)
            for budget in budgets:
                for spec, reader in (engines.readers or {NO_READER: None}).items():
                    prompt = readers.prompt_of(question, plan.prompt if plan else "") if reader else ""
                    model = models.get(spec, spec)
                    key = store.key(question, made_of, budget, model, prompt, chosen, measured_by)
                    outcome = store.outcome(key)
                    store.keep_question(question)
                    store.note_asked(key, question)
                    if outcome is None:
                        asked = spec, reader, model
                        if state is not None:
                            state.since = time.monotonic()
                            state.asked = f"question {question.id}, {system.name}" + (f", {spec}" if reader else "")
                        outcome = _measured(question, preparing, budget, asked, chosen, engines.counter, store)
                        named = plan.prompt if reader and plan else ""
                        outcome = replace(outcome, prompt_name=named, state=measured_by)
                        store.keep(key, outcome)
                        if state is not None:
                            state.asked = ""
                    elif state is not None:
                        state.reused += 1
                    store.note_state(measured_by)
                    yield outcome


class _Preparing:
    """A system that prepares the documents of a question when it is asked about them first; keeps its last reply."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.cpu = self.seconds = 0.0
        self._asker: Asker | None = None
        self._documents: object = None
        self._last: tuple[Question, int, Reply, float, float] | None = None

    def ask(self, question: Question, budget: int) -> tuple[Reply, float, float]:
        """Return the reply, and its CPU and wall seconds: who has one question pays for the whole preparation.

        :raises ReaderFailed: a model inside the system failed.
        :raises SystemFailed: the system failed otherwise.
        """
        try:
            return self._asked(question, budget)
        except EvalError:
            raise
        except PrunusError as error:
            raise readers.failed(self.system.name, error) from error
        except Exception as error:  # the code of another package may raise anything
            line = one_line(f"{type(error).__name__}: {error}", longest=300)
            raise SystemFailed(
                f"{self.system.name} failed at question {question.id} of {question.task}: {line}"
            ) from error

    def _asked(self, question: Question, budget: int) -> tuple[Reply, float, float]:
        if self._asker is None or self._documents != question.documents:
            cpu, wall = time.process_time(), time.perf_counter()
            self._asker = self.system.prepare(question.documents)
            self._documents = question.documents
            self.cpu, self.seconds = time.process_time() - cpu, time.perf_counter() - wall
        if self._last is None or self._last[0] is not question or self._last[1] != budget:
            cpu, wall = time.process_time(), time.perf_counter()
            ask_question = getattr(self._asker, "ask_question", None)
            reply = ask_question(question, budget) if ask_question else self._asker.ask(question.question, budget)
            self._last = question, budget, reply, time.process_time() - cpu, time.perf_counter() - wall
        _, _, reply, cpu, wall = self._last
        spent = reply.cpu_seconds if reply.cpu_seconds is not None else self.cpu + cpu
        return reply, spent, self.seconds + wall


def _measured(
    question: Question,
    preparing: _Preparing,
    budget: int,
    reader: tuple[str, Reader | None, str],
    chosen: Sequence[Metric],
    counter: Counter,
    store: Store,
) -> Outcome:
    name = preparing.system.name
    reply, cpu, seconds = preparing.ask(question, budget)
    tokens = tokens_of(reply, question, name, budget, counter)
    reading: Reading | None = None
    spec, model, identity = reader
    prompt = ""
    caveats = {name: getattr(preparing.system, "caveat", "")}
    if model is not None:
        caveats[spec] = model.caveat if hasattr(model, "caveat") else readers.caveat(spec, model.real)
        reading, prompt = readers.read(model, question, reply.text, store, identity)
    output = output_of(reply, None if reading is None else reading.text)
    return Outcome(
        task=question.task,
        system=name,
        page=question.page,
        question=question.id,
        budget=budget,
        scores=scores_of(question, output, chosen),
        counts=counts_of(question, output, chosen),
        tokens=tokens,
        cpu_seconds=cpu,
        seconds=seconds,
        reader=spec,
        reading=reading,
        prompt=prompt,
        stages=reply.stages,
        labels=dict(question.labels),
        facts=dict(reply.facts),
        evidence=store.keep_text(reply.text),
        caveat=readers.joined(caveats.values()),
        caveats={one: said for one, said in caveats.items() if said},
    )


def output_of(reply: Reply, answer: str | None = None) -> Output:
    """Return what metrics score."""
    return Output(reply, visible_text(reply.text, reply.format), answer)


def tokens_of(reply: Reply, question: Question, system: str, budget: int, counter: Counter) -> int:
    """Return the tokens of a reply.

    :raises BudgetBroken: the reply has more tokens than the budget.
    """
    key: Any = counter  # its protocol does not say that it can be a key
    tokens = _counted(key, reply.text)
    if tokens > budget:
        raise BudgetBroken(system, question.id, budget, tokens)
    return tokens


@lru_cache(maxsize=8)
def _counted(counter: Counter, text: str) -> int:
    """Count a text; a short page is kept whole at several budgets, one after another."""
    return counter.count([text])[0]


def counts_of(question: Question, output: Output, metrics: Sequence[Metric]) -> dict[str, list[float]]:
    """Return what metrics over all answers together add up, by metric; see :class:`.metrics.Metric`.

    :raises MetricError: as :func:`scores_of`.
    """
    found: dict[str, list[float]] = {}
    for metric in metrics:
        if metric.counts is not None and (metric.of != "answer" or output.answer is not None):
            try:
                counts = metric.counts(question, output)
            except (MetricError, ImportError) as error:
                raise _named(error, metric, question) from error
            if counts is not None:
                found[metric.name] = [float(count) for count in counts]
    return found


def scores_of(question: Question, output: Output, metrics: Sequence[Metric]) -> dict[str, float]:
    """Return the scores by metric; a metric that does not apply to the question, or to its output, is left out.

    A metric of answers applies where a reader answered.

    :raises MetricError: a metric applies and cannot be computed; the message names metric and question.
    """
    found: dict[str, float] = {}
    for metric in metrics:
        if metric.of == "answer" and output.answer is None:
            continue
        try:
            value = metric.score(question, output)
        except (MetricError, ImportError) as error:
            raise _named(error, metric, question) from error
        if value is not None:
            found[metric.name] = float(value)
    return found


def _named(error: Exception, metric: Metric, question: Question) -> MetricError:
    return MetricError(f"{metric.name} of {question.task}, question {question.id}: {error}")
