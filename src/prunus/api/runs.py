"""Record a whole run of `ask` in one file, and replay it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import Any, Final

from ..core.errors import BadInput, Failures, PrunusError
from ..core.events import DoneEvent, Event
from ..core.files import write_bytes
from ..core.options import Limits, Options, WebOptions
from ..core.registry import KINDS, names_a_file
from ..core.settings import ADDRESSED, SECRETS, Settings, load_settings
from ..core.types import Answer, Page, Usage
from ..core.version import __version__
from ..engines import formats, name_of
from ..evidence.documents import Documents, read_pages
from ..record.file import RunFile, pack
from ..record.player import Player, reading
from ..record.recorder import Recorder, Tape, bare, error_to

MACHINE: Final = (
    SECRETS
    | ADDRESSED
    | frozenset(
        """home tiktoken_folder ca_file chromium threads cache_mb snapshots_mb embed_cache_mb model_calls llm_endpoint
    llm_options search_endpoint allow_hosts ports robots user_agent max_file_mb""".split()
    )
)
"""Settings of this machine: secrets, addresses, folders, limits and permissions. They are never recorded and never
read from a recorded run, so that a foreign file can neither reveal nor change them."""

_SECRET: Final = re.compile(r"key|token|secret|passw|auth|cookie", re.IGNORECASE)

_FORGETS: Final = {
    **dict.fromkeys(("llm_endpoint", "llm_options"), ("model", "reply", "count", "window")),
    **dict.fromkeys(("search_endpoint", "search_way"), ("search",)),
    **dict.fromkeys(("browser", "languages", "user_agent", "robots", "allow_hosts", "max_file_mb"), ("page",)),
}
"""Setting → kinds of recorded entries that are discarded when the setting is changed. These settings are no part of
the recorded request, so that comparing requests would not notice the change."""

_CHOICES: Final = (*(kind for kind in KINDS if kind in Options.__dataclass_fields__), "fine")
"""The options that name engines."""

_LIMITS: Final = {"max_tokens": "tokens", "max_usd": "usd", "max_seconds": "seconds"}


class Recording:
    """Records a run, and writes the file when the run ends with an answer or an error.

    :raises BadInput: the file cannot be written.
    """

    def __init__(self, path: str, settings: Settings) -> None:
        self._path, self._settings = Path(path), settings
        if self._path.is_dir() or (self._path.parent.exists() and not self._path.parent.is_dir()):
            raise BadInput(f"{path}: no file can be written there; name a file in a folder", subject=path)
        self._recorder = Recorder()
        self.tape: Tape = self._recorder

    def given(self, page: Page) -> None:
        """Record a page that the user gave with the question."""
        self._recorder.page(page.url, page, "given")

    def start(self, question: str, options: Options, budget: int | None, documents: Documents | None) -> None:
        """Record the question, the settings, the options and the ids of the given documents."""
        given = None
        if documents is not None:
            given = {"documents": [tree.document for tree in documents.trees], "failures": dict(documents.failures)}
        self._recorder.run.head = {
            "prunus": __version__,
            "question": question,
            "budget": budget,
            "settings": settings_to(self._settings),
            "options": _safe(asdict(replace(_by_name(options), trace=None))),
            "given": given,
        }

    async def events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Pass the events through; write the file when the answer is complete, or when the run failed."""
        try:
            async for event in events:
                if isinstance(event, DoneEvent):
                    self._write(answer=asdict(event.answer))
                yield event
        except PrunusError as error:
            self._write(error=error_to(error))
            raise

    def _write(self, **outcome: Any) -> None:
        run = self._recorder.run
        whole = RunFile({**run.head, **outcome}, run.entries, run.blobs)
        write_bytes(self._path, pack(whole, secrets_of(self._settings)))


