"""The whole way from training sets to the files of the embedder ``static``. Long parts go on where they stopped."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save
from tokenizers import Tokenizer

from prunus.core.files import write_bytes
from prunus.core.ports import Embedder
from prunus.core.registry import make_engine
from prunus.models.static_vectors.pieces import Pieces
from prunus_train.static import fit, space, texts, vocabulary

Report = Callable[[str], None]

_VECTORS: Final = "vectors.safetensors"

_LONG: Final = 10
"""Pieces of a passage whose spans serve as questions, at least."""

_SHOWN: Final = 2_000
"""Questions that were learned from whose rank is told beside that of questions that were held back."""

_NO_SPACES: Final = frozenset({"zh", "ja", "ko"})


@dataclass(frozen=True, slots=True)
class StaticSizes:
    """How many texts of each kind are used.

    :param english, foreign: passages with a teacher's vector; of the English ones ``both`` have those of both.
    :param questions, foreign_questions: in English and in other languages; ``both_questions`` have both vectors.
    :param pieces: size of the vocabulary.
    """

    english: int = 61_440
    foreign: int = 12_000
    both: int = 1_792
    questions: int = 8_000
    foreign_questions: int = 2_560
    both_questions: int = 768
    pieces: int = vocabulary.SIZE
    dimensions: int = 256

    def part(self, share: float, pieces: int) -> StaticSizes:
        """Return the sizes of a smaller trial: a share of the texts, and so many pieces."""
        names = ("english", "foreign", "both", "questions", "foreign_questions", "both_questions")
        return replace(self, pieces=pieces, **{name: max(round(getattr(self, name) * share), 40) for name in names})


@dataclass(frozen=True, slots=True)
class TeacherSample:
    """Texts by the teacher that they are shown to, each with the group whose mean is taken off."""

    english: Sequence[tuple[str, str]]
    english_questions: Sequence[tuple[str, str]]
    foreign: Sequence[tuple[str, str]]
    foreign_questions: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class StaticData:
    """What the fitting needs."""

    table: NDArray[np.float32]
    taught: fit.TaughtTexts
    asked: fit.StaticQuestions
    held: fit.StaticQuestions
    passages: fit.Ids


def make(sets: Path, folder: Path, sizes: StaticSizes, plan: fit.FitPlan, report: Report) -> dict[str, float]:
    """Write the vectors and the vocabulary into a folder; return mean reciprocal ranks of gold units.

    Of questions that were held back (``held``) and of some that were learned from, under the first and the last table.

    :param sets: folder of the training sets.
    """
    report("texts: reading")
    passages, pairs = texts.passages(sets), texts.pairs(sets)
    learned = [pair for pair in pairs if not pair.held]
    written = [passage.text for passage in passages]
    written += [text for pair in learned for text in (pair.question, pair.gold)]
    tokenizer = _vocabulary(written, folder, sizes.pieces, report)
    made = prepared(passages, pairs, tokenizer, folder, sizes, plan.seed, report)
    table = fit.fit(made.table, made.taught, made.asked, made.passages, plan, report)
    write_vectors(table, folder)
    rows, scales = quantised(table)
    stored = rows * scales.astype(np.float32)[:, None]
    return {
        "questions": len(made.asked.questions),
        "held_questions": len(made.held.questions),
        "learned_before": fit.accuracy(made.table, made.asked.first(_SHOWN)),
        "learned": fit.accuracy(stored, made.asked.first(_SHOWN)),
        "held_before": fit.accuracy(made.table, made.held),
        "held": fit.accuracy(stored, made.held),
    }


def prepared(
    passages: Sequence[texts.Passage], pairs: Sequence[texts.Pair], tokenizer: Tokenizer, folder: Path,
    sizes: StaticSizes, seed: int, report: Report,
) -> StaticData:  # fmt: skip
    """Return the first table, and what it learns from; the teachers' vectors are kept in the folder."""
    chosen = sample(passages, pairs, sizes, seed)
    first, second = make_engine("embedder", "minilm", threads=1), make_engine("embedder", "multilingual")
    cache = folder / "teachers"
    told = {name: partial(_told, teacher, cache, report) for name, teacher in (("english", first), ("foreign", second))}
    english = told["english"](chosen.english, "document", "English passages")
    asked = told["english"](chosen.english_questions, "query", "English questions")
    both = told["foreign"](chosen.english[: sizes.both], "document", "English passages for both")
    both_asked = told["foreign"](chosen.english_questions[: sizes.both_questions], "query", "questions for both")
    foreign = told["foreign"](chosen.foreign, "document", "other passages")
    foreign_asked = told["foreign"](chosen.foreign_questions, "query", "other questions")
    shared = (
        np.concatenate([english[: len(both)], asked[: len(both_asked)]]), np.concatenate([both, both_asked]),
    )  # fmt: skip
    turned = space.learn(shared, english[: len(foreign)], foreign, sizes.dimensions)
    targets = [turned.first(english), turned.first(asked), turned.second(foreign), turned.second(foreign_asked)]
    targets[0][: len(both)] = turned.both(english[: len(both)], both)
    targets[1][: len(both_asked)] = turned.both(asked[: len(both_asked)], both_asked)
    pieces = Pieces(tokenizer)
    written = [
        text
        for part in (chosen.english, chosen.english_questions, chosen.foreign, chosen.foreign_questions)
        for _, text in part
    ]
    ids = list(pieces.of(written))
    kept = [number for number, row in enumerate(ids) if row]
    taught = fit.TaughtTexts([ids[number] for number in kept], np.concatenate(targets)[kept])
    whole = list(pieces.of([passage.text for passage in passages]))
    pairs_told = list(pieces.of([text for pair in pairs for text in (pair.question, pair.gold)]))
    counts = space.counted([*whole, *pairs_told], tokenizer.get_vocab_size())
    table = space.first_table(
        tokenizer, counts, (first, second), turned, cache, lambda done, total: report(f"pieces: {done} of {total}")
    )
    long = [row for row in whole if len(row) >= _LONG]
    return StaticData(table, taught, asked_of(pairs, pieces, held=False), asked_of(pairs, pieces, held=True), long)


