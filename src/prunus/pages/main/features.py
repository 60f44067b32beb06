"""Units of a cleaned page, and the features by which the model tells content from the rest.

A unit is a run of text under one block element: a paragraph, a heading, a cell, an item of a list, the text between two
blocks. All features are computed in passes over arrays, in time linear in the page.

The names and the short lines of a page's parts say what they are (menu, comments, share bar, article): these lists are
data. A kind's number is the number of its bit in a mask.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.text.words import count_words
from ..clean import rules
from ..clean.parse import Element
from ..tree import Tree

NAMES: Final[dict[str, str]] = {
    "menu": "nav|menu|crumb|toolbar|topbar|masthead|skip|pager|paginat|banner|header",
    "foot": "foot|copyright|legal|colophon|contentinfo",
    "side": r"sidebar|\b_*side|[-_]side|\brail|[-_]rail|widget|complementary|aside",
    "related": (
        "relat|recommend|recirc|promo|popular|trending|teaser|also|outbrain|taboola|latest|readmore|"
        "read-more|mostread|most-|upnext|onward"
    ),
    "share": r"\bshar|[-_]shar|sharing|social|facebook|twitter|follow|addthis|sns",
    "comment": "comment|disqus|respond|reply|discussion|livefyre",
    "advert": r"advert|sponsor|dfp|adslot|adunit|\bads?\b|[-_]ads?\b|\bads?[-_]",
    "notice": "cookie|consent|gdpr|newsletter|subscri|signup|sign-up|login|modal|popup|paywall|overlay|donat|alert",
    "meta": (
        r"meta|byline|author|dateline|\bdate|[-_]date|timestamp|\btags?\b|[-_]tags?\b|categor|\bbio|[-_]bio|"
        r"topic|keyword"
    ),
    "caption": "caption|credit|legend",
    "picture": "figure|image|photo|gallery|media|video|slide|thumb",
    "strong": (
        "articlebody|article-body|article_body|entry-content|post-content|article-content|article__body|"
        "story-body|storybody|body-copy|post-body|articletext|article-text|mw-parser-output|markdown"
    ),
    "body": "article|content|body|post|entry|story|text|main|prose|paragraph|copy",
    "title": "title|headline|heading",
    "lead": "summary|lead|standfirst|intro|abstract|dek|subtitle|description|excerpt",
    "list": "list|card|grid|item|feed|carousel|module",
    "edit": (
        r"edit|print|hidden|toc|navbox|noprint|reflist|jump|tool|button|btn|\bform\b|[-_]form|\bform[-_]|"
        r"search|input"
    ),
}
"""Parts of the names (class, id, role, itemprop) of a page's elements, by what they say of an element."""

NAME_KINDS: Final = tuple(NAMES)
_LONGEST: Final = 200  # code points of names that are looked at
_NAME: Final = re.compile("|".join(f"({pattern})" for pattern in NAMES.values()))

WORDS: Final[dict[str, str]] = {
    "share": """share tweet facebook twitter whatsapp linkedin pinterest reddit email print instagram youtube telegram
        follow teilen drucken partager imprimer compartir imprimir condividi delen поделиться 分享 转发 شارك""",
    "notice": """cookie cookies subscribe subscriber subscription newsletter login signup register sign-up sign log
        inbox consent gdpr privacy abonnieren anmelden registrieren datenschutz abonnez-vous connexion suscríbete
        подписаться 登录 注册 订阅 隐私 تسجيل اشترك""",
    "foot": """copyright © rights reserved terms policy imprint impressum contact careers sitemap disclaimer agb
        mentions légales contacto условия 版权 版权所有 联系我们 حقوق""",
    "related": """related more recommended popular trending latest read-more recommended: next previous also most
        mehr verwandte auch lesen lire aussi más leer también ancora ещё 相关 推荐 热门 更多 الأكثر المزيد""",
    "comment": """comment comments reply replies respond kommentar kommentare commentaires commentaire comentarios
        комментарии 评论 回复 تعليق تعليقات""",
    "advert": """advertisement advertise sponsored ad ads promoted anzeige werbung publicité publicidad реклама
        广告 إعلان""",
    "meta": """by published updated posted written author ago min am pm minutes edited filed under tags von aktualisiert
        veröffentlicht par publié por publicado 作者 发布 来源 编辑 كتب""",
    "menu": """home menu search skip navigation about login account cart sections topics news sport video shop
        startseite suche accueil recherche inicio buscar главная поиск 首页 搜索 菜单 الرئيسية بحث""",
    "picture": "photo photograph image picture getty reuters ap credit afp file photo: image: foto photos via courtesy",
    "refs": """references notes bibliography sources citations footnotes see external einzelnachweise literatur weblinks
        références referencias 参考 注释 参考资料 外部链接 مراجع""",
}
"""Words of short lines, by what they say of a line."""

