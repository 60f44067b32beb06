"""Rewrite the generated sections of the documentation: help texts, and tables of settings, options, engines and rules.

    .venv/bin/python docs/update.py

A section is the text between ``<!-- generated: NAME -->`` and ``<!-- end -->``. A test fails when one is out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

from prunus.cli.commands.index import command as index
from prunus.cli.commands.serve import keys
from prunus.cli.main import COMMANDS, app
from prunus.core.options import Options
from prunus.core.ports import ClusterLimits
from prunus.core.registry import KINDS, engine_names, is_built_in
from prunus.core.settings import Settings
from prunus.evidence.score.hybrid import HybridWeights
from prunus.index.cluster.raptor import Published
from prunus.index.terms import Retrieval
from prunus.pages.clean.rules import GLOBAL_ATTRIBUTES, KEPT_ATTRIBUTES

FOLDER = Path(__file__).resolve().parent
WIDTH = 80
"""Columns of a help text, whatever the terminal is."""

PORTS = {
    "embedder": "Embedder",
    "scorer": "Scorer",
    "tokenizer": "TokenCounter",
    "extractor": "Extractor",
    "generator": "Generator",
    "format": "Format",
    "reranker": "Reranker",
    "path_scorer": "PathScorer",
    "llm": "LLM",
    "search": "SearchProvider",
    "planner": "Planner",
    "clusterer": "Clusterer",
    "summarizer": "Summarizer",
    "store": "NodeStore",
}
"""The port of each kind of engine."""

_SECTION = re.compile(r"(<!-- generated: (?P<name>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
_FIELD = re.compile(r":param ([\w, ]+): (.*?)(?=\n:|\n\n|\Z)", re.DOTALL)


def help_of(command: str) -> str:
    """Return the help text of a command as a fenced block; '' is the program itself."""
    arguments = [*command.split(), "--help"]
    found = CliRunner().invoke(app, arguments, prog_name="prunus", terminal_width=WIDTH, max_content_width=WIDTH)
    text = "\n".join(line.rstrip() for line in found.stdout.rstrip().splitlines())
    return f"```text\n{text}\n```\n"


def fields_of(cls: Any) -> str:
    """Return the fields of a dataclass as a table: name, default, and meaning from its docstring."""
    meanings: dict[str, str] = {}
    for names, text in _FIELD.findall(inspect.getdoc(cls) or ""):
        meanings |= {name.strip(): " ".join(text.replace("``", "`").split()) for name in names.split(",")}
    rows = []
    for field in fields(cls):
        if field.name in meanings:
            value = field.default if field.default is not MISSING else field.default_factory()
            default = "" if value in ("", {}, ()) else f"`{value}`"
            rows.append((f"`{field.name}`", default, meanings[field.name]))
    return table(("name", "default", "meaning"), rows)


def engines() -> str:
    """Return the kinds of engine as a table, with the built-in engines."""
    rows = []
    for kind, (folder, group) in KINDS.items():
        names = code_list(name for name in engine_names(kind) if is_built_in(kind, name))
        rows.append((kind, f"`{PORTS[kind]}`", f"`src/prunus/{folder}/`", f"`{group}`", names))
    return table(("kind", "port", "folder", "entry-point group", "engines"), rows)


def attributes() -> str:
    """Return the attributes that cleaning keeps as a table."""
    elements: dict[str, list[str]] = {}
    for tag, names in KEPT_ATTRIBUTES.items():
        elements.setdefault(code_list(names), []).append(tag)
    rows = [("any", code_list(GLOBAL_ATTRIBUTES)), *((code_list(tags), names) for names, tags in elements.items())]
    return table(("element", "attributes"), rows)


def code_list(names: Iterable[str]) -> str:
    """Return names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


SECTIONS: dict[str, Callable[[], str]] = {
    "help prunus": lambda: help_of(""),
    **{f"help prunus {name}": lambda name=name: help_of(name) for name in COMMANDS},
    **{f"help prunus index {name}": lambda name=name: help_of(f"index {name}") for name in index.commands},
    **{f"help prunus serve keys {name}": lambda name=name: help_of(f"serve keys {name}") for name in keys.commands},
    "settings": lambda: fields_of(Settings),
    "options": lambda: fields_of(Options),
    "retrieval": lambda: fields_of(Retrieval),
    "raptor": lambda: fields_of(Published),
    "limits": lambda: fields_of(ClusterLimits),
    "weights": lambda: fields_of(HybridWeights),
    "engines": engines,
    "attributes": attributes,
}
"""The text of each generated section, by its name."""


def updated(text: str) -> str:
    """Return the text of a page with current generated sections."""
    return _SECTION.sub(lambda found: f"{found[1]}{SECTIONS[found['name']]()}{found[3]}", text)


def main() -> None:
    """Rewrite every page whose sections are out of date."""
    for path in sorted(FOLDER.glob("*.md")):
        before = path.read_text("utf-8")
        after = updated(before)
        if after != before:
            path.write_text(after, "utf-8")
            click.echo(f"{path.name}: updated")


if __name__ == "__main__":
    main()
