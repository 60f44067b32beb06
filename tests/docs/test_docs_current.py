"""The documentation is up to date with the code: generated sections, links, paths, rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.fences import DOCS, PAGES, ROOT, name_of
from tests.test_import_law import ROOMS

from docs import measured, update
from prunus.pages.clean import rules

READ_TOO = (
    *PAGES,
    *(ROOT / folder / "README.md" for folder in ("evals", "benchmarks", "examples")),
    ROOT / "examples" / "SITE.md",
    ROOT / "docs" / "lab" / "log.md",
)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_PATH = re.compile(r"`((?:src|tests|docs|evals|benchmarks|examples|requirements)/[\w./*-]*)`")


@pytest.mark.parametrize("path", DOCS[1:], ids=name_of)
def test_generated_sections_are_current(path: Path) -> None:
    text = path.read_text("utf-8")
    assert update.updated(text) == text, "run: .venv/bin/python docs/update.py"


def test_a_figure_is_held_against_what_its_command_prints_at_its_own_places() -> None:
    printed = 'default 0.6893 [0.62 0.75] Δ -0.1361 {"share": 1.0}'
    assert measured.unprinted("| **.689** [-.14] | 1.00 | .7 | 206 questions of version 1.2.3", printed) == []
    assert measured.unprinted("| .684 | .69 |", printed) == [".684"]
    assert {command.split()[:2] == ["prunus", "eval"] for _, command, _ in measured.parts()} == {True}


def test_every_section_that_can_be_generated_is_in_the_docs() -> None:
    found = re.findall(r"<!-- generated: ([^>]+?) -->", "".join(path.read_text("utf-8") for path in DOCS))
    assert sorted(found) == sorted(update.SECTIONS)


@pytest.mark.parametrize("path", READ_TOO, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for target in _LINK.findall(_FENCED.sub("", path.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://")
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", _FENCED.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_files_that_are_named_exist(path: Path) -> None:
    for named in _PATH.findall(_FENCED.sub("", path.read_text("utf-8"))):
        assert list(ROOT.glob(named.rstrip("/"))), named


def test_every_element_that_cleaning_drops_or_dissolves_is_described() -> None:
    text = (ROOT / "docs" / "evidence.md").read_text("utf-8")
    dropped = section(text, "Dropped elements")
    named = {
        name for row in re.findall(r"^\| (`.*?) \|", dropped, re.MULTILINE) for name in re.findall(r"`(.+?)`", row)
    }
    assert named == rules.DROPPED
    dissolved = set(re.findall(r"`(.+?)`", section(text, "Dissolved elements")))
    assert dissolved == rules.DISSOLVED


def test_the_rooms_of_the_architecture_are_those_of_the_law() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert " < ".join(ROOMS).replace("index < record", "index, record") in " ".join(text.split())


def section(text: str, heading: str) -> str:
    """Return the text below a heading, up to the next heading of any level."""
    return text.split(f"# {heading}\n", 1)[1].split("\n#", 1)[0]
