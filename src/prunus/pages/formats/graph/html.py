"""A graph as HTML: a section for each node, with its name, its types and its relations.

What names another node links to ``#graph-node-N``, the N-th section of the page, counted from 1. So the scorers find
the neighbours of a node.

A name is a label of the graph, else the last part of an address.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from .._common.write import document, escape_attribute, escape_lines, escape_text, note
from .statements import FIRST, NIL, RDF, REST, TYPE, XSD, Graph, Literal, Ref, Statement, Value

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


LINK: Final = "#graph-node-"
"""Beginning of the target of a link from node to node; the number of a section follows."""

_DOCUMENTS: Final = frozenset(
    "Ontology ConceptScheme Dataset Catalog Article NewsArticle WebPage Book Report ScholarlyArticle".split()
)
"""Types whose first node gives the document its title, by the last part of their address."""

_PLAIN: Final = frozenset({"", *(RDF + name for name in ("langString", "HTML", "XMLLiteral", "JSON"))})
"""Datatypes that say nothing to a reader, beside those of XML Schema."""

_IN_LINE: Final = 12  # values of a relation on one line
_LONG: Final = 200  # letters from which one of several values gets a line of its own, and longest text of a link
_NESTED: Final = 4  # levels of nodes without address that stand inside the node that has them


class GraphWriter:
    """Writes one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._about: dict[str, list[Statement]] = {key: [] for key in graph.nodes}
        for statement in graph.statements:
            self._about.setdefault(statement.subject, []).append(statement)
        uses = Counter(item.value.key for item in graph.statements if isinstance(item.value, Ref))
        self._once = {key for key, count in uses.items() if count == 1 and key.startswith("_:") and key in self._about}
        self._labels: dict[str, Statement] = {}
        for key, about in self._about.items():
            label = _label(about)
            if label is not None:
                self._labels[key] = label
        self._numbers: dict[str, int] = {}
        self._written: set[str] = set()

    def html(self) -> str:
        """Return the whole page.

        :raises BadPage: names and addresses that are written again and again exceed their limit.
        """
        inside = self._inside()
        roots = [key for key in self._about if key not in inside]
        for key in roots:
            self._numbers[key] = len(self._numbers) + 1
        parts = [self._section(key) for key in roots]
        title = self._graph.title or self._title()
        head = [f"<h1>{escape_text(title)}</h1>"] if self._graph.title else []
        return document([*head, *map(note, self._graph.notes), *parts], title, self._language())

    def _title(self) -> str:
        """Return the name of the first node that stands for a document; '' without one."""
        for key, about in self._about.items():
            for item in about:
                if item.relation == TYPE and isinstance(item.value, Ref):
                    kind = item.value.key.replace("#", "/").rpartition("/")[2]
                    if kind in _DOCUMENTS:
                        return self._name(key)
        return ""

    def _language(self) -> str:
        """Return the language of all texts, where they have the same; else ''."""
        tags = {item.value.language for item in self._graph.statements if isinstance(item.value, Literal)} - {""}
        return tags.pop() if len(tags) == 1 else ""

    # --- which nodes stand inside others --------------------------------------------------------

    def _inside(self) -> set[str]:
        """Return the nodes that are written inside another node: without address, named once, not too deep."""
        result: set[str] = set()
        seen: set[str] = set()
        first = [key for key in self._about if key not in self._once]  # they surely have sections of their own
        for root in [*first, *self._about]:  # what is left names itself in a circle: its first node gets a section
            stack = [] if root in seen else [(root, 0)]
            while stack:
                key, level = stack.pop()
                seen.add(key)
                for item in self._about[key]:
                    value = item.value
                    if not isinstance(value, Ref) or value.key not in self._once or value.key in seen:
                        continue
                    place = item.relation == REST and self._is_list(value.key)  # the places of a list do not nest
                    if place or level < _NESTED:
                        result.add(value.key)
                        stack.append((value.key, level if place else level + 1))
                    else:
                        stack.append((value.key, 0))
        return result

    # --- sections -------------------------------------------------------------------------------

    def _section(self, key: str) -> str:
        plain = self._name(key)
        name = escape_text(plain)
        if key.startswith(("http://", "https://")):
            name = f'<a href="{escape_attribute(key)}">{name}</a>'
        elif plain != key and not key.startswith("_:"):
            name = f"{name} <small>({escape_text(key)})</small>"
        return f"<section><h2>{self._spent(name)}</h2>{self._relations(key)}</section>"

    def _relations(self, key: str) -> str:
        """Return the relations of a node as a list; '' for a node without."""
        label = self._labels.get(key)
        grouped: dict[str, list[Statement]] = {}
        for item in sorted(self._about[key], key=lambda item: item.relation != TYPE):
            if label is None or not _repeats(item, label):
                grouped.setdefault(self._relation(item.relation), []).append(item)
        graphs = dict.fromkeys(item.graph for item in self._about[key] if item.graph)
        parts = [self._item(name, items) for name, items in grouped.items()]
        if graphs:
            parts.append(f"<li>graph: {', '.join(self._link(graph, False) for graph in graphs)}</li>")
        return f"<ul>{''.join(parts)}</ul>" if parts else ""

    def _item(self, name: str, items: Sequence[Statement]) -> str:
        """Return one relation with its values as an item of a list."""
        unique = list(dict.fromkeys((item.relation, item.value, item.notes) for item in items))
        label = self._labels.get(items[0].subject)
        beside = [label.value] if label is not None and label.relation == items[0].relation else []
        texts = [value for value in [*beside, *(value for _, value, _ in unique)] if isinstance(value, Literal)]
        several = len({text.language for text in texts}) > 1
        values = [
            self._value(relation, value, several) + self._spent(_notes(notes)) for relation, value, notes in unique
        ]
        long = any("<ul>" in text or len(text) > _LONG for text in values)
        name = self._spent(escape_text(name))
        if len(values) == 1:
            return f"<li>{name}: {values[0]}</li>"
        if len(values) > _IN_LINE or long:
            return f"<li>{name}:<ul>{''.join(f'<li>{text}</li>' for text in values)}</ul></li>"
        return f"<li>{name}: {', '.join(values)}</li>"

    def _value(self, relation: str, value: Value, several: bool) -> str:
        """Return one value as HTML.

        :param several: whether the relation has values in several languages, so that each shows its own.
        """
        self._graph.allowance.spend("items")
        if isinstance(value, Literal):
            text = escape_lines(value.text)
            if several and value.language:
                return f"{text} ({value.language})"
            is_plain = value.datatype in _PLAIN or value.datatype.startswith(XSD)
            return text if is_plain else f"{text} ({escape_text(relation_name(value.datatype))})"
        key = value.key
        if key == NIL or (key in self._about and key not in self._numbers and self._is_list(key)):
            return self._list_html(relation, key)
        if key in self._about and key not in self._numbers and key not in self._written:
            self._written.add(key)  # inside this node, and only here
            name = self._spent(escape_text(self._labels[key].value.text)) if key in self._labels else ""  # type: ignore[union-attr]
            return name + self._relations(key)
        return self._link(key, is_address(relation), relation == TYPE)

    def _list_html(self, relation: str, key: str) -> str:
        """Return the values of a list, in its order."""
        values: list[str] = []
        while key in self._about and key not in self._numbers and key not in self._written:
            self._written.add(key)
            following = NIL
            for item in self._about[key]:
                if item.relation == FIRST:
                    values.append(self._value(relation, item.value, False))
                elif item.relation == REST and isinstance(item.value, Ref):
                    following = item.value.key
            key = following
        if key != NIL:
            values.append(self._link(key, False))
        if not values:
            return "(empty list)"
        if len(values) > _IN_LINE or any("<ul>" in text or len(text) > _LONG for text in values):
            return f"<ol>{''.join(f'<li>{text}</li>' for text in values)}</ol>"
        return ", ".join(values)

    def _is_list(self, key: str) -> bool:
        """Tell whether a node is the first place of a list, and nothing else."""
        return sorted(item.relation for item in self._about[key] if item.relation != TYPE) == [FIRST, REST]

    # --- names ----------------------------------------------------------------------------------

    def _name(self, key: str) -> str:
        """Return the name of a node for readers."""
        label = self._labels.get(key)
        if label is not None and isinstance(label.value, Literal):
            return " ".join(label.value.text.split())[:_LONG]
        if not key.startswith("_:"):
            name = node_name(key)
            return name if any(map(str.isalnum, name)) else f"node {name}".strip()
        kinds = [
            item.value.key for item in self._about.get(key, ()) if item.relation == TYPE and isinstance(item.value, Ref)
        ]
        number = self._numbers.get(key, 0)
        return f"{type_name(kinds[0]) if kinds else 'unnamed'} {number or ''}".strip()

    def _relation(self, address: str) -> str:
        label = self._labels.get(address)
        if label is not None and isinstance(label.value, Literal):
            return " ".join(label.value.text.split())[:_LONG]
        return "type" if address == TYPE else relation_name(address)

    def _link(self, key: str, whole: bool, is_type: bool = False) -> str:
        """Return a node that a relation leads to, as a link.

        :param whole: show the whole address of a node outside the graph.
        :param is_type: write the name as that of a type.
        """
        known = key in self._numbers
        if whole and not known:
            shown = key
        elif is_type and key not in self._labels:
            shown = type_name(key)
        else:
            shown = self._name(key)
        target = key if key.startswith(("http://", "https://")) and not is_type else ""
        target = f"{LINK}{self._numbers[key]}" if known else target
        text = escape_text(shown)
        return self._spent(f'<a href="{escape_attribute(target)}">{text}</a>' if target else text)

    def _spent(self, text: str) -> str:
        """Charge text that may be written again and again, and return it."""
        self._graph.allowance.spend("letters", len(text))
        return text


def _label(about: Sequence[Statement]) -> Statement | None:
    """Return the statement that names a node: the best relation; in English, without a language, or the first."""
    best: tuple[int, bool, int] | None = None
    result = None
    for index, item in enumerate(about):
        if not isinstance(item.value, Literal) or not item.value.text.strip():
            continue
        rank = label_rank(item.relation)
        if rank < 0:
            continue
        order = (rank, item.value.language.partition("-")[0] not in ("", "en"), index)
        if best is None or order < best:
            best, result = order, item
    return result


def _repeats(item: Statement, label: Statement) -> bool:
    """Tell whether a statement only says the name of its node again."""
    if not isinstance(item.value, Literal) or not isinstance(label.value, Literal) or label_rank(item.relation) < 0:
        return False
    return item.value.text == label.value.text and len(label.value.text) <= _LONG and "\n" not in label.value.text


def _notes(notes: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(f"{escape_text(relation_name(name))}: {escape_lines(text)}" for name, text in notes)
    return f" ({shown})" if shown else ""
