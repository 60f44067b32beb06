"""Every regular expression reads foreign text in linear time; :mod:`tests.pump` finds them and writes the texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import pytest
from tests import pump

from prunus.answer.generate._guard import Guard
from prunus.pages.clean import parse as formatting
from prunus.web.fetch import _markers

pytestmark = pytest.mark.slow

ROOMS = "core pages web models evidence answer index record engines api batch cli".split()

BOUNDED = {
    "prunus.core.text.numbers._DECIMAL": 400,
    "prunus.core.text.sentences._LAST_WORD": 48,
    "prunus.pages.formats._sheets.numbers._LITERAL": 300,
}
"""Patterns whose text is cut before, with the most letters of it; at that size no text takes a millisecond."""

ONCE = {
    "prunus.answer.fields.find:_typed": "the name of a field is matched at the start of its text",
    "prunus.answer.generate._guard:__init__": "it is matched at the start of what is held",
    "prunus.answer.generate._guard:_end_of_quotation": "it is matched at the start of a line",
    "prunus.pages.clean.xhtml._SUBSET": "it is matched at the first document type",
    "prunus.pages.formats._sniff._SKIPPED": "what it does not match ends the search for the root element",
    "prunus.pages.formats.graph.turtle._TOKEN": "what it does not match ends the reading",
    "prunus.pages.formats.latex.bib._FIELD": "what it does not match ends the entry",
    "prunus.pages.formats.latex.source._BLANK": "after it comes an argument, or a token that takes the blanks",
    "prunus.pages.formats.latex.source._PARAMETERS": "it follows one \\def",
    "prunus.pages.formats.latex.reader._RULE": "what it does not match ends the rules of the row",
    "prunus.pages.formats.latex.reader._MARK": "the reader writes the marks, and closes each; pages cannot hold them",
}
"""Patterns that are matched at a place and, where they fail, not at the next one, with the reason."""

BUILT: Mapping[str, Callable[[], list[re.Pattern[Any]]]] = {
    "prunus.answer.fields.find:_typed": lambda: [re.compile(r"\s*price\b[\s:]+", re.IGNORECASE)],
    "prunus.answer.generate._guard:__init__": lambda: [Guard(3)._words],
    "prunus.answer.generate._guard:_code": lambda: [re.compile(r"\A(?:[ \t]*>){2}")],
    "prunus.answer.generate._guard:_end_of_quotation": lambda: [re.compile(r"\A(?:[ \t]*>){2} ?")],
    "prunus.core.installation:_packages": list,  # names of extras, escaped
    "prunus.models.chat_prompt:forged_marks": list,  # escaped marks without a repeat
    "prunus.pages.clean.parse:_pattern": lambda: [
        formatting._pattern(source, of_text) for source in (formatting._START, formatting._RENAMED) for of_text in (True, False)
    ],
    "prunus.pages.formats.csv:__init__": lambda: [re.compile(r"[,\n]|\Z"), re.compile(r"(?<! ) *+(?:[,\n]|\Z)")],
    "prunus.pages.formats.latex.source:environment": lambda: [re.compile(r"\\(begin|end)\s*\{a\*\}")],
    "prunus.web.fetch.walls:_pattern": lambda: [
        re.compile(source, re.IGNORECASE | re.DOTALL)
        for marker in _markers.MARKERS
        for source in (marker.header[1], marker.title, marker.text, marker.markup)
        if source
    ],
}  # fmt: skip
"""The patterns that functions build while the program runs, or examples of them."""


@cache
def patterns() -> list[pump.Found]:
    """Return every pattern of the package."""
    found = {**pump.collect()[0]}
    for place, build in BUILT.items():
        for pattern in build():
            found.setdefault(pattern, pump.Found(pattern, {place}))
    return sorted(found.values(), key=lambda one: one.name)


@pytest.mark.parametrize("room", ROOMS)
def test_every_pattern_takes_linear_time(room: str) -> None:
    found = [one for one in patterns() if one.name.split(".")[1].split(":")[0] == room and one.name not in BOUNDED]
    for one in found:
        if one.name in ONCE:
            one.methods = {"match"}
    slow = [(one.name, one.pattern.pattern, text) for one in found if (text := pump.slow(one))]
    assert not slow


def test_the_text_of_a_bounded_pattern_is_short_enough() -> None:
    for one in patterns():
        if one.name in BOUNDED:
            for write in pump.attacks(one.pattern):
                assert pump.seconds(one, write(BOUNDED[one.name])) < 0.01


def test_every_pattern_of_the_package_is_found() -> None:
    names = {name for one in patterns() for name in one.names}
    assert len(names) > 250
    assert "prunus.pages.formats.notebook._TITLE" in names  # of a module
    assert any(":" in name for name in names)  # in a call
    assert pump.collect()[1] == sorted(BUILT), "a pattern is built while the program runs: add examples to BUILT"


@pytest.mark.parametrize(
    "source",
    [r"(a+)+$", r"(?:a|b|ab)*c", r"\s*,?\s*x", r"\s+$", r"<!--.*?-->", r"\\label\{([^}]*)\}", r"[^\n]*\r", r"^#\s+(.+?)\s*#*$", r"x\w*\d*y"],
)  # fmt: skip
def test_a_slow_pattern_is_found(source: str) -> None:
    assert pump.slow(pump.Found(re.compile(source), {"x"}))


@pytest.mark.parametrize(
    "source",
    [r"(?<![\s,])\s*+,?\s*+x", r"<!--[^<]*-->", r"\\label\{([^{}]*)\}", r"(?m)^[^\n]*\r", r"(?<!\s)\s++$", r"a{0,30}b"],
)
def test_a_linear_pattern_is_not_called_slow(source: str) -> None:
    assert not pump.slow(pump.Found(re.compile(source), {"x"}))


def test_a_pattern_that_is_only_matched_at_the_start_is_not_searched() -> None:
    found = pump.Found(re.compile(r"[^\n]*\r"), {"x"}, {"match"})
    assert not pump.slow(found)
    found.methods.add("sub")
    assert pump.slow(found)


def test_patterns_in_classes_containers_and_calls_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "import re\nGLOBAL = re.compile('one')\nRULES = {'a': [(1, re.compile('two'))]}\n"
        "class Reader:\n    inner = re.compile('three')\n    def read(self, text):\n"
        "        return re.sub('four', '', GLOBAL.sub('', text)), re.compile(text)\n"
    )
    module = ModuleType("prunus.example")
    exec(source, vars(module))
    monkeypatch.setattr(pump, "sources", lambda: [(module, source)])
    found, built = pump.collect()
    assert {pattern.pattern: one.methods for pattern, one in found.items()} == {
        "one": {"sub"}, "two": set(), "three": set(), "four": {"sub"},
    }  # fmt: skip
    assert built == ["prunus.example:read"]
