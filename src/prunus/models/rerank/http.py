"""``http``: a reranking service with the API of Cohere, Jina or Text Embeddings Inference (TEI).

``http:https://host/v2/rerank#model``. An address with the path ``/rerank`` is called by TEI's API, an
address at ``jina.ai`` by Jina's, every other address by Cohere's, which vLLM and others also offer.
``cohere+``, ``jina+`` or ``tei+`` before the address names the API explicitly.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, OutsideFailed
from ...core.ports import Door
from ...core.text.numbers import bounded_float, bounded_int
from ...web.json_client import WRONG_SHAPE, Service, endpoint

_LONGEST: Final = 8_000
"""Most code points of a text that are sent, about 2,000 tokens of English."""


class Engine:
    """Scores pairs through a service; nothing is sent before the first call.

    A score is the service's number, unchanged: from 0 to 1 for Cohere and Jina, a logit for TEI.

    :param model: address and model, as above.
    :param door: the egress door.
    :param key: sent as a bearer token; '' sends none.
    :param batch: texts per request; TEI accepts 32 by default.
    :param seconds: timeout of one request.
    """

    name = "http"
    above = 400
    beside = 0.0
    added = 0.0
    languages = ()

    def __init__(
        self, model: str = "", door: Door | None = None, key: str = "", batch: int = 32, seconds: float = 60.0
    ) -> None:
        shape, url, self._model = endpoint(model, ("cohere", "jina", "tei"), self.name)
        self._url = url if url.endswith("/rerank") else url + "/rerank"
        self._shape = shape or _shape(self._url)
        self._door = door
        self._key = key
        self._batch = max(1, batch)
        self._seconds = seconds

    def rerank(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one score per text, float64 [n]; higher is better.

        :raises BadInput: no door was given, or the key is missing or refused.
        :raises OutsideFailed: the service failed, or did not return one number per text.
        """
        if self._door is None:
            raise BadInput(f"{self._url}: the engine http needs an egress door; pass door=", subject=self.name)
        service = Service(self._url, self._door, self._key, self._seconds)
        question = _sendable(query)
        scores = np.zeros(len(texts))
        for start in range(0, len(texts), self._batch):
            part = [_sendable(text) for text in texts[start : start + self._batch]]
            scores[start : start + len(part)] = self._scores(service.post(self._body(question, part)), len(part))
        return scores

    def _body(self, query: str, texts: list[str]) -> dict[str, Any]:
        if self._shape == "tei":
            return {"query": query, "texts": texts, "raw_scores": True, "truncate": True}
        body: dict[str, Any] = {"query": query, "documents": texts, "top_n": len(texts)}
        if self._model:
            body["model"] = self._model
        if self._shape == "jina":
            body["return_documents"] = False
        return body

    def _scores(self, answer: Any, count: int) -> NDArray[np.float64]:
        """Return the scores of a response, which are sorted best first, in the order of the texts."""
        score = "score" if self._shape == "tei" else "relevance_score"
        try:
            rows = answer if self._shape == "tei" else answer["results"]
            known = {
                bounded_int(row["index"], -1, least=-1, most=count): bounded_float(row[score], nan, least=-inf)
                for row in rows
            }
            if -1 in known:
                raise ValueError("an index is no number")
        except WRONG_SHAPE as error:
            raise OutsideFailed(
                f"{self._url}: the answer is not in the shape of {self._shape}", subject=self._url
            ) from error
        if sorted(known) != list(range(count)) or len(rows) != count:
            raise OutsideFailed(f"{self._url}: {len(rows)} scores came back for {count} texts", subject=self._url)
        scores = np.asarray([known[index] for index in range(count)])
        if not np.isfinite(scores).all():
            raise OutsideFailed(f"{self._url}: scores are not finite", subject=self._url)
        return scores


def _shape(url: str) -> str:
    """Return the API of an address: ``jina``, ``tei`` or ``cohere``."""
    parts = urlsplit(url)
    if parts.hostname and (parts.hostname == "jina.ai" or parts.hostname.endswith(".jina.ai")):
        return "jina"
    return "tei" if parts.path == "/rerank" else "cohere"


def _sendable(text: str) -> str:
    """Return a text that services accept: not empty, not too long, without lone surrogates."""
    return text[:_LONGEST].encode("utf-8", "replace").decode("utf-8") if text.strip() else "."
