"""Convert equations of Office documents (OMML) to TeX. Spacing is ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from xml.etree.ElementTree import Element

from .xml import attribute, children, find_path

_NARY: Final = {
    "∑": r"\sum", "∏": r"\prod", "∐": r"\coprod", "∫": r"\int", "∬": r"\iint", "∭": r"\iiint", "∮": r"\oint",
    "⋃": r"\bigcup", "⋂": r"\bigcap", "⋁": r"\bigvee", "⋀": r"\bigwedge",
}  # fmt: skip
_ACCENTS: Final = {
    "\u0302": r"\hat", "\u0303": r"\tilde", "\u0304": r"\bar", "\u0305": r"\overline", "\u0307": r"\dot",
    "\u0308": r"\ddot", "\u20d7": r"\vec", "\u030c": r"\check", "\u0306": r"\breve", "": r"\hat",
}  # fmt: skip
_LETTERS: Final = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma",
    "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta",
    "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
    "×": "times", "·": "cdot", "÷": "div", "±": "pm", "∓": "mp", "≤": "le", "≥": "ge", "≠": "ne", "≈": "approx",
    "≡": "equiv", "∞": "infty", "∂": "partial", "∇": "nabla", "∈": "in", "∉": "notin", "⊂": "subset", "⊆": "subseteq",
    "∪": "cup", "∩": "cap", "→": "to", "←": "leftarrow", "⇒": "Rightarrow", "⇔": "Leftrightarrow", "∀": "forall",
    "∃": "exists", "∅": "emptyset", "∝": "propto", "∧": "land", "∨": "lor", "¬": "neg", "…": "dots", "⋯": "cdots",
    "∑": "sum", "∏": "prod", "∫": "int", "√": "surd", "∘": "circ", "⊕": "oplus", "⊗": "otimes", "ℝ": "mathbb{R}",
}  # fmt: skip
_SPECIAL: Final = frozenset("#$%&_{}")


def tex(element: Element) -> str:
    """Return an equation, or a part of an equation, as TeX."""
    maker = _MAKERS.get(element.tag)
    if maker is not None:
        return maker(element)
    return _children_tex(element)


def _children_tex(element: Element | None) -> str:
    """Return the TeX of all children of an element, joined."""
    return "".join(tex(child) for child in element) if element is not None else ""


def _part_tex(element: Element, name: str) -> str:
    return _children_tex(find_path(element, name))


def _group(text: str) -> str:
    return "{" + text + "}"


def _braced_base(base: str) -> str:
    return base if len(base) == 1 or (base.startswith("\\") and base[1:].isalpha()) else _group(base)


def _text(element: Element) -> str:
    text = ""
    for letter in element.text or "":
        if letter in _LETTERS:
            text += f"\\{_LETTERS[letter]} "
        elif letter in _SPECIAL:
            text += "\\" + letter
        else:
            text += letter
    return text


def _fraction(element: Element) -> str:
    kind = attribute(find_path(element, "m:fPr", "m:type"), "m:val")
    top, bottom = _part_tex(element, "m:num"), _part_tex(element, "m:den")
    if kind == "lin":
        return f"{_braced_base(top)}/{_braced_base(bottom)}"
    return rf"\binom{_group(top)}{_group(bottom)}" if kind == "noBar" else rf"\frac{_group(top)}{_group(bottom)}"


def _scripts(element: Element) -> str:
    low, high = find_path(element, "m:sub"), find_path(element, "m:sup")
    made = _braced_base(_part_tex(element, "m:e").strip())
    made += f"_{_group(_children_tex(low).strip())}" if low is not None else ""
    return made + (f"^{_group(_children_tex(high).strip())}" if high is not None else "")


def _pre_scripts(element: Element) -> str:
    low, high = _part_tex(element, "m:sub").strip(), _part_tex(element, "m:sup").strip()
    return f"{{}}_{_group(low)}^{_group(high)}{_part_tex(element, 'm:e')}"


def _root(element: Element) -> str:
    degree = _part_tex(element, "m:deg").strip()
    hidden = attribute(find_path(element, "m:radPr", "m:degHide"), "m:val", "0") in ("1", "on", "true")
    return rf"\sqrt{f'[{degree}]' if degree and not hidden else ''}{_group(_part_tex(element, 'm:e'))}"


def _nary(element: Element) -> str:
    letter = attribute(find_path(element, "m:naryPr", "m:chr"), "m:val", "∫")
    low, high = _part_tex(element, "m:sub").strip(), _part_tex(element, "m:sup").strip()
    made = _NARY.get(letter, letter)
    made += f"_{_group(low)}" if low else ""
    made += f"^{_group(high)}" if high else ""
    return f"{made} {_part_tex(element, 'm:e')}"


def _fence(element: Element) -> str:
    properties = find_path(element, "m:dPr")
    # each is a single letter: a long separator would be written once for each part
    left = attribute(find_path(properties, "m:begChr"), "m:val", "(")[:1]
    right = attribute(find_path(properties, "m:endChr"), "m:val", ")")[:1]
    separator = attribute(find_path(properties, "m:sepChr"), "m:val", "|")[:1]
    inner = f" {separator} ".join(_children_tex(part) for part in children(element, "m:e"))
    marks = [f"\\{mark}" if mark in "{}" and mark else mark or "." for mark in (left, right)]
    return rf"\left{marks[0]}{inner}\right{marks[1]}"


def _matrix(element: Element) -> str:
    rows = [" & ".join(_children_tex(cell) for cell in children(row, "m:e")) for row in children(element, "m:mr")]
    return r"\begin{matrix}" + r" \\ ".join(rows) + r"\end{matrix}"


def _lines(element: Element) -> str:
    return (
        r"\begin{aligned}" + r" \\ ".join(_children_tex(line) for line in children(element, "m:e")) + r"\end{aligned}"
    )


def _accent(element: Element) -> str:
    letter = attribute(find_path(element, "m:accPr", "m:chr"), "m:val")
    return f"{_ACCENTS.get(letter, chr(92) + 'hat')}{_group(_part_tex(element, 'm:e'))}"


def _bar(element: Element) -> str:
    top = attribute(find_path(element, "m:barPr", "m:pos"), "m:val", "bot") == "top"
    return f"{chr(92)}{'overline' if top else 'underline'}{_group(_part_tex(element, 'm:e'))}"


def _limit(element: Element) -> str:
    mark = "_" if element.tag == "m:limLow" else "^"
    return f"{_braced_base(_part_tex(element, 'm:e').strip())}{mark}{_group(_part_tex(element, 'm:lim').strip())}"


def _function(element: Element) -> str:
    name = _part_tex(element, "m:fName").strip()
    known = name.isascii() and name.isalpha() and len(name) <= 6
    return f"{chr(92) + name if known else name} {_part_tex(element, 'm:e')}"


def _no_text(element: Element) -> str:
    return ""


_MAKERS: Final[dict[str, Callable[[Element], str]]] = {
    "m:t": _text, "m:f": _fraction, "m:sSub": _scripts, "m:sSup": _scripts, "m:sSubSup": _scripts,
    "m:sPre": _pre_scripts, "m:rad": _root, "m:nary": _nary, "m:d": _fence, "m:m": _matrix, "m:eqArr": _lines,
    "m:acc": _accent, "m:bar": _bar, "m:limLow": _limit, "m:limUpp": _limit, "m:func": _function,
    **dict.fromkeys(("m:rPr", "m:ctrlPr", "w:rPr", "w:del", "w:moveFrom"), _no_text),
}  # fmt: skip
"""Elements whose TeX is more than the TeX of their children. Elements with properties give no text."""
