"""What the canonical text says in place of a text node, where the words alone would say something else.

Without its tag ``10<sup>9</sup>`` reads 109, ``5,000<sup>1</sup>`` with a note reads 5,0001, and a struck price stands
beside the price. So superscripts and subscripts become letters of that kind or get a sign before them, marks of notes
are left out, struck words stand between ``~~``, those of ``<q>`` between the quotation marks that browsers draw, and
the reading of a ruby in brackets.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final, TypeAlias

from .clean import rules
from .node_arrays import NodeArrays

Forms: TypeAlias = dict[int, tuple[str, int]]
"""Text node -> (its form in the canonical text, letters of it that were put before the node's own words)."""

_STRUCK: Final = frozenset({"s", "del", "strike"})
_FORMED: Final = _STRUCK | {"sup", "sub", "q", "a", "rt"}

_RAISED: Final = str.maketrans("0123456789+-\u2212()=ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾⁼ⁿⁱ")
_LOWERED: Final = str.maketrans("0123456789+-\u2212()=", "₀₁₂₃₄₅₆₇₈₉₊₋₋₍₎₌")
_SIGNED: Final = re.compile(r"[-+\u2212()=\s\d]+")
_SIGN: Final = re.compile(r"[\d+\u2212-]")
_LIST: Final = re.compile(r"\d+(?:\s*[,;\u2013]\s*\d+)+")
_NOTE: Final = re.compile(r"\[?(?:[^\W\d_]{0,5}\s?\d{1,4}|[^\W\d_]{1,2}|[*†‡§¶#]{1,3})\]?")
_ENDINGS: Final = frozenset(
    "st nd rd th e er re ère ère me mes lle lles ème nde a o os as r ra s t tm sm mc ie ies gr ter le la".split()
)
"""Endings of ordinals and abbreviations that are written raised; they read right beside the word before them."""
_LONGEST: Final = 16
"""Letters of an exponent or index at most; longer text is raised for its look."""
_POWER: Final = 3
"""Letters of an exponent that is a word; longer ones are endings."""
_PARTS: Final = 8
"""Text nodes of a superscript at most; more are raised for their look."""
_OPERATOR: Final = re.compile(r"[-+\u2212=*/×·<>]")
_WORD: Final = re.compile(r"[^\W\d_]{4}")
_NUMBER: Final = re.compile(r"(?:^|[^\w.,])\d+(?:[.,]\d+)*$")
_LETTER: Final = re.compile(r"(?:^|[^\w'’])[a-zα-ω]$")
_NEAR: Final = 16
"""Elements around a ``<q>`` among which others are counted."""
_QUOTES: Final = frozenset("\"'“”„‟«»‹›‘’‚「『《")


def script_letters(words: str, tag: str) -> str:
    """Return a number or sign in letters of a superscript or subscript (``sup``, ``sub``); other words as they are."""
    if not (_SIGNED.fullmatch(words) and _SIGN.search(words)):
        return words
    return words.translate(_RAISED if tag == "sup" else _LOWERED)


def text_forms(tree: NodeArrays) -> Forms:
    """Return the forms of the text nodes of a document whose canonical text is not their own text."""
    if _FORMED.isdisjoint(tree.tag):
        return {}
    return _FormMaker(tree).forms()


def draws_quotes(words: str) -> bool:
    """Tell whether the words of a ``<q>`` get quotation marks: they bring none themselves."""
    return words.lstrip()[:1] not in _QUOTES


def quote_marks(tree: NodeArrays, node: int) -> tuple[str, str]:
    """Return the marks of a ``<q>``: double ones, single ones in another ``<q>``, and so on."""
    depth, above = 0, tree.parent[node]
    for _ in range(_NEAR):
        if tree.tag[above] not in rules.INLINE:
            break
        depth += tree.tag[above] == "q"
        above = tree.parent[above]
    return ("‘", "’") if depth % 2 else ("“", "”")


def has_no_brackets(tree: NodeArrays, reading: int) -> bool:
    """Tell whether the page writes no ``<rp>`` beside a reading, the ``<rt>`` of a ruby: it is no part of the word."""
    end = tree.end[reading]
    after = end < len(tree.tag) and tree.tag[end] == "rp"
    return not after and not tree.text[reading + 1].startswith(("(", "（", "[")) if end > reading + 1 else False


class _FormMaker:
    """Collects what stands before, in place of, and behind text nodes."""

    def __init__(self, tree: NodeArrays) -> None:
        self.tree = tree
        self.shown = [node for node, text in enumerate(tree.text) if text]
        self.before: dict[int, str] = {}
        self.own: dict[int, str] = {}
        self.behind: dict[int, str] = {}
        self.scripted = 0
        """The end of the last superscript or subscript that holds another one."""

    def forms(self) -> Forms:
        """Return the forms of all text nodes that have one."""
        tree, struck = self.tree, 0
        for node, tag in enumerate(tree.tag):
            if tag not in _FORMED or (tag == "a" and "role" not in (tree.attrs[node] or ())):
                continue
            low, high = self._texts(node)
            if low == high or (tag not in ("sup", "sub") and self._is_raw(node)):
                continue
            if tag in ("sup", "sub", "a"):
                if high - low <= _PARTS:
                    self._script(node, tag, self.shown[low:high])
            elif tag == "rt":
                if has_no_brackets(tree, node):
                    self._wrap(self.shown[low], "(", ")", self.shown[high - 1])
            elif tag == "q":
                if draws_quotes(tree.text[self.shown[low]]):
                    opening, closing = quote_marks(tree, node)
                    self._wrap(self.shown[low], opening, closing, self.shown[high - 1])
            elif node >= struck:
                self._wrap(self.shown[low], "~~", "~~", self.shown[high - 1])
                struck = tree.end[node]
        return {node: self._form(node) for node in {*self.before, *self.own, *self.behind}}

    def _form(self, node: int) -> tuple[str, int]:
        """Return the form of a text node; spaces at its ends stay outside of the marks."""
        text = self.own.get(node, self.tree.text[node])
        words = text.strip()
        if not words:
            return text, 0
        before, first = self.before.get(node, ""), text.index(words)
        whole = f"{text[:first]}{before}{words}{self.behind.get(node, '')}{text[first + len(words) :]}"
        return whole, len(before)

    def _texts(self, node: int) -> tuple[int, int]:
        """Return the range in ``shown`` of the text nodes with words in a subtree."""
        low, high = bisect_left(self.shown, node), bisect_left(self.shown, self.tree.end[node])
        while low < high and self.tree.text[self.shown[low]].isspace():
            low += 1
        while high > low and self.tree.text[self.shown[high - 1]].isspace():
            high -= 1
        return low, high

    def _is_raw(self, node: int) -> bool:
        """Tell whether a node is preformatted."""
        tree = self.tree
        while node > 0 and (tree.tag[node] in rules.INLINE or not tree.tag[node]):
            node = tree.parent[node]
        return tree.tag[node] in rules.PREFORMATTED

    def _wrap(self, first: int, opening: str, closing: str, last: int) -> None:
        """Put marks around the texts from one node to another."""
        self.before[first] = self.before.get(first, "") + opening
        self.behind[last] = closing + self.behind.get(last, "")

    def _script(self, node: int, tag: str, texts: list[int]) -> None:
        """Give a superscript or subscript its form, or leave out the mark of a note."""
        tree = self.tree
        body = "".join(tree.text[inner] for inner in texts).strip()
        if tag == "a" or (tag == "sup" and self._is_note(node, body)):
            self.own.update(dict.fromkeys(texts, ""))
            return
        before = self._words_before(node, texts[0])
        if node < self.scripted or any(tree.tag[inner] in ("sup", "sub") for inner in range(node + 1, tree.end[node])):
            # one inside another, as in 2^(2^8): raised twice, both would read as one number
            self.scripted = max(self.scripted, tree.end[node])
            sign = "^" if tag == "sup" else "_"
            self._wrap(texts[0], f"{sign}(" if len(body) > 1 else sign, ")" if len(body) > 1 else "", texts[-1])
            return
        table, opening, closing = _script_form(tag, body, before)
        if table is not None:
            for inner in texts:
                self.own[inner] = tree.text[inner].translate(table)
        elif opening:
            self._wrap(texts[0], opening, closing, texts[-1])

    def _is_note(self, node: int, body: str) -> bool:
        """Tell whether a superscript is the mark of a note: a short link into a page, and no part of a longer one."""
        tree, above = self.tree, self.tree.parent[node]
        if not _NOTE.fullmatch(body):
            return False
        links = [inner for inner in range(node + 1, tree.end[node]) if tree.tag[inner] == "a"]
        low, high = self._texts(above)
        if tree.tag[above] == "a" and "".join(tree.text[inner] for inner in self.shown[low:high]).strip() == body:
            links.append(above)
        return any("#" in (tree.attrs[link] or {}).get("href", "") for link in links)

    def _words_before(self, node: int, first: int) -> str:
        """Return the end of the text that stands before an element on the same line; '' where there is none."""
        tree = self.tree
        position = bisect_left(self.shown, first) - 1
        if position < 0:
            return ""
        before = self.shown[position]
        block = self._block(node)
        apart = before < block or tree.text[first][0].isspace() or self._block(before) != block
        apart = apart or "br" in tree.tag[before:first]
        return "" if apart else tree.text[before][-_LONGEST:]

    def _block(self, node: int) -> int:
        tree = self.tree
        node = tree.parent[node]
        while node > 0 and tree.tag[node] in rules.INLINE:
            node = tree.parent[node]
        return node


def _script_form(tag: str, body: str, before: str) -> tuple[dict[int, int] | None, str, str]:
    """Return how a superscript or subscript is written after some words.

    :returns: a table that translates its letters, or None; and what stands before and behind it.
    """
    plain = (None, "", "")
    if len(body) > _LONGEST:
        return plain
    base = before[-1:]
    attached = base.isalnum() or base in tuple(")]}′'")
    signed = _SIGNED.fullmatch(body) and _SIGN.search(body)
    if signed or (tag == "sup" and (_LIST.fullmatch(body) or (body in ("n", "i") and attached))):
        return (_RAISED if tag == "sup" else _LOWERED), "", ""
    if not attached or not any(map(str.isalnum, body)) or body[0] in ".,([":  # these part it from the number before
        return plain
    sign = "^" if tag == "sup" else "_"
    if tag == "sub" and body.isalnum():
        return plain
    if not body.isalpha():
        whole = body.replace(".", "").replace(",", "").isalnum()
        if "[" in body or _WORD.search(body) or (" " in body and not _OPERATOR.search(body)):
            return plain
        return (None, sign, "") if whole else (None, f"{sign}(", ")")
    if body.lower() in _ENDINGS:
        # a letter to the power of t, and no abbreviation: "e^t", but "St"
        power = len(body) == 1 and body in "rst" and _LETTER.search(before)
        return (None, sign, "") if power else plain
    power = len(body) == 1 and _NUMBER.search(before)  # 2^k, and no licence plate
    return (None, sign, "") if power or (len(body) <= _POWER and _LETTER.search(before)) else plain
