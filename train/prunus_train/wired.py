"""Hand-wired first weights, with which a small model looks words up before any training; training alone takes hours.

To name a block, a model must (1) know the numbered tag around each word of the page, (2) match the question's words
with the page's words, (3) write the steps of the matched words' tags. Four layers are wired by hand for this, and
training starts from there:

1. A head attends one token back: the number of a tag receives the tag's name.
2. Every word attends to the nearest tag before it, once among containers (tables, lists, divisions), once among leaves
   (rows, paragraphs), and copies its name and number. ``Question:`` counts as both, so that the question's words
   carry the mark of the question instead.
3. The question's words attend to equal words of the page. A word with many places copies a little from each place, a
   word with one place copies all from it, which is the effect of inverse document frequency in BM25. A word that the
   page does not have attends to the first token, which carries nothing.
4. Where a step of the path is to be written, a head reads what the question's words have copied: the step of the
   container, or of the leaf; most of all from words whose container is the one already written.

The vector of a token has 120 numbers for the word, 60 for a step, 60 for the container's step, and 16 marks.
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
"""The marks, by index: EVER is in every token; BEFORE_C and BEFORE_L mark the name of a container's and of a leaf's
tag, IS_C and IS_L the number of one; WRITES_C and WRITES_L: the next step is a container's or a leaf's; NOWHERE: the
first token; ASKED: a word of the question; ASKS: the token that opens the question; FILL only fills up the length;
UNMET: a word of the question that the page does not have."""

_EVER, _REST = 0.5, 1.2
"""Lengths of the constant mark and of the rest: every vector has the same length, so that layer normalisation scales
all vectors equally."""

_FREE = 10
"""From this pair of a head's dimensions on, the rotary embedding hardly turns within the window: these pairs compare
content, not distance."""

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Gains:
    """The attention scores of the heads, in nats, and the scales of their outputs.

    :param back: for the previous token.
    :param tag: for tags of the right kind.
    :param near, nearer: for the nearer of two tags, at large and at small distances.
    :param like: for an equal word.
    :param nowhere: for the first token, which wins where there is no equal word.
    :param asked: against words of the page.
    :param unmet: against words of the question that the page does not have.
    :param idle: for the first token, which wins where there is nothing to write.
    :param same: for words whose container is already written.
    :param carry, vote, write: scale of the outputs of layers 2, 3 and 4.
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
    """Return the first vector of every token, float32 [tokens, 256].

    :param vocabulary: token → id.
    :param words: vectors of the words, [tokens, at least 120]; see :func:`.tokenizer.start_vectors`.
    """
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
        vector = found[vocabulary[token]]
        vector[:] = 0
        vector[list(marks)] = _closing_mark() / reach
        vector[ASKS] = 0.6 if token == ASK else 0.0
        vector[FILL] = (_REST**2 - float((vector**2).sum())) ** 0.5
    found[:, EVER] = _EVER
    return found


def _codes(vocabulary: dict[str, int], chance: np.random.Generator) -> dict[str, Matrix]:
    """Return a direction [60] for each tag and each tag number; the 60 commonest are orthogonal to each other."""
    tags = [f"<{name}" for name in ("table", "tr", "p", "div", "text", "li", "ul", "h2", "h3", "dl", "td", "h4")]
    first = [*tags, "<html>", "<body>", "<tbody>", ">", *(f"{number}>" for number in range(1, 45))]
    others = [token for token in vocabulary if token not in first and _is_step(token)]
    square, _ = np.linalg.qr(chance.standard_normal((60, 60)))
    found = {token: square[place].astype(np.float32) for place, token in enumerate(first) if token in vocabulary}
    for token in sorted(others):
        code = chance.standard_normal(60).astype(np.float32)
        found[token] = code / np.linalg.norm(code)
    return found


def _is_step(text: str) -> bool:
    """Return whether a token is part of a path: a tag, its name, its number or its end."""
    tag = text[0] == "<" and len(text) > 1 and text != CLOSED
    return tag or text == ">" or (text[:-1].isdigit() and text[-1] == ">")