WORD_KINDS: Final = tuple(WORDS)
WORD_BITS: Final[dict[str, int]] = {}
_UNSPACED: Final[list[tuple[str, int]]] = []


def _fill() -> None:
    for number, words in enumerate(WORDS.values()):
        for word in words.split():
            WORD_BITS[word] = WORD_BITS.get(word, 0) | 1 << number
            if word[0] > "\u3000":
                _UNSPACED.append((word, 1 << number))


_fill()


@lru_cache(16_384)  # a few names stand on most pages of a site, and of the web
def name_mask(names: str) -> int:
    """Return the kinds, as bits, that the names of an element speak of."""
    mask = 0
    for name in names[:_LONGEST].split():
        mask |= _mask_of_one(name)
    return mask


@lru_cache(16_384)  # frameworks make their lists of names from few
def _mask_of_one(name: str) -> int:
    mask = 0
    for match in _NAME.finditer(name.lower()):
        mask |= 1 << ((match.lastindex or 1) - 1)
    return mask


def word_mask(line: str) -> int:
    """Return the kinds, as bits, that the words of a short line speak of; ``line`` is in lower case."""
    mask = 0
    known = WORD_BITS
    for word in line.split():
        bits = known.get(word) or known.get(word.strip(".,:;!?()|•·-"))
        if bits:
            mask |= bits
    if not line.isascii():
        for word, bit in _UNSPACED:
            if word in line:
                mask |= bit
    return mask


Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

INSIDE: Final = (
    ("a",), ("li",), ("td", "th"), ("h1",), ("h2",), ("h3", "h4", "h5", "h6"), ("p",), ("nav",), ("footer",),
    ("header",), ("aside",), ("article",), ("main",), ("form", "fieldset"), ("figure",), ("blockquote", "q"),
    ("pre", "code"), ("select", "button", "label", "textarea", "option"), ("dl",), ("table",), ("section",),
    ("figcaption", "caption"), ("ul", "ol"), ("details", "dialog"), ("address",), ("time",), ("em", "i"),
    ("strong", "b"), ("title",), ("noscript",),
)  # fmt: skip
"""Groups of tags; a feature each: whether the unit is inside such an element."""

_GROUP: Final = {tag: number for number, tags in enumerate(INSIDE) for tag in tags}
_A, _P = _GROUP["a"], _GROUP["p"]
HEADING: Final = (_GROUP["h1"], _GROUP["h2"], _GROUP["h3"])
TITLE: Final = _GROUP["title"]
_STRONG: Final = NAME_KINDS.index("strong")
_WITH_ROLES: Final = rules.WRAPPERS | rules.SECTIONS | {"ul", "table"}
_ROOTS: Final = frozenset({"html", "body"})
_SHORT: Final = 12  # words of a line that is looked up word by word
_ENDS: Final = frozenset('.!?:;…。！？；؟।"”’»)')
_DIGITS: Final = b"0123456789"
_NO_DIGITS: Final = str.maketrans("", "", "0123456789")
ALIKE: Final = 3  # elements of a group
_NO_PARTS: Final = rules.INLINE | rules.HEADINGS | {"p", "td", "th"}
"""Elements that are no parts of a group, but of its parts: paragraphs of posts, cells of rows."""


