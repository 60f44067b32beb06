"""How texts are compared: whether answers, gold tables, gold elements and article bodies are in an output."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from prunus.core.text.words import UNSPACED
from prunus_evals.errors import MetricError
from prunus_evals.records import Question
from prunus_evals.visible import node_text, pieces, separator


def _rows(short: Sequence[str], long: Sequence[str]) -> list[int]:
    """Return the bit rows of Hyyrö's algorithm: the start row, then a row for each word of ``long``.

    A zero bit ``i`` in row ``j`` says that word ``i`` of ``short`` lengthens the common subsequence with the first
    ``j`` words of ``long``.
    """
    places: dict[str, int] = {}
    for index, word in enumerate(short):
        places[word] = places.get(word, 0) | 1 << index
    full = (1 << len(short)) - 1
    row = full
    rows = [row]
    for word in long:
        match = places.get(word)
        if match is not None:
            both = row & match
            row = ((row + both) | (row - both)) & full
        rows.append(row)
    return rows


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    return len(first) - _rows(first, second)[-1].bit_count()


def lcs_pick(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return one longest common subsequence."""
    rows = _rows(first, second)
    picked: list[str] = []
    at = len(first) - 1
    row = len(second)
    while at >= 0 and row > 0:
        bit = 1 << at
        if rows[row] & bit:
            at -= 1  # word `at` lengthens nothing here
        elif not rows[row - 1] & bit:
            row -= 1  # it already did before this word
        else:
            picked.append(first[at])
            at -= 1
            row -= 1
    picked.reverse()
    return picked


