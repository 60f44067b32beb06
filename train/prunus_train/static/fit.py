"""Fit the table of static vectors: to the teachers' vectors of texts, then to questions and the units that answer them.

A text is the mean of its pieces' vectors. Torch is imported here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Ids = Sequence[Sequence[int]]

_SPAN: Final = (4, 14)
"""Pieces of a span of a passage that serves as a question: at least, and fewer than."""

_FASTER: Final = 10.0
"""How much faster the weights of rows are learned than their directions."""

_SHARPNESS: Final = 20.0
"""Cosines are multiplied by this before the softmax over the units that a question is compared with."""


@dataclass(frozen=True, slots=True)
class TaughtTexts:
    """Texts with the vectors that they should have.

    :param ids: pieces of each text.
    :param targets: float32 [texts, dimensions] of unit norm.
    """

    ids: Ids
    targets: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class StaticQuestions:
    """Questions, the units that answer them, and other units of the same documents.

    :param beside: ids of other units for each question; may be empty.
    """

    questions: Ids
    golds: Ids
    beside: Sequence[Ids]

    def first(self, number: int) -> StaticQuestions:
        """Return the first questions."""
        return StaticQuestions(self.questions[:number], self.golds[:number], self.beside[:number])

    def with_spans(self, passages: Ids, number: int, drawn: np.random.Generator) -> StaticQuestions:
        """Add spans of passages as questions that the rest of the passage answers; the next passage stands beside.

        :param passages: in the order of their sources, so that the next one is mostly of the same document.
        """
        questions, golds, beside = list(self.questions), list(self.golds), list(self.beside)
        for at in drawn.choice(len(passages), min(number, len(passages)), replace=False):
            row = passages[at]
            length = int(drawn.integers(*_SPAN))
            if len(row) < 2 * length:
                continue
            start = int(drawn.integers(len(row) - length + 1))
            questions.append(row[start : start + length])
            golds.append([*row[:start], *row[start + length :]])
            beside.append([passages[(at + 1) % len(passages)]])
        return StaticQuestions(questions, golds, beside)


@dataclass(frozen=True, slots=True)
class FitPlan:
    """How long and how fast to learn.

    :param taught: rounds over the taught texts alone.
    :param asked: rounds over the questions, each with as many taught texts beside them.
    :param weight: weight of the teachers' vectors in the second part.
    :param spans: spans of passages that serve as questions in a round; they make unrelated texts alike.
    """

    taught: int = 3
    asked: int = 2
    batch: int = 512
    rate: float = 4e-3
    weight: float = 1.0
    spans: int = 0
    seed: int = 7


def fit(
    table: NDArray[np.float32],
    taught: TaughtTexts,
    asked: StaticQuestions,
    passages: Ids,
    plan: FitPlan,
    report: Callable[[str], None],
) -> NDArray[np.float32]:
    """Return the fitted table, float32 [pieces, dimensions].

    :param table: the vectors to begin with.
    :param passages: passages whose spans serve as questions.
    :param report: is told a line for each round.
    """
    drawn = np.random.default_rng(plan.seed)
    rows = _Rows(table)
    rounds = [False] * plan.taught + [True] * plan.asked
    together = len(asked.questions) + min(plan.spans, len(passages))  # some passages are too short for a span
    steps = plan.taught * -(-len(taught.ids) // plan.batch) + plan.asked * -(-together // plan.batch)
    for number, with_questions in enumerate(rounds, 1):
        mixed = asked.with_spans(passages, plan.spans, drawn) if with_questions and passages else asked
        order = drawn.permutation(len(mixed.questions) if with_questions else len(taught.ids))
        losses = []
        for start in range(0, len(order), plan.batch):
            chosen = order[start : start + plan.batch]
            rate = plan.rate * max(1.0 - rows.steps / max(steps, 1), 0.05)
            if with_questions:
                beside = drawn.choice(len(taught.ids), min(plan.batch, len(taught.ids)), replace=False)
                batch = _Batch.of_questions(mixed, [int(at) for at in chosen], [taught.ids[at] for at in beside], drawn)
                told = taught.targets[beside]
            else:
                batch, told = _Batch.of_texts([taught.ids[at] for at in chosen]), taught.targets[chosen]
            losses.append(rows.step(batch, told, plan.weight if with_questions else 1.0, rate))
        kind = "questions" if with_questions else "texts"
        report(f"round {number} of {len(rounds)}: {kind}, loss {np.mean(losses):.4f}")
    return rows.table


@dataclass(frozen=True, slots=True)
class _Batch:
    """The texts of a step: questions, as many gold units, other units, and texts with vectors to learn."""

    ids: Ids
    questions: int
    others: int

    @classmethod
    def of_texts(cls, ids: Ids) -> _Batch:
        return cls(ids, 0, 0)

    @classmethod
    def of_questions(
        cls, asked: StaticQuestions, chosen: Sequence[int], texts: Ids, drawn: np.random.Generator
    ) -> _Batch:
        """Take one more unit of each document that has one, so that a question is told from its own page's units."""
        others = [asked.beside[at][int(drawn.integers(len(asked.beside[at])))] for at in chosen if asked.beside[at]]
        ids = [*(asked.questions[at] for at in chosen), *(asked.golds[at] for at in chosen), *others, *texts]
        return cls(ids, len(chosen), len(others))


