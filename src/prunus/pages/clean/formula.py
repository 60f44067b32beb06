"""Formulas of a page as one line of text: the TeX that the page gives, or the MathML written out.

MathML without its layout reads wrong: a fraction of 1 and 36 is no 136, and ten to the ninth no 109.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final

from .parse import Element, Text

_DEEPEST: Final = 40
"""Levels of a formula that are written out; what is deeper is written as its words."""

_TEX: Final = frozenset({"application/x-tex", "application/x-latex", "text/tex", "text/latex", "tex", "latex"})
_DISPLAY: Final = re.compile(r"\{\\(?:display|text)style\b")
_ENVIRONMENT: Final = re.compile(r"\\(?:begin|end)\s*\{[a-z]+\*?\}(?:\{[lcr|]+\})?|\\[A-Za-z]+|\\.")
_TOKEN: Final = re.compile(r"\d+|[^\W\d_]{3,}")
_ATOM: Final = re.compile(r"[-+]?\d+(?:[.,]\d+)*|[^\W\d_]{3,}|[d∂][^\W\d_]|√?\([^()]*\)|\|[^|]*\|", re.S)
_INVISIBLE: Final = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064\u200b"), None)
_SPACED: Final = frozenset("=<>≤≥≠≈≡∼≃≅→←↔⇒⇐⇔∈∉⊂⊆⊃⊇∝≪≫:+-−±∓×÷·∗∧∨∪∩|&")
"""Operators with a space on both sides where they stand between operands."""
_OPENING: Final = frozenset("([{|⟨⌊⌈=<>≤≥≠≈+-−±∓×÷·,;:→⇒∑∏∫")
"""What no operand ends with: a sign after it belongs to what follows."""
_ACCENTS: Final = {
    "^": "\u0302", "ˆ": "\u0302", "¯": "\u0304", "‾": "\u0304", "ˉ": "\u0304", "_": "\u0304", "~": "\u0303",
    "˜": "\u0303", "→": "\u20d7", "⃗": "\u20d7", "˙": "\u0307", ".": "\u0307", "¨": "\u0308", "ˇ": "\u030c",
}  # fmt: skip
_STACKED: Final = frozenset({"msupsub", "mfrac", "sqrt", "op-limits"})
"""Classes of KaTeX's stacks."""
_NOT_SHOWN: Final = frozenset({"annotation", "annotation-xml", "mphantom", "script", "style", "template"})


def formula_text(math: Element, hidden: Callable[[Element], bool]) -> str:
    """Return a ``<math>`` element as one line; '' where it shows nothing.

    The TeX of its annotation is taken where its numbers and words are those that the formula shows: nobody reads an
    annotation, and a page could hide other words in it.

    :param hidden: tells whether a reader does not see an element.
    """
    written = " ".join(_row(math.children, hidden, 0).split())
    if not written:
        return ""
    for note in math.select("annotation"):
        if (note.attr("encoding") or "").strip().lower() in _TEX:
            tex = plain_tex(note.text)
            if tex and _tokens(tex) == _tokens(written):
                return tex
    return written


def is_katex(element: Element) -> bool:
    """Tell whether an element is a formula as KaTeX lays it out for eyes alone."""
    return element.tag == "span" and (element.attr("class") or "").split()[:1] == ["katex-html"]


def katex_text(element: Element, hidden: Callable[[Element], bool], depth: int = 0) -> str:
    """Return a formula of KaTeX as one line: its parts are laid out from the bottom to the top.

    :param hidden: tells whether a reader does not see an element.
    """
    written = ""
    for child in element.children:
        if isinstance(child, Text):
            written += child.data.translate(_INVISIBLE)
        elif isinstance(child, Element) and child.tag not in _NOT_SHOWN and not hidden(child):
            written += _shown_words(child, hidden) if depth >= _DEEPEST else _katex_part(child, hidden, depth)
    return " ".join(written.split()) if not depth else written


