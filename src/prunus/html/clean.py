"""HTML cleaning (HtmlRAG §3.2): one parse, one read-only walk into the Tree arrays.

Every rule of :mod:`prunus.html.rules` is applied on the way: what cannot be seen goes before any
attribute is stripped, white space collapses as a browser collapses it, wrappers that add nothing
are merged, empty elements vanish. No word is lost, no two words are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import rules
from .hidden import is_hidden, shown_again, value_of
from .parse import Document, Element, Node, Text, parse
from .tree import Attrs, Tree

_LEAVES = frozenset({"br", "hr", "img", "source", "track"})
_ROWS = frozenset({"tr", "thead", "tbody", "tfoot", "td", "th"})
_SHOWN = frozenset({"img", "audio", "video", "input", "progress", "meter", "source", "track"})
_OBSOLETE = {"xmp": "pre", "listing": "pre", "plaintext": "pre"}
"""The only renaming: no valid HTML can carry these, and a browser shows them as <pre>."""


def clean_tree(markup: str | bytes, *, charset: str = "", name: str = "page") -> Tree:
    """Parse and clean a page.

    :param markup: HTML as str or bytes.
    :param charset: the encoding that the transport named, for bytes.
    :param name: how errors call the page.
    :returns: the cleaned document; it may hold no words if the page shows none.
    :raises BadPage: the page is empty, binary, or over the size limit.
    """
    walk = _Walk()
    walk.run(parse(markup, charset, name))
    tree, _ = walk.finish(False)
    tree._markup = (markup, charset)
    return tree


def original_xpaths(markup: str | bytes, charset: str) -> list[str]:
    """Return the XPath in the HTML5-parsed original of every node that cleaning keeps."""
    walk = _Walk()
    walk.run(parse(markup, charset))
    _, origins = walk.finish(True)
    known: dict[Any, str] = {}
    return [_xpath(node, known) for node in origins]


def _xpath(node: Node, known: dict[Any, str]) -> str:
    """Build ``/html/body/div[2]/p`` for an element, or for a text node's parent."""
    element: Any = node if isinstance(node, Element) else node.parent
    steps = []
    while isinstance(element, Element):
        if element in known:
            steps.append(known[element])
            break
        parent = element.parent
        same: list[Any] = (
            [c for c in parent.children if isinstance(c, Element) and c.tag == element.tag]
            if parent is not None
            else []
        )
        if len(same) > 1:
            for number, twin in enumerate(same, 1):
                known[twin] = f"{element.tag}[{number}]"
        else:
            known[element] = element.tag
        steps.append(known[element])
        element = parent
    return "/" + "/".join(reversed(steps))


