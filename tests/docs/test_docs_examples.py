"""The examples of the documentation run, and their output is the one shown."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from tests.docs.fences import DOCS, PAGES, ROOT, Fence, fences, name_of, shows

import prunus
from prunus.cli.main import app
from prunus.core import registry
from prunus.evidence.blocks import cut
from prunus.pages.clean.walk import clean_tree

README = ROOT / "README.md"


@pytest.fixture
def _other_packages(clone: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register engines of packages in the working folder, and unregister them afterwards."""
    monkeypatch.syspath_prepend(clone)
    registry._foreign.cache_clear()
    yield
    registry._foreign.cache_clear()
    for file in clone.glob("*.py"):
        sys.modules.pop(file.stem, None)


def write_package(fence: Fence, folder: Path) -> None:
    """Write the metadata that installing a package with this ``pyproject.toml`` would write."""
    project = tomllib.loads(fence.body)["project"]
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), ""]
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (about / "entry_points.txt").write_text("\n".join(lines))


def files_of(path: Path, folder: Path) -> None:
    """Write the files that a page shows."""
    for fence in fences(path):
        if fence.option("file"):
            (folder / fence.option("file")).write_text(fence.body, "utf-8")
        elif fence.language == "toml" and "entry-points" in fence.body:
            write_package(fence, folder)


@pytest.mark.usefixtures("_other_packages")
@pytest.mark.parametrize("path", [path for path in DOCS if "```python" in path.read_text("utf-8")], ids=name_of)
def test_python_runs_and_prints_what_is_shown(path: Path, clone: Path) -> None:
    files_of(path, clone)
    names: dict[str, Any] = {"__name__": "__main__"}
    said = io.StringIO()
    for fence in fences(path):
        if fence.language == "python" and not fence.option("file"):
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(f"{chr(10) * fence.line}{fence.body}", str(path), "exec"), names)
        elif fence.language == "text" and len(fence.gap.strip().splitlines()) < 2 and said.getvalue():
            assert shows(fence.body, said.getvalue()), f"{name_of(path)}:{fence.line} prints\n{said.getvalue()}"
            said = io.StringIO()


CONSOLES = [(path, fence) for path in DOCS for fence in fences(path) if fence.language == "console"]


@pytest.mark.usefixtures("clone")
@pytest.mark.parametrize(("path", "fence"), CONSOLES, ids=[f"{name_of(path)}:{fence.line}" for path, fence in CONSOLES])
def test_commands_run_and_write_what_is_shown(path: Path, fence: Fence) -> None:
    prompt, _, expected = fence.body.partition("\n")
    assert prompt.startswith("$ prunus ")
    line, _, source = prompt.partition(" < ")
    given = Path(source).read_bytes() if source else None
    result = CliRunner().invoke(app, shlex.split(line)[2:], input=given)
    assert result.exit_code == int(fence.option("exit") or 0), result.output
    assert shows(expected, result.output), f"{name_of(path)}:{fence.line} writes\n{result.output[:4000]}"


SHELL = [
    (path, line.strip())
    for path in PAGES
    for fence in fences(path)
    if fence.language == "sh"
    for line in fence.body.splitlines()
    if line.strip()
]


@pytest.mark.parametrize(("path", "line"), SHELL, ids=[f"{name_of(path)}: {line[:50]}" for path, line in SHELL])
def test_commands_that_are_only_named_exist(path: Path, line: str) -> None:
    inner = re.search(r"\$\((.*)\)", line)
    words = shlex.split(inner[1] if inner else line, comments=True)
    if words[0] == "make":
        assert set(words[1:]) <= set(targets())
    elif words[0] == "prunus":
        parse(app, words[1:])
    elif words[:2] == ["pip", "install"]:
        extras = re.findall(r"\.\[([\w,-]+)\]", line)
        known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
        assert {one for names in extras for one in names.split(",")} <= known.keys(), line
        assert all((ROOT / word / "pyproject.toml").is_file() for word in words if word.startswith("./")), line
    elif words[:2] == ["python", "-m"]:
        assert (ROOT / f"{words[2].replace('.', '/')}.py").is_file()
    elif words[0].endswith("python"):
        assert (ROOT / words[1]).is_file()
    else:
        assert words[0] in ("export", "source"), line


