"""MTI Bench: several questions at once, each with its own text; the answer is the tags of the sentences.

The Internet-SAG paper cuts the texts of MTI Bench into tagged sentences, has a model write the right tags, which are
not published, and combines several pairs of question and text into each of 300 cases. This reads the pairs: a line is
``{"id": "…", "question": "…", "sentences": ["…", …], "tags": [2, 5]}``; tags count from 0. A case combines three
pairs, which a seed chooses (the paper does not say how many it takes); no pair stands in a case twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prunus_evals.data import Lines, Row, find
from prunus_evals.errors import DataWrong
from prunus_evals.records import About, Question
from prunus_evals.split import digest
from prunus_evals.tasks import seeded_by
from prunus_evals.tasks._tagged import question_of, tags_of
from prunus_evals.tasks.hotpot import TAGS

FILE = "sets/mti/pairs.jsonl"
CASES = 300
TOGETHER = 3
ABOUT = About(
    title="three questions at once, with the tags of the sentences that answer them",
    metrics=TAGS,
    files=(FILE,),
    source="MTI Bench (guijinSON/MTI-Bench; its authors' terms), tagged by you; the task's file has the form",
    half="all",
)


def questions(use: Callable[[str], bool], variant: str = "") -> Iterator[Question]:
    """Yield the cases for whose key ``use`` is true."""
    path = find(FILE, ABOUT.source)
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
