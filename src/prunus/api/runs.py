"""Record a whole run of `ask` in one file, and replay it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import Any, Final, get_type_hints

from msgspec import convert

from ..core.checked_engines import name_of
from ..core.errors import BadInput, Failures, PrunusError
from ..core.events import DoneEvent, Event
from ..core.files import write_bytes
from ..core.options import Limits, Options, WebOptions
from ..core.registry import KINDS, is_built_in, needs_of, split_spec
from ..core.settings import SECRETS, Settings, load_settings
from ..core.text.secrets import secrets_in
from ..core.types import Answer, Page, Usage
from ..core.version import __version__
from ..engines import NO_RERANKER, formats, installed_reranker
from ..evidence.documents import Documents, read_pages
from ..record.file import RunFile, pack
from ..record.player import TAPED, Player, reading
from ..record.recorder import Recorder, bare, error_to

ENGINES: Final = (*(kind for kind in KINDS if kind in Options.__dataclass_fields__), "second_scorer", "path_scorer")
"""The options and settings that name the engines of an answer."""

RECORDED: Final = frozenset(
    {*ENGINES, "search_way", "search_prices", "web_options", "prices", "path_options", "budget"}
)
"""Settings that a run's file holds, because the answer depends on them. All others belong to the machine: secrets,
addresses, folders, limits and permissions. A foreign file can neither reveal nor change those."""

_PATH_OPTIONS: Final = ("prompt",)
"""The recorded ones of ``path_options``; the others are about a server or a folder."""

_SECRET: Final = re.compile(r"key|token|secret|passw|auth|cookie", re.IGNORECASE)

_FORGETS: Final = {
    **dict.fromkeys(("llm_options",), ("model", "reply", "count", "window")),
    **dict.fromkeys(("search_endpoint", "search_way"), ("search",)),
    **dict.fromkeys(("browser", "languages", "user_agent", "robots", "allow_hosts", "max_file_mb"), ("page",)),
}
"""Setting → kinds of recorded entries that are discarded when the setting is changed. These settings are no part of
the recorded request, so that comparing requests would not notice the change."""

_FIELDS: Final = get_type_hints(Options) | dict.fromkeys(ENGINES, str)
"""The types of recorded options; engines are recorded by name."""

_LIMITS: Final = {"max_tokens": "tokens", "max_usd": "usd", "max_seconds": "seconds"}


class Recording:
    """Records a run, and writes the file when the run ends with an answer or an error.

    :raises BadInput: the file cannot be written.
    """

    def __init__(self, path: str, settings: Settings) -> None:
        self._path, self._settings = Path(path), settings
        if self._path.is_dir() or (self._path.parent.exists() and not self._path.parent.is_dir()):
            raise BadInput(f"{path}: no file can be written there; name a file in a folder", subject=path)
        self._secrets = secrets_of(settings)
        self._recorder = Recorder()
        self.recorder: Recorder | Player = self._recorder

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
        named = [secret for value in _texts(_by_name(options)) for secret in secrets_in(value)]
        self._secrets = _longest_first([*self._secrets, *named])

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
        write_bytes(self._path, pack(whole, self._secrets))


def secrets_of(settings: Settings) -> list[str]:
    """Return every secret of the settings: the values that are never shown, and what addresses hold."""
    values = [secret for text in _texts(settings) for secret in secrets_in(text)]
    for name in SECRETS:
        value = getattr(settings, name)
        values += [str(inner) for inner in value.values()] if isinstance(value, Mapping) else [value]
    return _longest_first(values)


def _texts(named: Settings | Options) -> list[str]:
    """Return the values that are text; an engine's spec may hold an address."""
    values = (getattr(named, field.name) for field in fields(named))
    return [value for value in values if isinstance(value, str)]


def _longest_first(secrets: Iterable[str]) -> list[str]:
    """Return secrets of more than three characters, so that a secret that contains another is removed whole."""
    return sorted({secret for secret in secrets if len(secret) > 3}, key=lambda secret: (-len(secret), secret))


