"""Your own pages and questions: ``own:FILE``, JSON lines with one question each.

============== =======================================================================================================
``question``   the question
``pages``      where its evidence is: paths of files or folders, relative to FILE; or objects with one of ``file``,
               ``html`` and ``text``, and any of ``url``, ``title`` and ``snippet``, in the order of a search
``answers``    short answers, all of which are wanted; a list in place of an answer holds its spellings
``references`` long answers; a response is compared with the best of them
``evidence``   passages of the pages, as a person reads them, that hold the answer
``labels``     groups of questions that reports show apart: ``{"topic": "prices"}``; ``{"page": "wrong"}`` marks a
               question whose pages do not answer it: no quote is the right answer
``id``         a name of the question that nothing else in the file has; by default the digest of question and pages
============== =======================================================================================================

Only ``question`` and ``pages`` are required. Files are HTML, text or Markdown; nothing is fetched. A question whose
answers do not all stand in the visible text of its pages is asked all the same, and so is one that holds an answer
itself: the label ``answer in pages`` tells them apart. Questions with the same pages are drawn together by the
bootstrap. All of them are measured (``--half all``), because Prunus was never tuned on them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from prunus.core.errors import PrunusError
from prunus.core.text.near import did_you_mean
from prunus.pages.clean.parse import decode, is_binary, source_text
from prunus.pages.sources import is_address, is_folder, pages_of, read_file
from prunus_evals.data import Lines, Row
from prunus_evals.errors import DataMissing
from prunus_evals.metrics.evidence import runs
from prunus_evals.metrics.matching import any_spelling_occurs, normalise
from prunus_evals.records import Document, OutputFormat, Question
from prunus_evals.split import digest
from prunus_evals.tasks.task import Page, Use, task
from prunus_evals.visible import visible_text

FIELDS = ("question", "pages", "answers", "references", "evidence", "labels", "id")
CONTENTS = ("file", "html", "text")
PAGE_FIELDS = (*CONTENTS, "url", "title", "snippet")
MEDIA = dict.fromkeys((".html", ".htm", ".xhtml"), "text/html")
MEDIA |= dict.fromkeys((".txt", ".text"), "text/plain") | dict.fromkeys((".md", ".markdown"), "text/markdown")
FORMATS: dict[str, OutputFormat] = {"text/html": "html", "text/plain": "text", "text/markdown": "markdown"}
INSIDE = "answer in pages"
"""The label that tells whether the answers stand in the pages: ``yes``, ``no`` or ``in the question``."""
MOST = 1000
"""Files of a folder at most."""


def check(variant: str) -> Iterator[Question]:
    """Yield every question of the file without its labels, so that what is wrong is known before anything is run.

    :raises DataMissing: no file is named, it cannot be read, or it has no question.
    :raises DataWrong: a line of it is wrong; the message names it.
    """
    lines, groups = _groups(variant)
    for key, places in groups.items():
        yield from _read(lines, key, places, labelled=False)


@task(
    "own",
    title="your own pages and questions, in a file of JSON lines",
    metrics=("answer", "gold_recall_4grams", "em_share", "token_f1", "rouge_l", "quote_any"),
    files=(),
    source="you: see “Measure on your own pages” in docs/evaluation.md",
    half="all",
    path="FILE",
    check=check,
    by_page=True,
)
def own_questions(use: Use, variant: str) -> Iterator[Page]:
    """Yield the keys of lists of pages for which ``use`` is true, each with a function that reads its questions."""
    lines, groups = _groups(variant)
    for key, places in groups.items():
        if use(key):
            yield key, partial(_read, lines, key, places)


def _groups(variant: str) -> tuple[Lines, dict[str, list[tuple[int, str]]]]:
    """Return the lines of a file, and the places of its questions by their pages."""
    if not variant:
        raise DataMissing("own needs a file of questions, one JSON object a line: own:questions.jsonl")
    lines = Lines(Path(variant))
    groups: dict[str, list[tuple[int, str]]] = {}
    seen: dict[str, str] = {}
    for offset, row in lines:
        _known(row, FIELDS)
        key = _key(row)
        name = _id(row, key)
        if name in seen:
            raise row.wrong(f"the same question or 'id' as in {seen[name]}; give each an 'id' of its own")
        seen[name] = row.place.rpartition(", ")[2]
        groups.setdefault(key, []).append((offset, row.place))
    if not groups:
        raise DataMissing(f"{variant} has no question")
    return lines, groups


def _known(row: Row, fields: Sequence[str]) -> None:
    for name in row:
        if name not in fields:
            near = did_you_mean(name, fields)
            raise row.wrong(f"unknown field {name!r}{near or '; the fields are: ' + ', '.join(fields)}")


def _key(row: Row) -> str:
    """Return the key of the pages of a question: the path of the only one, else the first and a digest of all.

    The order, titles, snippets and spellings of paths do not count: pages that are the same belong to one half, and are
    drawn together.
    """
    listed = row.items_of("pages")
    if not listed:
        raise row.wrong("'pages' is empty: name at least one page")
    first, *others = sorted({_name(row, one) for one in listed})
    if not others:
        return first
    return f"{first} and {len(others)} more ({digest(chr(0).join((first, *others)))[:12]})"


def _name(row: Row, one: Any) -> str:
    """Return what makes a page the same as another: the path of its file, else its address and content."""
    if isinstance(one, str):
        return posixpath.normpath(Row(row.place, {"pages": one}).text("pages"))
    if not isinstance(one, Row):
        raise row.wrong("'pages' must be a list of paths and objects")
    if "file" in one:
        return posixpath.normpath(one.text("file"))
    content = next((one.text(name) for name in CONTENTS if name in one), "")
    return f"{one.text('url') if 'url' in one else 'a page of the file'} ({digest(content)[:12]})"


def _id(row: Row, key: str) -> str:
    return row.name("id") if "id" in row else digest(f"{row.text('question')}\0{key}")[:12]


def _read(lines: Lines, key: str, places: Sequence[tuple[int, str]], labelled: bool = True) -> list[Question]:
    """Return the questions about the same pages, which are read once for each way to list them.

    :param labelled: look for the answers in the pages.
    """
    held: dict[str, _Pages] = {}
    found = []
    for offset, place in places:
        row = lines.at(offset, place)
        listed = repr(row["pages"])  # their order, titles and snippets
        read = held.get(listed) or _Pages(tuple(_documents(row, lines.path.parent)))
        held[listed] = read
        question = _question(row, f"own:{lines.path}", key, read)
        if labelled and question.answers:
            question = replace(question, labels={**question.labels, INSIDE: _inside(question, read.visible)})
        found.append(question)
    return found


class _Pages:
    """The pages of a question."""

    def __init__(self, documents: tuple[Document, ...]) -> None:
        self.documents = documents

    @cached_property
    def visible(self) -> str:
        """What a person sees of them."""
        return "\n".join(visible_text(one.content, FORMATS[one.media_type]) for one in self.documents)


def _question(row: Row, task: str, key: str, read: _Pages) -> Question:
    spellings = [_spellings(row, answer) for answer in row.items_of("answers")] if "answers" in row else []
    references, evidence = _texts(row, "references"), _texts(row, "evidence")
    asked = row.text("question")
    if not asked.strip():
        raise row.wrong("'question' is empty")
    for passage in evidence:
        if not runs(passage) <= runs(read.visible):
            raise row.wrong(f"the evidence {passage[:60]!r} stands in none of its pages; copy it as a browser shows it")
    return Question(
        id=_id(row, key),
        task=task,
        page=key,
        documents=read.documents,
        question=asked,
        answers=tuple(first for first, *_ in spellings),
        aliases={first: tuple(others) for first, *others in spellings if others},
        kind="short" if spellings and not references else "long",
        references=references,
        evidence=evidence,
        labels=_labels(row),
    )


def _inside(question: Question, visible: str) -> str:
    """Return whether all answers stand in what is seen of the pages, or one in the question."""
    asked, seen = normalise(question.question), normalise(visible)
    spellings = [question.spellings(answer) for answer in question.answers]
    if any(any_spelling_occurs(one, asked) for one in spellings):
        return "in the question"
    return "yes" if all(any_spelling_occurs(one, seen) for one in spellings) else "no"


def _spellings(row: Row, answer: Any) -> tuple[str, ...]:
    return _texts(Row(row.place, {"answers": answer if isinstance(answer, list) else [answer]}), "answers", least=1)


def _texts(row: Row, name: str, least: int = 0) -> tuple[str, ...]:
    found = row.texts(name) if name in row else ()
    if len(found) < least or not all(text.strip() for text in found):
        raise row.wrong(f"{name!r} holds an empty text; leave the field out where nothing is known")
    return found


def _labels(row: Row) -> dict[str, str]:
    labels = row.get("labels", Row(row.place))
    if not isinstance(labels, Row):
        raise row.wrong("'labels' must be an object of names and texts")
    if INSIDE in labels:
        raise row.wrong(f"the label {INSIDE!r} is given by the task itself; take another name")
    return {name: labels.text(name) for name in labels}


def _documents(row: Row, folder: Path) -> Iterator[Document]:
    """Yield the pages of a question.

    :raises DataWrong: one of them cannot be read.
    """
    seen: set[str] = set()
    for number, one in enumerate(row.items_of("pages"), 1):
        for document in _page(row, one, number, folder):
            if document.id in seen:
                raise row.wrong(f"the page {document.id} is named twice")
            seen.add(document.id)
            yield document


def _page(row: Row, one: str | Row, number: int, folder: Path) -> Iterator[Document]:
    """Yield the page of an entry of ``pages``, or the pages of a folder."""
    if isinstance(one, str):
        for path in _files(row, Row(row.place, {"pages": one}).text("pages"), folder):
            yield _document(row, path, folder)
        return
    _known(one, PAGE_FIELDS)
    contents = [name for name in CONTENTS if name in one]
    if len(contents) != 1:
        raise row.wrong(f"page {number} needs one of {', '.join(map(repr, CONTENTS))}")
    url, title, snippet = (one.text(name) if name in one else "" for name in ("url", "title", "snippet"))
    if contents == ["file"]:
        (path,) = _files(row, one.text("file"), folder, only_one=True)
        document = _document(row, path, folder)
        yield Document(document.id, document.content, document.media_type, title, url, snippet)
        return
    media = "text/html" if contents == ["html"] else "text/plain"
    text = one.text(contents[0])
    if not text.strip() and not snippet:
        raise row.wrong(f"page {number} is empty")
    yield Document(url or f"page {number}", text, media, title, url, snippet)


def _files(row: Row, name: str, folder: Path, only_one: bool = False) -> list[Path]:
    """Return the file of a name, or the files below a folder."""
    if is_address(name):
        raise row.wrong(f"{name} is an address, and nothing is fetched here: save it with prunus fetch {name} -o pages")
    path = folder / name
    if not is_folder(path):
        return [path]
    if only_one:
        raise row.wrong(f"{name} is a folder, not a file")
    try:
        return pages_of(path, tuple(MEDIA), MOST)
    except PrunusError as error:
        raise row.wrong(str(error)) from error


def _document(row: Row, path: Path, folder: Path) -> Document:
    """Return a file as a document.

    :raises DataWrong: it is missing, or neither HTML nor text.
    """
    media = MEDIA.get(path.suffix.lower())
    if path.exists() and not path.is_file():  # reading from a pipe or a device might never end
        raise row.wrong(f"{path} is neither a file nor a folder")
    try:
        content = read_file(path).content
    except PrunusError as error:
        raise row.wrong(str(error)) from error
    if media is None:
        raise row.wrong(
            f"{path} is no page ({', '.join(MEDIA)}); make one of it: prunus clean {path} > {path.with_suffix('.html')}"
        )
    if not isinstance(content, bytes) or is_binary(content):
        raise row.wrong(f"{path} holds binary data, no {FORMATS[media]}")
    text = source_text(content) if media == "text/html" else decode(content)
    if not text.strip():
        raise row.wrong(f"{path} is empty")
    return Document((path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix(), text, media)
