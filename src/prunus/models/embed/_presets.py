"""Settings of known sentence encoders: prefixes, pooling and lengths.

Each preset is taken from the model's card or paper, which its comment names. HtmlRAG prunes with
BGE-Large-EN (§4.4) and compares with E5-Mistral (§4.3); RAPTOR embeds with
multi-qa-mpnet-base-cos-v1 (§3) and compares with DPR (§4.1; its footnote 2 says which of the two);
Internet-SAG re-ranks with BGE-M3 (§3.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Literal

from ...core.errors import BadInput

Pooling = Literal["cls", "mean", "max", "last"]


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of one model.

    :param hub: hub id; of a model with two encoders, that of the document encoder.
    :param query_hub: hub id of the query encoder, if it is a different model.
    :param pooling: how token vectors become the vector of the text.
    :param max_tokens: most tokens of a text, special tokens included.
    :param query, document: prefix of each query or document.
    :param end: a token that must end each text.
    :param dimension: length of a vector.
    """

    hub: str
    pooling: Pooling
    max_tokens: int
    dimension: int
    query: str = ""
    document: str = ""
    query_hub: str = ""
    end: str = ""


_BUILD: Final = re.compile(r"(?:[:@].*|[-._](?:i?q\d\w*|f16|fp16|fp32|bf16|int8|gguf|onnx|[48]bit)(?:[-._].*)?|\.gguf)")
"""What servers write behind a model's name: a tag, a precision, the suffix of a file."""

_BGE: Final = "Represent this sentence for searching relevant passages: "
_E5: Final = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

PRESETS: Final[Mapping[str, Preset]] = {
    # card of BAAI/bge-large-en-v1.5: CLS, normalised, 512 tokens; the instruction precedes queries only
    "bge-large-en-v1.5": Preset("BAAI/bge-large-en-v1.5", "cls", 512, 1024, query=_BGE),
    # card of BAAI/bge-large-en, version 1, which HtmlRAG names without a version: the same settings
    "bge-large-en": Preset("BAAI/bge-large-en", "cls", 512, 1024, query=_BGE),
    # card of BAAI/bge-m3: dense vectors are the normalised CLS, up to 8192 tokens, no instruction
    "bge-m3": Preset("BAAI/bge-m3", "cls", 8192, 1024),
    # card of intfloat/e5-mistral-7b-instruct: the last token, which is </s>; an instruction before
    # queries only; more than 4096 tokens are not recommended
    "e5-mistral-7b-instruct": Preset("intfloat/e5-mistral-7b-instruct", "last", 4096, 4096, query=_E5, end="</s>"),
    # cards of intfloat/e5-*-v2 and intfloat/multilingual-e5-*: mean, 512 tokens, "query: " and "passage: "
    **{
        name: Preset(f"intfloat/{name}", "mean", 512, size, query="query: ", document="passage: ")
        for kind in ("e5-{}-v2", "multilingual-e5-{}")
        for name, size in ((kind.format("small"), 384), (kind.format("base"), 768), (kind.format("large"), 1024))
    },
    # card of intfloat/multilingual-e5-large-instruct: mean; an instruction before queries only
    "multilingual-e5-large-instruct": Preset("intfloat/multilingual-e5-large-instruct", "mean", 512, 1024, query=_E5),
    # card of nomic-ai/nomic-embed-text-v1.5: mean, up to 8192 tokens, a prefix that names the task
    **{
        name: Preset(
            "nomic-ai/nomic-embed-text-v1.5", "mean", 8192, 768, query="search_query: ", document="search_document: "
        )
        for name in ("nomic-embed-text-v1.5", "nomic-embed-text")
    },
    # card of sentence-transformers/multi-qa-mpnet-base-cos-v1: mean, normalised, 512 word pieces
    "multi-qa-mpnet-base-cos-v1": Preset("sentence-transformers/multi-qa-mpnet-base-cos-v1", "mean", 512, 768),
    # card of sentence-transformers/all-MiniLM-L6-v2: mean, normalised; texts are cut at 256 word pieces
    "all-minilm-l6-v2": Preset("sentence-transformers/all-MiniLM-L6-v2", "mean", 256, 384),
    # Karpukhin et al. 2020 §3.1: [CLS] of two BERT-base encoders, 768 dimensions; cards of facebook/dpr-*.
    # Trained for the inner product; here vectors have unit norm, so that their lengths have no effect.
    "dpr-multiset": Preset(
        "facebook/dpr-ctx_encoder-multiset-base",
        "cls",
        512,
        768,
        query_hub="facebook/dpr-question_encoder-multiset-base",
    ),
    "dpr-single-nq": Preset(
        "facebook/dpr-ctx_encoder-single-nq-base",
        "cls",
        512,
        768,
        query_hub="facebook/dpr-question_encoder-single-nq-base",
    ),
}
"""Presets by name. A model whose folder, hub id or name at a server ends in the name gets the preset automatically; a
tag or a precision may follow."""


def preset_of(model: str, name: str = "") -> Preset | None:
    """Return the preset of a model, by name or by the end of its path or hub id; None for an unknown model.

    :raises BadInput: ``name`` is no preset.
    """
    if name:
        if name.lower() not in PRESETS:
            raise BadInput(f"no preset is called {name!r}; there are: {', '.join(sorted(PRESETS))}", subject=name)
        return PRESETS[name.lower()]
    last = PurePath(model.rstrip("/")).name.lower()
    known = dict(PRESETS)
    for preset in PRESETS.values():
        known |= {hub.split("/")[1].lower(): preset for hub in (preset.hub, preset.query_hub) if hub}
    if last in known:
        return known[last]
    return next((known[one] for one in known if last.startswith(one) and _BUILD.fullmatch(last[len(one) :])), None)