def asked_of(pairs: Sequence[texts.Pair], pieces: Pieces, *, held: bool) -> fit.StaticQuestions:
    """Return the pieces of questions and units, of documents that are held back or of the others."""
    wanted = [pair for pair in pairs if pair.held == held]
    questions, golds = (list(pieces.of([getattr(pair, name) for pair in wanted])) for name in ("question", "gold"))
    found = pieces.of([unit for pair in wanted for unit in pair.beside])
    beside = [[ids for ids in (next(found) for _ in pair.beside) if ids] for pair in wanted]
    kept = [at for at in range(len(wanted)) if questions[at] and golds[at]]
    return fit.StaticQuestions([questions[at] for at in kept], [golds[at] for at in kept], [beside[at] for at in kept])


def sample(
    passages: Sequence[texts.Passage], pairs: Sequence[texts.Pair], sizes: StaticSizes, seed: int
) -> TeacherSample:
    """Choose the texts that the teachers are shown."""
    drawn = random.Random(seed)
    english = [passage for passage in passages if passage.language == "en" and len(passage.text) > 40]
    drawn.shuffle(english)
    foreign = [passage for passage in passages if passage.language != "en" and len(passage.text) > 20]
    foreign = texts.balanced(foreign, 16_000, seed)
    asked: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for pair in pairs:
        if not pair.held:
            asked[pair.language == "en"].append((f"{pair.language} question", pair.question))
    for of in (asked[True], asked[False]):
        drawn.shuffle(of)
    unique = {language: list({text: (group, text) for group, text in of}.values()) for language, of in asked.items()}
    return TeacherSample(
        [(passage.language, _cut(passage)) for passage in english[: sizes.english]],
        unique[True][: sizes.questions],
        [(passage.language, _cut(passage)) for passage in foreign[: sizes.foreign]],
        unique[False][: sizes.foreign_questions],
    )


def _cut(passage: texts.Passage) -> str:
    """Return the beginning of a passage: a teacher's time grows with the length, and a mean needs little."""
    return passage.text[: 90 if passage.language in _NO_SPACES else 240 if passage.language == "en" else 180]


def _told(
    teacher: Embedder, cache: Path, report: Report, texts_: Sequence[tuple[str, str]], kind: str, name: str
) -> NDArray[np.float32]:
    """Return a teacher's vectors without the mean of each language."""
    found = space.embedded(
        teacher, [text for _, text in texts_], "query" if kind == "query" else "document", cache,
        lambda done, total: report(f"{name}: {done} of {total}"),
    )  # fmt: skip
    numbers: dict[str, int] = {}
    groups = np.asarray([numbers.setdefault(group, len(numbers)) for group, _ in texts_], np.int64)
    return space.centred(found, groups)


def _vocabulary(written: Sequence[str], folder: Path, size: int, report: Report) -> Tokenizer:
    """Return the vocabulary of the folder, which is made where there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / vocabulary.FILE).is_file():
        report("vocabulary: as it is in the folder")
        return vocabulary.read(folder)
    report("vocabulary: choosing (a minute)")
    tokenizer = vocabulary.chosen(vocabulary.lower(vocabulary.of_teacher()), written, size)
    vocabulary.write(tokenizer, folder)
    return tokenizer


def quantised(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Return int8 rows and their scales, float16; each row uses the whole range."""
    scales = (np.abs(table).max(1) / 127).astype(np.float16)
    divisors = np.where(scales == 0, 1, scales).astype(np.float32)[:, None]
    return np.clip(np.rint(table / divisors), -127, 127).astype(np.int8), scales


def write_vectors(table: NDArray[np.float32], folder: Path) -> None:
    """Write a table of vectors into a folder, in eight bits."""
    rows, scales = quantised(table)
    write_bytes(folder / _VECTORS, save({"vectors": rows, "scales": scales}))
