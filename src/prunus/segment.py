"""Sentences by a finite state machine, in the manner of Internet-SAG §4.1. Lossless and linear.

A stop (``.``, ``!``, ``?`` and their kin of other scripts) ends a sentence unless something says that it
does not: a decimal, an abbreviation, an initial, an address, an ellipsis, a quotation or a bracket that
is still open. Items of a list that stands inside a line are segments too.
"""

from __future__ import annotations

import re
from typing import Final

_TITLES: Final = frozenset(
    """mr mrs ms mx messrs dr prof rev hon gen col capt cpt cmdr lt sgt maj adm gov sen rep pres e.g i.e cf vs viz z.b
    d.h u.a s.o vgl bzw p.ej p.es t.ex f.eks bl.a m.a.w prof.ssa d.ssa kath approx resp проф акад им ул пл""".split()
)
"""Never the last word of a sentence, whatever follows."""

_NAMES: Final = frozenset(
    """st mt ft fr sra srta dra drs hl hr frk fru ing dott avv arch geom rag sig sigg on mme mlle mm prov mons gg fig
    figs eq eqs ca dir amm ee uu s.a""".split()
)
"""Goes on with a name: the last word only where a word follows that begins a sentence."""

_NUMBERED: Final = frozenset(
    """no nos p pp art arts vol vols ch sec par para pt fig figs eq nr n° num núm n.º pág págs pag cap bd abs ziff kap
    tab abb rs u.s.c cal lib ed tel fol vers st stk pkt arp q lit pos ref chap chapt ex app hr hrs min mins sq ext lot
    rm ste apt exh ser ver rev cra párrf lun mar mié jue vie sáb кв д оф корп pls""".split()
)
"""Not the last word before a number; elsewhere a word as any other."""

_ABBREVIATIONS: Final = frozenset(
    """al etc inc ltd llc co corp bros dept univ assn ave blvd rd hwy cl dist ind jr sr esq ph.d m.d b.a m.a d.c a.d b.c
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun est min max misc abbr
    eds hrsg jhd usw evtl ggf inkl exkl str mio mrd tsd geb gest ehem jur dipl mwst hg red ej pbro lic arq gral cía cia
    dpto avda apdo tfno dcha izq ud uds vd vds admón osv ekskl mv jf pga vha dvs gl kgl med f.e
    гг г в вв руб коп тыс млн млрд стр рис см гл др пр т.д т.п т.е т.к и.о н.э обл р ред ss sgg segg pagg""".split()
)
"""Not the last word before a small letter or a number; before a capital letter they are."""

_STARTERS: Final = frozenset(
    """a after all also although an and another any are as at because before being both but by can could despite did do
    does during each even every few finally first following for from had has have he hence her here his how however i
    if i'm i've i'll i'd in instead is it it's its last later let like many maybe meanwhile millions more most moreover
    much my nevertheless next no nobody none nor not nothing now of on once one only or other others our perhaps please
    several shall she should since so some someone soon still such than that that's the their then there there's
    therefore these they they're this those though through thus to today together tomorrow two under unfortunately
    unless unlike until was we we're were what when whenever where whether which while who whose why will with within
    without would yes yesterday yet you you're your""".split()
)
"""Words that begin a sentence rather than go on with a name, as ``U.S. Government`` does."""

_MONTHS: Final = frozenset(
    """januar jänner februar märz april mai juni juli august september oktober november dezember january february march
    may june july october december januari februari maart mei augustus marts maj december jahrhundert jahrhunderts jh
    jahrestag januára februára""".split()
)
"""What follows an ordinal that is written with a stop: ``am 13. Februar``."""

_WIDE: Final = frozenset("\u3002\uff0e\uff01\uff1f\uff61\u0964\u0965\u1362\u1367\u1368\u104a\u104b")
"""Stops that need no space after them."""

_STOPS: Final = ".!?\u2026\u061f\u06d4\u0589\u203c\u2047\u2048\u2049" + "".join(sorted(_WIDE))
_CLOSERS: Final = "\"'\u2019\u201d\u201c\u00bb\u203a)]}\u300d\u300f\uff09\u3011\u300b*"
_PAIRS: Final = {
    "(": ")", "[": "]", "{": "}", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb", "\u201e": "\u201c\u201d",
    "\u300c": "\u300d", "\u300e": "\u300f", "\uff08": "\uff09", "\u3010": "\u3011", "\u300a": "\u300b",
}  # fmt: skip
_LONGEST: Final = 1_500
"""Code points up to which a quotation or a bracket is held together."""

