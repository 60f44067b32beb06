"""JSON-LD 1.1 becomes the statements of a graph, by the contexts that stand in the document.

A key without a meaning is a relation with the key's own name, where JSON-LD drops it: readers of a page see it too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .context import JSON_TYPE, Context, Contexts, Term
from .statements import FIRST, NIL, REST, TYPE, XSD, Graph, Literal, Ref, Value

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

    def _top(self, part: Mapping[str, Any], context: Context) -> None:
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

    def _node(self, node: Mapping[str, Any], context: Context) -> str:
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

    def _terms(self, node: Mapping[str, Any], context: Context) -> Iterator[tuple[str, Term]]:
        for key in node:
            yield key, self._contexts.key(context, key)

    def _members(self, subject: str, node: Mapping[str, Any], context: Context, before: Context) -> None:
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

    def _named_graph(self, name: str, members: Any, context: Context) -> None:
        outer, self._name = self._name, name
        for member in _listed(members):
            if isinstance(member, Mapping):
                self._node(member, context)
        self._name = outer

    def _relation(
        self, subject: str, key: str, term: Term, member: Any, contexts: tuple[Context, Context], turned: bool
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
            place = len(self._graph.statements)
            if isinstance(one, Mapping) and not self._is_value(one, inner):
                self._graph.add(subject, term.address, Ref(NIL), self._name)  # before what stands inside the value
                found = self._values(one, term, context, inner)
                self._graph.statements[place] = self._graph.statements[place]._replace(value=found[0])
            else:
                for found_value in self._values(one, term, context, inner):
                    self._graph.add(subject, term.address, found_value, self._name)

    def _unpacked(self, member: Any, term: Term, context: Context) -> Iterator[Any]:
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

    def _is_value(self, node: Mapping[str, Any], context: Context) -> bool:
        """Tell whether an object is a literal."""
        return any(term.address == "@value" for _, term in self._terms(node, context))

    def _values(self, one: Any, term: Term, context: Context, inner: Context) -> list[Value]:
        """Return the value that stands for one member; none where it stands for nothing."""
        if isinstance(one, Mapping):
            if self._is_value(one, inner):
                found = self._value_object({key.address: one[name] for name, key in self._terms(one, inner)}, inner)
                return [] if found is None else [found]
            listed = next((name for name, key in self._terms(one, inner) if key.address == "@list"), "")
            if listed:
                return [Ref(self._list(one[listed], term, context, inner))]
            return [Ref(self._node(one, inner))]
        return [self._plain(one, term, context)]

    def _plain(self, one: Any, term: Term, context: Context) -> Value:
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

    def _value_object(self, node: Mapping[str, Any], context: Context) -> Literal | None:
        """Return the literal that an object with ``@value`` stands for; None for null."""
        plain, kind, language = node["@value"], node.get("@type"), node.get("@language")
        if kind == "@json":
            return self._json(plain)
        if plain is None:
            return None
        if isinstance(plain, list | Mapping):
            return self._json(plain)
        if isinstance(kind, str):
            found = self._plain(plain, Term("", self._contexts.address(context, kind, True)), context)
        else:
            found = self._plain(plain, Term("", "", language if isinstance(language, str) else ""), context)
        if isinstance(found, Ref):
            return Literal(found.key)
        return found._replace(language=found.language.lower())

    def _list(self, members: Any, term: Term, context: Context, inner: Context) -> str:
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
                found = self._values(one, term, context, inner)
                if found:
                    self._graph.statements[at] = self._graph.statements[at]._replace(value=found[0])
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