_TAG, _MARK = 0.8, 0.85
"""Lengths of the first layer's output at a tag's number: of the name's direction, and of the mark of its kind."""


def _closing_mark() -> float:
    """Return the size of the mark of a tag's number as the second layer reads it, after layer normalisation."""
    length = (_EVER**2 + _REST**2 + _TAG**2 + _MARK**2) ** 0.5
    return float(16 * _MARK / length)


def wire(model: Any, shape: Shape, vocabulary: dict[str, int], words: NDArray[np.floating[Any]], gains: Gains) -> None:
    """Set the weights of a Llama of four layers or more; weights that are not wired stay random and are made small.

    :param words: see :func:`vectors`.
    :raises DataBroken: the shape is not that of a wired model, or the tokenizer is too old.
    """
    import torch

    if shape.hidden != HIDDEN or shape.heads * HEAD != HIDDEN or shape.layers < 4:
        raise DataBroken(f"a wired model needs {HIDDEN} hidden units, {HIDDEN // HEAD} heads and 4 layers or more")
    missing = [token for token in (ASK, TAIL, CLOSED, "<body>", "1>") if token not in vocabulary]
    if missing:
        raise DataBroken(f"the tokenizer has no token {missing[0]!r}; make the data again with `prunus train pack`")
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(torch.from_numpy(vectors(vocabulary, words)))
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.mul_(0.1)
            layer.mlp.down_proj.weight.mul_(0.1)
        for layer, heads in zip(
            model.model.layers, _layers(shape.theta, gains), strict=False
        ):  # further layers stay random
            for number, head in heads.items():
                _set(layer.self_attn, number, head, torch)


def _set(attention: Any, number: int, head: _Head, torch: Any) -> None:
    rows = slice(number * HEAD, (number + 1) * HEAD)
    for projection, matrix in ((attention.q_proj, head.q), (attention.k_proj, head.k), (attention.v_proj, head.v)):
        projection.weight[rows] = torch.from_numpy(matrix)
    attention.o_proj.weight[:, rows] = torch.from_numpy(head.o)


