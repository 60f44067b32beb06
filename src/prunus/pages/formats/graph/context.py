"""The contexts of JSON-LD: what the keys and values of an object mean. No context is ever fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from .statements import RDF, Graph
from .turtle import resolved

KEYWORDS: Final = frozenset(
    """@base @container @context @direction @graph @id @import @included @index @json @language @list @nest @none
    @prefix @propagate @protected @reverse @set @type @value @version @vocab""".split()
)
_SCHEMA: Final = re.compile(r"https?://(?:www\.)?schema\.org(?:/|/docs/jsonldcontext\.json(?:ld)?)?")
_MAX_DEPTH: Final = 100
_PREFIX_END: Final = frozenset(":/?#[]@")


@dataclass(frozen=True, slots=True)
class Term:
    """What a key means.

    :param address: address of the relation or a keyword; '' for a key that the context switches off.
    :param kind: datatype of its plain values, or ``@id``, ``@vocab``, ``@json``; '' for none.
    :param language: language of its strings; None for that of the context.
    :param container: the containers of its values, as ``@list``.
    :param reverse: whether the relation leads from the value to the node.
    :param context: the context for its values, not yet applied; ``...`` for none.
    :param prefix: whether the term may stand before a colon.
    """

    address: str
    kind: str = ""
    language: str | None = None
    container: frozenset[str] = frozenset()
    reverse: bool = False
    context: Any = ...
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """The meaning of keys at one place of a document.

    :param terms: meaning by key.
    :param vocabulary: what keys and types without a meaning of their own are appended to; '' for none.
    :param base: address against which those of nodes are resolved.
    :param language: language of strings.
    :param unread: whether a context that is named only by its address stands before, so that keys lack a meaning.
    """

    terms: Mapping[str, Term] = field(default_factory=dict)
    vocabulary: str = ""
    base: str = ""
    language: str = ""
    unread: bool = False

    def key(self, key: str) -> Term | None:
        """Return what a key means; None where the context gives no meaning to it."""
        term = self.terms.get(key)
        if term is not None:
            return term
        if key in KEYWORDS:
            return Term(key)
        if self.unread and key in ("id", "type", "graph"):  # nearly every published context says so
            return Term(f"@{key}")
        address = self.address(key, of_type=True)
        return Term(address) if address != key or ":" in key else None

    def address(self, text: str, of_type: bool = False) -> str:
        """Return the address that a text stands for.

        :param of_type: the text is a type or a key, not a node: terms and the vocabulary apply.
        """
        if text in KEYWORDS:
            return text
        if of_type and (term := self.terms.get(text)) is not None and term.address:
            return term.address
        prefix, colon, rest = text.partition(":")
        if colon and prefix:
            if prefix == "_" or rest.startswith("//"):
                return text
            term = self.terms.get(prefix)
            return term.address + rest if term is not None and term.address and term.prefix else text
        if of_type:
            return self.vocabulary + text if self.vocabulary else text
        return resolved(self.base, text)


class Contexts:
    """Applies contexts one after the other, within the limits of the graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[int, int], tuple[Context, Context, Any]] = {}
        self._keys: dict[tuple[int, str], Term] = {}
        self._held: list[Context] = []  # so that no id of a context is used anew
        self.first = Context(base=graph.base)

    def key(self, context: Context, key: str) -> Term:
        """Return what a key means; without a meaning it is a relation of its own name."""
        term = self._keys.get((id(context), key))
        if term is None:
            found = context.key(key)
            term = self._keys[id(context), key] = Term(key) if found is None else found
            self._graph.allowance.spend("letters", len(term.address))
            self._held.append(context)
        return term

    def address(self, context: Context, text: str, of_type: bool = False) -> str:
        """Return the address that a text stands for, see :meth:`Context.address`."""
        made = context.address(text, of_type)
        self._graph.allowance.spend("letters", max(0, len(made) - len(text)))
        return made

    def applied(self, context: Context, local: Any, depth: int = 0) -> Context:
        """Return a context after a local one: an object, a list of contexts, an address, or null.

        The result is kept: a context that is written once may apply to many objects.
        """
        known = self._known.get((id(context), id(local)))
        if known is None:
            made = self._made(context, local, depth)
            self._known[id(context), id(local)] = known = made, context, local  # holds both, as above
        return known[0]

    def _made(self, context: Context, local: Any, depth: int) -> Context:
        if isinstance(local, list):
            for part in local:
                context = self.applied(context, part, depth + 1) if depth < _MAX_DEPTH else context
            return context
        if local is None:
            return self.first
        if isinstance(local, str):
            return self._named(context, local)
        if not isinstance(local, Mapping):
            return context
        self._graph.allowance.spend("looks", len(context.terms) + len(local))
        context = self._with_keywords(context, local)
        return replace(context, terms=_Definitions(context, local, self._graph).terms)

    def _named(self, context: Context, address: str) -> Context:
        if _SCHEMA.fullmatch(address):  # its context is a vocabulary and little else
            return replace(context, vocabulary="http://schema.org/")
        note = f"The context {address[:300]} is not fetched: its names stand as written."
        if note not in self._graph.notes and len(self._graph.notes) < 20:
            self._graph.notes.append(note)
        return replace(context, unread=True)

    def _with_keywords(self, context: Context, local: Mapping[str, Any]) -> Context:
        base, vocabulary, language = (local.get(key, ...) for key in ("@base", "@vocab", "@language"))
        if isinstance(base, str):
            context = replace(context, base=resolved(context.base, base))
        elif base is None:
            context = replace(context, base="")
        if isinstance(vocabulary, str):
            meant = context.vocabulary + vocabulary if vocabulary == "" else context.address(vocabulary, of_type=True)
            if ":" in vocabulary and meant == vocabulary:  # a prefix may be declared beside it
                prefix, _, rest = vocabulary.partition(":")
                beside = local.get(prefix)
                meant = beside + rest if isinstance(beside, str) and not rest.startswith("//") else meant
            context = replace(context, vocabulary=meant)
        elif vocabulary is None:
            context = replace(context, vocabulary="")
        if isinstance(language, str) or language is None:
            context = replace(context, language=(language or "").lower())
        return context


