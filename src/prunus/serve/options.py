"""What the operator of a server decides: where it listens, what clients may use, and how much."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from ..core.errors import BadInput
from ..core.options import Limits
from ..core.text.near import did_you_mean

INDEX_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""Names of indexes."""

SHAPES: Final = ("firecrawl", "jina", "markdown", "openwebui", "rerank", "tavily")
"""Shapes of other programs' requests that the server can answer, see :mod:`.shapes`."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The operator's choices. A client can use what is enabled here, and nothing else.

    :param host, port: where the server listens; by default only this machine can reach it.
    :param indexes: indexes that clients may ask, as folder or address by name.
    :param fetch: whether clients may name addresses of pages; the server then fetches them by the rules of `fetch`.
    :param workers: processes that serve, each with limits of its own; one uses about one core.
    :param at_once: requests that are worked on at the same time; an answer mostly waits for its model.
    :param waiting: further requests that wait for their turn; more are refused with 503.
    :param connections: connections of clients at most; one address may hold a quarter of them.
    :param proxies: addresses of proxies before the server, which may hold all connections, as this machine may.
    :param seconds: wall time of one request at most.
    :param body_mb: size of a request at most, in MiB.
    :param pages: pages of one request at most.
    :param budget: tokens of evidence that a request may ask for at most.
    :param tokens, usd: model tokens and USD of one answer at most; 0 is no limit.
    :param origins: web origins that browsers may call from (CORS), as ``https://app.example.org``; none by default.
    :param log: folder of the request log, which holds questions, evidence and answers; '' keeps none.
    :param log_days: days after which lines of the request log are deleted.
    :param shapes: shapes of other programs' requests that are answered, of :data:`SHAPES`; none by default.
    :param writable: names of ``indexes`` whose documents keys with the scope ``index`` may add and remove.
    :param key_indexes: indexes that a key may make.
    :param index_documents, index_mb: documents and MiB of an index, above which clients add no more.
    :param jobs: jobs of indexes that this server works on at the same time; 0 leaves them to other servers.
    :param key_jobs: unfinished jobs of a key at most.
    :param job_seconds: seconds of work on a job at most; what it has added by then stays.
    :param lease: seconds after which another server takes over the job of one that is gone.
    :param state: file of keys and counts, or ``postgres:ADDRESS``; '' is that of the settings.
    :param index_home: where the indexes that clients make are kept: a folder, or ``postgres:ADDRESS``; '' is that of
        the settings, where by default clients make none.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    indexes: Mapping[str, str] = field(default_factory=dict)
    fetch: bool = True
    workers: int = 1
    at_once: int = 64
    waiting: int = 256
    connections: int = 1_024
    proxies: tuple[str, ...] = ()
    seconds: float = 120.0
    body_mb: int = 16
    pages: int = 50
    budget: int = 32_768
    tokens: int = 0
    usd: float = 0.0
    origins: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    key_indexes: int = 20
    index_documents: int = 10_000
    index_mb: int = 1_024
    jobs: int = 1
    key_jobs: int = 10
    job_seconds: float = 7_200.0
    lease: float = 20.0
    state: str = field(default="", repr=False)
    log: str = ""
    log_days: int = 30
    index_home: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Check the values.

        :raises BadInput: a number is out of range, an index has a bad name, or an origin is no origin.
        """
        for name in (
            "workers",
            "at_once",
            "connections",
            "body_mb",
            "pages",
            "budget",
            "seconds",
            "log_days",
            "index_documents",
            "index_mb",
            "key_jobs",
            "job_seconds",
            "lease",
        ):
            if getattr(self, name) <= 0:
                raise BadInput(f"serve: {name} must be above 0, not {getattr(self, name)}", subject=name)
        for name in ("port", "waiting", "tokens", "usd", "key_indexes", "jobs"):
            if getattr(self, name) < 0 or (name == "port" and self.port > 65_535):
                raise BadInput(f"serve: {name} {getattr(self, name)} is out of range", subject=name)
        for name in self.indexes:
            if not INDEX_NAME.fullmatch(name):
                raise BadInput(f"serve: {name!r} is no name of an index; use letters, digits, . _ -", subject="indexes")
        for name in self.writable:
            if name not in self.indexes:
                raise BadInput(f"serve: writable names no index: {name!r}", subject="writable")
        for shape in self.shapes:
            if shape not in SHAPES:
                hint = did_you_mean(shape, SHAPES)
                raise BadInput(
                    f"serve: no shape is called {shape!r}; there are: all, {', '.join(SHAPES)}{hint}", subject="shapes"
                )
        for origin in self.origins:
            if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?", origin):
                raise BadInput(f"serve: {origin!r} is no origin; write https://HOST", subject="origins")

        for proxy in self.proxies:
            try:
                ip_address(proxy)
            except ValueError:
                raise BadInput(
                    f"serve: proxies: {proxy!r} is no address; write it as 10.0.0.2", subject="proxies"
                ) from None

    @property
    def limits(self) -> Limits:
        """What one answer may cost at most."""
        return Limits(self.tokens, self.usd, self.seconds)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


def serve_options(table: Mapping[str, Any], **given: Any) -> ServeOptions:
    """Return the options from the table ``serve`` of ``prunus.toml`` and the command line, which wins.

    :param given: options by name; those that are None are left out.
    :raises BadInput: an option is unknown or has the wrong type.
    """
    plain = ServeOptions()
    known = [option.name for option in fields(ServeOptions)]
    values: dict[str, Any] = {}
    for name in {"state", "index_home"} & table.keys():
        raise BadInput(
            f"serve: {name} is a setting of its own, serve_{name}, because its address is secret", subject="serve"
        )
    for name, value in {**table, **{name: value for name, value in given.items() if value is not None}}.items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise BadInput(f"serve: no option is called {name}; there are: {', '.join(known)}{hint}", subject=name)
        default = getattr(plain, name)
        if isinstance(default, tuple) and isinstance(value, list | tuple):
            value = tuple(map(str, value))
        elif isinstance(default, float) and type(value) is int:
            value = float(value)
        right = isinstance(value, type(default)) and isinstance(value, bool) == isinstance(default, bool)
        if not right or (name == "indexes" and not all(isinstance(place, str) for place in value.values())):
            raise BadInput(f"serve: {name} is of the wrong type; see prunus serve --help", subject=name)
        values[name] = value
    if "shapes" in values:
        values["shapes"] = shapes_named(values["shapes"])
    return replace(plain, **values)


def shapes_named(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of shapes, each once; ``all`` stands for all of them."""
    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys(SHAPES if "all" in names else names))


def index_named(text: str) -> tuple[str, str]:
    """Return name and place of ``NAME=FOLDER``, or of ``FOLDER``, whose last part is the name.

    :raises BadInput: there is no name.
    """
    name, equals, place = text.partition("=")
    if not equals:
        name, place = Path(text).name, text
    if not INDEX_NAME.fullmatch(name) or not place:
        raise BadInput(f"--index {text}: write it as NAME=FOLDER", subject="index")
    return name, place