def _katex_part(part: Element, hidden: Callable[[Element], bool], depth: int) -> str:
    names = (part.attr("class") or "").split()
    stack = part.select_one(".vlist") if not _STACKED.isdisjoint(names) else None
    if stack is None:
        words = katex_text(part, hidden, depth + 1)
        return f" {words.strip()} " if "mrel" in names or "mbin" in names else words
    shown = [row for row in stack.children if isinstance(row, Element) and not hidden(row)]
    rows = [text for row in shown if (text := katex_text(row, hidden, depth + 1).strip())]
    if not rows:
        return ""
    if "sqrt" in names:
        return f"√({''.join(rows)})"
    if "mfrac" in names:
        return f"{_group(rows[-1])}/{_group(rows[0])}"
    if "msupsub" in names:
        lowered = part.select_one(".vlist-t2") is not None
        return _raised_and_lowered(rows[0] if lowered else "", rows[-1] if len(rows) > lowered else "")
    sign = next((place for place, row in enumerate(rows) if not row[0].isalnum()), 0)  # a sum with its limits
    return rows[sign] + _raised_and_lowered("".join(rows[:sign]), "".join(rows[sign + 1 :])) + " "


def draws_formula(image: Element) -> bool:
    """Tell whether a picture is a formula that MediaWiki has drawn: its alt text is TeX, and it hides from readers of
    screens, who have the MathML beside it."""
    return (image.attr("alt") or "").startswith("{\\displaystyle") and image.attr("aria-hidden") == "true"


def is_tex(script: Element) -> bool:
    """Tell whether a <script> holds a formula for MathJax, which it has not drawn beside it."""
    if not (script.attr("type") or "").strip().lower().startswith("math/tex"):
        return False
    before = script.previous_sibling
    return not (isinstance(before, Element) and "mathjax" in (before.attr("class") or "").lower() and before.text)


def plain_tex(tex: str) -> str:
    """Return TeX on one line, without the style that MediaWiki writes around it."""
    tex = " ".join(tex.split())
    styled = _DISPLAY.match(tex) if tex.endswith("}") else None
    return tex[styled.end() : -1].strip() if styled else tex


def _tokens(text: str) -> list[str]:
    """Return the numbers and longer words of a formula, sorted."""
    return sorted(_TOKEN.findall(_ENVIRONMENT.sub(" ", text)))


def _row(nodes: Sequence[object], hidden: Callable[[Element], bool], depth: int) -> str:
    """Write nodes side by side."""
    pieces: list[str] = []
    before = ""  # the piece before, and its tag
    tag_before = ""
    for node in nodes:
        if isinstance(node, Text):
            piece, tag = " ".join(node.data.split()), ""
        elif isinstance(node, Element) and node.tag not in _NOT_SHOWN and not hidden(node):
            piece, tag = _written(node, hidden, depth), node.tag
        else:
            continue
        if not piece:
            continue
        if tag == "mo" and piece in _SPACED and before and before.rstrip()[-1:] not in _OPENING:
            piece = f" {piece} "
        elif tag == "mo" and piece in ",;" and before:
            piece = f"{piece} "
        elif before[-1:].isalnum() and piece[0].isalnum() and _are_apart(before, tag_before, piece, tag):
            piece = f" {piece}"
        pieces.append(piece)
        before, tag_before = piece, tag
    return "".join(pieces)