def settings_to(settings: Settings) -> dict[str, Any]:
    """Return the settings that an answer depends on, where they differ from the defaults."""
    result: dict[str, Any] = {}
    for field in fields(Settings):
        value = getattr(settings, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if field.name == "path_options":
            value = {name: value[name] for name in _PATH_OPTIONS if name in value}
        if field.name in RECORDED and value != default:
            result[field.name] = _safe(value)
    if not settings.reranker:  # what is installed on the machine of the replay must not change an answer
        result["reranker"] = installed_reranker() or NO_RERANKER
    return result


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
        self.question = reading(lambda: convert(head["question"], str))
        self.budget = reading(lambda: convert(head["budget"], int | None))
        self.options = reading(lambda: options_from(head["options"]))
        stored = reading(lambda: convert(head["settings"], dict[str, Any]))
        recorded = {name: value for name, value in stored.items() if name in RECORDED and name not in changes}
        self._user = user = load_settings()
        prompt = reading(lambda: convert(recorded.get("path_options", {}), dict[str, Any]))
        own = {name: value for name, value in user.path_options.items() if name not in _PATH_OPTIONS}
        recorded["path_options"] = own | {name: prompt[name] for name in _PATH_OPTIONS if name in prompt}
        _refuse_engines({name: getattr(self.options, name, "") for name in ENGINES}, changes, user)
        _refuse_engines({name: recorded[name] for name in ENGINES if name in recorded}, changes, user)
        defaults = {name: getattr(Settings(), name) for name in RECORDED} | {"reranker": NO_RERANKER}
        self.settings = load_settings(defaults | recorded | self._changed())
        forgotten = {kind for name in changes for kind in _FORGETS.get(name, ())}
        left = [entry for entry in run.entries if str(entry.get("kind")) not in forgotten]
        self._player = Player(RunFile(head, left, run.blobs), self._live())
        self.recorder: Recorder | Player = self._player
        self.differs = ""

    def _live(self) -> frozenset[str]:
        """Return the kinds of calls that may go to the real services: pages, and engines that the user named.

        An engine counts as named by the user in a change, or where the user's settings name the same one. A recorded
        file may come from somebody else: the address of its model or search must not receive the user's key.
        """
        if not self._changes:
            return frozenset()
        return frozenset({"page"} | {kind for kind in TAPED if self._is_named(kind)})

    def _is_named(self, kind: str) -> bool:
        """Tell whether the user named the engine of a kind."""
        if kind == "path_scorer" and not all(map(self._is_users, ("scorer", "second_scorer"))):
            return False  # generative:MODEL names a path scorer, too
        return self._is_users(kind)

    def _is_users(self, name: str) -> bool:
        chosen = getattr(self.options, name, "") or getattr(self.settings, name)
        if name == "reranker" and chosen == installed_reranker():
            return True  # its weights are on each machine: it sends nothing anywhere
        return name in self._changes or chosen == getattr(self._user, name)

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
        known = reading(lambda: convert(given["documents"], frozenset[str]))
        read = read_pages(self._player.given(), formats().to_html, strict=False)
        trees = [tree for tree in read.trees if tree.document in known]
        return Documents(trees, Failures(reading(lambda: convert(given["failures"], dict[str, str]))))

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
        usage = reading(lambda: convert(recorded["usage"], Usage))
        spent = reading(lambda: convert(recorded["spent"], dict[str, Usage]))
        return replace(answer, usage=usage, spent=spent)


def _by_name(options: Options) -> Options:
    """Return options with engines that were given as objects replaced by their names."""
    names: dict[str, Any] = {
        field.name: name_of(getattr(options, field.name))
        for field in fields(Options)
        if field.name in KINDS or field.name == "second_scorer"
    }
    return replace(options, **names)


def _refuse_engines(recorded: Mapping[str, Any], changes: Mapping[str, str], user: Settings) -> None:
    """Refuse a recorded engine that would reach outside of the record: a stranger's file must not choose it.

    Engines of :data:`~prunus.record.player.TAPED` kinds reply from the record. Others may be built in, with no model
    but a number, or be the same as in the user's own settings.

    :param changes: what the user names instead; it replaces the recorded engine.
    :raises BadInput: the run names such an engine.
    """
    for name, spec in recorded.items():
        if name in changes or name in TAPED or not spec or spec == getattr(user, name):
            continue
        if not isinstance(spec, str) or not _is_harmless("scorer" if name == "second_scorer" else name, spec):
            raise BadInput(
                f"the recorded run names an engine that is not part of it ({name} = {str(spec)[:80]!r}); name one that "
                f"you trust with --change {name}=SPEC",
                subject=name,
            )


def _is_harmless(kind: str, spec: str) -> bool:
    """Tell whether an engine comes with Prunus, and reads nothing that its spec names."""
    name, model = split_spec(spec)
    if not is_built_in(kind, name):
        return False
    return not model or (model.isascii() and model.isdigit()) or "path_scorer" in needs_of(kind, spec)


def options_from(row: Mapping[str, Any]) -> Options:
    """Return the options from their recorded form."""
    kept = {name: value for name, value in row.items() if name not in ("trace", "mode")}  # "mode": of earlier versions
    return Options(**{name: convert(value, _FIELDS[name]) for name, value in kept.items()})


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
