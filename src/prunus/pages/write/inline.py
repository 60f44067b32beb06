"""One line of Markdown in the making: words, and the marks around them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from .escapes import code_span, escape_label, escape_markdown


@dataclass(slots=True)
class _Mark:
    """An inline element that is open: what to write around its words, and where on the line they begin.

    ``joins``: another one with the same marks has ended right before.
    """

    node: int
    opening: str
    closing: str
    place: int
    joins: bool = False


class Line:
    """Collects a paragraph, which may break into several lines.

    ``code`` tells whether the words stand in a code span, where nothing is escaped or marked.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.code = False
        self._marks: list[_Mark] = []
        self._joint = (-1, "")  # where a mark has ended right before, and which
        self._bare = (-1, "")  # where one has ended that no letter may follow, and the words without it

    def add(self, markdown: str) -> None:
        """Add what is Markdown already."""
        if self._bare[0] == len(self.parts) and markdown and not _stands_apart(markdown[0]):
            joining = self._marks and self._marks[-1].joins and self._marks[-1].place == len(self.parts)
            if not joining:
                self.parts[-1] = self._bare[1]
        self.parts.append(markdown)

    def say(self, text: str) -> None:
        """Add words."""
        if not self.code:
            text = escape_markdown(text)
            if text[:1] == "(" and self.parts and self.parts[-1][-1:] == "]":
                text = f"\\{text}"
        self.add(text)

    def open(self, node: int, opening: str, closing: str) -> None:
        """Begin an element that is marked: as the same one around it is not, and nothing in code."""
        if opening and not self.code and all(outer.opening != opening for outer in self._marks):
            place = len(self.parts)
            joins = self._joint == (place, opening) and (not self._marks or self._marks[-1].place != place)
            self._marks.append(_Mark(node, opening, closing, place, joins))
            self.code = opening == "`"

    def close(self, node: int) -> None:
        """End an element, if it is marked."""
        if self._marks and self._marks[-1].node == node:
            mark = self._marks.pop()
            self._wrap(mark)
            if mark.opening == "`":
                self.code = False

    def take(self) -> list[str]:
        """End the paragraph and return its lines; marks that are open go on with the next one, links do not."""
        for mark in reversed(self._marks):
            if self._wrap(mark) and mark.opening == "[":
                mark.opening = mark.closing = ""
            mark.place, mark.joins = 0, False
        words = "".join(self.parts)
        self.parts.clear()
        self._joint = self._bare = (-1, "")
        return [row for row in (" ".join(row.split()) for row in words.split("\n")) if row]

    def _wrap(self, mark: _Mark) -> bool:
        """Put a mark around its words: spaces move outside, a mark around nothing goes."""
        parts, opening, closing = self.parts, mark.opening, mark.closing
        inner = "".join(parts[mark.place :])
        words = inner.strip()
        if not words or not opening:
            return bool(words)
        del parts[mark.place :]
        before = inner[: len(inner) - len(inner.lstrip())]
        after = inner[len(inner.rstrip()) :]
        joins = mark.joins and not before
        if opening == "`":
            shown = "\n".join(code_span(row) for row in words.split("\n") if row.strip())
            if joins and (parts[-1].endswith("``") or shown.startswith("``")):
                shown = escape_markdown(words)  # two code spans side by side would read as one
                opening = ""
        else:
            if opening == "[":
                words = escape_label(words)
                if not before and parts and parts[-1].endswith("!"):
                    parts[-1] = f"{parts[-1][:-1]}\\!"  # it would make the link a picture
            elif opening == closing and not before and parts and not joins and _sticks(parts[-1], words[0]):
                opening = closing = ""
            shown = f"{opening}{words}{closing}"
        bare = f"{before}{words}"
        if joins and opening:
            bare = ""
            parts[-1] = f"{parts[-1][: -len(closing)]}{shown[len(opening) :]}{after}"  # one mark around both
        else:
            self.add(f"{before}{shown}{after}")
        self._joint = (len(parts), opening if opening == closing and not after else "")
        may_fail = bare and self._joint[1] not in ("", "`") and _stands_apart(words[-1])
        self._bare = (len(parts), bare) if may_fail else (-1, "")
        return True


def _sticks(before: str, first: str) -> bool:
    """Tell whether emphasis cannot begin between these: after a letter, right before a punctuation mark."""
    return _stands_apart(first) and not _stands_apart(before.rstrip("*~")[-1:] or " ")


def _stands_apart(letter: str) -> bool:
    """Tell whether a letter is white space or a punctuation mark."""
    return letter.isspace() or unicodedata.category(letter)[0] in "PS"
