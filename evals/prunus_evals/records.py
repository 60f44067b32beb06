"""The records of evaluations: documents, questions, replies, outcomes, and the protocols of systems and readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

OutputFormat = Literal["html", "markdown", "text"]

Kind = Literal["short", "long", "choice", "yes_no", "tags", "search"]
"""What answers a question: a few words; a paragraph; one of the choices; yes or no; the tags of sentences; whether to
search the web."""


@dataclass(frozen=True, slots=True)
class Document:
    """A page or a text that holds evidence.

    :param id: unique within its task.
    :param content: HTML or plain text.
    :param media_type: ``text/html``, ``text/plain`` or ``text/markdown``.
    :param snippet: what a search engine showed of it; '' where none did.
    """

    id: str
    content: str
    media_type: str = "text/html"
    title: str = ""
    url: str = ""
    snippet: str = ""


ONLY = "page"
"""The id of the only document of a question, which has no name of its own."""


def one_page(html: str) -> tuple[Document, ...]:
    """Return a page of HTML as the documents of a question."""
    return (Document(ONLY, html),)


@dataclass(frozen=True, slots=True)
class Span:
    """A place of gold evidence: from ``start`` to ``end`` in the content of a document, in code points."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question about documents, with everything that is known of its answer.

    :param page: what the bootstrap draws, with all its questions: a page, a story, a meeting. Its digest decides the
        half.
    :param documents: what evidence is taken from, in the order in which a search found them.
    :param answers: the short answers; all of them are wanted.
    :param aliases: other spellings of an answer, by the answer.
    :param kind: what answers the question; it decides the reader's prompt.
    :param prompt: name of the reader's prompt; '' takes that of the kind.
    :param references: long answers that people wrote; an output is compared with the best of them.
    :param reference_kinds: what each reference is, as ``extractive``, for sets that tell; else empty.
    :param choices: the options of a question with choices.
    :param correct: place of the right choice, from 0; -1 where it is not published.
    :param sentences: the numbered sentences of a question about tags.
    :param tags: the right tags, from 0; None where no sentence answers; ``()`` for other kinds.
    :param gold: the places of the evidence, where they are known.
    :param evidence: passages that hold the answer, as a person reads them, where their places are not known.
    :param table_rows: the rows of tables that the answer needs, each as its label and its numbers.
    :param gold_table: HTML of the table that holds the answer, where it is known.
    :param element_id: value of ``tid`` of the element that holds the answer, where it is known.
    :param labels: groups of questions that tables show apart, as ``{"depth": "50", "length": "4096"}``;
        ``{"page": "wrong"}`` marks a question that is asked of a page without its answer.
    """

    id: str
    task: str
    page: str
    documents: Sequence[Document]
    question: str
    answers: tuple[str, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kind: Kind = "short"
    references: tuple[str, ...] = ()
    reference_kinds: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    correct: int = -1
    sentences: tuple[str, ...] = ()
    tags: tuple[int, ...] | None = ()
    gold: tuple[Span, ...] = ()
    evidence: tuple[str, ...] = ()
    table_rows: tuple[tuple[str, ...], ...] = ()
    gold_table: str | None = None
    element_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    prompt: str = ""

    @property
    def html(self) -> str:
        """The content of the only document of a question about one page."""
        (document,) = self.documents
        return document.content

    @property
    def gold_documents(self) -> tuple[str, ...]:
        """The ids of the documents with gold evidence, each once."""
        return tuple(dict.fromkeys(span.document for span in self.gold))

    def spellings(self, answer: str) -> tuple[str, ...]:
        """Return an answer and its other spellings."""
        return (answer, *self.aliases.get(answer, ()))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A question that a task does not ask, and why, in a few words."""

    page: str
    question: str
    why: str


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage of a system cost.

    :param tokens_in: tokens that the stage read.
    :param tokens_out: tokens that it handed on.
    :param seconds: wall time.
    :param skipped: share of the nodes of the token tree that no model had to score, for a generative stage.
    """

    name: str
    tokens_in: int
    tokens_out: int
    seconds: float
    skipped: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The evidence that a system kept.

    :param cpu_seconds: set only by a system that works in another process; else the harness measures the time.
    :param stages: what each stage cost, for a system that has several.
    :param tags: the tags that an extractor named, from 0; None where it found that no sentence answers; ``()`` for a
        system that names no tags.
    :param quotes: the quotes of an answer with citations, in their order; None for a system that does not quote.
    :param ranking: ids of the documents, best first, for a system that ranks them.
    :param facts: what a study wants to know, as the layers of retrieved nodes; must be ready for JSON.
    """

    text: str
    format: OutputFormat
    cpu_seconds: float | None = None
    stages: tuple[Stage, ...] = ()
    tags: tuple[int, ...] | None = ()
    quotes: tuple[str, ...] | None = None
    ranking: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


