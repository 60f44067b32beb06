"""A small tokenizer for new models: lower case, no white space, whole numbers and tags.

It is a byte-pair encoding over words. A step of a path is two tokens, the tag's name and its number (``<div``, ``12>``;
``>`` without a number), so that the numbers of tags differ from the numbers of the text. A tag that seldom leads to a
block is one token (``<td>``). End tags are dropped, except those of numbered containers and tables, which all become
the same token. Case, accents and white space are dropped, because the model chooses a block and never writes text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prunus.core.ports import Embedder

CONTAINERS = "table div ul ol dl section article blockquote main form figure details nav aside header footer".split()
LEAVES = "tr li p text td th dd dt pre hr caption figcaption address summary h1 h2 h3 h4 h5 h6".split()
WHOLE = "html body tbody thead tfoot td th br li dd dt ul ol dl".split()
"""Tags that are one token where they have no number: they enclose the page, or are mostly inside of blocks."""

ASK = "question:"
TAIL = "which block of the page answers it? its path from the root:"
CLOSED = "</div>"
"""The token for the end of any container."""

PIECES = "|".join(
    (
        TAIL.replace("?", r"\?"),
        ASK,
        rf"<(?:{'|'.join(WHOLE)})>",
        CLOSED,
        r"<h[1-6]",
        r"<[a-z][a-z-]*",
        r"\d{1,4}>|>",
        r"\d{1,4}|[^\W\d_]+|[^\w\s]|_",
    )
)
"""The pieces of a text that are kept: the lines of the prompt, tags, numbers, words, single signs."""

UNKNOWN, PAD, BEGIN, END = "[UNK]", "[PAD]", "[BOS]", "[EOS]"
PREFIX = "##"
NUMBERS = 1000
STEPS = 400
SEEN_OFTEN = 400
"""How often the trainer sees each number below NUMBERS, each tag number below STEPS and each tag, so that each of them
becomes a token."""


def train(texts: Iterable[str], size: int = 16_000) -> Any:
    """Return a tokenizer of the library ``tokenizers``, trained on texts.

    :param size: size of the vocabulary.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, continuing_subword_prefix=PREFIX))
    numbered = rf"</(?:(?:{'|'.join(CONTAINERS)})\d+|table)>"
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.BertNormalizer(lowercase=True, strip_accents=True, handle_chinese_chars=True),
            normalizers.Replace(Regex(numbered), f" {CLOSED} "),
            normalizers.Replace(Regex(r"</(?!div>)[a-z][a-z0-9-]*>"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECES), behavior="removed", invert=True)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[UNKNOWN, PAD, BEGIN, END],
        limit_alphabet=600,
        continuing_subword_prefix=PREFIX,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_with_numbers(texts), trainer)
    return tokenizer


def _with_numbers(texts: Iterable[str]) -> Iterator[str]:
    yield from texts
    names = [f"<{name}" for name in (*CONTAINERS, *LEAVES, "html", "body", "tbody")]
    closing = [f"{number}>" for number in range(STEPS)]
    known = [*map(str, range(NUMBERS)), *closing, *names, *(f"<{name}>" for name in WHOLE), CLOSED, ASK, TAIL, ">"]
    line = " ".join(known)
    yield from (line for _ in range(SEEN_OFTEN))


def save(tokenizer: Any, folder: Path, window: int) -> None:
    """Write a tokenizer for ``transformers``; it adds no special tokens around a text."""
    from transformers import PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=UNKNOWN,
        pad_token=PAD,
        bos_token=BEGIN,
        eos_token=END,
        model_max_length=window,
    )
    fast.save_pretrained(str(folder))


def start_vectors(tokenizer: Any, embedder: Embedder, seed: int = 0) -> NDArray[np.float16]:
    """Return a first vector for each token, of unit norm: a mixture of its static embedding and a random vector.

    The random part separates tokens with the same static embedding (12 and 21 are the same mean of digits). It is 40 %
    of the squared length for words, and 90 % for all other tokens.

    :returns: float16 [tokens, dim of the embedder].
    """
    tokens = [tokenizer.id_to_token(place) for place in range(tokenizer.get_vocab_size())]
    plain = [token.removeprefix(PREFIX) for token in tokens]
    known = np.asarray(embedder.embed(plain, "document"), np.float32)
    known -= known.mean(0)
    known /= np.maximum(np.linalg.norm(known, axis=1, keepdims=True), 1e-6)
    chance = np.random.default_rng(seed).standard_normal(known.shape).astype(np.float32)
    chance /= np.linalg.norm(chance, axis=1, keepdims=True)
    worded = np.array([token.isalpha() and not token.startswith("<") for token in plain])
    share = np.where(worded, 0.6, 0.1).astype(np.float32)[:, None]
    mixed = np.sqrt(share) * known + np.sqrt(1 - share) * chance
    return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True), np.float16)
