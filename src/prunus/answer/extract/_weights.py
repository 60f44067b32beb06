"""Learned weights of the extractor ``sentences``; docs/lab/log.md says from what they were learned."""

from __future__ import annotations

from typing import Final

SEGMENT: Final = {
    "bm25": (1.9, 0.58),
    "cosine": (0.13, -0.81),
    "cosine_scaled": (0.78, -0.07),
    "block": (3.74, 3.68),
    "covered": (0.6, 0.65),
    "covered_all": (1.49, 1.46),
    "covered_heading": (1.17, 0.78),
    "covered_label": (-0.45, -0.63),
    "pairs": (1.34, 1.36),
    "names": (0.15, 0.87),
    "names_all": (-0.57, -0.31),
    "before": (0.62, -0.55),
    "after": (0.81, 0.02),
    "news": (0.13, 0.96),
    "short": (-1.71, -2.03),
    "lines": (-2.92, -3.6),
    "stop": (0.06, 0.51),
    "asks": (-1.2, -1.11),
    "lead": (0.27, 0.27),
    "place": (-0.87, 0.05),
    "row": (1.32, 1.32),
    "pair": (-0.01, -0.01),
    "list": (-0.42, -0.42),
    "code": (0.0, 0.0),
    "row_covered": (0.08, 0.08),
    "labelled": (0.95, 0.95),
    "one_cell": (-1.24, -1.24),
    "key_covered": (0.51, 0.76),
    "extreme": (3.02, 3.02),
    "extreme_other": (-0.08, -0.08),
    "end_row": (2.55, 2.55),
    "beside_row": (3.97, 3.97),
    "counted": (0.75, 0.19),
    "fits_number": (3.47, 1.45),
    "fits_date": (2.3, 2.77),
    "fits_name": (1.56, 1.91),
    "fits_place": (1.29, 1.37),
    "fits_money": (0.83, 0.83),
    "fits_percent": (0.91, 0.7),
    "fits_measure": (0.32, 0.58),
    "fits_reason": (1.36, 1.36),
    "fits_meaning": (0.74, 0.79),
}
"""Weight of each feature of a segment (``_features.NAMES``): in rows of tables second, in other segments first."""

BEARS: Final = {
    "one": -2.87,
    "anywhere": 1.39,
    "top": 0.63,
    "single": 0.94,
    "together": 2.55,
    "cosine": 2.45,
    "cosine_most": 2.69,
    "names": 0.54,
    "pairs": 2.52,
    "terms": -1.39,
    "unspaced": -0.93,
    "unspaced_anywhere": 0.84,
    "unspaced_together": 1.0,
    "unspaced_pairs": 1.19,
    "unspaced_cosine": -1.13,
}
"""Weight of each sign that pages bear on a question (``_features.BEARING``); below a sum of 0 nothing is chosen."""

MARGIN: Final = {"one": 2.0, "first": 2.0, "last": 1.0, "bridge": 1.0}
"""By how much a further segment may be worse than the best one.

``one``: segments of one page. ``first``, ``last``: of several pages, where the chosen segments hold none of the
question's terms, and where they hold all. ``bridge`` is added to a segment of a page that a chosen segment names.
"""
