"""Shared by the extractors: systems that name the numbered sentences of a question.

The sentences are those of the question; for a question without, the sentences of its documents, numbered through all of
them. A tag that no sentence has is negative in the reply: it is a wrong one. So a reply that names neither tags nor
None is wrong in every metric, and the fact ``nonsense`` counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import prunus
from prunus.answer.extract.tags import TagReply
from prunus_evals import readers
from prunus_evals.records import Asker, Document, Question, Reply
from prunus_evals.systems._documents import plain
from prunus_evals.tokens import Counter


@dataclass(frozen=True, slots=True)
class Named:
    """What an extractor named.

    :param tags: known tags.
    :param unknown: how many further tags it named, which no sentence has.
    :param nonsense: whether its reply names neither tags nor None.
    :param refused: whether it gave no reply, because the prompt was longer than its window; then this is nonsense, too.
    """

    tags: Sequence[int]
    unknown: int = 0
    nonsense: bool = False
    refused: bool = False


REFUSED = Named((), nonsense=True, refused=True)
"""What an extractor names that refuses a prompt."""

Extract = Callable[[str, Sequence[str], Sequence[Document]], Named]
"""Returns what an extractor names for a question among the sentences of documents."""


def named(reply: TagReply) -> Named:
    """Return what the reply of a model names."""
    return Named(reply.tags, reply.unknown, not reply.tags and not reply.unknown and not reply.none)


def sentences_of(documents: Sequence[Document]) -> list[str]:
    """Return the sentences of documents, in their order."""
    found: list[str] = []
    for document in documents:
        for line in plain(document).split("\n"):
            found += [sentence.strip() for sentence in prunus.sentences(line) if sentence.strip()]
    return found


class Extractor:
    """Names sentences.

    :param llm: spec of the language model that names them; '' for none.
    :param models: specs of its other models.
    """

    def __init__(
        self, name: str, extract: Extract, counter: Counter, llm: str = "", models: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.models = (*filter(None, [llm]), *models)
        self._llm = llm
        self._extract = extract
        self._counter = counter

    @property
    def caveat(self) -> str:
        """What tables must say of its model."""
        return readers.caveat(self._llm)

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Keep the documents; the work depends on the question."""
        return _Asker(documents, self._extract, self._counter)


class _Asker:
    def __init__(self, documents: Sequence[Document], extract: Extract, counter: Counter) -> None:
        self._documents = documents
        self._extract = extract
        self._counter = counter
        self._last: tuple[str, Sequence[str], Named] | None = None

    def ask(self, question: str, budget: int) -> Reply:
        """Name sentences of the documents."""
        return self._reply(question, sentences_of(self._documents), budget)

    def ask_question(self, question: Question, budget: int) -> Reply:
        """Name sentences of the question, or of its documents where it has none."""
        return self._reply(question.question, question.sentences or sentences_of(self._documents), budget)

    def _reply(self, question: str, sentences: Sequence[str], budget: int) -> Reply:
        """Return the tags, whatever the budget, and the sentences within it; asks once for all budgets."""
        if self._last is None or self._last[:2] != (question, sentences):
            named = self._extract(question, sentences, self._documents) if sentences else Named(())
            self._last = question, sentences, named
        found = self._last[2]
        text = "\n".join(sentences[tag] for tag in sorted(found.tags))
        wrong = range(-found.unknown - found.nonsense, 0)
        tags = (*found.tags, *wrong) or None
        facts = {"nonsense": int(found.nonsense), "unknown": found.unknown}
        facts |= {"refused": 1} if found.refused else {}
        return Reply(self._counter.head(text, budget), "text", tags=tags, facts=facts)