class _Walk:
    """The walk's state: the growing arrays, and where white space stands."""

    __slots__ = (
        "attrs",
        "dirty",
        "end",
        "fresh",
        "lang",
        "last",
        "loose",
        "noscripts",
        "origins",
        "parent",
        "tag",
        "text",
    )

    def __init__(self) -> None:
        self.tag: list[str | None] = []
        self.parent: list[int] = []
        self.end: list[int] = []
        self.text: list[str] = []
        self.attrs: list[Attrs | None] = []
        self.origins: list[Any] = []
        self.loose = True  # at the start of a line: leading white space collapses to nothing
        self.last = -1  # the latest text node of this line
        self.fresh = True  # no words on this line so far
        self.dirty = False  # a node was merged away or emptied: finish() must close the gaps
        self.noscripts: list[int] = []
        self.lang = ""

    def run(self, document: Document) -> None:
        """Walk the DOM once, in document order, without recursion."""
        stack: list[Any] = [node for node in reversed(document.children) if isinstance(node, Element)]
        tags, parents, ends, texts = self.tag, self.parent, self.end, self.text
        attrs, origins = self.attrs, self.origins
        dropped, dissolved, inline = rules.DROPPED, rules.DISSOLVED, rules.INLINE
        pop, push = stack.pop, stack.extend
        here = -1  # the open element
        content = 0  # how many nodes so far show something
        marks: list[int] = []  # content before each open element
        raw = 0  # depth of <pre> and its kind
        while stack:
            node = pop()
            kind = type(node)
            if kind is Text:
                content += self._add_text(node, here, raw)
                continue
            if kind is int:
                tag = tags[node]
                assert tag is not None
                here = parents[node]
                if tag in rules.PREFORMATTED:
                    raw -= 1
                self._close(node, tag, content > marks.pop())
                continue
            if kind is not Element:
                continue
            tag = node.tag
            if tag in _OBSOLETE:
                tag = _OBSOLETE[tag]
            if tag in dropped and not (tag in ("source", "track") and tags[here] in rules.MEDIA):
                continue
            found = node.attrs
            kept: Attrs | None = None
            if found:
                if is_hidden(node, found):
                    again = shown_again(node, found)
                    if again:
                        self._line_end()
                        push(reversed(again))
                    continue
                kept = _kept_attributes(tag, found)
            children = node.children
            own = ""
            if tag in _SPECIAL:
                special = _SPECIAL[tag](node, found, kept, self)
                if special is None:
                    continue
                children, kept, own = special
            if (tag in dissolved and not kept) or tag == "head":
                push(children[::-1])
                continue
            if tag not in inline:
                self._line_end()
            elif own or tag == "img":
                self.loose, self.last, self.fresh = False, -1, False
            place = len(tags)
            tags.append(tag)
            parents.append(here)
            ends.append(place + 1 if tag in _LEAVES else 0)
            texts.append(own)
            attrs.append(kept)
            origins.append(node)
            if own or tag in _SHOWN:
                content += 1
            if tag in _LEAVES:
                continue
            if tag in rules.PREFORMATTED:
                raw += 1
            if tag == "noscript":
                self.noscripts.append(place)
            marks.append(content - (1 if own or (tag in rules.SOLID and tag in inline) else 0))
            here = place
            stack.append(place)
            push(children[::-1])

    def _add_text(self, node: Text, here: int, raw: int) -> int:
        """Add a text node, its white space collapsed as CSS collapses it; return 1 if it shows words."""
        data = node.data
        if not data.isascii():
            data = rules.INVISIBLE.sub("", data)
        tags, texts = self.tag, self.text
        if raw:
            if not data:
                return 0
            self.loose, self.last, self.fresh = False, -1, False
            seen = 0 if data.isspace() else 1
        else:
            words = " ".join(data.split())
            if not words:
                if self.loose or not data:
                    return 0
                data, self.loose, seen = " ", True, 0
            else:
                before = "" if self.loose or not data[0].isspace() else " "
                if self.fresh:
                    self.fresh = False
                    if self._line_is_open(here):
                        before = " "  # a box that vanished stood here and held the words apart
                after = " " if data[-1].isspace() else ""
                data, self.loose, seen = before + words + after, bool(after), 1
        previous = len(tags) - 1
        if previous >= 0 and tags[previous] == "" and self.parent[previous] == here:
            texts[previous] += data
        else:
            if here < 0:
                return 0
            previous += 1
            tags.append("")
            self.parent.append(here)
            self.end.append(previous + 1)
            texts.append(data)
            self.attrs.append(None)
            self.origins.append(node)
        if not raw:
            self.last = previous
        return seen

    def _line_end(self) -> None:
        """End a line: a space that collapsed into its end disappears, the next line starts afresh."""
        last = self.last
        if last >= 0 and last < len(self.tag):
            text = self.text[last]
            if text.endswith(" "):
                text = text[:-1]
                self.text[last] = text
                if not text:
                    self._drop_tail(last)
        self.last, self.loose, self.fresh = -1, True, True

    def _drop_tail(self, node: int) -> None:
        """Take away an emptied text node, and the closed inline elements that held only it."""
        while node == len(self.tag) - 1 and self.end[node] and node:
            tag = self.tag[node]
            if (tag and (tag not in rules.INLINE or tag in rules.SOLID)) or self.text[node]:
                return
            above = self.parent[node]
            self._cut(node)
            while above >= 0 and self.end[above] > node:  # closed ancestors end one earlier now
                self.end[above] = node
                above = self.parent[above]
            node -= 1
        if node < len(self.tag) and self.tag[node] == "" and not self.text[node]:
            self.dirty = True

    def _cut(self, node: int) -> None:
        """Cut the arrays off at ``node``."""
        for array in (self.tag, self.parent, self.end, self.text, self.attrs, self.origins):
            del array[node:]
        if self.last >= node:
            self.last = -1
        while self.noscripts and self.noscripts[-1] >= node:
            self.noscripts.pop()

    def _line_is_open(self, here: int) -> bool:
        """Tell whether inline content stands before this place in the same block."""
        tags, parents = self.tag, self.parent
        block = here
        while block >= 0 and tags[block] in rules.INLINE:
            block = parents[block]
        node = len(tags) - 1
        while node > block and not self.end[node]:  # opened just now, and empty so far
            node -= 1
        if node <= block:
            return False
        while node > block:
            tag = tags[node]
            if tag and tag not in rules.INLINE:
                return False
            node = parents[node]
        return node == block

    def _close(self, node: int, tag: str, shows: bool) -> None:
        """Close an element: drop it if it shows nothing, merge it if it is a single-nested wrapper."""
        tags, ends = self.tag, self.end
        block = tag not in rules.INLINE
        if block:
            self._line_end()
        if not shows and tag not in _ROWS and not (tag in rules.SOLID and len(tags) == node + 1) and node:
            space = not block and any(self.text[node:])  # <b> </b> holds apart the words beside it
            if not space:
                self._cut(node)
                return
        size = len(tags)
        ends[node] = size
        child = node + 1
        while child < size and tags[child] is None:  # a merged wrapper has exactly one child
            child += 1
        if not block or child >= size or ends[child] != size or not tags[child]:
            return
        # exactly one child, an element
        if tags[child] in rules.WRAPPERS and not self.attrs[child]:
            tags[child] = None
            self.dirty = True
        elif tag in rules.WRAPPERS and not self.attrs[node] and tags[child] not in rules.INLINE:
            tags[node] = None
            self.dirty = True

    def finish(self, with_origins: bool) -> tuple[Tree, list[Any]]:
        """Close the gaps that merging left, and hand over the Tree."""
        if not self.tag:  # a document without even an <html> element does not come from the parser
            self.tag, self.parent, self.end, self.text, self.attrs = ["html"], [-1], [1], [""], [None]
        self._drop_doubled_noscripts()
        if self.dirty:
            self._compact()
        tags: list[str] = self.tag  # type: ignore[assignment]  # no None is left
        tree = Tree(tags, self.parent, self.end, self.text, self.attrs)
        root = self.attrs[0]
        tree.lang = (root or {}).get("lang", "")
        for node in range(1, min(3, len(tags))):
            if tags[node] == "title" and node + 1 < len(tags):
                tree.title = self.text[node + 1]
        return tree, self.origins if with_origins else []

    def _drop_doubled_noscripts(self) -> None:
        """Drop a <noscript> whose words the page shows elsewhere, or which only doubles a lazy image."""
        if not self.noscripts:
            return
        inside = bytearray(len(self.tag))
        for node in self.noscripts:
            inside[node : self.end[node]] = b"\1" * (self.end[node] - node)
        shown = " ".join(" ".join(t for t, hid in zip(self.text, inside, strict=True) if t and not hid).split())
        done = -1
        for node in self.noscripts:
            if node < done:
                continue
            end = done = self.end[node]
            words = " ".join(" ".join(self.text[node:end]).split())
            has_twin = (node > 0 and self.tag[node - 1] == "img") or not any(
                self.tag[i] == "img" for i in range(node, end)
            )
            if words in shown if words else has_twin:
                while node > 1 and self.end[node - 1] == end and self.tag[node - 1] not in _ROWS | {"body"}:
                    node -= 1  # what held nothing else goes with it
                for index in range(node, end):
                    self.tag[index] = None
                    self.text[index] = ""
                self._close_up(node, end)
                self.dirty = True

    def _close_up(self, node: int, end: int) -> None:
        """Leave at most one space between the words on both sides of nodes that went."""
        if node and end < len(self.tag) and self.tag[end] == "" and self.text[end].startswith(" "):
            before = self.text[node - 1] if self.tag[node - 1] == "" else ""
            if before.endswith(" ") or (not before and self.tag[node - 1] not in rules.INLINE):
                self.text[end] = self.text[end][1:]

    def _compact(self) -> None:
        """Close the gaps: merged wrappers hand their children up, emptied text nodes go."""
        tags, texts = self.tag, self.text
        keep = [bool(tag) or (tag == "" and text != "") for tag, text in zip(tags, texts, strict=True)]
        place: list[int] = []  # where each old node stands now; a merged one where its parent stands
        before: list[int] = [0]  # kept nodes before each old node
        count = 0
        for node, stays in enumerate(keep):
            if stays:
                place.append(count)
                count += 1
            else:
                above = self.parent[node]
                place.append(place[above] if above >= 0 else -1)
            before.append(count)
        live = [node for node, stays in enumerate(keep) if stays]
        parent = self.parent
        self.parent = [place[parent[node]] if parent[node] >= 0 else -1 for node in live]
        self.end = [before[self.end[node]] for node in live]
        self.tag = [tags[node] for node in live]
        self.text = [texts[node] for node in live]
        self.attrs = [self.attrs[node] for node in live]
        self.origins = [self.origins[node] for node in live]


