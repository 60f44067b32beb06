"""Cut text into sentences by rules, in the manner of Internet-SAG §4.1. Lossless, and linear in the text.

A stop (``.``, ``!``, ``?`` and the stops of other scripts) ends a sentence, except in a decimal, an abbreviation, an
initial, an address, an ellipsis, and in a quotation or bracket that is still open. Items of a list inside a line are
segments too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .abbreviations import (
    ABBREVIATIONS,
    BEFORE_NOUNS,
    LABELLED,
    MONTHS,
    NAMES,
    NUMBERED,
    SHOUTED,
    STARTERS,
    STARTERS_ELSEWHERE,
    TITLES,
    ZONES,
)
from .numbers import bounded_int, in_ascii

_WIDE: Final = frozenset("\u3002\uff0e\uff01\uff1f\uff61\u0964\u0965\u1362\u1367\u1368\u104a\u104b")
"""Stops that need no space after them."""

_STOPS: Final = ".!?\u2026\u061f\u06d4\u0589\u203c\u2047\u2048\u2049" + "".join(sorted(_WIDE))
_CLOSERS: Final = "\"'\u2019\u201d\u201c\u00bb\u203a)]}\u300d\u300f\uff09\u3011\u300b*"
_PAIRS: Final = {
    "``": "''",
    "(": ")", "[": "]", "{": "}", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb", "\u201e": "\u201c\u201d",
    "\u300c": "\u300d", "\u300e": "\u300f", "\uff08": "\uff09", "\u3010": "\u3011", "\u300a": "\u300b",
}  # fmt: skip
_LONGEST: Final = 1_500
"""Code points of a quotation or bracket that is kept whole; a longer one is cut like other text."""

_MARK: Final = re.compile(
    r"``|''(?!')|[()\[\]{}\u201c\u201d\u2018\u2019\u00ab\u00bb\u201e\u300c-\u300f\uff08\uff09\u3010\u3011\u300a\u300b\"'\n]"
)
_BULLETS: Final = "\u2022\u2023\u2043\u25aa\u25cf\u25e6\u2219"
_CANDIDATE: Final = re.compile(
    rf"[{_STOPS}\n\r:;\u2014{_BULLETS}-](?:"  # one set of letters first: cheap to search for
    rf"(?<=\.)(?:[ \u00a0]\.){{2,}}|(?<=[{_STOPS}])[{_STOPS}]*(?:[{re.escape(_CLOSERS)}]|\[\d{{1,4}}\])*"
    rf"|(?<=[\n\r])\s*|(?<=[\u0561-\u0587]:)(?=\s|$)|(?<=[\u03ac-\u03ce];)(?=\s|$)"
    rf"|(?<=[-\u2014])[\"\u201d](?=\s[A-Z])|(?<=\s[{_BULLETS}])(?=\s?\S))"
)
_ITEM_END: Final = re.compile(r"[.)](?=\s)")
_ITEM: Final = re.compile(r"(?:\s|\A)(\(?(?:(\d{1,3})\.?|([a-z])|(i{1,3}|iv|vi{0,3}|ix|x)))\Z")
_ROMANS: Final = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_LAST_WORD: Final = re.compile(rf"[^\s(\[\"'\u201c\u2018/{_BULLETS}-]*$")
_NEXT_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][a-z]+)?")
_ORDINAL: Final = re.compile(
    r"(?:\b[Dd](?:er|ie|as|en|em|es)|(?<!\bI )\b[Aa]m|\b[Ii]m|\b[Zz]u[mr]|\b[Vv]om|\b[Bb]eim|\b[Ee]ine?[mnrs]?"
    r"|\d\. (?:und|oder|bis)) \Z"
)
"""Before a German ordinal: ``im 4. Quartal``, ``die 1. und 2. Klasse``."""

_ACRONYM: Final = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_PLAIN: Final = re.compile(r"(?:[^\W\d_]{2,}|\d[\d,]*)")
_ROMAN: Final = re.compile(r"[IVXLC]+\b")
_HEADING: Final = re.compile(r"(?=\S)(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})|\d{1,3}(?:\.\d{1,3})*|[A-Z](?:\.\d{1,3})*")
"""Number of a heading or an item: ``II. Methods``, ``3.2. Results``, ``Q. Who?``"""

_TIME_ONLY: Final = re.compile(
    r"\W*(?:(?:and|but|then|so|at|by|around|about|before|after|until|since|from|between|on|just|exactly|only|nearly|"
    r"almost|it|was|is)\s+)*\d{1,2}(?:[:.]\d\d)?\s*[ap]\.m",
    re.IGNORECASE,
)
"""A sentence that is no more than a time of day so far: ``At 5 a.m.``"""

_WORD_END: Final = re.compile(r"(?:[^\W\d_]{3}|[\w.]\))\Z")
_NOTE: Final = re.compile(
    r"(?:\d{1,3}(?:[,\u2013-]\d{1,3}){0,20}(?: \d{1,3}){0,20}|\(\d{1,3}\))(?=\s{1,20}[\"\u201c(]?[A-Z])"
)
"""Footnote numbers after a stop: ``in a talk.11 12 Take``."""

_HAN: Final = re.compile(
    r"[\u201c\u300a\u300c\u300e\u3010\uff08]?[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""A Han letter or kana, behind an opening mark or not."""

