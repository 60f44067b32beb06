"""`prunus eval compare`: the same questions alone, and paired numbers that a slow, plain computation gives too."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from prunus_evals import provenance, stats
from prunus_evals.cli import main
from prunus_evals.compare import compare, table
from prunus_evals.errors import EvalError
from prunus_evals.records import Outcome, Question, one_page
from prunus_evals.split import half
from prunus_evals.store import Store

KEYS = [f"page-{number}" for number in range(40)]
Score = Callable[[str, str, int], float]
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return a function that makes the folder of a run of two questions a page."""

    def made(
        name: str,
        score: Score,
        pages: Sequence[str] = KEYS,
        systems: Sequence[str] = ("s",),
        text: str = "p",
        facts: Mapping[str, Any] = {},
        half: str = "all",
        **plan: Any,
    ) -> Path:
        store = Store(tmp_path / name)
        fields = {"tasks": ["nq"], "systems": list(systems), "limit": None, **plan}
        with provenance.noted(store, fields, {"nq": half}):
            for page in pages:
                for number in range(2):
                    question = Question(f"{page}#{number}", "nq", page, one_page(text), f"Who is {number}?", ("Ann",))
                    store.keep_question(question)
                    for system in systems:
                        value = score(question.id, system, 512)
                        found = Outcome("nq", system, page, question.id, 512, {"answer": value}, 100, 0.5)
                        store.keep(f"{question.id} {system}", replace(found, **facts))
        store.close()
        return tmp_path / name

    return made


def drawn(seed: int) -> Score:
    numbers = random.Random(seed)
    found: dict[tuple[str, str, int], float] = {}

    def score(question: str, system: str, budget: int) -> float:
        return found.setdefault((question, system, budget), numbers.randrange(5) / 4)

    return score


def test_differences_are_those_of_a_slow_plain_computation(make: Make) -> None:
    first, second = drawn(1), drawn(2)
    a, b = make("a", first), make("b", second, pages=KEYS[5:], systems=("s", "t"))
    result = compare(a, b)
    (entry,) = result["differences"]
    pages = sorted(KEYS[5:])
    moves = {
        page: [Fraction(second(f"{page}#{n}", "s", 512)) - Fraction(first(f"{page}#{n}", "s", 512)) for n in (0, 1)]
        for page in pages
    }
    draws = np.random.default_rng(stats.SEED).integers(0, len(pages), size=(stats.SAMPLES, len(pages)))
    means = []
    for draw in draws:
        chosen = [move for place in draw for move in moves[pages[place]]]
        means.append(float(sum(chosen) / len(chosen)))
    wanted = [float(sum(map(sum, moves.values())) / 70), *np.percentile(means, [2.5, 97.5])]
    assert entry["numbers"]["answer"]["b_minus_a"] == pytest.approx(wanted, abs=6e-5)
    assert entry["numbers"]["answer"]["questions"] == 70
    old = [first(f"{page}#{n}", "s", 512) for page in pages for n in (0, 1)]
    assert entry["numbers"]["answer"]["a"] == pytest.approx(sum(old) / 70, abs=6e-5)
    assert (result["only_a"], result["only_b"], result["rows_only_b"]) == (10, 0, ["t"])


def test_a_mean_with_its_interval_is_that_of_drawn_pages() -> None:
    numbers = random.Random(3)
    values = {f"p{n}": [numbers.random() for _ in range(1 + n % 4)] for n in range(17)}
    draws = np.random.default_rng(7).integers(0, 17, size=(300, 17))
    names = sorted(values)
    means = [np.mean([value for place in draw for value in values[names[place]]]) for draw in draws]
    found = stats.mean(values, samples=300, seed=7)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])), abs=1e-12)


def test_questions_that_changed_most_come_first_and_those_of_the_report_half_stay_hidden(make: Make) -> None:
    moved = {KEYS[3]: 1.0, KEYS[7]: 0.5}
    a = make("a", lambda question, system, budget: 0.0)
    b = make(
        "b", lambda question, system, budget: moved.get(question.split("#")[0], 0.0) if question.endswith("#1") else 0.0
    )
    shown = compare(a, b, cases=True)["moved"]["nq"]
    assert [(row["question"], row["b_minus_a"], row["text"]) for row in shown] == [
        (f"{KEYS[3]}#1", 1.0, "Who is 1?"),
        (f"{KEYS[7]}#1", 0.5, "Who is 1?"),
    ]
    dev = [key for key in (KEYS[3], KEYS[7]) if half(key) == "dev"]
    assert [row["question"] for row in compare(a, b)["moved"]["nq"]] == [f"{key}#1" for key in dev]


