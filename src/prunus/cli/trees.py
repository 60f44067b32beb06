"""Draw the block tree and the token tree of a generative stage, with P at every branch (HtmlRAG, Figure 3).

The trees are drawn as lines for a terminal, and as a part of the report. A chain of only children is one line: its
probability is 1 by definition, so that the model was not called for it. Where a tree is too large, the least likely
nodes are left out, and a line gives their number and their probability.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..evidence.context import Context

LINES: Final = 40
"""Rows of a tree on a terminal at most."""

ROWS: Final = 1500
"""Rows of a tree in a report at most."""

_TAG: Final = re.compile(r"<[^<>]*>")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_WORDS: Final = 60


@dataclass(slots=True)
class Drawn:
    """A tree to draw, its nodes in document order.

    :param parents: the parent of each node; -1 for a node at the top.
    :param pieces: the tags or tokens of each node, each with whether the model scored it.
    :param own: P of each node among its siblings.
    :param mass: P of each node among all leaves.
    :param notes: the text beside each leaf; '' for other nodes.
    """

    parents: list[int] = field(default_factory=list)
    pieces: list[list[tuple[str, bool]]] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    mass: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, parent: int, piece: tuple[str, bool], own: float, mass: float) -> int:
        """Add a node and return its number."""
        self.parents.append(parent)
        self.pieces.append([piece])
        self.own.append(own)
        self.mass.append(mass)
        self.notes.append("")
        return len(self.parents) - 1


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A row of a drawing.

    :param node: the node; -1 for a row that stands for nodes that were left out.
    :param count: number of subtrees that were left out.
    :param mass: P of the subtrees that were left out.
    """

    node: int
    depth: int
    count: int = 0
    mass: float = 0.0


def token_tree(scored: Any, notes: Sequence[str]) -> Drawn:
    """Return the token tree to draw; a chain of only children becomes one node.

    :param scored: the result of a scorer with a token tree.
    :param notes: the text beside the leaf of each scored block.
    """
    tree, drawn = scored.tree, Drawn()
    count = len(tree)
    children = [0] * count
    for parent in tree.parent[1:].tolist():
        children[parent] += 1
    down, node_of = [0.0] * count, [-1] * count
    for node in range(1, count):
        parent, own = int(tree.parent[node]), float(scored.log_p[node])
        down[node] = down[parent] + own
        piece = scored.pieces[node] if scored.pieces else f"#{int(tree.token[node])}"
        branches = children[parent] > 1
        if parent and not branches:
            node_of[node] = node_of[parent]
            drawn.pieces[node_of[node]].append((piece, False))
        else:
            node_of[node] = drawn.add(node_of[parent], (piece, branches), math.exp(own), math.exp(down[node]))
    for leaf, note in zip(scored.leaves.tolist(), notes, strict=True):
        if node_of[leaf] >= 0:
            place = node_of[leaf]
            drawn.notes[place] = f"{drawn.notes[place]} / {note}" if drawn.notes[place] else note
    return drawn


def block_tree(scored: Any, notes: Sequence[str]) -> Drawn:
    """Return the block tree to draw; P of a node is the sum over the blocks below it.

    :param scored: the result of a scorer with a token tree.
    :param notes: the text beside each scored block.
    """
    below: list[dict[str, int]] = [{}]
    names, parents, mass, own_notes = [""], [-1], [0.0], [""]
    seen: set[int] = set()
    for path, leaf, score, note in zip(
        scored.numbered.paths, scored.leaves.tolist(), scored.scores, notes, strict=True
    ):
        node = 0
        share = 0.0 if leaf in seen else math.exp(float(score))  # blocks of one path share its probability
        seen.add(leaf)
        mass[0] += share
        for step in _TAG.findall(path) or [path]:
            child = below[node].get(step)
            if child is None:
                child = below[node][step] = len(below)
                below.append({})
                names.append(step)
                parents.append(node)
                mass.append(0.0)
                own_notes.append("")
            node = child
            mass[node] += share
        own_notes[node] = f"{own_notes[node]} / {note}" if own_notes[node] else note
    return _merge_chains(below, names, parents, mass, own_notes)


def _merge_chains(
    below: Sequence[dict[str, int]],
    names: Sequence[str],
    parents: Sequence[int],
    mass: Sequence[float],
    notes: Sequence[str],
) -> Drawn:
    """Merge chains of only children, and bring the nodes into document order."""
    drawn, node_of = Drawn(), {0: -1}
    stack = list(reversed(below[0].values()))
    while stack:
        node = stack.pop()
        parent = parents[node]
        branches = len(below[parent]) > 1
        if parent and not branches and not notes[parent]:
            node_of[node] = node_of[parent]
            drawn.pieces[node_of[node]].append((names[node], False))
        else:
            own = mass[node] / mass[parent] if mass[parent] > 0 else 0.0
            node_of[node] = drawn.add(node_of[parent], (names[node], branches), own, mass[node])
        drawn.notes[node_of[node]] = notes[node]
        stack.extend(reversed(below[node].values()))
    return drawn


