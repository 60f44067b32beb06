"""Questions about several paragraphs or passages, of which some hold the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from prunus_evals.bm25 import BM25
from prunus_evals.data import Row, find, listed, rows
from prunus_evals.records import Document, LeftOut, Question, Span
from prunus_evals.split import digest
from prunus_evals.tasks.task import Record, Use, seeded_by, task

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


def answered(question: Question, answer: str, aliases: Sequence[str] = ()) -> Question:
    """Return a question with its short answer; one that is answered with yes or no has these as its choices."""
    word = answer.strip().casefold()
    if word in YES_NO:
        return replace(question, kind="yes_no", choices=YES_NO, correct=YES_NO.index(word))
    return replace(question, answers=(answer,), aliases={answer: tuple(aliases)} if aliases else {})


def question_of(
    task: str, key: str, text: str, answer: str, paragraphs: Sequence[Paragraph], as_tags: bool = False
) -> Question:
    """Return a question, with a document for each paragraph; the document begins with the paragraph's title.

    Where supporting sentences are known, all sentences are tags and those are the right ones; they are also the gold
    evidence.

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
    question = answered(Question(key, task, key, documents, text), answer)
    return replace(
        question,
        kind="tags" if as_tags else question.kind,
        sentences=tuple(sentences) if tags else (),
        tags=tuple(tags),
        gold=tuple(gold),
    )


HOTPOT_DATA = "extract/hotpot"
ANSWERS = ("answer", "em_share", "token_f1", "accuracy", "tags_f1", "tags_precision", "tags_recall")
TAGS = ("tags_f1", "tags_precision", "tags_recall", "tags_exact")


def paragraphs(row: Row) -> list[Paragraph]:
    """Return the paragraphs of a question; the digests of question and title fix their order.

    :raises DataWrong: a supporting sentence is not in its paragraph.
    """
    facts = row.items_of("supporting_facts")
    gold = row.rows("gold")
    if len(facts) != len(gold):
        raise row.wrong(f"{len(gold)} paragraphs have {len(facts)} lists of supporting facts")
    found = [_paragraph(page, places) for page, places in zip(gold, facts, strict=True)]
    found += [_paragraph(page, []) for page in row.rows("distractors")]
    return sorted(found, key=lambda page: digest(row["id"] + page.title))


def _paragraph(row: Row, places: list[int]) -> Paragraph:
    sentences = row.texts("sentences")
    for place in places:
        if not 0 <= place < len(sentences):
            raise row.wrong(f"sentence {place} supports the answer, of {len(sentences)}")
    return Paragraph(row.text("title"), sentences, places)


@task(
    "hotpot",
    title="questions about ten paragraphs, with the sentences that support the answer",
    metrics=ANSWERS,
    files=(f"{HOTPOT_DATA}.jsonl.xz",),
    source="HotpotQA, CC BY-SA 4.0",
    variants=("answer", "tags", "pages"),
    variant_metrics={"tags": TAGS, "pages": TAGS},
)
def hotpot(use: Use, variant: str = "answer") -> Iterator[Question]:
    """HotpotQA: ten paragraphs, two of which support the answer; ``hotpot:tags`` asks for the sentences.

    ``hotpot:pages`` asks each paragraph alone, as an extractor is asked of each page of a search: no sentence of eight
    in ten paragraphs answers.
    """
    for row in rows(HOTPOT_DATA):
        key = row.text("id")
        if use(key):
            asked = (row.text("question"), row.text("answer"))
            if variant == "pages":
                yield from _alone(key, asked[0], paragraphs(row))
            else:
                yield question_of(f"hotpot:{variant}", key, *asked, paragraphs(row), variant == "tags")


def _alone(key: str, text: str, pages: list[Paragraph]) -> Iterator[Question]:
    """Yield the question about each paragraph alone; None is right where no sentence supports the answer."""
    for number, page in enumerate(pages):
        name = f"{key}/{number}"
        yield Question(
            id=name,
            task="hotpot:pages",
            page=key,
            documents=(Document(name, f"{page.title}\n\n{''.join(page.sentences)}", "text/plain", page.title),),
            question=text,
            kind="tags",
            sentences=tuple(sentence.strip() for sentence in page.sentences),
            tags=tuple(page.supporting) or None,
        )


OFFICIAL = "sets/2wikimultihopqa/dev.json"
SAMPLE = "extract/2wiki"
SOURCE = "2WikiMultiHopQA, Apache-2.0: dev.json of the authors' release (Alab-NII/2wikimultihop)"


