"""Train the model of main content: two small networks over the features of a page's units.

The pages are the dev halves of ``clean/articles`` (people marked the articles) and ``clean/readability`` (the output of
another tool), and ``clean/wcxb``, the dev pages of WCXB, of seven kinds (people marked them). A unit is content if
most of its words stand in the marked text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import compress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from prunus.pages.clean.walk import walk_page
from prunus.pages.main.features import FEATURES, UNSURE, Floats, Units, units_of
from prunus.pages.main.keep import Network, chosen, with_context
from prunus_evals.data import rows
from prunus_evals.parts import OfKind, by_kind, load_kinds
from prunus_evals.split import Half, Wanted, half

_WORD: Final = re.compile(r"\w+")
_ALONE: Final = 0.7  # of a word, where the words beside it are not marked
_FOLDS: Final = 5
_EPOCHS: Final = 10
_HIDDEN: Final = 12
_BATCH: Final = 256
_DECAY: Final = 0.002
_NAMELESS: Final = 0.15
"""Share of the rows that are seen without ``UNSURE``: many sites have names that say nothing."""

_LEAST: Final = 20  # words of the marked text; a page with fewer teaches nothing
_COMMENTS: Final = 3.0
"""Weight of comments: few pages of the training data hold any."""

_SETS: Final = {"clean/articles": "article_body", "clean/readability": "expected_html"}
"""The sets, and the field of each that holds what was marked."""

_CAPTION, _COMMENT = FEATURES.index("near-name:caption"), FEATURES.index("name:comment")
_FIGCAPTION, _TITLE = FEATURES.index("inside:figcaption"), FEATURES.index("inside:title")


@dataclass(frozen=True, slots=True)
class Marked:
    """The units of one page, which of them are content, and how much each counts in training."""

    units: Units
    labels: Floats
    weights: Floats


def load(of_sites: Wanted = "all") -> list[Marked]:
    """Return the marked pages of the dev halves.

    :param of_sites: the half of the sites of WCXB.
    """
    found = []
    for name, marked in _SETS.items():
        for row in rows(name):
            if half(row["id"]) == "dev":
                by_people = name != "clean/readability"
                text = row[marked] if by_people else walk_page(row[marked], "", "page")[0].canonical
                found += _marked(row["html"], text, by_people)
    for page in load_kinds(of_sites):
        found += _marked(page.html, page.marked, True)
    return found


def _marked(page: str, text: str, by_people: bool) -> list[Marked]:
    """Return a page with its labels; nothing where it teaches nothing."""
    units = units_of(*walk_page(page, "", "page", with_origins=True))
    if units is None or len(_words(text)) < _LEAST:
        return []
    labels = labels_of(units.texts, text)
    return [Marked(units, labels, _weights(units, labels, by_people))]


def check(report: Callable[[str], None]) -> dict[str, Any]:
    """Return F by kind of page for weights that were learned on the pages of other sites, for both halves."""
    pages: list[OfKind] = []
    texts: list[str] = []
    halves: tuple[Half, Half] = ("dev", "report")
    for learned, measured in (halves, halves[::-1]):
        weights = train(load(learned), report)
        first, second = Network(weights["first"]), Network(weights["second"])
        for page in load_kinds(measured):
            tree, origins = walk_page(page.html, "", "page", with_origins=True)
            units = units_of(tree, origins)
            kept = None
            if units is not None:
                kept = chosen(tree, units, second(with_context(units, first(units.features))))[0]
            pages.append(page)
            texts.append(tree.canonical if units is None or kept is None else "\n".join(compress(units.texts, kept)))
    return by_kind(pages, texts)


def labels_of(texts: Sequence[str], marked: str) -> Floats:
    """Return 1 for each text most of whose words stand in the marked text, in its order, else 0.

    Words in runs of two and more count in full, a single word less: it may be there by chance.
    """
    split = [_words(text) for text in texts]
    words = [word for own in split for word in own]
    found = np.zeros(len(words), np.float32)
    for place, _, length in SequenceMatcher(None, words, _words(marked), autojunk=False).get_matching_blocks():
        found[place : place + length] = 1.0 if length > 1 else _ALONE
    sizes = np.asarray([len(own) for own in split])
    of_each = np.bincount(np.repeat(np.arange(len(split)), sizes), found, minlength=len(split))
    return (of_each > sizes / 2).astype(np.float32)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _weights(units: Units, labels: Floats, by_people: bool) -> Floats:
    """Return how much each unit counts: by its words, each page alike."""
    features = units.features
    content = max(float((units.words * labels).sum()), 50.0)
    weights = np.sqrt(np.minimum(units.words, 150) + 0.5) / np.sqrt(content) * 4 + 0.1
    is_content = labels > 0
    in_figure = features[:, _FIGCAPTION] > 0
    if by_people:  # they left captions out, of which many belong to the page
        weights = np.where(in_figure & ~is_content, 0, weights)
    else:
        weights = np.where((features[:, _CAPTION] > 0) & ~in_figure & is_content, 0, weights * 0.7)
    weights = np.where((features[:, _COMMENT] > 0) & ~is_content, weights * _COMMENTS, weights)
    return np.where(features[:, _TITLE] > 0, 0, weights).astype(np.float32)


def train(pages: Sequence[Marked], report: Callable[[str], None]) -> dict[str, Any]:
    """Return the weights of both networks, as ``weights.json`` holds them.

    The second network is trained on numbers that the first gives for pages that it was not trained on.
    """
    features = [page.units.features for page in pages]
    values = out_of_fold(pages, features, 1)
    report(f"first network: {accuracy(pages, values):.4f} of the weight is right on other pages")
    context = [with_context(page.units, value) for page, value in zip(pages, values, strict=True)]
    report(f"second network: {accuracy(pages, out_of_fold(pages, context, 3)):.4f}")
    everything = range(len(pages))
    first, second = fit(pages, features, everything, 1), fit(pages, context, everything, 3)
    return {"features": list(FEATURES), "first": first, "second": second}


def out_of_fold(pages: Sequence[Marked], inputs: Sequence[Floats], seeds: int) -> list[Floats]:
    """Return the numbers of each page by a network that was trained on the pages of other folds."""
    found: list[Floats] = [page.labels for page in pages]
    for fold in range(_FOLDS):
        network = Network(fit(pages, inputs, [place for place in range(len(pages)) if place % _FOLDS != fold], seeds))
        for place in range(fold, len(pages), _FOLDS):
            found[place] = network(inputs[place])
    return found


def accuracy(pages: Sequence[Marked], values: Sequence[Floats]) -> float:
    """Return the share of the weight of all units that are on the right side of one half."""
    right = [((value > 0.5) == (page.labels > 0)) @ page.weights for page, value in zip(pages, values, strict=True)]
    return float(sum(right) / sum(page.weights.sum() for page in pages))


def fit(pages: Sequence[Marked], inputs: Sequence[Floats], chosen: Sequence[int], seeds: int) -> dict[str, Any]:
    """Train one network on some of the pages; several seeds become one network with the mean of their outputs."""
    rows_ = np.concatenate([inputs[place] for place in chosen]).astype(np.float64)
    labels = np.concatenate([pages[place].labels for place in chosen]).astype(np.float64)
    weights = np.concatenate([pages[place].weights for place in chosen]).astype(np.float64)
    mean, scale = rows_.mean(axis=0), rows_.std(axis=0) + 0.01
    scaled = ((rows_ - mean) / scale).clip(-4, 4)
    nameless = (-mean / scale).clip(-4, 4)
    nets = [_descend(scaled, labels, weights, nameless, np.random.default_rng(seed)) for seed in range(seeds)]
    hidden, bias, out, level = (np.concatenate([net[part] for net in nets], axis=-1) for part in range(4))
    return {
        "mean": _short(mean), "scale": _short(scale), "hidden": [_short(row) for row in hidden], "bias": _short(bias),
        "out": _short(out / seeds), "level": round(float(level.mean()), 4),
    }  # fmt: skip


def _descend(
    inputs: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any], nameless: NDArray[Any], rng: np.random.Generator
) -> list[NDArray[Any]]:
    """Return hidden weights, hidden bias, output weights and output bias by gradient descent (Adam)."""
    width = inputs.shape[1]
    parts: list[NDArray[Any]] = [
        rng.normal(0, width**-0.5, (width, _HIDDEN)), np.zeros(_HIDDEN), rng.normal(0, _HIDDEN**-0.5, _HIDDEN),
        np.zeros(1),
    ]  # fmt: skip
    speed, power = [np.zeros_like(part) for part in parts], [np.zeros_like(part) for part in parts]
    steps = _EPOCHS * -(-len(labels) // _BATCH)
    columns = np.asarray(UNSURE)
    step = 0
    for _ in range(_EPOCHS):
        order = rng.permutation(len(labels))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            seen = inputs[batch]
            without = np.flatnonzero(rng.random(len(batch)) < _NAMELESS)
            seen[np.ix_(without, columns)] = nameless[columns]
            hidden = np.tanh(seen @ parts[0] + parts[1])
            wrong = (1 / (1 + np.exp(-(hidden @ parts[2] + parts[3]))) - labels[batch]) * weights[batch] / len(batch)
            back = np.outer(wrong, parts[2]) * (1 - hidden * hidden)
            slopes = [
                seen.T @ back + _DECAY * parts[0],
                back.sum(axis=0),
                hidden.T @ wrong + _DECAY * parts[2],
                wrong.sum(),
            ]
            step += 1
            rate = 0.003 * (1 - step / (steps + 1))
            for part, slope in enumerate(slopes):
                speed[part] = 0.9 * speed[part] + 0.1 * slope
                power[part] = 0.999 * power[part] + 0.001 * slope * slope
                size = np.sqrt(power[part] / (1 - 0.999**step)) + 1e-8
                parts[part] = parts[part] - rate * speed[part] / (1 - 0.9**step) / size
    return parts


def _short(values: NDArray[Any]) -> list[float]:
    """Return numbers with three or four digits, so that the file is small."""
    return [float(f"{value:.3g}") for value in values.tolist()]


def write(weights: dict[str, Any], path: Path) -> None:
    """Write the weights as JSON, a line for each part of a network."""
    parts = [f'"features": {json.dumps(weights["features"])}']
    for name in ("first", "second"):
        lines = (f'"{key}": {json.dumps(value, separators=(",", ":"))}' for key, value in weights[name].items())
        parts.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