_MARK: Final = re.compile(
    r"[()\[\]{}\u201c\u201d\u2018\u2019\u00ab\u00bb\u201e\u300c-\u300f\uff08\uff09\u3010\u3011\u300a\u300b\"'\n]"
)
_BULLETS: Final = "\u2022\u2023\u2043\u25aa\u25cf\u25e6\u2219"
_CANDIDATE: Final = re.compile(
    rf"[{_STOPS}\n\r:;\u2014{_BULLETS}-](?:"  # one set at the head: the expression is tried at few places
    rf"(?<=\.)(?:[ \u00a0]\.){{2,}}|(?<=[{_STOPS}])[{_STOPS}]*(?:[{re.escape(_CLOSERS)}]|\[\d{{1,4}}\])*"
    rf"|(?<=[\n\r])\s*|(?<=[\u0561-\u0587]:)(?=\s|$)|(?<=[\u03ac-\u03ce];)(?=\s|$)"
    rf"|(?<=[-\u2014])[\"\u201d](?=\s[A-Z])|(?<=\s[{_BULLETS}])(?=\s?\S))"
)
_ITEM_END: Final = re.compile(r"[.)](?=\s)")
_ITEM: Final = re.compile(r"(?:\s|\A)(\(?(?:(\d{1,3})\.?|([a-z])|(i{1,3}|iv|vi{0,3}|ix|x)))\Z")
_ROMANS: Final = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_LAST_WORD: Final = re.compile(rf"[^\s(\[\"'\u201c\u2018/{_BULLETS}-]*$")
_NEXT_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][a-z]+)?")
_ACRONYM: Final = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_PLAIN: Final = re.compile(r"(?:[^\W\d_]{2,}|\d[\d,]*)")
_ROMAN: Final = re.compile(r"[IVXLC]+\b")
_FULL_LINE: Final = 40
"""Code points of a line that goes on a sentence though it begins with a capital letter."""

_LOOK: Final = 48
"""Code points that are looked at on each side of a stop."""


def _enclosed(text: str) -> list[tuple[int, int]]:
    """Return where quotations and brackets stand, the outermost ones, each within a line."""
    found: list[tuple[int, int]] = []
    open_: list[tuple[str, int]] = []
    for match in _MARK.finditer(text):
        mark, at = match.group(), match.start()
        if mark == "\n":
            open_.clear()
            continue
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        if mark in "\"'":
            closes = _closes_straight(mark, before, after, open_)
            opens = not closes and (not before or not before.isalnum()) and bool(after) and not after.isspace()
            wanted = mark
        else:
            opens, closes, wanted = mark in _PAIRS, mark not in _PAIRS, mark
            if mark == "\u2019" and after.isalnum():
                continue  # an apostrophe
            if mark == "\u201c" and any(_PAIRS.get(one, one) == "\u201c\u201d" for one, _ in open_[-8:]):
                opens, closes = False, True  # as German closes
        if closes:
            _close(wanted, at, open_, found)
        elif opens:
            open_.append((mark, at))
    return found


def _closes_straight(mark: str, before: str, after: str, open_: list[tuple[str, int]]) -> bool:
    """Tell whether a straight quotation mark closes one that is open."""
    if not any(one == mark for one, _ in open_[-8:]) or not before or before.isspace():
        return False
    if mark == '"':
        return True
    return not after.isalnum() and before in ".,!?;:\u2026-"


def _close(mark: str, at: int, open_: list[tuple[str, int]], found: list[tuple[int, int]]) -> None:
    """Close the nearest opening that a mark belongs to; what was opened after it stays unclosed."""
    for depth in range(len(open_) - 1, max(-1, len(open_) - 9), -1):
        opening, start = open_[depth]
        if mark in _PAIRS.get(opening, opening):
            del open_[depth:]
            if at + 1 - start <= _LONGEST:
                while found and found[-1][0] > start:
                    found.pop()
                found.append((start, at + 1))
            return


