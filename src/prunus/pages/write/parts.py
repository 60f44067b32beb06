"""Markdown by parts: as much as fits a number of tokens from a place on, and an outline with the places of headings.

The parts of a page are letter for letter those of its Markdown: put together they are the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...core.ports import TokenCounter

_HEADING: Final = re.compile(r"(?:> |[-*] )*(#{1,6}) (.*)")
_FENCE: Final = re.compile(r"[> ]*(`{3,}|~{3,})")
_BREAKS: Final = ("\n\n", "\n", "<tr", " ")
"""Where a part ends, the best first; ``<tr`` because a table with spans is HTML on one line."""
_LONGEST_HEAD: Final = 1_000
"""Code points of the head of a table that is told again at most."""


@dataclass(frozen=True, slots=True)
class MarkdownPart:
    """A part of a page.

    :param start, end: its place in the page's Markdown, in code points.
    """

    text: str
    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under a heading, up to the next one.

    :param level: 1 to 6; 0 for what stands before the first heading.
    :param start: place of the heading in the page's Markdown, in code points.
    """

    level: int
    title: str
    start: int
    tokens: int


def part_of(markdown: str, start: int, most: int, counter: TokenCounter) -> MarkdownPart:
    """Return as much of a page from a place on as fits; a single code point always does.

    The part ends between blocks, or lines, or rows, or words, as long as that leaves at least half of it.

    :param most: tokens.
    """

    def count(end: int) -> int:
        return int(counter.count([markdown[start:end]])[0])

    low, high = start, min(len(markdown), start + 4 * most)
    while count(high) <= most:
        if high == len(markdown):
            return MarkdownPart(markdown[start:], start, high, count(high))
        low, high = high, min(len(markdown), start + 2 * (high - start))
    while low + 1 < high:  # a little longer may cost a token less: what is taken is counted again below
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= most else (low, middle)
    end = max(low, start + 1)
    while True:
        better = _break(markdown, start, end)
        tokens = count(better)
        if tokens <= most or better == start + 1:
            return MarkdownPart(markdown[start:better], start, better, tokens)
        end = max(start + 1, better - 1)


def _break(markdown: str, start: int, end: int) -> int:
    """Return the best place to end a part that may go up to a place."""
    least = start + (end - start) // 2
    for mark in _BREAKS:
        at = markdown.rfind(mark, least, end)
        if at > start:
            return at if mark == "<tr" else min(at + len(mark), end)
    return end


def sections_of(markdown: str, counter: TokenCounter) -> list[Section]:
    """Return the sections of a page, in order; what stands before the first heading is one of level 0."""
    headings = [(0, "", 0), *_headings(markdown)]
    ends = [start for _, _, start in headings[1:]] + [len(markdown)]
    texts = [markdown[start:end] for (_, _, start), end in zip(headings, ends, strict=True)]
    counted = counter.count(texts).tolist()
    return [
        Section(level, title, start, tokens)
        for (level, title, start), text, tokens in zip(headings, texts, counted, strict=True)
        if text.strip()
    ]


def outline(sections: Sequence[Section], most: int, counter: TokenCounter) -> tuple[str, int, int]:
    """Return headings as a list with their places and tokens, how many are left out to fit, and the tokens.

    The lowest levels are left out first, then the last headings.

    :param most: tokens.
    """
    deepest = max((section.level for section in sections), default=0)
    for depth in range(deepest, -1, -1):
        lines = [_line(section) for section in sections if section.level <= max(depth, 1)]
        text = "\n".join(lines)
        tokens = int(counter.count([text])[0])
        if tokens <= most:
            return text, len(sections) - len(lines), tokens
    part = part_of(text, 0, most, counter)
    shown = part.text.rpartition("\n")[0]
    return shown, len(sections) - shown.count("\n") - bool(shown), int(counter.count([shown])[0])


def _line(section: Section) -> str:
    indent = "  " * max(0, section.level - 1)
    title = section.title or "(before the first heading)"
    return f"{indent}- {title} (start {section.start}, {section.tokens} tokens)"


def above(markdown: str, start: int) -> str:
    """Return what a place stands under: its headings, and the head of a table in the middle of which it is."""
    path: list[tuple[int, str]] = []
    for level, title, place in _headings(markdown):
        if place >= start:
            break
        path = [(upper, name) for upper, name in path if upper < level] + [(level, title)]
    under = " > ".join(title for _, title in path)
    line = markdown.rfind("\n", 0, start) + 1
    head = ""
    if markdown.startswith("<table", line) and line < start:
        body = markdown.find("<tbody", line, start)
        rows = [row.start() for row in re.finditer("<tr", markdown[line:start])]
        end = body if body > 0 else line + rows[1] if len(rows) > 1 else line
        head = markdown[line:end]
    elif markdown.startswith("|", start) or line < start:
        first = line
        while first and markdown.startswith("|", before := markdown.rfind("\n", 0, first - 1) + 1):
            first = before
        head = markdown[first:start].partition("\n")[0] if first < start and markdown.startswith("|", first) else ""
    return "\n".join(filter(None, [under, head[:_LONGEST_HEAD]]))


def _headings(markdown: str) -> Iterator[tuple[int, str, int]]:
    """Yield level, title and place of each heading; a line of code is none."""
    place, fence = 0, ""
    for line in markdown.split("\n"):
        if match := _FENCE.match(line):
            fence = "" if fence and match[1].startswith(fence) else fence or match[1]
        elif not fence and (found := _HEADING.match(line)):
            yield len(found[1]), found[2].strip(), place
        place += len(line) + 1