# as numbers, because many of these characters look alike in an editor
SINGLE = (0x2018, 0x2019, 0x201A, 0x201B, 0x2032, 0xB4, 0x60, 0x2BC, 0xFF07)
DOUBLE = (0x201C, 0x201D, 0x201E, 0x201F, 0x2033, 0xAB, 0xBB, 0xFF02)
QUOTES = dict.fromkeys(SINGLE, "'") | dict.fromkeys(DOUBLE, '"')
DASHES = dict.fromkeys([*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63, 0xFF0D], "-")
# invisible: soft hyphens, zero-width characters, direction marks
NOTHING = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF], "")
TABLE = QUOTES | DASHES | NOTHING
WORD = re.compile(r"\w+")
ARTICLE = re.compile(r"\b(?:a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
_UNSPACED = re.compile(f"[{UNSPACED}]")


def normalise(text: str) -> str:
    """Return a text in the form in which answers and outputs are compared."""
    # The table comes first, because NFKC would split an acute accent into a space and a mark.
    text = unicodedata.normalize("NFKC", text.translate(TABLE)).translate(TABLE)
    return " ".join(text.casefold().split())


def words(text: str) -> list[str]:
    """Return the normalised words of a text."""
    return WORD.findall(normalise(text))


def occurs(answer: str, text: str) -> bool:
    """Return whether an answer occurs in a text at word boundaries; both must be normalised.

    A number does not occur inside a larger number: 12 is neither in 1,012 nor in 12.5.

    :raises MetricError: the answer is empty.
    """
    if not answer:
        raise MetricError("an empty answer cannot be looked for")
    pattern = re.escape(answer)
    if re.match(r"\w", answer[0]):
        pattern = r"(?<!\w)" + pattern
    if answer[0].isdigit():
        pattern = r"(?<!\d[.,:])" + pattern
    if re.match(r"\w", answer[-1]):
        pattern += r"(?!\w)"
    if answer[-1].isdigit():
        pattern += r"(?![.,:]\d)"
    return re.search(pattern, text) is not None


def any_spelling_occurs(spellings: Sequence[str], text: str) -> bool:
    """Return whether one of the spellings of an answer occurs in a normalised text."""
    return any(occurs(normalise(spelling), text) for spelling in spellings)


def squad_normalise(text: str) -> str:
    """Return a text as SQuAD's script compares it: in lower case, without ASCII punctuation and English articles.

    The scripts of ASQA, QASPER and HtmlRAG do the same.
    """
    return " ".join(ARTICLE.sub(" ", text.lower().translate(PUNCTUATION)).split())


def spaced(text: str) -> str:
    """Return a text with spaces around each Han or kana letter, so that each is a word."""
    return _UNSPACED.sub(r" \g<0> ", text)


def contains(text: str, spellings: Sequence[str]) -> bool:
    """Return whether a text contains one of the spellings of an answer, both normalised as by SQuAD.

    As in HtmlRAG's script, no word boundary is needed: 12 is in 1912. A spelling of which nothing is left (The The) is
    looked for as it stands, at word boundaries; the script would find it in every text.

    :raises MetricError: there is no spelling, or one is empty.
    """
    if not spellings:
        raise MetricError("an answer without a spelling cannot be looked for")
    plain = squad_normalise(text)
    for spelling in spellings:
        wanted = squad_normalise(spelling)
        if wanted in plain if wanted else occurs(normalise(spelling), normalise(text)):
            return True
    return False


def holds(quote: str, spellings: Sequence[str]) -> bool:
    """Return whether one of the spellings stands in a quote; one with Han or kana letters needs no word boundaries."""
    text = normalise(quote)
    for spelling in map(normalise, spellings):
        if spelling in text if _UNSPACED.search(spelling) else occurs(spelling, text):
            return True
    return False


def references_of(question: Question) -> list[str]:
    """Return what an answer is compared with: the references, or the short answers where there are none."""
    if question.references:
        return [*question.references]
    return [spelling for answer in question.answers for spelling in question.spellings(answer)]


def answers_survive(answers: Sequence[str], visible: str) -> bool:
    """Return whether every gold answer occurs in the visible text of an output.

    :raises MetricError: there are no answers.
    """
    if not answers:
        raise MetricError("a question without answers cannot be scored")
    text = normalise(visible)
    return all(occurs(normalise(answer), text) for answer in answers)


@dataclass(frozen=True, slots=True)
class GoldTable:
    """The rows of a gold table as lines of words.

    :param rows: each row twice, without and with its hidden words (sort keys): a system that writes hidden text has
        kept the row, too.
    :param weights: the number of visible words of each row.
    """

    rows: tuple[tuple[str, str], ...]
    weights: tuple[int, ...]


def _segments(root: Any) -> list[tuple[list[str], list[str]]]:
    """Cut a table at its rows; return the visible words and all words of every piece."""
    rows: list[tuple[list[str], list[str]]] = [([], [])]
    for kind, value, hidden in pieces(root):
        if kind != "text" and value == "tr":
            rows.append(([], []))
        part = value if kind == "text" else separator(value)
        rows[-1][1].append(part)
        if not hidden:
            rows[-1][0].append(part)
    return [(words("".join(visible)), words("".join(every))) for visible, every in rows]


def gold_table(html: str) -> GoldTable:
    """Read the HTML of a gold table.

    :raises MetricError: it is not a table, or has no visible words.
    """
    root = LexborHTMLParser(html).css_first("table")
    if root is None:
        raise MetricError("the gold table is not a table")
    kept = [(visible, every) for visible, every in _segments(root) if visible]
    if not kept:
        raise MetricError("the gold table has no visible words")
    rows = tuple((_line(visible), _line(every)) for visible, every in kept)
    return GoldTable(rows, tuple(len(visible) for visible, _ in kept))


def _line(sequence: Sequence[str]) -> str:
    return " " + " ".join(sequence) + " "


def table_survives(table: GoldTable, visible: str) -> tuple[bool, float]:
    """Return whether the whole gold table survived, and the share of its words that survived.

    A row survives when its words are next to each other in the output; the table is whole when all rows survive in
    their order. The share counts the words of the rows that survive.
    """
    text = _line(words(visible))
    kept = sum(
        weight for row, weight in zip(table.rows, table.weights, strict=True) if any(form in text for form in row)
    )
    share = kept / sum(table.weights)
    if kept < sum(table.weights):
        return False, share
    position = 0
    for row in table.rows:
        ends = [at + len(form) for form in row if (at := text.find(form, position)) >= 0]
        if not ends:
            return False, share
        position = min(ends) - 1
    return True, share


def element_text(html: str, attribute: str, value: str) -> str:
    """Return the visible text of the element with an attribute of this value.

    :raises MetricError: there is no such element.
    """
    for node in LexborHTMLParser(html).css(f"[{attribute}]"):
        if node.attributes.get(attribute) == value:
            return node_text(node)
    raise MetricError(f"no element has {attribute}={value}")


def body_survives(body: str, visible_text: str, output_text: str) -> tuple[int, int]:
    """Return how many words of an article survived in order, and how many could survive.

    The words that could survive are those that a trusted parser sees: the longest common subsequence of the marked
    article and the page's visible text.

    :raises MetricError: the parser sees no word of the article.
    """
    could = lcs_pick(words(body), words(visible_text))
    if not could:
        raise MetricError("the parser sees no word of the article")
    return lcs_length(could, words(output_text)), len(could)