_ADDRESS: Final = re.compile(r"(?://|www\.)\S*\Z")

_FULL_LINE: Final = 40
"""Code points of a line that may continue a sentence though it begins with a capital letter."""

_LOOK: Final = 48
"""Code points read on each side of a stop; the bound keeps the cut linear."""


def _enclosed(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of the outermost quotations and brackets that open and close in one line."""
    result: list[tuple[int, int]] = []
    open_: list[tuple[str, int]] = []
    for match in _MARK.finditer(text):
        mark, at = match.group(), match.start()
        if mark == "\n":
            open_.clear()
            continue
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        if len(mark) == 2:
            opens, closes, wanted = mark == "``", mark == "''", mark
        elif mark in "\"'":
            closes = _closes_straight(mark, before, after, open_)
            opens = not closes and (not before or not before.isalnum()) and bool(after) and not after.isspace()
            wanted = mark
        else:
            opens, closes, wanted = mark in _PAIRS, mark not in _PAIRS, mark
            if mark == "\u2019" and after.isalnum():
                continue  # an apostrophe
            if mark == "\u201c" and any(_PAIRS.get(opening, opening) == "\u201c\u201d" for opening, _ in open_[-8:]):
                opens, closes = False, True  # German quotations close with it
        if closes:
            _close(wanted, at, open_, result)
        elif opens:
            open_.append((mark, at))
    return result


def _closes_straight(mark: str, before: str, after: str, open_: list[tuple[str, int]]) -> bool:
    """Tell whether a straight quotation mark closes an open quotation."""
    if not any(opening == mark for opening, _ in open_[-8:]) or not before or before.isspace():
        return False
    if mark == '"':
        return True
    return not after.isalnum() and before in ".,!?;:\u2026-"


def _close(mark: str, at: int, open_: list[tuple[str, int]], found: list[tuple[int, int]]) -> None:
    """Close the nearest opening that matches a mark, and forget the openings after it."""
    for depth in range(len(open_) - 1, max(-1, len(open_) - 9), -1):  # eight at most: linear in hostile text
        opening, start = open_[depth]
        if mark in _PAIRS.get(opening, opening):
            del open_[depth:]
            if at + len(mark) - start <= _LONGEST:
                while found and found[-1][0] > start:
                    found.pop()
                found.append((start, at + len(mark)))
            return


def _items(text: str) -> dict[int, int]:
    """Map the begin of each list item inside a line to the end of its mark: ``1.`` … ``2.`` …

    A list begins with 1, a or i at the head of a line or after a stop, and its items count up.
    """
    items: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []
    needed = 0  # further items that must follow before the first item counts as one
    expected: str | int = ""
    before: str | int = ""
    for stop in _ITEM_END.finditer(text):
        at = stop.start()
        match = _ITEM.search(text[max(0, at - 8) : at])
        if not match or (at > 8 and match.start(1) == 0):
            continue
        number = bounded_int(match[2] and in_ascii(match[2]), match[3] or match[4], most=999)
        begin, end = at - len(match.group(1)), stop.end()
        if number == expected or (before and number == before):  # or: the new list was none, the old one goes on
            waiting, before = [*(waiting if number == expected else []), (begin, end)], ""
            needed = max(0, needed - 1)
        elif number in (1, "a", "i") and (heads := _can_begin(text, begin) or _begins_inside(text, end)):
            waiting, before = [(begin, end)], expected if items else ""
            needed = 1 if heads is True or items else 2
        else:
            continue
        if not needed:
            items.update(waiting)
            waiting = []
        expected = _next_mark(number)
    return items


def _begins_inside(text: str, end: int) -> int:
    """Return 1 where a list may begin inside a sentence because a capital letter follows its mark, else 0."""
    return int(text[end : end + 3].lstrip(")").lstrip()[:1].isupper())


def _next_mark(mark: str | int) -> str | int:
    """Return the mark of the next item: ``2``, ``b``, ``ii``. An ``i`` counts as a Roman number."""
    if isinstance(mark, int):
        return mark + 1
    if mark in _ROMANS:
        return _ROMANS[min(_ROMANS.index(mark) + 1, len(_ROMANS) - 1)]
    return chr(ord(mark) + 1)


def _can_begin(text: str, at: int) -> bool:
    """Tell whether a sentence, a line or a list can begin at a position."""
    before = text[max(0, at - _LOOK) : at].rstrip(" \t\u00a0")
    return not before or before[-1] in _STOPS + ":;\n" + _CLOSERS + _BULLETS + ")"


def sentence_spans(text: str, *, wrapped: bool = False) -> list[tuple[int, int]]:
    """Return the (start, end) of each sentence of ``text``; the spans touch and cover all of it.

    White space after a sentence belongs to that sentence, and white space at the start to the first. Linear in the
    text.

    :param wrapped: a sentence may continue on the next line, as in mail and in printed text. Otherwise every line
        break ends a segment, as in a page's canonical text, where line breaks separate blocks.
    """
    spans: list[tuple[int, int]] = []
    begin = 0
    for cut in (*_cuts(text, wrapped), len(text)):
        if cut > begin and text[begin:cut].strip():
            spans.append((begin, cut))
            begin = cut
        elif cut > begin and spans:
            spans[-1] = (spans[-1][0], cut)
            begin = cut
    return spans or ([(0, len(text))] if text else [])


def _cuts(text: str, wrapped: bool) -> Iterator[int]:
    """Yield the offsets where the text is cut; an offset may repeat, or come after a greater one."""
    region, following, latest = 0, 0, 0
    enclosed, items = _enclosed(text), _items(text)
    starts = [at for at in sorted(items) if text[max(0, at - 4) : at].rstrip()[-1:] not in tuple(_BULLETS)]
    # an item's mark ends with a stop, or with a stop and a bracket, as "1.)"
    marks = {end - 1 for end in items.values()} | {end - 2 for end in items.values()}
    for match in _CANDIDATE.finditer(text):
        start, end = match.span()
        while following < len(starts) and starts[following] <= start:
            latest = starts[following]
            yield latest
            following += 1
        if start in marks:  # the stop of an item's number, as "1."
            continue
        while region < len(enclosed) and enclosed[region][1] <= start:
            region += 1
        for opening, _ in enclosed[region : region + 2]:
            if (
                start < opening < end and text[opening] != "["
            ):  # a quotation opens right behind the stop: 他来了。“你好。”
                end = opening
        inside = region < len(enclosed) and enclosed[region][0] < start and end < enclosed[region][1]
        if text[start] in "\n\r":
            if wrapped and _continues(text, start, end):
                continue
            latest = end
        elif text[start] in _BULLETS:
            latest = start
        elif not inside and _ends_sentence(text, start, end, latest):
            latest = _after_space(text, end)
        elif not inside and (note := _note_end(text, start, end)):
            latest = _after_space(text, note)
        else:
            continue
        yield latest
    yield from starts[following:]


def _note_end(text: str, start: int, end: int) -> int:
    """Return the end of the footnote numbers after a full stop; 0 where there are none."""
    match = (
        _NOTE.match(text, end)
        if text[start:end].rstrip(_CLOSERS) == "." and _WORD_END.search(text, max(0, start - 3), start)
        else None
    )
    return match.end() if match else 0


def _after_space(text: str, at: int) -> int:
    """Return the end of the white space after a sentence."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _continues(text: str, start: int, end: int) -> bool:
    """Tell whether a sentence continues after a line break."""
    if text.count("\n", start, end) > 1 or end >= len(text) or start == 0:
        return False
    line = text.find("\n", end, end + 400)
    ahead = text[end : line if line >= 0 else end + 400]
    before = text[max(0, start - 3) : start]
    if len(ahead.strip()) <= 2 and ahead.strip().isupper() and before.strip(" \t")[-2:].isupper():
        return bool(re.fullmatch(r"\s*[A-Z]{1,2}\s*", text[max(0, text.rfind("\n", max(0, start - 8), start)) : start]))
    if before.rstrip().endswith(".") and _LAST_WORD.search(text, max(0, start - _LOOK), start):
        title = _LAST_WORD.search(text[max(0, start - _LOOK) : start].rstrip()[:-1])
        if title and title.group().lower() in TITLES:  # "Dr." at the end of a line
            return True
    if before.rstrip()[-1:] in (*_STOPS, ":", "") or not ahead:
        return False
    if ahead[0] in ".!?" and not ahead.strip(".!? "):
        return True
    if before[-1:] in " \t":  # text extracted from print keeps the space between two words
        return ahead[0].islower() or ahead[0] == "(" or (ahead[0].isalpha() and len(ahead) >= _FULL_LINE)
    if "\u3041" <= before[-1:] <= "\u30ff":
        return "\u3002" in ahead
    return ahead[0].islower() and any(stop in ahead for stop in ".!?")


def _ends_sentence(text: str, start: int, end: int, begin: int) -> bool:
    """Tell whether the stop ``text[start:end]`` ends a sentence that began at ``begin``, looking at both sides."""
    mark = text[start]
    stops = text[start:end].rstrip(_CLOSERS + "0123456789[")
    closed = end - start > len(stops)
    if end >= len(text):
        return True
    ahead = text[end : end + _LOOK]
    if mark in _WIDE:
        if mark == "\uff0e" and text[start - 1 : start].isdigit() and ahead[0].isdigit():
            return False
        return not (closed and "\u3041" <= ahead[0] <= "\u309f")  # 「…。」と continues the sentence
    if mark in ":;-\u2014":
        return True
    if not ahead[0].isspace():
        return _ends_without_space(text, start, end, ahead)
    following = ahead.lstrip()[:1]
    if stops.startswith((". ", ".\u00a0")):  # ". . ." continues the sentence, ". . . ." ends it
        return stops.count(".") >= 4 and following.isupper()
    if (
        following.islower()
        or (following in "-\u2013\u2014" and mark != "." and not _begins_turn(ahead))
        or following in ",;"
    ):
        return False
    if following == "(" and closed and (text[end - 1] == "'" or stops.startswith("...")):
        return False
    if mark == "." and len(stops) == 1:
        return _ends_word(text, start, ahead.lstrip(), begin)
    if mark == "!" and len(stops) == 1 and not closed:
        return not _continues_with_name(text, start, ahead.lstrip())
    return True


def _continues_with_name(text: str, start: int, ahead: str) -> bool:
    """Tell whether an exclamation mark is part of a name: ``Yahoo! Inc.``"""
    name = _LAST_WORD.search(text, max(0, start - _LOOK), start)
    word = _NEXT_WORD.match(ahead)
    return bool(name and name.group().lower() in SHOUTED and word and word.group().lower() not in STARTERS)


def _begins_turn(ahead: str) -> bool:
    """Tell whether a dash begins the next turn of a dialogue or the next item: ``- Yes.``"""
    return ahead.lstrip().lstrip("-\u2013\u2014 ")[:1].isupper()


def _ends_without_space(text: str, start: int, end: int, ahead: str) -> bool:
    """Tell whether a stop without a space after it ends a sentence: yes in ``the end.Then``, no in ``example.com``."""
    mark = text[start]
    if mark in ".!?" and _HAN.match(ahead):
        return _ends_before_han(text, start, end)
    # stops of scripts that use no space after them, but not typographic signs such as an ellipsis
    if ord(mark) > 0x2FF and mark != "\u2026" and not "\u2000" < mark < "\u2100":
        return True
    if end - start != 1 or mark == "\u2026":
        return False
    last_match = _LAST_WORD.search(text, max(0, start - _LOOK), start)
    last = last_match.group() if last_match else ""
    word = _NEXT_WORD.match(ahead)
    if not word or not word.group()[0].isupper() or not _PLAIN.fullmatch(last):
        return False
    behind = ahead[word.end() : word.end() + 1]
    # "Smith.Jones" may be a name: only a word that begins sentences or a title tells
    if last[0].isupper() or behind == ".":
        return word.group().lower() in STARTERS or (behind == "." and word.group().lower() in TITLES | NAMES)
    return bool(behind) and behind in " ,'\u2019"


def _ends_before_han(text: str, start: int, end: int) -> bool:
    """Tell whether a half-width stop right before a Han letter or kana ends a sentence: ``好用!续航12个月?是的。``

    A full stop does so only after such a letter: ``2.打开`` is an item, ``v3.版本`` a name.
    """
    if text[start] == ".":
        return end - start == 1 and bool(_HAN.match(text, start - 1)) if start else False
    if end - start > 1 and text[end - 1] in _CLOSERS and "\u3041" <= text[end] <= "\u309f":
        return False  # as in _ends_sentence: a quotation goes on with a particle
    before = text[max(0, start - _LOOK) : start]
    name = _LAST_WORD.search(before)
    return not _ADDRESS.search(before) and not (name and name.group().lower() in SHOUTED)


def _ends_word(text: str, start: int, ahead: str, begin: int) -> bool:
    """Tell whether a full stop after a word ends the sentence, by the words on both sides."""
    last_match = _LAST_WORD.search(text, max(begin, start - _LOOK), start)
    raw = last_match.group() if last_match else ""
    last = raw.lower()
    following = ahead[:1]
    word = _NEXT_WORD.match(ahead)
    after = word.group().replace("\u2019", "'") if word else ""
    if last in TITLES:
        return False
    if last in ("a.m", "p.m"):
        return _ends_time(text[begin:start], after, following)
    if last in NAMES and raw[0].isupper() and not following.isdigit():
        return after.lower() in STARTERS
    numbered = following.isdigit() or (following in "(\u00a7#" and last != "no") or bool(_ROMAN.match(ahead))
    if last in NUMBERED and (numbered or last in ("p", "pp")):
        return after == "I" and last not in ("p", "pp")
    heads = not text[begin : start - len(raw)].strip(" \t\n#*" + _BULLETS)
    if raw and heads and following.isupper() and (_HEADING.fullmatch(raw) or raw in ("P.S", "N.B")):
        return False  # number of the segment: "II. Methods", "Q. Who?"
    if raw.isdigit() and len(raw) <= 3:
        # "1." at the head of a segment numbers it; "13. Februar" is a date, "im 2. Weltkrieg" an ordinal
        if heads or after.lower() in MONTHS:
            return False
        is_ordinal = _ORDINAL.search(text[max(begin, start - _LOOK) : start - len(raw)]) and following.isupper()
        return not is_ordinal or after.lower() in STARTERS_ELSEWHERE
    if last in BEFORE_NOUNS:
        begins = after.lower() in STARTERS or after.lower() in STARTERS_ELSEWHERE
        return begins if following.isupper() else following in '"\u201c'
    if last in ABBREVIATIONS and not _ACRONYM.fullmatch(raw):
        more = after.lower() in ABBREVIATIONS | NAMES and ahead[len(after) : len(after) + 1] == "."  # "Co. Ltd."
        return (following.isupper() and not more) or following in '"\u201c'
    if _ACRONYM.fullmatch(raw) or (len(raw) == 1 and raw.isalpha()):
        return _ends_initial(text, start - len(raw), raw, after, following)
    return True


def _ends_time(sentence: str, after: str, following: str) -> bool:
    """Tell whether a sentence ends after a time of day: ``at 5 p.m.``"""
    if not following.isupper() or after.lower() in ZONES:
        return False
    return not _TIME_ONLY.fullmatch(sentence) or bool(sentence[-3:].isupper())


def _ends_initial(text: str, at: int, raw: str, after: str, following: str) -> bool:
    """Tell whether the initial or acronym at a position is the last word of its sentence."""
    before = text[max(0, at - _LOOK) : at]
    if before[-1:] in ("'", "\u2019") and before[-2:-1].isalpha():
        return True  # the letter after an apostrophe is not an initial: "Paul's", "isn't"
    if raw.islower() and len(raw) == 1 and raw not in "aiouy":
        return following.isupper() and after.lower() in STARTERS
    label = before.split()[-1].lower().strip("(.") if before.strip() and before.endswith(" ") else ""
    if len(raw) == 1 and raw.isupper() and following.isupper() and label in LABELLED | NUMBERED:
        return True
    return after.lower() in STARTERS if following.isupper() else following in '"\u201c['


def sentences(text: str) -> list[str]:
    """Cut ``text`` into sentences; the sentences joined are the text.

    The rules follow the Internet-SAG paper (§4.1). They know decimals, abbreviations, initials, ellipses, versions,
    addresses, quotations, brackets, list items, and the stops of other scripts. A line break ends a sentence, unless
    the line clearly continues.

    >>> sentences("Dr. Ito paid 3.50. It was enough!")
    ['Dr. Ito paid 3.50. ', 'It was enough!']
    """
    return [text[start:end] for start, end in sentence_spans(text, wrapped=True)]
