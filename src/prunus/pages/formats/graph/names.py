"""Readable names of nodes and relations: from labels in the graph, else from the last part of an address."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

LABELS: Final = ("preflabel", "label", "name", "title", "headline", "caption")
"""Relations that name a node, by the last part of their address in lower case; the first of them decides."""

ADDRESSES: Final = frozenset(
    """accessurl contenturl depiction downloadurl homepage image isdefinedby landingpage link logo mbox page sameas
    seealso source thumbnail url website workplacehomepage""".split()
)
"""Relations whose values readers want as addresses, by the last part of their address in lower case."""

_JOINT: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BLANK: Final = re.compile(r"[\s_]+")
_HYPHEN: Final = re.compile(r"(?<=[^\W\d])-(?=[^\W\d])")
_LONGEST: Final = 200


def local_name(address: str) -> str:
    """Return the last part of an address: what follows its last ``#``, ``/`` or ``:``; the whole where nothing does."""
    whole = address.rstrip("#/")
    cut = max(whole.rfind("#"), whole.rfind("/"))
    if cut < 0:
        cut = whole.rfind(":")
    elif whole[:cut].endswith(("/", ":")):  # a host alone is no name
        return address
    return whole[cut + 1 :] or address


def node_name(address: str) -> str:
    """Return a readable name of a node, on one line: ``Pell Harbour`` for ``https://a.org/Pell_Harbour``."""
    name = local_name(address)
    if "%" in name:
        name = unquote(name, errors="replace")
    return _BLANK.sub(" ", name).strip()[:_LONGEST] or address


def relation_name(address: str) -> str:
    """Return a readable name of a relation, in lower case but for abbreviations: ``birth place``, ``has ISBN``."""
    return " ".join(word if len(word) > 1 and word.isupper() else word.lower() for word in _words(address))


def type_name(address: str) -> str:
    """Return a readable name of a type: ``Postal Address``."""
    return " ".join(_words(address))


def label_rank(address: str) -> int:
    """Return how well a relation names a node, 0 best; -1 for a relation that names none."""
    name = local_name(address).lower()
    return LABELS.index(name) if name in LABELS else -1


def is_address(address: str) -> bool:
    """Tell whether readers want the values of a relation as addresses."""
    return local_name(address).lower() in ADDRESSES


def _words(address: str) -> list[str]:
    name = node_name(address)
    return (_JOINT.sub(" ", _HYPHEN.sub(" ", name)).split()) or [name]
