"""Choose the main content of a page: units by their scores, tables and lists as wholes, headings by what follows them.

The result is a mask of the tree, as the writers need it.

Two small networks give each unit of a page a number from 0 to 1, of being the page's own content. The first sees the
features of a unit, the second also what the first says of the units around it. ``prunus train content`` trains both;
their weights are in ``weights.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadPage, errors_of_page
from ..clean import rules
from ..clean.parse import Element
from ..clean.walk import walk_page
from ..tree import Tree
from .features import ALIKE, FEATURES, INSIDE, Floats, Ints, Units, moved, units_of
from .stated import keep_stated

_STEPS: Final = (-3, -2, -1, 1, 2, 3)
_SPANS: Final = (2, 5)
_FAR: Final = 4.0  # scaled features beyond this are cut off


class Network:
    """A network with one hidden layer.

    :param weights: ``mean`` and ``scale`` of each input; ``hidden`` a row of weights for each input; ``bias`` of the
        hidden units; ``out`` their weights; ``level``, the bias of the output.
    """

    def __init__(self, weights: Mapping[str, Any]) -> None:
        scale = np.asarray(weights["scale"], np.float32)
        self.mean, self.scale = np.asarray(weights["mean"], np.float32), scale
        self.hidden, self.bias = np.asarray(weights["hidden"], np.float32), np.asarray(weights["bias"], np.float32)
        self.out, self.level = np.asarray(weights["out"], np.float32), np.float32(weights["level"])

    def __call__(self, rows: Floats) -> Floats:
        """Return a number from 0 to 1 for each row."""
        scaled = ((rows - self.mean) / self.scale).clip(-_FAR, _FAR)
        sums = np.tanh(scaled @ self.hidden + self.bias) @ self.out + self.level
        return np.asarray(1 / (1 + np.exp(-sums.clip(-30, 30))), np.float32)


@cache
def networks() -> tuple[Network, Network]:
    """Return the trained networks; they are read once."""
    weights = json.loads((files(__package__) / "weights.json").read_text(encoding="utf-8"))
    if weights["features"] != list(FEATURES):
        raise ValueError("the weights of main content are of other features; train them again: prunus train content")
    return Network(weights["first"]), Network(weights["second"])


def score(units: Units) -> Floats:
    """Return for each unit how sure it is that it is the page's own content, from 0 to 1."""
    first, second = networks()
    return second(with_context(units, first(units.features)))


def with_context(units: Units, values: Floats) -> Floats:
    """Return the rows of the second network: the features, and the numbers of the first around each unit.

    :param values: the numbers of the first network.
    """
    words = units.words
    size = np.concatenate(([0.0], np.cumsum(words)))
    mass = np.concatenate(([0.0], np.cumsum(words * values)))
    whole = max(float(mass[-1]), 1.0)
    columns: list[NDArray[Any]] = [values, *(moved(values, step) for step in _STEPS)]
    for lo, hi in units.levels:
        columns += [(mass[hi] - mass[lo]) / np.maximum(size[hi] - size[lo], 1), (mass[hi] - mass[lo]) / whole]
    place = np.arange(len(words))
    begin, end = _best_run(words * (values - 0.4))
    columns += [
        (place >= begin) & (place < end), np.log1p(np.maximum(begin - place, 0)),
        np.log1p(np.maximum(place - end + 1, 0)), mass[:-1] / whole,
        np.full(len(words), mass[-1] / max(float(size[-1]), 1.0)),
    ]  # fmt: skip
    for span in _SPANS:
        lo, hi = np.maximum(place - span, 0), np.minimum(place + span + 1, len(words))
        columns.append((mass[hi] - mass[lo]) / np.maximum(size[hi] - size[lo], 1))
    context = np.stack([np.asarray(column, np.float32) for column in columns], axis=1)
    return np.concatenate([units.features, context], axis=1)


def _best_run(gains: Floats) -> tuple[int, int]:
    """Return the run of units whose gains have the largest sum (Kadane's algorithm)."""
    best = total = 0.0
    start = begin = end = 0
    for index, gain in enumerate(gains.tolist()):
        total += gain
        if total <= 0:
            total, start = 0.0, index + 1
        elif total > best:
            best, begin, end = total, start, index + 1
    return begin, end


Bools = NDArray[np.bool_]

_SURE: Final = 0.9
"""Confidence from which on the parts of a page are judged one by one, and strictly."""

_STRICT: Final = 1.25
"""How much higher the bar is on such a page than the best expected F asks for."""

_UNSURE: Final = 0.2
"""Confidence below which a page is kept whole: the choice is then no better than the page (``docs/lab/log.md``)."""

