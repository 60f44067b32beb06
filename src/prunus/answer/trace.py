"""Measure each stage of an answer (wall time, tokens, money, details), and pass the records to a listener."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..core.errors import MissingExtra
from ..core.installation import pip_install
from ..core.text.secrets import hide_secrets
from ..core.types import Trace, Usage

if TYPE_CHECKING:
    from ..models.meter import Meter

Listener: TypeAlias = Callable[[Trace], None]
"""Called with the trace of each stage when the stage ends."""


_LONG: Final = frozenset({"tagged"})
"""Details that hold the text of pages; a span does not take them."""


class StageTimer:
    """Measures the time and cost of the stages of one answer.

    :param meter: counts tokens and money; a stage's cost is the difference over the stage.
    :param listen: called with the trace of each stage.
    """

    def __init__(self, meter: Meter, listen: Listener | None = None) -> None:
        self.meter = meter
        self.spent: dict[str, Usage] = {}
        self._listen = listen

    @property
    def listened(self) -> bool:
        """Whether anybody gets the traces; details that cost time are only made then."""
        return self._listen is not None

    @contextmanager
    def stage(self, name: str, **detail: Any) -> Iterator[dict[str, Any]]:
        """Measure the body of a ``with`` statement.

        :param detail: further details of the trace; the body may add to the mapping that it gets.
        """
        begun, before = time.perf_counter(), self.meter.total
        try:
            yield detail
        except Exception as error:
            detail["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            after, seconds = self.meter.total, time.perf_counter() - begun
            known = self.spent.get(name, Usage())
            used = (after.prompt_tokens - before.prompt_tokens, after.completion_tokens - before.completion_tokens)
            usd, whole = after.usd - before.usd, seconds + known.seconds.get(name, 0.0)
            prompt, completion = known.prompt_tokens + used[0], known.completion_tokens + used[1]
            self.spent[name] = Usage(prompt, completion, known.usd + usd, {name: whole})
            if self._listen is not None:
                cost = {"prompt_tokens": used[0], "completion_tokens": used[1], "usd": usd}
                self._listen(Trace(name, seconds, {**detail, **cost}))

    @property
    def usage(self) -> Usage:
        """The tokens and money used so far, with the seconds of each stage."""
        total = self.meter.total
        seconds = {name: usage.seconds[name] for name, usage in self.spent.items()}
        return Usage(total.prompt_tokens, total.completion_tokens, total.usd, seconds)


def as_record(trace: Trace, at: float) -> dict[str, Any]:
    """Return a trace as plain JSON data.

    :param at: the end of the stage, in seconds since 1970.
    """
    return {"stage": trace.stage, "ended": at, "seconds": trace.seconds, **_plain(trace.detail)}


def spans(tracer: Any = None) -> Listener:
    """Return a listener that makes each stage an OpenTelemetry span; the program configures where spans go.

    :param tracer: default: the tracer ``prunus`` of the program's tracer provider.
    :raises MissingExtra: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry import trace as otel
    except ImportError as error:
        raise MissingExtra(f"spans need OpenTelemetry; run: {pip_install('otel')}", subject="otel") from error
    tracer = tracer or otel.get_tracer("prunus")

    def listen(trace: Trace) -> None:
        end = time.time_ns()
        span = tracer.start_span(f"prunus.{trace.stage}", start_time=end - int(trace.seconds * 1e9))
        for key, value in trace.detail.items():
            if key in _LONG:
                continue
            plain = _plain(value)
            shown = plain if isinstance(plain, str | bool | int | float) else json.dumps(plain)
            span.set_attribute(f"prunus.{key}", shown)
        span.end(end_time=end)

    return listen


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it, without passwords and keys in addresses; unknown types become their text."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, bool | int | float) or value is None:
        return value
    return hide_secrets(str(value))