_OWN: Final = (
    "words", "chars_a_word", "link_share", "commas", "stops", "ends_sentence", "capital", "digits", "links", "repeated",
    "like_title", "is_heading", "sentence", "no_words",
)  # fmt: skip
_CONTAINER: Final = ("words", "link_share", "paragraph_share", "own_share", "units", "sentence_share")
_LEVELS: Final = (1, 2, 3, 5)
_PAGE: Final = ("units", "words", "link_share", "paragraph_share", "articles")
_PLACE: Final = (
    "densest",
    "outside_densest",
    "outside_article",
    "outside_main",
    "outside_body",
    "at_unit",
    "at_word",
    "depth",
    "since_h1",
    "before_h1",
    "since_heading",
)
_NEAR: Final = (-2, -1, 1, 2)
_NEAR_OWN: Final = ("words", "link_share", "sentence", "is_heading")

FEATURES: Final = (
    *(f"own:{name}" for name in _OWN),
    *(f"inside:{tags[0]}" for tags in INSIDE),
    *(f"word:{kind}" for kind in WORD_KINDS),
    *(f"heading:{kind}" for kind in WORD_KINDS),
    *(f"name:{kind}" for kind in NAME_KINDS),
    *(f"near-name:{kind}" for kind in NAME_KINDS),
    *(f"up{level}:{name}" for level in _LEVELS for name in _CONTAINER),
    *(f"page:{name}" for name in _PAGE),
    *(f"place:{name}" for name in _PLACE),
    *(f"{'next' if step > 0 else 'before'}{abs(step)}:{name}" for step in _NEAR for name in _NEAR_OWN),
)
"""Names of the features, in the order of the columns."""

