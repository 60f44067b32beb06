"""What a batch does with each page: one function from a row to a record, with engines that are made once."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from ..api.answers import stream
from ..api.cutting import Cutting, pack
from ..api.documents import absolute, document_of
from ..api.pages import Pruner, check_format, read, read_each
from ..core.errors import BadEngine, BadInput, BadPage, NothingFound, OutsideFailed, PrunusError, one_line
from ..core.events import answer_of
from ..core.options import Options
from ..core.settings import Settings, load_settings
from ..core.sync import run
from ..core.text.near import did_you_mean
from ..core.types import OutputFormat, Page
from ..core.worker_pool import Lost
from ..engines import SharedEngines, formats
from ..pages.read import snapshot_of
from ..pages.sources import Source, as_page
from ..pages.write.selection import main_part
from ..pages.write.style import CLEAN
from ..pages.write.whole import write_tree
from .jobs import failed_job, job_record
from .remote import Remote, is_remote
from .rows import Row

Record: TypeAlias = dict[str, Any]

Do: TypeAlias = Literal["clean", "prune", "ask", "index", "jobs"]
ACTIONS: Final = ("clean", "prune", "ask", "index")
"""What can be done with every page."""
FAILURES: Final[Mapping[str, str]] = {
    "page": "the page cannot be read, or shows no text",
    "large": "the page is over the limit of size",
    "source": "the file ends or is damaged here; nothing after it was read",
    "outside": "a service or an address did not answer",
    "hang": "the page took too long, twice",
    "crash": "the process died at this page, twice",
    "memory": "the page needs more memory than there is",
    "bug": "a bug of Prunus or of an engine",
}
"""The kinds of failure of a page, with their meaning."""

CITED: Final = ("number", "url", "title", "quote", "xpath", "found", "support")
"""What a record says of each citation."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is done with each page.

    :param do: one of :data:`ACTIONS`; ``jobs`` where each row says itself what is done.
    :param question: the question of ``prune`` and ``ask``, for the pages that bring none.
    :param budget: tokens of evidence; 0: that of the settings.
    :param format: of the output of ``clean`` and ``prune``.
    :param main: ``clean`` keeps only the page's own content.
    :param options: engines and other choices of ``prune`` and ``ask``.
    :param cutting: for ``index``, how documents of that index are cut.
    """

    do: Do = "clean"
    question: str = ""
    budget: int = 0
    format: OutputFormat = "html"
    main: bool = False
    options: Options = field(default_factory=Options)
    cutting: Cutting | None = None

    def __post_init__(self) -> None:
        """Check the choices that do not depend on a page.

        :raises BadInput: a choice does not exist.
        """
        if self.do not in get_args(Do):
            hint = did_you_mean(str(self.do), ACTIONS)
            raise BadInput(f"{self.do!r} cannot be done; it can be: {', '.join(ACTIONS)}{hint}", subject=str(self.do))
        if self.do == "index" and self.cutting is None:
            raise BadInput("the action index needs an index; see prunus.batch.into_index", subject="index")
        check_format(self.format)
        if self.budget < 0:
            raise BadInput(f"budget is {self.budget}; it is a whole number of tokens above 0", subject="budget")

    def identity(self, settings: Settings) -> dict[str, Any]:
        """Return as plain data what the records depend on, so that a later run can be compared.

        :raises BadInput: an engine is an object, which has no name.
        """
        options = asdict(self.options)
        options.pop("trace")
        if odd := [
            name for name, value in options.items() if not isinstance(value, str | int | float | bool | dict | None)
        ]:
            raise BadInput(f"{odd[0]}: a batch names its engines, as 'bm25' or 'file.py:Class'", subject=odd[0])
        kinds = ("scorer", "second_scorer", "embedder", "reranker", "llm", "tokenizer", "extractor", "generator")
        engines = {kind: options[kind] or getattr(settings, kind) for kind in kinds} if self.do != "clean" else {}
        budget = self.budget or settings.budget
        return {"do": self.do, "question": self.question, "format": self.format, "main": self.main} | (
            {} if self.do == "clean" else {"budget": budget, "engines": engines, "options": options}
        )


class Work:
    """Does the task of a batch with one page after the other; its engines are made once.

    :param settings: by default those of ``prunus.toml`` and the environment.
    :raises BadInput: an engine's spec is unknown, or the engine lacks a package or a setting.
    """

    def __init__(self, task: Task, settings: Settings | None = None) -> None:
        self.task, self.settings = task, settings or load_settings()
        self._pruner = Pruner(task.options, self.settings) if task.do in ("prune", "ask") else None
        self._cutter = task.cutting.cutter() if task.cutting is not None else None
        self._shared = SharedEngines()

    def record(self, row: Row) -> Record:
        """Return the record of a row; whatever fails at the page is in its ``error`` and ``kind``."""
        if self.task.do == "jobs":
            return job_record(row, self.settings)
        made = row.named() | {"status": "done"}
        if row.error:
            return made | failed(row.error, row.kind)
        try:
            return made | self._done(row)
        except NothingFound as error:
            return made | {"status": "nothing found", "error": one_line(str(error), longest=500)}
        except OutsideFailed as error:
            return made | failed(str(error), "outside")
        except PrunusError as error:
            return made | failed(str(error), _kind(error))
        except MemoryError:
            return made | failed("this page needs more memory than there is", "memory")
        except Exception as error:  # a bug fails this page only; the record says where it is
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            return made | failed(f"a bug: {type(error).__name__}: {error} ({where})", "bug")

    def _done(self, row: Row) -> dict[str, Any]:
        page = self._page(row)
        if self.task.do == "clean":
            [tree] = read_each([page], self.settings, self.task.main)
            if isinstance(tree, PrunusError):
                raise tree
            output = write_tree(tree, self.task.format, CLEAN, main_part(tree))
            sure = {"main_confidence": round(tree.main_confidence, 3)} if tree.main_confidence is not None else {}
            return {"title": tree.title, "output": output, **sure, "warnings": list(tree.warnings)}
        if self._cutter is not None:
            content = as_page(page, self.settings.max_file_mb)
            [cut] = self._cutter.cut_each([document_of(document_id(row), content, formats(self.settings).to_html)])
            document, leaves, _ = cut
            return {"title": document.title, "document": pack(cut), "chunks": len(leaves)}
        question = row.question or self.task.question
        if not question.strip():
            raise BadInput(f"{row.url or row.path or 'page'}: no question for this page, and none for all")
        documents = read([page], settings=self.settings)
        title = documents.trees[0].title
        questioned = {"title": title, "question": question}
        if self._pruner is not None and self.task.do == "prune":
            context = self._pruner.prune(documents, question, self.task.budget or None, self.task.format)
            return questioned | {"output": context.output, "tokens": context.tokens, "warnings": list(context.warnings)}
        budget = self.task.budget or None
        choices: Any = {"budget": budget, "options": self.task.options, "settings": self.settings}
        answer = run(lambda: answer_of(stream(question, documents, choices, shared=self._shared)))
        return questioned | {
            "output": answer.text,
            "citations": [{name: getattr(citation, name) for name in CITED} for citation in answer.citations],
            "unsupported": list(answer.unsupported),
            "warnings": list(answer.warnings),
        }

    def _page(self, row: Row) -> Source:
        if row.path:
            return page_at(row.path, self.settings)
        if row.fetch:
            return row.url
        return Page(row.content or "", row.url, media_type=row.media_type, charset=row.charset)


def lost_record(task: Task, row: Row, lost: Lost, seconds: float) -> Record:
    """Return the record of a row that killed or hung its process.

    :param seconds: time that a row had.
    """
    noun = "job" if task.do == "jobs" else "page"
    hung = lost.code is None
    reason = f"this {noun} took more than {seconds:g} seconds" if hung else f"the process died at this {noun}"
    error = f"{reason}, in {lost.tries} tries"
    if task.do == "jobs":
        return failed_job(row, error, OutsideFailed.exit_code)
    return row.named() | failed(error, "hang" if hung else "crash")


def page_at(path: str, settings: Settings) -> Source:
    """Return the document at a path or an address.

    :raises BadPage: the file behind an address cannot be read, or is too large.
    """
    if not is_remote(path):
        return Path(path)
    most = settings.max_file_mb << 20
    try:
        content = Remote.of(path).read(most + 1)
    except OSError as error:
        raise BadPage(f"{path}: cannot be read ({error.strerror or error})", subject=path) from error
    if len(content) > most:
        raise BadPage(f"{path}: over the limit of {settings.max_file_mb} MiB", subject=path)
    return Page(content, path)


def document_id(row: Row) -> str:
    """Return the id of a page in an index: its address, the absolute path of its file, its ``id``, or its digest."""
    if row.url:
        return row.url
    if row.path:
        return row.path if is_remote(row.path) else absolute(Path(row.path))
    return row.id or snapshot_of(row.content or "")


def failed(error: str, kind: str) -> dict[str, Any]:
    """Return what a record says of a failure.

    :param kind: one of :data:`FAILURES`.
    """
    return {"status": "failed", "error": one_line(error, longest=500), "kind": kind}


def _kind(error: PrunusError) -> str:
    """Return the kind of failure that an error of a page stands for."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return "memory"
        cause = cause.__cause__
    if isinstance(error, BadEngine) or "fails by a bug" in str(error):
        return "bug"
    return "large" if "over the limit of" in str(error) else "page"