_TITLE, _H1 = (INSIDE.index((tag,)) for tag in ("title", "h1"))
_HEADINGS: Final = [number for number, tags in enumerate(INSIDE) if tags[0] in ("h1", "h2", "h3")]
_LIKE_TITLE: Final = FEATURES.index("own:like_title")
_ADVERT: Final = FEATURES.index("name:advert")
_NOTHING: Final = 9
_GAP: Final = 30.0  # words that may be dropped between a heading and its text
_TOOLS: Final = ("editsection", "headerlink", "anchor-link", "anchorjs")
"""Parts of the names of links in headings that are tools of the site: "[edit]" and the mark that links to a place."""

_LINKED: Final = FEATURES.index("own:link_share")
_DATA: Final = 0.1
"""Mean number of a table's words from which it is kept where its words are not mostly links."""

_HEAD: Final = 0.6
"""Share of the bar from which on the names and dates of kept posts are kept."""

_PROSE: Final = 30
"""Mean words of a unit from which a table is taken for the page's layout, and its parts are judged alone."""


def clean_with_main(markup: str | bytes, charset: str, name: str) -> Tree:
    """Clean a page as :func:`~prunus.pages.clean.walk.clean_tree` does, and choose its main content in the same walk.

    :raises BadPage: as :func:`~prunus.pages.clean.walk.clean_tree`.
    """
    tree, origins = walk_page(markup, charset, name, with_origins=True)
    tree._markup = (markup, charset)
    tree.main = main_mask(tree, origins)
    return tree


def main_mask(tree: Tree, origins: Sequence[Any]) -> bytearray | None:
    """Return which nodes are the page's main content: 0 dropped, 1 kept, 2 an ancestor of a kept node.

    :param origins: the DOM node of each node of the tree.
    :returns: None where the whole page is kept, because nothing looks like content or everything does.
    """
    units = units_of(tree, origins)
    if units is None:
        return None
    kept, tree.main_confidence = chosen(tree, units, score(units))
    if kept is None:
        tree.warnings = [*tree.warnings, "what is the page's own content is not clear: the whole page is kept"]
        return None
    keep_stated(units, kept, origins)
    return _mask(tree, units, kept, _tools(tree, units, kept, origins))


def main_spans(tree: Tree) -> list[tuple[int, int]] | None:
    """Return the spans of the main content in the canonical text, in order; None for the whole text."""
    if tree.main is None:
        return None
    spans: list[tuple[int, int]] = []
    joins = False  # the text before was kept, too
    for node, text in enumerate(tree.text):
        if text:
            start = tree.starts[node]
            if tree.main[node] and joins:
                spans[-1] = (spans[-1][0], start + len(text))
            elif tree.main[node]:
                spans.append((start, start + len(text)))
            joins = bool(tree.main[node])
    return spans


def main_spans_in(markup: str | bytes, charset: str, canonical: str) -> list[tuple[int, int]] | None:
    """Choose the main content of a page that was cleaned before without the choice; None for the whole text.

    :param canonical: the text that the spans point into; all of it is kept where the markup gives another text now.
    """
    with suppress(BadPage), errors_of_page("page"):
        tree = clean_with_main(markup, charset, "page")
        if tree.canonical == canonical:
            return main_spans(tree)
    return None


def chosen(tree: Tree, units: Units, values: Floats) -> tuple[Bools | None, float]:
    """Return which units are kept, None for all; and how sure that is, see :attr:`.Tree.main_confidence`.

    :param values: the number of each unit, from :func:`score`.
    """
    is_title = units.inside[:, _TITLE]
    words = units.words * ~is_title
    kept, sure = _best_choice(words, values)
    if sure >= _SURE:  # an article: what is doubtful beside it is mostly teasers
        bar = sure / 2 * _STRICT
        kept = values >= bar
    else:
        values = _as_groups(units, values)
        kept, sure = _best_choice(words, values)
        bar = sure / 2
    if sure < _UNSURE:
        return None, sure
    kept = _without_repeats(units, _with_heads(units, values, kept, bar) & ~is_title)
    _keep_tables_whole(tree, units, kept, values)
    top = _title_heading(units, kept)
    _headings(units, kept, values)
    if top >= 0:
        kept[top] = True
    if top < 0 or not (units.inside[top, _H1] or units.features[top, _LIKE_TITLE] == 1):
        kept |= is_title  # "Buy Terraria" says less than "Terraria on Steam"
    headings = np.flatnonzero(units.inside[:, _H1] & ~is_title & (units.words > 0))
    if len(headings) == 1:  # the only one, though another heading may be more like the title
        kept[headings[0]] = True
    return kept, sure


