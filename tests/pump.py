"""Find every regular expression of the package, and write texts that make a slow one slow.

A pattern is slow when its time grows faster than its text: nested or adjoining repeats that share a letter
(``\\s*,?\\s*``), or a search that reads on to the end from each place where it may begin (``<!--.*?-->``). The texts come
from the pattern's own syntax tree: for each repeat, what stands before it, then what it repeats many times, then a letter
that ends the match.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import prunus

PARSER: Any = re._parser  # type: ignore[attr-defined] - Python's own reader of patterns; there is no public one
FUNCTIONS = frozenset("search match fullmatch sub subn split findall finditer".split())
ANCHORED = frozenset({"match", "fullmatch"})
MANY = 32
"""A repeat of at least so many is pumped."""

# --- every pattern of the package ----------------------------------------------------------------


@dataclass
class Found:
    """A pattern, where it stands, and the methods that are called on it; no method is known for one in a container."""

    pattern: re.Pattern[Any]
    names: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return min(self.names)

    @property
    def scans(self) -> bool:
        """Whether the pattern is tried at every place of a text."""
        return not self.methods or not self.methods <= ANCHORED


NEEDS: Final = {
    "prunus.serve": "fastapi",
    "prunus.adapters.haystack": "haystack",
    "prunus.adapters.langchain": "langchain_core",
    "prunus.adapters.llama_index": "llama_index",
    "prunus.adapters.llm": "llm.plugins",
}
"""The package that modules import when they are imported, by the beginning of their names."""


def without_extra(module: str) -> bool:
    """Tell whether a module needs an extra that is not installed; most modules import theirs where they use it."""
    return any(module.startswith(begin) and not _installed(package) for begin, package in NEEDS.items())


def _installed(package: str) -> bool:
    """Tell whether a package is installed. A folder of tests of the same name is none: it has no module of its own."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def sources() -> Iterator[tuple[ModuleType, str]]:
    """Yield each module of the package, imported, with its source; modules that need a missing extra are left out."""
    for entry in pkgutil.walk_packages(prunus.__path__, "prunus."):
        if entry.name.endswith("__main__") or without_extra(entry.name):
            continue
        module = importlib.import_module(entry.name)
        yield module, Path(str(module.__file__)).read_text("utf-8")


def collect() -> tuple[Mapping[re.Pattern[Any], Found], list[str]]:
    """Return every pattern, and each call that builds one while the program runs, as ``module:function``."""
    found: dict[re.Pattern[Any], Found] = {}
    built: list[str] = []
    modules = list(sources())
    for module, _ in modules:
        for name, value in vars(module).items():
            for pattern in _patterns_in(value, module.__name__):
                found.setdefault(pattern, Found(pattern)).names.add(f"{module.__name__}.{name}")
    for module, source in modules:
        tree = ast.parse(source)
        callers = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        placed = {  # match(text, place) is tried at one place after another
            id(node.func.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) > 1
        }
        for owner, node in _with_owner(tree):
            pattern = _named(node, module)
            if pattern is not None and isinstance(node.ctx, ast.Load):
                method = callers.get(id(node), "passed on")
                found[pattern].methods.add("at a place" if id(node) in placed and method in ANCHORED else method)
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
                continue
            if node.func.attr in FUNCTIONS or (node.func.attr == "compile" and owner):
                written = _literal(node, module)
                place = f"{module.__name__}:{owner}"
                if written is None:
                    built.append(place)
                    continue
                one = found.setdefault(written, Found(written))
                one.names.add(place)
                one.methods.add(callers.get(id(node), "passed on") if node.func.attr == "compile" else node.func.attr)
    return found, sorted(set(built))


