"""Numbers and units of the LaTeX package siunitx, in its versions 2 and 3."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .._common.write import escape_text
from .source import Macro, TexSource

if TYPE_CHECKING:
    from .reader import TexReader

_PREFIXES: Final = {
    "quecto": "q", "ronto": "r", "yocto": "y", "zepto": "z", "atto": "a", "femto": "f", "pico": "p", "nano": "n",
    "micro": "µ", "milli": "m", "centi": "c", "deci": "d", "deca": "da", "deka": "da", "hecto": "h", "kilo": "k",
    "mega": "M", "giga": "G", "tera": "T", "peta": "P", "exa": "E", "zetta": "Z", "yotta": "Y", "kibi": "Ki",
    "mebi": "Mi", "gibi": "Gi", "tebi": "Ti",
}  # fmt: skip
_UNITS: Final = {
    "metre": "m", "meter": "m", "gram": "g", "second": "s", "ampere": "A", "kelvin": "K", "mole": "mol",
    "candela": "cd", "kilogram": "kg", "hertz": "Hz", "newton": "N", "pascal": "Pa", "joule": "J", "watt": "W",
    "volt": "V", "ohm": "Ω", "farad": "F", "henry": "H", "coulomb": "C", "tesla": "T", "weber": "Wb", "siemens": "S",
    "lumen": "lm", "lux": "lx", "becquerel": "Bq", "gray": "Gy", "sievert": "Sv", "katal": "kat", "radian": "rad",
    "steradian": "sr", "celsius": "°C", "degreeCelsius": "°C", "degree": "°", "arcminute": "′", "arcsecond": "″",
    "percent": "%", "litre": "L", "liter": "L", "tonne": "t", "minute": "min", "hour": "h", "day": "d", "hectare": "ha",
    "electronvolt": "eV", "dalton": "Da", "atomicmassunit": "u", "astronomicalunit": "au", "bel": "B",
    "decibel": "dB", "neper": "Np", "bar": "bar", "mmHg": "mmHg", "angstrom": "Å", "byte": "B", "bit": "bit",
    "barn": "b", "knot": "kn", "nauticalmile": "M",
}  # fmt: skip
_SHORT: Final = re.compile(r"([fpnumcdhkMGT]?)(m|g|s|A|K|Hz|N|Pa|J|W|V|C|F|H|S|eV|[Ll]|mol|ohm|bar|Wh|dB|h|Ω)")
_POWERS: Final = {"square": "2", "cubic": "3", "squared": "2", "cubed": "3"}
_TOKEN: Final = re.compile(
    r"\\raiseto\s*\{([^{}]*)\}|\\([A-Za-z]+)\s*|\^\s*(\{[^{}]*\}|\\?\w|-\d+)|([~.,]|\\[,;: ])|([^\\^~.,{}\s]+)"
)
_NUMBER: Final = re.compile(r"([^eEdDx]*)(?:[eEdD]([+-]?\d+))?$")
_MAX_BODY: Final = 100  # characters of a unit that a document declares
_MARKS: Final = ("°", "′", "″")


def number(text: str) -> str:
    """Return a number as HTML: ``1.5e3`` is 1.5 × 10³, ``2 +- 1`` is 2 ± 1."""
    parts = []
    for factor in re.split(r"x|\\times", "".join(text.split())):
        match = _NUMBER.match(factor.replace("\\pm", "±").replace("+-", "±").replace("+/-", "±"))
        value, power = (match[1], match[2]) if match else (factor, None)
        written = escape_text(value).replace("±", " ± ")
        written = f"({written})" if power and "±" in written else written
        ten = f"10<sup>{power.lstrip('+').replace('-', '−')}</sup>" if power else ""
        parts.append(" × ".join(filter(None, (written, ten))))
    return " × ".join(parts).replace("--", "–").strip()


def unit(text: str, macros: dict[str, Macro]) -> str:
    """Return a unit as HTML: ``\\kilo\\metre\\per\\hour`` is km/h."""
    above: list[str] = []
    below: list[str] = []
    prefix = power = ""
    into, latest = above, above
    for lead, name, raised, mark, plain in _TOKEN.findall(_expanded(text, macros)):
        if name == "per":
            into = below
        elif name in _PREFIXES:
            prefix = _PREFIXES[name]
        elif lead or name in ("square", "cubic"):
            power = escape_text(lead).replace("-", "−") or _POWERS[name]
        elif (name in _POWERS or name in ("tothe", "of") or raised) and latest:
            raised = _POWERS.get(name, raised.strip("{}"))
            latest[-1] += f"<sup>{escape_text(raised).replace('-', '−')}</sup>" if raised else ""
        elif name or plain:
            short = _SHORT.fullmatch(name)
            shown = _UNITS.get(name) or (short[1].replace("u", "µ") + short[2].replace("ohm", "Ω") if short else name)
            into.append(prefix + escape_text(plain or shown) + (f"<sup>{power}</sup>" if power else ""))
            prefix, power, latest, into = "", "", into, above
        elif mark:
            prefix = ""
    if not above:
        return "/".join(["1", *below]) if below else ""
    divisor = " ".join(below)
    return " ".join(above) + (f"/({divisor})" if len(below) > 1 else f"/{divisor}" if divisor else "")


def _expanded(text: str, macros: dict[str, Macro]) -> str:
    """Return a unit with ``\\tothe{3}`` as a power, and units that the document declares in full."""
    text = re.sub(r"\\tothe\s*(\{[^{}]*\})", r"^\1", text)
    text = re.sub(r"\\(?:text|mathrm|si|unit)\s*\{([^{}]*)\}", r"\1", text)
    return re.sub(
        r"\\([A-Za-z]+)", lambda match: macros[match[1]].body[:_MAX_BODY] if match[1] in macros else match[0], text
    )


def _with_unit(value: str, shown: str) -> str:
    """Return a number with its unit; a unit that only divides follows its slash: 5/kg."""
    apart = "" if not value or not shown or shown in _MARKS else " "
    return f"{value}{shown[1:]}" if value and shown.startswith("1/") else f"{value}{apart}{shown}"


def _write(reader: TexReader, values: str, units: str) -> None:
    reader.line.append(_with_unit(values, unit(units, reader.state.macros.commands) if units else ""))


def _write_number(reader: TexReader, source: TexSource) -> None:
    source.option()
    _write(reader, number(source.argument()), "")


def _write_unit(reader: TexReader, source: TexSource) -> None:
    """Write a unit, after the number that the package units takes as an option."""
    option = source.option() or ""
    _write(reader, "" if "=" in option else number(option), source.argument())


def _write_quantity(reader: TexReader, source: TexSource) -> None:
    source.option()
    value = number(source.argument())
    before = reader.inline(source.option() or "")  # siunitx 2: a unit before the number, such as \$
    _write(reader, before + value, source.argument())


def _write_product(reader: TexReader, source: TexSource, has_unit: bool) -> None:
    """Write a product; each factor has the unit."""
    source.option()
    factors = [number(factor) for factor in re.split(r"x|\\times", source.argument()) if factor.strip()]
    shown = unit(source.argument(), reader.state.macros.commands) if has_unit else ""
    reader.line.append(" × ".join(_with_unit(factor, shown) for factor in factors))


def _write_euro(reader: TexReader, source: TexSource) -> None:
    """Write an amount of eurosym in euros, or the sign alone."""
    amount = reader.inline(source.argument()) if source.peek() == "{" else ""
    reader.line.append(f"{amount} €" if amount else "€")


def _write_printed(reader: TexReader, source: TexSource) -> None:
    """Write a number of numprint, and its unit, which is an option."""
    shown = reader.inline(source.option() or "")
    reader.line.append(_with_unit(number(source.argument()), shown))


def _write_range(reader: TexReader, source: TexSource, has_unit: bool) -> None:
    source.option()
    first, last = number(source.argument()), number(source.argument())
    shown = unit(source.argument(), reader.state.macros.commands) if has_unit else ""
    reader.line.append(f"{first}{shown and ' '}{shown} to {last}{shown and ' '}{shown}")


def _write_list(reader: TexReader, source: TexSource, has_unit: bool) -> None:
    source.option()
    values = [number(value) for value in source.argument().split(";") if value.strip()]
    joined = ", ".join(values[:-1]) + (" and " if len(values) > 1 else "") + "".join(values[-1:])
    _write(reader, joined, source.argument() if has_unit else "")


def _write_angle(reader: TexReader, source: TexSource) -> None:
    """Write an angle in degrees, or in degrees, minutes and seconds."""
    source.option()
    values = source.argument().split(";")
    reader.line.append(
        "".join(number(value) + mark for value, mark in zip(values, _MARKS, strict=False) if value.strip())
    )


def _declare_unit(reader: TexReader, source: TexSource) -> None:
    source.option()
    name = source.argument().strip().lstrip("\\")
    reader.state.macros.commands.setdefault(name, Macro(0, None, source.argument()))


UNIT_HANDLERS: Final[dict[str, Callable[[Any, TexSource], None]]] = {
    "num": _write_number,
    "si": _write_unit,
    "unit": _write_unit,
    "SI": _write_quantity,
    "qty": _write_quantity,
    "ang": _write_angle,
    "SIrange": lambda reader, source: _write_range(reader, source, True),
    "qtyrange": lambda reader, source: _write_range(reader, source, True),
    "numrange": lambda reader, source: _write_range(reader, source, False),
    "SIlist": lambda reader, source: _write_list(reader, source, True),
    "qtylist": lambda reader, source: _write_list(reader, source, True),
    "numlist": lambda reader, source: _write_list(reader, source, False),
    "qtyproduct": lambda reader, source: _write_product(reader, source, True),
    "numproduct": lambda reader, source: _write_product(reader, source, False),
    **dict.fromkeys(("EUR", "EURdig"), _write_euro),
    **dict.fromkeys(("np", "numprint"), _write_printed),
    "DeclareSIUnit": _declare_unit,
}
"""Handlers by command name."""