def _best_choice(words: Floats, values: Floats) -> tuple[Bools, float]:
    """Return the units whose words have the best expected F, and that F, from 0 to 1.

    ``values`` are taken for chances. The best choice is then all units from some number on, which differs from page to
    page: an article's paragraphs are sure, the cards of a listing are not (Lewis, SIGIR 1995; Ye et al., ICML 2012).
    """
    order = np.argsort(-values, kind="stable")
    right, size = np.cumsum((values * words)[order]), np.cumsum(words[order])
    expected = 2 * right / np.maximum(size + right[-1], 1e-9)
    best = expected.argmax().item()
    return values >= values[order[best]], expected[best].item()


def _as_groups(units: Units, values: Floats) -> Floats:
    """Give the parts of a group the same scores: the items of a list, the posts of a thread, the cards of products.

    They are then kept or dropped together; an advertisement between them is judged alone.
    """
    weights = np.where(units.features[:, _ADVERT] > 0, 0, units.words + 0.5)
    judged = weights > 0

    def mean(of: Ints, scores: Floats) -> Floats:
        return np.asarray((np.bincount(of, weights * scores) / np.maximum(np.bincount(of, weights), 0.5))[of])

    nearer = (values + mean(units.group, values) - mean(units.part, values)).clip(0, 1)
    values = np.where((units.group > 0) & judged, nearer, values)
    many = np.bincount(units.role)[units.role] >= ALIKE
    return np.where((units.role > 0) & judged & many, mean(units.role, values), values).astype(np.float32)


def _with_heads(units: Units, values: Floats, kept: Bools, bar: float) -> Bools:
    """Keep the names and dates of posts that are kept, which score a little less than their texts.

    :param bar: the number from which on units are kept.
    """
    size, of_kept = (np.bincount(units.part, units.words * some) for some in (np.ones(len(kept)), kept))
    mostly = (of_kept * 2 > size)[units.part]
    return kept | ((units.part > 0) & mostly & (values > bar * _HEAD))


def _without_repeats(units: Units, kept: Bools) -> Bools:
    """Drop what was kept before: slides and teasers repeat captions and paragraphs. Cells and code may repeat.

    So may the answers of a list of questions: texts in one group or one element, or below headings, with other texts
    before them.
    """
    may = units.inside[:, INSIDE.index(("td", "th"))] | units.inside[:, INSIDE.index(("pre", "code"))]
    is_heading = np.asarray(units.inside[:, _HEADINGS].any(axis=1))
    groups, around = units.group.tolist(), units.levels[0][0].tolist()
    seen: dict[str, int] = {}
    kept = kept.copy()
    for position in np.flatnonzero(kept & ~may & (units.words >= 5)).tolist():
        first = seen.setdefault(units.texts[position], position)
        if first < position:
            other = first == 0 or units.texts[first - 1] != units.texts[position - 1]
            beside = groups[first] == groups[position] > 0 or around[first] == around[position]
            kept[position] = other and (beside or bool(is_heading[position - 1]))
    return kept


def _keep_tables_whole(tree: Tree, units: Units, kept: Bools, values: Floats) -> None:
    """Keep or drop each table as a whole, by the mean number of its words; those of the layout stay as they are.

    A table whose words are not mostly links is data, as an infobox is, and needs a lower mean: people who mark articles
    leave many tables out, and those who ask look for them.
    """
    words = units.words + 0.5
    sums = np.zeros((4, len(words) + 1))
    np.cumsum((words, words * values, words * kept, words * units.features[:, _LINKED]), axis=1, out=sums[:, 1:])
    end = 0
    for node, tag in enumerate(tree.tag):
        if tag == "table" and node >= end:  # in no other table
            end = tree.end[node]
            lo, hi = np.searchsorted(units.first, (node, end)).tolist()
            size, mass, shown, linked = (sums[:, hi] - sums[:, lo]).tolist()
            if hi > lo and size < _PROSE * (hi - lo):
                kept[lo:hi] = 2 * shown > size or (mass > _DATA * size and linked < 0.8 * size)


def _title_heading(units: Units, kept: Bools) -> int:
    """Return the heading that is the page's title, -1 where there is none."""
    like = units.features[:, _LIKE_TITLE]
    is_h1 = units.inside[:, _H1]
    headings = units.inside[:, _HEADINGS].any(axis=1) & ~units.inside[:, _TITLE]
    good = headings & ((like >= 0.6) | is_h1)
    if not good.any():
        return -1
    return int(np.where(good, like + 0.5 * is_h1 + 0.3 * kept, -1.0).argmax())


