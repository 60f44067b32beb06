"""``graph``: Turtle, TriG, N-Triples, N-Quads, JSON-LD and GraphML; a section for each node with its relations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....core.types import Page
from .._sniff import suffix_of

if TYPE_CHECKING:
    from .statements import Graph

_TURTLE: Final = frozenset({"text/turtle", "application/x-turtle", "application/trig"})
"""Media types of graphs that may begin with a brace or a bracket, and are no JSON."""


class Engine:
    """Graphs. Nothing that a graph names is fetched: no context, no vocabulary, no node.

    :param max_chars: limit on the characters of a file; default 32 Mi.
    :param max_statements: limit on the statements of a graph; default 200,000.
    """

    name = "graph"
    media_types = (
        "text/turtle", "application/x-turtle", "application/trig", "application/n-triples", "application/n-quads",
        "application/ld+json", "application/graphml+xml",
    )  # fmt: skip
    suffixes = (".ttl", ".nt", ".trig", ".nq", ".jsonld", ".graphml")

    def __init__(self, max_chars: int = 32 << 20, max_statements: int = 200_000) -> None:
        self._max_chars, self._max_statements = max_chars, max_statements

    def to_html(self, page: Page) -> str:
        """Return the graph as HTML.

        :raises BadPage: the content is empty, binary, breaks the grammar of its kind, holds no statement, or exceeds a
            limit. The message names line and column of a fault.
        """
        from .html import GraphWriter  # lazy: a program that reads no graph does not load it

        graph = self.graph_of(page)
        return GraphWriter(graph).html()

    def graph_of(self, page: Page) -> Graph:
        """Return the statements of a page.

        :raises BadPage: as for :meth:`to_html`.
        """
        from .._common.allowance import Allowance
        from .._common.write import page_error, text_of
        from .statements import Graph

        text = text_of(page, "a graph")
        if len(text) > self._max_chars:
            raise page_error(
                page, f"{len(text):,} characters are over the limit of {self._max_chars:,}; split the file"
            )
        address = page.final_url or page.url
        base = address if address.startswith(("http://", "https://")) else ""
        graph = Graph(lambda reason: page_error(page, reason), Allowance(page.url), self._max_statements, base)
        start = text.lstrip()
        turtle = suffix_of(address) in (".ttl", ".trig") or page.media_type in _TURTLE
        if start.startswith(("{", "[")) and not turtle:
            _read_json(page, text, graph)
        elif start.startswith(("<?xml", "<!", "<graphml")):
            from .graphml import GraphMlReader

            GraphMlReader(graph).read(start)
        else:
            from .turtle import TurtleReader

            TurtleReader(text, graph).read()
        if not graph.statements and not graph.nodes:
            raise page_error(page, "the graph holds no statement")
        return graph


def _read_json(page: Page, text: str, graph: Graph) -> None:
    from .._common.allowance import VALUE_MARKS
    from .._common.json_text import json_error, loads
    from .jsonld import JsonLdReader, Number

    graph.allowance.spend("values", sum(map(text.count, VALUE_MARKS)))
    try:
        document = loads(text, Number)
    except RecursionError as error:
        raise graph.fault("lists and objects are nested too deep") from error
    except ValueError as error:
        raise json_error(page, error) from error
    JsonLdReader(graph).read(document)
