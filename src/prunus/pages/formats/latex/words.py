"""Tables of LaTeX commands and environments: symbols, accents, styles, and layout commands that are dropped."""

from __future__ import annotations

import unicodedata
from typing import Final

_GREEK: Final = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "", "nu", "xi"),
    *("omicron", "pi", "rho", "", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
)

SYMBOLS: Final[dict[str, str]] = {
    "ss": "ß", "o": "ø", "O": "Ø", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å", "l": "ł",
    "L": "Ł", "i": "ı", "j": "ȷ", "dots": "…", "ldots": "…", "textellipsis": "…", "LaTeX": "LaTeX", "TeX": "TeX",
    "LaTeXe": "LaTeX2e", "BibTeX": "BibTeX", "copyright": "©", "textcopyright": "©", "textregistered": "®",
    "texttrademark": "™", "S": "§", "P": "¶", "dag": "†", "ddag": "‡", "pounds": "£", "euro": "€", "texteuro": "€",
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textbar": "|", "textless": "<",
    "textgreater": ">", "textbullet": "•", "textdegree": "°", "textquoteleft": "‘", "textquoteright": "’",
    "textquotedblleft": "“", "textquotedblright": "”", "textendash": "–", "textemdash": "—", "quad": " ",
    "qquad": " ", "enspace": " ", "thinspace": " ", "space": " ", "nobreakspace": "\u00a0", "slash": "/",
    "and": ", ", "textunderscore": "_", "textdollar": "$", "ie": "i.e.", "eg": "e.g.", "checkmark": "✓",
    "{": "{", "}": "}", "$": "$", "&": "&", "%": "%", "#": "#", "_": "_", " ": " ", "\n": " ", "\t": " ", ",": " ",
    "textmu": "µ", "textohm": "Ω", "texttimes": "×", "textpm": "±", "textdiv": "÷", "textminus": "−",
    "textcelsius": "°C",
    "textonehalf": "½", "textonequarter": "¼", "textthreequarters": "¾", "textperthousand": "‰", "textnumero": "№",
    "textyen": "¥", "textcent": "¢", "textsterling": "£", "textsection": "§", "textparagraph": "¶", "textdagger": "†",
    "textdaggerdbl": "‡", "textrightarrow": "→", "textleftarrow": "←", "textuparrow": "↑", "textdownarrow": "↓",
    "textonesuperior": "¹", "texttwosuperior": "²", "textthreesuperior": "³", "textordfeminine": "ª",
    "textordmasculine": "º", "textperiodcentered": "·", "textasteriskcentered": "∗", "textopenbullet": "◦",
    "textbraceleft": "{", "textbraceright": "}", "textquotesingle": "'", "textquotedbl": '"', "textbardbl": "‖",
    "textexclamdown": "¡", "textquestiondown": "¿", "texttildelow": "~", "textlnot": "¬", "textsurd": "√",
    "guillemotleft": "«", "guillemotright": "»", "guilsinglleft": "‹", "guilsinglright": "›", "quotedblbase": "„",
    "quotesinglbase": "‚", "glqq": "„", "grqq": "“", "flqq": "«", "frqq": "»", "degree": "°", "celsius": "°C",
    "micro": "µ", "permil": "‰",
    **{f"text{name}": chr(0x3B1 + at) for at, name in enumerate(_GREEK) if name},
    **{f"text{name.capitalize()}": chr(0x391 + at) for at, name in enumerate(_GREEK) if name},
    ";": " ", ":": " ", "!": "", "/": "", "-": "", "@": "", "*": "", ">": " ", "|": "|",
}  # fmt: skip
"""Commands without an argument, and the text that they print."""

ACCENTS: Final[dict[str, str]] = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "d": "\u0323", "b": "\u0331", "r": "\u030a",
    "k": "\u0328", "t": "\u0361",
}  # fmt: skip

STYLES: Final[dict[str, str]] = {
    "textbf": "b", "emph": "em", "textit": "i", "textsl": "i", "texttt": "code", "underline": "u", "uline": "u",
    "textsuperscript": "sup", "textsubscript": "sub", "sout": "s", "st": "s", "textst": "s", "xout": "s",
    "cancel": "s", "bcancel": "s", "xcancel": "s", "code": "code", "hl": "mark",
}  # fmt: skip
"""Commands that change the look of their argument, with the HTML tag."""

