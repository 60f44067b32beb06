"""Helpers for tests of graphs: the statements of a document, and the same in rdflib."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from prunus.core.types import Page
from prunus.pages.formats.graph.engine import Engine
from prunus.pages.formats.graph.statements import Literal, Ref, Statement


def statements_of(text: str | bytes, url: str = "x.ttl") -> list[Statement]:
    """Return the statements of a document, in the order of the file."""
    return Engine().graph_of(Page(text, url=url)).statements


def in_rdflib(rdflib: Any, statements: list[Statement]) -> Any:
    """Return statements as a data set of rdflib; what no RDF can say (a relation without address) is left out."""
    made = rdflib.Dataset()

    def node(key: str) -> Any:
        return rdflib.BNode(key[2:].replace("#", "anonymous")) if key.startswith("_:") else rdflib.URIRef(key)

    for item in statements:
        if ":" not in item.relation:
            continue
        value = item.value
        if isinstance(value, Ref):
            there = node(value.key)
        else:
            assert isinstance(value, Literal)
            datatype = rdflib.URIRef(value.datatype) if value.datatype else None
            there = rdflib.Literal(value.text, lang=value.language or None, datatype=datatype, normalize=False)
        graph = made.graph(node(item.graph)) if item.graph else made.default_graph
        graph.add((node(item.subject), rdflib.URIRef(item.relation), there))
    return made


def differences(rdflib: Any, ours: list[Statement], text: str, form: str, base: str | None = None) -> str:
    """Return how our statements differ from those that rdflib reads; '' where both are the same graphs."""
    rdflib.NORMALIZE_LITERALS = False  # numbers as written
    theirs = rdflib.Dataset()
    theirs.parse(data=text, format=form, publicID=base)
    mine = in_rdflib(rdflib, ours)
    plain = theirs.default_graph
    pairs = [(mine.default_graph, plain)]
    names = {graph.identifier for made in (mine, theirs) for graph in made.graphs() if len(graph)}
    names = {name for name in names if name != plain.identifier and not isinstance(name, rdflib.BNode)}
    pairs += [(mine.graph(name), theirs.graph(name)) for name in sorted(names)]
    for first, second in pairs:
        left, right = _shape(rdflib, first), _shape(rdflib, second)
        if left != right:
            return f"only ours: {left - right}\nonly rdflib: {right - left}"
    return ""


def _shape(rdflib: Any, graph: Any) -> Counter[tuple[str, ...]]:
    """Return the statements of a graph with what surrounds each node without address in place of its label.

    Eight rounds of it tell apart what these tests write; rdflib's own comparison takes minutes on nodes that look alike.
    """
    triples = [tuple(_as_meant(rdflib, term) for term in triple) for triple in graph]
    looks = {term: "_" for triple in triples for term in triple if isinstance(term, rdflib.BNode)}
    for _ in range(8):
        around: dict[Any, list[str]] = {term: [] for term in looks}
        for triple in triples:
            for place, term in enumerate(triple):
                if term in looks:
                    around[term].append(f"{place} {' '.join(str(looks.get(other, repr(other))) for other in triple)}")
        looks = {term: f"_{hash(tuple(sorted(lines)))}" for term, lines in around.items()}
    return Counter(tuple(looks.get(term, repr(term)) for term in triple) for triple in triples)


def _as_meant(rdflib: Any, term: Any) -> Any:
    """Return a term so that texts that mean the same are the same: ``xsd:string``, language tags, and numbers."""
    if not isinstance(term, rdflib.Literal):
        return term
    datatype = None if term.datatype == rdflib.XSD.string or term.language else term.datatype
    text = str(term)
    if datatype in (rdflib.XSD.integer, rdflib.XSD.decimal):
        text = str(Decimal(text).normalize())
    elif datatype == rdflib.XSD.double:
        text = repr(float(text))
    return f"{text!r} {(term.language or '').lower()} {datatype}"
