"""``http``: embeddings from a service with the API of OpenAI or of Text Embeddings Inference (TEI).

``http:https://host/v1#model`` calls ``https://host/v1/embeddings`` by OpenAI's API. An address that ends
in ``/embed`` is called by TEI's API. ``openai+`` or ``tei+`` before the address names the API explicitly.

Models that read queries and documents differently get prefixes by the preset of the model's name, or by that of
``#model?preset=multilingual-e5-small``. A service that adds them itself is told what a text is:
``#model?input_type=query,passage`` sends ``"input_type": "query"`` or ``"passage"``, and no prefix is added.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, OutsideFailed
from ...core.ports import Door
from ...core.text.numbers import bounded_int
from ...core.text.secrets import hide_secrets
from ...web.json_client import WRONG_SHAPE, Service, ServiceRefused, endpoint
from ._presets import preset_of
from ._sentence import unit

_POINTS_A_BATCH: Final = 48_000
"""Code points per request, about 16,000 tokens: TEI's default limit (``--max-batch-tokens``)."""

_LONGEST: Final = 32_000
"""Most code points of a text that are sent, about 8,000 tokens of English."""

_TOO_LONG: Final = frozenset({400, 413, 422})
"""Statuses with which services refuse long texts."""

_INPUT_TYPES: Final = {
    "api.voyageai.com": "query,document",  # from docs: https://docs.voyageai.com/reference/embeddings-api
    "integrate.api.nvidia.com": "query,passage",  # from docs: https://docs.nvidia.com/nim (required by these models)
}
"""Hosts that take ``input_type``, with its values for queries and documents."""

_SHORTEST: Final = 500
"""A refused text of fewer code points is not cut further: its length is not the reason."""


