"""A paragraph of Markdown under construction: words, and the marks around them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from .escapes import code_span, escape_label, escape_markdown


@dataclass(slots=True)
class _Mark:
    """An open inline element: its marks, and where its words begin.

    :param node: the element's number in the tree.
    :param opening, closing: marks to write around the words.
    :param place: index in ``Line.parts`` where the words begin.
    :param joins: an element with the same marks ended directly before this one.
    """

    node: int
    opening: str
    closing: str
    place: int
    joins: bool = False


class Line:
    """Collects a paragraph, which may have several lines.

    ``code`` is set inside a code span, where nothing is escaped or marked.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.code = False
        self._marks: list[_Mark] = []
        self._joint = (-1, "")  # index after the latest mark that ended, and the mark
        self._bare = (-1, "")  # index after emphasis that no letter may follow, and its words without marks

    def add(self, markdown: str) -> None:
        """Add text that is Markdown already."""
        if self._bare[0] == len(self.parts) and markdown and not _is_space_or_punctuation(markdown[0]):
            joining = self._marks and self._marks[-1].joins and self._marks[-1].place == len(self.parts)
            if not joining:  # Markdown would not end the emphasis before this letter: write its words without marks
                self.parts[-1] = self._bare[1]
        self.parts.append(markdown)

    def add_words(self, text: str) -> None:
        """Add words, escaped for Markdown."""
        if not self.code:
            text = escape_markdown(text)
            if text[:1] == "(" and self.parts and self.parts[-1][-1:] == "]":
                text = f"\\{text}"  # "[words](" would read as a link
        self.add(text)

    def open(self, node: int, opening: str, closing: str) -> None:
        """Begin an element; it gets no marks in code, or inside an element with the same marks."""
        if opening and not self.code and all(outer.opening != opening for outer in self._marks):
            place = len(self.parts)
            joins = self._joint == (place, opening) and (not self._marks or self._marks[-1].place != place)
            self._marks.append(_Mark(node, opening, closing, place, joins))
            self.code = opening == "`"

    def close(self, node: int) -> None:
        """End an element, if it has marks."""
        if self._marks and self._marks[-1].node == node:
            mark = self._marks.pop()
            self._wrap(mark)
            if mark.opening == "`":
                self.code = False

    def take(self) -> list[str]:
        """End the paragraph and return its lines; open marks continue in the next paragraph, links do not."""
        for mark in reversed(self._marks):
            if self._wrap(mark) and mark.opening == "[":
                mark.opening = mark.closing = ""
            mark.place, mark.joins = 0, False
        words = "".join(self.parts)
        self.parts.clear()
        self._joint = self._bare = (-1, "")
        return [row for row in (" ".join(row.split()) for row in words.split("\n")) if row]

    def _wrap(self, mark: _Mark) -> bool:
        """Write a mark around its words, with spaces moved outside; tell whether there are words."""
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
                    parts[-1] = f"{parts[-1][:-1]}\\!"  # an unescaped "!" would make the link a picture
            elif opening == closing and not before and parts and not joins and _cannot_begin(parts[-1], words[0]):
                opening = closing = ""
            shown = f"{opening}{words}{closing}"
        bare = f"{before}{words}"
        if joins and opening:
            bare = ""
            parts[-1] = f"{parts[-1][: -len(closing)]}{shown[len(opening) :]}{after}"  # one mark around both
        else:
            self.add(f"{before}{shown}{after}")
        self._joint = (len(parts), opening if opening == closing and not after else "")
        # emphasis that ends with punctuation is not closed if a letter follows (CommonMark, 6.2)
        may_fail = bare and self._joint[1] not in ("", "`") and _is_space_or_punctuation(words[-1])
        self._bare = (len(parts), bare) if may_fail else (-1, "")
        return True


def _cannot_begin(before: str, first: str) -> bool:
    """Tell whether emphasis cannot begin here: after a letter and before a punctuation mark (CommonMark, 6.2)."""
    return _is_space_or_punctuation(first) and not _is_space_or_punctuation(before.rstrip("*~")[-1:] or " ")


def _is_space_or_punctuation(letter: str) -> bool:
    """Tell whether a letter is white space or a punctuation mark."""
    return letter.isspace() or unicodedata.category(letter)[0] in "PS"
