"""HTML to Markdown by a language model, as ReaderLM: ``readerlm:SPEC``; then cut at the budget.

SPEC is any language model, as ``transformers:FOLDER`` with the weights of ReaderLM-v2, or ``http://HOST/v1#MODEL``. The
prompt is that of ReaderLM-v2's card. Scripts and styles are removed first. ``@html=16000``: tokens of HTML of a
document at most; ``@tokens=4096``: tokens that the model writes at most. The fact ``cut`` counts the documents that
were too long.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from prunus.core.installation import pip_install
from prunus_evals import prompts, readers
from prunus_evals.errors import UnknownName
from prunus_evals.records import Asker, Document, Reply, Stage, System
from prunus_evals.systems._documents import html_of
from prunus_evals.systems._variants import Kinds, Variant, read
from prunus_evals.tokens import Counter

HTML = 16_000
WRITTEN = 4096
OPTIONS: Kinds = {"html": int, "tokens": int}
LACKS = f"name a language model, as readerlm:transformers:FOLDER; {pip_install('transformers')}"
_SPACE = re.compile(r"\s+")


def bare(html: str) -> str:
    """Return HTML without scripts, styles and comments, on one line."""
    from bs4 import BeautifulSoup, Comment  # here: few systems need it

    soup = BeautifulSoup(html, "lxml")
    for hidden in soup(["script", "style", "noscript", "template", "meta", "link", "svg"]):
        hidden.decompose()
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    return _SPACE.sub(" ", str(soup)).strip()


class ReaderLM:
    """Keeps the head of what a model writes of the documents."""

    def __init__(self, name: str, variant: Variant, counter: Counter) -> None:
        self.name = name
        self._spec = variant.head
        self.models = (variant.head,)
        self._llm = readers.model(variant.head)
        self._html, self._written = variant.options.get("html", HTML), variant.options.get("tokens", WRITTEN)
        self._counter = counter

    @property
    def caveat(self) -> str:
        """What tables must say of its model."""
        return readers.caveat(self._spec)

    def prepare(self, documents: Sequence[Document]) -> Asker:
        """Convert every document once.

        :raises ReaderFailed: the model cannot be reached, refuses, or does not finish.
        """
        start, cut, prompt_tokens, completion_tokens = time.perf_counter(), 0, 0, 0
        written: list[str] = []
        for document in documents:
            if not document.content.strip():
                continue
            html = bare(html_of(document))
            head = self._counter.head(html, self._html)
            cut += head != html
            messages = prompts.render("readerlm", {"html": head})
            reading = readers.ask(self._spec, self._llm, messages, self._written)
            prompt_tokens += reading.prompt_tokens
            completion_tokens += reading.completion_tokens
            written.append(unfenced(reading.text))
        stage = Stage("convert by the model", prompt_tokens, completion_tokens, time.perf_counter() - start)
        return _Asker("\n\n".join(filter(None, written)), stage, cut, self._counter)


def unfenced(reply: str) -> str:
    """Return a reply without the fence of code that models put around Markdown."""
    lines = reply.strip().split("\n")
    if len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```":
        lines = lines[1:-1]
    return "\n".join(lines).strip()


class _Asker:
    def __init__(self, text: str, stage: Stage, cut: int, counter: Counter) -> None:
        self._text, self._stage, self._cut, self._counter = text, stage, cut, counter

    def ask(self, question: str, budget: int) -> Reply:
        text = self._counter.head(self._text, budget)
        return Reply(text, "markdown", stages=(self._stage,), facts={"cut": self._cut})


def accepts(variant: str) -> bool:
    """Return whether a variant can be constructed: the spec of a language model, with options.

    :raises UnknownName: the model cannot be made.
    """
    head = read("readerlm", variant, OPTIONS).head
    if not head:
        raise UnknownName(f"readerlm: {LACKS}")
    readers.model(head)
    return True


NEEDS = f"a language model, as readerlm:transformers:FOLDER; {pip_install('transformers')}"


def missing(variant: str) -> str:
    """Return what it lacks: a model, where none is named."""
    return "" if variant else LACKS


def make(counter: Counter, variant: str) -> System:
    """Return the system of a model."""
    return ReaderLM(f"readerlm:{variant}", read("readerlm", variant, OPTIONS), counter)
