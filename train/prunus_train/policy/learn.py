"""Learn a policy from the rewards of walks: REINFORCE with a learned baseline; DQN with replay and a target network.

Both draw from one seeded generator and compute on one thread, so that the same episodes give the same policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prunus_train.policy.episodes import Episodes
from prunus_train.policy.network import Policy, scaled, walked
from prunus_train.policy.walk import INPUTS, Walk

Report = Callable[[Mapping[str, Any]], None]

_Turn = tuple[NDArray[np.int64], Any, NDArray[np.bool_], NDArray[np.float32]]
"""A turn of a batch of walks: the open walks, their states, the choices, and the rewards."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a policy is trained; chosen by hand.

    :param price: reward that is lost if the whole budget is spent.
    :param steps: batches of walks.
    :param batch: walks of a batch.
    :param hidden: width of the hidden layer.
    :param rate: learning rate of Adam; it falls to a tenth in the course of the training.
    :param entropy: weight of the entropy of the choices (REINFORCE), which falls to 0.
    :param replay: choices that are held, the last ones (DQN).
    :param draws: choices that one update learns from (DQN).
    :param updates: updates after each batch (DQN).
    :param ahead: turns whose rewards count as they were, before the target network's value (DQN).
    :param target: how far the target network follows the trained one at each update (DQN).
    :param explore: share of the choices at random at the start, and from the middle on (DQN).
    :param tell: batches between two lines of the log.
    """

    price: float = 0.1
    seed: int = 0
    steps: int = 600
    batch: int = 128
    hidden: int = 48
    rate: float = 1e-3
    entropy: float = 0.01
    replay: int = 200_000
    draws: int = 1024
    updates: int = 16
    ahead: int = 10
    target: float = 0.01
    explore: tuple[float, float] = (0.3, 0.02)
    tell: int = 50


_START: Final = 1.0
"""Lead of keeping before the training: most of what is offered first is worth to be kept."""


def figures(episodes: Episodes, price: float, policy: Policy | None) -> dict[str, float]:
    """Return the means over episodes: ``return``, the survival of answers, and the share of the budget that is spent.

    :param policy: None keeps every block that fits.
    """
    walk = walked(episodes, price, policy)
    survival, spent = float(walk.survival().mean()), float(walk.spent().mean())
    return {"return": round(survival - price * spent, 4), "survival": round(survival, 4), "spent": round(spent, 4)}


def reinforce(train: Episodes, held: Episodes, plan: Plan, report: Report) -> Policy:
    """Return a policy that is trained by REINFORCE; what a state is worth on average is learned beside it.

    :param held: episodes for the log alone.
    """
    import torch

    with _OneThread(torch):
        draw = np.random.default_rng(plan.seed)
        mean, scale = _scales(train, plan, draw)
        actor, critic = _network(torch, plan, 2), _network(torch, plan, 1)
        with torch.no_grad():
            actor[-1].bias += torch.tensor([0.0, _START])
        optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], plan.rate)
        for step in range(plan.steps):
            _slow(optimizer, plan, step)
            walk = Walk(train.part(draw.integers(0, len(train), plan.batch)), plan.price)
            seen: list[_Turn] = []
            while len(rows := walk.open()):
                states = torch.from_numpy(scaled(walk.states(rows), mean, scale))
                with torch.no_grad():
                    chance = torch.softmax(actor(states), 1)[:, 1].numpy()
                keep = draw.random(len(rows)) < chance
                seen.append((rows, states, keep, walk.step(rows, keep)))
            if not seen:
                continue
            gains = _gains(seen, plan.batch)
            states = torch.cat([one[1] for one in seen])
            chosen = torch.from_numpy(np.concatenate([one[2] for one in seen]).astype(np.int64))
            wanted = torch.from_numpy(gains)
            worth = critic(states)[:, 0]
            lead = wanted - worth.detach()
            lead = lead / (lead.std() + 1e-6) if len(lead) > 1 else lead
            logs = torch.log_softmax(actor(states), 1)
            entropy = -(logs.exp() * logs).sum(1).mean()
            loss = -(logs.gather(1, chosen[:, None])[:, 0] * lead).mean() + ((worth - wanted) ** 2).mean()
            loss = loss - plan.entropy * (1 - step / plan.steps) * entropy
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
            optimizer.step()
            _tell(report, plan, step, walk, held, lambda: _policy("reinforce", actor, mean, scale))
        return _policy("reinforce", actor, mean, scale)


def dqn(train: Episodes, held: Episodes, plan: Plan, report: Report) -> Policy:
    """Return a policy that is trained by double deep Q-learning over several turns: the target network.

    :param held: episodes for the log alone.
    """
    import torch

    with _OneThread(torch):
        draw = np.random.default_rng(plan.seed)
        mean, scale = _scales(train, plan, draw)
        network, target = _network(torch, plan, 2), _network(torch, plan, 2)
        target.load_state_dict(network.state_dict())
        optimizer = torch.optim.Adam(network.parameters(), plan.rate)
        memory = _Replay(plan.replay)
        for step in range(plan.steps):
            _slow(optimizer, plan, step)
            part = min(1.0, 2 * step / plan.steps)
            explore = plan.explore[0] + part * (plan.explore[1] - plan.explore[0])
            walk = Walk(train.part(draw.integers(0, len(train), plan.batch)), plan.price)
            seen: list[_Turn] = []
            while len(rows := walk.open()):
                states = scaled(walk.states(rows), mean, scale)
                with torch.no_grad():
                    values = network(torch.from_numpy(states)).numpy()
                chance = draw.random(len(rows))
                keep = np.where(chance < explore, draw.random(len(rows)) < 0.5, values[:, 1] >= values[:, 0])
                seen.append((rows, states, keep, walk.step(rows, keep)))
            if seen:
                memory.add(*_steps_ahead(seen, plan.batch, plan.ahead))
            for _ in range(plan.updates if memory.size else 0):
                _learn(torch, network, target, optimizer, memory.drawn(draw, plan.draws))
                with torch.no_grad():
                    for slow, fast in zip(target.parameters(), network.parameters(), strict=True):
                        slow.lerp_(fast, plan.target)
            _tell(report, plan, step, walk, held, lambda: _policy("dqn", target, mean, scale))
        return _policy("dqn", target, mean, scale)


def _steps_ahead(seen: list[_Turn], size: int, ahead: int) -> tuple[NDArray[Any], ...]:
    """Return the choices of walks: state, choice, rewards of some turns, the state after them, and whether it ended.

    :param size: walks of the batch; all that are open choose at every turn.
    """
    turns = len(seen) + ahead
    states, rewards = np.zeros((turns, size, INPUTS), np.float32), np.zeros((turns, size), np.float32)
    open_ = np.zeros((turns, size), bool)
    for turn, (rows, state, _, reward) in enumerate(seen):
        states[turn, rows], rewards[turn, rows], open_[turn, rows] = state, reward, True
    gained = np.zeros((len(seen), size), np.float32)
    for turn in range(ahead):
        gained += rewards[turn : turn + len(seen)]
    own = open_[: len(seen)]
    keep = np.concatenate([keep for _, _, keep, _ in seen])
    return states[: len(seen)][own], keep, gained[own], states[ahead:][own], ~open_[ahead:][own]


def _learn(torch: Any, network: Any, target: Any, optimizer: Any, drawn: tuple[NDArray[Any], ...]) -> None:
    """Bring the values of choices closer to reward plus what the target network says of the best next choice."""
    states, keep, reward, after, ended = map(torch.from_numpy, drawn)
    with torch.no_grad():
        best = network(after).argmax(1, keepdim=True)
        wanted = reward + target(after).gather(1, best)[:, 0] * ~ended
    told = network(states).gather(1, keep[:, None].long())[:, 0]
    loss = torch.nn.functional.smooth_l1_loss(told, wanted)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()


class _Replay:
    """The last choices, with their rewards and what followed."""

    def __init__(self, most: int) -> None:
        kinds: tuple[Any, ...] = (np.float32, np.bool_, np.float32, np.float32, np.bool_)
        widths = ((INPUTS,), (), (), (INPUTS,), ())
        self.parts = [np.zeros((most, *width), kind) for width, kind in zip(widths, kinds, strict=True)]
        self.most, self.size, self.next = most, 0, 0

    def add(self, *values: NDArray[Any]) -> None:
        """Add choices; the oldest ones give way."""
        places = (self.next + np.arange(len(values[0]))) % self.most
        for part, value in zip(self.parts, values, strict=True):
            part[places] = value
        self.next = (self.next + len(places)) % self.most
        self.size = min(self.most, self.size + len(places))

    def drawn(self, draw: np.random.Generator, count: int) -> tuple[NDArray[Any], ...]:
        """Return some of the choices."""
        places = draw.integers(0, self.size, count)
        return tuple(part[places] for part in self.parts)


LEARNERS: Final = {"reinforce": reinforce, "dqn": dqn}


class _OneThread:
    """Torch on one thread: sums have the same order on every machine."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def __enter__(self) -> None:
        self.before = self.torch.get_num_threads()
        self.torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        self.torch.set_num_threads(self.before)


