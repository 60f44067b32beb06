"""Numbers that somebody else wrote are read by ``core.text.numbers`` alone, checked in the syntax of every file.

``int("²")`` and ``int("9" * 5_000)`` raise errors, ``chr(0x110000)`` too. In the rooms that read pages, documents,
headers, answers of servers and replies of models, ``int``, ``float`` and ``chr`` may only be called with what is evidently
a number already, or with an exception of ``ALLOWED``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import prunus

SRC = Path(prunus.__file__).parent
READERS = """pages web answer core/text evidence/score/paths/_server.py evidence/score/paths/llamacpp.py
    evidence/score/paths/sglang.py evidence/score/paths/vllm.py models/rerank/http.py models/embed/http.py
    models/json_reply.py models/llm/openai.py models/llm/_shared.py index/store/file index/evidence.py""".split()
"""Rooms and files that read foreign text."""

CALLS = ("int", "float", "chr")

ALLOWED = {  # pattern of "file: argument" -> why it is no foreign text
    r"answer/check.py: order\[top\]": "an array",
    r"answer/rank_pages.py: best\[index\]": "an array",
    r"core/text/numbers.py: .*": "the functions themselves",
    r"evidence/score/paths/_server.py: self._options\[.*\]": "an option of the operator, checked where it is read",
    r"evidence/score/paths/_server.py: tree\.(token|depth)\[\w+\]": "an array",
    r"answer/extract/sentences.py: declared\(reranker, 'reranker', 'added'\)": "a number that an engine declares",
    r"index/store/file/engine.py: (id|row|meta\(file\)\['version'\])": "ids of the caller, an array, and a number of SQLite",
    r"index/store/file/(large|postings).py: (self._mean @ vector|vector @ self._square @ vector|self._ends\[place( - 1)?\])": "arrays",
    r"index/store/file/\w+.py: (file.execute\(query\).fetchone\(\)\[0\]|result.lastrowid or 0)": "a number of SQLite",
    r"models/llm/openai.py: value": "an option of the operator, checked in the lines above",
    r"pages/formats/pdf/engine.py: getattr\(signal, 'SIGXCPU', 0\)": "the number of a signal",
    r"pages/formats/sqlite.py: allowance.is_late\(\)": "a truth value",
    r"pages/formats/pdf/reader.py: (max_pages|max_chars|seconds|memory)": "an argument that Prunus passes to its process",
    r"pages/formats/pdf/ocr.py: (seconds|memory|score)": "arguments of Prunus, and a number of onnxruntime",
    r"pages/formats/pdf/reader.py: (apart|self.raw.FPDFText_CountChars\(text\))": "a truth value, and a number of pdfium",
    r"pages/main/\w+.py: (sums\[0, -1\]|main_heading.argmax\(\)|np.where\(.*\).argmax\(\)|units.(first|last)\[index\]|(mass|size)\[-1\])": "arrays",
    r"pages/write/markdown.py: tag\[1\]": "the name of a heading, h1 to h6",
    r"web/door/addresses.py: address": "an IP address object",
    r"web/door/network.py: timeout": "an object that is a float",
    r"web/fetch/_store.py: size": "a sum of SQLite over whole numbers",
    r"web/fetch/links.py: scores\[i\]": "an array",
    r"web/search/local.py: page": "an array",
}

_FUNCTIONS = {"abs", "bool", "bounded_float", "bounded_int", "float", "has_header", "int", "len", "ord", "round", "sum"}
_METHODS = {"count_nonzero", "index", "isspace", "isupper", "max", "mean", "min", "std", "sum"}
_ARITHMETIC = (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow, ast.LShift)
"""Operators that no text has."""


class Numbers(ast.NodeVisitor):
    """Collects the calls of a function, or of a module, whose argument is not evidently a number."""

    def __init__(self, scope: ast.AST, outer: frozenset[str] = frozenset()) -> None:
        self.found: list[str] = []
        self.scope = scope
        self.known = outer  # names of numbers
        for _ in range(2):  # a name may be assigned from another
            self.known |= frozenset(self._named())
        self.generic_visit(scope)

    def _own(self) -> Iterator[ast.AST]:
        """Yield the nodes of the scope, without those of the functions inside."""
        waiting = list(ast.iter_child_nodes(self.scope))
        while waiting:
            node = waiting.pop()
            yield node
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                waiting.extend(ast.iter_child_nodes(node))

    def _named(self) -> Iterator[str]:
        """Yield the names that hold only numbers: by their annotation, or by everything that is assigned to them."""
        assigned: dict[str, list[ast.expr | None]] = {}
        for node in self._own():
            if isinstance(node, ast.arg | ast.AnnAssign):
                name = node.arg if isinstance(node, ast.arg) else getattr(node.target, "id", "")
                if node.annotation and re.fullmatch(r"int|float|bool|int \| float", ast.unparse(node.annotation)):
                    yield name
                elif isinstance(node, ast.AnnAssign):
                    assigned.setdefault(name, []).append(node.value)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    pairs = [(target, node.value)]
                    if isinstance(target, ast.Tuple):
                        values = node.value.elts if isinstance(node.value, ast.Tuple) else [None] * len(target.elts)
                        pairs = list(zip(target.elts, values, strict=False))
                    for part, value in pairs:
                        assigned.setdefault(getattr(part, "id", ""), []).append(value)
            elif isinstance(node, ast.For | ast.comprehension | ast.withitem | ast.NamedExpr):
                target = node.optional_vars if isinstance(node, ast.withitem) else node.target
                for name in ast.walk(target) if target else ():
                    assigned.setdefault(getattr(name, "id", ""), []).append(None)
        for name, values in assigned.items():
            if name and all(value is not None and self.is_number(value) for value in values):
                yield name

    def is_number(self, node: ast.expr) -> bool:
        """Tell whether an expression is evidently a number."""
        match node:
            case ast.Constant(value):
                return isinstance(value, int | float) or value in ("inf", "-inf", "nan")
            case ast.Name(name):
                return name in self.known
            case ast.Compare() | ast.UnaryOp(op=ast.Not() | ast.USub()):
                return True
            case ast.BoolOp(values=values):
                return all(self.is_number(value) for value in values)
            case ast.IfExp(body=body, orelse=other):
                return self.is_number(body) and self.is_number(other)
            case ast.BinOp(left=left, op=operator, right=right):
                return isinstance(operator, _ARITHMETIC) or self.is_number(left) or self.is_number(right)
            case ast.Call(func=ast.Name("min" | "max"), args=values):
                return any(self.is_number(value) for value in values)
            case ast.Call(func=ast.Name(name)):
                return name in _FUNCTIONS
            case ast.Call(func=ast.Attribute(ast.Name("np" | "math"))):
                return True
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in _METHODS
            case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="count"))):
                return True  # of a token counter, which returns an array
        return False

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.found += Numbers(node, self.known - _parameters(node)).found

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "id", "")
        if name in CALLS and not (node.args and all(self.is_number(value) for value in node.args[:1])):
            self.found.append(ast.unparse(node.args[0]) if node.args else "")
        if name not in ("isinstance", "issubclass", "cast", "dict"):  # as in map(int, texts)
            self.found += [ast.unparse(node) for value in node.args if getattr(value, "id", "") in CALLS]
        self.generic_visit(node)


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    return frozenset(argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg))


def breaches(source: str) -> list[str]:
    """Return the arguments of the calls in a file that are not evidently numbers."""
    return Numbers(ast.parse(source)).found


def sources() -> Iterator[tuple[str, str]]:
    for reader in READERS:
        place = SRC / reader
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            yield file.relative_to(SRC).as_posix(), file.read_text("utf-8")


FOUND = [f"{name}: {argument}" for name, source in sources() for argument in breaches(source)]


def test_foreign_text_becomes_a_number_only_by_the_functions_with_limits() -> None:
    assert [place for place in FOUND if not any(re.fullmatch(pattern, place) for pattern in ALLOWED)] == []


def test_every_exception_is_needed() -> None:
    assert [pattern for pattern in ALLOWED if not any(re.fullmatch(pattern, place) for place in FOUND)] == []


@pytest.mark.parametrize(
    "source",
    [
        "def f(text: str): return int(text)",
        "def f(text): return int(text) if text.isdigit() else 0",
        "def f(text: str): return int(text[:6] or 1)",
        "def f(match): return int(match[1]) + float(match.group(2))",
        "def f(text: str): return [int(part) for part in text.split()]",
        "def f(text: str): return list(map(int, text.split()))",
        "def f(node):\n size = node.attr('size')\n return int(size)",
        "def f(node):\n size = 1\n size = node.attr('size')\n return int(size)",
        "size = 1\ndef f(size): return int(size)",
        "def f(code: str): return chr(int(code, 16))",
        "def f(node):\n for size in node.sizes: yield int(size)",
    ],
)
def test_a_bare_number_of_foreign_text_is_found(source: str) -> None:
    assert breaches(source)


@pytest.mark.parametrize(
    "source",
    [
        "def f(size: int): return float(size)",
        "def f(text: str): return int(len(text) / 2)",
        "def f(text: str): return int(text == 'a')",
        "def f(text: str):\n code = bounded_int(text, 0, most=9)\n return chr(code)",
        "def f(values): return int(values.argmax() - 1)",
        "FAR = 5\ndef f(): return float(FAR)",
    ],
)
def test_a_number_may_be_converted(source: str) -> None:
    assert breaches(source) == []
