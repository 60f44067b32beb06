"""The characters of symbol fonts by their codes: what stands as "m" or U+F06D in the file shows as μ."""

from __future__ import annotations

from typing import Final

_SYMBOL: Final = (
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
    + " " * 33
    + "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪ ⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"
)
"""The encoding of the font Symbol, from code 32."""

_WINGDINGS: Final = {
    0x22: "✂",
    0x28: "☎",
    0x2A: "✉",
    0x46: "☞",
    0x4A: "☺",
    0x4C: "☹",
    0x6C: "●",
    0x6D: "❍",
    0x6E: "■",
    0x6F: "□",
    0x71: "❑",
    0x72: "❒",
    0x74: "⧫",
    0x75: "◆",
    0x76: "❖",
    0x9F: "•",
    0xA1: "○",
    0xA7: "▪",
    0xA8: "☐",
    0xAB: "★",
    0xD8: "➢",
    0xDF: "←",
    0xE0: "→",
    0xE1: "↑",
    0xE2: "↓",
    0xE8: "➔",
    0xF0: "⇨",
    0xFB: "✗",
    0xFC: "✓",
    0xFD: "☒",
    0xFE: "☑",
    **{0x81 + at: chr(0x2460 + at) for at in range(10)},
    **{0x8C + at: chr(0x2776 + at) for at in range(10)},
}
_WINGDINGS_2: Final = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0x97: "●", 0xA3: "☐"}


def is_symbol_font(font: str) -> bool:
    """Tell whether the letters of a font show as other characters than their codes say."""
    return font.strip().lower().startswith(("symbol", "wingdings", "webdings"))


def symbol(font: str, code: int) -> str:
    """Return the character that a code shows in a symbol font; a bullet where the table lacks it."""
    code -= 0xF000 if 0xF000 <= code <= 0xF0FF else 0
    name = font.strip().lower()
    if name.startswith("symbol"):
        return _SYMBOL[code - 32] if 32 <= code < 32 + len(_SYMBOL) else "•"
    table = _WINGDINGS_2 if name.startswith("wingdings 2") else {} if name.startswith("webdings") else _WINGDINGS
    return " " if code == 32 else table.get(code, "•")


def symbols(font: str, text: str) -> str:
    """Return a text as a symbol font shows it. Letters that such a font cannot hold are left as they are."""
    return "".join(
        symbol(font, ord(letter)) if " " <= letter <= "\xff" or "\uf020" <= letter <= "\uf0ff" else letter
        for letter in text
    )