def secrets_of(settings: Settings) -> list[str]:
    """Return every secret value of the settings of more than three characters, the longest first.

    The longest comes first so that a secret that contains another is removed whole.
    """
    values: list[str] = []
    for name in SECRETS:
        value = getattr(settings, name)
        values += [str(inner) for inner in value.values()] if isinstance(value, Mapping) else [value]
    return sorted((value for value in values if len(value) > 3), key=len, reverse=True)


def settings_to(settings: Settings) -> dict[str, Any]:
    """Return the settings that differ from the defaults, without secrets and without the settings of the machine."""
    found = {}
    for field in fields(Settings):
        value = getattr(settings, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if field.name not in MACHINE and value != default:
            found[field.name] = _safe(value)
    return found


def _safe(value: Any) -> Any:
    """Return a value without entries whose name looks like that of a secret."""
    if isinstance(value, Mapping):
        shown = {str(name): _safe(inner) for name, inner in value.items()}
        return {name: inner for name, inner in shown.items() if not (isinstance(inner, str) and _SECRET.search(name))}
    if isinstance(value, list | tuple):
        return [_safe(inner) for inner in value]
    return bare(value) if isinstance(value, str) else value


# --- reading it ----------------------------------------------------------------------------------


class Replay:
    """A recorded run to replay; ``differs`` says after the run how its answer differs from the recorded one.

    :param changes: the values of settings, engines and options that replace the recorded ones, as text.
    :raises BadInput: the file is damaged, or a change is not known or has a wrong value.
    """

    def __init__(self, run: RunFile, changes: Mapping[str, str]) -> None:
        self._run, self._changes = run, changes
        head = run.head
        self.question: str = reading(lambda: str(head["question"]))
        self.budget: int | None = reading(lambda: None if head["budget"] is None else int(head["budget"]))
        self.options = reading(lambda: options_from(head["options"]))
        _refuse_files({name: getattr(self.options, name) for name in _CHOICES}, changes)
        stored: dict[str, Any] = reading(lambda: dict(head["settings"]))
        recorded = {name: value for name, value in stored.items() if name not in MACHINE}
        _refuse_files(recorded, changes)
        defaults = {field.name: getattr(Settings(), field.name) for field in fields(Settings)}
        values = {name: value for name, value in defaults.items() if name not in MACHINE} | recorded
        self.settings = load_settings(values | self._changed())
        forgotten = {kind for name in changes for kind in _FORGETS.get(name, ())}
        left = [entry for entry in run.entries if entry.get("kind") not in forgotten]
        self._player = Player(RunFile(head, left, run.blobs), self._live())
        self.tape: Tape = self._player
        self.differs = ""

    def _live(self) -> frozenset[str]:
        """Return the kinds of calls that may go to the real services: pages, and engines that the user named.

        An engine counts as named by the user in a change, or where the user's settings name the same one. A recorded
        file may come from somebody else: the address of its model or search must not receive the user's key.
        """
        if not self._changes:
            return frozenset()
        user = load_settings()
        named = {
            kind
            for kind in ("llm", "search", "embedder", "reranker")
            if kind in self._changes
            or (getattr(self.options, kind) or getattr(self.settings, kind)) == getattr(user, kind)
        }
        return frozenset(named | {"page"})

    def _changed(self) -> dict[str, str]:
        """Apply the changes of the budget and the options, and return the changes of settings.

        :raises BadInput: a change names a secret, or its value is of the wrong type.
        """
        left = {}
        for name, text in self._changes.items():
            if name == "budget":
                self.budget = _as(name, text, 0)
            elif name in {field.name for field in fields(Options)} - {"trace", "web", "limits"}:
                self.options = replace(self.options, **{name: _as(name, text, getattr(Options(), name))})
            elif name in {field.name for field in fields(WebOptions)}:
                web = replace(self.options.web, **{name: _as(name, text, getattr(WebOptions(), name))})
                self.options = replace(self.options, web=web)
            elif name in _LIMITS:
                value = _as(name, text, getattr(Limits(), _LIMITS[name]))
                self.options = replace(self.options, limits=replace(self.options.limits, **{_LIMITS[name]: value}))
            elif name in SECRETS:
                raise BadInput(f"{name}: a secret is no part of a run; set it in the environment", subject=name)
            else:
                left[name] = text
        return left

    def documents(self) -> Documents | None:
        """Return the documents that the user gave with the question; None where there were none."""
        given = self._run.head.get("given")
        if given is None:
            return None
        known = reading(lambda: frozenset(given["documents"]))
        read = read_pages(self._player.given(), formats().to_html, strict=False)
        trees = [tree for tree in read.trees if tree.document in known]
        return Documents(trees, reading(lambda: Failures(given["failures"])))

    def start(self, question: str, options: Options, budget: int | None, documents: Documents | None) -> None:
        """Do nothing: the file holds the question and the choices."""

    async def events(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        """Pass the events through; an answer that equals the recorded one gets the recorded times."""
        async for event in events:
            if isinstance(event, DoneEvent) and not self._changes:
                event = DoneEvent(self._compared(event.answer))
            yield event

    def _compared(self, answer: Answer) -> Answer:
        recorded = self._run.head.get("answer")
        if not isinstance(recorded, dict):
            self.differs = "the recorded run failed, and the replay has an answer"
            return answer
        replayed = reading(lambda: {name: _plain(value) for name, value in asdict(answer).items()})
        unlike = [name for name in replayed if _timeless(replayed[name]) != _timeless(recorded.get(name))]
        if unlike:
            self.differs = f"the answer differs from the recorded one in: {', '.join(unlike)}"
            return answer
        usage = reading(lambda: Usage(**recorded["usage"]))
        spent = reading(lambda: {stage: Usage(**usage) for stage, usage in recorded["spent"].items()})
        return replace(answer, usage=usage, spent=spent)


def _by_name(options: Options) -> Options:
    """Return options with engines that were given as objects replaced by their names."""
    names: dict[str, Any] = {
        field.name: name_of(getattr(options, field.name))
        for field in fields(Options)
        if field.name in KINDS or field.name == "fine"
    }
    return replace(options, **names)


def _refuse_files(recorded: Mapping[str, Any], changes: Mapping[str, str]) -> None:
    """Refuse a recorded engine in a Python file: a stranger's recording must not choose code to run.

    :param changes: what the user names instead; it replaces the recorded engine.
    :raises BadInput: the run names such an engine.
    """
    for name, value in recorded.items():
        if name not in changes and isinstance(value, str) and any(map(names_a_file, value.split(","))):
            raise BadInput(
                f"the recorded run names an engine in a file ({name} = {value[:80]}); name one that you trust with "
                f"--change {name}=SPEC",
                subject=name,
            )


def options_from(row: Mapping[str, Any]) -> Options:
    """Return the options from their recorded form."""
    values = {name: value for name, value in row.items() if name not in ("web", "limits", "trace")}
    return Options(**values, web=WebOptions(**row["web"]), limits=Limits(**row["limits"]))


def _plain(value: Any) -> Any:
    """Return a value as it is after writing it as JSON and reading it back."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _timeless(value: Any) -> Any:
    """Return a value without its measured seconds, which differ from run to run."""
    if isinstance(value, Mapping):
        return {name: _timeless(inner) for name, inner in value.items() if name != "seconds"}
    return [_timeless(inner) for inner in value] if isinstance(value, list) else value


def _as(name: str, text: str, default: Any) -> Any:
    """Return a changed value, converted from text to the type of the option's default.

    :raises BadInput: the text cannot be converted.
    """
    try:
        if isinstance(default, bool):
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
        if isinstance(default, int | float):
            return type(default)(text)
    except (KeyError, ValueError) as error:
        raise BadInput(f"--change {name}: {text!r} is not of type {type(default).__name__}", subject=name) from error
    return [part.strip() for part in text.split(",") if part.strip()] if isinstance(default, tuple) else text
