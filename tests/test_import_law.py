"""The import law and the habits of the house, read from the syntax of every file; and the proof that each check bites.

The ground floor is a ladder: each step imports only from the steps below it. A room imports the
ground floor and itself; other engines arrive through constructors. ``pipeline`` knows no engine
but the greedy pruner, ``assemble`` picks engines by name, ``api`` is the sync face, and the edge
sees those. Nothing in the core knows of evaluations or training.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import prunus

SRC = Path(prunus.__file__).parent
REPOSITORY = Path(__file__).parents[1]

LADDER: tuple[frozenset[str], ...] = (
    frozenset({"options"}),
    frozenset({"abbreviations", "errors", "types"}),
    frozenset({"events", "retry", "segment"}),
    frozenset({"text", "embedded", "prompts", "model_folder", "encoders"}),
    frozenset({"lexical"}),
    frozenset({"html"}),
    frozenset({"ports"}),
    frozenset({"config", "registry", "granularity", "sources", "cite", "replies", "cost", "remote"}),
)
GROUND = frozenset().union(*LADDER)

CHOOSING = frozenset({"config", "registry", "sources"})
"""Steps of the ground floor that pick, read or configure; an engine is given what it needs."""

ROOMS = frozenset("formats fetch search plan embed score prune rank extract llm tokens generate index".split())

FLOW = frozenset(
    """pipeline running evidence answering websearch webanswer systems support tracing chat pictures recording replaying
    runfile""".split()
)
"""The stages of an answer, one file each; they see ports only."""

SEES: dict[str, frozenset[str]] = {
    **{room: (GROUND - CHOOSING) | {room} for room in ROOMS},
    **dict.fromkeys(FLOW, GROUND - CHOOSING | FLOW),
    "pipeline": (GROUND - CHOOSING) | {"prune.greedy", "prune.stages", "answering", "running"},
    "pictures": GROUND - frozenset({"config", "registry"}),
    "websearch": (GROUND - CHOOSING) | FLOW | {"search._merge", "rank._mixed"},
    "assemble": GROUND | FLOW | {"network", "embed._cached", "formats._sniff", "search._merge"},
    "network": GROUND | {"fetch"},  # settings -> the door, fetchers, cache and snapshots
    "api": GROUND | FLOW | {"assemble", "network", "asked", "indexed", "index.terms"},
    "asked": GROUND | {"pipeline", "indexed", "index"},  # evidence and answers of indexes
    "gathered": GROUND | {"pipeline", "assemble", "api", "index"},  # documents for an index
    "indexed": GROUND | {"pipeline", "assemble", "api", "asked", "gathered", "index"},  # settings -> an index
    "edge": GROUND
    | FLOW
    | {"assemble", "network", "api", "asked", "gathered", "indexed", "index.terms", "index.verify", "edge", "prunus"},
    # the door; rooms that share their name with a function
    "prunus": GROUND | {"api", "indexed", "index.terms", "extract", "prune", "search"},
}
"""What each part may import, beside itself."""

GUESTS_SEE = frozenset({"prunus", "types", "events", "ports", "registry", "html", "text", "errors", "index", "rank"})
"""What evaluations and training may import of the core; ``index`` and ``rank`` because retrieval and mixed ranking are
functions and no engines that the registry makes."""

# --- reading files -------------------------------------------------------------------------------


def modules(root: Path, package: str) -> Iterator[tuple[str, str]]:
    """Yield (dotted name, source) of every file of a package."""
    for path in sorted(root.rglob("*.py")):
        steps = [package, *path.relative_to(root).with_suffix("").parts]
        yield ".".join(steps), path.read_text("utf-8")


def imports(module: str, source: str) -> Iterator[tuple[str, int]]:
    """Yield (dotted name, line) of everything that a file imports, inside functions too."""
    package = module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            if node.module and start not in ("prunus", "os"):
                yield start, node.lineno
            else:  # "from . import x": x is a module, or a name of the door; of os the names matter
                yield from ((f"{start}.{name.name}", node.lineno) for name in node.names)


def part_of(module: str) -> str:
    """Return the step, room or part that a module of ours belongs to."""
    steps = module.split(".")
    return steps[1] if len(steps) > 1 and steps[1] != "__init__" else "prunus"


def below(step: str) -> frozenset[str]:
    """Return the steps of the ladder below a step, and itself where it is a folder."""
    for height, names in enumerate(LADDER):
        if step in names:
            return frozenset().union(*LADDER[:height]) | ({step} if step in ("html", "prompts") else frozenset())
    raise KeyError(step)


def breaches(module: str, source: str) -> list[str]:
    """Return every import of a file that the law forbids."""
    part = part_of(module)
    if part in GROUND:
        allowed = below(part)
    elif part in SEES:
        allowed = SEES[part]
    else:
        return [f"{module}: no such part; add it to the law on purpose"]
    found = []
    for target, line in imports(module, source):
        root = target.split(".")[0]
        if root in ("prunus_evals", "prunus_train"):
            found.append(f"{module}:{line} imports {target}: the core knows no guests")
        if root != "prunus":
            continue
        seen = part_of(target) if part_of(target) in GROUND | ROOMS | set(SEES) else "prunus"
        inner = ".".join(target.split(".")[1:])
        if seen not in allowed and not any(inner == one or inner.startswith(f"{one}.") for one in allowed):
            found.append(f"{module}:{line} imports {target}")
    return found


def habits(module: str, source: str) -> list[str]:
    """Return what a file does that no file of the core does."""
    found = []
    if module.rsplit(".", 1)[-1] in ("utils", "util", "helpers", "common", "misc"):
        found.append(f"{module}: a file is named for what it does")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length >= 60:
                found.append(f"{module}:{node.lineno} {node.name} has {length} lines; a function has fewer than 60")
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = sum(argument.arg not in ("self", "cls") for argument in arguments)
            if count > 6:
                found.append(f"{module}:{node.lineno} {node.name} has {count} parameters; 6 at most")
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if called in ("eval", "exec", "compile", "__import__"):
            found.append(f"{module}:{node.lineno} calls {called}")  # type: ignore[attr-defined]
        reads = isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv", "putenv")
        if reads and isinstance(node.value, ast.Name) and node.value.id == "os" and module != "prunus.config":
            found.append(f"{module}:{node.lineno} reads the environment; only config does")
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append(f"{module}:{node.lineno} catches everything without naming it")
    for target, line in imports(module, source):
        root = target.split(".")[0]
        if root in ("pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"):
            found.append(f"{module}:{line} imports {root}")
        if target in ("os.environ", "os.getenv"):
            found.append(f"{module}:{line} reads the environment; only config does")
    return found


HOME_OF: dict[str, Callable[[str], bool]] = {
    "turbohtml": lambda module: module == "prunus.html.parse",
    "tokenizers": lambda module: module in ("prunus.embedded", "prunus.encoders", "prunus.tokens.hf"),
    "safetensors": lambda module: module.startswith(("prunus.embed.", "prunus.index.")),
    "Stemmer": lambda module: module == "prunus.lexical",
    "click": lambda module: module.startswith("prunus.edge."),
    "rich": lambda module: module.startswith("prunus.edge."),
    "onnx": lambda module: module in ("prunus.encoders", "prunus.embed._graph"),
    "onnxruntime": lambda module: module == "prunus.encoders",
    **dict.fromkeys(("sklearn", "umap"), lambda module: module == "prunus.index.cluster.raptor"),
    "faiss": lambda module: module == "prunus.index.approximate",
    "psycopg": lambda module: module == "prunus.index.store.postgres",
    "huggingface_hub": lambda module: module == "prunus.model_folder",
    "sentence_transformers": lambda module: module.endswith(".sentence_transformers"),
    "tenacity": lambda module: module == "prunus.retry",
    "tiktoken": lambda module: module == "prunus.tokens.tiktoken",
    **dict.fromkeys(
        ("torch", "transformers"),
        lambda module: module.startswith(("prunus.llm.", "prunus.score.")) or module.endswith(".sentence_transformers"),
    ),
    **dict.fromkeys(
        (
            "socket",
            "http.client",
            "urllib.request",
            "ftplib",
            "requests",
            "aiohttp",
            "urllib3",
            "httpcore",
            "anyio",
            "certifi",
            "idna",
            "playwright",
        ),
        lambda module: module.startswith(("prunus.fetch.", "prunus.edge.server")),
    ),
    # ports, network and the model's engine name its types; remote its exceptions
    "httpx": lambda module: (
        module.startswith(("prunus.fetch.", "prunus.edge.server"))
        or module in ("prunus.ports", "prunus.remote", "prunus.network", "prunus.llm.openai")
    ),
}
"""Packages that one place alone knows: the parser, the tokenizer, the terminal, the network."""


def strays(module: str, source: str) -> list[str]:
    """Return imports of packages outside the one place that may know them."""
    return [
        f"{module}:{line} imports {target}"
        for target, line in imports(module, source)
        for package, allowed in HOME_OF.items()
        if (target == package or target.startswith(f"{package}.")) and not allowed(module)
    ]


CORE = list(modules(SRC, "prunus"))

# --- the law -------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [breaches, habits, strays])
def test_every_file_of_the_core_keeps_the_law(check: Callable[[str, str], list[str]]) -> None:
    assert len(CORE) > 40
    assert [fault for module, source in CORE for fault in check(module, source)] == []


def test_the_files_of_the_core_import_in_no_circle() -> None:
    """At import time; what a function imports when it runs closes no circle."""
    known = {module.removesuffix(".__init__") for module, _ in CORE}
    graph = {}
    for module, source in CORE:
        tree = ast.parse(source)
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]:
            function.body = [ast.Pass()]
        targets = {target for target, _ in imports(module, ast.unparse(tree))}
        graph[module.removesuffix(".__init__")] = {target for target in targets if target in known}
    done: set[str] = set()

    def follow(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module not in done:
            for target in sorted(graph[module]):
                follow(target, (*path, module))
            done.add(module)

    for module in sorted(graph):
        follow(module, ())


def test_every_room_has_a_docstring_and_no_code_in_its_init() -> None:
    for module, source in CORE:
        if module.endswith("__init__") and module.count(".") == 2:
            body = ast.parse(source).body
            assert len(body) == 1, module
            assert ast.get_docstring(ast.parse(source)), module


def test_guests_see_the_door_and_a_few_steps_only() -> None:
    for guest in ("evals/prunus_evals", "train/prunus_train"):
        root = REPOSITORY / guest
        for module, source in modules(root, root.name) if root.is_dir() else ():
            for target, line in imports(module, source):
                if target.split(".")[0] == "prunus":
                    part = part_of(target)
                    seen = part if part in GROUND | ROOMS | set(SEES) else "prunus"
                    assert seen in GUESTS_SEE, f"{module}:{line} imports {target}"


# --- the law bites -------------------------------------------------------------------------------

FORBIDDEN = {
    "errors imports types": ("prunus.errors", "from .types import Page"),
    "types import errors": ("prunus.types", "from . import errors"),
    "text looks up": ("prunus.text", "from .html.tree import Tree"),
    "html looks up": ("prunus.html.tree", "from ..ports import Embedder"),
    "html reads settings": ("prunus.html.tree", "from .. import config"),
    "a room reads settings": ("prunus.score.bm25", "from ..config import load_settings"),
    "a room looks an engine up": ("prunus.score.bm25", "from ..registry import make_engine"),
    "a room imports another": ("prunus.score.bm25", "from ..embed.static import Engine"),
    "a room imports another inside a function": ("prunus.score.bm25", "def f():\n    from ..embed import static"),
    "a room imports another by its full name": ("prunus.score.bm25", "import prunus.embed.static"),
    "a room imports the pipeline": ("prunus.score.bm25", "from ..pipeline import prune"),
    "a room imports the door": ("prunus.score.bm25", "from .. import clean"),
    "the pipeline picks an engine": ("prunus.pipeline", "from .score.bm25 import Engine"),
    "the pipeline picks another pruner": ("prunus.pipeline", "from .prune.other import select"),
    "the pipeline assembles": ("prunus.pipeline", "from .assemble import assemble"),
    "assemble imports an engine": ("prunus.assemble", "from .embed import static"),
    "the api imports the edge": ("prunus.api", "from .edge import report"),
    "the edge imports an engine": ("prunus.edge.cli.main", "from ...score import bm25"),
    "the door imports the edge": ("prunus.__init__", "from .edge.cli.main import main"),
    "the core imports evaluations": ("prunus.api", "import prunus_evals.split"),
    "the core imports training": ("prunus.embed.static", "from prunus_train import data"),
    "a new part": ("prunus.cellar", "x = 1"),
}

ALLOWED = {
    "a room imports its own file": ("prunus.score.hybrid", "from . import bm25\nfrom .bm25 import Engine"),
    "a room imports ports": ("prunus.score.hybrid", "from ..ports import Embedder\nfrom ..html.blocks import Blocks"),
    "the pipeline prunes": ("prunus.pipeline", "from .prune.greedy import select"),
    "the edge imports the api": ("prunus.edge.cli.main", "from ...api import ask\nfrom ... import __version__"),
    "anybody imports other packages": ("prunus.score.bm25", "import numpy as np"),
}


@pytest.mark.parametrize(("module", "source"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    assert breaches(module, source)


@pytest.mark.parametrize(("module", "source"), ALLOWED.values(), ids=ALLOWED)
def test_an_allowed_import_is_no_fault(module: str, source: str) -> None:
    assert breaches(module, source) == []


BAD_HABITS = {
    "long function": "def f():\n" + "    x = 1\n" * 60,
    "many parameters": "def f(a, b, c, d, e, f, g): ...",
    "many keyword parameters": "class A:\n    def f(self, a, b, c, *, d, e, f, g): ...",
    "environment": "import os\nx = os.environ['HOME']",
    "environment by name": "from os import environ",
    "getenv": "import os\nx = os.getenv('HOME')",
    "pickle": "import pickle",
    "eval": "eval('1')",
    "exec": "exec('x = 1')",
    "bare except": "try:\n    x = 1\nexcept:\n    pass",
}


@pytest.mark.parametrize("source", BAD_HABITS.values(), ids=BAD_HABITS)
def test_a_bad_habit_is_found(source: str) -> None:
    assert habits("prunus.text", source)


def test_a_utils_file_is_found() -> None:
    assert habits("prunus.html.utils", "")


def test_good_habits_are_no_fault() -> None:
    assert habits("prunus.config", "import os\nx = os.environ") == []
    assert habits("prunus.text", "import re\nx = re.compile('a')\ndef f(self, a, b, c, d, e, f): ...") == []


@pytest.mark.parametrize(
    "source",
    ["import turbohtml", "from tokenizers import Tokenizer", "import click", "import socket", "import http.client",
     "from urllib.request import urlopen", "import httpx"],
)  # fmt: skip
def test_a_package_outside_its_home_is_found(source: str) -> None:
    assert strays("prunus.score.bm25", source)
    assert strays("prunus.score.bm25", "from urllib.parse import urlsplit") == []
