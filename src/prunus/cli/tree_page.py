"""The page of ``prunus index tree --html``: a tree of summaries with zoom, search, and the nodes that a question takes.

The page loads nothing, and its policy forbids loading; the policy allows the page's script by its digest. Texts of
documents are data in the page, and the script inserts them only as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TITLES: Final = {"tree": "Taken by tree retrieval", "flat": "Taken by flat dense retrieval"}
_STEP: Final = 26
"""SVG units between two leaves."""
_RISE: Final = 150
"""SVG units between two layers."""
_MARGIN: Final = 145
"""SVG units around the tree, for labels."""
_OPENING: Final = (1000.0, 560.0)
"""SVG units of the part that is shown at first."""
_LABEL: Final = 22
"""Letters of a node's label at most."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Taken:
    """The nodes that one way of retrieval takes for a question.

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
    """The tree to draw.

    :param place: the folder or address of the index.
    :param nodes: dicts with id, layer, document, tokens, text, children, root.
    :param without_leaves: whether the leaves were left out because there are too many.
    """

    place: str
    nodes: Sequence[Mapping[str, Any]]
    without_leaves: bool = False


def write_tree(drawing: TreeDrawing, question: str = "", taken: Sequence[Taken] = ()) -> str:
    """Return the page as HTML.

    :param question: shown above the tree.
    :param taken: the nodes to mark in the tree, and the texts to show below it.
    """
    script = Path(__file__).with_suffix(".js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )
    name = _safe(Path(drawing.place).name)
    subtitle = f'<p class="question" dir="auto">{_safe(question)}</p>' if question else ""
    note = "<p>Its leaves are left out: there are too many to draw.</p>" if drawing.without_leaves else ""
    legend = "".join(f'<span class="key {way.name}">{_safe(way.title)}</span>' for way in taken)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Summary tree: {name}</title>\n"
        f"<style>\n{Path(__file__).with_suffix('.css').read_text('utf-8')}</style>\n</head>\n<body>\n"
        f"<header><h1>{name}</h1>{subtitle}{note}"
        '<div class="tools"><label>Search <input id="search" type="search" autocomplete="off"></label>'
        '<output id="hits"></output>'
        '<button id="in" type="button" aria-label="Zoom in">+</button>'
        '<button id="out" type="button" aria-label="Zoom out">−</button>'
        f'<button id="whole" type="button">Whole tree</button>{legend}</div></header>\n'
        f"<main>\n{_svg(drawing, taken)}\n"
        '<aside id="panel" aria-live="polite"><p id="about">Choose a node to read its text.</p>'
        '<div id="text" dir="auto"></div></aside>\n</main>\n'
        f"{_texts(taken)}"
        f'<script type="application/json" id="nodes">{_data(drawing)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _svg(drawing: TreeDrawing, taken: Sequence[Taken]) -> str:
    """Write the tree as SVG: leaves in a row, each parent above the middle of its children."""
    places = _places(drawing)
    classes: dict[int, list[str]] = {}
    for way in taken:
        for id in way.ids:
            classes.setdefault(id, []).append(way.name)
    lines, marks, labels = [], [], []
    for node in drawing.nodes:
        x, y = places[node["id"]]
        for child in node["children"]:
            if child in places:
                cx, cy = places[child]
                half = (y + cy) / 2
                lines.append(f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {half:.0f} {cx:.0f} {half:.0f} {cx:.0f} {cy:.0f}"/>')
        names = " ".join(["summary" if node["layer"] else "leaf", *classes.get(node["id"], ())])
        words = " ".join(node["text"].split()) or "(no summary yet)"
        shown = _safe(words[: _LABEL - 1] + "…" if len(words) > _LABEL else words)
        if node["layer"]:
            labels.append(f'<text x="{x:.0f}" y="{y - 24:.0f}" text-anchor="middle">{shown}</text>')
        else:  # leaves stand close together
            place = f"{x:.0f} {y + 20:.0f}"
            labels.append(f'<text transform="translate({place}) rotate(60)">{shown}</text>')
        label = (
            f"{'Leaf' if not node['layer'] else 'Summary'} {node['id']}: {_safe(' '.join(node['text'].split())[:160])}"
        )
        marks.append(
            f'<circle id="n{node["id"]}" class="{names}" cx="{x:.0f}" cy="{y:.0f}" r="{9 + 2 * min(4, node["layer"])}" '
            f'tabindex="0" role="button" aria-label="{label}"><title>{label}</title></circle>'
        )
    width = max((x for x, _ in places.values()), default=0) + 2 * _MARGIN
    height = max((y for _, y in places.values()), default=0) + 2 * _MARGIN
    whole = (-_MARGIN, -_MARGIN, width, height)
    box = " ".join(f"{number:.0f}" for number in _opening(drawing, taken, places, whole))
    all_of_it = " ".join(f"{number:.0f}" for number in whole)
    return (
        f'<svg id="tree" viewBox="{box}" data-whole="{all_of_it}" role="group" aria-label="The tree">'
        f'<g class="lines">{"".join(lines)}</g><g class="labels">{"".join(labels)}</g>'
        f'<g class="marks">{"".join(marks)}</g></svg>'
    )


def _opening(
    drawing: TreeDrawing,
    taken: Sequence[Taken],
    places: Mapping[int, tuple[float, float]],
    whole: tuple[float, float, float, float],
) -> tuple[float, float, float, float]:
    """Return the part that is shown at first, large enough to read: around the best node taken, else a root."""
    wanted = [*(id for way in taken for id in way.ids), *(node["id"] for node in drawing.nodes[::-1] if node["root"])]
    x, y = next((places[id] for id in wanted if id in places), (0.0, 0.0))
    left, top, width, height = whole
    shown_width, shown_height = min(width, _OPENING[0]), min(height, _OPENING[1])
    return (
        min(max(left, x - shown_width / 2), left + width - shown_width),
        min(max(top, y - shown_height / 2), top + height - shown_height),
        shown_width,
        shown_height,
    )


def _places(drawing: TreeDrawing) -> dict[int, tuple[float, float]]:
    """Return x and y of each node; a node with several parents is drawn below the first of them."""
    by_id = {node["id"]: node for node in drawing.nodes}
    top = max((int(node["layer"]) for node in drawing.nodes), default=0)
    across: dict[int, float] = {}
    seen: set[int] = set()
    place = 0.0
    todo = [(node["id"], False) for node in reversed(drawing.nodes) if node["root"]]
    while todo:
        id, done = todo.pop()
        children = [child for child in by_id[id]["children"] if child in by_id]
        if done:
            known = [across[child] for child in children if child in across]
            if known:
                across[id] = sum(known) / len(known)
                continue
        elif id in seen:
            continue
        seen.add(id)
        if not done and children:
            todo.append((id, True))
            todo += [(child, False) for child in reversed(children) if child not in seen]
        elif id not in across:
            across[id] = place
            place += _STEP
    return {id: (x, float((top - int(by_id[id]["layer"])) * _RISE)) for id, x in across.items()}


def _texts(taken: Sequence[Taken]) -> str:
    """Write the text that each way of retrieval takes, side by side."""
    columns = "".join(
        f'<section class="{way.name}"><h2>{_safe(way.title)}</h2><p>{way.tokens:,} tokens, {len(way.ids):,} nodes</p>'
        f'<div class="taken" dir="auto">{_safe(way.text)}</div></section>'
        for way in taken
    )
    return f'<div class="columns">{columns}</div>\n' if taken else ""


def _data(drawing: TreeDrawing) -> str:
    """Return the nodes as JSON without ``<``, ``>`` and ``&``, so that no text can end the script element."""
    rows = {
        str(node["id"]): [node["layer"], node["document"], node["tokens"], _CONTROL.sub("", node["text"])]
        for node in drawing.nodes
    }
    text = json.dumps(rows, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _safe(text: str) -> str:
    return html.escape(_CONTROL.sub("", text))
