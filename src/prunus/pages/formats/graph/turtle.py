"""Turtle, TriG, N-Triples and N-Quads: one grammar reads them all (W3C, RDF 1.1)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urljoin

from ....core.errors import BadPage
from ....core.text.numbers import bounded_int
from .statements import FIRST, NIL, REST, TYPE, XSD, Graph, Literal, Ref, Value

MAX_DEPTH: Final = 100
"""Levels of brackets; it keeps the recursion far from Python's limit."""

_U: Final = (
    "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_C: Final = rf"{_U}0-9\u00b7\u0300-\u036f\u203f\u2040\-"
_PREFIX: Final = rf"(?:[{_U.replace('_', '', 1)}](?:\.*+[{_C}])*+)?+:"
_PERCENT: Final = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL: Final = rf"(?:(?:[{_U}:0-9]|{_PERCENT})(?:\.*+(?:[{_C}:]|{_PERCENT}))*+)?+"
_TOKEN: Final = re.compile(
    rf"""(?P<iri><[^\x00-\x20<>"{{}}|^`]*+>)
    |(?P<name>{_PREFIX}{_LOCAL})
    |(?P<blank>_:[{_U}0-9](?:\.*+[{_C}])*+)
    |(?P<long>\"\"\"(?:\"{{0,2}}(?:[^\"\\]|\\.))*+\"\"\"|'''(?:'{{0,2}}(?:[^'\\]|\\.))*+''')
    |(?P<text>"(?:[^"\\\n\r]|\\.)*+"|'(?:[^'\\\n\r]|\\.)*+')
    |(?P<double>[+-]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)[eE][+-]?+[0-9]++)
    |(?P<decimal>[+-]?+[0-9]*+\.[0-9]++)
    |(?P<integer>[+-]?+[0-9]++)
    |(?P<at>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+)
    |(?P<word>[A-Za-z]++)
    |(?P<mark>\^\^|<<|[.;,\[\](){{}}])""",
    re.VERBOSE | re.DOTALL,
)
_SKIP: Final = re.compile(r"(?:[ \t\r\n]++|\#[^\r\n]*+)*+")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_RESERVED: Final = re.compile(r"\\(.)")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BAD_IRI: Final = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
_NUMBERS: Final = frozenset({"integer", "decimal", "double"})
_SHOWN: Final = 30  # letters of the text at a fault that its error shows


def resolved(base: str, address: str) -> str:
    """Return an address resolved against a base; as it is where that fails."""
    if not base or _SCHEME.match(address):
        return address
    try:
        return urljoin(base, address) if address else base.partition("#")[0]
    except ValueError:
        return address


class TurtleReader:
    """Reads the statements of one document into a graph.

    A fourth term before the full stop names a graph, as in N-Quads; it may follow a relation written in full only,
    where no prefix was declared, so that a comma forgotten in Turtle is a fault.
    """

    def __init__(self, text: str, graph: Graph) -> None:
        self._text, self._graph = text, graph
        self._base = graph.base
        self._prefixes: dict[str, str] = {}
        self._depth = 0
        self._name = ""  # of the graph that is read
        self._place = self._end = 0  # of the current token
        self._kind = self._raw = ""
        self._next()

    def read(self) -> None:
        """Read the whole document.

        :raises BadPage: the text breaks the grammar (the error names line and column), or exceeds a limit.
        """
        while self._kind:
            if self._kind == "at" or (self._kind == "word" and self._raw.lower() in ("prefix", "base")):
                self._directive()
            elif self._raw == "{" and self._kind == "mark":
                self._block("")
            elif self._kind == "word" and self._raw.lower() == "graph":
                self._next()
                self._block(self._label())
            else:
                self._statement()

    # --- tokens ---------------------------------------------------------------------------------

    def _next(self) -> None:
        """Go to the next token; at the end its kind is ''."""
        skipped = _SKIP.match(self._text, self._end)
        self._place = skipped.end() if skipped else self._end
        if self._place == len(self._text):
            self._kind = self._raw = ""
            return
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            raise self._fault("is not understood")
        self._kind, self._raw, self._end = match.lastgroup or "", match[0], match.end()

    def _fault(self, reason: str, place: int = -1) -> BadPage:
        place = self._place if place < 0 else place
        line = self._text.count("\n", 0, place) + 1
        column = place - (self._text.rfind("\n", 0, place) + 1) + 1
        rest = self._text[place : place + _SHOWN].split("\n", 1)[0]
        subject = f"{rest!r} {reason}" if rest else "the text ends too early"
        return self._graph.fault(f"this is no valid Turtle (line {line:,}, column {column:,}: {subject})")

    def _is(self, mark: str) -> bool:
        return self._raw == mark and self._kind == "mark"

    def _take(self, mark: str) -> None:
        """Go past a mark.

        :raises BadPage: another token stands there.
        """
        if not self._is(mark):
            if self._is("<<"):
                raise self._fault("begins a statement about a statement, which is not read")
            raise self._fault(f"stands where {mark!r} belongs")
        self._next()

    # --- the parts of a document ----------------------------------------------------------------

    def _directive(self) -> None:
        kind = self._raw.lower()
        dotted = kind[0] == "@"
        if kind not in ("@prefix", "@base", "prefix", "base"):
            raise self._fault("is no directive")
        self._next()
        prefix = ""
        if kind.endswith("prefix"):
            if self._kind != "name" or not self._raw.endswith(":") or self._raw.count(":") > 1:
                raise self._fault("is no prefix")
            prefix = self._raw
            self._next()
        if self._kind != "iri":
            raise self._fault("is no address in angle brackets")
        address = self._iri()
        if kind.endswith("prefix"):
            self._prefixes[prefix] = address
        else:
            self._base = address
        if dotted:
            self._take(".")

    def _block(self, name: str) -> None:
        """Read the statements of a graph in braces."""
        self._name = name
        self._take("{")
        while not self._is("}"):
            self._triples()
            if not self._is("}"):
                self._take(".")
        self._next()
        self._name = ""

    def _label(self) -> str:
        """Read the name of a graph, or a subject that is one token."""
        if self._kind in ("iri", "name"):
            return self._iri()
        if self._kind == "blank":
            label = self._raw
            self._next()
            return label
        raise self._fault("names no node")

    def _statement(self) -> None:
        if self._kind in ("iri", "name", "blank"):
            name = self._label()
            if self._is("{"):
                self._block(name)
                return
            self._relations(name)
        else:
            subject, alone = self._bracket()
            if self._is("{") and alone:
                self._block(subject)
                return
            if not (alone and self._is(".")):
                self._relations(subject)
        self._take(".")

    def _triples(self) -> None:
        """Read one subject with its relations."""
        if self._kind in ("iri", "name", "blank"):
            self._relations(self._label())
            return
        subject, alone = self._bracket()
        if not (alone and (self._is(".") or self._is("}"))):
            self._relations(subject)

    def _bracket(self) -> tuple[str, bool]:
        """Read a subject in brackets; return its key, and whether it may stand without relations."""
        if self._is("["):
            key = self._graph.unnamed()
            self._properties(key)
            return key, True
        if self._is("("):
            return self._list(), False
        if self._is("<<"):
            raise self._fault("begins a statement about a statement, which is not read")
        raise self._fault("names no node")

    def _relations(self, subject: str) -> None:
        """Read relations and their values, up to what ends them."""
        while True:
            full = self._kind == "iri" and not self._prefixes and not self._depth
            if self._kind == "word" and self._raw == "a":
                relation = TYPE
                self._next()
            elif self._kind in ("iri", "name"):
                relation = self._iri()
            else:
                raise self._fault("is no relation")
            self._value(subject, relation, full)
            while self._is(","):
                self._next()
                self._value(subject, relation)
            if not self._is(";"):
                return
            while self._is(";"):
                self._next()
            if self._is(".") or self._is("]") or self._is("}"):
                return

    def _value(self, subject: str, relation: str, full: bool = False) -> None:
        """Read one value and add its statement; what stands inside brackets follows it."""
        graph = self._graph
        if self._is("["):
            key = graph.unnamed()
            graph.add(subject, relation, Ref(key), self._name)
            self._properties(key)
        elif self._is("("):
            position = len(graph.statements)
            graph.add(subject, relation, Ref(NIL), self._name)
            head = self._list()
            graph.statements[position] = graph.statements[position]._replace(value=Ref(head))
        else:
            value = self._term()
            name = self._name
            if full and not name and self._kind in ("iri", "blank"):
                name = self._label()
            graph.add(subject, relation, value, name)

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._fault(f"is nested more than {MAX_DEPTH} levels deep")

    def _properties(self, key: str) -> None:
        """Read the relations of a node without address."""
        self._deeper()
        self._next()
        if not self._is("]"):
            self._relations(key)
        self._take("]")
        self._depth -= 1

    def _list(self) -> str:
        """Read a list; return the key of its first place."""
        self._deeper()
        self._next()
        head = last = ""
        while not self._is(")"):
            place = self._graph.unnamed()
            if last:
                self._graph.add(last, REST, Ref(place), self._name)
            head, last = head or place, place
            self._value(place, FIRST)
        self._next()
        self._depth -= 1
        if last:
            self._graph.add(last, REST, Ref(NIL), self._name)
        return head or NIL

    # --- terms ----------------------------------------------------------------------------------

    def _iri(self) -> str:
        """Read an address, in full or with a prefix."""
        raw, place = self._raw, self._place
        if self._kind == "iri":
            address = raw[1:-1]
            if "\\" in address:
                address = self._unescaped(address, place + 1, strings=False)
                if _BAD_IRI.search(address):
                    raise self._fault("holds a letter that no address may hold", place)
            address = resolved(self._base, address)
        else:
            prefix, _, local = raw.partition(":")
            start = self._prefixes.get(f"{prefix}:")
            if start is None:
                raise self._fault("has a prefix that is not declared", place)
            address = start + (_RESERVED.sub(r"\1", local) if "\\" in local else local)
        self._graph.allowance.spend("letters", max(0, len(address) - len(raw)))
        self._next()
        return address

    def _term(self) -> Value:
        """Read a value without brackets."""
        kind, raw = self._kind, self._raw
        if kind in ("iri", "name"):
            return Ref(self._iri())
        if kind in ("text", "long"):
            return self._literal()
        if kind == "blank":
            self._next()
            return Ref(raw)
        if kind in _NUMBERS:
            self._next()
            return Literal(raw, "", XSD + kind)
        if kind == "word" and raw in ("true", "false"):
            self._next()
            return Literal(raw, "", f"{XSD}boolean")
        if self._is("<<"):
            raise self._fault("begins a statement about a statement, which is not read")
        raise self._fault("is no value")

    def _literal(self) -> Literal:
        width = 3 if self._kind == "long" else 1
        text = self._raw[width:-width]
        if "\\" in text:
            text = self._unescaped(text, self._place + width, strings=True)
        self._next()
        if self._kind == "at":
            language = self._raw[1:].lower()
            self._next()
            return Literal(text, language)
        if self._is("^^"):
            self._next()
            if self._kind not in ("iri", "name"):
                raise self._fault("is no datatype")
            datatype = self._iri()
            return Literal(text, "", "" if datatype == f"{XSD}string" else datatype)
        return Literal(text)

    def _unescaped(self, text: str, place: int, strings: bool) -> str:
        """Return text with its escapes resolved.

        :param place: where the text begins, for errors.
        :param strings: whether the escapes of strings are allowed, as ``\\n``.
        """

        def letter(found: re.Match[str]) -> str:
            number = found[1] or found[2]
            if number:
                code = bounded_int(number, 0, most=0x110000, base=16)
                if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                    return chr(code)
            elif strings and found[3] in _ESCAPES:
                return _ESCAPES[found[3]]
            raise self._fault("is no escape", place + found.start())

        return _ESCAPE.sub(letter, text)
