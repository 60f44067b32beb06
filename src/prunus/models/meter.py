"""The cost of an answer: prices, a meter over all its calls, and limits that are checked before each call.

Prices come from the configuration only, in US dollars per million tokens. Token counts are the server's
where it reports them; tokens that had to be counted here are marked by :class:`EstimatedUsage`.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, cast

from ..core.errors import BadBudget, BadInput, MissingExtra, OutsideFailed
from ..core.events import Event, TokenEvent, UsageEvent
from ..core.options import Limits
from ..core.ports import LLM, LanguageModel, TokenCounter
from ..core.types import Message, Usage

_MESSAGE_TOKENS: Final = 4
"""Approximate tokens that a chat template adds to each message."""

PICTURE_TOKENS: Final = 1_100
"""Estimated tokens of a picture before the server reports them: about the cost of a large picture."""

_MILLION: Final = 1_000_000


class OverLimit(BadBudget):
    """A limit of tokens, money or seconds is reached, or the next call could go beyond it."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens of prompt and of completion."""

    prompt: float = 0.0
    completion: float = 0.0

    def usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of some tokens in US dollars."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION


FREE: Final = Price()


@dataclass(frozen=True, slots=True)
class EstimatedUsage(Usage):
    """Usage in which some tokens are estimates, because the server did not report them."""

    estimated_tokens: int = 0


def prices_from(table: Mapping[str, Any]) -> dict[str, Price]:
    """Read the table ``[prices]`` of the configuration: ``"gpt-4o-mini" = { prompt = 0.15, completion = 0.6 }``.

    :raises BadInput: an entry is malformed; the message names it.
    """
    prices = {}
    for name, entry in table.items():
        if not isinstance(entry, Mapping) or not {"prompt", "completion"} >= {*entry} or not entry:
            raise BadInput(f"prices: {name}: give it as {{ prompt = 0.15, completion = 0.6 }}", subject=name)
        for side, value in entry.items():
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
                raise BadInput(f"prices: {name}: {side}: {value!r} is no price in US dollars", subject=name)
        prices[name] = Price(float(entry.get("prompt", 0)), float(entry.get("completion", 0)))
    return prices


