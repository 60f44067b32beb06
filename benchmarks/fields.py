"""Thirty fields of eleven pages, filled without a model: how many are right, wrong and null.

    PRUNUS_DATA=... python -m benchmarks.fields

The fields were written down before the code. Twenty are of the example site, ten of pages of the dev half of WCXB. A
text counts as right where it holds the gold words, be it a whole sentence; so it is stricter for numbers and dates.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import prunus
from benchmarks.data import wcxb

SITE: Final = Path("examples/site")
NUMBER, TEXT, DATE = {"type": "number"}, {"type": "string"}, {"type": "string", "format": "date"}
BUCKLE, MUG, CREAM, ARTICLE = (
    "https://hyosilver.com/shop/buckles/texan-series-buckles/engraved-silver-fashion-belt-buckle/",
    "https://www.ghostwares.com.au/shop/p/white-speckle-mug",
    "https://www.sephora.com/product/augustinus-bader-the-cream-with-tfc8-face-moisturizer-P470507",
    "https://appinventiv.com/blog/machine-learning-in-ecommerce/",
)

Field = tuple[str, str, dict[str, str], str, str | None]
"""Page, name, schema, description ('' for none), pattern of the value (None: null)."""

FIELDS: Final[tuple[Field, ...]] = (
    ("plans-and-prices.html", "pell_2_price", NUMBER, "Price of one Pell 2 radar gauge", "289"),
    ("plans-and-prices.html", "delivery_cost", NUMBER, "What delivery of a parcel costs", "9"),
    ("plans-and-prices.html", "harbour_price", NUMBER, "Price of the plan Harbour per month, paid monthly", "14"),
    ("plans-and-prices.html", "valid_from", DATE, "Date from which the prices hold", "2025-02-01"),
    ("plans-and-prices.html", "member_share", NUMBER, "Cost of a member's share", "30"),
    ("visit-and-events.html", "opening_hours", TEXT, "", "10:00.16:30"),
    ("visit-and-events.html", "address", TEXT, "", "12 Netter Lane"),
    ("visit-and-events.html", "telephone", TEXT, "", "0555 0142"),
    ("visit-and-events.html", "open_day", DATE, "Date of the Open Day", "2025-06-15"),
    ("visit-and-events.html", "entry_fee", TEXT, "What entry costs", "(?i)free"),
    ("pell-2-gauge.html", "price", NUMBER, "", "289"),
    ("pell-2-gauge.html", "weight", TEXT, "", "1.15 kg"),
    ("pell-2-gauge.html", "accuracy", TEXT, "", "±4 mm"),
    ("pell-2-gauge.html", "warranty", TEXT, "", "(?i)(4|four) years"),
    ("pell-2-gauge.html", "in_stock", {"type": "integer"}, "How many are in stock", "41"),
    ("pell-2-gauge.html", "designer", TEXT, "", None),
    ("tide-rolls-story.html", "author", TEXT, "", "Ines Tarrowby"),
    ("tide-rolls-story.html", "published", DATE, "", "2024-03-06"),
    ("levelcast-docs.html", "version", TEXT, "", "3.4"),
    ("levelcast-docs.html", "released", DATE, "Release date of this version", "2024-11-18"),
    (BUCKLE, "price", NUMBER, "", "335"),
    (BUCKLE, "sku", TEXT, "", "TXSB06"),
    (MUG, "price", NUMBER, "", "60"),
    (MUG, "volume", TEXT, "", r"350\s?ml"),
    (MUG, "size", TEXT, "", r"9\.5 x 13 x 7\s?cm"),
    (CREAM, "price", NUMBER, "", "195"),
    (CREAM, "brand", TEXT, "", "Augustinus Bader"),
    (ARTICLE, "author", TEXT, "", "Chirag Bhardwaj"),
    (ARTICLE, "published", DATE, "", "2025-11-14"),
    (ARTICLE, "price", NUMBER, "", None),
)


def outcome(kind: dict[str, str], value: Any, gold: str | None) -> str:
    """Return what a value is: right, wrong, or null where there is one to find."""
    if value is None or gold is None:
        return "right" if value is gold else "null" if value is None else "wrong"
    match = re.search(gold, value) if kind == TEXT else re.fullmatch(gold, str(value))
    return "right" if match else "wrong"


def main() -> int:
    """Fill all fields, and print each with what it is."""
    pages = wcxb({page for page, *_ in FIELDS})
    counts: Counter[str] = Counter()
    started = time.perf_counter()
    for page in dict.fromkeys(page for page, *_ in FIELDS):
        own = [field for field in FIELDS if field[0] == page]
        schema = {
            "type": "object",
            "properties": {name: {**kind, "description": about} for _, name, kind, about, _ in own},
        }
        source = prunus.Page(pages[page], url=page) if page in pages else SITE / page
        filled = prunus.fill(schema, source)
        for (_, name, kind, _, gold), field in zip(own, filled.fields, strict=True):
            found = outcome(kind, field.value, gold)
            counts[found] += 1
            print(f"{found:6} {page[-30:]:30} {name:14} {str(field.value)[:60]!r} {field.how}")
    print(json.dumps({**counts, "seconds": round(time.perf_counter() - started, 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