@task(
    "twowiki",
    title="questions that need several paragraphs, with supporting sentences as tags",
    metrics=ANSWERS,
    files=(f"{OFFICIAL}|{SAMPLE}.jsonl.xz",),
    source=SOURCE,
    variants=("sample", "answer", "tags"),
    variant_metrics={"tags": TAGS, "sample": ("answer", "em_share", "token_f1", "accuracy")},
)
def twowiki(use: Use, variant: str = "sample") -> Iterator[Question]:
    """2WikiMultiHopQA: questions that need several paragraphs.

    ``twowiki:tags`` and ``twowiki:answer`` read the official file, whose supporting sentences are tags;
    ``twowiki:sample`` reads the sample of the data folder, which has whole paragraphs and no supporting sentences.
    """
    task = f"twowiki:{variant}"
    if variant == "sample":
        yield from whole_paragraphs(task, SAMPLE, use)
        return
    for row in listed(find(OFFICIAL)):
        key = row.text("_id")
        if use(key):
            asked = (row.text("question"), row.text("answer"))
            yield question_of(task, key, *asked, _paragraphs(row), variant == "tags")


def whole_paragraphs(task: str, data: str, use: Use) -> Iterator[Question]:
    """Yield the questions of a sample with whole paragraphs."""
    for row in rows(data):
        key = row.text("id")
        if use(key):
            paragraphs = [Paragraph(page.text("title"), (page.text("text"),)) for page in row.rows("paragraphs")]
            yield question_of(task, key, row.text("question"), row.text("answer"), paragraphs)


def _paragraphs(row: Row) -> list[Paragraph]:
    """Return the paragraphs of an official row.

    :raises DataWrong: the context has another form, or a supporting fact names no sentence of it.
    """
    found: list[Paragraph] = []
    for title, sentences in map(_pair(row, "context"), row.items_of("context")):
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            raise row.wrong("'context' must be pairs of a title and a list of sentences")
        found.append(Paragraph(title, [f"{sentence} " for sentence in sentences], []))
    for title, place in map(_pair(row, "supporting_facts"), row.items_of("supporting_facts")):
        named = [page for page in found if page.title == title]
        if not named or not isinstance(place, int) or not 0 <= place < len(named[0].sentences):
            raise row.wrong(f"the supporting fact {title!r}, {place} names no sentence of the context")
    facts = {(title, place) for title, place in row.items_of("supporting_facts")}
    seen: set[str] = set()
    for number, page in enumerate(found):
        if page.title not in seen:  # a fact of a title that stands twice is in the first
            places = [place for place in range(len(page.sentences)) if (page.title, place) in facts]
            found[number] = Paragraph(page.title, page.sentences, places)
        seen.add(page.title)
    return found


def _pair(row: Row, name: str) -> Callable[[object], tuple[str, object]]:
    def pair(value: object) -> tuple[str, object]:
        if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
            raise row.wrong(f"{name!r} must be pairs that begin with a title")
        return value[0], value[1]

    return pair


MUSIQUE_DATA = "extract/musique"


@task(
    "musique",
    title="questions of several hops about paragraphs",
    metrics=("answer", "em_share", "token_f1"),
    files=(f"{MUSIQUE_DATA}.jsonl.xz",),
    source="MuSiQue by way of IRCoT, CC BY 4.0",
)
def musique(use: Use, variant: str = "") -> Iterator[Question]:
    """MuSiQue: questions of several hops about whole paragraphs; a sample."""
    yield from whole_paragraphs("musique", MUSIQUE_DATA, use)


DUREADER_DATA = "rank/dureader"
SNIPPET = 100
"""Characters of a text that serve, after its title, as the snippet."""


def shuffled(key: str, question: str, texts: Sequence[tuple[str, str]]) -> tuple[list[Document], list[str]]:
    """Return texts as documents in an order that only their question decides, and the address of each text.

    The addresses do not reveal the places of the texts.

    :param texts: title and text of each.
    """
    order = list(range(len(texts)))
    seeded_by(key + question).shuffle(order)
    urls = [f"https://example.org/{digest(question + str(number))[:12]}" for number in order]
    documents = [
        Document(url, text, "text/plain", title, url, f"{title} {text[:SNIPPET]}")
        for url, (title, text) in zip(urls, (texts[number] for number in order), strict=True)
    ]
    return documents, [urls[order.index(number)] for number in range(len(texts))]


@task(
    "dureader",
    title="Chinese questions about five pages, some of which annotators chose",
    metrics=("ndcg", "hit@1", "hit@3", "rouge_l", "bleu4"),
    files=(f"{DUREADER_DATA}.jsonl.xz",),
    source="DuReader 2.0 demo, Apache-2.0",
)
def dureader(use: Use, variant: str = "") -> Iterator[Record]:
    """DuReader: Chinese questions about five pages each, some of which annotators chose; the pages are shuffled.

    **Title and first characters stand for a search engine's snippet**, because the set has none.
    """
    for row in rows(DUREADER_DATA):
        asked = row.text("question")
        if not use(asked):
            continue
        texts = [(page.text("title"), "\n".join(page.texts("paragraphs"))) for page in row.rows("documents")]
        documents, urls = shuffled(asked, asked, texts)
        if not row.texts("answers") and not any(page["is_selected"] for page in row.rows("documents")):
            yield LeftOut(asked, str(row["id"]), "annotators chose no page and wrote no answer")
            continue
        chosen = [number for number, page in enumerate(row.rows("documents")) if page["is_selected"]]
        yield Question(
            id=str(row["id"]),
            task="dureader",
            page=asked,
            documents=documents,
            question=asked,
            kind="long",
            references=row.texts("answers"),
            gold=tuple(Span(urls[number], 0, len(texts[number][1])) for number in chosen),
        )


