"""Settings: the only file that reads the environment.

Order of precedence: keyword arguments > command line > ``PRUNUS_*`` > ``prunus.toml`` > defaults.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from .errors import BadInput

FILE: Final = "prunus.toml"
PREFIX: Final = "PRUNUS_"
_NOT_SETTINGS: Final = frozenset({"DATA", "ALL_EXTRAS", "REFERENCE"})
"""``PRUNUS_DATA`` tells tests and benchmarks where real data is, ``PRUNUS_ALL_EXTRAS`` that nothing may skip."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is in force for a process. Engine specs are ``name`` or ``name:model``.

    :param scorer: scores blocks.
    :param embedder: embeds texts.
    :param tokenizer: counts tokens.
    :param extractor: chooses sentences.
    :param generator: composes the answer.
    :param budget: tokens of evidence.
    :param max_files: files that a folder may hold.
    :param max_file_mb: size of one file, in MiB.
    :param home: folder for what Prunus keeps between runs.
    """

    scorer: str = "hybrid"
    embedder: str = "static"
    tokenizer: str = "llama2"
    extractor: str = "sentences"
    generator: str = "quotes"
    budget: int = 4096
    max_files: int = 10_000
    max_file_mb: int = 64
    home: str = "~/.prunus"


def load_settings(
    overrides: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Read the settings that are in force.

    :param overrides: values that win over everything else; None values are left out.
    :param environment: by default the process's own.
    :param folder: where ``prunus.toml`` is looked for; by default the working folder.
    :raises BadInput: an unknown key, or a value of the wrong kind; the message names it.
    """
    values: dict[str, Any] = {}
    path = (folder or Path.cwd()) / FILE
    if path.is_file():
        try:
            values.update(tomllib.loads(path.read_text("utf-8")))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: not valid TOML ({error})", subject=str(path)) from error
        _check_keys(values, str(path))
    known = {field.name for field in fields(Settings)}
    for name, value in (os.environ if environment is None else environment).items():
        key = name.removeprefix(PREFIX).lower()
        if name.startswith(PREFIX) and key in known:
            values[key] = value
        elif name.startswith(PREFIX) and name.removeprefix(PREFIX) not in _NOT_SETTINGS:
            raise BadInput(f"{name}: no such setting; known: {', '.join(sorted(known))}", subject=name)
    values.update({key: value for key, value in (overrides or {}).items() if value is not None})
    _check_keys(values, "settings")
    return replace(Settings(), **{key: _typed(key, value) for key, value in values.items()})


def setting_origins(*, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> dict[str, str]:
    """Return where each setting that :func:`load_settings` reads comes from, for the doctor."""
    path = (folder or Path.cwd()) / FILE
    written = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    given = os.environ if environment is None else environment
    origins = {}
    for field in fields(Settings):
        variable = PREFIX + field.name.upper()
        named = next((name for name in given if name.startswith(PREFIX) and name.upper() == variable), "")
        origins[field.name] = named or (str(path) if field.name in written else "default")
    return origins


def _check_keys(values: Mapping[str, Any], where: str) -> None:
    """Refuse keys that no setting has."""
    known = {field.name for field in fields(Settings)}
    for key in values:
        if key not in known:
            raise BadInput(f"{where}: no such setting: {key}; known: {', '.join(sorted(known))}", subject=key)


def _typed(key: str, value: Any) -> Any:
    """Convert a value to the type of its setting."""
    wanted = type(getattr(Settings(), key))
    if isinstance(value, wanted) and not isinstance(value, bool):
        return value
    if wanted is int and isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value.strip()):
        return int(value)
    kind = "a whole number" if wanted is int else "text"
    raise BadInput(f"setting {key}: {value!r} is not {kind}", subject=key)
