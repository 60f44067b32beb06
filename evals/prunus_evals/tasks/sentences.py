"""Questions whose answer is the tags of numbered sentences, and requests of the log of a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from prunus_evals.data import Lines, Row, data_folder, find, training_files
from prunus_evals.errors import DataMissing, DataWrong
from prunus_evals.records import Document, LeftOut, Question, Span
from prunus_evals.split import digest
from prunus_evals.tasks.paragraphs import TAGS
from prunus_evals.tasks.task import Record, Use, sample, seeded_by, task


def tags_of(row: Row, name: str, sentences: int) -> tuple[int, ...] | None:
    """Return the right tags of a row, in order; None where no sentence answers.

    :raises DataWrong: they are no list of places of sentences, or the list is empty.
    """
    if row[name] is None:
        return None
    tags = row.items_of(name)
    for tag in tags:
        if not isinstance(tag, int) or isinstance(tag, bool) or not 0 <= tag < sentences:
            raise row.wrong(f"{name!r} names the tag {tag!r}, of {sentences} sentences")
    if not tags:
        raise row.wrong(f"{name!r} is empty; write null where no sentence answers")
    return tuple(sorted({*tags}))


def question_of(
    task: str, key: str, text: str, sentences: Sequence[str], tags: tuple[int, ...] | None, answers: Sequence[str] = ()
) -> Question:
    """Return a question about the tags of sentences; the sentences, one a line, are its document and gold evidence."""
    starts = [0]
    for sentence in sentences:
        starts.append(starts[-1] + len(sentence) + 1)
    return Question(
        id=key,
        task=task,
        page=key,
        documents=(Document(key, "\n".join(sentences), "text/plain"),),
        question=text,
        answers=tuple(answers),
        kind="tags",
        sentences=tuple(sentences),
        tags=tags,
        gold=tuple(Span(key, starts[tag], starts[tag + 1] - 1) for tag in tags or () if sentences[tag].strip()),
    )


MTQA_FILE = "sets/mtqa/questions.jsonl"


@task(
    "mtqa",
    title="questions with several answers, as tags of sentences",
    metrics=TAGS,
    files=(MTQA_FILE,),
    source="MTQA (several answers; terms of its authors), tagged by you; the task's file has the form",
    half="all",
)
def mtqa(use: Use, variant: str = "") -> Iterator[Question]:
    """MTQA: questions with several answers each, as tags of sentences (the set "Multiple" of the Internet-SAG paper).

    The paper takes its document-dependent questions, cuts their texts into tagged sentences, and has a model write the
    right tags, which are not published. This reads such a file: a line is ``{"id": "…", "question": "…", "sentences":
    ["…", …], "tags": [2, 5], "answers": ["…", …]}``; tags count from 0, ``answers`` may be missing.
    """
    for _, row in Lines(find(MTQA_FILE)):
        key = row.name("id")
        if use(key):
            sentences = row.texts("sentences")
            answers = row.texts("answers") if "answers" in row else ()
            yield question_of(
                "mtqa", key, row.text("question"), sentences, tags_of(row, "tags", len(sentences)), answers
            )


MTI_FILE = "sets/mti/pairs.jsonl"
CASES = 300
TOGETHER = 3


@task(
    "mti",
    title="three questions at once, with the tags of the sentences that answer them",
    metrics=TAGS,
    files=(MTI_FILE,),
    source="MTI Bench (guijinSON/MTI-Bench; its authors' terms), tagged by you; the task's file has the form",
    half="all",
)
def mti(use: Use, variant: str = "") -> Iterator[Question]:
    """MTI Bench: several questions at once, each with its own text; the answer is the tags of the sentences.

    The Internet-SAG paper cuts the texts of MTI Bench into tagged sentences, has a model write the right tags, which
    are not published, and combines several pairs of question and text into each of 300 cases. This reads the pairs: a
    line is ``{"id": "…", "question": "…", "sentences": ["…", …], "tags": [2, 5]}``; tags count from 0. A case combines
    three pairs, which a seed chooses (the paper does not say how many it takes); no pair stands in a case twice.
    """
    path = find(MTI_FILE)
    pairs: dict[str, Row] = {}
    for _, row in Lines(path):
        key = row.name("id")
        if key in pairs:
            raise row.wrong(f"the id {key} stands in the file twice")
        tags_of(row, "tags", len(row.texts("sentences")))
        pairs[key] = row
    if len(pairs) < TOGETHER:
        raise DataWrong(f"{path} has {len(pairs)} pairs; a case combines {TOGETHER}")
    order = sorted(pairs, key=digest)
    for number in range(CASES):
        chosen = seeded_by(f"mti\0{number}").sample(order, TOGETHER)
        key = f"mti:{number}:{'+'.join(chosen)}"
        if use(key):
            yield _case(key, [pairs[name] for name in chosen])


def _case(key: str, pairs: list[Row]) -> Question:
    """Return a case; its right tags are those of all pairs, None where no pair has one."""
    sentences: list[str] = []
    tags: list[int] = []
    for row in pairs:
        own = row.texts("sentences")
        tags += [len(sentences) + tag for tag in tags_of(row, "tags", len(own)) or ()]
        sentences += own
    listed = "\n".join(f"{number}. {row.text('question')}" for number, row in enumerate(pairs, 1))
    return question_of("mti", key, listed, sentences, tuple(tags) or None)


FORMAT = "prunus-requests-1"
LOG, ANNOTATIONS, TRAINING = "sets/requests/log", "sets/requests/annotations.jsonl", "sets/requests/training"
REQUESTS = 500


def plain(request: str) -> str:
    """Return a request in lower case with single spaces."""
    return " ".join(request.casefold().split())


def id_of(request: str) -> str:
    """Return the id of a request."""
    return digest(plain(request))[:16]


@task(
    "request_log",
    title="500 requests from the log of a server, with the tags that people gave; sentences, not whole pages",
    metrics=(
        *("tags_f1", "tags_precision", "tags_recall", "tags_exact"),
        *("tags_micro_f1", "tags_micro_precision", "tags_micro_recall", "tags_none"),
    ),
    files=(LOG,),
    source="the request log of your server (prunus serve --log); yours alone",
    half="all",
)
def request_log(use: Use, variant: str = "") -> Iterator[Record]:
    """Real requests, from the log of the server (``prunus serve --log``, form ``prunus-requests-1``).

    All ``*.jsonl`` files of ``sets/requests/log`` are read. The same request twice, case and white space aside, is
    taken once; 500 of what is left are drawn by a seed. The tagged sentences of the log are the sentences of a
    question; people's annotations, if there are any, are the truth: ``sets/requests/annotations.jsonl``, a line of
    which is ``{"request": "…", "tags": [3, 7]}`` with the id of the request and the log's tags, or null where no
    sentence answers. The id is the first 16 digits of the sha256 of the request, in lower case with single spaces. A
    request without an annotation has no tags, so that metrics of tags do not apply to it.

    The log holds the sentences that the extractor saw, not the pages. So the documents of a question are these
    sentences, page by page: right for extractors, wrong for a system that cleans, converts, cuts or embeds whole pages.

    A request must not stand in training data: files in ``sets/requests/training`` (JSON lines; every text in them
    counts) and those that ``PRUNUS_TRAINING`` names are searched, and a request in one of them is an error.
    """
    folder = find(LOG)
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise DataMissing(f"{folder} has no file *.jsonl")
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


SEARCH_NEED_FILE = "sets/search_need/requests.jsonl"
CHOICES = ("search", "no search")


@task(
    "search_need",
    title="whether a request needs a search of the web",
    metrics=("accuracy", "readable"),
    files=(SEARCH_NEED_FILE,),
    source="requests that you label; the task's file has the form",
    half="all",
)
def search_need(use: Use, variant: str = "") -> Iterator[Question]:
    """Recognition of the need for a search: whether a request must be looked up on the web.

    The Internet-SAG paper trains a model for this on data that is not published, and prints no table. This reads
    requests that you label: a line is ``{"id": "…", "request": "…", "search": true, "language": "en"}``, where
    ``language`` may be missing. A question has no documents; its choices are ``search`` and ``no search``.
    """
    for _, row in Lines(find(SEARCH_NEED_FILE)):
        key = row.name("id")
        if not isinstance(row["search"], bool):
            raise row.wrong("'search' must be true or false")
        if use(key):
            yield Question(
                id=key,
                task="search_need",
                page=key,
                documents=(),
                question=row.text("request"),
                kind="search",
                choices=CHOICES,
                correct=0 if row["search"] else 1,
                labels={"language": row.text("language")} if "language" in row else {},
            )