NQ_PASSAGES_DATA = "rank/nq_passages"
POOL = 10


@task(
    "nq_passages",
    title="Natural Questions over ten passages, one of which answers",
    metrics=("ndcg", "mrr", "hit@1", "answer", "em_share", "hit1"),
    files=(f"{NQ_PASSAGES_DATA}.jsonl.xz",),
    source="NQ-open by way of lost-in-the-middle, CC BY-SA 3.0",
)
def nq_passages(use: Use, variant: str = "") -> Iterator[Question]:
    """Natural Questions over passages: the passage that answers, and the nine hardest others by BM25, shuffled."""
    found = list(rows(NQ_PASSAGES_DATA))
    known = {row.text("gold_text"): row.text("gold_title") for row in found}
    texts = list(known)
    places = {text: place for place, text in enumerate(texts)}
    index: BM25 | None = None
    for number, row in enumerate(found):
        title, asked = row["gold_title"], row.text("question")
        if not use(title):
            continue
        index = index or BM25(texts)
        gold = places[row["gold_text"]]
        hardest = [place for place in np.argsort(-index.scores(asked), kind="stable").tolist() if place != gold]
        pool = [(known[texts[place]], texts[place]) for place in [gold, *hardest[: POOL - 1]]]
        documents, urls = shuffled(title, asked, pool)
        answer, *others = row.texts("answers")
        yield Question(
            id=f"{number}",
            task="nq_passages",
            page=title,
            documents=documents,
            question=asked,
            answers=(answer,),
            aliases={answer: tuple(others)},
            gold=(Span(urls[0], 0, len(pool[0][1])),),
        )


PASSAGES = 5
NOISE = (0.0, 0.2, 0.4, 0.6, 0.8)


@task(
    "rgb",
    title="passages with noise, and passages whose answer is wrong",
    metrics=("answer", "em_share"),
    files=("rank/rgb_en_fact.jsonl.xz|rank/rgb_zh_fact.jsonl.xz",),
    source="RGB, CC BY-NC-SA 4.0; internal use",
    variants=("en", "zh", "en_counterfactual", "zh_counterfactual"),
    variant_metrics={"en_counterfactual": ("em_share",), "zh_counterfactual": ("em_share",)},
)
def rgb(use: Use, variant: str = "en") -> Iterator[Record]:
    """RGB: passages of a search engine, some of which answer the question.

    ``rgb:en`` and ``rgb:zh`` ask with noise: of five passages one to five answer (the label ``noise`` is the share of
    those that do not). ``rgb:en_counterfactual`` and ``rgb:zh_counterfactual`` give passages whose answer was made
    wrong.
    """
    language, _, wrong = variant.partition("_")
    for row in rows(f"rank/rgb_{language}_fact"):
        asked = row.text("query")
        if not use(asked):
            continue
        if wrong:
            yield _question(row, variant, "counterfactual", row.texts("positive_wrong")[:PASSAGES])
            continue
        good, noise = row.texts("positive"), row.texts("negative")
        for share in NOISE:
            others = round(PASSAGES * share)
            if len(good) >= PASSAGES - others and len(noise) >= others:
                yield _question(row, variant, f"{share:.1f}", [*good[: PASSAGES - others], *noise[:others]])
            else:
                yield LeftOut(asked, f"{row['id']}#{share:.1f}", "it has too few passages for this share of noise")


def _question(row: Row, variant: str, noise: str, texts: Sequence[str]) -> Question:
    asked, key = row.text("query"), f"{row['id']}#{noise}"
    order = list(texts)
    seeded_by(f"{asked}\0{noise}").shuffle(order)
    spellings = _answers(row)
    return Question(
        id=key,
        task=f"rgb:{variant}",
        page=asked,
        documents=[Document(f"{key}/{number}", text, "text/plain") for number, text in enumerate(order)],
        question=asked,
        answers=tuple(answer for answer, *_ in spellings),
        aliases={answer: tuple(others) for answer, *others in spellings if others},
        labels={"noise": noise},
        prompt="several" if len(spellings) > 1 else "",
    )


def _answers(row: Row) -> list[list[str]]:
    """Return the spellings of each answer: all items of a list are wanted, and an item can be a list of spellings.

    :raises DataWrong: an answer is neither a text nor a list of texts.
    """
    wanted = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
    found = [item if isinstance(item, list) else [item] for item in wanted]
    if not found or not all(item and all(isinstance(text, str) and text for text in item) for item in found):
        raise row.wrong("'answer' must be a text, or a list of texts and lists of texts")
    return found
