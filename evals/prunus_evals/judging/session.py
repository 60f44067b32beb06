"""Judging a run in its folder: by a model, or by people; the result is noted in the run, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prunus_evals import readers
from prunus_evals.judging import costs, judge, pairs, people, summary
from prunus_evals.records import Outcome
from prunus_evals.store import Store, opened

NOTE = "judging"
"""The name of the note in the run: results by judge, systems and kind."""


@dataclass(frozen=True, slots=True)
class Place:
    """Two systems of a run.

    :param folder: the folder of the run.
    :param names: the systems; see :func:`.pairs.load`.
    :param limit: pairs at most.
    :param seed: decides the order of pairs for people.
    :param outcomes: those whose answers are compared, as those of one plan; None for all of the run.
    """

    folder: Path
    names: tuple[str, str]
    limit: int | None = None
    seed: int = 0
    outcomes: Sequence[Outcome] | None = None

    def model(
        self,
        spec: str,
        grade: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
        made: judge.Judge | None = None,
    ) -> dict[str, Any]:
        """Let a model compare the answers, or grade each, and return the summary.

        :param spec: of the model.
        :param made: the judge, where it is made already.
        :raises EvalError: the run or the judge cannot be used, or it cannot be reached. What was judged is kept.
        """
        with self._open() as (store, found):
            asked = made or judge.ModelJudge(spec)
            about = self._about(store, found.names, asked.name, readers.caveat(asked.name, asked.real))
            total = len(found.found)

            def on(done: int) -> None:
                progress(done, total)

            if grade:
                return self._note(store, summary.of_grades(found, judge.grade(found.found, asked, store, on), about))
            return self._note(store, summary.of_pairs(found, judge.compare(found.found, asked, store, on), about))

    def people(self, path: Path) -> dict[str, Any]:
        """Read what people filled in, and return the summary.

        :raises EvalError: the run or the file cannot be used.
        """
        with self._open() as (store, found):
            about = self._about(store, found.names, f"people ({path.name})", "")
            about["ties_unseen"] = sum(pair.equal for pair in found.found)
            return self._note(store, summary.of_pairs(found, people.load(path, found.found, self.seed), about))

    def export(self, path: Path) -> tuple[int, int]:
        """Write the pairs for people; return how many these are, and how many are left out as ties of equal answers.

        :raises EvalError: the run cannot be used, or the file cannot be written.
        """
        with self._open() as (_, found):
            people.export(path, found.found, self.seed)
            equal = sum(pair.equal for pair in found.found)
            return len(found.found) - equal, equal

    @contextmanager
    def _open(self) -> Iterator[tuple[Store, pairs.Pairs]]:
        with opened(self.folder) as store:
            yield store, pairs.load(store, self.names, self.limit, self.outcomes)

    def _about(self, store: Store, names: tuple[str, str], name: str, caveat: str) -> dict[str, Any]:
        outcomes = [
            outcome
            for outcome in (store.outcomes() if self.outcomes is None else self.outcomes)
            if outcome.reading is not None and {outcome.system, pairs.row_of(outcome)} & {*names}
        ]
        about = {"judge": name, "caveat": caveat, "halves": store.about().get("halves", {})}
        return about | {"tokens": costs.sums(outcomes)}

    def _note(self, store: Store, result: dict[str, Any]) -> dict[str, Any]:
        noted = store.about().get(NOTE, {})
        store.note({NOTE: {**noted, " | ".join((result["judge"], *result["between"], result["kind"])): result}})
        return result


def table(result: dict[str, Any]) -> str:
    """Return a summary, and the tokens of both systems, as text."""
    return f"{summary.table(result)}\n\n{costs.table(result['tokens'])}"
