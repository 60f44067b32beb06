"""The folder of a run: outcomes, questions, evidence, pages, and every reply of a reader, in one SQLite file.

Each is written in a transaction of its own: a run that is killed loses at most the question it was at. The file keeps
a log beside it while it is open (``run.sqlite-wal``); whoever opens it next takes the log in. Two processes may write
to one folder at the same time.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

from prunus_evals.errors import EvalError
from prunus_evals.metrics import Metric
from prunus_evals.records import Document, Outcome, Question, Reading, Stage

FILE = "run.sqlite"
FORM = 1
"""The form of the file; a file of another form is refused."""

PATIENCE = 30.0
"""Seconds that another process may keep the file to itself."""

_TABLES = """
create table if not exists about (name text primary key, value text not null);
create table if not exists outcomes (key text primary key, value text not null);
create table if not exists questions (key text primary key, value text not null);
create table if not exists texts (digest text primary key, value blob not null);
create table if not exists replies (key text primary key, value text not null);
create table if not exists asked (
    task text, plan text, key text, question text not null, run integer not null, primary key (task, plan, key)
);
"""


class Store:
    """Outcomes, evidence and replies of a run.

    :param folder: made where it is missing; None keeps everything in memory.
    :param make: whether a folder without a run becomes one; else it is refused.
    :raises EvalError: the folder cannot be used, or holds a file of another form.
    """

    def __init__(self, folder: Path | None, make: bool = True) -> None:
        place = ":memory:"
        if folder is not None and not make and not (folder / FILE).is_file():
            raise EvalError(f"{folder} is not the folder of a run: it has no {FILE}")
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise EvalError(f"{folder} cannot be made: {error.strerror}") from error
            place = str(folder / FILE)
        try:
            self._database = sqlite3.connect(place, isolation_level=None, timeout=PATIENCE)
            # a commit costs 0.02 ms instead of 8: the log is written at once, and brought to the disk now and then
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = normal")
            self._database.executescript(_TABLES)
            form = self.fact("form")
            if form is None:  # else nothing is written: the run may only be read, and another process may write to it
                self.note({"form": FORM})
        except sqlite3.Error as error:
            raise EvalError(f"{place} cannot be opened: {error}") from error
        self.place = place
        self._kept = folder is not None
        self._questions: set[str] = set()
        self._documents: tuple[Sequence[Document], str] | None = None
        self._question: tuple[Question, str] | None = None
        self._state = ""
        self._asking = "", "", 0
        if form not in (None, FORM):
            raise EvalError(f"{place} has form {form}, not {FORM}; take another folder")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def about(self) -> dict[str, Any]:
        """Return what was noted of the run: its plan, versions and times."""
        return {name: json.loads(value) for name, value in self._database.execute("select name, value from about")}

    def fact(self, name: str, default: Any = None) -> Any:
        """Return one thing that was noted of the run."""
        row = self._database.execute("select value from about where name = ?", (name,)).fetchone()
        return default if row is None else json.loads(row[0])

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from writing until the end, so that what is read, changed and noted loses nothing."""
        try:
            self._database.execute("begin immediate")
            yield
            self._database.execute("commit")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("rollback")
            raise

    def note(self, values: Mapping[str, Any]) -> None:
        """Note facts of the run, ready for JSON."""
        rows = [(name, json.dumps(value)) for name, value in values.items()]
        self._database.executemany("insert or replace into about values (?, ?)", rows)

    def note_state(self, state: str) -> None:
        """Note the state that outcomes are measured in now: those of another state are no longer shown."""
        if self._state != state:
            self.note({"state": state})
            self._state = state

    def key(
        self,
        question: Question,
        system: str,
        budget: int,
        reader: str,
        prompt: str,
        metrics: Sequence[Metric],
        state: str = "",
    ) -> str:
        """Return the key of an outcome: everything that it depends on.

        A changed field of the question or of a document is a new key, and so is a changed metric or prompt.

        :param system: its name, with the identity of its models; see :func:`.readers.made_of`.
        :param state: the digest of the code and its surroundings; see :func:`.provenance.state`.
        """
        facts = [self._question_digest(question), system, budget, reader, prompt, state]
        return _digest(json.dumps([*facts, [metric.name for metric in metrics]]))

    def _question_digest(self, question: Question) -> str:
        """Return the sha256 of all fields; that of the last question is kept, since many outcomes are about it."""
        if self._question is None or self._question[0] is not question:
            facts = {field.name: getattr(question, field.name) for field in fields(question)}
            facts["documents"] = self._documents_digest(question.documents)
            self._question = question, _digest(json.dumps(_plain(facts)))
        return self._question[1]

    def _documents_digest(self, documents: Sequence[Document]) -> str:
        """Return the sha256 of all fields; that of the last documents is kept, since many questions are about them."""
        if self._documents is None or self._documents[0] is not documents:
            digest = hashlib.sha256()
            for document in documents:
                for field in fields(document):
                    value = str(getattr(document, field.name)).encode("utf-8", "surrogatepass")
                    digest.update(f"{field.name} {len(value)} ".encode() + value)
            self._documents = documents, digest.hexdigest()
        return self._documents[1]

    @property
    def empty(self) -> bool:
        """Whether nothing was measured yet."""
        return self._database.execute("select 1 from outcomes limit 1").fetchone() is None

    @property
    def count(self) -> int:
        """How many outcomes are kept, those of older code, too."""
        return int(self._database.execute("select count(*) from outcomes").fetchone()[0])

    def outcome(self, key: str) -> Outcome | None:
        """Return a stored outcome; None where it is not measured yet."""
        row = self._database.execute("select value from outcomes where key = ?", (key,)).fetchone()
        return None if row is None else outcome_of(json.loads(row[0]))

    def outcomes(self) -> list[Outcome]:
        """Return the outcomes that the last run of each plan gave, in the order in which it gave them.

        What older code measured stays in the file, and is not mixed with what is measured now. So do questions that
        the data has no more, what was measured before a question was changed, and the answers of a model that is
        served no more.
        """
        state = self.fact("state")
        rows = self._database.execute("select key, value from outcomes order by rowid")
        found = {key: outcome_of(json.loads(value)) for key, value in rows}
        found = {key: one for key, one in found.items() if state in (None, one.state)}
        if self.fact("runs") is None:  # nothing tells what was asked last
            return list(found.values())
        shown: dict[str, Outcome] = {}
        now: dict[tuple[str, str], str] = {}  # the digest of each question as it was asked last
        for key, digest in self._database.execute("select key, question from asked order by run desc, rowid desc"):
            one = found.get(key)
            if one is not None and now.setdefault((one.task, one.question), digest) == digest:
                shown.setdefault(key, one)
        return list(shown.values())[::-1]

    @contextmanager
    def asking(self, task: str, plan: str) -> Iterator[None]:
        """Run a plan on a task: once it came to its end, only what it asked on the way is shown of it.

        Until then it may ask more, so that what its runs before asked is shown, too.
        """
        with self.alone():
            run = int(self.fact("runs", 0)) + 1
            self.note({"runs": run})
        self._asking = task, plan, run
        try:
            yield
            self._database.execute("delete from asked where task = ? and plan = ? and run < ?", (task, plan, run))
        finally:
            self._asking = "", "", 0

    def note_asked(self, key: str, question: Question) -> None:
        """Note that the outcome of a key is one of the plan that runs."""
        task, plan, run = self._asking
        row = (task or question.task, plan, key, self._question_digest(question), run)
        self._database.execute("insert or replace into asked values (?, ?, ?, ?, ?)", row)

    def keep(self, key: str, outcome: Outcome) -> None:
        """Store an outcome."""
        value = json.dumps(asdict(outcome))  # in ASCII: SQLite refuses lone surrogates, which replies may hold
        self._database.execute("insert or replace into outcomes (key, value) values (?, ?)", (key, value))

    def keep_question(self, question: Question) -> None:
        """Store a question with its documents, so that reports can show them without the data."""
        key = _question_key(question.task, question.id)
        if not self._kept or key in self._questions:
            return
        self._questions.add(key)
        digest = self._question_digest(question)
        row = self._database.execute("select value from questions where key = ?", (key,)).fetchone()
        if row is not None and json.loads(row[0]).get("digest") == digest:
            return
        facts: dict[str, Any] = {
            name: getattr(question, name) for name in ("page", "question", "answers", "kind", "references", "choices")
        }
        facts |= {"correct": question.correct, "tags": question.tags, "sentences": question.sentences, "digest": digest}
        facts["documents"] = [
            {"id": document.id, "media_type": document.media_type, "title": document.title, "url": document.url,
             "content": self.keep_text(document.content)}
            for document in question.documents
        ]  # fmt: skip
        value = json.dumps(facts)
        self._database.execute("insert or replace into questions values (?, ?)", (key, value))

    def question(self, task: str, question: str) -> dict[str, Any] | None:
        """Return a stored question: its fields by name, its documents with the sha256 of their contents."""
        key = _question_key(task, question)
        row = self._database.execute("select value from questions where key = ?", (key,)).fetchone()
        if row is None:
            return None
        facts: dict[str, Any] = json.loads(row[0])
        facts.pop("digest", None)
        return facts

    def keep_text(self, text: str) -> str:
        """Store the text of evidence or of a page, and return its sha256; '' where the run is kept in memory only."""
        if not self._kept:
            return ""
        digest = _digest(text)
        packed = zlib.compress(text.encode("utf-8", "replace"))
        self._database.execute("insert or ignore into texts values (?, ?)", (digest, packed))
        return digest

    def text(self, digest: str) -> str | None:
        """Return a stored text; None where there is none."""
        row = self._database.execute("select value from texts where digest = ?", (digest,)).fetchone()
        return None if row is None else zlib.decompress(row[0]).decode("utf-8")

    def reply(self, key: str) -> Reading | None:
        """Return a stored reply of a reader or a judge."""
        row = self._database.execute("select value from replies where key = ?", (key,)).fetchone()
        return None if row is None else Reading(**json.loads(row[0]))

    def keep_reply(self, key: str, reading: Reading) -> None:
        """Store a reply of a reader or a judge."""
        self._database.execute("insert or replace into replies values (?, ?)", (key, json.dumps(asdict(reading))))


@contextmanager
def opened(folder: Path | None, make: bool = False) -> Iterator[Store]:
    """Open the folder of a run, and close it at the end.

    :param make: see :class:`Store`.
    :raises EvalError: the folder is no run, or its file is damaged, locked or read-only.
    """
    store = Store(folder, make)
    try:
        yield store
    except sqlite3.Error as error:
        raise EvalError(f"{store.place} cannot be used: {error}; what was measured before is kept") from error
    finally:
        store.close()


def outcome_of(value: Mapping[str, Any]) -> Outcome:
    """Return the outcome of its JSON form."""
    reading = value.get("reading")
    stages = tuple(Stage(**stage) for stage in value.get("stages", ()))
    return Outcome(**{**value, "reading": Reading(**reading) if reading else None, "stages": stages})


def _plain(value: Any) -> Any:
    """Return a value as JSON takes it; an object is its fields by name, and a mapping is in the order of its keys."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key]) for key in sorted(value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value


def _question_key(task: str, question: str) -> str:
    return json.dumps([task, question])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
