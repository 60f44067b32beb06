"""The page of ``prunus index tree --html``: a tree to walk and search, with the nodes that are found for a question.

Texts of documents are data in the page, and the script inserts them only as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from ..core.text.words import sentence_spans
from .html_file import html_file, safe, without_controls

TITLES: Final = {"tree": "Found by tree retrieval", "flat": "Found by flat dense retrieval"}
_SHARED: Final = Path(__file__).parents[1] / "serve" / "page" / "static"
"""The folder of the tree's script and style, which the page of the server has, too."""


@dataclass(frozen=True, slots=True)
class TreeMatches:
    """The nodes that one way of retrieval finds for a question.

    :param name: ``tree`` or ``flat``.
    :param text: the texts of the nodes, as they would be given to a model.
    """

    name: str
    ids: Sequence[int]
    text: str
    tokens: int

    @property
    def title(self) -> str:
        """The heading above the text."""
        return TITLES[self.name]


@dataclass(frozen=True, slots=True)
class TreeDrawing:
    """The tree to show.

    :param place: the folder or address of the index.
    :param nodes: dicts with id, layer, document, tokens, text, children, root.
    :param without_leaves: whether the leaves were left out because there are too many.
    """

    place: str
    nodes: Sequence[Mapping[str, Any]]
    without_leaves: bool = False


def write_tree(drawing: TreeDrawing, question: str = "", found: Sequence[TreeMatches] = ()) -> str:
    """Return the page as HTML.

    :param question: shown above the tree.
    :param found: the nodes to mark in the tree, and the texts to show below it.
    """
    script = _read(_SHARED / "tree.js") + _read(Path(__file__).with_suffix(".js"))
    name = safe(Path(drawing.place).name)
    subtitle = f'<p class="question" dir="auto">{safe(question)}</p>' if question else ""
    note = (
        '<p id="note">Its passages are left out: there are too many for one file.</p>' if drawing.without_leaves else ""
    )
    legend = "".join(f'<span class="key by-{way.name}">{safe(way.title)}</span>' for way in found)
    body = (
        f"<header><h1>{name}</h1>{subtitle}{note}"
        '<div class="tools"><label>Search <input id="search" type="search" autocomplete="off"></label>'
        f'<output id="found"></output>{legend}</div></header>\n<ul id="hits" aria-label="Found nodes"></ul>\n'
        '<main><div id="walk"></div>\n'
        '<aside aria-live="polite"><p id="about">Choose a node to read its text.</p>'
        '<div id="text" dir="auto"></div></aside></main>\n'
        f"{_texts(found)}"
        f'<script type="application/json" id="nodes">{_data(drawing, found)}</script>\n'
    )
    style = _read(_SHARED / "tree.css") + _read(Path(__file__).with_suffix(".css"))
    return html_file(f"Summary tree: {Path(drawing.place).name}", style, body, script)


def _texts(found: Sequence[TreeMatches]) -> str:
    """Write the text that each way of retrieval finds, side by side."""
    columns = "".join(
        f'<section class="by-{way.name}"><h2>{safe(way.title)}</h2>'
        f"<p>{way.tokens:,} tokens, {len(way.ids):,} nodes</p>"
        f'<div class="found" dir="auto">{safe(way.text)}</div></section>'
        for way in found
    )
    return f'<div class="columns">{columns}</div>\n' if found else ""


def _data(drawing: TreeDrawing, found: Sequence[TreeMatches]) -> str:
    """Return the nodes as JSON without ``<``, ``>`` and ``&``, so that no text can end the script element."""
    rows = {
        str(node["id"]): [node["layer"], node["document"], node["tokens"], _sentences(node), node["children"]]
        for node in drawing.nodes
    }
    roots = sorted((node for node in drawing.nodes if node["root"]), key=lambda node: -int(node["layer"]))
    shown = {node["id"] for node in drawing.nodes}
    data = {
        "nodes": rows,
        "roots": [node["id"] for node in roots],
        "found": {way.name: [id for id in way.ids if id in shown] for way in found},
    }
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _sentences(node: Mapping[str, Any]) -> list[str]:
    """Return the text of a node in pieces: a leaf's sentences, each with the white space after it."""
    text = without_controls(node["text"])
    starts = [0, *(start for start, _ in sentence_spans(text)[1:]), len(text)] if text and not node["layer"] else []
    return [text[start:end] for start, end in pairwise(starts)] or [text]


def _read(path: Path) -> str:
    return path.read_text("utf-8")
