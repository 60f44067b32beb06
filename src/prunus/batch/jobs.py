"""One job of a batch: read from its line, done through the public door, written as one record."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, Final, get_args

from ..api.answers import ask
from ..api.pages import clean, prune
from ..api.plain import answer_record, context_record
from ..core.errors import BadInput, NothingFound, PrunusError
from ..core.options import Options
from ..core.types import Format
from ..pages.sources import Source
from ..pages.write.style import Style
from .ledger import digest_of, key_of

COMMANDS: Final = ("clean", "prune", "ask")
MAX_LINE: Final = 96 << 20
"""Bytes of a line: a page of the largest size that is read, written as JSON."""

_OPTIONS: Final = {field.name for field in fields(Options)} - {"limits"}
_CLEANING: Final = frozenset({"links", "images", "full", "pretty"})
_KEYS: Final = frozenset({"id", "command", "page", "pages", "html", "query", "budget", "format"}) | _OPTIONS
_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to do.

    :param budget: tokens of evidence; 0 leaves it to the settings.
    """

    id: str | int
    command: str
    pages: tuple[Source, ...]
    query: str
    budget: int
    format: Format
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobLine:
    """A line of the file of jobs, read as far as it can be.

    :param key: what the ledger knows it by.
    :param error: why it is no job, '' when it is one.
    """

    number: int
    text: bytes
    key: bytes
    id: str | int | None
    error: str = ""

    def refused(self) -> dict[str, Any]:
        """Return the record of a line that is no job."""
        return {
            "id": self.id,
            "line": self.number,
            "digest": digest_of(self.text).hex(),
            "error": self.error,
            "code": 2,
        }


def each_line(file: BinaryIO) -> Iterator[JobLine]:
    """Yield the lines that hold something, one at a time; an id that was there before is an error."""
    taken: dict[bytes, int] = {}
    number = 0
    while text := file.readline(MAX_LINE + 1):
        number += 1
        if len(text) > MAX_LINE and not text.endswith(b"\n"):
            while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            yield _refused(number, text[:1000], None, f"line {number}: longer than {MAX_LINE >> 20} MiB")
            continue
        text = text.strip()
        if not text:
            continue
        line = _read(number, text)
        if not line.error:
            first = taken.setdefault(line.key, number)
            if first != number:
                line = _refused(number, text, line.id, f"line {number}: the id {line.id!r} is that of line {first}")
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
    """Return a job of its JSON object.

    :raises BadInput: a key is unknown, missing, or holds what it cannot hold.
    """
    unknown = sorted(set(found) - _KEYS)
    if unknown:
        raise BadInput(f"unknown key {unknown[0]!r}; there are: {', '.join(sorted(_KEYS))}")
    command = found.get("command")
    if command not in COMMANDS:
        raise BadInput(f"command is {command!r}; there are: {', '.join(COMMANDS)}")
    if command == "clean" and (wrong := sorted(set(found) & (_OPTIONS - _CLEANING))):
        raise BadInput(f"clean takes no {wrong[0]!r}; it takes: {', '.join(sorted(_CLEANING))}")
    pages = tuple(_pages(found))
    if command == "clean" and len(pages) != 1:
        raise BadInput("clean takes one page")
    query = found.get("query", "")
    if not isinstance(query, str) or (command != "clean" and not query.strip()):
        raise BadInput(f"{command} needs a query, which is text")
    budget = found.get("budget", 0)
    if not isinstance(budget, int) or isinstance(budget, bool) or ("budget" in found and budget < 1):
        raise BadInput(f"budget is {budget!r}; it is a whole number of tokens above 0")
    form = found.get("format", "html")
    if form not in get_args(Format):
        raise BadInput(f"format is {form!r}; there are: {', '.join(get_args(Format))}")
    options = {name: _option(name, found[name]) for name in found if name in _OPTIONS}
    return Job(found["id"], command, pages, query, budget, form, options)


def _option(name: str, value: Any) -> Any:
    """Return the value of an option.

    :raises BadInput: it is of the wrong kind.
    """
    default = getattr(Options(), name)
    if type(value) is not type(default) or (name == "units" and value not in ("blocks", "leaves")):
        raise BadInput(f"{name} is {value!r}; it is {'true or false' if default is False else type(default).__name__}")
    return value


def _pages(found: Mapping[str, Any]) -> Iterator[Source]:
    """Yield what ``page``, ``pages`` and ``html`` name.

    :raises BadInput: they name nothing, or what is no page.
    """
    named = [key for key in ("page", "pages", "html") if key in found]
    if len(named) != 1:
        raise BadInput("give one of: page, pages (paths or addresses), html")
    value = found[named[0]]
    given = value if named[0] == "pages" and isinstance(value, list) else [value]
    if not given or not all(isinstance(one, str) and one for one in given):
        raise BadInput(f"{named[0]} is not text" if named[0] != "pages" else "pages is not a list of text")
    for one in given:
        yield one if named[0] == "html" or _ADDRESS.match(one) else Path(one)


def answer(text: bytes, number: int, budget: int) -> tuple[bytes, bool, str]:
    """Do the job of a line.

    :param budget: tokens of evidence where the job names none.
    :returns: its record as JSON, whether it failed, and the traceback of a bug.
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
    except Exception as error:  # a bug: this job's alone, and its traceback goes to whoever can mend it
        bug = traceback.format_exc()
        record |= {"error": f"a bug: {type(error).__name__}: {' '.join(str(error).split())}", "code": 1}
    try:
        written = as_bytes(record)
    except ValueError:  # numbers that JSON does not have: a foreign scorer gave them
        record = {"id": found["id"], "line": number, "error": "the scores of this job are no numbers", "code": 1}
        written = as_bytes(record)
    return written, "error" in record, bug


def as_bytes(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line of JSON.

    :raises ValueError: it holds a number that JSON does not have.
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
        context = prune(job.pages, job.query, job.budget or budget, job.format, options)
        return context_record(context, -1, context.seconds, {})
    found = ask(job.query, job.pages, budget=job.budget or budget, options=options)
    return answer_record(job.query, found)