def _written(node: Element, hidden: Callable[[Element], bool], depth: int) -> str:
    """Write one element of a formula."""
    tag = node.tag
    if tag in ("mi", "mn", "mo", "mtext", "ms") or depth >= _DEEPEST:
        words = " ".join(_shown_words(node, hidden).translate(_INVISIBLE).split())
        return words if tag != "mtext" else f" {words} " if words else ""
    depth += 1
    parts = [child for child in node.children if isinstance(child, Element) and not hidden(child)]
    if tag == "semantics":
        return _row(parts[:1], hidden, depth)
    if tag == "mmultiscripts":
        return _around(parts, [_row([part], hidden, depth).strip() for part in parts])
    if tag in _TWO or tag in _THREE:
        return _scripts(tag, [_row([part], hidden, depth).strip() for part in parts])
    inner = _row(node.children, hidden, depth)
    if tag == "msqrt":
        return f"√({inner.strip()})"
    if tag == "mfenced":
        opening, closing = (node.attr("open"), node.attr("close"))
        cells = _separated([_row([part], hidden, depth).strip() for part in parts], node.attr("separators"))
        return f"{'(' if opening is None else opening}{cells}{')' if closing is None else closing}"
    if tag == "mtable":
        return "[" + "; ".join(_row([part], hidden, depth).strip() for part in parts) + "]"
    if tag in ("mtr", "mlabeledtr"):
        return ", ".join(_row([part], hidden, depth).strip() for part in parts)
    return inner


_TWO: Final = frozenset({"mfrac", "msup", "msub", "mroot", "mover", "munder"})
_THREE: Final = frozenset({"msubsup", "munderover", "mmultiscripts"})


def _scripts(tag: str, parts: list[str]) -> str:
    """Write a fraction, a root, or a base with what stands above and below it."""
    if len(parts) < 2:
        return "".join(parts)
    base, first = parts[0], parts[1]
    if tag == "mfrac":
        return f"{_group(base)}/{_group(first)}"
    if tag == "mroot":
        return f"root({first}, {base})"
    if tag == "mover" and first in _ACCENTS and len(base) == 1:
        return base + _ACCENTS[first]
    low = first if tag in ("msub", "munder") or tag in _THREE else ""
    high = first if tag in ("msup", "mover") else parts[2] if tag in _THREE and len(parts) > 2 else ""
    return (_group(base) if base else "") + _raised_and_lowered(low, high)


def _raised_and_lowered(low: str, high: str) -> str:
    return (f"_{_group(low)}" if low else "") + (f"^{_group(high.replace(chr(0x2212), '-'))}" if high else "")


def _around(nodes: Sequence[Element], parts: list[str]) -> str:
    """Write a base with pairs of scripts after it and, behind an <mprescripts>, before it: _6^14C."""
    cut = next((place for place, node in enumerate(nodes) if node.tag == "mprescripts"), len(nodes))
    before, after = (
        "".join(_raised_and_lowered(low, high) for low, high in zip_longest(side[::2], side[1::2], fillvalue=""))
        for side in (parts[cut + 1 :], parts[1:cut])
    )
    return f"{before}{_group(parts[0]) if parts and parts[0] else ''}{after}"


def _separated(cells: list[str], separators: str | None) -> str:
    """Join the cells of an <mfenced>, whose separators are used one after the other; the last stands for all others."""
    signs = "".join(("," if separators is None else separators).split())
    written = cells[:1]
    for place, cell in enumerate(cells[1:]):
        written.append(f"{signs[min(place, len(signs) - 1)]} {cell}" if signs else cell)
    return "".join(written)


def _are_apart(before: str, tag_before: str, piece: str, tag: str) -> bool:
    """Tell whether a space parts two pieces: "3 1/2" is no 31/2, "x^2 y" no x^(2y), and "sin x" no sinx."""
    scripted = tag == "mfrac" or tag_before in _TWO or tag_before in _THREE or (tag in _TWO and piece[0].isdigit())
    return scripted or any(len(letters) == 2 and letters.isalpha() for letters in (before[-2:], piece[:2]))


def _group(text: str) -> str:
    """Return a part of a formula in parentheses, unless it is a single operand."""
    return text if _ATOM.fullmatch(text) or len(text) == 1 else f"({text})"


def _shown_words(node: Element, hidden: Callable[[Element], bool]) -> str:
    """Return the words of an element without those that a reader does not see."""
    pieces: list[str] = []
    stack = list(reversed(node.children))
    while stack:
        child = stack.pop()
        if isinstance(child, Text):
            pieces.append(child.data)
        elif isinstance(child, Element) and child.tag not in _NOT_SHOWN and not hidden(child):
            stack.extend(reversed(child.children))
    return "".join(pieces)
