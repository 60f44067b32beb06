"""Every error as JSON: ``{"error": {"type", "message", "param", "code"}}``, the shape that OpenAI's clients read."""

from __future__ import annotations

import logging
import traceback
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..core.errors import BadInput, MissingExtra, NothingFound, OutsideFailed, PrunusError, one_line
from .mask import Mask
from .work import Busy, Left, TooLong

log = logging.getLogger("prunus.serve")

_KINDS: Final[tuple[tuple[type[PrunusError], int, str], ...]] = (
    (Busy, 503, "busy"),
    (Left, 499, "left"),
    (TooLong, 504, "too_long"),
    (BadInput, 400, "bad_input"),
    (NothingFound, 404, "nothing_found"),
    (OutsideFailed, 502, "outside_failed"),
    (MissingExtra, 501, "not_installed"),
)
_STATUS: Final = {
    400: "bad_input", 401: "no_key", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 408: "too_slow",
    409: "taken", 413: "too_large", 415: "bad_type", 429: "too_many_requests", 503: "busy",
}  # fmt: skip


class Refused(Exception):
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


def error_body(error: BaseException, mask: Mask) -> dict[str, Any]:
    """Return an error as JSON; what a bug says is not told to the client."""
    _, name = status_of(error)
    if name == "bug" and not isinstance(error, PrunusError):
        return _body(name, "an internal error; the server's log has the details")
    subject = mask.record(getattr(error, "subject", ""), "document")
    return _body(name, mask.text(one_line(str(error), longest=500)), mask.text(subject))


def _body(kind: str, message: str, param: str = "") -> dict[str, Any]:
    return {"error": {"type": kind, "message": message, "param": param or None, "code": kind}}


def refusal(refused: Refused) -> JSONResponse:
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


def handle_errors(app: FastAPI, mask: Mask) -> None:
    """Turn every exception of a route into JSON; bugs are left to the guard around the routes."""

    async def deliberate(request: Request, error: Exception) -> JSONResponse:
        status, _ = status_of(error)
        headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Busy) else {}
        if status in (501, 504):
            headers["X-Should-Retry"] = "false"  # clients of OpenAI's API would only do the same work again
        return JSONResponse(error_body(error, mask), status, headers)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
        place = ".".join(str(part) for part in first.get("loc", ()) if part != "body")
        place = one_line(place.encode("utf-8", "replace").decode(), longest=200)
        reason = str(first.get("msg", "the request cannot be read")).removeprefix("Value error, ")
        message = f"{place}: {reason}" if place else reason
        return JSONResponse(_body("bad_input", one_line(message, longest=500), place), 400)

    async def plain(request: Request, error: Exception) -> JSONResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        message = {404: f"there is no {request.url.path}", 405: f"{request.method} is not allowed here"}.get(status, "")
        headers = getattr(error, "headers", None)
        kind = _STATUS.get(status, "refused")
        return JSONResponse(_body(kind, message or str(getattr(error, "detail", ""))), status, headers)

    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Refused)
        return refusal(error)

    app.add_exception_handler(PrunusError, deliberate)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, plain)
    app.add_exception_handler(Refused, refused)
