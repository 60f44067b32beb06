"""What the walk does with a tag, in one small number: one look at a table for all that it asks of each element."""

from __future__ import annotations

from typing import Final

from . import rules
from .elements import SPECIAL
from .formatting import FORMER

KIND: Final = 7
"""The bits that say how a tag is treated at first sight."""

DROP: Final = 0
BLOCK: Final = 1
INLINE: Final = 2
MORE: Final = 3
PASS: Final = 4
STRICT: Final = 5
RENAMED: Final = 6

LINE: Final = 8  # it stays in a line
KEEPS: Final = 16  # some of its attributes carry meaning
WRAPS: Final = 32  # it may be merged with its only child
PRE: Final = 64  # white space in it stays
UNNESTED: Final = 128  # straight in one of its kind, it ends that one

LEAVES: Final = frozenset({"br", "hr", "img", "source", "track"})
SHOWN: Final = frozenset({"img", "audio", "video", "input", "progress", "meter", "source", "track"})
OBSOLETE: Final = {"xmp": "pre", "listing": "pre", "plaintext": "pre"}
"""The only renaming: no valid HTML can carry these, and a browser shows them as <pre>."""

NOT_NESTED: Final = rules.HEADINGS | {"option", "optgroup", "rb", "rp", "rt", "rtc"}
"""Elements whose start tag ends an open one of their kind."""

ENDING: Final = NOT_NESTED | {"hr"}
"""Elements whose start tag ends one of those: a rule ends an option."""

ITEMS: Final = frozenset({"li", "dd", "dt"})


def _table() -> dict[str, int]:
    """Return the number of each tag that is listed anywhere."""
    found: dict[str, int] = {
        **dict.fromkeys(rules.INLINE, INLINE),
        **dict.fromkeys(rules.DROPPED, DROP),
        **dict.fromkeys(rules.DISSOLVED, PASS),
        **dict.fromkeys(SPECIAL.keys() | LEAVES | SHOWN | OBSOLETE.keys(), MORE),
        **dict.fromkeys(rules.PREFORMATTED | {"noscript"}, MORE),
        **dict.fromkeys(rules.HEADINGS | ITEMS | {"form"}, STRICT),
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
            found[tag] = found.get(tag, BLOCK) | bit
    return found


KINDS: Final[dict[str, int]] = _table()
"""The number of a tag; one that is not listed is a ``BLOCK``."""
