"""Equations of Office documents (OMML) as TeX: what a formula says, not how it is spaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from xml.etree.ElementTree import Element

from .xml import below, each, value

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
    """Return an equation, or a part of one, as TeX."""
    made = _MAKERS.get(element.tag)
    if made is not None:
        return made(element)
    return _all(element)


def _all(element: Element | None) -> str:
    """Return the parts of an element one after the other."""
    return "".join(tex(child) for child in element) if element is not None else ""


def _part(element: Element, name: str) -> str:
    return _all(below(element, name))


def _group(text: str) -> str:
    return "{" + text + "}"


def _raised(base: str) -> str:
    return base if len(base) == 1 or (base.startswith("\\") and base[1:].isalpha()) else _group(base)


def _letters(element: Element) -> str:
    done = ""
    for letter in element.text or "":
        if letter in _LETTERS:
            done += f"\\{_LETTERS[letter]} "
        elif letter in _SPECIAL:
            done += "\\" + letter
        else:
            done += letter
    return done


def _fraction(element: Element) -> str:
    kind = value(below(element, "m:fPr", "m:type"), "m:val")
    top, bottom = _part(element, "m:num"), _part(element, "m:den")
    if kind == "lin":
        return f"{_raised(top)}/{_raised(bottom)}"
    return rf"\binom{_group(top)}{_group(bottom)}" if kind == "noBar" else rf"\frac{_group(top)}{_group(bottom)}"


def _scripts(element: Element) -> str:
    low, high = below(element, "m:sub"), below(element, "m:sup")
    done = _raised(_part(element, "m:e").strip())
    done += f"_{_group(_all(low).strip())}" if low is not None else ""
    return done + (f"^{_group(_all(high).strip())}" if high is not None else "")


def _before(element: Element) -> str:
    low, high = _part(element, "m:sub").strip(), _part(element, "m:sup").strip()
    return f"{{}}_{_group(low)}^{_group(high)}{_part(element, 'm:e')}"


def _root(element: Element) -> str:
    degree = _part(element, "m:deg").strip()
    hidden = value(below(element, "m:radPr", "m:degHide"), "m:val", "0") in ("1", "on", "true")
    return rf"\sqrt{f'[{degree}]' if degree and not hidden else ''}{_group(_part(element, 'm:e'))}"


def _nary(element: Element) -> str:
    letter = value(below(element, "m:naryPr", "m:chr"), "m:val", "∫")
    low, high = _part(element, "m:sub").strip(), _part(element, "m:sup").strip()
    done = _NARY.get(letter, letter)
    done += f"_{_group(low)}" if low else ""
    done += f"^{_group(high)}" if high else ""
    return f"{done} {_part(element, 'm:e')}"


def _fence(element: Element) -> str:
    about = below(element, "m:dPr")
    left = value(below(about, "m:begChr"), "m:val", "(")
    right = value(below(about, "m:endChr"), "m:val", ")")
    between = value(below(about, "m:sepChr"), "m:val", "|")
    inner = f" {between} ".join(_all(part) for part in each(element, "m:e"))
    marks = [f"\\{mark}" if mark in "{}" and mark else mark or "." for mark in (left, right)]
    return rf"\left{marks[0]}{inner}\right{marks[1]}"


def _matrix(element: Element) -> str:
    rows = [" & ".join(_all(cell) for cell in each(row, "m:e")) for row in each(element, "m:mr")]
    return r"\begin{matrix}" + r" \\ ".join(rows) + r"\end{matrix}"


def _lines(element: Element) -> str:
    return r"\begin{aligned}" + r" \\ ".join(_all(line) for line in each(element, "m:e")) + r"\end{aligned}"


def _accent(element: Element) -> str:
    letter = value(below(element, "m:accPr", "m:chr"), "m:val")
    return f"{_ACCENTS.get(letter, chr(92) + 'hat')}{_group(_part(element, 'm:e'))}"


def _bar(element: Element) -> str:
    top = value(below(element, "m:barPr", "m:pos"), "m:val", "bot") == "top"
    return f"{chr(92)}{'overline' if top else 'underline'}{_group(_part(element, 'm:e'))}"


def _limit(element: Element) -> str:
    mark = "_" if element.tag == "m:limLow" else "^"
    return f"{_raised(_part(element, 'm:e').strip())}{mark}{_group(_part(element, 'm:lim').strip())}"


def _function(element: Element) -> str:
    name = _part(element, "m:fName").strip()
    known = name.isascii() and name.isalpha() and len(name) <= 6
    return f"{chr(92) + name if known else name} {_part(element, 'm:e')}"


def _nothing(element: Element) -> str:
    return ""


_MAKERS: Final[dict[str, Callable[[Element], str]]] = {
    "m:t": _letters, "m:f": _fraction, "m:sSub": _scripts, "m:sSup": _scripts, "m:sSubSup": _scripts,
    "m:sPre": _before, "m:rad": _root, "m:nary": _nary, "m:d": _fence, "m:m": _matrix, "m:eqArr": _lines,
    "m:acc": _accent, "m:bar": _bar, "m:limLow": _limit, "m:limUpp": _limit, "m:func": _function,
    **dict.fromkeys(("m:rPr", "m:ctrlPr", "w:rPr", "w:del", "w:moveFrom"), _nothing),
}  # fmt: skip
"""Elements that need more than their parts one after the other; properties say nothing themselves."""