class Engine:
    """Embeds through a service; nothing is sent before the first call.

    Requests to a busy service are retried. A batch that the service refuses as too large is halved, and so is
    a text that is too long. A text of white space alone is sent as a full stop, because services refuse
    empty texts.

    :param model: address, model and options, as above; the model's name also chooses the preset with its prefixes.
    :param door: the egress door.
    :param key: sent as a bearer token; '' sends none.
    :param batch: texts per request; TEI accepts 32 by default.
    :param seconds: timeout of one request.
    :param dimension: required length of vectors; 0 takes the length in the first response.
    """

    name = "http"

    def __init__(
        self,
        model: str = "",
        door: Door | None = None,
        key: str = "",
        batch: int = 32,
        seconds: float = 60.0,
        dimension: int = 0,
    ) -> None:
        shape, url, named = endpoint(model, ("openai", "tei"), self.name)
        self._model, given = _options(named)
        preset, input_type = given.get("preset", ""), given.get("input_type", "")
        self._shape = shape or ("tei" if urlsplit(url).path.endswith("/embed") else "openai")
        ending = {"openai": "/embeddings", "tei": "/embed"}[self._shape]
        self._url = url if url.endswith(ending) else url + ending
        self._door = door
        self._key = key
        self._seconds = seconds
        self._batch = max(1, batch)
        self._preset = preset_of(self._model, preset) if self._model or preset else None
        types = [part.strip() for part in (input_type or _INPUT_TYPES.get(urlsplit(url).hostname or "", "")).split(",")]
        if types != [""] and (len(types) != 2 or not all(types)):
            raise BadInput(
                f"{self.name}: input_type {input_type!r}: give the value for queries and the one for documents, as "
                "query,passage",
                subject="input_type",
            )
        self._types = dict(zip(("query", "document"), types, strict=True)) if len(types) == 2 else {}
        told = "" if self._preset is None or self._types else f"{self._preset.query}|{self._preset.document}"
        self._chosen = " ".join(part for part in (preset, *self._types.values(), told.strip("|")) if part)
        self._lock = threading.Lock()
        self.dimension = dimension

    @property
    def identity(self) -> str:
        """Address, model and prefixes, on which vectors depend; a change of the model on the server is not seen."""
        return f"{self.name}:{self._shape}+{hide_secrets(self._url)}#{self._model} {self._chosen}".strip()

    def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> NDArray[np.float32]:
        """Return float32 [n, dimension] of unit norm.

        :param kind: queries and documents get the prefixes of the model's preset, or the service is told.
        :raises BadInput: no door was given, or the key is missing or refused.
        :raises OutsideFailed: the service failed, or did not return one vector of equal length per text.
        """
        service = self._service()
        prefix = "" if self._preset is None or self._types else getattr(self._preset, kind)
        vectors: list[NDArray[np.float32]] = []
        for part in _parts([prefix + (text[:_LONGEST] if text.strip() else ".") for text in texts], self._batch):
            vectors.append(self._ask(service, part, kind))
        if not vectors:
            return np.zeros((0, self.dimension), np.float32)
        return np.concatenate(vectors)

    def _service(self) -> Service:
        if self._door is None:
            raise BadInput(f"{self._url}: the engine http needs an egress door; pass door=", subject=self.name)
        return Service(self._url, self._door, self._key, self._seconds)

    def _ask(self, service: Service, texts: list[str], kind: str) -> NDArray[np.float32]:
        """Return the vectors of one batch; a batch or text that the service refuses as too large is halved."""
        try:
            return self._vectors(service.post(self._body(texts, kind)), len(texts))
        except ServiceRefused as refused:
            longest = max(len(text) for text in texts)
            if refused.status not in _TOO_LONG or (longest < _SHORTEST and refused.status != 413):
                raise
            if len(texts) > 1:
                half = len(texts) // 2
                return np.concatenate([self._ask(service, texts[:half], kind), self._ask(service, texts[half:], kind)])
            if longest < _SHORTEST:
                raise
            return self._ask(service, [texts[0][: longest // 2]], kind)

    def _body(self, texts: list[str], kind: str) -> dict[str, Any]:
        safe = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        told = {"input_type": self._types[kind]} if self._types else {}
        if self._shape == "tei":
            return {"inputs": safe, "normalize": True, "truncate": True} | told
        return {"input": safe, "encoding_format": "float"} | ({"model": self._model} if self._model else {}) | told

    def _vectors(self, answer: Any, count: int) -> NDArray[np.float32]:
        """Read and check the vectors of a response."""
        try:
            rows = answer if self._shape == "tei" else _in_order(answer["data"])
            with np.errstate(over="ignore"):  # what is too large is not finite, and refused below
                vectors = np.asarray(rows, np.float32)
        except WRONG_SHAPE as error:
            raise OutsideFailed(
                f"{self._url}: the answer is not in the shape of {self._shape}", subject=self._url
            ) from error
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
            raise OutsideFailed(
                f"{self._url}: {list(vectors.shape)} numbers came back for {count} texts", subject=self._url
            )
        with self._lock:
            self.dimension = self.dimension or vectors.shape[1]
        if vectors.shape[1] != self.dimension:
            raise OutsideFailed(
                f"{self._url}: vectors have {vectors.shape[1]} numbers, not {self.dimension}; is it another model?",
                subject=self._url,
            )
        if not np.isfinite(vectors).all():
            raise OutsideFailed(f"{self._url}: vectors hold numbers that are not finite", subject=self._url)
        return unit(vectors, self._url)


def _options(named: str) -> tuple[str, dict[str, str]]:
    """Split a model's name from the options behind it.

    :raises BadInput: there is no such option.
    """
    model, mark, rest = named.partition("?")
    given = dict(parse_qsl(rest, keep_blank_values=True))
    if mark and (not given or not given.keys() <= {"preset", "input_type"}):
        raise BadInput(f"http: #{named}: behind the model's name there are preset= and input_type=", subject=named)
    return model, given


def _in_order(data: Any) -> list[Any]:
    """Return the embeddings of an OpenAI response, ordered by their index; each index must occur once."""
    rows = {
        bounded_int(entry.get("index", index), -1, least=-1, most=len(data)): entry["embedding"]
        for index, entry in enumerate(data)
    }
    if sorted(rows) != list(range(len(data))):
        raise ValueError("an index is missing or doubled")
    return [rows[index] for index in range(len(rows))]


def _parts(texts: list[str], batch: int) -> Iterator[list[str]]:
    """Yield batches of texts in order, bounded by number and by code points."""
    part: list[str] = []
    size = 0
    for text in texts:
        if part and (len(part) >= batch or size + len(text) > _POINTS_A_BATCH):
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text)
    if part:
        yield part