def _kept_attributes(tag: str, found: Any) -> Attrs | None:
    """Return the attributes that carry meaning, whole, or None."""
    kept: Attrs | None = None
    names = rules.KEPT_ATTRIBUTES.get(tag)
    if names:
        for name in names:
            value = found.get(name)
            if value is not None:
                kept = kept or {}
                kept[name] = " ".join((value if isinstance(value, str) else " ".join(value)).split())
    lang = found.get("lang")
    if lang and tag not in rules.DISSOLVED and tag != "body":
        kept = kept or {}
        kept["lang"] = value_of(found, "lang")
    return kept


_Special = tuple[Sequence[Any], Attrs | None, str]


def _head(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """Of <head> only the title stays."""
    titles = [child for child in node.children if isinstance(child, Element) and child.tag == "title"]
    return tuple(titles[:1]), None, ""


def _title(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """A <title> is one only in <head>."""
    parent = node.parent
    return (node.children, kept, "") if isinstance(parent, Element) and parent.tag == "head" else None


def _image(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """An image stays for its alt text or address; tracking pixels and inlined data go."""
    alt = (kept or {}).get("alt", "")
    if not alt and any(value_of(found, side).strip().rstrip("px") in ("0", "1") for side in ("width", "height")):
        return None
    source = (kept or {}).get("src", "")
    if source[:5].lower() == "data:":
        lazy = value_of(found, "data-src") or value_of(found, "data-lazy-src") or value_of(found, "data-original")
        kept = {name: value for name, value in (kept or {}).items() if name != "src"}
        if lazy:
            kept = {"src": lazy, **kept}
    if not alt and not (kept or {}).get("src"):
        return None
    if kept is not None and not alt:
        kept.pop("alt", None)
    return (), kept, alt


def _input(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """An <input> stays when a reader sees what it holds, or whether it is ticked."""
    kind = value_of(found, "type").strip().lower()
    if kind not in rules.VISIBLE_INPUTS:
        return None
    kept = dict(kept or {})
    if kind in ("checkbox", "radio"):
        return (), {"type": kind, **({"checked": ""} if "checked" in kept else {})}, ""
    shown = kept.get("value") or kept.get("placeholder") or ""
    if not shown or kind == "range":
        return None
    kept.pop("checked", None)
    if kind in ("", "text"):
        kept.pop("type", None)
    if kept.get("value"):
        kept.pop("placeholder", None)
    return (), kept, shown


def _select(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """A closed <select> shows one option; one with ``multiple`` or ``size`` shows them all."""
    size = value_of(found, "size").strip()
    if "multiple" in found or (size.isdigit() and int(size) > 1):
        return node.children, kept, ""
    options = [child for child in node.descendants if isinstance(child, Element) and child.tag == "option"]
    chosen = [option for option in options if "selected" in option.attrs] or options[:1]
    return tuple(chosen[:1]), kept, ""


def _option(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """``selected`` has done its work once the option is chosen."""
    return node.children, None, ""


def _optgroup(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """The label of a group is text that a reader sees."""
    return node.children, kept, (kept or {}).get("label", "")


def _media(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """A player keeps its sources and its title; its fallback text shows nowhere."""
    inner = tuple(c for c in node.children if isinstance(c, Element) and c.tag in ("source", "track"))
    return (inner, kept, (kept or {}).get("title", "")) if kept or inner else None


def _dialog(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """A dialog that is not open is not shown."""
    return (node.children, kept, "") if "open" in found else None


def _link(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """A target that is script or a bare '#' leads nowhere; inlined data is no address."""
    target = (kept or {}).get("href", "").strip().lower()
    if not target or target == "#" or target.startswith(("javascript:", "data:", "vbscript:")):
        kept = {name: value for name, value in (kept or {}).items() if name != "href"} or None
    return node.children, kept, ""


def _cell(node: Element, found: Any, kept: Attrs | None, walk: _Walk) -> _Special | None:
    """Spans that span nothing, and scopes that say nothing, go."""
    if kept:
        clean: Attrs = {}
        for name, value in kept.items():
            if name in ("colspan", "rowspan"):
                digits = value[: len(value) - len(value.lstrip("0123456789"))]
                number = min(int(digits[:6] or 1), 1000 if name == "colspan" else 65534)
                if number != 1:
                    clean[name] = str(number)
            elif value:
                clean[name] = value
        kept = clean or None
    return node.children, kept, ""


_SPECIAL = {
    "head": _head, "title": _title, "img": _image, "input": _input, "select": _select, "option": _option,
    "optgroup": _optgroup, "video": _media, "audio": _media, "dialog": _dialog, "a": _link, "td": _cell, "th": _cell,
}  # fmt: skip