UNSURE: Final = tuple(
    number
    for number, name in enumerate(FEATURES)
    if name.startswith(("name:", "near-name:", "place:densest", "place:outside_densest"))
)
"""Columns that say nothing on many sites; in training some rows are seen without them."""


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a page in order.

    :param first, last: the first and the last text node of each unit.
    :param owner: the block element around each.
    :param words: visible words of each.
    :param texts: the text of each.
    :param inside: whether each is inside an element of each group of ``INSIDE``.
    :param levels: for each level of ``_LEVELS``, the first unit and one past the last of the element above the owner.
    :param group, part: the numbers of the nearest group of like parts that each unit is in, and of its part; 0 for
        none. A group is three or more elements beside each other with one tag and one name.
    :param role: the number of what the unit is in each part of its group, as the name above a post; 0 for none.
    :param features: a row of ``FEATURES`` for each.
    """

    first: Ints
    last: Ints
    owner: Ints
    words: Floats
    texts: Sequence[str]
    inside: NDArray[np.bool_]
    levels: Sequence[tuple[Ints, Ints]]
    group: Ints
    part: Ints
    role: Ints
    features: Floats


def units_of(tree: Tree, origins: Sequence[Any]) -> Units | None:
    """Cut a page into units and compute their features; None for a page without text.

    :param origins: the DOM node of each node of the tree.
    """
    tags, count = tree.tag, len(tree)
    shown = [node for node, text in enumerate(tree.text) if text and tags[node] != "img" and not text.isspace()]
    if not shown:
        return None
    parent = np.asarray(tree.parent, np.int64)
    parent[0] = 0
    end = np.asarray(tree.end, np.int64)
    owner = _owners(tags, parent)
    nodes = np.asarray(shown, np.int64)
    starts = np.flatnonzero(np.diff(owner[nodes], prepend=-1))
    stops = np.append(starts[1:], len(nodes)) - 1
    first, last = nodes[starts], nodes[stops]
    own = owner[first]
    inside = _inside(tags, end, count)
    under = inside[:, first].T

    texts, lines = tree.text, []
    for lo, hi in zip(first.tolist(), last.tolist(), strict=True):
        lines.append("".join(texts[lo : hi + 1]).strip() if hi > lo else texts[lo].strip())
    columns, spoken = _of_lines(lines)
    words = columns[0]
    linked = _linked(tree, shown, starts, inside[_A]) / np.maximum(columns[1], 1)
    heading = under[:, list(HEADING)].any(axis=1)
    ends_sentence = columns[4]
    sentence = (ends_sentence > 0) & (words >= 6) & (linked < 0.5)
    links = np.add.reduceat(np.diff(inside[_A][nodes].astype(np.float32), prepend=0).clip(0), starts)
    place = np.arange(len(lines))
    is_title = under[:, TITLE]

    is_sentence = sentence.astype(np.float32)
    blocks: list[Any] = [
        (
            np.log1p(words), np.minimum(columns[1] / np.maximum(words, 1), 30) / 10, linked,
            columns[2] / np.maximum(words, 4) * 10, columns[3] / np.maximum(words, 4) * 10, ends_sentence, columns[5],
            columns[6], np.log1p(links), columns[7], _like_title(tree.title, lines, words, heading), heading,
            is_sentence, words == 0,
        ),
        under.T,
    ]  # fmt: skip
    above = np.maximum.accumulate(np.where(heading, place, -1))
    every, near, densest, group, part, role = _names(origins, first.tolist(), words)
    blocks += [
        _bits(spoken, len(WORD_KINDS)), _bits(np.where(above >= 0, spoken[above], 0), len(WORD_KINDS)),
        _bits(every, len(NAME_KINDS)), _bits(near, len(NAME_KINDS)),
    ]  # fmt: skip

    sums = np.zeros((4, len(lines) + 1))
    np.cumsum((words, words * linked, words * under[:, _P], words * sentence), axis=1, out=sums[:, 1:])
    levels = _levels(parent, end, own, first)
    for lo, hi in levels:
        size, in_links, in_paragraphs, in_sentences = sums[:, hi] - sums[:, lo]
        size = np.maximum(size, 1)
        blocks.append(
            (
                np.log1p(size),
                in_links / size,
                in_paragraphs / size,
                words / size,
                np.log1p(hi - lo),
                in_sentences / size,
            )
        )
    total = max(float(sums[0, -1]), 1.0)
    of_page = (
        np.log1p(len(lines)),
        np.log1p(total),
        sums[1, -1] / total,
        sums[2, -1] / total,
        min(tags.count("article"), 3),
    )
    blocks.append(np.repeat(np.asarray(of_page, np.float32)[:, None], len(lines), axis=1))
    main_heading = under[:, HEADING[0]] & ~is_title
    top = int(main_heading.argmax()) if main_heading.any() else 0
    blocks.append(
        (
            densest, _outside(densest, words * sentence),
            *(_outside(under[:, _GROUP[tag]], words * sentence) for tag in ("article", "main")),
            _outside((near >> _STRONG & 1) > 0, words * sentence), place / len(lines), sums[0, :-1] / total,
            np.log1p(_depths(end)[own]), np.log1p(np.maximum(place - top, 0)), place < top,
            np.log1p(place - np.maximum(above, 0)),
        )
    )  # fmt: skip
    near_own = np.asarray((np.log1p(words), linked, is_sentence, heading), np.float32)
    blocks += [moved(near_own, step) for step in _NEAR]
    features = np.concatenate([np.asarray(block, np.float32) for block in blocks]).T
    return Units(first, last, own, words, lines, under, levels, group, part, role, features)


def _outside(held: NDArray[np.bool_], words: Floats) -> Floats:
    """Return the share of a page's sentences that an element holds, for the units outside it; 0 for those inside."""
    return (words @ held / max(float(words.sum()), 1.0) * ~held).astype(np.float32)


