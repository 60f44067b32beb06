"""Any language model by prompt alone as an extractor: ``tags:SPEC`` replies with the tags of sentences.

The whole list of sentences stands in one prompt. A reply that names neither tags nor None is counted as wrong; so is a
prompt that is longer than the model's window.
"""

from __future__ import annotations

from collections.abc import Sequence

from prunus.answer.extract.tags import read_tags
from prunus_evals import prompts, readers
from prunus_evals.errors import ReaderFailed, UnknownName
from prunus_evals.records import Document, System
from prunus_evals.systems._extract import REFUSED, Extractor, Named, named
from prunus_evals.tokens import Counter

VARIANTS = ("MODEL",)
PROMPT = "tags"


def tagged(sentences: Sequence[str]) -> str:
    """Return sentences with their tags; what looks like a tag in a sentence is broken up."""
    lines = (" ".join(sentence.replace("<TAG", "< TAG").replace("</TAG", "< /TAG").split()) for sentence in sentences)
    return "\n".join(f"<TAG-{tag}>{line}</TAG-{tag}>" for tag, line in enumerate(lines))


class Prompted:
    """A language model that names the tags of sentences.

    :param spec: of the model.
    :raises UnknownName: it cannot be made.
    """

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self._llm = readers.model(spec)

    @property
    def real(self) -> bool:
        """Whether a model answers."""
        return bool(self._llm.real)

    def extract(self, question: str, sentences: Sequence[str], documents: Sequence[Document] = ()) -> Named:
        """Return what the model names.

        :raises ReaderFailed: the model cannot be reached, refuses, or does not finish.
        """
        messages = prompts.render(PROMPT, {"sentences": tagged(sentences), "question": question})
        try:
            reply = readers.ask(self.spec, self._llm, messages, readers.MAX_TOKENS["tags"])
        except ReaderFailed as error:
            if readers.refused(error):
                return REFUSED
            raise
        return named(read_tags(reply.text, range(len(sentences))))


def accepts(variant: str) -> bool:
    """Return whether a variant that is not listed can be constructed: the spec of a language model.

    :raises UnknownName: the model cannot be made.
    """
    if not variant:
        raise UnknownName("tags needs a language model, as tags:openai:MODEL or tags:http://HOST/v1#MODEL")
    Prompted(variant)
    return True


NEEDS = "a language model, as tags:openai:MODEL or tags:http://HOST/v1#MODEL"


def missing(variant: str) -> str:
    """Return what it lacks: the name of a model, for the listed variant."""
    return "name a language model, as tags:openai:MODEL or tags:http://HOST/v1#MODEL" if variant == "MODEL" else ""


def make(counter: Counter, variant: str) -> System:
    """Return the system of a model."""
    return Extractor(f"tags:{variant}", Prompted(variant).extract, counter, variant)