def _headings(units: Units, kept: Bools, values: Floats) -> None:
    """Keep the headings of what is kept too: a heading belongs to the text after it, or to the headings below it."""
    levels = np.zeros(len(kept), np.int64)
    for level, group in enumerate(_HEADINGS, 1):
        levels[units.inside[:, group]] = level
    follows, gap = _NOTHING, 0.0  # what the next kept unit is: 0 for text, the level of a heading; words before it
    sizes, sure, result = units.words.tolist(), values.tolist(), kept.tolist()
    for place, level in reversed(list(enumerate(levels.tolist()))):
        if not level:
            gap = 0.0 if result[place] else gap + sizes[place]
            follows = 0 if result[place] else _NOTHING if gap > _GAP else follows
        else:
            leads = follows == 0 or level < follows < _NOTHING
            result[place] |= leads and sure[place] > 0.1
            follows = level if result[place] else follows
    kept[:] = result


def _tools(tree: Tree, units: Units, kept: Bools, origins: Sequence[Any]) -> list[int]:
    """Return the nodes of kept headings that are tools of the site; note brackets around them in the tree's parts."""
    result: list[int] = []
    known: dict[Any, bool] = {}
    headings = np.flatnonzero(kept & units.inside[:, _HEADINGS].any(axis=1) & (units.last > units.first))
    for index in headings.tolist():
        first, last = int(units.first[index]), int(units.last[index])
        tools = [node for node in range(first, last + 1) if _is_tool(origins[node], known)]
        if tools and tools[0] > first:
            before, after = tree.text[tools[0] - 1], tree.text[last]
            if before.endswith("[") and tools[0] - 1 >= first:
                tree.parts[tools[0] - 1] = [(0, len(before[:-1].rstrip()))]
            if after.strip() == "]" and last not in tools:
                tools.append(last)
            result += tools
    return result


def _is_tool(origin: Any, known: dict[Any, bool]) -> bool:
    """Tell whether a node of a heading is in an element that is a tool of the site; ``known`` holds earlier results."""
    element = origin if isinstance(origin, Element) else origin.parent
    path = []
    while isinstance(element, Element) and element not in known:
        if element.tag in rules.HEADINGS:
            known[element] = False
        elif any(name in str(element.attr("class") or "") for name in _TOOLS):
            known[element] = True
        else:
            path.append(element)
            element = element.parent
    result = known.get(element, False)
    known.update(dict.fromkeys(path, result))
    return result


def _mask(tree: Tree, units: Units, kept: Bools, tools: Sequence[int]) -> bytearray | None:
    """Return the mask of the kept units, the pictures between them, and the elements around them."""
    count = len(tree)
    first, last = units.first, units.last
    end = np.asarray(tree.end, np.int64)
    steps = np.zeros(count + 1, np.int64)
    np.add.at(steps, first[kept], 1)
    np.add.at(steps, last[kept] + 1, -1)
    shown = np.cumsum(steps)[:count] > 0
    shown[list(tools)] = False
    leaf = end == np.arange(1, count + 1)
    texts, dropped = tree.text, set(tools)
    spare = [
        node
        for node in np.flatnonzero(leaf & ~shown).tolist()
        if tree.tag[node] and node not in dropped and (not texts[node] or tree.tag[node] == "img")
    ]
    if spare:
        shown[np.asarray(spare)[_belongs(tree, units, kept, np.asarray(spare))]] = True
    of_leaves = np.concatenate(([0], np.cumsum(leaf)))
    of_shown = np.concatenate(([0], np.cumsum(leaf & shown)))
    nodes = np.arange(count)
    part = of_shown[end] - of_shown[nodes]
    mask = np.where(part == 0, 0, np.where(part == of_leaves[end] - of_leaves[nodes], 1, 2)).astype(np.uint8)
    return bytearray(mask.tobytes()) if (mask != 1).any() else None


def _belongs(tree: Tree, units: Units, kept: Bools, nodes: Ints) -> Bools:
    """Tell which pictures, rules and empty cells stand between kept units, or in an element with a kept one."""
    count = len(kept)
    after = np.searchsorted(units.first, nodes)
    before, after = np.maximum(after - 1, 0), np.minimum(after, count - 1)
    parent = np.asarray(tree.parent, np.int64)
    around = parent[nodes]
    same = (kept[before] & (units.first[before] > around)) | (
        kept[after] & (units.first[after] < np.asarray(tree.end, np.int64)[around])
    )
    return np.asarray((kept[before] & kept[after]) | (same & (parent[around] >= 0)), bool)
