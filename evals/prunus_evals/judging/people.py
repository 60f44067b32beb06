"""Pairs for people: a file to fill in, with the systems' names hidden, and the verdicts read back from it.

Pairs whose answers are equal are not in the file: they are ties.

A seed decides the order of the pairs and which answer comes first. An import needs the run, the systems and the seed of
the export, and nothing of the file but the columns ``pair`` and ``better``: a spreadsheet may change the others.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from prunus_evals.errors import DataMissing, EvalError
from prunus_evals.judging.judge import Compared, Verdict
from prunus_evals.judging.pairs import Pair

COLUMNS = ("pair", "question", "first", "second", "better", "comment")
WORDS = ("first", "second", "tie")
"""What people write in the column ``better``; nothing leaves a pair open."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would compute."""


def export(path: Path, pairs: Sequence[Pair], seed: int = 0) -> None:
    """Write the pairs that people must judge as CSV, or as JSON lines where the name ends with ``.jsonl``.

    :raises EvalError: the file exists, or cannot be written.
    """
    rows = []
    for pair in sorted((pair for pair in pairs if not pair.equal), key=lambda pair: _digest(pair, seed)):
        answers = pair.answers[::-1] if _turned(pair, seed) else pair.answers
        rows.append(dict(zip(COLUMNS, (_name(pair, seed), pair.question, *answers, "", ""), strict=True)))
    lines = _lines(rows) if _form(path) == "jsonl" else _table(rows)
    try:
        with path.open("x", encoding="utf-8", errors="replace", newline="") as file:
            file.write(lines)
    except FileExistsError as error:
        raise EvalError(f"{path} exists, and may be filled in; take another name") from error
    except OSError as error:
        raise EvalError(f"{path} cannot be written: {error.strerror}") from error


def load(path: Path, pairs: Sequence[Pair], seed: int = 0) -> list[Compared]:
    """Return the verdicts of a file that was filled in; a pair that is empty or not in the file is ``open``.

    A pair whose answers are equal is a ``tie``, whatever the file says.

    :raises DataMissing: there is no such file.
    :raises EvalError: it cannot be read, is not such a file, names a pair twice or one of another run, systems or seed,
        has an unknown verdict, or has none at all.
    """
    known = {_name(pair, seed): pair for pair in pairs}
    better: dict[str, str] = {}
    for number, row in _rows(path):
        name, word = (str(row.get(column) or "").strip() for column in ("pair", "better"))
        if name not in known:
            raise EvalError(f"{path}, row {number}: pair {name!r} is not of this run, these systems and seed {seed}")
        if name in better:
            raise EvalError(f"{path}, row {number}: pair {name} is there twice")
        if word and word.lower() not in WORDS:
            raise EvalError(f"{path}, row {number}: better must be one of {', '.join(WORDS)}, not {word!r}")
        better[name] = word.lower()
    if not any(better.values()) and not all(pair.equal for pair in pairs):
        raise EvalError(f"{path}: nothing is filled in; write {', '.join(WORDS)} in the column better")
    words = {name: "tie" if pair.equal else better.get(name, "") for name, pair in known.items()}
    return [Compared(pair, _verdict(words[name], _turned(pair, seed))) for name, pair in known.items()]


def _verdict(word: str, turned: bool) -> Verdict:
    if word in ("", "tie"):
        return "tie" if word else "open"
    return "win" if (word == "first") != turned else "lose"


def _digest(pair: Pair, seed: int) -> str:
    return hashlib.sha256(f"{seed} {pair.id}".encode()).hexdigest()


def _name(pair: Pair, seed: int) -> str:
    return "p" + _digest(pair, seed)[:12]  # a letter first, so that no spreadsheet takes it for a number


def _turned(pair: Pair, seed: int) -> bool:
    return _digest(pair, seed)[-1] in "13579bdf"


def _form(path: Path) -> Literal["csv", "jsonl"]:
    if path.suffix.lower() not in (".csv", ".jsonl"):
        raise EvalError(f"{path}: the name must end with .csv or .jsonl")
    return "csv" if path.suffix.lower() == ".csv" else "jsonl"


def _lines(rows: Sequence[dict[str, str]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _table(rows: Sequence[dict[str, str]]) -> str:
    """Return rows as CSV with a mark by which spreadsheets see UTF-8; no cell is a formula."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: f"'{cell}" if cell.startswith(_FORMULA) else cell for name, cell in row.items()})
    return f"\ufeff{file.getvalue()}"


def _rows(path: Path) -> list[tuple[int, dict[str, object]]]:
    """Return the rows of a file with their numbers, from 1."""
    form = _form(path)
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise DataMissing(f"{path} is not there") from error
    except (OSError, UnicodeDecodeError) as error:
        raise EvalError(f"{path} cannot be read as UTF-8: {error}") from error
    return _read_lines(path, text) if form == "jsonl" else _read_table(path, text)


def _read_lines(path: Path, text: str) -> list[tuple[int, dict[str, object]]]:
    found: list[tuple[int, dict[str, object]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise EvalError(f"{path}, row {number}: not JSON ({error})") from error
            if not isinstance(row, dict):
                raise EvalError(f"{path}, row {number}: must be a JSON object")
            found.append((number, row))
    return found


def _read_table(path: Path, text: str) -> list[tuple[int, dict[str, object]]]:
    """Read CSV; a spreadsheet may have written semicolons instead of commas."""
    head = text.partition("\n")[0]
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=";" if ";" in head else ",")
        found = [(number, dict(row)) for number, row in enumerate(reader, 1)]
    except csv.Error as error:
        raise EvalError(f"{path} is not CSV: {error}") from error
    missing = [name for name in ("pair", "better") if name not in (reader.fieldnames or ())]
    if missing:
        raise EvalError(f"{path} has no column {missing[0]}")
    return [(number, {str(name): cell for name, cell in row.items()}) for number, row in found]