class Asker(Protocol):
    """Documents that a system has prepared for questions.

    One that needs more of a question than its words, as the numbered sentences of a question about tags, has a method
    ``ask_question(question, budget)``, too, which is called in place of ``ask``.
    """

    def ask(self, question: str, budget: int) -> Reply:
        """Return the evidence for a question, of at most ``budget`` tokens."""
        ...


class System(Protocol):
    """Something that keeps the evidence of documents within a budget of tokens.

    A system that works with a language model has a field ``caveat``: what :func:`.readers.caveat` says of its model.
    One that works with any model, of language or of vectors, has a field ``models``: their specs. What a server says of
    them, and their files, are part of what outcomes are stored under.
    """

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Do the work that does not depend on the question, once for all questions about the same documents."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader answered.

    :param text: its reply, whole.
    :param prompt_tokens, completion_tokens: as the model's server counts them; 0 where it does not.
    :param seconds: wall time of the call.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def counted(self) -> bool:
        """Whether the server counted tokens: no prompt has none."""
        return self.prompt_tokens > 0


class Reader(Protocol):
    """A language model that answers from evidence."""

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    @property
    def real(self) -> bool:
        """Whether a model answers; False where replies are scripted. Tables say so."""
        ...

    def read(self, question: Question, evidence: str) -> Reading:
        """Answer a question from evidence.

        :raises ReaderFailed: the model cannot be reached, refuses, or does not finish.
        """
        ...


@dataclass(frozen=True, slots=True)
class Output:
    """What metrics score: the evidence and, where a reader answered, its answer.

    :param visible: what a person sees of the evidence, without tags.
    :param answer: the reader's reply; None without a reader.
    """

    reply: Reply
    visible: str
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The scores of one question, for one system, budget and reader.

    :param scores: by metric; a metric that does not apply to the question is missing.
    :param counts: what a metric over all answers together adds up, by metric; see :class:`.metrics.Metric`.
    :param tokens: tokens of the evidence.
    :param cpu_seconds: CPU time of the system, preparation included.
    :param seconds: wall time of the system, preparation included.
    :param reader: name of the reader; ``none`` where nothing answered.
    :param reading: what the reader answered, with its cost; None without one.
    :param prompt: the digest of the prompt that the reader got; '' without one.
    :param evidence: sha256 of the evidence's text; '' where it was not kept.
    :param caveat: what every table must say of the models behind the numbers, of the system and of the reader, as
        ``scripted, tiny``; '' for nothing. See :data:`.readers.CAVEATS`.
    :param prompt_name: the prompt that a plan names for all questions; '' where the kind of each decides.
    :param caveats: the same, by the name of the system or the reader that it is about.
    :param state: the digest of code, packages and settings that it was measured with; see :func:`.provenance.state`.
    """

    task: str
    system: str
    page: str
    question: str
    budget: int
    scores: Mapping[str, float]
    tokens: int
    cpu_seconds: float
    seconds: float = 0.0
    reader: str = "none"
    reading: Reading | None = None
    prompt: str = ""
    stages: tuple[Stage, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    evidence: str = ""
    caveat: str = ""
    prompt_name: str = ""
    caveats: Mapping[str, str] = field(default_factory=dict)
    state: str = ""
