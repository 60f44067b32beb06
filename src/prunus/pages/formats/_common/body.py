"""Collect the HTML of a document: blocks, list items by level, pictures and tables with their captions."""

from __future__ import annotations

import re
from html import escape
from typing import Final

from .numerals import is_said, plain_number

_TABLE_WORD: Final = re.compile(r"(?:table|tab\.|tabelle|tableau|tabla|tabella)\b", re.IGNORECASE)
_TAGS: Final = re.compile(r"<[^<>]*>")


class Body:
    """The blocks of a document in reading order. List items nest by their level."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, str]] = []  # kind: block, list, table, image, caption, code
        self._lists: list[tuple[int, str, int]] = []  # level, tag, latest number

    def add(self, html: str, kind: str = "block") -> None:
        """Add a block; open lists end before it."""
        if html:
            self.close()
            self.parts.append((kind, html))

    def item(self, html: str, level: int, tag: str = "ul", number: int = 0, kind: str = "") -> None:
        """Add a list item.

        :param level: nesting depth of the item, from 0.
        :param number: number of the item in an ``ol``; 0 means the previous number plus one.
        :param kind: the ``type`` attribute of an ``ol`` that is not numbered 1, 2, 3: ``a``, ``i`` and so on.
        """
        while self._lists and self._lists[-1][0] > level:
            self._end()
        if self._lists and self._lists[-1][0] == level and self._lists[-1][1] != tag:
            self._end()
        if self._lists and self._lists[-1][0] == level:
            latest = self._lists[-1][2]
            number = number or latest + 1
            value = f' value="{number}"' if tag == "ol" and number != latest + 1 else ""
            self.parts.append(("list", f"</li><li{value}>{html}"))
        else:
            number = number or 1
            start = f' start="{number}"' if tag == "ol" and number != 1 else ""
            style = f' type="{kind}"' if tag == "ol" and kind not in ("", "1") else ""
            self.parts.append(("list", f"<{tag}{start}{style}><li>{html}"))
            self._lists.append((level, tag, number))
            return
        self._lists[-1] = (level, tag, number)

    def labelled(self, html: str, level: int, label: str) -> None:
        """Add a list item under the label that the document prints.

        A numbered list shows a label such as 7. by itself. Any other label stands before the words of the item.
        """
        number = plain_number(label)
        if number is not None:
            self.item(html, level, "ol", number)
        elif is_said(label):
            lead = "<p>" if html.startswith("<p>") else ""
            self.item(f"{lead}{escape(label.strip(), quote=False)} {html.removeprefix('<p>')}", level)
        else:
            self.item(html, level)

    def is_numbered(self, level: int) -> bool:
        """Tell whether a numbered list is open at a level."""
        return any(depth == level and tag == "ol" for depth, tag, _ in self._lists)

    def inside(self, html: str) -> None:
        """Add a block inside the latest list item. Outside a list, do the same as :meth:`add`."""
        if self._lists and html:
            self.parts.append(("list", html))
        else:
            self.add(html)

    def close(self) -> None:
        """End every open list."""
        while self._lists:
            self._end()

    def _end(self) -> None:
        self.parts.append(("list", f"</li></{self._lists.pop()[1]}>"))

    def html(self) -> str:
        """Return the blocks as HTML.

        A caption moves into the picture or table beside it, and neighbouring lines of code become one ``<pre>``.
        """
        self.close()
        written: list[tuple[str, list[str]]] = []  # of code, all its lines
        parts = self.parts
        for at, (kind, html) in enumerate(parts):
            before = written[-1] if written else ("", [""])
            if kind == "caption":
                after = parts[at + 1] if at + 1 < len(parts) else ("", "")
                names_table = bool(_TABLE_WORD.match(_TAGS.sub("", html).strip()))
                if before[0] == "image":
                    written[-1] = ("figure", [f"<figure>{before[1][0]}<figcaption>{html}</figcaption></figure>"])
                elif after[0] == "table":
                    parts[at + 1] = ("captioned", _captioned(after[1], html))
                elif before[0] == "table" and names_table:
                    written[-1] = ("captioned", [_captioned(before[1][0], html)])
                elif after[0] == "image":
                    parts[at + 1] = ("figure", f"<figure><figcaption>{html}</figcaption>{after[1]}</figure>")
                else:
                    written.append(("block", [f"<p>{html}</p>"]))
            elif kind == "code" and before[0] == "code":
                before[1].append(html)
            else:
                written.append((kind, [html]))
        joined = ((kind, "\n".join(lines)) for kind, lines in written)
        return "\n".join(f"<pre>{html}</pre>" if kind == "code" else html for kind, html in joined)


def _captioned(table: str, caption: str) -> str:
    return table.replace("<table>", f"<table><caption>{caption}</caption>", 1)
