"""Make packed samples from pages: train the tokenizer, make the page parts, tokenize them.

Only pages of the dev half are read. A part of them is held back for validation.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

import prunus
from prunus.core.registry import make_engine
from prunus_evals import data, split, tasks
from prunus_evals.records import Question
from prunus_train.data import contexts
from prunus_train.data.contexts import USUAL, Part, Passage, Sizes
from prunus_train.data.form import content, form_of
from prunus_train.data.pruner import read as read_samples
from prunus_train.packed import Ask, Packer

TASKS = ("table_qa", "websrc", "nq")
WINDOW = 2048
"""Tokens that the small model can read."""

CONTENT_TOKENS = 24
"""Tokens of a block's content after its path at most; the paper appends all of it, as an extra signal."""

Progress = Callable[[str, int, int], None]


def held_back(page: str) -> bool:
    """Return whether a page of the dev half is held back for validation (three in sixteen)."""
    return split.digest(page)[1] in "012"


def pages(validation: bool) -> list[list[Question]]:
    """Return the questions of the dev half by page: those of the validation pages, or of the training pages."""
    found = [page for name in TASKS for page in tasks.load(name, "dev")]
    return [page for page in found if held_back(page[0].page) == validation]


def passages() -> list[Passage]:
    """Return real questions with their passages, without passages of a title that a page of the report half has."""
    barred = {_plain(row["title"]) for row in data.rows("page_qa/nq") if split.half(row["doc_id"]) == "report"}
    barred |= {_plain(row["title"]) for row in data.rows("table_qa/questions") if split.half(row["page"]) == "report"}
    return [
        Passage(row["gold_title"], row["gold_text"], row["question"])
        for row in data.rows("rank/nq_passages")
        if split.half(row["gold_title"]) == "dev" and _plain(row["gold_title"]) not in barred
    ]


def _plain(title: str) -> str:
    title = re.sub(r"\s*-\s*wikipedia$", "", title.casefold())
    return re.sub(r"\W+", " ", title).strip()