def _patterns_in(value: object, module: str, depth: int = 5) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns in a value: in containers, and in the attributes of the module's own classes and objects."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth == 0 or isinstance(value, str | bytes | int | ModuleType):
        return
    elif isinstance(value, Mapping):
        for item in (*value, *value.values()):
            yield from _patterns_in(item, module, depth - 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _patterns_in(item, module, depth - 1)
    elif (value if isinstance(value, type) else type(value)).__module__ == module:
        fields = [*vars(value).values()] if hasattr(value, "__dict__") else []
        slots = [getattr(value, name, None) for name in getattr(type(value), "__slots__", ())]
        for item in (*fields, *slots):
            yield from _patterns_in(item, module, depth - 1)


def _with_owner(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each node with the name of the function that holds it; '' outside functions."""
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else owner
        yield inner, node
        yield from _with_owner(node, inner)


def _named(node: ast.AST, module: ModuleType) -> re.Pattern[Any] | None:
    """Return the pattern that a name or ``module.name`` stands for."""
    value: object = None
    if isinstance(node, ast.Name):
        value = getattr(module, node.id, None)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        value = getattr(getattr(module, node.value.id, None), node.attr, None)
    return value if isinstance(value, re.Pattern) else None


def _literal(call: ast.Call, module: ModuleType) -> re.Pattern[Any] | None:
    """Return the pattern of a call such as ``re.sub(r"…", …)``; None where it is no literal of this module."""
    try:
        text, *_ = [eval(compile(ast.Expression(call.args[0]), "", "eval"), dict(vars(module)))]
        given = next((word.value for word in call.keywords if word.arg == "flags"), None)
        if given is None and call.func.attr == "compile" and len(call.args) > 1:  # type: ignore[attr-defined]
            given = call.args[1]
        flags = eval(compile(ast.Expression(given), "", "eval"), dict(vars(module))) if given is not None else 0
    except NameError:
        return None
    return re.compile(text, flags)


# --- texts that slow a pattern down --------------------------------------------------------------

LETTERS = (
    " \t\n\ra b Z 1 _ - . , ; : / \\ \" ' ( ) [ ] { } < > & # = * | ! @ $ % \u00e9 \u6c34 \x00".replace(" ", "") + " "
)


class _Syntax:
    """The syntax tree of a pattern, with a choice of letters that tells its classes apart."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self.tree = PARSER.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        self.ignore_case = bool(pattern.flags & re.IGNORECASE)
        self.dot_all = bool(pattern.flags & re.DOTALL)
        self.is_bytes = isinstance(pattern.pattern, bytes)
        self.groups: dict[int, Any] = {}
        self.letters: list[str] = []
        atoms = list(self._atoms(self.tree))
        pumped = [atom for *_, body in self.repeats(self.tree) for atom in self._atoms(body)]
        letters: dict[tuple[bool, ...], str] = {}  # one letter for all that the repeats do not tell apart
        for letter in dict.fromkeys([*LETTERS, *self._written(atoms)]):
            if not self.is_bytes or ord(letter) < 256:
                letters.setdefault(tuple(self.accepts(atom, letter) for atom in pumped), letter)
        self.letters = list(letters.values())

    def _atoms(self, tree: Any) -> Iterator[Any]:
        for op, value in tree:
            if str(op) in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
                yield op, value
            elif str(op) == "SUBPATTERN":
                self.groups[value[0]] = value[3]
            for inner in _inside(op, value):
                yield from self._atoms(inner)

    def _written(self, atoms: Iterable[Any]) -> Iterator[str]:
        for op, value in atoms:
            for kind, item in value if str(op) == "IN" else [(op, value)]:
                if str(kind) in ("LITERAL", "NOT_LITERAL"):
                    yield chr(item)
                elif str(kind) == "RANGE":
                    yield from map(chr, item)

    def accepts(self, atom: Any, letter: str) -> bool:
        """Tell whether a class of letters holds a letter."""
        if self.ignore_case:
            return self._accepts(atom, letter.lower()) or self._accepts(atom, letter.upper()[:1])
        return self._accepts(atom, letter)

    def _accepts(self, atom: Any, letter: str) -> bool:
        op, value = str(atom[0]), atom[1]
        code = ord(letter)
        if op == "LITERAL":
            return bool(code == value)
        if op == "NOT_LITERAL":
            return bool(code != value)
        if op == "ANY":
            return self.dot_all or letter != "\n"
        if op == "RANGE":
            return bool(value[0] <= code <= value[1])
        if op == "CATEGORY":
            return _in_category(str(value), letter, self.is_bytes)
        negated = str(value[0][0]) == "NEGATE"
        return negated != any(self._accepts(item, letter) for item in (value[1:] if negated else value))

    def sample(self, tree: Any, full: bool, letter: str = "") -> str:
        """Return a text that a part matches: the shortest, or one with each optional part once.

        :param letter: preferred wherever a class accepts it.
        """
        return "".join(self._sample(op, value, full, letter) for op, value in tree)

    def _sample(self, op: Any, value: Any, full: bool, letter: str) -> str:
        kind = str(op)
        if kind == "LITERAL":
            return chr(value)
        if kind in ("NOT_LITERAL", "ANY", "IN"):
            accepted = [one for one in (letter, "a", *self.letters, *self._written([(op, value)])) if one]
            return next((one for one in accepted if self.accepts((op, value), one)), "a")
        if kind == "BRANCH":
            return self.sample(value[1][0], full, letter)
        if kind == "GROUPREF":
            return self.sample(self.groups[value], full, letter) if value in self.groups else ""
        if kind.endswith("REPEAT"):
            low, high, inner = value
            return self.sample(inner, full, letter) * max(low, 1 if full and high else 0)
        if kind in ("ASSERT", "ASSERT_NOT", "AT"):
            return ""
        return "".join(self.sample(inner, full, letter) for inner in _inside(op, value)[:1])

    def repeats(self, tree: Any, short: str = "", long: str = "") -> Iterator[tuple[str, str, Any]]:
        """Yield each unlimited repeat as (shortest text before it, longer text before it, what is repeated)."""
        for op, value in tree:
            if str(op).endswith("REPEAT") and value[1] >= MANY:
                yield short, long, value[2]
            for inner in _inside(op, value):
                yield from self.repeats(inner, short, long)
            short += self._sample(op, value, False, "")
            long += self._sample(op, value, True, "")


def _inside(op: Any, value: Any) -> list[Any]:
    """Return the parts of a node of the syntax tree."""
    kind = str(op)
    if kind == "SUBPATTERN":
        return [value[3]]
    if kind == "BRANCH":
        return list(value[1])
    if kind.endswith("REPEAT"):
        return [value[2]]
    if kind in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    if kind == "ATOMIC_GROUP":
        return [value]
    if kind == "GROUPREF_EXISTS":
        return [part for part in value[1:] if part is not None]
    return []


def _in_category(name: str, letter: str, is_bytes: bool) -> bool:
    sort = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[name.rpartition("_")[2]]
    found = re.match(sort.encode(), letter.encode("latin-1", "replace")) if is_bytes else re.match(sort, letter)
    return (found is None) == ("NOT" in name)


def attacks(pattern: re.Pattern[Any]) -> Iterator[Callable[[int], Any]]:
    """Yield functions that write a text of about so many letters, each meant to slow the pattern down."""
    syntax = _Syntax(pattern)
    seen: set[tuple[str, str, str]] = set()
    whole = [syntax.sample(syntax.tree, full) for full in (False, True)]
    parts: list[tuple[str, str, str]] = [("", text, end) for text in whole for end in ("", "\x00")]
    parts += [("", text[:-1], end) for text in whole for end in ("", "\x00")]
    for short, long, body in syntax.repeats(syntax.tree):
        pumps = {syntax.sample(body, full, letter) for full in (False, True) for letter in ("", *syntax.letters)}
        for head in dict.fromkeys((short, long)):
            for pump in sorted(pumps - {""}):
                parts += [(head, pump, end) for end in ("", "\x00", *[one for one in syntax.letters if one != pump])]
                parts.append(("", head + pump, ""))
            parts += [("", head, ""), ("", head, "\x00")]
    for head, pump, end in parts:
        if pump and (head, pump, end) not in seen:
            seen.add((head, pump, end))
            yield _writer(head, pump, end, syntax.is_bytes)


def _writer(head: str, pump: str, end: str, is_bytes: bool) -> Callable[[int], Any]:
    def write(size: int) -> Any:
        text = head + pump * max(1, size // len(pump)) + end
        return text.encode("latin-1", "replace") if is_bytes else text

    return write


def seconds(found: Found, text: Any) -> float:
    """Return the seconds that a pattern takes for a text, used as the package uses it."""
    start = time.thread_time()
    if found.scans:
        deque(found.pattern.finditer(text), 0)
    else:
        for method in found.methods:
            getattr(found.pattern, method)(text)
    return time.thread_time() - start


SHORT, MIDDLE, LONG = (25, 60, 120, 400), 2_000, 8_000
"""Sizes of the texts. The short ones find a pattern whose time doubles with each letter, before it runs for hours."""

MOST = 15e-6
"""Seconds that a letter may take; a repeat of at most some thousand letters is no growth, but slow."""


QUICK = 3e-5
"""Seconds for a text of the middle size; what takes less reads each letter once or twice."""


def slow(found: Found) -> str:
    """Return the text that makes a pattern slow, with its time; '' where every text takes linear time."""
    for write in attacks(found.pattern):
        middle = 0.0
        for size in (*SHORT, MIDDLE, LONG):
            text = write(size)
            taken = seconds(found, text)
            most = {MIDDLE: 0.05, LONG: min(max(9 * middle, 0.003), MOST * LONG)}.get(size, 0.002)
            for _ in range(3):
                if most < taken < 4 * most:  # a busy machine gets three more tries
                    taken = min(taken, seconds(found, text))
            if taken > most:
                return f"{text[:60]!r}… of {len(text):,} letters takes {taken:.4f} s"
            if size == MIDDLE and taken < QUICK:
                break
            middle = taken
    return ""
