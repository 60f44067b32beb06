"""The statements of a graph: which node has which relation to which value. Every reader of graphs writes these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ....core.errors import BadPage
from .._common.allowance import Allowance

RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
TYPE: Final = f"{RDF}type"
FIRST: Final = f"{RDF}first"
REST: Final = f"{RDF}rest"
NIL: Final = f"{RDF}nil"

Fault = Callable[[str], BadPage]
"""Makes the error for a fault in a graph; it adds the document's name."""


class Ref(NamedTuple):
    """A value that is a node.

    :param key: the node's address (IRI), ``_:`` and its label for a node without address, or its id in GraphML.
    """

    key: str


class Literal(NamedTuple):
    """A value that is text.

    :param text: the text as written, escapes resolved.
    :param language: language tag in lower case, or ''.
    :param datatype: address of the datatype; '' for plain text and for text in a language.
    """

    text: str
    language: str = ""
    datatype: str = ""


Value = Ref | Literal


class Statement(NamedTuple):
    """One statement.

    :param subject: key of the node, see :class:`Ref`.
    :param relation: address or name of the relation.
    :param graph: key of the named graph that holds the statement; '' for the default graph.
    :param notes: (name, text) pairs that belong to the statement itself: the data of an edge.
    """

    subject: str
    relation: str
    value: Value
    graph: str = ""
    notes: tuple[tuple[str, str], ...] = ()


@dataclass
class Graph:
    """A graph under its limits, in the order of the file.

    :param fault: makes errors that name the document.
    :param allowance: letters and seconds that reading may use.
    :param max_statements: most statements that are read.
    :param base: address of the document, against which relative addresses are resolved; '' for none.
    :param nodes: keys of nodes that come first, in this order, and are shown also where nothing is stated of them.
    :param notes: what readers should know of how the graph was read.
    :param title: name of the whole graph, or ''.
    """

    fault: Fault
    allowance: Allowance
    max_statements: int
    base: str = ""
    statements: list[Statement] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    title: str = ""
    _unnamed: int = 0

    def add(
        self, subject: str, relation: str, value: Value, graph: str = "", notes: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Add a statement.

        :raises BadPage: the graph has too many statements, or reading takes too long.
        """
        if len(self.statements) >= self.max_statements:
            raise self.fault(f"more than {self.max_statements:,} statements; split the graph")
        if not len(self.statements) & 1023:
            self.allowance.spend("letters", 0)  # looks at the clock
        self.statements.append(Statement(subject, relation, value, graph, tuple(notes)))

    def unnamed(self) -> str:
        """Return the key of a new node without address; no document can write such a label."""
        self._unnamed += 1
        return f"_:#{self._unnamed}"
