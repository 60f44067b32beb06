"""A table from tag to flags that say how the walk treats it: one look-up an element keeps the walk fast."""

from __future__ import annotations

from typing import Final

from . import rules
from .elements import SPECIAL
from .formatting import FORMER

KIND: Final = 7
"""The bits of a tag's kind: one of the numbers from DROP to RENAMED."""

DROP: Final = 0  # dropped with its content
BLOCK: Final = 1
INLINE: Final = 2
MORE: Final = 3  # has rules of its own, see _Walk._special
PASS: Final = 4  # only its content is kept
STRICT: Final = 5  # a heading, item, form or part of a ruby: becomes a <div>, or is left out, where it cannot be nested
RENAMED: Final = 6  # a formatting element that the parser was given under another name

LINE: Final = 8  # inline
KEEPS: Final = 16  # some of its attributes are kept
WRAPS: Final = 32  # it may be merged with its only child
PRE: Final = 64  # its white space is kept
UNNESTED: Final = 128  # its start tag ends an open element of its kind
HELD: Final = 256  # a wrapper that is kept only while it holds a heading

LEAVES: Final = frozenset({"br", "hr", "img", "source", "track"})
SHOWN: Final = frozenset({"img", "audio", "video", "input", "progress", "meter", "source", "track"})
OBSOLETE: Final = {"xmp": "pre", "listing": "pre", "plaintext": "pre"}
"""Obsolete elements that are renamed: valid HTML cannot hold them, and browsers show them as <pre>."""

RUBY_PARTS: Final = frozenset({"rb", "rp", "rt", "rtc"})
NOT_NESTED: Final = rules.HEADINGS | RUBY_PARTS | {"option", "optgroup"}
"""Elements whose start tag ends an open element of their kind."""

ENDING: Final = NOT_NESTED | {"hr"}
"""Elements whose start tag ends an open element of ``NOT_NESTED``: <hr> ends an option."""

ITEMS: Final = frozenset({"li", "dd", "dt"})


def _table() -> dict[str, int]:
    """Return the kind and flags of each tag that a rule names."""
    table: dict[str, int] = {
        **dict.fromkeys(rules.INLINE, INLINE),
        **dict.fromkeys(rules.DROPPED, DROP),
        **dict.fromkeys(rules.DISSOLVED, PASS),
        **dict.fromkeys(SPECIAL.keys() | LEAVES | SHOWN | OBSOLETE.keys(), MORE),
        **dict.fromkeys(rules.PREFORMATTED | {"noscript"}, MORE),
        **dict.fromkeys(rules.HEADINGS | ITEMS | RUBY_PARTS | {"form"}, STRICT),
        **dict.fromkeys(FORMER, RENAMED),
    }
    bits = {
        LINE: rules.INLINE,
        KEEPS: frozenset(rules.KEPT_ATTRIBUTES),
        WRAPS: rules.WRAPPERS,
        PRE: rules.PREFORMATTED,
        UNNESTED: NOT_NESTED,
    }
    for bit, tags in bits.items():
        for tag in tags:
            table[tag] = table.get(tag, BLOCK) | bit
    return table


KINDS: Final[dict[str, int]] = _table()
"""Kind and flags of each tag; a tag that is not listed is a ``BLOCK``."""