def moved(values: NDArray[Any], step: int) -> NDArray[Any]:
    """Return the values of the unit ``step`` places later (earlier where negative); 0 beyond the page.

    :param values: units along the last axis.
    """
    out = np.zeros_like(values)
    if step > 0:
        out[..., :-step] = values[..., step:]
    else:
        out[..., -step:] = values[..., :step]
    return out


def _owners(tags: Sequence[str], parent: Ints) -> Ints:
    """Return the nearest block element of each node."""
    inline = rules.INLINE
    flat = np.fromiter((not tag or tag in inline for tag in tags), bool, len(tags))
    flat[0] = False
    owner = np.arange(len(tags))
    while True:
        low = flat[owner]
        if not low.any():
            return owner
        owner = np.where(low, parent[owner], owner)


def _inside(tags: Sequence[str], end: Ints, count: int) -> NDArray[np.bool_]:
    """Return for each group of ``INSIDE`` and each node whether the node is in such an element."""
    of = _GROUP.get
    group = np.asarray([of(tag, -1) for tag in tags])
    nodes = np.flatnonzero(group >= 0)
    steps = np.zeros((len(INSIDE), count + 1), np.int32)
    np.add.at(steps, (group[nodes], nodes), 1)
    np.add.at(steps, (group[nodes], end[nodes]), -1)
    return np.cumsum(steps, axis=1)[:, :count] > 0


def _linked(tree: Tree, shown: Sequence[int], starts: Ints, in_link: NDArray[np.bool_]) -> Floats:
    """Return the code points of each unit that are in links."""
    texts = tree.text
    sizes = np.fromiter((len(texts[node]) for node in shown), np.float32, len(shown))
    return np.add.reduceat(sizes * in_link[np.asarray(shown)], starts)


def _of_lines(lines: Sequence[str]) -> tuple[Floats, Ints]:
    """Return the features of the lines alone, as columns, and the kinds that short lines speak of."""
    rows: list[tuple[float, ...]] = []
    spoken: list[int] = []
    seen: dict[str, int] = {}
    ends, add, speak = _ENDS, rows.append, spoken.append
    for line in lines:
        seen[line] = seen.get(line, -1) + 1
    for line in lines:
        count = line.count
        plain = line.isascii()
        words = len(line.split()) if plain else count_words(line)
        size = len(line)
        if words > _SHORT:
            digits = 0.0
            speak(0)
        else:
            letters = line.encode("ascii", "ignore")
            digits = (len(letters) - len(letters.translate(None, _DIGITS))) / size
            speak(word_mask(line.lower()))
        commas = stops = 0
        if words > 3:
            commas, stops = count(","), count(".") + count("?") + count("!")
            if not plain:
                commas += count("，") + count("、") + count("،")
                stops += count("。") + count("！") + count("？") + count("؟")
        add((words, size, commas, stops, line[-1] in ends, line[0].isupper(), digits, min(seen[line], 3)))
    return np.asarray(rows, np.float32).T, np.asarray(spoken, np.int64)


def _like_title(title: str, lines: Sequence[str], words: Floats, heading: Any) -> Floats:
    """Return the share of each heading's words that the page's title holds; 0 for other lines."""
    result = np.zeros(len(lines), np.float32)
    wanted = title.casefold()
    known = set(wanted.split())
    if not known:
        return result
    for place in np.flatnonzero(heading & (words <= 40)).tolist():
        line = lines[place].casefold()
        parts = line.split()
        result[place] = 1.0 if line in wanted else sum(part in known for part in parts) / len(parts)
    return result


def _bits(masks: Ints, count: int) -> Ints:
    """Return a row for each bit of the masks."""
    return masks[None, :] >> np.arange(count)[:, None] & 1