def _items(text: str) -> dict[int, int]:
    """Return where the items of lists inside a line begin, and where their marks end: ``1.`` … ``2.`` …

    A list begins with 1 or a, at the head of a line or behind a stop, and counts on from there.
    """
    found: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []
    expected: str | int = ""
    for stop in _ITEM_END.finditer(text):
        at = stop.start()
        match = _ITEM.search(text[max(0, at - 8) : at])
        if not match or (at > 8 and match.start(1) == 0):
            continue
        number = int(match.group(2)) if match.group(2) else match.group(3) or match.group(4)
        begin, end = at - len(match.group(1)), stop.end()
        if number == expected:
            found.update((*waiting, (begin, end)))
            waiting = []
        elif number in (1, "a", "i") and _heads(text, begin):
            waiting = [(begin, end)]
        else:
            continue
        expected = _next(number)
    return found


def _next(mark: str | int) -> str | int:
    """Return the mark of the item after one: ``2``, ``b``, ``ii``; an ``i`` counts in Roman numbers."""
    if isinstance(mark, int):
        return mark + 1
    if mark in _ROMANS:
        return _ROMANS[min(_ROMANS.index(mark) + 1, len(_ROMANS) - 1)]
    return chr(ord(mark) + 1)


def _heads(text: str, at: int) -> bool:
    """Tell whether a sentence, a line or a list can begin at a place."""
    before = text[max(0, at - _LOOK) : at].rstrip(" \t\u00a0")
    return not before or before[-1] in _STOPS + ":;\n" + _CLOSERS + _BULLETS + ")"


def sentence_spans(text: str, *, wrapped: bool = False) -> list[tuple[int, int]]:
    """Cut ``text`` into sentences and return their (start, end), which touch and cover all of it.

    White space after a sentence belongs to it, and at the head of the text to the first. Linear in the text.

    :param wrapped: a line may go on in the next one, as in mail and in text taken from print. Otherwise every
        line break ends a segment, as in the canonical text of a page, where it stands between two blocks.
    """
    spans: list[tuple[int, int]] = []
    begin, region = 0, 0
    enclosed, items = _enclosed(text), _items(text)
    starts = [at for at in sorted(items) if text[max(0, at - 4) : at].rstrip()[-1:] not in tuple(_BULLETS)]
    marks = {end - 1 for end in items.values()} | {end - 2 for end in items.values()}
    following = 0
    cuts: list[int] = []
    for match in _CANDIDATE.finditer(text):
        start, end = match.span()
        while following < len(starts) and starts[following] <= start:
            cuts.append(starts[following])
            following += 1
        if start in marks:
            continue
        while region < len(enclosed) and enclosed[region][1] <= start:
            region += 1
        inside = region < len(enclosed) and enclosed[region][0] < start and end < enclosed[region][1]
        if text[start] in "\n\r":
            if not wrapped or not _goes_on(text, start, end):
                cuts.append(end)
        elif text[start] in _BULLETS:
            cuts.append(start)
        elif not inside and _ends(text, start, end, cuts[-1] if cuts else 0):
            cuts.append(_behind_space(text, end))
    cuts += starts[following:]
    for cut in (*cuts, len(text)):
        if cut > begin and text[begin:cut].strip():
            spans.append((begin, cut))
            begin = cut
        elif cut > begin and spans:
            spans[-1] = (spans[-1][0], cut)
            begin = cut
    if begin < len(text):
        spans.append((begin, len(text)))
    return spans