class _Definitions:
    """The terms of one local context, over those of the context before it."""

    def __init__(self, context: Context, local: Mapping[str, Any], graph: Graph) -> None:
        self._context, self._local, self._graph = context, local, graph
        self.terms: dict[str, Term] = dict(context.terms)
        self._open: set[str] = set()
        self._done: set[str] = set()
        for key in local:
            self._define(key, 0)

    def _define(self, key: str, depth: int) -> None:
        if key in self._done or key in self._open or key in KEYWORDS or depth > _MAX_DEPTH or key not in self._local:
            return  # a term that needs itself stays without a meaning
        self._open.add(key)
        self.terms.pop(key, None)
        definition = self._local[key]
        simple = isinstance(definition, str)
        if simple:
            definition = {"@id": definition}
        if isinstance(definition, Mapping):
            self.terms[key] = self._term(key, definition, simple, depth)
        elif definition is None:
            self.terms[key] = Term("")
        self._open.discard(key)
        self._done.add(key)

    def _term(self, key: str, definition: Mapping[str, Any], simple: bool, depth: int) -> Term:
        reverse = definition.get("@reverse")
        written = reverse if isinstance(reverse, str) else definition.get("@id", key)
        if written is None:
            return Term("")
        address = self._address(written if isinstance(written, str) else key, key, depth)
        kind, language = definition.get("@type"), definition.get("@language", ...)
        container = definition.get("@container")
        given = container if isinstance(container, list) else [container]
        return Term(
            address,
            self._address(kind, "", depth) if isinstance(kind, str) else "",
            (language or "").lower() if isinstance(language, str) or language is None else None,
            frozenset(name for name in given if isinstance(name, str)),
            isinstance(reverse, str),
            definition.get("@context", ...),
            definition.get("@prefix") is True or (simple and address[-1:] in _PREFIX_END) or address.startswith("_:"),
        )

    def _address(self, text: str, key: str, depth: int) -> str:
        """Return the address of a term or a datatype, with the terms that it needs defined before it."""
        if text in KEYWORDS:
            return text
        prefix, colon, rest = text.partition(":")
        if text != key:
            self._define(text, depth + 1)
            known = self.terms.get(text)
            if known is not None and known.address:
                return known.address
        if colon and prefix and prefix != "_" and not rest.startswith("//"):
            self._define(prefix, depth + 1)
            known = self.terms.get(prefix)
            made = known.address + rest if known is not None and known.address else text
        else:
            made = text if colon else self._context.vocabulary + text
        self._graph.allowance.spend("letters", len(made))
        return made


JSON_TYPE: Final = f"{RDF}JSON"
"""Datatype of values that stay JSON."""
