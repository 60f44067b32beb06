"""Text, tables and their links in DrawingML: what the shapes of a slide say."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final
from xml.etree.ElementTree import Element

from .._common.body import Body
from .._common.omml import tex
from .._common.ooxml import Relation, chosen
from .._common.write import Cell, table
from .._common.xml import below, each, value, whole

_WEB: Final = ("http://", "https://", "mailto:", "ftp://")
_NUMBERS: Final = (("alphaLc", "a"), ("alphaUc", "A"), ("romanLc", "i"), ("romanUc", "I"))


def text_blocks(shape: Element | None, body: Body, bulleted: bool, links: Mapping[str, Relation]) -> None:
    """Add the paragraphs of a text body.

    :param bulleted: whether its paragraphs are list items unless they say otherwise.
    """
    shown = [(one, inline(one, links).strip()) for one in each(shape, "a:p")]
    shown = [(one, text) for one, text in shown if text]
    alone = len(shown) == 1
    for paragraph, text in shown:
        about = below(paragraph, "a:pPr")
        level = whole(value(about, "lvl"), most=8)
        numbered = below(about, "a:buAutoNum")
        marked = below(about, "a:buChar") is not None or below(about, "a:buBlip") is not None
        plain = below(about, "a:buNone") is not None or (not marked and not (bulleted and (level or not alone)))
        if numbered is not None:
            kind = next((kind for name, kind in _NUMBERS if value(numbered, "type").startswith(name)), "")
            fresh = not body.is_numbered(level)
            body.item(text, level, "ol", whole(value(numbered, "startAt")) if fresh else 0, kind)
        elif plain:
            body.add(f"<p>{text}</p>")
        else:
            body.item(text, level)


def inline(paragraph: Element, links: Mapping[str, Relation]) -> str:
    """Return the runs of a paragraph as HTML."""
    done = []
    for child in paragraph:
        if child.tag in ("a:r", "a:fld"):
            if child.tag == "a:r" or not child.get("type", "").startswith("slidenum"):
                done.append(_run(child, links))
        elif child.tag == "a:br":
            done.append("<br>")
        elif child.tag == "mc:AlternateContent":
            done += [_math(one) for one in chosen(child)]
        elif child.tag == "a14:m":
            done.append(_math(child))
    return "".join(done).replace("</b><b>", "").replace("</i><i>", "")


def _math(element: Element) -> str:
    return f'<code class="math">{escape(" ".join(tex(element).split()), quote=False)}</code>'


def _run(run: Element, links: Mapping[str, Relation]) -> str:
    text = below(run, "a:t")
    made = escape(text.text or "", quote=False) if text is not None else ""
    core = made.strip()
    if not core:
        return made
    about = below(run, "a:rPr")
    before, after = made[: len(made) - len(made.lstrip())], made[len(made.rstrip()) :]
    shift = value(about, "baseline", "0")
    raised = {"-": "sub"}.get(shift[:1], "sup") if shift.lstrip("-").strip("0%") else ""
    for tag, wanted in ((raised, bool(raised)), ("i", value(about, "i") == "1"), ("b", value(about, "b") == "1")):
        if wanted:
            core = f"<{tag}>{core}</{tag}>"
    link = links.get(value(below(about, "a:hlinkClick"), "r:id"))
    if link is not None and link.outside and link.target.lower().startswith(_WEB):
        core = f'<a href="{escape(link.target)}">{core}</a>'
    return before + core + after


def slide_table(element: Element, links: Mapping[str, Relation]) -> str:
    """Return a table of a slide, with its spans."""
    heads = int(value(below(element, "a:tblPr"), "firstRow") in ("1", "true"))
    rows = []
    for row in each(element, "a:tr"):
        cells = []
        for one in each(row, "a:tc"):
            if one.get("hMerge") in ("1", "true") or one.get("vMerge") in ("1", "true"):
                continue
            inner = "<br>".join(text for p in each(below(one, "a:txBody"), "a:p") if (text := inline(p, links).strip()))
            wide, high = (max(1, whole(one.get(name), 1, most=1000)) for name in ("gridSpan", "rowSpan"))
            cells.append(Cell(inner, wide, high))
        rows.append(cells)
    return table(rows, heads if heads < len(rows) else 0) if any(rows) else ""
