"""A first state in which a small model already looks words up: what training would take hours to find.

To name a block, a model must (1) know for each word of the page which numbered tag it stands in, (2) match
the question's words with the page's, (3) write the steps that the matched words carry. Four layers are
wired for it by hand, and training goes on from there:

1. A head looks one token back: the number that closes a tag learns the tag's name.
2. Every word looks for the nearest tag before it, once among containers (tables, lists, divisions), once
   among leaves (rows, paragraphs), and takes its name and number along. ``Question:`` counts as both, so that
   a question's words carry the mark of the question instead.
3. A question's words look for their like in the page. A word that stands in many places takes a little of
   each, one that stands in one place all of it: what inverse document frequency does for BM25. A word that the
   page has not looks at the first token, which says nothing.
4. Where a step of the path is to be written, what the question's words brought together is read out: the
   container's step, or the leaf's, most of all from words whose container is the one already written.

The vector of a token: 120 numbers for the word, 60 for a step, 60 for the container's step, 16 marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prunus_train.errors import DataBroken
from prunus_train.presets import Shape
from prunus_train.tokenizer import ASK, CLOSED, CONTAINERS, LEAVES, TAIL

HIDDEN, HEAD = 256, 64
WORD, STEP, CONTAINER = slice(0, 120), slice(120, 180), slice(180, 240)
EVER, BEFORE_C, BEFORE_L, IS_C, IS_L, WRITES_C, WRITES_L, NOWHERE, ASKED, ASKS, FILL, UNMET = range(240, 252)
"""Marks: always; a container's name, a leaf's; the end of either; what is written next; the first token; a word of the
question; the token that opens the question; length that says nothing; a word that the page has not."""

_EVER, _REST = 0.5, 1.2
"""Every vector has the same length, so that layer normalisation treats all alike."""

_FREE = 10
"""Pairs of a head's numbers from here on hardly turn within the window: they compare content, not distance."""

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Gains:
    """How sharply the heads look, in nats, and how much they write.

    :param back: for the token before.
    :param tag, near, nearer: for tags of the right kind; for each the nearer one, far and close by.
    :param like, nowhere: for a word's like; for the first token, where there is none.
    :param asked, unmet: against words of the page, and against words of the question that the page has not.
    :param idle: for the first token where there is nothing to write.
    :param same: for words whose container is already written.
    :param carry, vote, write: what layers 2, 3 and 4 write.
    """

    back: float = 25.0
    tag: float = 200.0
    near: float = 120.0
    nearer: float = 40.0
    like: float = 24.0
    nowhere: float = 15.0
    asked: float = 25.0
    idle: float = 10.0
    unmet: float = 3.0
    same: float = 3.0
    carry: float = 1.0
    vote: float = 0.7
    write: float = 3.0


def vectors(vocabulary: dict[str, int], words: NDArray[np.floating[Any]], seed: int = 0) -> Matrix:
    """Return the first vector of every token, float32 [tokens, 256]."""
    chance = np.random.default_rng(seed)
    found = np.zeros((len(words), HIDDEN), np.float32)
    found[:, WORD] = words[:, WORD]
    codes = _codes(vocabulary, chance)
    for text, place in vocabulary.items():
        if text not in codes and text not in (ASK, TAIL, CLOSED):
            continue
        found[place] = 0
        if text in codes:
            found[place, STEP] = codes[text]
        name = text[1:]
        if text[0] == "<" and text[-1] != ">" and (name in CONTAINERS or name in LEAVES):
            found[place, CONTAINER] = codes[text]
            for mark in (BEFORE_C, WRITES_C) if name in CONTAINERS else (BEFORE_L, WRITES_L):
                found[place, mark] = 1.0
        if text == "<body>":
            found[place, [WRITES_C, WRITES_L]] = 1.0
        if text == "<html>":
            found[place, NOWHERE] = 1.0
    rest = np.linalg.norm(found, axis=1, keepdims=True)
    found *= _REST / np.maximum(rest, 1e-6)
    reach = 16 / (_EVER**2 + _REST**2) ** 0.5
    for token, marks in ((ASK, (IS_C, IS_L)), (TAIL, (IS_C, IS_L)), (CLOSED, (IS_C,))):
        own = found[vocabulary[token]]
        own[:] = 0
        own[list(marks)] = _closing_mark() / reach
        own[ASKS] = 0.6 if token == ASK else 0.0
        own[FILL] = (_REST**2 - float((own**2).sum())) ** 0.5
    found[:, EVER] = _EVER
    return found