def rows_of(drawn: Drawn, most: int) -> list[TreeRow]:
    """Return the rows to show: the likeliest nodes with their ancestors, and a row for each group that is left out.

    :param most: number of nodes to show.
    """
    best = sorted(range(len(drawn.mass)), key=lambda node: (-drawn.mass[node], node))
    depth: list[int] = []
    for parent in drawn.parents:
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    shown: set[int] = set()
    for node in best:
        if len(shown) >= most:
            break
        if drawn.parents[node] < 0 or drawn.parents[node] in shown:
            shown.add(node)
    left: dict[int, tuple[int, float]] = {}
    for node, parent in enumerate(drawn.parents):
        if node not in shown and (parent < 0 or parent in shown):
            count, mass = left.get(parent, (0, 0.0))
            left[parent] = count + 1, mass + drawn.mass[node]
    rows: list[TreeRow] = []
    open_: list[int] = []  # shown nodes whose descendants may still come
    for node in [*sorted(shown), -1]:
        while open_ and (node < 0 or drawn.parents[node] != open_[-1]):
            closed = open_.pop()
            if closed in left:
                rows.append(TreeRow(-1, depth[closed] + 1, *left[closed]))
        if node >= 0:
            rows.append(TreeRow(node, depth[node]))
            open_.append(node)
    if -1 in left:
        rows.append(TreeRow(-1, 0, *left[-1]))
    return rows


def notes_of(context: Context) -> list[str]:
    """Return the fate and the first words of each block that the generative stage scored."""
    notes: list[str] = []
    cutting = -1
    for block in context.blocks:
        if block.stage != 2 and len(context.trace) > 0:
            continue
        if block.role == "cut":
            if cutting == block.index - 1:  # the parts of a cut block were scored as one block
                cutting = block.index
                continue
            cutting = block.index
        words = " ".join(block.text[: 4 * _WORDS].split())
        words = words if len(words) <= _WORDS else words[: _WORDS - 1] + "…"
        notes.append(f"{'kept' if block.kept else 'dropped'}: {words}")
    return notes


def as_lines(context: Context, most: int = LINES) -> str:
    """Return both trees for a terminal; '' where no stage made a token tree."""
    scored = context.tree
    if scored is None:
        return ""
    notes = notes_of(context)
    parts = []
    for title, drawn in (("block tree", block_tree(scored, notes)), ("token tree", token_tree(scored, notes))):
        parts.append(
            f"{title}: P at every branch, P of the leaf; {_share(scored) if title == 'token tree' else ''}".rstrip(" ;")
        )
        for row in rows_of(drawn, most):
            indent = "  " * (row.depth + 1)
            if row.node < 0:
                parts.append(f"{indent}… {row.count:,} more, P {row.mass:.4f}")
                continue
            shown = "".join(_plain(piece) for piece, _ in drawn.pieces[row.node])
            parts.append(
                f"{indent}{drawn.own[row.node]:.3f}  {shown}"
                + (f"  [{drawn.mass[row.node]:.4f}] {_plain(drawn.notes[row.node])}" if drawn.notes[row.node] else "")
            )
    return "\n".join(parts)


def as_html(context: Context, most: int = ROWS) -> str:
    """Return both trees as a part of the report, all text escaped; '' where no stage made a token tree."""
    scored = context.tree
    if scored is None:
        return ""
    notes = notes_of(context)
    return "".join(
        f'<section class="panel tree" aria-label="{title}"><details{opened}><summary><b>{title}</b> '
        f'<span class="soft">{about}</span></summary>\n{_rows(drawn, most)}</details></section>\n'
        for title, drawn, about, opened in (
            ("Block tree", block_tree(scored, notes), "P of each element among its siblings; P of each block", " open"),
            ("Token tree", token_tree(scored, notes), f"{_share(scored)} (dashed: the model was not called)", ""),
        )
    )


def _rows(drawn: Drawn, most: int) -> str:
    out = []
    for row in rows_of(drawn, most):
        indent = f'style="padding-left:{min(row.depth, 60) * 18 + 4}px"'
        if row.node < 0:
            out.append(f'<div class="branch more" {indent}>… {row.count:,} more, P {row.mass:.4f}</div>\n')
            continue
        own, note = drawn.own[row.node], drawn.notes[row.node]
        pieces = "".join(
            f'<code class="{"asked" if scored_by_model else "sure"}">{_safe(piece)}</code>'
            for piece, scored_by_model in drawn.pieces[row.node]
        )
        leaf = (
            f'<span class="num">{drawn.mass[row.node]:.4f}</span> <span dir="auto">{_safe(note)}</span>' if note else ""
        )
        kept = " k" if note.startswith("kept") else ""
        out.append(
            f'<div class="branch{kept}" {indent}><span class="bar">'
            f'<i style="width:{100 * min(1.0, own):.1f}%"></i></span><span class="num">{own:.3f}</span> '
            f"{pieces} {leaf}</div>\n"
        )
    return "".join(out)


def _share(scored: Any) -> str:
    tree = scored.tree
    return f"{len(tree) - 1:,} tokens, {100 * float(tree.skipped):.0f} % of them without inference"


def _plain(text: str) -> str:
    """Return a piece for a terminal, with visible line breaks and tabs and without control characters."""
    return _CONTROL.sub("?", text.replace("\n", "↵").replace("\t", "⇥"))


def _safe(text: str) -> str:
    return html.escape(_plain(text))
