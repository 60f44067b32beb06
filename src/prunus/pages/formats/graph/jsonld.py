"""JSON-LD 1.1 becomes the statements of a graph, by the contexts that stand in the document.

A key without a meaning is a relation with the key's own name, where JSON-LD drops it: readers of a page see it too.

A context says what keys and values of an object mean. No context is ever fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from .statements import FIRST, NIL, RDF, REST, TYPE, XSD, Graph, Literal, Ref, Value
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
class JsonLdContext:
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
        self._known: dict[tuple[int, int], tuple[JsonLdContext, JsonLdContext, Any]] = {}
        self._keys: dict[tuple[int, str], Term] = {}
        self._held: list[JsonLdContext] = []  # so that no id of a context is used anew
        self.first = JsonLdContext(base=graph.base)

    def key(self, context: JsonLdContext, key: str) -> Term:
        """Return what a key means; without a meaning it is a relation of its own name."""
        term = self._keys.get((id(context), key))
        if term is None:
            result = context.key(key)
            term = self._keys[id(context), key] = Term(key) if result is None else result
            self._graph.allowance.spend("letters", len(term.address))
            self._held.append(context)
        return term

    def address(self, context: JsonLdContext, text: str, of_type: bool = False) -> str:
        """Return the address that a text stands for, see :meth:`JsonLdContext.address`."""
        made = context.address(text, of_type)
        self._graph.allowance.spend("letters", max(0, len(made) - len(text)))
        return made

    def applied(self, context: JsonLdContext, local: Any, depth: int = 0) -> JsonLdContext:
        """Return a context after a local one: an object, a list of contexts, an address, or null.

        The result is kept: a context that is written once may apply to many objects.
        """
        known = self._known.get((id(context), id(local)))
        if known is None:
            made = self._made(context, local, depth)
            self._known[id(context), id(local)] = known = made, context, local  # holds both, as above
        return known[0]

    def _made(self, context: JsonLdContext, local: Any, depth: int) -> JsonLdContext:
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

    def _named(self, context: JsonLdContext, address: str) -> JsonLdContext:
        if _SCHEMA.fullmatch(address):  # its context is a vocabulary and little else
            return replace(context, vocabulary="http://schema.org/")
        note = f"The context {address[:300]} is not fetched: its names stand as written."
        if note not in self._graph.notes and len(self._graph.notes) < 20:
            self._graph.notes.append(note)
        return replace(context, unread=True)

    def _with_keywords(self, context: JsonLdContext, local: Mapping[str, Any]) -> JsonLdContext:
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

    def __init__(self, context: JsonLdContext, local: Mapping[str, Any], graph: Graph) -> None:
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


MAX_DEPTH: Final = 100
"""Nesting depth of objects and lists."""

_VALUE_KEYS: Final = frozenset({"@value", "@type", "@language", "@index", "@direction", "@context"})
_Each = Iterator[tuple[str, Term, Any]]


class Number(str):
    """A number of JSON, as written."""

    __slots__ = ()


class JsonLdReader:
    """Reads one JSON value into a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._contexts = graph, Contexts(graph)
        self._name = ""  # of the graph that is read
        self._depth = 0

    def read(self, document: Any) -> None:
        """Read a whole document: an object, or a list of objects.

        :raises BadPage: the document exceeds a limit.
        """
        for part in document if isinstance(document, list) else [document]:
            if isinstance(part, Mapping):
                self._top(part, self._contexts.first)

    def _top(self, part: Mapping[str, Any], context: JsonLdContext) -> None:
        """Read an object of the top; one that holds only nodes is none itself."""
        local = self._contexts.applied(context, part["@context"]) if "@context" in part else context
        rest = {key: member for key, member in part.items() if key != "@context"}
        if rest and all(term.address in ("@graph", "@included") for _, term in self._terms(rest, local)):
            self._deeper()
            for members in rest.values():
                for member in _listed(members):
                    if isinstance(member, Mapping):
                        self._top(member, local)
            self._depth -= 1
            return
        self._node(rest, local)

    # --- nodes ----------------------------------------------------------------------------------

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._graph.fault(f"objects and lists are nested more than {MAX_DEPTH} levels deep")

    def _node(self, node: Mapping[str, Any], context: JsonLdContext) -> str:
        """Read an object as a node; return its key."""
        self._deeper()
        if "@context" in node:
            context = self._contexts.applied(context, node["@context"])
        before = context
        given = [_listed(node[key]) for key, term in self._terms(node, context) if term.address == "@type"]
        types = [kind for kinds in given for kind in kinds if isinstance(kind, str)]
        for name in sorted(types):
            term = before.terms.get(name)
            if term is not None and term.context is not ...:
                context = self._contexts.applied(context, term.context)
        ids = [node[key] for key, term in self._terms(node, context) if term.address == "@id"]
        named = next((text for text in ids if isinstance(text, str)), None)
        key = self._graph.unnamed() if named is None else self._contexts.address(context, named)
        for kind in types:
            self._graph.add(key, TYPE, Ref(self._contexts.address(before, kind, True)), self._name)
        self._members(key, node, context, before)
        self._depth -= 1
        return key

    def _terms(self, node: Mapping[str, Any], context: JsonLdContext) -> Iterator[tuple[str, Term]]:
        for key in node:
            yield key, self._contexts.key(context, key)

    def _members(self, subject: str, node: Mapping[str, Any], context: JsonLdContext, before: JsonLdContext) -> None:
        """Read the members of an object as relations of a node.

        :param before: the context without those of the node's types: it applies to the nodes inside.
        """
        for key, term in self._terms(node, context):
            member = node[key]
            if term.address in ("@id", "@type", "@context", "@index", "") or member is None:
                continue
            if term.address == "@graph":
                self._named_graph(subject, member, context)
            elif term.address == "@included":
                for inner in _listed(member):
                    if isinstance(inner, Mapping):
                        self._node(inner, before)
            elif term.address == "@nest":
                self._deeper()
                for inner in _listed(member):
                    if isinstance(inner, Mapping):
                        self._members(subject, inner, context, before)
                self._depth -= 1
            elif term.address == "@reverse":
                if isinstance(member, Mapping):
                    for inner_key, inner_term in self._terms(member, context):
                        self._relation(subject, inner_key, inner_term, member[inner_key], (context, before), True)
            else:
                self._relation(subject, key, term, member, (context, before), False)

    def _named_graph(self, name: str, members: Any, context: JsonLdContext) -> None:
        outer, self._name = self._name, name
        for member in _listed(members):
            if isinstance(member, Mapping):
                self._node(member, context)
        self._name = outer

    def _relation(
        self,
        subject: str,
        key: str,
        term: Term,
        member: Any,
        contexts: tuple[JsonLdContext, JsonLdContext],
        turned: bool,
    ) -> None:
        """Read the values of one key.

        :param contexts: the context of the object, and the one that its inner nodes get.
        :param turned: whether the key stands under ``@reverse``.
        """
        context, inner = contexts
        if term.context is not ...:
            context = inner = self._contexts.applied(context, term.context)
        if term.kind == "@json":
            self._graph.add(subject, term.address, self._json(member), self._name)
            return
        if "@list" in term.container and not (isinstance(member, Mapping) and "@list" in member):
            member = {"@list": _listed(member)}
        for one in self._unpacked(member, term, context):
            if term.reverse != turned:
                named = term if term.kind else Term(term.address, "@id")
                for other in self._values(one, named, context, inner):
                    if isinstance(other, Ref):
                        self._graph.add(other.key, term.address, Ref(subject), self._name)
                continue
            position = len(self._graph.statements)
            if isinstance(one, Mapping) and not self._is_value(one, inner):
                self._graph.add(subject, term.address, Ref(NIL), self._name)  # before what stands inside the value
                result = self._values(one, term, context, inner)
                self._graph.statements[position] = self._graph.statements[position]._replace(value=result[0])
            else:
                for found_value in self._values(one, term, context, inner):
                    self._graph.add(subject, term.address, found_value, self._name)

    def _unpacked(self, member: Any, term: Term, context: JsonLdContext) -> Iterator[Any]:
        """Yield the single values of a key, out of sets and of maps by language, id, type, index or graph."""
        maps = term.container & {"@language", "@id", "@type", "@index"}
        if maps and isinstance(member, Mapping):
            (kind, *_) = sorted(maps)
            for index, held in member.items():
                for one in self._flat(held):
                    yield _mapped(kind, index, one, "@graph" in term.container)
            return
        for one in self._flat(member):
            yield {"@graph": one} if "@graph" in term.container and not _holds(one, "@graph") else one

    def _flat(self, member: Any, depth: int = 0) -> Iterator[Any]:
        """Yield the values in lists and sets, however nested."""
        if depth > MAX_DEPTH:
            raise self._graph.fault(f"objects and lists are nested more than {MAX_DEPTH} levels deep")
        if isinstance(member, list):
            for one in member:
                yield from self._flat(one, depth + 1)
        elif isinstance(member, Mapping) and "@set" in member:
            yield from self._flat(member["@set"], depth + 1)
        elif member is not None:
            yield member

    # --- values ---------------------------------------------------------------------------------

    def _is_value(self, node: Mapping[str, Any], context: JsonLdContext) -> bool:
        """Tell whether an object is a literal."""
        return any(term.address == "@value" for _, term in self._terms(node, context))

    def _values(self, one: Any, term: Term, context: JsonLdContext, inner: JsonLdContext) -> list[Value]:
        """Return the value that stands for one member; none where it stands for nothing."""
        if isinstance(one, Mapping):
            if self._is_value(one, inner):
                result = self._value_object({key.address: one[name] for name, key in self._terms(one, inner)}, inner)
                return [] if result is None else [result]
            listed = next((name for name, key in self._terms(one, inner) if key.address == "@list"), "")
            if listed:
                return [Ref(self._list(one[listed], term, context, inner))]
            return [Ref(self._node(one, inner))]
        return [self._plain(one, term, context)]

    def _plain(self, one: Any, term: Term, context: JsonLdContext) -> Value:
        """Return the value of a string, a number or a boolean."""
        if isinstance(one, bool):
            return Literal("true" if one else "false", "", term.kind if ":" in term.kind else f"{XSD}boolean")
        if isinstance(one, Number):
            return Literal(one, "", term.kind if ":" in term.kind else _number_type(one))
        if term.kind in ("@id", "@vocab"):
            return Ref(self._contexts.address(context, one, term.kind == "@vocab"))
        if term.kind and term.kind != "@none":
            return Literal(one, "", "" if term.kind == f"{XSD}string" else term.kind)
        return Literal(one, context.language if term.language is None else term.language)

    def _value_object(self, node: Mapping[str, Any], context: JsonLdContext) -> Literal | None:
        """Return the literal that an object with ``@value`` stands for; None for null."""
        plain, kind, language = node["@value"], node.get("@type"), node.get("@language")
        if kind == "@json":
            return self._json(plain)
        if plain is None:
            return None
        if isinstance(plain, list | Mapping):
            return self._json(plain)
        if isinstance(kind, str):
            result = self._plain(plain, Term("", self._contexts.address(context, kind, True)), context)
        else:
            result = self._plain(plain, Term("", "", language if isinstance(language, str) else ""), context)
        if isinstance(result, Ref):
            return Literal(result.key)
        return result._replace(language=result.language.lower())

    def _list(self, members: Any, term: Term, context: JsonLdContext, inner: JsonLdContext) -> str:
        """Read a list; return the key of its first place."""
        self._deeper()
        head = last = ""
        for member in _listed(members):
            if member is None:
                continue
            nested = {"@list": member} if isinstance(member, list) else member
            for one in [nested] if not _holds(nested, "@set") else self._flat(nested):
                place = self._graph.unnamed()
                if last:
                    self._graph.add(last, REST, Ref(place), self._name)
                head, last = head or place, place
                at = len(self._graph.statements)
                self._graph.add(place, FIRST, Ref(NIL), self._name)
                result = self._values(one, term, context, inner)
                if result:
                    self._graph.statements[at] = self._graph.statements[at]._replace(value=result[0])
        self._depth -= 1
        if last:
            self._graph.add(last, REST, Ref(NIL), self._name)
        return head or NIL

    def _json(self, member: Any) -> Literal:
        """Return a value that stays JSON."""
        try:
            text = json.dumps(member, ensure_ascii=False)
        except RecursionError:
            raise self._graph.fault("lists and objects are nested too deep") from None
        self._graph.allowance.spend("letters", len(text))
        return Literal(text, "", JSON_TYPE)


def _listed(member: Any) -> list[Any]:
    return member if isinstance(member, list) else [member]


def _holds(one: Any, key: str) -> bool:
    return isinstance(one, Mapping) and key in one


def _number_type(text: str) -> str:
    whole = text.lstrip("-").isdigit()
    return f"{XSD}integer" if whole else f"{XSD}double"


def _mapped(kind: str, index: str, one: Any, graph: bool) -> Any:
    """Return a value of a map as it stands without the map."""
    if graph and not _holds(one, "@graph"):
        one = {"@graph": one}
    if index == "@none":
        return one
    if kind == "@language":
        return {"@value": one, "@language": index}
    if kind == "@id" and isinstance(one, Mapping):
        return {"@id": index, **one}
    if kind == "@type":
        if isinstance(one, Mapping):
            return {**one, "@type": [index, *_listed(one.get("@type", []))]}
        return {"@id": one, "@type": index}
    return one