def _network(torch: Any, plan: Plan, outputs: int) -> Any:
    """Return a network with one hidden layer, its weights drawn by the seed."""
    draw = torch.Generator().manual_seed(plan.seed)
    layers = torch.nn.Linear(INPUTS, plan.hidden), torch.nn.Linear(plan.hidden, outputs)
    with torch.no_grad():
        for layer, spread in zip(layers, (INPUTS**-0.5, 0.1 * plan.hidden**-0.5), strict=True):
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=draw) * spread)
            layer.bias.zero_()
    return torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1])


def _scales(train: Episodes, plan: Plan, draw: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return mean and deviation of each input, over walks that keep and drop at random."""
    walk, seen = Walk(train.part(draw.integers(0, len(train), min(512, 4 * len(train)))), plan.price), []
    while len(rows := walk.open()):
        seen.append(walk.states(rows))
        walk.step(rows, draw.random(len(rows)) < 0.7)
    states = np.concatenate(seen) if seen else np.zeros((1, INPUTS), np.float32)
    return states.mean(axis=0), states.std(axis=0) + np.float32(0.02)


def _gains(seen: list[_Turn], size: int) -> Any:
    """Return the sum of the rewards from each choice to the end of its walk, in the order of the choices."""
    total, parts = np.zeros(size, np.float32), []
    for rows, _, _, reward in reversed(seen):
        total[rows] += reward
        parts.append(total[rows].copy())
    return np.concatenate(parts[::-1])


def _slow(optimizer: Any, plan: Plan, step: int) -> None:
    for group in optimizer.param_groups:
        group["lr"] = plan.rate * (1 - 0.9 * step / plan.steps)


def _tell(report: Report, plan: Plan, step: int, walk: Walk, held: Episodes, policy: Callable[[], Policy]) -> None:
    """Report the return of a batch, with its draws, and the figures of held-out episodes without any."""
    if (step + 1) % plan.tell and step + 1 != plan.steps:
        return
    made = policy()
    batch = walk.survival() - plan.price * walk.spent()
    found = figures(held, plan.price, made)
    report({"method": made.method, "step": step + 1, "batch_return": round(float(batch.mean()), 4), "held": found})


def _policy(method: str, network: Any, mean: NDArray[np.float32], scale: NDArray[np.float32]) -> Policy:
    """Return the network as arrays; those of torch have outputs first."""
    first, last = network[0], network[2]
    weights, biases = ([one.detach().numpy().copy() for one in (getattr(first, part), getattr(last, part))]
                       for part in ("weight", "bias"))  # fmt: skip
    return Policy(method, mean, scale, (weights[0].T.copy(), weights[1].T.copy()), (biases[0], biases[1]))