def _codes(vocabulary: dict[str, int], chance: np.random.Generator) -> dict[str, Matrix]:
    """Return a direction for each tag and each closing number: the commonest at right angles to each other."""
    tags = [f"<{name}" for name in ("table", "tr", "p", "div", "text", "li", "ul", "h2", "h3", "dl", "td", "h4")]
    first = [*tags, "<html>", "<body>", "<tbody>", ">", *(f"{number}>" for number in range(1, 45))]
    others = [one for one in vocabulary if one not in first and _is_step(one)]
    square, _ = np.linalg.qr(chance.standard_normal((60, 60)))
    found = {token: square[place].astype(np.float32) for place, token in enumerate(first) if token in vocabulary}
    for token in sorted(others):
        code = chance.standard_normal(60).astype(np.float32)
        found[token] = code / np.linalg.norm(code)
    return found


def _is_step(text: str) -> bool:
    """Tell whether a token is part of a path: a tag, or what closes one."""
    tag = text[0] == "<" and len(text) > 1 and text != CLOSED
    return tag or text == ">" or (text[:-1].isdigit() and text[-1] == ">")


_TAG, _MARK = 0.8, 0.85
"""What the first layer writes behind a tag's name: the name's direction, and the mark of its kind."""


def _closing_mark() -> float:
    """Return the mark of a closing number as the second layer reads it."""
    length = (_EVER**2 + _REST**2 + _TAG**2 + _MARK**2) ** 0.5
    return float(16 * _MARK / length)


def wire(model: Any, shape: Shape, vocabulary: dict[str, int], words: NDArray[np.floating[Any]], gains: Gains) -> None:
    """Set the weights of a Llama of four layers or more; what is not wired starts small and at chance.

    :raises DataBroken: the shape is not the one that is wired, or the tokenizer is an older one.
    """
    import torch

    if shape.hidden != HIDDEN or shape.heads * HEAD != HIDDEN or shape.layers < 4:
        raise DataBroken(f"wired models have {HIDDEN} hidden units, {HIDDEN // HEAD} heads and 4 layers or more")
    missing = [token for token in (ASK, TAIL, CLOSED, "<body>", "1>") if token not in vocabulary]
    if missing:
        raise DataBroken(f"the tokenizer has no token {missing[0]!r}; make the data again with `prunus train pack`")
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.from_numpy(vectors(vocabulary, words)))
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.mul_(0.1)
            layer.mlp.down_proj.weight.mul_(0.1)
        for layer, heads in zip(model.model.layers, _layers(shape.theta, gains), strict=False):  # further ones: chance
            for number, head in heads.items():
                _set(layer.self_attn, number, head, torch)


def _set(attention: Any, number: int, head: _Head, torch: Any) -> None:
    rows = slice(number * HEAD, (number + 1) * HEAD)
    for projection, matrix in ((attention.q_proj, head.q), (attention.k_proj, head.k), (attention.v_proj, head.v)):
        projection.weight[rows] = torch.from_numpy(matrix)
    attention.o_proj.weight[:, rows] = torch.from_numpy(head.o)


