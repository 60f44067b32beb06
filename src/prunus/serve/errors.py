"""Every error as JSON: ``{"error": {"type", "message", "param", "code"}}``, the shape that OpenAI's clients read."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..core.deadline import TooLong
from ..core.errors import BadInput, BadPage, MissingExtra, NothingFound, OutsideFailed, PrunusError, one_line
from ..core.text.secrets import hide_secrets
from ..pages.sources import is_address
from .mask import Mask
from .state import StateFailed
from .wire import MOST_PAGES, AskRequest, CleanRequest, PruneRequest, RetrieveBody, SearchBody, ShowRequest
from .work import Busy, Left

log = logging.getLogger("prunus.serve")

_KINDS: Final[tuple[tuple[type[PrunusError], int, str], ...]] = (
    (Busy, 503, "busy"),
    (Left, 499, "left"),
    (TooLong, 504, "too_long"),
    (StateFailed, 503, "busy"),
    (BadInput, 400, "bad_input"),
    (NothingFound, 404, "nothing_found"),
    (OutsideFailed, 502, "outside_failed"),
    (MissingExtra, 501, "not_installed"),
)
_STATUS: Final = {
    400: "bad_input", 401: "no_key", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 408: "too_slow",
    409: "taken", 413: "too_large", 415: "bad_type", 429: "too_many_requests", 503: "busy",
}  # fmt: skip
_FORMS: Final = (CleanRequest, PruneRequest, SearchBody, AskRequest, RetrieveBody, ShowRequest)
_FIELDS: Final = frozenset(
    [*(name for form in _FORMS for name in form.model_fields), "documents", "files", "id", "messages", "input", "model"]
)
"""Names that are fields of requests wherever an error has them."""
_QUESTIONS: Final = ("question", "messages", "input")
"""Fields that hold a question."""


class RequestRefused(Exception):
    """A request that the server refuses before its work begins.

    :param status: HTTP status.
    :param retry_after: seconds after which to try again; 0 where that would not help.
    """

    def __init__(self, status: int, message: str, *, param: str = "", retry_after: int = 0) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.retry_after = status, message, param, retry_after


def status_of(error: BaseException) -> tuple[int, str]:
    """Return HTTP status and type of an error."""
    for kind, status, name in _KINDS:
        if isinstance(error, kind):
            return status, name
    return 500, "bug"


def error_body(error: BaseException, mask: Mask, body: object = None) -> dict[str, Any]:
    """Return an error as JSON; what a bug says is not told to the client.

    :param body: the body of the request, in which the field of the error is found.
    """
    _, name = status_of(error)
    if name == "bug" and not isinstance(error, PrunusError):
        return _body(name, "an internal error; the server's log has the details")
    return _body(name, mask.text(one_line(str(error), longest=500)), _field_of(error, body))


def _field_of(error: BaseException, body: object) -> str:
    """Return the field of a request that an error is about; '' where it is about none."""
    subject = getattr(error, "subject", "")
    given: dict[str, Any] = body if isinstance(body, dict) else {}
    if isinstance(error, BadInput):
        if subject == "query" and "query" not in given:  # the library's name of the question
            return next((name for name in _QUESTIONS if name in given), "")
        name = subject.partition(".")[0]
        if name in _FIELDS or name in given:
            return str(subject)
    if not is_address(subject):
        return "page" if isinstance(error, BadPage) and "page" in given else ""
    return _place_of(subject, given)


def _place_of(address: str, given: Mapping[str, Any]) -> str:
    """Return the field that holds the address of a page; '' where there is none."""
    places: dict[str, Any] = {"page": given.get("page")}
    if isinstance(pages := given.get("pages"), list):
        places = {f"pages.{number}": page for number, page in enumerate(pages[:MOST_PAGES])}
    for place, page in places.items():
        url = page.get("url") if isinstance(page, dict) else None
        if isinstance(url, str) and _plain(hide_secrets(url.strip())) == _plain(address):
            return place if "html" in page or "base64" in page else f"{place}.url"
    return next((name for name in ("messages", "input") if name in given), "")


def _plain(address: str) -> str:
    """Return an address as two spellings of it are compared."""
    return address.rstrip("/").lower()


def _body(kind: str, message: str, param: str = "") -> dict[str, Any]:
    return {"error": {"type": kind, "message": message, "param": param or None, "code": kind}}


def refusal(refused: RequestRefused) -> JSONResponse:
    """Return the response to a refused request."""
    headers = {"Retry-After": str(refused.retry_after)} if refused.retry_after else {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    kind = _STATUS.get(refused.status, "refused")
    return JSONResponse(_body(kind, refused.message, refused.param), refused.status, headers)


def note_bug(error: BaseException, where: str) -> None:
    """Log a bug: its type and the places of the code, without its text, which may hold a question or a page."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: a bug: %s\n%s", where, type(error).__name__, frames.rstrip())


def _place(error: Mapping[str, Any], body: object) -> str:
    """Return the field of an error of pydantic, without the names of types that it was tried as; '' for no field."""
    where, *parts = error.get("loc", ("",))
    if where != "body":
        return ".".join(map(str, parts))
    if error.get("type") == "json_invalid":  # its place is a count of characters
        return ""
    result = []
    for part in parts:
        if (isinstance(body, dict) and part in body) or (isinstance(body, list) and isinstance(part, int)):
            body = body[part]
        elif not (error.get("type") == "missing" and part == parts[-1]):
            continue
        result.append(str(part))
    return one_line(".".join(result).encode("utf-8", "replace").decode(), longest=200)


def handle_errors(app: FastAPI, mask: Mask) -> None:
    """Turn every exception of a route into JSON; bugs are left to the guard around the routes."""

    async def deliberate(request: Request, error: Exception) -> JSONResponse:
        status, _ = status_of(error)
        headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Busy) else {}
        if status in (501, 504):
            headers["X-Should-Retry"] = "false"  # clients of OpenAI's API would only do the same work again
        body = getattr(request, "_json", None)  # as the route read it; nothing is read here
        return JSONResponse(error_body(error, mask, body), status, headers)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        result = error.errors() if isinstance(error, RequestValidationError) else []
        # a list that may be a text, too, has an error as each of them; the deepest says what is wrong
        same = [one for one in result if one["loc"][:2] == result[0]["loc"][:2]]
        first: Mapping[str, Any] = max(same, key=lambda one: len(one["loc"]), default={})
        place = _place(first, getattr(error, "body", None))
        reason = str(first.get("msg", "the request cannot be read")).removeprefix("Value error, ")
        kind = first.get("type", "")
        if kind == "json_invalid":
            reason = "the body is not valid JSON"
        elif kind == "string_pattern_mismatch":
            reason = "use letters, digits and . _ -, the first a letter or a digit, 64 at most"
        elif tuple(first.get("loc", ())) == ("body",) and "json" not in request.headers.get("content-type", ""):
            reason = "send the body as JSON, with Content-Type: application/json"
        message = f"{place}: {reason}" if place else reason
        return JSONResponse(_body("bad_input", one_line(message, longest=500), place), 400)

    async def plain(request: Request, error: Exception) -> JSONResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        message = {404: f"there is no {request.url.path}", 405: f"{request.method} is not allowed here"}.get(status, "")
        headers = getattr(error, "headers", None)
        kind = _STATUS.get(status, "refused")
        return JSONResponse(_body(kind, message or str(getattr(error, "detail", ""))), status, headers)

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestRefused)
        return refusal(error)

    app.add_exception_handler(PrunusError, deliberate)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, plain)
    app.add_exception_handler(RequestRefused, refused)
