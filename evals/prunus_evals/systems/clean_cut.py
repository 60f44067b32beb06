"""The cleaned HTML of Prunus, cut at the budget: ``whole:clean`` and ``whole:lean`` under an older name.

It is the baseline that block pruning must beat. Variant ``clean`` is the output of ``prunus.clean``, with the addresses
of links and images; ``lean``, the stronger one, writes no addresses, as pruned output does.
"""

from __future__ import annotations

from prunus_evals.records import System
from prunus_evals.systems._variants import Variant
from prunus_evals.systems.whole import Whole
from prunus_evals.tokens import Counter

VARIANTS = ("clean", "lean")


def make(counter: Counter, variant: str) -> System:
    """Return the system with this style."""
    return Whole(f"clean_cut:{variant}", Variant(variant, {}), counter)
