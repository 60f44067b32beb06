"""Questions about titled paragraphs, some of whose sentences support the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prunus_evals.records import Document, Question, Span

YES_NO = ("yes", "no")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of an article.

    :param sentences: with the white space between them, so that they can be joined.
    :param supporting: places of the sentences that support the answer, from 0.
    """

    title: str
    sentences: Sequence[str]
    supporting: Sequence[int] = ()


def question_of(
    task: str, key: str, text: str, answer: str, paragraphs: Sequence[Paragraph], as_tags: bool = False
) -> Question:
    """Return a question, with a document for each paragraph; the document begins with the paragraph's title.

    Where supporting sentences are known, all sentences are tags and those are the right ones; they are also the gold
    evidence. A question that is answered with yes or no has these as its choices.

    :param as_tags: ask for the tags of the supporting sentences instead of the answer.
    """
    documents: list[Document] = []
    gold: list[Span] = []
    sentences: list[str] = []
    tags: list[int] = []
    for number, paragraph in enumerate(paragraphs):
        name, content = f"{key}/{number}", f"{paragraph.title}\n\n"
        for place, sentence in enumerate(paragraph.sentences):
            if place in paragraph.supporting:
                gold.append(Span(name, len(content), len(content) + len(sentence)))
                tags.append(len(sentences))
            content += sentence
            sentences.append(sentence.strip())
        documents.append(Document(name, content, "text/plain", paragraph.title))
    polar = answer.strip().casefold() in YES_NO
    return Question(
        id=key,
        task=task,
        page=key,
        documents=documents,
        question=text,
        answers=() if polar else (answer,),
        kind="tags" if as_tags else "yes_no" if polar else "short",
        choices=YES_NO if polar else (),
        correct=YES_NO.index(answer.strip().casefold()) if polar else -1,
        sentences=tuple(sentences) if tags else (),
        tags=tuple(tags),
        gold=tuple(gold),
    )