class _Head:
    """The four matrices of an attention head, filled part by part."""

    def __init__(self, theta: float) -> None:
        self.q, self.k, self.v = (np.zeros((HEAD, HIDDEN), np.float32) for _ in range(3))
        self.o = np.zeros((HIDDEN, HEAD), np.float32)
        self.turn = theta ** (-np.arange(HEAD // 2) / (HEAD // 2))

    def distance(self, pair: int, angle: float, ask: tuple[int, float], answer: tuple[int, float], nats: float) -> None:
        """Add a score that depends on how far back the key is: ``nats * cos(angle + turn * distance)``.

        :param ask, answer: the mark of the query and of the key, and its size when the layer reads it.
        """
        size = (8 * nats) ** 0.5
        self.q[pair, ask[0]] += size / ask[1] * np.cos(angle)
        self.q[pair + HEAD // 2, ask[0]] += size / ask[1] * np.sin(angle)
        self.k[pair, answer[0]] += size / answer[1]

    def mark(self, row: int, ask: tuple[int, float], answer: tuple[int, float], nats: float) -> None:
        """Add a score of ``nats`` where the query has the mark ``ask`` and the key the mark ``answer``."""
        size = (8 * abs(nats)) ** 0.5
        self.q[row, ask[0]] += size / ask[1]
        self.k[row, answer[0]] += float(np.sign(nats)) * size / answer[1]

    def copy(self, source: slice, target: slice, gain: float, first: int = 0) -> None:
        """Copy the dimensions ``source`` of the attended token to the dimensions ``target`` of this token."""
        for place, (read, write) in enumerate(
            zip(range(*source.indices(HIDDEN)), range(*target.indices(HIDDEN)), strict=True)
        ):
            self.v[first + place, read] = 1.0
            self.o[write, first + place] = gain


def _dimension(mark: int) -> slice:
    return slice(mark, mark + 1)


def _layers(theta: float, gains: Gains) -> list[dict[int, _Head]]:
    first = 16 / (_EVER**2 + _REST**2) ** 0.5  # the scale of layer normalisation in the first layer
    return [_name(theta, gains, first), _carry(theta, gains, first), _match(theta, gains), _write(theta, gains)]


def _name(theta: float, gains: Gains, scale: float) -> dict[int, _Head]:
    """Return the head of layer 1: a tag's number receives the tag's name from the previous token."""
    head = _Head(theta)
    ever = (EVER, _EVER * scale)
    for pair in range(4):
        head.distance(pair, -float(head.turn[pair]), ever, ever, gains.back)
    part = _REST / 2 * scale  # a name has four parts: step, container, two marks
    head.copy(CONTAINER, STEP, _TAG / part)
    for place, (source, target) in enumerate(((BEFORE_C, IS_C), (BEFORE_L, IS_L))):
        head.copy(_dimension(source), _dimension(target), _MARK / part, 60 + place)
    return {0: head}


def _carry(theta: float, gains: Gains, scale: float) -> dict[int, _Head]:
    """Return the heads of layer 2: words copy the steps of the nearest container and the nearest leaf."""
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
            head.copy(_dimension(ASKS), _dimension(ASKED), 0.8 / (0.6 * scale), 60)
        found[number] = head
    return found


_WORDS, _QUESTION = 8.6, 10.2
"""The scale of layer normalisation in layer 3 for words of the page and of the question, which carry their tags."""


def _match(theta: float, gains: Gains) -> dict[int, _Head]:
    """Return the heads of layer 3: the question's words attend to equal words; two for container, two for leaf."""
    found = {}
    chance = np.random.default_rng(1)
    rows = [*range(_FREE, 31), *range(_FREE + 32, 63)]
    for pair in range(2):
        square, _ = np.linalg.qr(chance.standard_normal((120, 120)))
        share = len(rows) / 120  # share of a word vector's squared length that the head compares
        size = (8 * gains.like / (_WORDS * _QUESTION * share * _REST**2)) ** 0.5
        for number, target in ((2 * pair, CONTAINER), (2 * pair + 1, STEP)):
            head = _Head(theta)
            head.q[rows, WORD] = head.k[rows, WORD] = size * square[: len(rows)]
            ask = (EVER, _EVER * _QUESTION)
            head.mark(31, ask, (NOWHERE, 0.85 * 9), gains.nowhere)
            head.mark(63, ask, (ASKED, 0.8 * _QUESTION), -40.0)
            head.copy(target, target, gains.vote / _WORDS)
            if target == STEP:
                head.copy(_dimension(NOWHERE), _dimension(UNMET), 0.5 / (0.85 * 9), 60)
            found[number] = head
    return found


def _write(theta: float, gains: Gains) -> dict[int, _Head]:
    """Return the heads of layer 4: where a step is to be written, they read what the question's words have copied."""
    found = {}
    for number, (source, marks) in enumerate(((CONTAINER, (WRITES_C,)), (STEP, (WRITES_L, IS_C)))):
        head = _Head(theta)
        for mark in marks:
            head.mark(31, (mark, 0.6 * 8), (EVER, _EVER * 8), -gains.asked)
        head.k[31, ASKED] = -head.k[31, EVER] * _EVER / 0.8  # cancels the penalty for words of the question
        head.mark(62, (EVER, _EVER * 8), (UNMET, 8), -gains.unmet)
        head.mark(63, (EVER, _EVER * 8), (NOWHERE, 0.85 * 9), gains.idle)
        if source == STEP:
            rows = [*range(_FREE, 31), *range(_FREE + 32, 62)]
            size = (8 * gains.same) ** 0.5 / 8
            for row, place in zip(
                rows, range(CONTAINER.start, CONTAINER.stop), strict=False
            ):  # 41 of the 60 dimensions fit, which is enough
                head.q[row, place] = head.k[row, place] = size
        more = 1.6 if source == CONTAINER else 1.0  # the path of a block in a container begins with the container
        head.copy(source, STEP, more * gains.write / 8)
        found[number] = head
    return found
