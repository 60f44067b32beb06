"""What clients are not told: addresses of the operator's services, and folders of the server's machine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from ..core.settings import Settings

_HOST: Final = re.compile(r"https?://([^/\s#?,]+)")
_TOLD: Final = frozenset({"failure", "failures", "warnings", "message"})
_NAMES: Final = frozenset({"document", "url"})


class Mask:
    """Hides addresses of the settings in messages, and folders in the names of documents."""

    def __init__(self, settings: Settings) -> None:
        values = (getattr(settings, setting.name) for setting in fields(settings))
        hosts = {host for value in values if isinstance(value, str) for host in _HOST.findall(value)}
        joined = "|".join(re.escape(host.rpartition("@")[2]) for host in sorted(hosts, key=len, reverse=True))
        self._hosts = re.compile(rf"(?:https?://)?(?:[^\s/@]{{1,200}}@)?(?:{joined})\S{{0,500}}") if joined else None

    def text(self, text: str) -> str:
        """Return a message without the addresses of the operator's services."""
        return self._hosts.sub("[a service of this server]", text) if self._hosts else text

    def record(self, value: Any, key: str = "", told: bool = False) -> Any:
        """Return plain data with hidden addresses and folders.

        :param key: the key under which the value stands.
        :param told: whether the value is a message, or a part of one.
        """
        told = told or key in _TOLD
        if isinstance(value, str):
            if key in _NAMES and os.path.isabs(value):
                return os.path.basename(value)
            return self.text(value) if told else value
        if isinstance(value, Mapping):
            return {(self.text(name) if told else name): self.record(part, name, told) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.record(part, key, told) for part in value]
        return value
