"""A small network with two outputs, what it is worth to drop and to keep a block; numpy alone evaluates it."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prunus_train.errors import DataBroken
from prunus_train.policy.episodes import STATIC, Episodes
from prunus_train.policy.walk import STATE, Walk

_FORM: Final = 1
METHODS: Final = ("reinforce", "dqn")


@dataclass(frozen=True, slots=True)
class Policy:
    """A trained agent: it keeps a block if the second output is not below the first.

    :param method: how it was trained: one of ``METHODS``.
    :param mean, scale: of each input, float32 [inputs].
    :param weights, biases: of the hidden layer and of the outputs: float32 [inputs, hidden], [hidden, 2].
    """

    method: str
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    weights: tuple[NDArray[np.float32], NDArray[np.float32]]
    biases: tuple[NDArray[np.float32], NDArray[np.float32]]

    def keeps(self, states: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return whether the block of each state is kept, bool [rows]."""
        hidden = np.tanh(scaled(states, self.mean, self.scale) @ self.weights[0] + self.biases[0])
        values = hidden @ self.weights[1] + self.biases[1]
        return np.asarray(values[:, 1] >= values[:, 0], np.bool_)

    def walk(self, episodes: Episodes, price: float = 0.0) -> Walk:
        """Walk through episodes to their ends."""
        return walked(episodes, price, self)


def walked(episodes: Episodes, price: float, policy: Policy | None) -> Walk:
    """Walk through episodes by a policy; None keeps every block that fits, as greedy pruning does."""
    walk = Walk(episodes, price)
    while len(rows := walk.open()):
        walk.step(rows, np.ones(len(rows), bool) if policy is None else policy.keeps(walk.states(rows)))
    return walk


def scaled(states: NDArray[np.float32], mean: NDArray[np.float32], scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return inputs of the network: each in deviations from its mean, at most four."""
    return np.asarray(((states - mean) / scale).clip(-4, 4), np.float32)


def write(policy: Policy, path: Path) -> None:
    """Write a policy; the same policy gives the same bytes."""
    with path.open("wb") as file:
        np.savez(
            file,
            form=np.asarray(_FORM),
            names=np.asarray(_names(), dtype=np.str_),
            method=np.asarray(policy.method),
            mean=policy.mean,
            scale=policy.scale,
            weight0=policy.weights[0],
            weight1=policy.weights[1],
            bias0=policy.biases[0],
            bias1=policy.biases[1],
        )


def load(path: Path) -> Policy:
    """Read a policy.

    :raises DataBroken: the file is missing, or is no policy of this version.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            found: dict[str, Any] = {name: stored[name] for name in stored.files}
        if found["form"].item() != _FORM or tuple(found["names"].tolist()) != _names():
            raise ValueError("it is of other inputs")
        weights, biases = (found["weight0"], found["weight1"]), (found["bias0"], found["bias1"])
        inputs, hidden = weights[0].shape
        shapes = (found["mean"].shape, found["scale"].shape, weights[1].shape, biases[0].shape, biases[1].shape)
        if inputs != len(_names()) or shapes != ((inputs,), (inputs,), (hidden, 2), (hidden,), (2,)):
            raise ValueError("its layers do not fit together")
        return Policy(str(found["method"].item()), found["mean"], found["scale"], weights, biases)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).split("\n")[0]
        raise DataBroken(f"{path} is no pruning policy: {reason}; train one: prunus train policy") from error


def _names() -> tuple[str, ...]:
    return (*STATIC, *STATE)