def _names(
    origins: Sequence[Any], firsts: Sequence[int], words: Floats
) -> tuple[Ints, Ints, NDArray[np.bool_], Ints, Ints, Ints]:
    """Return the kinds that the names of the elements around each unit speak of, and the groups that it is in.

    An element that holds most of the page's words says nothing about its parts: a page may be called "sidebar-right".

    :returns: of all elements around each unit that hold less than half of the words; of the nearest three; whether it
        is in the densest part; and its group, part and role, as in :class:`Units`.
    """
    numbers: dict[Any, int] = {}  # by element; parents have smaller numbers
    above, own, dense = [0], [0], [False]
    look, kin, alike = [("", "")], [0], {(0, "", ""): 0}
    result = origins[0].main_content() if isinstance(origins[0], Element) else None
    at = []
    for node in firsts:
        origin = origins[node]
        element = origin if isinstance(origin, Element) else origin.parent
        number = numbers.get(element)
        if number is not None:  # most units are beside others
            at.append(number)
            continue
        path = []
        while isinstance(element, Element) and element not in numbers and element.tag not in _ROOTS:
            path.append(element)
            element = element.parent
        number = numbers.get(element, 0)
        for element in reversed(path):
            tag = element.tag
            names = element.attr("class")
            mask = name_mask(names) if names else 0
            named = (tag, _stem(names or ""))
            look.append(named)
            kin.append(0 if tag in _NO_PARTS else alike.setdefault((number, *named), len(alike)))
            names = element.attr("id")
            if names:
                mask |= name_mask(names)
            if tag in _WITH_ROLES:
                for kind in ("role", "itemprop"):
                    names = element.attr(kind)
                    if names:
                        mask |= name_mask(names)
            above.append(number)
            own.append(mask)
            dense.append(dense[number] or element == result)
            number = numbers[element] = len(own) - 1
        at.append(number)
    held = [0.0] * len(own)
    for number, size in zip(at, words.tolist(), strict=True):
        held[number] += size
    for number in range(len(own) - 1, 0, -1):
        held[above[number]] += held[number]
    most = held[0] / 2
    every, part, role = [0] * len(own), [0] * len(own), [0] * len(own)
    roles: dict[tuple[int, str, str], int] = {}
    many = (np.bincount(kin) >= ALIKE).tolist()
    for number in range(1, len(own)):
        parent = above[number]
        every[number] = every[parent] | (own[number] if held[number] < most else 0)
        part[number] = part[parent]
        if kin[number] and many[kin[number]]:
            part[number], role[number] = number, kin[number]
        elif role[parent]:
            role[number] = roles.setdefault((role[parent], *look[number]), len(alike) + len(roles))
    near = [own[number] | own[above[number]] | own[above[above[number]]] for number in at]
    kinds = np.asarray([every[number] for number in at], np.int64)
    parts = np.asarray([part[number] for number in at], np.int64)
    in_densest = np.asarray([dense[number] for number in at], bool)
    in_role = np.asarray([role[number] for number in at], np.int64)
    return kinds, np.asarray(near, np.int64), in_densest, np.asarray(kin)[parts], parts, in_role


@lru_cache(16_384)
def _stem(names: str) -> str:
    """Return the first name of an element without its numbers: ``post-12 odd`` is ``post-``."""
    first = names.split(maxsplit=1)[:1]
    return first[0].translate(_NO_DIGITS) if first else ""


def _levels(parent: Ints, end: Ints, own: Ints, first: Ints) -> list[tuple[Ints, Ints]]:
    """Return the range of units inside the elements some levels above each unit's owner."""
    result, at, above = [], 0, own
    for level in _LEVELS:
        while at < level:
            above, at = parent[above], at + 1
        result.append((np.searchsorted(first, above), np.searchsorted(first, end[above])))
    return result


def _depths(end: Ints) -> Ints:
    """Return the depth of each node; 1 for the root."""
    return np.arange(1, len(end) + 1) - np.cumsum(np.bincount(end, minlength=len(end) + 1))[: len(end)]
