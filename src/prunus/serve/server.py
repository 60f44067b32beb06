"""What all routes share: the settings, the operator's options, the workers, the keys and the counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ..core.errors import BadInput
from ..core.installation import installed_from
from ..core.ports import TokenCounter
from ..core.settings import Settings
from ..engines import SharedEngines, one_engine
from .background import Background
from .connections import Connections
from .mask import Mask
from .options import ServeOptions
from .page_cache import KeptPages
from .queue import Queue
from .request_log import RequestLog
from .runner import Runner
from .snapshots import CitedPages
from .state import ServerState, state_place
from .user_indexes import CreatedIndexes, index_home
from .work import Workers


class Metrics:
    """Counts and times in Prometheus's format; no question, address or key is a label."""

    def __init__(self, workers: Workers, background: Background | None) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("prunus_requests", "Requests by route and status.", ["route", "status"],
                                registry=self.registry)  # fmt: skip
        self.seconds = Histogram("prunus_request_seconds", "Seconds to the end of the response.", ["route"],
                                 buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
                                 registry=self.registry)  # fmt: skip
        Gauge("prunus_running", "Requests at work or waiting.", registry=self.registry).set_function(
            lambda: workers.running + (background.running if background else 0)
        )
        Gauge("prunus_computing", "Computations at work or waiting for a thread.", registry=self.registry).set_function(
            lambda: workers.computing + (background.running if background else 0)
        )


@dataclass(slots=True)
class Server:
    """One running server.

    :param closed: whether every request needs a key.
    :param engines: engines that hold a model; all answers use the same.
    :param requests: the request log, where the operator wants one.
    :param background: the process that answers large requests and does the jobs; without it this one does both.
    """

    settings: Settings
    options: ServeOptions
    workers: Workers
    state: ServerState
    created: CreatedIndexes
    queue: Queue
    runner: Runner
    snapshots: CitedPages
    metrics: Metrics
    closed: bool
    mask: Mask
    kept: KeptPages
    connections: Connections
    requests: RequestLog | None = None
    background: Background | None = None
    engines: SharedEngines = field(default_factory=SharedEngines)

    def tokens(self, text: str) -> int:
        """Return the tokens of a text; call this in a thread."""
        counter: TokenCounter = one_engine("tokenizer", self.settings, shared=self.engines)
        return int(counter.count([text])[0])

    def wake(self) -> None:
        """Tell the workers of jobs that there is a new one."""
        (self.background or self.runner).wake()


def make_server(settings: Settings, options: ServeOptions, background: Background | None = None) -> Server:
    """Open the state and start the workers.

    :raises BadInput: the address can be reached from other machines, and there are no keys; or an index is missing.
    """
    for name, place in options.indexes.items():
        if ":" not in place[2:] and not Path(place).is_dir():
            raise BadInput(f"index {name}: there is no index in {place}; make it with prunus index add", subject=place)
    home = index_home(settings, options.index_home)
    state = ServerState(state_place(settings, options.state))
    keys = state.keys()
    if not options.is_local and not any(not key.revoked for key in keys):
        state.close()
        raise BadInput(
            f"other machines can reach {options.host}, and there is no key: make one with prunus serve keys add NAME, "
            "or listen on 127.0.0.1",
            subject="host",
        )
    created = CreatedIndexes(state, home)
    queue = Queue(state, options.lease)
    folders = [place for place in options.indexes.values() if "/" in place]  # a bare name may be any word
    _, installed = installed_from()
    commands = [f"{installed}["] if installed else []  # of pip, in the messages of missing extras
    mask = Mask(settings, [*folders, *commands, *([created.place("prunus_")] if home else [])])
    requests = RequestLog(Path(options.log).expanduser(), options.log_days, mask) if options.log else None
    workers = Workers(options.at_once, options.waiting, options.seconds)
    return Server(
        settings,
        options,
        workers,
        state,
        created,
        queue,
        Runner(queue, created, settings, options, mask),
        CitedPages(state, mask),
        Metrics(workers, background),
        closed=not options.is_local or bool(keys),
        mask=mask,
        kept=KeptPages(),
        connections=Connections(options.connections, options.proxies),
        requests=requests,
        background=background,
    )
