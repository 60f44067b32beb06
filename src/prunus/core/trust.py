"""A stranger's ``prunus.toml``: what it may not do before its folder is trusted.

Who unpacks a folder and works in it has not read its settings. They may choose engines and numbers, but they run no
code, and they send no key of the user to an address of their own. `prunus trust` lifts this for a file as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .errors import BadInput
from .files import write_bytes

_RECORD: Final = "trusted.json"
_CODE: Final = re.compile(r"\.py:[^\W\d]")
_SEARCH_KEYS: Final = ("search_key", "search_keys")
_KEYS: Final = {
    "llm": ("llm_key",),
    "embedder": ("embedder_key",),
    "reranker": ("reranker_key",),
    "path_scorer": ("path_key",),
    "scorer": ("path_key",),
    "second_scorer": ("path_key",),
    "search": _SEARCH_KEYS,
    "search_endpoint": _SEARCH_KEYS,
}
"""Settings that may hold an address, and the keys that are sent there."""
_ALL_KEYS: Final = ("llm_key", "embedder_key", "reranker_key", "path_key", *_SEARCH_KEYS)
_BETWEEN: Final = ("proxy", "ca_file")
"""Settings by which others can read what is sent anywhere."""


def check_stranger(path: Path, content: bytes, own: Mapping[str, Any], values: Mapping[str, Any], home: Path) -> None:
    """Refuse settings of a file that is not trusted, where they run code or send the user's keys elsewhere.

    :param own: the settings of the file that are in force.
    :param values: all settings in force: of the file, the environment and the call.
    :param home: the user's folder, which holds what is trusted.
    :raises BadInput: it names the settings, and the command that trusts the file.
    """
    refused = [*_running(own), *_sending(own, values)]
    if refused and not _is_trusted(path, content, home):
        raise BadInput(
            f"{path} is not trusted: {'; '.join(refused)}. Read the file; where you trust it, run: prunus trust",
            subject=str(path),
        )


def trust(path: Path, home: Path) -> None:
    """Trust a file as it is now; a later change ends it.

    :raises BadInput: the file cannot be read, or the record cannot be written.
    """
    try:
        digest = _digest(path.read_bytes())
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})", subject=str(path)) from error
    _write({**_read(home), str(path.resolve()): digest}, home)


def distrust(path: Path, home: Path) -> None:
    """Trust a file no more."""
    _write({name: digest for name, digest in _read(home).items() if name != str(path.resolve())}, home)


def _running(own: Mapping[str, Any]) -> Iterator[str]:
    """Yield a phrase for each setting that runs a program."""
    for name, value in own.items():
        if name == "chromium" or any(_CODE.search(text) for text in _texts(value)):
            yield f"{name} runs a program"


def _sending(own: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a phrase for each address that would get keys which the file does not hold itself."""
    for name, value in own.items():
        foreign = [key for key in _KEYS.get(name, _ALL_KEYS) if values.get(key) and key not in own]
        if foreign and (name in _BETWEEN or (name in _KEYS and any("://" in text for text in _texts(value)))):
            yield f"{name} would get your {' and '.join(foreign)}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _is_trusted(path: Path, content: bytes, home: Path) -> bool:
    return _of_the_administrator(path) or _read(home).get(str(path.resolve())) == _digest(content)


def _of_the_administrator(path: Path) -> bool:
    """Tell whether a file belongs to root, and nobody else can write it: who unpacks files makes none of that kind."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0:  # root unpacks files of root
        return False
    about = path.resolve().stat()
    return about.st_uid == 0 and not about.st_mode & 0o022


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read(home: Path) -> dict[str, str]:
    """Return the digests of trusted files by their paths."""
    path = home / _RECORD
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); remove it, and trust again", subject=str(path)) from error
    return {str(name): str(digest) for name, digest in found.items()} if isinstance(found, dict) else {}


def _write(trusted: Mapping[str, str], home: Path) -> None:
    write_bytes(home / _RECORD, json.dumps(trusted, indent=1, sort_keys=True).encode())