class _Head:
    """The four matrices of a head, filled part by part."""

    def __init__(self, theta: float) -> None:
        self.q, self.k, self.v = (np.zeros((HEAD, HIDDEN), np.float32) for _ in range(3))
        self.o = np.zeros((HIDDEN, HEAD), np.float32)
        self.turn = theta ** (-np.arange(HEAD // 2) / (HEAD // 2))

    def distance(self, pair: int, angle: float, ask: tuple[int, float], answer: tuple[int, float], nats: float) -> None:
        """Score a key by how far back it is: ``nats * cos(angle + turn * distance)``.

        :param ask, answer: the mark that the query and the key have, and how large it is when it is read.
        """
        size = (8 * nats) ** 0.5
        self.q[pair, ask[0]] += size / ask[1] * np.cos(angle)
        self.q[pair + HEAD // 2, ask[0]] += size / ask[1] * np.sin(angle)
        self.k[pair, answer[0]] += size / answer[1]

    def mark(self, row: int, ask: tuple[int, float], answer: tuple[int, float], nats: float) -> None:
        """Add nats where the query has one mark and the key another."""
        size = (8 * abs(nats)) ** 0.5
        self.q[row, ask[0]] += size / ask[1]
        self.k[row, answer[0]] += float(np.sign(nats)) * size / answer[1]

    def copy(self, source: slice, target: slice, gain: float, first: int = 0) -> None:
        """Write what stands at one place of the token that is looked at to another place here."""
        for place, (read, write) in enumerate(
            zip(range(*source.indices(HIDDEN)), range(*target.indices(HIDDEN)), strict=True)
        ):
            self.v[first + place, read] = 1.0
            self.o[write, first + place] = gain


def _one(mark: int) -> slice:
    return slice(mark, mark + 1)


def _layers(theta: float, gains: Gains) -> list[dict[int, _Head]]:
    first = 16 / (_EVER**2 + _REST**2) ** 0.5  # how layer normalisation scales a vector in the first layer
    return [_name(theta, gains, first), _carry(theta, gains, first), _match(theta, gains), _write(theta, gains)]


def _name(theta: float, gains: Gains, scale: float) -> dict[int, _Head]:
    """Layer 1: what closes a tag learns its name from the token before."""
    head = _Head(theta)
    ever = (EVER, _EVER * scale)
    for pair in range(4):
        head.distance(pair, -float(head.turn[pair]), ever, ever, gains.back)
    part = _REST / 2 * scale  # a name has four parts: step, container, two marks
    head.copy(CONTAINER, STEP, _TAG / part)
    for place, (source, target) in enumerate(((BEFORE_C, IS_C), (BEFORE_L, IS_L))):
        head.copy(_one(source), _one(target), _MARK / part, 60 + place)
    return {0: head}


def _carry(theta: float, gains: Gains, scale: float) -> dict[int, _Head]:
    """Layer 2: words take the step of the nearest container and of the nearest leaf along."""
    found = {}
    closing = _closing_mark()
    for number, (mark, target) in enumerate(((IS_C, CONTAINER), (IS_L, STEP))):
        head = _Head(theta)
        ask, answer = (EVER, _EVER * scale), (mark, closing)
        head.mark(31, ask, answer, gains.tag)
        head.distance(9, np.pi / 2, ask, answer, gains.near)
        if mark == IS_L:
            head.distance(7, np.pi / 2, ask, answer, gains.nearer)
        length = (_REST**2 + _TAG**2) ** 0.5 / _MARK * closing
        head.copy(STEP, target, gains.carry / length)
        if mark == IS_L:
            head.copy(_one(ASKS), _one(ASKED), 0.8 / (0.6 * scale), 60)
        found[number] = head
    return found


_WORDS, _QUESTION = 8.6, 10.2
"""How layer normalisation scales words of the page and of the question once they carry their tags."""


def _match(theta: float, gains: Gains) -> dict[int, _Head]:
    """Layer 3: words of the question look for their like; twice two heads, for container and leaf."""
    found = {}
    chance = np.random.default_rng(1)
    rows = [*range(_FREE, 31), *range(_FREE + 32, 63)]
    for pair in range(2):
        square, _ = np.linalg.qr(chance.standard_normal((120, 120)))
        share = len(rows) / 120  # of a vector's square length that is seen
        size = (8 * gains.like / (_WORDS * _QUESTION * share * _REST**2)) ** 0.5
        for number, target in ((2 * pair, CONTAINER), (2 * pair + 1, STEP)):
            head = _Head(theta)
            head.q[rows, WORD] = head.k[rows, WORD] = size * square[: len(rows)]
            ask = (EVER, _EVER * _QUESTION)
            head.mark(31, ask, (NOWHERE, 0.85 * 9), gains.nowhere)
            head.mark(63, ask, (ASKED, 0.8 * _QUESTION), -40.0)
            head.copy(target, target, gains.vote / _WORDS)
            if target == STEP:
                head.copy(_one(NOWHERE), _one(UNMET), 0.5 / (0.85 * 9), 60)
            found[number] = head
    return found


def _write(theta: float, gains: Gains) -> dict[int, _Head]:
    """Layer 4: where a step is to be written, the votes of the question's words are read out."""
    found = {}
    for number, (source, marks) in enumerate(((CONTAINER, (WRITES_C,)), (STEP, (WRITES_L, IS_C)))):
        head = _Head(theta)
        for mark in marks:
            head.mark(31, (mark, 0.6 * 8), (EVER, _EVER * 8), -gains.asked)
        head.k[31, ASKED] = -head.k[31, EVER] * _EVER / 0.8  # nothing is taken off for words of the question
        head.mark(62, (EVER, _EVER * 8), (UNMET, 8), -gains.unmet)
        head.mark(63, (EVER, _EVER * 8), (NOWHERE, 0.85 * 9), gains.idle)
        if source == STEP:
            rows = [*range(_FREE, 31), *range(_FREE + 32, 62)]
            size = (8 * gains.same) ** 0.5 / 8
            for row, place in zip(rows, range(CONTAINER.start, CONTAINER.stop), strict=False):  # 41 of 60: enough
                head.q[row, place] = head.k[row, place] = size
        more = 1.6 if source == CONTAINER else 1.0  # what stands in a container begins with the container
        head.copy(source, STEP, more * gains.write / 8)
        found[number] = head
    return found
