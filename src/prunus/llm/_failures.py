"""What a server's refusal means: another try, a request without an option, or one line for the user."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

from ..errors import BadBudget, OutsideFailed, PrunusError
from ._shared import one_line
from ._wire import words_of

KEY_SETTING: Final = "llm_key (PRUNUS_LLM_KEY)"
"""What the key is called where it is set; errors name it, and never the key."""

_AGAIN: Final = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_WINDOW_WORDS: Final = re.compile(r"context[_ ](length|window|size)|maximum context|prompt is too long", re.I)


class Refused(Exception):
    """An HTTP answer that is no success: status, headers, and the beginning of its body."""

    def __init__(self, status: int, headers: Mapping[str, str], said: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.headers, self.said = status, headers, said


class Again(Exception):
    """The call may be tried again; ``failure`` is what to raise when it is not.

    ``pause``: seconds that the server asks to wait, negative where it does not say. ``free``: the request
    was changed, so that the try counts as none and needs no pause.
    """

    def __init__(self, failure: PrunusError, pause: float = -1.0, free: bool = False) -> None:
        super().__init__(str(failure))
        self.failure, self.pause, self.free = failure, pause, free


@dataclass(frozen=True, slots=True)
class Place:
    """A model at a server, and the key that no error may show."""

    where: str
    model: str
    key: str

    def __repr__(self) -> str:
        return f"Place({self.where!r})"

    def failure(self, refused: Refused) -> Exception:
        """Return what to raise for a refusal: :class:`Again`, or an error for the user."""
        status = refused.status
        said = one_line(refused.said, [self.key])
        tail = f": {said}" if said else ""
        if status in (401, 403):
            fix = f"check {KEY_SETTING}" if self.key else f"set {KEY_SETTING}"
            return OutsideFailed(f"{self.where}: the server refuses the key ({status}); {fix}", subject=self.model)
        if status in (400, 413, 422) and (status == 413 or _WINDOW_WORDS.search(refused.said)):
            return BadBudget(f"{self.where}: the prompt is too long for the model; lower the budget{tail}")
        if 300 <= status < 400:
            return OutsideFailed(f"{self.where}: the server sends elsewhere ({status}); write that address instead")
        if status == 404:
            return OutsideFailed(f"{self.where}: no such model or path (404); check both{tail}", subject=self.model)
        if status == 429 and "insufficient_quota" in refused.said:
            return OutsideFailed(f"{self.where}: the account's quota is used up (429){tail}", subject=self.model)
        failure = OutsideFailed(f"{self.where}: HTTP {status}{tail}", subject=self.model)
        return Again(failure, retry_after(refused.headers)) if status in _AGAIN else failure


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait; negative where it does not say, or says nonsense."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,6})?", value):
            return float(value) * scale
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return -1.0


async def check_response(response: Any) -> None:
    """Raise :class:`Refused` for whatever is not 200, reading no more than the beginning of its body.

    A hook of the HTTP client: the package would read the whole body of an error, however long.
    """
    if response.status_code == 200:
        return
    found = b""
    if response.headers.get("content-encoding", "identity") == "identity":
        async for chunk in response.aiter_raw():
            found += chunk
            if len(found) > 16_384:
                break
    raise Refused(response.status_code, response.headers, words_of(found[:16_384]))