def _behind_space(text: str, at: int) -> int:
    """Return where the white space behind a sentence ends."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _goes_on(text: str, start: int, end: int) -> bool:
    """Tell whether a sentence goes on behind a line break."""
    if text.count("\n", start, end) > 1 or end >= len(text) or start == 0:
        return False
    line = text.find("\n", end, end + 400)
    ahead = text[end : line if line >= 0 else end + 400]
    before = text[max(0, start - 3) : start]
    if len(ahead.strip()) <= 2 and ahead.strip().isupper() and before.strip(" \t")[-2:].isupper():
        return bool(re.fullmatch(r"\s*[A-Z]{1,2}\s*", text[max(0, text.rfind("\n", max(0, start - 8), start)) : start]))
    if before.rstrip()[-1:] in (*_STOPS, ":", "") or not ahead:
        return False
    if ahead[0] in ".!?" and not ahead.strip(".!? "):
        return True
    if before[-1:] in " \t":  # what takes text from print leaves the space between two words of a sentence
        return ahead[0].islower() or ahead[0] == "(" or (ahead[0].isalpha() and len(ahead) >= _FULL_LINE)
    if "\u3041" <= before[-1:] <= "\u30ff":
        return "\u3002" in ahead
    return ahead[0].islower() and any(stop in ahead for stop in ".!?")


def _ends(text: str, start: int, end: int, begin: int) -> bool:
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
        return not (closed and "\u3041" <= ahead[0] <= "\u309f")  # 「…。」と: what was said goes on in the sentence
    if mark in ":;-\u2014":
        return True
    if not ahead[0].isspace():
        return _joined(text, start, end, ahead)
    following = ahead.lstrip()[:1]
    if stops.startswith((". ", ".\u00a0")):  # ". . ." goes on, ". . . ." ends
        return stops.count(".") >= 4 and following.isupper()
    if following.islower() or (following in "-\u2013\u2014" and mark != ".") or following in ",;":
        return False
    if following == "(" and closed and (text[end - 1] == "'" or stops.startswith("...")):
        return False
    if mark == "." and len(stops) == 1:
        return _ends_word(text, start, ahead.lstrip(), begin)
    return True


def _joined(text: str, start: int, end: int, ahead: str) -> bool:
    """Tell whether a stop without a space behind it ends a sentence: ``the end.Then`` does, ``example.com`` not."""
    mark = text[start]
    if ord(mark) > 0x2FF and mark != "\u2026" and not "\u2000" < mark < "\u2100":
        return True
    if end - start != 1 or mark == "\u2026":
        return False
    found = _LAST_WORD.search(text, max(0, start - _LOOK), start)
    last = found.group() if found else ""
    word = _NEXT_WORD.match(ahead)
    if not word or not word.group()[0].isupper() or not _PLAIN.fullmatch(last):
        return False
    behind = ahead[word.end() : word.end() + 1]
    if last[0].isupper() or behind == ".":
        return word.group().lower() in _STARTERS or (behind == "." and word.group().lower() in _TITLES | _NAMES)
    return bool(behind) and behind in " ,'\u2019"


def _ends_word(text: str, start: int, ahead: str, begin: int) -> bool:
    """Tell whether a full stop behind a word ends the sentence, by the words on both sides."""
    found = _LAST_WORD.search(text, max(begin, start - _LOOK), start)
    raw = found.group() if found else ""
    last = raw.lower()
    following = ahead[:1]
    word = _NEXT_WORD.match(ahead)
    after = word.group().replace("\u2019", "'") if word else ""
    if last in _TITLES:
        return False
    if last in _NAMES and raw[0].isupper() and not following.isdigit():
        return after.lower() in _STARTERS
    numbered = following.isdigit() or (following in "(\u00a7#" and last != "no") or bool(_ROMAN.match(ahead))
    if last in _NUMBERED and (numbered or last in ("p", "pp")):
        return after == "I" and last not in ("p", "pp")
    if raw and raw.isdigit() and len(raw) <= 3:
        # "1." at the head of a segment is its number; "13. Februar" is a date
        return text[begin : start - len(raw)].strip(" \t\n#*" + _BULLETS) != "" and after.lower() not in _MONTHS
    if last in ("a.m", "p.m"):
        return following.isupper() and (raw[0].isupper() or after.lower() in _STARTERS)
    if last in _ABBREVIATIONS and not _ACRONYM.fullmatch(raw):
        return following.isupper() or following in '"\u201c'
    if len(raw) == 1 and raw.isupper() and not text[begin : start - 1].strip():
        return False  # "Q. Who?", "A. She."
    if _ACRONYM.fullmatch(raw) or (len(raw) == 1 and raw.isalpha()):
        if raw.islower() and len(raw) == 1 and raw not in "aiouy":
            return following.isupper() and after.lower() in _STARTERS
        return after.lower() in _STARTERS if following.isupper() else following in '"\u201c['
    return True


def sentences(text: str) -> list[str]:
    """Cut ``text`` into sentences; joined, they give the text back.

    A finite state machine in the manner of the Internet-SAG paper: it knows decimals, abbreviations,
    initials, ellipses, versions, addresses, quotations, brackets, list items, and the stops of other
    scripts. A line break ends a sentence, unless the line clearly goes on.

    >>> sentences("Dr. Ito paid 3.50. It was enough!")
    ['Dr. Ito paid 3.50. ', 'It was enough!']
    """
    return [text[start:end] for start, end in sentence_spans(text, wrapped=True)]
