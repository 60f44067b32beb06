"""Real requests, from the log of the server (``prunus serve --log``, form ``prunus-requests-1``).

All ``*.jsonl`` files of ``sets/requests/log`` are read. The same request twice, case and white space aside, is taken
once; 500 of what is left are drawn by a seed. The tagged sentences of the log are the sentences of a question; people's
annotations, if there are any, are the truth: ``sets/requests/annotations.jsonl``, a line of which is
``{"request": "…", "tags": [3, 7]}`` with the id of the request and the log's tags, or null where no sentence answers.
The id is the first 16 digits of the sha256 of the request, in lower case with single spaces. A request without an
annotation has no tags, so that metrics of tags do not apply to it.

The log holds the sentences that the extractor saw, not the pages. So the documents of a question are these sentences,
page by page: right for extractors, wrong for a system that cleans, converts, cuts or embeds whole pages.

A request must not stand in training data: files in ``sets/requests/training`` (JSON lines; every text in them counts)
and those that ``PRUNUS_TRAINING`` names are searched, and a request in one of them is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from prunus_evals.data import Lines, Row, data_folder, find, training_files
from prunus_evals.errors import DataMissing, DataWrong
from prunus_evals.records import About, Document, LeftOut, Question
from prunus_evals.split import digest
from prunus_evals.tasks import Asked, sample
from prunus_evals.tasks._tagged import tags_of

FORMAT = "prunus-requests-1"
LOG, ANNOTATIONS, TRAINING = "sets/requests/log", "sets/requests/annotations.jsonl", "sets/requests/training"
REQUESTS = 500
ABOUT = About(
    title="500 requests from the log of a server, with the tags that people gave; sentences, not whole pages",
    metrics=(
        *("tags_f1", "tags_precision", "tags_recall", "tags_exact"),
        *("tags_micro_f1", "tags_micro_precision", "tags_micro_recall", "tags_none"),
    ),
    files=(LOG,),
    source="the request log of your server (prunus serve --log); yours alone",
    half="all",
)


def plain(request: str) -> str:
    """Return a request in lower case with single spaces."""
    return " ".join(request.casefold().split())


def id_of(request: str) -> str:
    """Return the id of a request."""
    return digest(plain(request))[:16]


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Asked]:
    """Yield the drawn requests for whose id ``use`` is true, and those that are not asked."""
    folder = find(LOG, ABOUT.source)
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise DataMissing(f"{folder} has no file *.jsonl; source: {ABOUT.source}")
    found: dict[str, Row] = {}
    left: list[LeftOut] = []
    for path in files:
        for _, row in Lines(path):
            if row["format"] != FORMAT:
                raise row.wrong(f"the form is {row['format']!r}, not {FORMAT}")
            key = id_of(row.text("question"))
            if key in found:
                left.append(LeftOut(key, key, "the same request stands in the log before"))
            elif not row.rows("tagged"):
                left.append(LeftOut(key, key, "the extractor saw no sentence"))
            else:
                found[key] = row
    chosen = sample(found, REQUESTS)
    _refuse_trained({key: found[key] for key in chosen})
    truth = _annotations(found)
    yield from (one for one in left if use(one.page))
    for key in sorted(chosen):
        if use(key):
            yield _question(key, found[key], truth.get(key))


def _annotations(known: dict[str, Row]) -> dict[str, Row]:
    path = data_folder() / ANNOTATIONS
    if not path.exists():
        return {}
    found: dict[str, Row] = {}
    for _, row in Lines(path):
        key = row.text("request")
        if key not in known:
            raise row.wrong(f"no request of the log has the id {key}")
        if key in found:
            raise row.wrong(f"the request {key} is annotated twice")
        found[key] = row
    return found


def _refuse_trained(chosen: dict[str, Row]) -> None:
    """Look for the requests in training data.

    :raises DataWrong: one of them stands there.
    """
    wanted = {plain(row.text("question")): row for row in chosen.values()}
    folder = data_folder() / TRAINING
    for path in [*(sorted(folder.glob("*.jsonl")) if folder.is_dir() else ()), *training_files()]:
        for _, row in Lines(path):
            for text in _texts(row):
                if (asked := wanted.get(plain(text))) is not None:
                    raise DataWrong(f"{row.place}: the request of {asked.place} is training data; take another log")


def _texts(value: Any) -> Iterator[str]:
    """Yield every text of a JSON value, and every line of it: prompts hold a request on a line of its own."""
    if isinstance(value, str):
        yield value
        yield from value.splitlines() if "\n" in value else ()
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _question(key: str, row: Row, truth: Row | None) -> Question:
    tagged = row.rows("tagged")
    places = {one.number("tag"): place for place, one in enumerate(tagged)}
    if len(places) < len(tagged):
        raise row.wrong("two sentences have the same tag")
    tags: tuple[int, ...] | None = ()
    if truth is not None and truth["tags"] is None:
        tags = None
    elif truth is not None:
        for tag in truth.items_of("tags"):
            if tag not in places:
                raise truth.wrong(f"the request has no tag {tag!r}")
        tags = tags_of(Row(truth.place, {"tags": [places[tag] for tag in truth["tags"]]}), "tags", len(tagged))
    pages: dict[str, list[str]] = {}
    for one in tagged:
        pages.setdefault(one.text("page"), []).append(one.text("text"))
    return Question(
        id=key,
        task="request_log",
        page=key,
        documents=[
            Document(f"{key}/{number}", "\n".join(texts), "text/plain", url=url)
            for number, (url, texts) in enumerate(pages.items())
        ],
        question=row.text("question"),
        kind="tags",
        sentences=tuple(one.text("text") for one in tagged),
        tags=tags,
        labels={"annotated": "no" if truth is None else "yes"},
    )
