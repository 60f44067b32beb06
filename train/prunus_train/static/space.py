"""The space that the static vectors live in: the teachers' spaces side by side, turned and shortened.

One teacher knows English only, the other a hundred languages. Where a text has the vector of one alone, a linear map
that was learned from English texts with both tells the other. So all languages share one space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


def centred(vectors: Vectors, groups: NDArray[np.int64]) -> Vectors:
    """Subtract the mean of each group of texts, and scale to unit norm.

    :param groups: number of each text's group (its language and kind), int64 [texts].
    """
    found = vectors.copy()
    if not len(found):
        return found
    overall = vectors.mean(0)
    for group in np.unique(groups):
        members = groups == group
        share = min(1.0, members.sum() / 100)  # the mean of a few texts says more of them than of their language
        found[members] -= share * vectors[members].mean(0) + (1 - share) * overall
    return unit(found)


def unit(vectors: Vectors) -> Vectors:
    """Scale to unit norm; a zero vector stays."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms == 0, 1, norms), np.float32)


def linear(source: Vectors, target: Vectors, strength: float = 0.02) -> Vectors:
    """Return the map [source, target] of least squares with a penalty.

    :param strength: of the penalty, as a share of the number of texts per dimension of unit variance.
    """
    gram = source.T.astype(np.float64) @ source
    gram += strength * len(source) / source.shape[1] * np.eye(len(gram)) * 10
    return np.asarray(np.linalg.solve(gram, source.T.astype(np.float64) @ target), np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Turns teachers' vectors into targets.

    :param to_second: map from the first teacher's space to the second's.
    :param to_first: the other way.
    :param axes: principal axes of both side by side, [first + second, dimensions].
    """

    to_second: Vectors
    to_first: Vectors
    axes: Vectors

    def first(self, vectors: Vectors) -> Vectors:
        """Return targets for texts with vectors of the first teacher."""
        return unit(_beside(vectors, unit(vectors @ self.to_second)) @ self.axes)

    def second(self, vectors: Vectors) -> Vectors:
        """Return targets for texts with vectors of the second teacher."""
        return unit(_beside(unit(vectors @ self.to_first), vectors) @ self.axes)

    def both(self, first: Vectors, second: Vectors) -> Vectors:
        """Return targets for texts with vectors of both teachers."""
        return unit(_beside(first, second) @ self.axes)


def learn(both: tuple[Vectors, Vectors], first: Vectors, second: Vectors, dimensions: int) -> Space:
    """Learn the space.

    :param both: vectors of texts by both teachers.
    :param first, second: vectors of texts by one teacher alone, as many as the other's for equal weight.
    """
    there, back = linear(*both), linear(both[1], both[0])
    everything = np.concatenate(
        [_beside(*both), _beside(first, unit(first @ there)), _beside(unit(second @ back), second)]
    )
    spread = everything.T.astype(np.float64) @ everything
    axes = np.linalg.eigh(spread)[1][:, ::-1][:, :dimensions]
    return Space(there, back, np.asarray(axes, np.float32))


def _beside(first: Vectors, second: Vectors) -> Vectors:
    return np.concatenate([first, second], axis=1)