HEADINGS: Final = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")

CITES: Final = frozenset(
    """cite citep citet citealp citealt citeauthor citeyear citeyearpar parencite textcite autocite footcite
    fullcite supercite Cite Citep Citet Parencite Textcite Autocite nocite""".split()
)
REFERENCES: Final = frozenset("ref eqref autoref cref Cref pageref nameref vref subref".split())

MATH: Final = frozenset(
    """equation align gather multline eqnarray displaymath math flalign alignat dmath IEEEeqnarray subequations
    split aligned""".split()
)
VERBATIM: Final = frozenset("verbatim Verbatim lstlisting minted alltt BVerbatim LVerbatim filecontents".split())
TABLES: Final = frozenset("tabular tabularx tabulary longtable xltabular supertabular tabu longtabu array".split())
QUOTES: Final = frozenset("quote quotation verse displayquote".split())
SKIPPED: Final = frozenset(
    "comment tikzpicture pgfpicture picture axis forest filecontents CCSXML thebibliography".split()
)
LISTS: Final = {"itemize": "ul", "enumerate": "ol", "compactitem": "ul", "compactenum": "ol", "inparaenum": "ol"}
FLOATS: Final = {
    "figure": "Figure", "wrapfigure": "Figure", "SCfigure": "Figure", "subfigure": "", "table": "Table",
    "wraptable": "Table", "sidewaystable": "Table", "sidewaysfigure": "Figure", "algorithm": "Algorithm",
    "listing": "Listing",
}  # fmt: skip
THEOREMS: Final = {"proof": "Proof", "theorem": "Theorem", "lemma": "Lemma", "definition": "Definition"}

DROPPED: Final[dict[str, int]] = {
    **dict.fromkeys(
        """textwidth linewidth columnwidth hfill vfill hfil frenchspacing selectfont allowdisplaybreaks hline toprule
        midrule bottomrule endhead endfirsthead centering raggedright noindent""".split(), 0
    ),
    **dict.fromkeys(
        """vspace hspace documentclass documentstyle usepackage RequirePackage bibliographystyle pagestyle thispagestyle
        color pagenumbering hypersetup geometry includeonly newcounter newlength graphicspath pdfbookmark hyphenation
        phantom hphantom vphantom usetikzlibrary lstset captionsetup theoremstyle selectlanguage
        linespread setstretch index glossary DeclareUnicodeCharacter markboth tikzset pgfplotsset sisetup
        setmainfont PassOptionsToPackage rowcolor cellcolor columncolor specialrule cline cmidrule""".split(), 1
    ),
    **dict.fromkeys(
        """setlength addtolength definecolor addcontentsline rule DeclareMathOperator
        settowidth numberwithin newtheoremstyle DeclarePairedDelimiter fontsize""".split(), 2
    ),
}  # fmt: skip
"""Layout commands that are dropped, with the number of arguments to drop. Options in brackets are dropped too."""


_DINGBATS: Final = {
    37: "☎", 42: "☛", 43: "☞", 72: "★", 108: "●", 110: "■", 115: "▲", 116: "▼", 117: "◆", 119: "◗",
    168: "♣", 169: "♦", 170: "♥", 171: "♠", 213: "→", 214: "↔", 215: "↕", 240: "",
    **{172 + at: sign for at, sign in enumerate("①②③④⑤⑥⑦⑧⑨⑩")},
}  # fmt: skip
"""Signs of the font Zapf Dingbats that are outside the block of that name in Unicode."""


def dingbat(code: int) -> str:
    """Return the sign of the font Zapf Dingbats at a code: ``dingbat(51)`` is ✓; '' where there is none."""
    if code in _DINGBATS:
        return _DINGBATS[code]
    if 33 <= code <= 126:
        return chr(0x2701 + (code - 33))
    return chr(0x2761 + (code - 161)) if 161 <= code <= 254 else ""


def add_accent(accent: str, letter: str) -> str:
    """Return a letter with an accent: ``add_accent('"', 'o')`` is ö."""
    base = {"ı": "i", "ȷ": "j"}.get(letter[:1], letter[:1])
    return unicodedata.normalize("NFC", base + ACCENTS[accent]) + letter[1:] if base else ""
