"""Learned weights of the extractor ``sentences``; docs/lab/log.md says from what they were learned."""

from __future__ import annotations

from typing import Final

SEGMENT: Final = {
    "bm25": (1.93, 0.58),
    "cosine": (0.01, 0.0),
    "cosine_scaled": (0.47, 0.0),
    "block": (3.76, 3.39),
    "covered": (0.71, 0.74),
    "covered_all": (1.42, 1.25),
    "covered_heading": (1.07, 0.44),
    "covered_label": (0.0, 0.0),
    "pairs": (1.33, 1.29),
    "names": (0.0, 0.65),
    "names_all": (0.0, 0.0),
    "before": (0.55, 0.0),
    "after": (0.84, 0.07),
    "news": (0.12, 0.93),
    "short": (-1.7, -2.03),
    "lines": (-2.92, -3.6),
    "stop": (0.11, 0.5),
    "asks": (-1.22, -1.14),
    "lead": (0.32, 0.32),
    "place": (-0.78, 0.06),
    "row": (1.17, 1.17),
    "pair": (-0.01, -0.01),
    "list": (-0.43, -0.43),
    "code": (0.0, 0.0),
    "row_covered": (0.11, 0.11),
    "labelled": (0.92, 0.92),
    "one_cell": (-1.23, -1.23),
    "key_covered": (0.48, 0.73),
    "extreme": (3.0, 3.0),
    "extreme_other": (0.0, 0.0),
    "end_row": (2.56, 2.56),
    "beside_row": (3.88, 3.88),
    "counted": (0.8, 0.2),
    "fits_number": (3.5, 1.46),
    "fits_date": (2.29, 2.75),
    "fits_name": (1.68, 1.95),
    "fits_place": (1.3, 1.38),
    "fits_money": (0.84, 0.84),
    "fits_percent": (0.91, 0.66),
    "fits_measure": (0.47, 0.71),
    "fits_reason": (1.27, 1.27),
    "fits_meaning": (0.72, 0.77),
}
"""Weight of each feature of a segment (``_features.NAMES``): in rows of tables second, in other segments first."""

BEARS: Final = {
    "one": -2.86,
    "anywhere": 1.44,
    "top": 0.62,
    "single": 0.91,
    "together": 2.47,
    "cosine": 2.5,
    "cosine_most": 2.69,
    "names": 0.55,
    "pairs": 2.56,
    "terms": -1.41,
    "unspaced": -0.94,
    "unspaced_anywhere": 0.84,
    "unspaced_together": 1.0,
    "unspaced_pairs": 1.19,
    "unspaced_cosine": -1.13,
}
"""Weight of each sign that pages bear on a question (``_features.BEARING``); below a sum of 0 nothing is chosen."""

MARGIN: Final = {"one": 4.0, "first": 2.0, "last": 1.0, "bridge": 1.0, "missing": 4.0}
"""By how much a further segment may be worse than the best one.

``one``: segments of one page. ``first``, ``last``: of several pages, where the chosen segments hold none of the
question's terms, and where they hold all; ``first`` also for a page of which nothing is chosen, if it says as much of
the question. ``bridge`` is added to a segment of a page that a chosen segment names, and ``missing`` times the share of
the terms that it holds and no chosen one does. Chosen by hand on the dev halves.
"""
