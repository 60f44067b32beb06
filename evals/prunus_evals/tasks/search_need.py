"""Recognition of the need for a search: whether a request must be looked up on the web.

The Internet-SAG paper trains a model for this on data that is not published, and prints no table. This reads requests
that you label: a line is ``{"id": "…", "request": "…", "search": true, "language": "en"}``, where ``language`` may be
missing. A question has no documents; its choices are ``search`` and ``no search``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import Lines, find
from prunus_evals.records import About, Question

FILE = "sets/search_need/requests.jsonl"
CHOICES = ("search", "no search")
ABOUT = About(
    title="whether a request needs a search of the web",
    metrics=("accuracy", "readable"),
    files=(FILE,),
    source="requests that you label; the task's file has the form",
    half="all",
)


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the requests for whose id ``use`` is true."""
    for _, row in Lines(find(FILE, ABOUT.source)):
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
