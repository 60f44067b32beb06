"""XQuAD: questions about articles of several paragraphs, in German, Chinese and Arabic.

``xquad:de_all`` asks the questions of all German articles at once, as plain text; so do ``zh_all`` and ``ar_all``.
The questions of an article are in the order of their ids' digests, so that the first ones are a fair sample.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence

from prunus_evals.data import Row, rows
from prunus_evals.records import About, Document, Question, Span
from prunus_evals.split import digest

LANGUAGES = ("de", "zh", "ar")
ABOUT = About(
    title="questions about articles in German, Chinese and Arabic",
    metrics=("answer", "gold_recall_4grams", "exact_match", "token_f1"),
    files=("|".join(f"multilingual/xquad_{language}.jsonl.xz" for language in LANGUAGES),),
    source="XQuAD, CC BY-SA 4.0",
    variants=(*LANGUAGES, *(f"{language}_all" for language in LANGUAGES)),
)


def articles(language: str) -> Iterator[Row]:
    """Yield the articles of a language."""
    yield from rows(f"multilingual/xquad_{language}")


def text(article: Row) -> tuple[str, list[int]]:
    """Return an article as plain text, and where each paragraph begins."""
    starts, parts, length = [], [], 0
    for paragraph in article.rows("paragraphs"):
        starts.append(length)
        parts.append(paragraph.text("context") + "\n\n")
        length += len(parts[-1])
    return "".join(parts), starts


def span(item: Row, context: str) -> tuple[int, int]:
    """Return the place of an answer in its paragraph.

    :raises DataWrong: the answer does not stand there.
    """
    start, answer = item.number("start"), item.text("answer")
    if not answer or context[max(start, 0) : start + len(answer)] != answer:
        raise item.wrong(f"the answer {answer!r} does not stand at {start}")
    return start, start + len(answer)


def questions(use: Callable[[str], bool], variant: str = "de") -> Iterator[Question]:
    """Yield the questions of the articles for whose title ``use`` is true; the article is a page of HTML."""
    language, _, everywhere = variant.partition("_")
    found = list(articles(language))
    every = [Document(one.text("title"), text(one)[0], "text/plain") for one in found] if everywhere else []
    for article in found:
        title = article.text("title")
        if use(title):
            asked = list(_asked_of_all(article, title, every) if everywhere else _questions(article, title, variant))
            yield from sorted(asked, key=lambda question: digest(question.id))


def _asked_of_all(article: Row, title: str, every: Sequence[Document]) -> Iterator[Question]:
    _, starts = text(article)
    for start, paragraph in zip(starts, article.rows("paragraphs"), strict=True):
        for item in paragraph.rows("qas"):
            first, last = span(item, paragraph.text("context"))
            yield Question(
                id=item.text("id"),
                task="xquad",
                page=title,
                documents=tuple(every),
                question=item.text("question"),
                answers=(item.text("answer"),),
                gold=(Span(title, start + first, start + last),),
            )


def _questions(article: Row, title: str, variant: str) -> Iterator[Question]:
    heading = html.escape(title.replace("_", " "))
    page = f"<!DOCTYPE html><title>{heading}</title><h1>{heading}</h1>"
    asked: list[tuple[Row, Span]] = []
    for paragraph in article.rows("paragraphs"):
        context = paragraph.text("context")
        page += "<p>"
        for item in paragraph.rows("qas"):
            places = [len(page) + len(html.escape(context[:place])) for place in span(item, context)]
            asked.append((item, Span(title, *places)))
        page += html.escape(context) + "</p>"
    documents = (Document(title, page, title=title.replace("_", " ")),)
    for item, gold in asked:
        yield Question(
            id=item.text("id"),
            task=f"xquad:{variant}",
            page=title,
            documents=documents,
            question=item.text("question"),
            answers=(item.text("answer"),),
            gold=(gold,),
        )