class _Adam:
    """An array and the state of Adam, of which a step touches the rows of its batch alone."""

    def __init__(self, values: NDArray[np.float32]) -> None:
        self.values = values
        self._first = np.zeros_like(values)
        self._second = np.zeros_like(values)
        self._steps = 0

    def step(self, used: NDArray[np.int64], slope: NDArray[np.float32], rate: float) -> None:
        """Move the rows against their slope."""
        self._steps += 1
        first = self._first[used] * 0.9 + slope * 0.1
        second = self._second[used] * 0.999 + slope * slope * 0.001
        self._first[used], self._second[used] = first, second
        size = first / (1 - 0.9**self._steps)
        self.values[used] -= rate * size / (np.sqrt(second / (1 - 0.999**self._steps)) + 1e-8)


class _Rows:
    """A table that learns: the direction of each row, and faster the logarithm of its weight."""

    def __init__(self, table: NDArray[np.float32]) -> None:
        self._rows = _Adam(table.astype(np.float32, copy=True))
        self._weights = _Adam(np.zeros(len(table), np.float32))
        self.steps = 0

    @property
    def table(self) -> NDArray[np.float32]:
        """The rows with their weights."""
        return np.asarray(self._rows.values * np.exp(self._weights.values)[:, None], np.float32)

    def step(self, batch: _Batch, told: NDArray[np.float32], weight: float, rate: float) -> float:
        """Take a step, and return the loss before it.

        :param told: the vectors that the last texts of the batch should have.
        :param weight: of these vectors beside the questions.
        """
        import torch

        self.steps += 1
        flat = np.concatenate([np.asarray(row, np.int64) for row in batch.ids])
        starts = np.cumsum([0, *(len(row) for row in batch.ids[:-1])])
        used, local = np.unique(flat, return_inverse=True)
        rows = torch.from_numpy(self._rows.values[used]).requires_grad_()
        weights = torch.from_numpy(self._weights.values[used]).requires_grad_()
        weighted = rows * weights.exp()[:, None]
        sums = torch.nn.functional.embedding_bag(
            torch.from_numpy(local), weighted, torch.from_numpy(starts), mode="sum"
        )
        loss = _loss(torch.nn.functional.normalize(sums, dim=1), batch, torch.from_numpy(told), weight)
        loss.backward()
        self._rows.step(used, rows.grad.numpy(), rate)
        self._weights.step(used, weights.grad.numpy(), _FASTER * rate)
        return float(loss.detach())


def _loss(vectors: torch.Tensor, batch: _Batch, told: torch.Tensor, weight: float) -> torch.Tensor:
    """Return the distance to the taught vectors, and how badly gold units are told from the others of the batch."""
    import torch

    questions, golds, others, texts = vectors.split([batch.questions, batch.questions, batch.others, len(told)])
    taught = weight * (1.0 - (texts * told).sum(1).mean())
    if not batch.questions:
        return taught
    right = torch.arange(batch.questions)
    there = torch.nn.functional.cross_entropy(_SHARPNESS * questions @ torch.cat([golds, others]).T, right)
    back = torch.nn.functional.cross_entropy(_SHARPNESS * golds @ questions.T, right)
    return taught + there + 0.5 * back


def accuracy(table: NDArray[np.float32], asked: StaticQuestions) -> float:
    """Return the mean reciprocal rank of the gold units of questions, among all gold units and others given here."""
    if not asked.questions:
        return 0.0
    units = [*asked.golds, *(others[0] for others in asked.beside if others)]
    found, questions = _mean(table, units), _mean(table, asked.questions)
    scores = questions @ found.T
    right = scores[np.arange(len(questions)), np.arange(len(questions))]
    return float(np.mean(1.0 / (scores >= right[:, None]).sum(1)))


def _mean(table: NDArray[np.float32], ids: Ids) -> NDArray[np.float32]:
    vectors = np.stack([table[np.asarray(row)].mean(0) for row in ids])
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)
