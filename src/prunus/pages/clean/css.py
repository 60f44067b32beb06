"""Reads declarations of CSS, and tells from them whether a reader sees the words of an element.

Comments, escapes, ``!important``, shorthands, ``calc()`` and variables are read as a browser reads them. Some
properties are inherited: an element inside can undo them, and is seen then. The others hide all that is inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...core.text.numbers import bounded_float, bounded_int

ALL: Final = "*"
"""Stands for all properties that hide whatever is inside."""

INHERITED: Final = ("visibility", "font-size", "color", "-webkit-text-fill-color")
"""The properties that hide words only until an element inside sets them again."""

_CAN_HIDE: Final = frozenset(
    """display content-visibility width max-width inline-size height max-height block-size margin-left margin-top
    text-indent left top right bottom inset-inline-start inset-block-start translate transform clip clip-path
    -webkit-clip-path mask mask-image -webkit-mask -webkit-mask-image opacity filter scale visibility font-size color
    -webkit-text-fill-color""".split()
)
_LENGTH: Final = r"[1-9]\d*+(?:\.\d++)?+(?:px|%|r?em|pt|v[wh])?+(?![\w.])"
_NEAR: Final = r"-?\d{1,3}+(?:px|%)?+(?![\w.])"
_RISKY: Final = "|".join(sorted(_CAN_HIDE | {"font", "inset", "margin"}))
_HARMLESS: Final = re.compile(
    rf"""(?:\s*+(?:(?!(?:{_RISKY})\s*+:)[a-z\d-]++\s*+:[^;\\*]*+|display:(?!\s*none)[a-z\s-]*+|visibility:\s*+visible"""
    rf"""|(?:max-)?+(?:width|height):\s*+(?:{_LENGTH}|auto|none)|font-size:\s*+(?!1(?:\.\d++)?p|\d(?:\.\d++)?%){_LENGTH}|opacity:\s*+1"""
    rf"""|(?:margin(?:-top|-left)?+|text-indent):(?:\s*+(?:{_NEAR}|{_LENGTH}|auto))++"""
    rf"""|(?:left|top|right|bottom):\s*+(?:{_NEAR}|auto)"""
    rf"""|color:\s*+(?:\#\w{{3}}(?:\w{{3}})?+|(?![tT])[a-zA-Z]++|rgb\(\d+,\s*+\d++,\s*+\d++\))"""
    rf""")?+\s*+(?:!\s*+important\s*+)?+(?:;|\Z))*+\s*+"""
)
"""Styles that hide nothing, whatever they set; three of four styles of pages, which need not be read then."""

_TEXT_COLOUR: Final = re.compile(r"(?<![\w-])color\s*+:")
_NOTHING: Final[frozenset[str]] = frozenset()
_WHOLE: Final = frozenset({ALL})
_INVISIBLE: Final = 0.02
"""Opacity from which on nobody sees a text."""
_TINY: Final = 1.0
"""Font size, in pixels, up to which nobody reads a text."""
_FAR: Final = 1_000.0
"""Pixels to the left or above from which on a box is off the screen."""
_FAR_RIGHT: Final = 10_000.0
"""Pixels to the right or below: a page may be long, and a row of slides wide."""
_ALIKE: Final = 4
"""Steps of 256 by which two colours differ at most that nobody tells apart."""
_EM: Final = 16.0
_UNITS: Final = {
    "px": 1.0, "": 1.0, "em": _EM, "rem": _EM, "ex": 8.0, "ch": 8.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8,
    "mm": 3.78, "q": 0.945, "vw": 12.8, "vh": 8.0, "vmin": 8.0, "vmax": 12.8, "lvw": 12.8, "lvh": 8.0, "svw": 12.8,
    "svh": 8.0, "dvw": 12.8, "dvh": 8.0,
}  # fmt: skip
"""Pixels of each unit, on a screen of 1280 × 800."""

_LONG_TOKEN: Final = re.compile(r"""/\*.*?(?:\*/|\Z)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?""", re.DOTALL)
"""A comment or a string: what stands in it is not structure."""
_IN_STRINGS: Final = str.maketrans({"{": r"\7b ", "}": r"\7d ", ";": r"\3b ", ",": r"\2c ", "/": r"\2f "})
ESCAPE: Final = re.compile(r"\\([0-9a-fA-F]{1,6})[ \t\r\n\f]?|\\([^0-9a-fA-F\n])")
_VARIABLE: Final = re.compile(r"var\(\s*+(--[\w-]++)\s*+(?:,([^()]*+))?\)")
_TERM: Final = re.compile(r"([-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?)(%|[a-z]*+)")
_DISPLAYS: Final = frozenset(
    """none block inline contents flex grid table ruby inherit initial unset revert revert-layer list-item flow-root
    inline-block inline-flex inline-grid inline-table run-in math flow""".split()
)
_FUNCTION: Final = re.compile(r"(?<![a-z0-9-])([a-z0-9-]++)\(([^()]*+)\)")
_SUMS: Final = ("calc", "min", "max", "clamp")
_COLOURS: Final = {
    "black": "000000", "silver": "c0c0c0", "gray": "808080", "grey": "808080", "white": "ffffff", "maroon": "800000",
    "red": "ff0000", "purple": "800080", "fuchsia": "ff00ff", "magenta": "ff00ff", "green": "008000", "lime": "00ff00",
    "olive": "808000", "yellow": "ffff00", "navy": "000080", "blue": "0000ff", "teal": "008080", "aqua": "00ffff",
    "cyan": "00ffff", "orange": "ffa500", "snow": "fffafa", "ivory": "fffff0", "whitesmoke": "f5f5f5",
    "ghostwhite": "f8f8ff", "lightgray": "d3d3d3", "lightgrey": "d3d3d3", "gainsboro": "dcdcdc", "beige": "f5f5dc",
}  # fmt: skip
"""The names of colours that pages use for text and backgrounds."""


def without_comments(css: str) -> str:
    """Return a style sheet without comments; where a string may hold one, it is read letter by letter."""
    if "/*" not in css:
        return css
    first, *others = css.split("/*")
    kept = [first, *(other.partition("*/")[2] for other in others)]
    return escaped(css) if any(map(_ends_in_string, kept)) else " ".join(kept)


def _ends_in_string(piece: str) -> bool:
    """Tell whether a string may be open at the end of a piece of a sheet."""
    line = piece[piece.rfind("\n", max(0, len(piece) - 200)) + 1 :][-200:]
    return bool(line.count('"') & 1 or line.count("'") & 1)


def escaped(css: str) -> str:
    """Return a style sheet without comments, and with the structural letters of strings escaped."""
    return _LONG_TOKEN.sub(lambda token: " " if token[0][0] == "/" else token[0].translate(_IN_STRINGS), css)


def declarations(body: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the name, the value and the importance of each declaration, escapes read, in lower case.

    :param body: without comments.
    """
    if '"' in body or "'" in body:
        body = escaped(body)
    if "\\" in body:
        body = ESCAPE.sub(_unescaped, body)
    for declaration in body.split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            value, mark, important = value.partition("!")
            name, value = name.strip().lower(), value.strip().lower()
            if name != "display" or _is_display(value):  # else no browser knows it, and the one before stands
                yield name, value, bool(mark) and important.strip().lower() == "important"


def _unescaped(escape: re.Match[str]) -> str:
    """Return the letter of a CSS escape; a letter that no name holds stays out."""
    code = bounded_int(escape[1], 0, most=0x7F, base=16)
    letter = chr(code) if code else escape[2] or ""
    return letter if letter.isalnum() or letter in "-_" else ""


def declared(style: str, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the value of each property that a style sets, the winning one, with variables put in.

    :param variables: those that are set elsewhere, as ``--name`` -> value.
    """
    values: dict[str, str] = {}
    weights: dict[str, bool] = {}
    for name, value, important in declarations(without_comments(style)):
        if not value or weights.get(name, False) > important:
            continue
        for part, of_part in _longhands(name, value):
            values[part], weights[part] = of_part, important
    if any("var(" in value for value in values.values()):
        known = {**(variables or {}), **{name: value for name, value in values.items() if name.startswith("--")}}
        for name, value in values.items():
            if "var(" in value:
                values[name] = _VARIABLE.sub(lambda use: known.get(use[1], (use[2] or "").strip()), value)
    return values


def _is_display(value: str) -> bool:
    return value.startswith(("-", "table-", "ruby-", "var(")) or value.partition(" ")[0] in _DISPLAYS


def _longhands(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield a property and its value; of a shorthand those parts that can hide."""
    yield name, value
    if name == "font":
        sizes = [part for part in value.split() if _TERM.match(part) or part.startswith("calc(")]
        size = next((part for part in sizes if not part.isdigit()), sizes[-1] if sizes else "")  # 700 is a weight
        yield "font-size", size.partition("/")[0] or "medium"
    elif name in ("inset", "margin"):
        sides = (value.split() * 4)[:4] if len(value.split()) in (1, 2) else [*value.split(), ""][:4]
        prefix = "margin-" if name == "margin" else ""
        yield f"{prefix}top", sides[0]
        yield f"{prefix}left", sides[3] or sides[1]
    elif name == "background":
        yield "background-color", value


def unseen_by(values: Mapping[str, str]) -> frozenset[str]:
    """Return the inherited properties by which nobody sees the words of an element; ``ALL`` where all of it is unseen.

    :param values: from :func:`declared`.
    """
    if values.keys().isdisjoint(_CAN_HIDE):
        return _NOTHING
    if _is_hidden(values) or _is_empty_box(values) or _is_off_screen(values) or _is_masked(values):
        return _WHOLE
    if _has_no_opacity(values) or _has_no_scale(values):
        return _WHOLE
    by = {name for name in INHERITED if name in values and not _is_seen(values, name)}
    if by & {"color", "-webkit-text-fill-color"} and _is_painted(values):
        by -= {"color", "-webkit-text-fill-color"}
    if "color" in by and is_shown_by(values, "-webkit-text-fill-color"):
        by.discard("color")
    return frozenset(by) if by else _NOTHING


def is_harmless(style: str) -> bool:
    """Tell whether a style certainly hides nothing, by a quick look; see :func:`unseen_by`."""
    if not _HARMLESS.fullmatch(style):
        return False
    return "background" not in style or not _TEXT_COLOUR.search(style)


def is_shown_by(values: Mapping[str, str], name: str) -> bool:
    """Tell whether an element undoes an inherited property that hides the words around it."""
    if name == "color" and is_shown_by(values, "-webkit-text-fill-color"):
        return True
    value = values.get(name, "inherit")
    if value in ("inherit", "unset", "currentcolor"):
        return False
    if name == "font-size" and value.endswith(("em", "%")) and not value.endswith("rem"):
        return False  # a part of nothing
    return _is_seen(values, name)


def _is_seen(values: Mapping[str, str], name: str) -> bool:
    """Tell whether words are seen for all that a value of an inherited property says."""
    value = values[name]
    if name == "visibility":
        return value not in ("hidden", "collapse")
    if name == "font-size":
        size = pixels(value, _EM)
        return size is None or size > _TINY
    colour = colour_of(value)
    if colour is None:
        return True
    ground = colour_of(values.get("background-color", ""))
    if ground is not None and ground[3] > _INVISIBLE and min(colour) >= 0:
        return any(abs(one - other) > _ALIKE for one, other in zip(colour[:3], ground[:3], strict=True))
    return colour[3] > _INVISIBLE


def _is_painted(values: Mapping[str, str]) -> bool:
    """Tell whether a transparent text is painted in another way: by its background, an outline or a shadow."""
    clip = f"{values.get('background-clip', '')} {values.get('-webkit-background-clip', '')}"
    if "text" in clip.split() or "text" in values.get("background", "").split():
        return True
    outlines = ("text-shadow", "-webkit-text-stroke", "-webkit-text-stroke-width")
    return any(values.get(name, "none") not in ("none", "0", "0px", "initial", "unset") for name in outlines)


def _is_hidden(values: Mapping[str, str]) -> bool:
    return values.get("display") == "none" or values.get("content-visibility") == "hidden"


def _is_empty_box(values: Mapping[str, str]) -> bool:
    """Tell whether a box has no size: in both directions, or in one that cuts off what does not fit."""
    flat = [
        0 in _lengths(values, names)
        for names in (("width", "max-width", "inline-size"), ("height", "max-height", "block-size"))
    ]
    cut = any(
        part in ("hidden", "clip")
        for name in ("overflow", "overflow-x", "overflow-y")
        for part in values.get(name, "").split()
    )
    return all(flat) or (cut and any(flat))


def _lengths(values: Mapping[str, str], names: Sequence[str]) -> list[float | None]:
    """Return those of some properties that are set, in pixels."""
    return [pixels(values[name]) for name in names if name in values]


def _is_off_screen(values: Mapping[str, str]) -> bool:
    """Tell whether a box, or its words, are moved far off the screen."""
    moves = _lengths(values, ("margin-left", "margin-top", "text-indent"))
    if values.get("position", "static") != "static":
        ways = ("left", "top", "right", "bottom", "inset-inline-start", "inset-block-start")
        moves += _lengths(values, ways)
        beyond = _lengths(values, ("left", "top"))
        if any(move is not None and move >= _FAR_RIGHT for move in beyond):
            return True
    moves += [pixels(part) for part in values.get("translate", "").split()[:2]]
    for name, inner in _functions(values.get("transform", "")):
        if name in ("translate", "translatex", "translatey", "translate3d"):
            moves += [pixels(part) for part in inner.split(",")[:2]]
    return any(move is not None and move <= -_FAR for move in moves)


def _is_masked(values: Mapping[str, str]) -> bool:
    """Tell whether a clip or a mask leaves nothing to be seen."""
    for name, inner in _functions(values.get("clip", "")):
        parts = inner.replace(",", " ").split()
        if name == "rect" and len(parts) == 4 and len({pixels(part) for part in parts}) == 1 and "auto" not in parts:
            return True
    for name, inner in _functions(values.get("clip-path", values.get("-webkit-clip-path", ""))):
        numbers = [pixels(part, 1.0) for part in inner.partition(" at ")[0].replace(",", " ").split()]
        known = [number for number in numbers if number is not None]
        if name in ("circle", "ellipse", "polygon") and known and not any(known):
            return True
        if name == "inset" and known and len(known) == len(numbers) <= 4 and "%" in inner:
            sides = (known * 4)[:4] if len(known) < 3 else [*known, known[1]][:4]
            if sides[0] + sides[2] >= 100 or sides[1] + sides[3] >= 100:
                return True
    for name in ("mask", "mask-image", "-webkit-mask", "-webkit-mask-image"):
        value = values.get(name, "")
        if "gradient(" in value:
            inner = value.partition("gradient(")[2].rpartition(")")[0]
            stops = [
                colour_of(f"{part.partition(')')[0]})" if "(" in part else part.partition(" ")[0])
                for part in _parted(inner)
            ]
            colours = [colour for colour in stops if colour is not None]
            if colours and all(colour[3] <= _INVISIBLE for colour in colours):
                return True
    return False


def _has_no_opacity(values: Mapping[str, str]) -> bool:
    """Tell whether an element is wholly transparent, and no animation of its own shows it."""
    levels = [values.get("opacity", "")]
    levels += [inner for name, inner in _functions(values.get("filter", "")) if name == "opacity"]
    clear = any(level is not None and level <= _INVISIBLE for level in (pixels(one, 0.01) for one in levels))
    moving = ("transform", "translate", "scale")
    return clear and not _is_animated(values) and all(values.get(name, "none") == "none" for name in moving)


def _has_no_scale(values: Mapping[str, str]) -> bool:
    """Tell whether a box is drawn without width or height, and no animation of its own shows it."""
    factors = [pixels(part, 0.01) for part in values.get("scale", "").split()[:2]]
    for name, inner in _functions(values.get("transform", "")):
        parts = [pixels(part, 0.01) for part in inner.split(",")]
        if name in ("scale", "scalex", "scaley", "scale3d"):
            factors += parts[:2]
        elif name == "matrix" and len(parts) == 6:
            factors += [0.0] if parts[:4] == [0, 0, 0, 0] else []
        elif name in ("rotatex", "rotatey") and inner.strip() in ("90deg", "-90deg", "270deg", ".25turn", "0.25turn"):
            factors.append(0.0)
    return any(factor is not None and abs(factor) <= 0.01 for factor in factors) and not _is_animated(values)


def _is_animated(values: Mapping[str, str]) -> bool:
    """Tell whether an element changes: a fade-in begins unseen and ends visible."""
    for name in ("transition", "transition-property", "animation", "animation-name", "will-change"):
        if values.get(name, "none") not in ("none", "auto", "initial", "unset"):
            return True
    return False


def _functions(value: str) -> list[tuple[str, str]]:
    """Return the functions of a value and what stands between their brackets; sums inside are worked out before."""
    if "(" not in value:
        return []
    if any(f"{name}(" in value for name in _SUMS):
        value = _FUNCTION.sub(_worked_out, value)
    return [(one[1], one[2]) for one in _FUNCTION.finditer(value)]


def _worked_out(function: re.Match[str]) -> str:
    amount = pixels(function[0]) if function[1] in _SUMS else None
    return function[0] if amount is None else f"{amount}px"


def _parted(inner: str) -> list[str]:
    """Return the arguments of a function, which may hold functions."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(inner):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append(inner[start:index].strip())
            start = index + 1
    return [*parts, inner[start:].strip()]


def pixels(value: str, percent: float = 0.0) -> float | None:
    """Return a length in pixels, or a plain number; None where it is none of both, or not known without layout.

    :param percent: the value of 100 %, times a hundredth where the result is a share; 0: a share of 0 alone is known.
    """
    value = value.strip()
    if "(" in value:
        return _Sum(value, percent).value() if value.startswith(("calc(", "min(", "max(", "clamp(")) else None
    term = _TERM.fullmatch(value)
    return _amount(term, percent) if term else None


def _amount(term: re.Match[str], percent: float) -> float | None:
    number = bounded_float(term[1], None, least=-1e9, most=1e9)
    if number is None:
        return None
    if term[2] == "%":
        if percent == _EM:
            return number * percent / 100
        return number * percent if percent or not number else None
    factor = _UNITS.get(term[2])
    return None if factor is None else number * factor


class _Sum:
    """Works out ``calc()``, ``min()``, ``max()`` and ``clamp()`` of lengths and numbers."""

    def __init__(self, text: str, percent: float) -> None:
        self._text, self._percent, self._at, self._depth = text[:400], percent, 0, 0

    def value(self) -> float | None:
        """Return the value; None where it cannot be worked out."""
        try:
            result = self._factor()
        except (ValueError, ZeroDivisionError):
            return None
        return result if not self._text[self._at :].strip() else None

    def _sum(self) -> float:
        result = self._product()
        while (sign := self._peek()) in ("+", "-"):
            self._at += 1
            result += self._product() * (1 if sign == "+" else -1)
        return result

    def _product(self) -> float:
        result = self._factor()
        while (sign := self._peek()) in ("*", "/"):
            self._at += 1
            other = self._factor()
            result = result * other if sign == "*" else result / other
        return result

    def _factor(self) -> float:
        self._peek()
        for name in ("calc(", "min(", "max(", "clamp(", "("):
            if self._text.startswith(name, self._at):
                self._at += len(name)
                return self._bracket(name)
        term = _TERM.match(self._text, self._at)
        amount = _amount(term, self._percent) if term else None
        if term is None or amount is None:
            raise ValueError
        self._at = term.end()
        return amount

    def _bracket(self, name: str) -> float:
        self._depth += 1
        if self._depth > 20:
            raise ValueError
        values = [self._sum()]
        while self._peek() == ",":
            self._at += 1
            values.append(self._sum())
        if self._peek() != ")":
            raise ValueError
        self._at += 1
        self._depth -= 1
        if name == "clamp(":
            return max(values[0], min(values[1], values[2])) if len(values) == 3 else values[0]
        return min(values) if name == "min(" else max(values)

    def _peek(self) -> str:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at : self._at + 1]


def colour_of(value: str) -> tuple[float, float, float, float] | None:
    """Return red, green, blue (0 to 255) and opacity (0 to 1) of a value that is a colour alone; else None."""
    value = value.strip()
    if value == "transparent":
        return 0.0, 0.0, 0.0, 0.0
    value = f"#{_COLOURS[value]}" if value in _COLOURS else value
    if value.startswith("#"):
        digits = value[1:]
        if len(digits) in (3, 4):
            digits = "".join(digit * 2 for digit in digits)
        if len(digits) not in (6, 8) or not all(digit in "0123456789abcdef" for digit in digits):
            return None
        pairs = (digits[at : at + 2] for at in range(0, len(digits), 2))
        red, green, blue, *rest = (bounded_int(pair, 0, most=255, base=16) for pair in pairs)
        return red, green, blue, rest[0] / 255 if rest else 1.0
    name, _, inner = value.partition("(")
    if name not in ("rgb", "rgba", "hsl", "hsla", "hwb", "lab", "lch", "oklab", "oklch") or not inner.endswith(")"):
        return None
    parts = inner.partition(")")[0].replace(",", " ").replace("/", " ").split()
    numbers = [pixels(part.removesuffix("deg"), 0.01) for part in parts]
    if len(parts) not in (3, 4) or None in numbers:
        return None
    opacity = numbers[3] if len(numbers) == 4 else 1.0
    assert opacity is not None
    if not name.startswith("rgb"):  # whose hue is not worked out: only its opacity is told, and it is like no other
        return -1e3, -1e3, -1e3, opacity
    channels = [
        (number or 0.0) * (255 if part.endswith("%") else 1) for number, part in zip(numbers, parts, strict=True)
    ]
    return channels[0], channels[1], channels[2], opacity
