"""One job of a batch: read it from its JSON line, do it with `clean`, `prune` or `ask`, return one JSON record."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, Final, get_args

from ..api.answers import ask
from ..api.pages import clean, prune, read
from ..api.plain import answer_record, context_record
from ..core.errors import BadInput, NothingFound, PrunusError
from ..core.options import Options
from ..core.text.near import did_you_mean
from ..core.types import OutputFormat, Page
from ..pages.sources import Source
from ..pages.write.style import Style
from .ledger import Fate, digest_of, fate_of, key_of

COMMANDS: Final = ("clean", "prune", "ask")
MAX_LINE: Final = 96 << 20
"""Bytes of a line at most: room for the largest page that is read, escaped as JSON."""

_OPTIONS: Final = {field.name for field in fields(Options)} - {"limits"}
_CLEANING: Final = frozenset({"links", "images", "full", "pretty"})
_KEYS: Final = frozenset({"id", "command", "page", "pages", "html", "question", "budget", "format"}) | _OPTIONS
_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    :param command: ``clean``, ``prune`` or ``ask``.
    :param budget: tokens of evidence; 0: that of the settings.
    :param options: fields of :class:`Options`; for ``clean`` those of :class:`Style`.
    """

    id: str | int
    command: str
    pages: tuple[Source, ...]
    question: str
    budget: int
    format: OutputFormat
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobLine:
    """A line of the file of jobs.

    :param number: line number, from 1.
    :param key: the line's key in the ledger, see :func:`.ledger.key_of`.
    :param id: the job's id; None where the line has none.
    :param error: why the line is not a job; '' for a job.
    """

    number: int
    text: bytes
    key: bytes
    id: str | int | None
    error: str = ""

    def refused(self) -> dict[str, Any]:
        """Return the record of a line that is not a job."""
        return {
            "id": self.id,
            "line": self.number,
            "digest": digest_of(self.text).hex(),
            "error": self.error,
            "code": 2,
        }


def each_line(file: BinaryIO) -> Iterator[JobLine]:
    """Yield the lines that are not empty; a line that repeats an earlier id gets an error."""
    first_lines: dict[bytes, int] = {}
    number = 0
    while text := file.readline(MAX_LINE + 1):
        number += 1
        if len(text) > MAX_LINE and not text.endswith(b"\n"):
            while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):  # skip it in bounded memory
                pass
            yield _refused(number, text[:1000], None, f"line {number}: longer than {MAX_LINE >> 20} MiB")
            continue
        text = text.strip()
        if not text:
            continue
        line = _read(number, text)
        if not line.error:
            first = first_lines.setdefault(line.key, number)
            if first != number:
                line = _refused(number, text, line.id, f"line {number}: line {first} has the id {line.id!r}, too")
        yield line


def _read(number: int, text: bytes) -> JobLine:
    try:
        found = json.loads(text)
    except RecursionError:
        return _refused(number, text, None, f"line {number}: nested too deep to be read")
    except ValueError as error:
        return _refused(number, text, None, f"line {number}: not valid JSON ({error})")
    if not isinstance(found, dict):
        return _refused(number, text, None, f"line {number}: a job is one JSON object")
    name = found.get("id")
    if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
        return _refused(number, text, None, f"line {number}: a job needs an id, text or a whole number")
    try:
        job_of(found)
    except BadInput as error:
        return _refused(number, text, name, f"line {number}: {error}")
    return JobLine(number, text, key_of({"id": name}), name)


def _refused(number: int, text: bytes, name: str | int | None, error: str) -> JobLine:
    key = key_of({"line": number, "digest": digest_of(text).hex()})
    return JobLine(number, text, key, name, " ".join(error.split()))


