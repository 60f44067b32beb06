"""Write the text, tables and links in the shapes of a slide (DrawingML)."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final
from xml.etree.ElementTree import Element

from .._common.allowance import Allowance
from .._common.body import Body
from .._common.omml import tex
from .._common.ooxml import Relation, chosen_branch
from .._common.write import Cell, table
from .._common.xml import attribute, children, find_path, whole_number

_WEB: Final = ("http://", "https://", "mailto:", "ftp://")
_NUMBERS: Final = (("alphaLc", "a"), ("alphaUc", "A"), ("romanLc", "i"), ("romanUc", "I"))


def text_blocks(
    shape: Element | None, body: Body, bulleted: bool, links: Mapping[str, Relation], allowance: Allowance
) -> None:
    """Add the paragraphs of a text body.

    :param bulleted: whether paragraphs are list items by default.
    """
    shown = [(paragraph, inline(paragraph, links, allowance).strip()) for paragraph in children(shape, "a:p")]
    shown = [(paragraph, text) for paragraph, text in shown if text]
    is_single = len(shown) == 1
    for paragraph, text in shown:
        props = find_path(paragraph, "a:pPr")
        level = whole_number(attribute(props, "lvl"), most=8)
        numbered = find_path(props, "a:buAutoNum")
        marked = find_path(props, "a:buChar") is not None or find_path(props, "a:buBlip") is not None
        plain = find_path(props, "a:buNone") is not None or (not marked and not (bulleted and (level or not is_single)))
        if numbered is not None:
            kind = next((kind for name, kind in _NUMBERS if attribute(numbered, "type").startswith(name)), "")
            fresh = not body.is_numbered(level)
            body.item(text, level, "ol", whole_number(attribute(numbered, "startAt")) if fresh else 0, kind)
        elif plain:
            body.add(f"<p>{text}</p>")
        else:
            body.item(text, level)


def inline(paragraph: Element, links: Mapping[str, Relation], allowance: Allowance) -> str:
    """Return the runs of a paragraph as HTML."""
    parts = []
    allowance.spend("items")
    for child in paragraph:
        allowance.spend("items")
        if child.tag in ("a:r", "a:fld"):
            if child.tag == "a:r" or not child.get("type", "").startswith("slidenum"):
                parts.append(_run(child, links, allowance))
        elif child.tag == "a:br":
            parts.append("<br>")
        elif child.tag == "mc:AlternateContent":
            parts += [_math(formula) for formula in chosen_branch(child)]
        elif child.tag == "a14:m":
            parts.append(_math(child))
    return "".join(parts).replace("</b><b>", "").replace("</i><i>", "")


def _math(element: Element) -> str:
    return f'<code class="math">{escape(" ".join(tex(element).split()), quote=False)}</code>'


def _run(run: Element, links: Mapping[str, Relation], allowance: Allowance) -> str:
    text = find_path(run, "a:t")
    html = escape(text.text or "", quote=False) if text is not None else ""
    core = html.strip()
    if not core:
        return html
    props = find_path(run, "a:rPr")
    before, after = html[: len(html) - len(html.lstrip())], html[len(html.rstrip()) :]
    shift = attribute(props, "baseline", "0")
    script = {"-": "sub"}.get(shift[:1], "sup") if shift.lstrip("-").strip("0%") else ""
    for tag, wanted in (
        (script, bool(script)),
        ("i", attribute(props, "i") == "1"),
        ("b", attribute(props, "b") == "1"),
    ):
        if wanted:
            core = f"<{tag}>{core}</{tag}>"
    link = links.get(attribute(find_path(props, "a:hlinkClick"), "r:id"))
    if link is not None and link.outside and link.target.lower().startswith(_WEB):
        allowance.spend("letters", len(link.target))
        core = f'<a href="{escape(link.target)}">{core}</a>'
    return before + core + after


def slide_table(element: Element, links: Mapping[str, Relation], allowance: Allowance) -> str:
    """Return a table of a slide, with merged cells."""
    header_rows = int(attribute(find_path(element, "a:tblPr"), "firstRow") in ("1", "true"))
    rows = []
    for row in children(element, "a:tr"):
        cells = []
        for cell in children(row, "a:tc"):
            allowance.spend("items")
            if cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true"):
                continue
            lines = (inline(p, links, allowance).strip() for p in children(find_path(cell, "a:txBody"), "a:p"))
            inner = "<br>".join(filter(None, lines))
            colspan, rowspan = (max(1, whole_number(cell.get(name), 1, most=1000)) for name in ("gridSpan", "rowSpan"))
            cells.append(Cell(inner, colspan, rowspan))
        rows.append(cells)
    return table(rows, header_rows if header_rows < len(rows) else 0) if any(rows) else ""
