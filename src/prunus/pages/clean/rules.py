"""The cleaning rules as data; an unobvious entry has its reason.

The method is HtmlRAG §3.2 (content cleaning, lossless structural compression). Rules beyond the paper keep the text
that a reader of the page sees. Hidden elements are dropped *before* attributes are stripped: otherwise hidden text
would become ordinary text.
"""

from __future__ import annotations

import re
from typing import Final

DROPPED: Final = frozenset(
    {
        "script",
        "style",
        "template",
        "svg",  # drawings; the reference implementation reads their <text> as page text
        "canvas",  # its children are shown only by browsers without canvas
        "iframe",  # another document: its words are not this page's
        "frame",
        "frameset",
        "noframes",
        "noembed",
        "embed",
        "applet",
        "param",
        "datalist",  # suggestions that no browser shows as text
        "meta",
        "link",
        "base",
        "map",
        "area",
        "source",  # kept only inside <video>/<audio>, see MEDIA
        "track",
        "bgsound",
        "basefont",
        "col",  # width and style without words; cells have their own spans
        "colgroup",
        "wbr",
    }
)
"""Elements that are dropped with their content."""

WORD_ELEMENTS: Final = frozenset({"g-emoji", "local-time", "relative-time", "time-ago", "user-mention"})
"""Elements of widely used libraries that stand for words of a sentence: dates, emoji, names."""

DISSOLVED: Final = WORD_ELEMENTS | {"a", "span", "font", "nobr", "blink", "bdi", "big", "marquee", "picture", "slot"}
"""Inline wrappers without meaning: the element is dropped, its content stays. (Of <a>, only those without target.)"""

INLINE: Final = WORD_ELEMENTS | frozenset(
    """a abbr acronym audio b bdo bdi big button cite code data del dfn em font i img input ins kbd label
    mark meter nobr noscript output picture progress q rb rp rt rtc ruby s samp select small span
    strike strong sub sup textarea time tt u var video object blink marquee""".split()
)
"""Inline elements: no word boundary at their edges. (``object`` shows its fallback.)"""

VOID: Final = frozenset({"br", "hr", "img", "input", "source", "track", "wbr"})
"""Elements without an end tag that can reach the output."""

MEDIA: Final = frozenset({"video", "audio"})
"""Players. Only <source> and <track> stay inside them: no current browser shows other content."""

SOLID: Final = frozenset({"br", "hr", "img", "video", "audio", "td", "th", "input", "progress", "meter"})
"""Elements that are kept without words. An empty cell keeps its place in the table."""

WRAPPERS: Final = frozenset({"div", "center"})
"""Block wrappers without meaning: merged when single-nested (HtmlRAG §3.2.2)."""

SECTIONS: Final = frozenset("section article main header footer nav aside form fieldset hgroup address search".split())
"""Block wrappers that name the kind of their content; pruned output leaves them out to save tokens."""

EMPHASIS: Final = frozenset("b strong i em u small big font tt cite dfn var label data output".split())
"""Inline elements that set the look of words; pruned output leaves them out to save tokens."""

HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})

PREFORMATTED: Final = frozenset({"pre", "textarea", "listing", "plaintext", "xmp"})

LISTS: Final = frozenset({"ul", "ol", "menu", "dl"})

FIGURES: Final = frozenset({"figure", "video", "audio"})
"""Elements that are one block if they fit into one: a picture stays with its caption."""

KEPT_ATTRIBUTES: Final[dict[str, tuple[str, ...]]] = {
    "a": ("href",),
    "abbr": ("title",),
    "acronym": ("title",),
    "audio": ("src", "title"),
    "bdo": ("dir",),  # reverses the order in which letters are read
    "blockquote": ("cite",),
    "data": ("value",),
    "del": ("datetime",),
    "details": ("open",),
    "dfn": ("title",),
    "dialog": ("open",),  # without it a second cleaning would drop the dialog
    "html": ("lang",),
    "img": ("src", "alt", "title"),
    "input": ("type", "value", "placeholder", "checked"),
    "ins": ("datetime",),
    "li": ("value",),
    "meter": ("value", "min", "max"),
    "object": ("data",),
    "ol": ("start", "reversed", "type"),
    "optgroup": ("label",),
    "option": ("selected",),
    "pre": ("class",),  # only that of the language: language-python
    "progress": ("value", "max"),
    "q": ("cite",),
    "select": ("multiple", "size"),
    "source": ("src",),
    "td": ("colspan", "rowspan"),
    "th": ("colspan", "rowspan", "scope"),
    "time": ("datetime",),
    "track": ("src", "label", "srclang"),
    "video": ("src", "title", "poster"),
}
"""Attributes that are kept, by element. All others are dropped, except GLOBAL_ATTRIBUTES."""

GLOBAL_ATTRIBUTES: Final = ("lang",)

URL_ATTRIBUTES: Final = frozenset({"href", "src", "cite", "data", "poster"})

SCHEMES: Final = frozenset(
    {"", "http", "https", "ftp", "mailto", "tel", "sms", "callto", "cid", "whatsapp", "fb-messenger"}
)
"""The schemes of the addresses that are kept; '' is a relative address. Others may be scripts or inlined data."""

VISIBLE_INPUTS: Final = frozenset(
    {
        "",
        "text",
        "search",
        "submit",
        "button",
        "reset",
        "email",
        "tel",
        "url",
        "number",
        "date",
        "time",
        "month",
        "week",
        "datetime-local",
        "checkbox",
        "radio",
        "image",
        "range",
    }
)
"""Types of <input> whose value a reader sees; not hidden and password."""

LONG_VALUE: Final = 200
"""Code points of an attribute value in the output at most; the Tree keeps the whole value."""

FAR: Final = re.compile(r":(?:-\d{3}|\d{4})")
"""Quick test for a declaration that moves a box far."""

ODD_LETTER: Final = re.compile(r"[\U000e0000-\U000e007f\ud800-\udfff]")
"""Quick test for letters that ``INVISIBLE`` removes, and for surrogates, which no encoding can write."""

INVISIBLE: Final = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007e])[\U000e0000-\U000e007f]+")
"""Tag characters. No browser shows them, and attackers hide instructions in them. Those of flag emoji stay."""

ICON_CLASS: Final = re.compile(r"(?:^|[-_ ])(?:icons?|fa|glyphicon|material-(?:icons|symbols)\S*)(?:[-_ ]|$)", re.I)

VISUALLY_HIDDEN_CLASS: Final = re.compile(
    r"(?:^| )(?:sr-only|visually-?hidden|screen-?reader(?:-text)?|offscreen|a11y-\S+)(?: |$)", re.I
)
