"""One job of a batch: read it from its JSON line, do it with `clean`, `prune` or `ask`, return one JSON record."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, cast

from ..api.answers import ask
from ..api.pages import check_format, clean, prune, read
from ..api.plain import answer_record, context_record
from ..core.errors import BadInput, NothingFound, PrunusError
from ..core.options import Options
from ..core.settings import Settings
from ..core.text.near import did_you_mean
from ..core.types import OutputFormat, Page
from ..pages.sources import Source
from ..pages.write.style import Style
from .rows import Row, digest_of

COMMANDS: Final = ("clean", "prune", "ask")

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


def job_row(number: int, line: bytes, first_lines: dict[bytes, int]) -> Row:
    """Return the row of a line of a file of jobs; a line that is no job has an error.

    :param first_lines: the line of each id so far, by key; this one is added.
    """
    name, error = _checked(line)
    if not error:
        first = first_lines.setdefault(key_of({"id": name}), number)
        error = f"line {first} has the id {name!r}, too" if first != number else ""
    id = "" if name is None else json.dumps(name)
    return Row(number, id=id, content=line, error=_flat(f"line {number}: {error}") if error else "")


def _checked(line: bytes) -> tuple[str | int | None, str]:
    """Return the id of a line where it has one, and why the line is no job; '' for a job."""
    try:
        job = json.loads(line)
    except RecursionError:
        return None, "nested too deep to be read"
    except ValueError as error:
        return None, f"not valid JSON ({error})"
    if not isinstance(job, dict):
        return None, "a job is one JSON object"
    name = job.get("id")
    if not isinstance(name, str | int) or isinstance(name, bool) or name == "":
        return None, "a job needs an id, text or a whole number"
    try:
        job_of(job)
    except BadInput as error:
        return name, str(error)
    return name, ""


def key_of(record: Mapping[str, Any]) -> bytes:
    """Return the key of a record, 16 bytes: from its id, or from number and digest of a line that is not a job."""
    identity = [record["line"], record["digest"]] if "digest" in record else record.get("id")
    return digest_of(json.dumps(identity, ensure_ascii=True, sort_keys=True).encode())


def job_of(line: Mapping[str, Any]) -> Job:
    """Return the job that a JSON object describes.

    :raises BadInput: a key is unknown or missing, or its value is of the wrong kind.
    """
    if "query" in line and "question" not in line:  # the name in older files
        line = {"question" if key == "query" else key: value for key, value in line.items()}
    unknown = sorted(set(line) - _KEYS)
    if unknown:
        hint = did_you_mean(unknown[0], _KEYS)
        raise BadInput(f"unknown key {unknown[0]!r}; the keys are: {', '.join(sorted(_KEYS))}{hint}")
    command = line.get("command")
    if command not in COMMANDS:
        hint = did_you_mean(str(command), COMMANDS)
        raise BadInput(f"command is {command!r}; it can be: {', '.join(COMMANDS)}{hint}")
    if command == "clean" and (wrong := sorted(set(line) & (_OPTIONS - _CLEANING))):
        raise BadInput(f"clean takes no {wrong[0]!r}; it takes: {', '.join(sorted(_CLEANING))}")
    pages = tuple(_pages(line))
    if command == "clean" and len(pages) != 1:
        raise BadInput("clean takes one page")
    question = line.get("question", "")
    if not isinstance(question, str) or (command != "clean" and not question.strip()):
        raise BadInput(f"{command} needs a question, as text")
    budget = line.get("budget", 0)
    if not isinstance(budget, int) or isinstance(budget, bool) or ("budget" in line and budget < 1):
        raise BadInput(f"budget is {budget!r}; it is a whole number of tokens above 0")
    form = line.get("format", "html")
    check_format(form)
    options = {name: _option(name, line[name]) for name in line if name in _OPTIONS}
    return Job(line["id"], command, pages, question, budget, form, options)


def _option(name: str, value: Any) -> Any:
    """Return an option's value after checking its type.

    :raises BadInput: the value is of the wrong type.
    """
    default = getattr(Options(), name)
    if type(value) is not type(default) or (name == "units" and value not in ("blocks", "leaves")):
        kind = "true or false" if isinstance(default, bool) else f"of type {type(default).__name__}"
        raise BadInput(f"{name} is {value!r}; it must be {kind}")
    return value


def _pages(line: Mapping[str, Any]) -> Iterator[Source]:
    """Yield the pages that the key ``page``, ``pages`` or ``html`` names.

    :raises BadInput: not exactly one of the keys is there, or its value is not text or a list of texts.
    """
    keys = [key for key in ("page", "pages", "html") if key in line]
    if len(keys) != 1:
        raise BadInput("give exactly one of: page, pages (paths or addresses), html")
    key, value = keys[0], line[keys[0]]
    pages = value if key == "pages" and isinstance(value, list) else [value]
    if not pages or not all(isinstance(page, str) and page for page in pages):
        raise BadInput("pages is not a list of texts" if key == "pages" else f"{key} is not text")
    for page in pages:
        yield Page(page) if key == "html" else page if _ADDRESS.match(page) else Path(page)


def job_record(row: Row, settings: Settings) -> dict[str, Any]:
    """Do the job of a row, and return its record; a bug's ``traceback`` is in it, for the user's eyes."""
    if row.error:
        return refused_job(row)
    job = json.loads(row.content or "")
    record: dict[str, Any] = {"id": job["id"], "line": row.record, "command": job["command"]}
    try:
        return record | _done(job_of(job), settings)
    except PrunusError as error:
        message = str(error) if isinstance(error, NothingFound) else _flat(str(error))
        return record | {"error": message, "code": error.exit_code}
    except Exception as error:  # a bug fails this job only; its traceback goes to stderr
        message = f"a bug: {type(error).__name__}: {_flat(str(error))}"
        return record | {"error": message, "code": 1, "traceback": traceback.format_exc()}


def refused_job(row: Row) -> dict[str, Any]:
    """Return the record of a line that is no job."""
    digest = digest_of(cast(bytes, row.content or b"")).hex()
    return _named(row) | {"digest": digest, "error": row.error, "code": 2}


def failed_job(row: Row, error: str, code: int) -> dict[str, Any]:
    """Return the record of a job that failed outside of the job itself."""
    return _named(row) | {"error": error, "code": code}


def _flat(text: str) -> str:
    return " ".join(text.split())


def _named(row: Row) -> dict[str, Any]:
    return {"id": json.loads(row.id) if row.id else None, "line": row.record}


def as_bytes(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line of JSON.

    :raises ValueError: it holds infinity or NaN.
    """
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def _done(job: Job, settings: Settings) -> dict[str, Any]:
    if job.command == "clean":
        style = Style(
            links=job.options.get("links", True),
            images=job.options.get("images", True),
            full=job.options.get("full", False) or job.options.get("pretty", False),
            pretty=job.options.get("pretty", False),
        )
        return {"format": job.format, "output": clean(job.pages[0], job.format, style)}
    options, budget = Options(**job.options), job.budget or settings.budget
    if job.command == "prune":
        documents = read(job.pages, settings=settings)
        context = prune(documents, job.question, budget, job.format, options, settings)
        return context_record(context, documents.trees, -1, context.seconds, {})
    answer = ask(job.question, job.pages, budget=budget, options=options, settings=settings)
    return answer_record(job.question, answer)
