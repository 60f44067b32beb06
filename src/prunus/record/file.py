"""The file of a recorded run: a zip of ``run.json``, ``events.jsonl`` and ``blobs/SHA256``.

A file may come from a stranger: its sizes are limited, no name in it is used as a path, and every blob is checked
against the hash in its name.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..core.errors import BadInput

FORMAT: Final = "prunus run"
VERSION: Final = 1

_MIB: Final = 1024 * 1024
_LARGEST_FILE: Final = 512 * _MIB
_LARGEST_MEMBER: Final = 128 * _MIB
_LARGEST_JSON: Final = 32 * _MIB
"""Of what is parsed, which takes up to thirty times as much memory."""
_LARGEST_WHOLE: Final = 1024 * _MIB
_MOST_MEMBERS: Final = 20_000
_MOST_ENTRIES: Final = 200_000
_BLOB: Final = re.compile(r"blobs/([0-9a-f]{64})")
_HEAD: Final = "run.json"
_EVENTS: Final = "events.jsonl"
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every member, the earliest of a zip file: the same run must give the same bytes."""


@dataclass(slots=True)
class RunFile:
    """The content of a run's file.

    :param head: the question, settings, options and the answer.
    :param entries: the recorded replies from outside, in the order in which they came.
    :param blobs: contents of pages and vectors, by their sha256 in hex.
    """

    head: dict[str, Any] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)

    def keep(self, content: bytes) -> str:
        """Add a content, and return its sha256 in hex."""
        name = hashlib.sha256(content).hexdigest()
        self.blobs[name] = content
        return name


def pack(run: RunFile, secrets: Sequence[str] = ()) -> bytes:
    """Return a run as the bytes of its file; the same run gives the same bytes.

    :param secrets: texts that are replaced by ``***`` in everything but the blobs.
    """
    head = {"format": FORMAT, "version": VERSION, **run.head}
    events = "".join(f"{json.dumps(entry, ensure_ascii=True)}\n" for entry in run.entries)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in ((_HEAD, json.dumps(head, ensure_ascii=True, indent=1)), (_EVENTS, events)):
            _put(file, name, _without(text, secrets).encode("ascii"))
        for name, content in sorted(run.blobs.items()):
            _put(file, f"blobs/{name}", content)
    return buffer.getvalue()


def _put(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _LONG_AGO)
    info.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(info, content)


def _without(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        if secret:
            text = text.replace(json.dumps(secret, ensure_ascii=True)[1:-1], "***")
    return text


def unpack(path: Path) -> RunFile:
    """Read a run's file.

    :raises BadInput: the file is missing, too large, damaged, no run, or of another version.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise BadInput(f"{path}: not a recorded run, but a folder or a pipe", subject=str(path))
        if path.stat().st_size > _LARGEST_FILE:
            raise BadInput(f"{path}: over the limit of {_LARGEST_FILE // _MIB} MiB", subject=str(path))
        with zipfile.ZipFile(path) as file:
            return _read(file, path)
    except FileNotFoundError as error:
        raise BadInput(
            f"{path}: no such file; record one with: prunus ask … --record FILE", subject=str(path)
        ) from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error})", subject=str(path)) from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, ValueError) as error:
        raise BadInput(f"{path}: not a recorded run, or it is damaged ({error})", subject=str(path)) from error


def _read(file: zipfile.ZipFile, path: Path) -> RunFile:
    members = file.infolist()
    names = [member.filename for member in members]
    if len(members) > _MOST_MEMBERS or sum(member.file_size for member in members) > _LARGEST_WHOLE:
        raise BadInput(f"{path}: over the limits of a recorded run", subject=str(path))
    if len(set(names)) != len(names) or not {_HEAD, _EVENTS} <= set(names):
        raise BadInput(f"{path}: not a recorded run", subject=str(path))
    run = RunFile()
    for member in members:
        if member.filename in (_HEAD, _EVENTS):
            continue
        blob = _BLOB.fullmatch(member.filename)
        if not blob:
            raise BadInput(f"{path}: {member.filename[:80]!r} is not part of a recorded run", subject=str(path))
        content = _content(file, member, path)
        if hashlib.sha256(content).hexdigest() != blob[1]:
            raise BadInput(
                f"{path}: the content of a page does not match its hash; the file is damaged", subject=str(path)
            )
        run.blobs[blob[1]] = content
    run.head = _checked(_json(_content(file, file.getinfo(_HEAD), path), path), path)
    lines = _content(file, file.getinfo(_EVENTS), path).splitlines()
    if len(lines) > _MOST_ENTRIES:
        raise BadInput(f"{path}: over the limit of {_MOST_ENTRIES} replies", subject=str(path))
    for line in lines:
        run.entries.append(_json(line, path))
    return run


def _content(file: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> bytes:
    """Return the content of a member; refuse a member over the limit or over its stated size (a zip bomb)."""
    if member.flag_bits & 1:
        raise BadInput(f"{path}: the file is encrypted; record it again", subject=str(path))
    most = _LARGEST_JSON if member.filename in (_HEAD, _EVENTS) else _LARGEST_MEMBER
    if member.file_size > most:
        raise BadInput(f"{path}: a part of it is over {most // _MIB} MiB", subject=str(path))
    with file.open(member) as opened:
        content = opened.read(member.file_size + 1)
    if len(content) != member.file_size:
        raise BadInput(f"{path}: a part of it is larger than it says; the file is damaged", subject=str(path))
    return content


def _json(content: bytes, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(content, parse_constant=_refuse)
    except RecursionError as error:
        raise BadInput(f"{path}: nested too deeply for a recorded run", subject=str(path)) from error
    if not isinstance(value, dict):
        raise BadInput(f"{path}: not a recorded run", subject=str(path))
    return value


def _refuse(name: str) -> float:
    """Refuse NaN and Infinity, which Python's parser accepts and JSON does not have."""
    raise ValueError(f"{name} is no JSON")


def _checked(head: Mapping[str, Any], path: Path) -> dict[str, Any]:
    if head.get("format") != FORMAT:
        raise BadInput(f"{path}: not a recorded run", subject=str(path))
    if head.get("version") != VERSION:
        raise BadInput(
            f"{path}: a recorded run of version {head.get('version')!r}; this Prunus reads version {VERSION}",
            subject=str(path),
        )
    return dict(head)