def price_of(prices: Mapping[str, Price], spec: str, llm: LLM) -> Price | None:
    """Return the price of a model by its spec, then by its name; None where no price is configured.

    A model that runs on this machine is free unless it has a price.
    """
    named = prices.get(spec) or prices.get(llm.model)
    return named or (FREE if llm.free else None)


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return the sum of two usages; seconds are added stage by stage."""
    seconds = dict(one.seconds)
    for stage, value in other.seconds.items():
        seconds[stage] = seconds.get(stage, 0.0) + value
    prompt, completion = one.prompt_tokens + other.prompt_tokens, one.completion_tokens + other.completion_tokens
    estimated = sum(usage.estimated_tokens for usage in (one, other) if isinstance(usage, EstimatedUsage))
    if estimated:
        return EstimatedUsage(prompt, completion, one.usd + other.usd, seconds, estimated)
    return Usage(prompt, completion, one.usd + other.usd, seconds)


class Meter:
    """Sums the usage of all calls of one answer, and refuses a call that could exceed a limit.

    The most that a call may use is reserved until the call is settled, so that concurrent calls cannot
    exceed a limit together. Thread-safe.

    :param limits: limits of the whole answer; 0 is no limit. Seconds count from the creation of the meter.
    :param clock: returns monotonic seconds.
    """

    def __init__(self, limits: Limits | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits or Limits()
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._total = Usage()
        self._tokens = 0
        self._usd = 0.0

    @property
    def total(self) -> Usage:
        """The usage so far."""
        return self._total

    @property
    def seconds_left(self) -> float:
        """Seconds until the limit; infinite without one."""
        if not self.limits.seconds:
            return math.inf
        return max(0.0, self.limits.seconds - (self._clock() - self._started))

    @property
    def tokens_left(self) -> float:
        """Tokens that are neither used nor reserved; infinite without a limit."""
        with self._lock:
            return max(0, self.limits.tokens - self._used() - self._tokens) if self.limits.tokens else math.inf

    @property
    def usd_left(self) -> float:
        """US dollars that are neither spent nor reserved; infinite without a limit."""
        with self._lock:
            return max(0.0, self.limits.usd - self._total.usd - self._usd) if self.limits.usd else math.inf

    def reset(self) -> None:
        """Set the usage to 0; the limits then apply to later usage only."""
        with self._lock:
            self._total = Usage()

    def add(self, usage: Usage) -> None:
        """Add usage that was not reserved: a search, a batch of embeddings."""
        with self._lock:
            self._total = add_usage(self._total, usage)

    def reserve(self, tokens: int, usd: float, what: str) -> None:
        """Reserve the most that a call may use.

        :param what: name of the model, for the error.
        :raises OverLimit: a limit could be exceeded; nothing is reserved.
        """
        limits = self.limits
        if not self.seconds_left:
            raise OverLimit(f"the limit of {limits.seconds:g} seconds is reached; raise --max-seconds", subject=what)
        with self._lock:
            used, spent = self._used() + self._tokens, self._total.usd + self._usd
            if limits.tokens and used + tokens > limits.tokens:
                raise OverLimit(
                    f"{what}: {used} tokens are used, and this call may take {tokens}: over the limit of "
                    f"{limits.tokens}; raise --max-tokens, or lower the budget",
                    subject=what,
                )
            if limits.usd and spent + usd > limits.usd:
                raise OverLimit(
                    f"{what}: {spent:.6f} USD are spent, and this call may take {usd:.6f}: over the limit of "
                    f"{limits.usd:g}; raise --max-usd, or lower the budget",
                    subject=what,
                )
            self._tokens += tokens
            self._usd += usd

    def settle(self, tokens: int, usd: float, usage: Usage) -> None:
        """Release a reservation, and add the real usage of the call."""
        with self._lock:
            self._tokens -= tokens
            self._usd -= usd
            self._total = add_usage(self._total, usage)

    def _used(self) -> int:
        return self._total.prompt_tokens + self._total.completion_tokens


class Metered(LanguageModel):
    """A language model whose calls are counted, and refused if they could exceed a limit.

    A server that ignores ``max_tokens`` can still exceed a limit within one call: its reply is kept, since
    it is paid, and the next call is refused.

    :param llm: the language model.
    :param meter: the meter of the whole answer.
    :param counter: counts tokens before a call, and where the server reports none; by default the model itself.
    :param price: price of the model; None if unknown, and then a limit in US dollars is an error.
    """

    def __init__(self, llm: LLM, meter: Meter, counter: TokenCounter | None = None, price: Price | None = None) -> None:
        self._llm = llm
        self._meter = meter
        self._counter = counter if counter is not None else cast(TokenCounter, llm)
        self.price = price
        self.name, self.model = llm.name, llm.model or llm.name
        self.sees_pictures, self.real, self.free = llm.sees_pictures, llm.real, llm.free
        self.context_window = llm.context_window
        self.count = self._counter.count

    def room(self, messages: Sequence[Message]) -> float:
        """Return the largest ``max_tokens`` that the limits allow for these messages; infinite without a limit."""
        prompt = self._prompt(messages)
        left = self._meter.tokens_left - prompt
        price, money = self.price or FREE, self._meter.usd_left - (self.price or FREE).usd(prompt, 0)
        if price.completion and money != math.inf:
            left = min(left, money / price.completion * _MILLION - 1)
        return max(0, math.inf if left == math.inf else int(left))

    def affordable(self) -> float:
        """Return about how many tokens may still be used, if four in five are prompt; infinite without a limit."""
        price = self.price or FREE
        mean = 0.8 * price.prompt + 0.2 * price.completion
        bought = self._meter.usd_left / mean * _MILLION if mean else math.inf
        return min(self._meter.tokens_left, bought)

    async def ask_window(self) -> int:
        """Return the model's context window, from its server if it is not configured; 0 if unknown."""
        if not self.context_window and hasattr(self._llm, "ask_window"):
            self.context_window = int(await self._llm.ask_window())
        return self.context_window

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Event]:
        """Yield the model's events; the usage also has the cost, and tokens where the server reports none.

        :raises OverLimit: the call could exceed a limit, or the seconds are used up during the call.
        :raises BadInput: US dollars are limited, and the model's price is unknown.
        """
        if self._meter.limits.usd and self.price is None:
            raise BadInput(
                f"{self.model}: no price is known, so --max-usd cannot be kept; add it to [prices] in prunus.toml",
                subject=self.model,
            )
        price = self.price or FREE
        prompt, longest = self._prompt(messages), int(options.get("max_tokens", 1024))
        most = (prompt + longest, price.usd(prompt, longest))
        options["max_tokens"] = longest
        self._meter.reserve(*most, self.model)
        started, pieces = time.monotonic(), list[str]()
        reported: Usage | None = None
        sent = True
        try:
            async with aclosing(cast(Any, self._llm.stream(messages, **options))) as events:
                while (event := await self._next(events)) is not None:
                    if isinstance(event, TokenEvent):
                        pieces.append(event.text)
                        yield event
                    elif isinstance(event, UsageEvent):
                        reported = event.usage
        except (BadInput, MissingExtra) as error:
            sent = isinstance(error, OverLimit)  # the other errors come before anything is paid
            raise
        except OutsideFailed as error:
            sent = error.sent
            raise
        finally:  # also for a call that failed or was cancelled: the server may have read the prompt
            seconds = time.monotonic() - started
            usage = self._usage(reported, prompt, "".join(pieces), seconds) if sent else Usage()
            self._meter.settle(*most, usage)
        yield UsageEvent(usage)

    async def _next(self, events: AsyncIterator[Event]) -> Event | None:
        """Return the next event, within the seconds that are left; None at the end."""
        left = self._meter.seconds_left
        try:
            async with asyncio.timeout(None if left == math.inf else left) as watch:
                return await anext(events, None)
        except TimeoutError:
            if not watch.expired():
                raise
            limit = self._meter.limits.seconds
            raise OverLimit(
                f"{self.model}: the limit of {limit:g} seconds is reached; raise --max-seconds", subject=self.model
            ) from None

    def _prompt(self, messages: Sequence[Message]) -> int:
        counts = self._counter.count([message.content for message in messages])
        pictures = sum(len(message.pictures) for message in messages)
        return int(counts.sum()) + _MESSAGE_TOKENS * len(messages) + PICTURE_TOKENS * pictures

    def _usage(self, reported: Usage | None, prompt: int, text: str, seconds: float) -> Usage:
        """Return the usage of a call; estimate the tokens that the server did not report."""
        price = self.price or FREE
        stages = reported.seconds if reported and reported.seconds else {"llm": seconds}
        if reported and (reported.prompt_tokens or reported.completion_tokens):
            sides = (reported.prompt_tokens, reported.completion_tokens)
            return Usage(*sides, reported.usd or price.usd(*sides), stages)
        completion = int(self._counter.count([text])[0])
        return EstimatedUsage(prompt, completion, price.usd(prompt, completion), stages, prompt + completion)
