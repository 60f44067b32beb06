"""What clients are not told: addresses of the operator's services, and folders of the server's machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from ..core.settings import Settings

_HOST: Final = re.compile(r"https?://([^/\s#?,]+)")
_SPACE: Final = re.compile(r"(\s+)")
_HIDDEN: Final = "[a service or folder of this server]"
_WHERE: Final = rf"{re.escape(_HIDDEN)}:?(?: {re.escape(_HIDDEN)}:?)?"
_UNREACHED: Final = re.compile(
    rf"(?P<model>\S{{1,100}} at )?{_WHERE} (?:cannot connect to port|the name (?:does not|did not|has no))[^;]{{0,300}}"
)
"""What is said of a service without a connection, its addresses hidden. Only language models are called "NAME at"."""
_TWICE: Final = re.compile(rf"{re.escape(_HIDDEN)}:? (?={re.escape(_HIDDEN)})")
_ADVICE: Final = {
    "the operator may allow it with the setting allow_hosts": "this address is not allowed here",
    " (setting ports)": "",
    "raise --max-tokens": "raise max_tokens",
    "raise --max-usd": "raise max_usd",
    "; raise --max-seconds": "",
}
"""Advice for the operator or the command line, and what a client is told instead."""
_TOLD: Final = frozenset({"failure", "failures", "warnings", "message"})
_ADDRESS: Final = re.compile(r":?https?://[^#\s,]*#?", re.I)
"""The address in an engine's name; the model behind it is told."""
_NAMES: Final = frozenset({"document", "url"})


class Mask:
    """Hides addresses of the settings in messages, and folders in the names of documents.

    :param places: beginnings of folders that messages hide, too.
    """

    def __init__(self, settings: Settings, places: Iterable[str] = ()) -> None:
        values = (getattr(settings, setting.name) for setting in fields(settings))
        hosts = {host for value in values if isinstance(value, str) for host in _HOST.findall(value)}
        self._hosts = frozenset([*(host.rpartition("@")[2] for host in hosts), *filter(None, places)])

    def text(self, text: str) -> str:
        """Return a message without the addresses of the operator's services, and with advice for a client."""
        for advice, told in _ADVICE.items():
            text = text.replace(advice, told)
        if not any(host in text for host in self._hosts):
            return text
        words = _SPACE.split(text)
        hidden = "".join(self._word(word) for word in words)
        return _TWICE.sub("", _UNREACHED.sub(_unreached, hidden))

    def _word(self, word: str) -> str:
        """Return a word, hidden where it holds an address; the colon after it stays."""
        if not any(host in word for host in self._hosts):
            return word
        return f"{_HIDDEN}:" if word.endswith(":") else _HIDDEN

    def record(self, value: Any, key: str = "", told: bool = False) -> Any:
        """Return plain data with hidden addresses and folders.

        :param key: the key under which the value stands.
        :param told: whether the value is a message, or a part of one.
        """
        told = told or key in _TOLD
        if key == "engines" and isinstance(value, Mapping):
            return {name: _ADDRESS.sub("", part) if isinstance(part, str) else part for name, part in value.items()}
        if isinstance(value, str):
            if key in _NAMES and os.path.isabs(value):
                return os.path.basename(value)
            return self.text(value) if told else value
        if isinstance(value, Mapping):
            return {(self.text(name) if told else name): self.record(part, name, told) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.record(part, key, told) for part in value]
        return value


def _unreached(found: re.Match[str]) -> str:
    """Return what a client is told of a service that cannot be reached."""
    return f"{'the language model' if found['model'] else 'a service of this server'} cannot be reached"
