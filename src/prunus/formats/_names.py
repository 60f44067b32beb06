"""What a zip file holds, told by its names alone: cheap enough to ask of every file."""

from __future__ import annotations

from typing import Final

_DIRECTORY: Final = 1024 * 1024  # bytes at either end of a file in which its names are looked for


def names_part(content: bytes | str, *parts: bytes) -> bool:
    """Tell whether content is a zip file in whose directory one of the names stands; nothing is unpacked."""
    if isinstance(content, str) or not content.startswith(b"PK\x03\x04"):
        return False
    return any(part in content[-_DIRECTORY:] or part in content[:_DIRECTORY] for part in parts)