def test_a_run_equals_itself(make: Make) -> None:
    a = make("a", drawn(1))
    (entry,) = compare(a, a)["differences"]
    assert entry["numbers"]["answer"]["b_minus_a"] == [0, 0, 0]
    assert compare(a, a)["moved"]["nq"] == []


def test_changed_questions_are_left_out_and_counted(make: Make) -> None:
    a, b = make("a", drawn(1)), make("b", drawn(1), text="another page")
    with pytest.raises(EvalError, match="share no question"):
        compare(a, b)


def test_runs_without_a_common_question_or_row_cannot_be_compared(make: Make, tmp_path: Path) -> None:
    a, b = make("a", drawn(1), pages=KEYS[:3]), make("b", drawn(1), pages=KEYS[3:6])
    c = make("c", drawn(1), systems=("t",))
    for second, said in (
        (b, "share no question"),
        (c, "share no system; the first has s, the second t; --match pairs rows of different names"),
        (tmp_path / "x", "not the folder of a run"),
    ):
        result = CliRunner().invoke(main, ["compare", str(a), str(second)])
        assert result.exit_code == 2
        assert said in " ".join(result.output.split())
    for pair in ("gone=t", "s=gone"):
        with pytest.raises(EvalError, match=r"has no row gone; its rows are: [st]"):
            compare(a, c, dict([pair.split("=")]))
    assert CliRunner().invoke(main, ["compare", str(a), str(c), "--match", "s"]).exit_code == 2


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"task": "own:q.jsonl"}, "share no task; the first has nq, the second own:q.jsonl"),
        ({"task": "websrc", "system": "t", "budget": 9}, "share no task; the first has nq, the second websrc"),
        ({"system": "t", "budget": 9}, "share no system; the first has s, the second t; --match pairs rows of"),
        ({"budget": 1024}, "share no budget; the first has 512, the second 1024"),
        ({"reader": "x"}, "share no reader; the first has none, the second x; --match pairs rows of different names"),
    ],
)
def test_runs_with_nothing_in_common_are_told_what_differs_first(make: Make, facts: dict[str, Any], said: str) -> None:
    a, b = make("a", drawn(1)), make("b", drawn(1), facts=facts)
    with pytest.raises(EvalError) as error:
        compare(a, b)
    assert said in str(error.value)
    assert ("--match" in str(error.value)) == ("--match" in said)


def test_runs_of_different_halves_are_told_so(make: Make) -> None:
    a = make("a", drawn(1), pages=KEYS[:3], half="dev")
    b = make("b", drawn(1), pages=KEYS[3:6], half="report")
    with pytest.raises(EvalError, match=r"share no half of a task \(nq: dev half and report half\)"):
        compare(a, b)


def test_rows_of_different_names_are_paired_on_request(make: Make) -> None:
    same = drawn(1)
    a = make("a", lambda question, system, budget: same(question, "s", budget) + (system == "t"), systems=("s", "t"))
    result = CliRunner().invoke(main, ["compare", str(a), str(a), "--match", "s=t", "--json"])
    (entry,) = json.loads(result.output)["differences"]
    assert entry["row"] == "s → t"
    assert entry["numbers"]["answer"]["b_minus_a"] == [1, 1, 1]


def test_differing_plans_and_versions_are_named(make: Make) -> None:
    a, b = make("a", drawn(1)), make("b", drawn(2), limit=40)
    store = Store(b)
    start = {**store.about()["starts"][0], "code": "0123456789ab"}
    start["versions"] = {**start["versions"], "numpy": "0.1"}
    store.note({"starts": [start]})
    store.close()
    text = table(compare(a, b))
    assert "plan: limit: none in A, 40 in B" in text
    assert "0.1 in B" in text and "0123456789ab in B" in text
    assert "nq, both halves: A, B, and B minus A" in text