def job_of(found: Mapping[str, Any]) -> Job:
    """Return the job that a JSON object describes.

    :raises BadInput: a key is unknown or missing, or its value is of the wrong kind.
    """
    if "query" in found and "question" not in found:  # the name in older files
        found = {"question" if key == "query" else key: value for key, value in found.items()}
    unknown = sorted(set(found) - _KEYS)
    if unknown:
        hint = did_you_mean(unknown[0], _KEYS)
        raise BadInput(f"unknown key {unknown[0]!r}; the keys are: {', '.join(sorted(_KEYS))}{hint}")
    command = found.get("command")
    if command not in COMMANDS:
        hint = did_you_mean(str(command), COMMANDS)
        raise BadInput(f"command is {command!r}; it can be: {', '.join(COMMANDS)}{hint}")
    if command == "clean" and (wrong := sorted(set(found) & (_OPTIONS - _CLEANING))):
        raise BadInput(f"clean takes no {wrong[0]!r}; it takes: {', '.join(sorted(_CLEANING))}")
    pages = tuple(_pages(found))
    if command == "clean" and len(pages) != 1:
        raise BadInput("clean takes one page")
    question = found.get("question", "")
    if not isinstance(question, str) or (command != "clean" and not question.strip()):
        raise BadInput(f"{command} needs a question, as text")
    budget = found.get("budget", 0)
    if not isinstance(budget, int) or isinstance(budget, bool) or ("budget" in found and budget < 1):
        raise BadInput(f"budget is {budget!r}; it is a whole number of tokens above 0")
    form = found.get("format", "html")
    if form not in get_args(OutputFormat):
        hint = did_you_mean(str(form), get_args(OutputFormat))
        raise BadInput(f"format is {form!r}; it can be: {', '.join(get_args(OutputFormat))}{hint}")
    options = {name: _option(name, found[name]) for name in found if name in _OPTIONS}
    return Job(found["id"], command, pages, question, budget, form, options)


def _option(name: str, value: Any) -> Any:
    """Return an option's value after checking its type.

    :raises BadInput: the value is of the wrong type.
    """
    default = getattr(Options(), name)
    if type(value) is not type(default) or (name == "units" and value not in ("blocks", "leaves")):
        kind = "true or false" if isinstance(default, bool) else f"of type {type(default).__name__}"
        raise BadInput(f"{name} is {value!r}; it must be {kind}")
    return value


def _pages(found: Mapping[str, Any]) -> Iterator[Source]:
    """Yield the pages that the key ``page``, ``pages`` or ``html`` names.

    :raises BadInput: not exactly one of the keys is there, or its value is not text or a list of texts.
    """
    keys = [key for key in ("page", "pages", "html") if key in found]
    if len(keys) != 1:
        raise BadInput("give exactly one of: page, pages (paths or addresses), html")
    key, value = keys[0], found[keys[0]]
    pages = value if key == "pages" and isinstance(value, list) else [value]
    if not pages or not all(isinstance(page, str) and page for page in pages):
        raise BadInput("pages is not a list of texts" if key == "pages" else f"{key} is not text")
    for page in pages:
        yield Page(page) if key == "html" else page if _ADDRESS.match(page) else Path(page)


def answer(text: bytes, number: int, budget: int) -> tuple[bytes, Fate, str]:
    """Do the job of a line.

    :param text: the line, already checked by :func:`each_line`.
    :param number: its line number.
    :param budget: tokens of evidence where the job sets none.
    :returns: its record as JSON, how the job ended, and the traceback of a bug or ''.
    """
    found = json.loads(text)
    record: dict[str, Any] = {"id": found["id"], "line": number, "command": found["command"]}
    bug = ""
    try:
        record |= _done(job_of(found), budget)
    except NothingFound as error:
        record |= {"error": str(error), "code": error.exit_code}
    except PrunusError as error:
        record |= {"error": " ".join(str(error).split()), "code": error.exit_code}
    except Exception as error:  # a bug fails this job only; its traceback goes to stderr
        bug = traceback.format_exc()
        record |= {"error": f"a bug: {type(error).__name__}: {' '.join(str(error).split())}", "code": 1}
    try:
        written = as_bytes(record)
    except ValueError:  # a foreign scorer returned infinities or NaN, which JSON cannot hold
        record = {"id": found["id"], "line": number, "error": "the scores of this job are not finite", "code": 1}
        written = as_bytes(record)
    return written, fate_of(record), bug


def as_bytes(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line of JSON.

    :raises ValueError: it holds infinity or NaN.
    """
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def _done(job: Job, budget: int) -> dict[str, Any]:
    if job.command == "clean":
        style = Style(
            links=job.options.get("links", True),
            images=job.options.get("images", True),
            full=job.options.get("full", False) or job.options.get("pretty", False),
            pretty=job.options.get("pretty", False),
        )
        return {"format": job.format, "output": clean(job.pages[0], job.format, style)}
    options = Options(**job.options)
    if job.command == "prune":
        documents = read(job.pages)
        context = prune(documents, job.question, job.budget or budget, job.format, options)
        return context_record(context, documents.trees, -1, context.seconds, {})
    found = ask(job.question, job.pages, budget=job.budget or budget, options=options)
    return answer_record(job.question, found)