def corpus(progress: Progress | None = None) -> Iterator[str]:
    """Yield the texts for training the tokenizer: the numbered training pages, their questions, and the passages."""
    known = pages(validation=False)
    for number, page in enumerate(known, 1):
        documents = prunus.read(prunus.Page(content=page[0].html, media_type="text/html"))
        form = form_of(documents.blocks(48), "htmlrag")
        yield form.html[:200_000]  # so that no single page decides the vocabulary
        yield from (question.question for question in page)
        if progress is not None:
            progress("tokenizer", number, len(known))
    for passage in passages():
        yield f"{passage.title} {passage.text} {passage.question}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The amount of data to make.

    :param parts: page parts to try for each page.
    :param passage_parts: pages to make from passages.
    :param each: questions of a part at most.
    :param sizes: sizes of page parts.
    :param longest: tokens of a page part at most; a longer part is dropped.
    """

    parts: int = 100
    passage_parts: int = 3000
    each: int = 6
    longest: int = 1500
    sizes: Sizes = USUAL


class Encoder:
    """Tokenizes page parts.

    :param tokenizer: of the library ``tokenizers``.
    :param prompt: name of the prompt.
    """

    def __init__(self, tokenizer: Any, prompt: str = "bare") -> None:
        self._tokenizer = tokenizer
        self._prompt = prompt
        form = form_of(prunus.read("<p>a</p><p>b</p>").blocks(1), prompt)
        self._tail_text = form.question_part("Q")[1:]
        self.tail = self._encode(self._tail_text)

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode(self, part: Part) -> tuple[list[int], list[Ask], list[list[int]]]:
        """Return the tokens of a page part, of its questions, and of the paths of its blocks."""
        form = form_of(part.blocks, self._prompt)
        asks = [
            Ask(
                self._encode(form.question_part(question.question).removesuffix(self._tail_text)),
                self._encode(form.paths[question.target]),
                self._encode(content(part.blocks, question.target)[:400])[:CONTENT_TOKENS],
                question.kind,
            )
            for question in part.asked
        ]
        return self._encode(form.page_part), asks, [self._encode(path) for path in form.paths]


def make(path: Path, encoder: Encoder, plan: Plan, seed: int, progress: Progress | None = None) -> int:
    """Write packed samples of the training pages and return the number of page parts.

    The same seed gives the same file.
    """
    packer = Packer(encoder.tail)
    for part in _parts(pages(validation=False), plan, seed, progress):
        _add(packer, encoder, part, plan)
    packer.write(path)
    return len(packer)


def make_validation(path: Path, encoder: Encoder, plan: Plan) -> int:
    """Write packed samples of real questions about the validation pages; return the number of page parts."""
    packer = Packer(encoder.tail)
    chance = random.Random(0)
    for page in pages(validation=True):
        for part in contexts.of_page(page, 36, 2, chance, plan.sizes):
            real = [question for question in part.asked if question.kind == 1]
            if real:
                _add(packer, encoder, Part(part.blocks, real), plan)
    packer.write(path)
    return len(packer)


def _parts(known: Sequence[list[Question]], plan: Plan, seed: int, progress: Progress | None) -> Iterator[Part]:
    for number, page in enumerate(known, 1):
        chance = random.Random(f"{seed} {page[0].page}")
        yield from contexts.of_page(page, plan.parts, plan.each, chance, plan.sizes)
        if progress is not None:
            progress("pages", number, len(known))
    if plan.passage_parts:
        chance = random.Random(f"{seed} passages")
        yield from contexts.of_passages(passages(), plan.passage_parts, plan.each, chance, plan.sizes)


def _add(packer: Packer, encoder: Encoder, part: Part, plan: Plan) -> None:
    page, asks, paths = encoder.encode(part)
    if len(page) <= plan.longest:
        packer.add(page, asks, paths)


def make_all(
    folder: Path, seeds: Sequence[int], plan: Plan, vocabulary: int, prompt: str, progress: Progress | None = None
) -> None:
    """Write all training data into a folder; existing files are kept."""
    from tokenizers import Tokenizer

    from prunus_train import tokenizer as words

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "vectors.safetensors").exists():
        made = words.train(corpus(progress), vocabulary)
        words.save(made, folder, WINDOW)
        vectors = words.start_vectors(made, make_engine("embedder", "static"))
        save_file({"vectors": vectors}, str(folder / "vectors.safetensors"))
    encoder = Encoder(Tokenizer.from_file(str(folder / "tokenizer.json")), prompt)
    if not (folder / "valid.xz").exists():
        make_validation(folder / "valid.xz", encoder, plan)
    for seed in seeds:
        path = folder / f"train-{seed:02d}.xz"
        if not path.exists():
            make(path, encoder, plan, seed, progress)


def from_samples(samples: Path, folder: Path, base: str, window: int = 35_000) -> tuple[int, int]:
    """Pack the paper's samples for a model of ``transformers``, with the model's tokenizer and chat template.

    :param samples: a file of :mod:`prunus_train.data.pruner`.
    :param folder: receives ``train-00.xz`` and the tokenizer.
    :param base: folder of the model.
    :param window: tokens of a sample at most; a longer sample is left out (HtmlRAG, Appendix B: 35,000).
    :returns: the number of packed samples, and of samples that are too long.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True, trust_remote_code=False)
    packer, long = Packer([]), 0
    for row in read_samples(samples):
        text = row["page_part"] + row["question_part"]
        if tokenizer.chat_template:
            turn = [{"role": "user", "content": text}]
            text = str(tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))
            prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
        else:
            prompt = tokenizer(f"{text}\n")["input_ids"]
        path, content_ids = (
            tokenizer(part, add_special_tokens=False)["input_ids"]
            for part in (row["paths"][row["target"]], row["content"])
        )
        if len(prompt) + len(path) + len(content_ids) > window:
            long += 1
            continue
        packer.add(prompt[:-1], [Ask(prompt[-1:], path, content_ids, 1)])
    folder.mkdir(parents=True, exist_ok=True)
    packer.write(folder / "train-00.xz")
    tokenizer.save_pretrained(str(folder))
    return len(packer), long
