"""GraphML becomes the statements of a graph: data of nodes, and edges with their data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ....core.errors import BadPage
from .._common.xml import cut_bytes, walk_xml
from .statements import TYPE, Graph, Literal, Ref

LINKED: Final = "linked to"
"""Relation of an edge whose data name none."""

_EDGE_NAMES: Final = ("label", "relationship", "relation", "predicate", "type", "name", "interaction")
_OWN: Final = frozenset({"id", "source", "target", "directed", "sourceport", "targetport", "key"})
_LABELS: Final = frozenset({"NodeLabel", "EdgeLabel", "GroupLabel"})
_HOLDERS: Final = frozenset({"graph", "node", "edge", "hyperedge", "port", "graphml"})


@dataclass(slots=True)
class _Key:
    """The declaration of a data field."""

    name: str
    of: str
    default: str = ""


@dataclass(slots=True)
class _Holder:
    """An element that is open and may hold data."""

    kind: str
    attrs: Mapping[str, str]
    data: list[tuple[str, str]] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)


class GraphMlReader:
    """Receives the elements of one document and writes its statements into a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._keys: dict[str, _Key] = {}
        self._holders: list[_Holder] = []
        self._key: _Key | None = None  # whose default or data is read
        self._label = False  # whether the text of a drawn label is read
        self._text: list[str] = []
        self._root = ""
        self._nodes: list[tuple[str, set[str]]] = []  # nodes, and the names of their data
        self._hyperedges = 0

    def read(self, text: str) -> None:
        """Read a whole document.

        :raises BadPage: the text is no GraphML (the error names line and column), or exceeds a limit.
        """

        def fault(reason: str) -> BadPage:
            return self._graph.fault(f"this document {reason}")

        walk_xml(cut_bytes(text.encode("utf-8", "replace")), self, fault, "utf-8")
        if self._root != "graphml":
            raise self._graph.fault(f"the root element is {self._root or 'missing'!r}, not 'graphml'")
        defaults = [key for key in self._keys.values() if key.default and key.of in ("node", "all")]
        for node, names in self._nodes:
            for key in defaults:
                if key.name not in names:
                    self._graph.allowance.spend("letters", len(key.name) + len(key.default))
                    self._graph.add(node, key.name, Literal(key.default))

    def start(self, name: str, attrs: Mapping[str, str]) -> None:
        """Enter an element."""
        self._root = self._root or name
        if self._key is not None:  # inside data: drawings, whose labels count
            self._label = name in _LABELS
            self._text.append(" ")
        elif name == "key":
            shown = attrs.get("attr.name") or attrs.get("id", "")
            self._keys[attrs.get("id", "")] = _Key("" if "yfiles.type" in attrs else shown, attrs.get("for", "all"))
            self._holders.append(_Holder("key", attrs))
        elif name in ("data", "default", "desc"):
            holder = self._holders[-1] if self._holders else None
            wanted = attrs.get("key", "") if name == "data" else holder.attrs.get("id", "") if holder else ""
            known = self._keys.get(wanted) if name != "desc" else None
            self._key = known or _Key("description" if name == "desc" else wanted, "all")
            self._text, self._label = [], False
        elif name == "endpoint":
            if self._holders:
                self._holders[-1].ends.append(attrs.get("node", ""))
        elif name in _HOLDERS:
            self._holders.append(_Holder(name, attrs))
            if name == "node":
                self._begin_node(attrs)

    def end(self, name: str) -> None:
        """Leave an element."""
        if self._key is not None:
            if name in ("data", "default", "desc"):
                self._end_data(name, self._key)
                self._key = None
            elif name in _LABELS:
                self._end_label()
            return
        if self._holders and name == self._holders[-1].kind:
            holder = self._holders.pop()
            if name == "node":
                self._end_node(holder)
            elif name == "edge":
                self._end_edge(holder)
            elif name == "hyperedge":
                self._end_hyperedge(holder)
            elif name == "graph" and not self._graph.title:
                names = [text for relation, text in holder.data if relation.lower() in ("name", "label", "title")]
                self._graph.title = names[0] if names else ""
                self._graph.notes += [f"{relation}: {text}" for relation, text in holder.data if text not in names[:1]]

    def data(self, text: str) -> None:
        """Read words."""
        if self._key is not None:
            self._text.append(text)

    def _end_label(self) -> None:
        """Keep the words of a drawn label, and read on."""
        text = " ".join("".join(self._text).split())
        if text and self._label and self._holders:
            self._holders[-1].data.append(("label", text))
        self._text, self._label = [], False

    def _end_data(self, name: str, key: _Key) -> None:
        text = "".join(self._text).strip()
        if not text or not self._holders:
            return
        if name == "default":
            declared = self._keys.get(self._holders[-1].attrs.get("id", ""))
            if declared is not None:
                declared.default = text
        else:
            self._holders[-1].data.append((key.name or "text", text))

    def _begin_node(self, attrs: Mapping[str, str]) -> None:
        """Note a node, and in which node it stands where that holds a graph."""
        if attrs.get("id"):
            self._graph.nodes.append(attrs["id"])
        above = next((holder for holder in reversed(self._holders[:-1]) if holder.kind == "node"), None)
        if above is not None:
            self._graph.add(attrs.get("id", ""), "part of", Ref(above.attrs.get("id", "")))

    def _end_node(self, holder: _Holder) -> None:
        key = holder.attrs.get("id", "") or self._graph.unnamed()
        for kind in holder.attrs.get("labels", "").split(":"):
            if kind.strip():
                self._graph.add(key, TYPE, Ref(kind.strip()))
        plain = [(name, text) for name, text in holder.attrs.items() if name not in _OWN and name != "labels"]
        for name, text in [*plain, *holder.data]:
            self._graph.add(key, name, Literal(text))
        self._nodes.append((key, {name for name, _ in holder.data}))

    def _end_edge(self, holder: _Holder) -> None:
        attrs = holder.attrs
        given = [*((name, text) for name, text in attrs.items() if name not in _OWN), *holder.data]
        missing = [key for key in self._keys.values() if self._is_missing(key, given)]
        self._graph.allowance.spend("letters", sum(len(key.name) + len(key.default) for key in missing))
        given = [(name, text) for name, text in given if text.strip()]
        given += [(key.name, key.default) for key in missing]
        ranks = [_EDGE_NAMES.index(name.lower()) for name, _ in given if name.lower() in _EDGE_NAMES]
        relation = LINKED
        if ranks:
            place = next(n for n, (name, _) in enumerate(given) if name.lower() == _EDGE_NAMES[min(ranks)])
            relation = given.pop(place)[1].splitlines()[0][:200]
        source, target = attrs.get("source", ""), attrs.get("target", "")
        self._graph.add(source, relation, Ref(target), "", tuple(given))

    def _is_missing(self, key: _Key, given: list[tuple[str, str]]) -> bool:
        """Tell whether the default of a field applies to an edge."""
        return bool(key.default) and key.of in ("edge", "all") and all(name != key.name for name, _ in given)

    def _end_hyperedge(self, holder: _Holder) -> None:
        self._hyperedges += 1
        key = holder.attrs.get("id") or f"hyperedge {self._hyperedges}"
        for name, text in holder.data:
            self._graph.add(key, name, Literal(text))
        for end in holder.ends:
            self._graph.add(key, LINKED, Ref(end))
