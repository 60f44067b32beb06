"""A tree of summaries as one page: zoom, search, and what a question takes.

The page loads nothing, and its policy forbids it; the one script is named by its digest. Texts of documents
stand in the page as data, and the script writes them as text alone.
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
"""Units between two leaves."""
_RISE: Final = 120
"""Units between two layers."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Taken:
    """What a way of retrieval takes.

    :param name: ``tree`` or ``flat``.
    """

    name: str
    ids: Sequence[int]
    text: str
    tokens: int

    @property
    def title(self) -> str:
        """What stands above its text."""
        return TITLES[self.name]


@dataclass(frozen=True, slots=True)
class TreeDrawing:
    """A tree that is drawn.

    :param nodes: each with id, layer, document, tokens, text, children, root.
    :param without_leaves: whether leaves were left out, because there are too many.
    """

    place: str
    nodes: Sequence[Mapping[str, Any]]
    without_leaves: bool = False


def write_tree(drawing: TreeDrawing, question: str = "", taken: Sequence[Taken] = ()) -> str:
    """Return the page."""
    script = Path(__file__).with_suffix(".js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )
    name = _safe(Path(drawing.place).name)
    asked = f'<p class="question" dir="auto">{_safe(question)}</p>' if question else ""
    note = "<p>Its leaves are left out: there are too many to draw.</p>" if drawing.without_leaves else ""
    legend = "".join(f'<span class="key {one.name}">{_safe(one.title)}</span>' for one in taken)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Summary tree: {name}</title>\n"
        f"<style>\n{Path(__file__).with_suffix('.css').read_text('utf-8')}</style>\n</head>\n<body>\n"
        f"<header><h1>{name}</h1>{asked}{note}"
        '<div class="tools"><label>Search <input id="search" type="search" autocomplete="off"></label>'
        '<output id="hits"></output>'
        '<button id="in" type="button" aria-label="Zoom in">+</button>'
        '<button id="out" type="button" aria-label="Zoom out">−</button>'
        f'<button id="whole" type="button">Whole tree</button>{legend}</div></header>\n'
        f"<main>\n{_drawn(drawing, taken)}\n"
        '<aside id="panel" aria-live="polite"><p id="about">Choose a node to read its text.</p>'
        '<div id="text" dir="auto"></div></aside>\n</main>\n'
        f"{_texts(taken)}"
        f'<script type="application/json" id="nodes">{_data(drawing)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _drawn(drawing: TreeDrawing, taken: Sequence[Taken]) -> str:
    """Write the tree as SVG: leaves in a row, each parent above the middle of its children."""
    places = _places(drawing)
    classes: dict[int, list[str]] = {}
    for one in taken:
        for id in one.ids:
            classes.setdefault(id, []).append(one.name)
    lines, marks = [], []
    for node in drawing.nodes:
        x, y = places[node["id"]]
        for child in node["children"]:
            if child in places:
                cx, cy = places[child]
                half = (y + cy) / 2
                lines.append(f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {half:.0f} {cx:.0f} {half:.0f} {cx:.0f} {cy:.0f}"/>')
        own = " ".join(["leaf" if not node["layer"] else "said", *classes.get(node["id"], ())])
        label = (
            f"{'Leaf' if not node['layer'] else 'Summary'} {node['id']}: {_safe(' '.join(node['text'].split())[:160])}"
        )
        marks.append(
            f'<circle id="n{node["id"]}" class="{own}" cx="{x:.0f}" cy="{y:.0f}" r="{9 + 2 * min(4, node["layer"])}" '
            f'tabindex="0" role="button" aria-label="{label}"><title>{label}</title></circle>'
        )
    width = max((x for x, _ in places.values()), default=0) + 40
    height = max((y for _, y in places.values()), default=0) + 40
    return (
        f'<svg id="tree" viewBox="-40 -40 {width + 40:.0f} {height + 40:.0f}" role="group" aria-label="The tree">'
        f'<g class="lines">{"".join(lines)}</g><g class="marks">{"".join(marks)}</g></svg>'
    )


def _places(drawing: TreeDrawing) -> dict[int, tuple[float, float]]:
    """Return where each node stands; a node with several parents stands below the first."""
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
    """Write what each way of retrieval takes, side by side."""
    columns = "".join(
        f'<section class="{one.name}"><h2>{_safe(one.title)}</h2><p>{one.tokens:,} tokens, {len(one.ids):,} nodes</p>'
        f'<div class="taken" dir="auto">{_safe(one.text)}</div></section>'
        for one in taken
    )
    return f'<div class="columns">{columns}</div>\n' if taken else ""


def _data(drawing: TreeDrawing) -> str:
    """Return the nodes as JSON that no reading of HTML can leave."""
    rows = {
        str(node["id"]): [node["layer"], node["document"], node["tokens"], _CONTROL.sub("", node["text"])]
        for node in drawing.nodes
    }
    text = json.dumps(rows, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _safe(text: str) -> str:
    return html.escape(_CONTROL.sub("", text))
