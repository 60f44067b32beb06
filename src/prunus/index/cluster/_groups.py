"""Helpers of all clusterers: make groups that keep the limits of a parent's children."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...core.ports import ClusterItems, ClusterLimits, Ints


def whole_layer(items: ClusterItems, limits: ClusterLimits) -> list[Ints] | None:
    """Return a layer that fits under one parent as its only group; None for a layer that needs clustering."""
    count = len(items.tokens)
    if not count:
        return []
    small = 2 * count <= 3 * limits.fan_out
    if count == 1 or (small and limits.fits(count, int(np.sum(items.tokens)))):
        return [np.arange(count)]
    return None


def windows(members: Sequence[int], tokens: Ints, limits: ClusterLimits) -> Iterator[list[int]]:
    """Cut members, in their order, into groups of at most ``fan_out`` that keep the limits."""
    group: list[int] = []
    total = 0
    for member in members:
        size = int(tokens[member])
        if group and (len(group) >= max(2, limits.fan_out) or not limits.fits(len(group) + 1, total + size)):
            yield group
            group, total = [], 0
        group.append(member)
        total += size
    if group:
        yield group


def finish(groups: Sequence[Sequence[int]], items: ClusterItems, limits: ClusterLimits) -> list[Ints]:
    """Return disjoint groups that keep the limits: groups over the limits are cut, lone items join other groups.

    Two items or more always give fewer groups than items, so that the layers end in a root.
    """
    kept: list[list[int]] = []
    lone: list[int] = []
    for group in groups:
        members = sorted(int(member) for member in group)
        if limits.fits(len(members), int(np.sum(items.tokens[members]))):
            parts: Iterator[list[int]] = iter([members])
        else:
            parts = windows(members, items.tokens, limits)
        for part in parts:
            if len(part) == 1:
                lone += part
            else:
                kept.append(part)
    _place_lone(sorted(lone), kept, items, limits)
    return [np.asarray(sorted(group), np.int64) for group in sorted(kept, key=min)]


def _place_lone(lone: list[int], kept: list[list[int]], items: ClusterItems, limits: ClusterLimits) -> None:
    """Add each lone item to the nearest group with room; items without such a group are grouped in windows."""
    unplaced: list[int] = []
    if kept and lone:
        means = np.stack([items.vectors[group].mean(axis=0) for group in kept])
        totals = [int(np.sum(items.tokens[group])) for group in kept]
        for member in lone:
            size = int(items.tokens[member])
            for index in np.argsort(-(means @ items.vectors[member]), kind="stable")[:8].tolist():
                if limits.fits(len(kept[index]) + 1, totals[index] + size):
                    kept[index].append(member)
                    totals[index] += size
                    break
            else:
                unplaced.append(member)
    else:
        unplaced = lone
    kept += windows(unplaced, items.tokens, limits)