def parse(command: click.Command, words: list[str]) -> None:
    """Read a command line without running it."""
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, f"no command is called {words[0]}"
        command, words = found, words[1:]
    # click keeps the names of the help option that it sees first
    with command.make_context("prunus", list(words), help_option_names=["-h", "--help"]):
        pass


def targets() -> list[str]:
    [line] = [line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if line.startswith(".PHONY:")]
    return line.split()[1:]


def test_every_make_target_is_described() -> None:
    described = re.findall(r"^\| `make ([a-z-]+)` \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(described) == sorted(set(targets()) - {"help"})


def test_install_and_five_lines_come_before_line_25() -> None:
    lines = README.read_text("utf-8").splitlines()[:24]
    assert any("make setup" in line and "pip install ." in line for line in lines)
    first = next(fence for fence in fences(README) if fence.language == "python")
    assert first.line + first.body.count("\n") + 1 < 25
    assert sum(bool(line.strip()) for line in first.body.splitlines()) == 5


# --- the engines of the guide keep the contract that the guide states ---------------------------------


@pytest.mark.usefixtures("_other_packages")
def test_the_engines_of_the_guide_keep_their_ports(clone: Path) -> None:
    files_of(ROOT / "docs" / "engines.md", clone)
    blocks = cut([clean_tree("<h1>Bridge</h1><p>The bridge opened in 1932.</p><p>Trams run daily.</p>")], 4)
    embedder = registry.make_engine("embedder", "letters")
    scorer = registry.make_engine("scorer", "overlap:0.1", embedder=embedder)
    counter = registry.make_engine("tokenizer", "bytes")
    texts = ["", "the bridge", "a", "桥"]
    assert np.allclose(np.linalg.norm(embedder.embed(texts), axis=1), 1)
    assert embedder.embed([]).shape == (0, embedder.dimension)
    assert scorer.score("the bridge", blocks).shape == (len(blocks),)
    assert scorer.score("the bridge", cut([], 4)).shape == (0,)
    assert counter.count(texts).tolist() == [0, 10, 1, 3]
    assert counter.count([]).tolist() == []
    with pytest.raises(prunus.BadInput, match="overlap"):
        registry.make_engine("scorer", "overlap:much", embedder=embedder)


@pytest.mark.usefixtures("_other_packages")
def test_an_engine_of_another_package_may_not_shadow_ours(clone: Path) -> None:
    engines = next(f for f in fences(ROOT / "docs" / "engines.md") if f.language == "toml")
    write_package(Fence("toml", "", engines.body.replace("overlap =", "bm25 ="), 0, ""), clone)
    registry._foreign.cache_clear()
    assert registry.engine_class("scorer", "bm25").__module__ == "prunus.evidence.score.bm25"


def test_what_the_readme_says_of_the_licences_is_what_the_doctor_says() -> None:
    from prunus.cli.commands import doctor

    said = " ".join(README.read_text("utf-8").split())
    for words in ("all-MiniLM-L6-v2 (Apache-2.0)", "multilingual-e5-small (MIT)", "SmolLM2 (Apache-2.0)"):
        assert words in doctor.SHIPPED
        assert words in said


@pytest.mark.usefixtures("clone")
def test_pruning_needs_neither_weights_nor_tokenizer_where_others_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*parts: str) -> Path:
        raise AssertionError(f"{parts} was read")

    monkeypatch.setattr("prunus.models.embed.static.static_model", missing)
    monkeypatch.setattr("prunus.models.smollm2.tokenizer._load", missing)
    options = prunus.Options(scorer="bm25", tokenizer="approx")
    assert prunus.prune(Path("examples/site/faq.html"), "What does residual mean?", 200, options=options).kept
