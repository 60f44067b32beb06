"""A small library of documents about known subjects, and indexes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from prunus.index.build import Builder, BuildSettings, DocumentSource
from prunus.index.cluster import ward
from prunus.index.store.file.engine import Engine as Store
from prunus.index.summarize import extractive
from prunus.models.embed import static
from prunus.models.tokens import approx
from prunus.pages.clean.walk import clean_tree

EMBEDDER = static.Engine()
COUNTER = approx.Engine()

SUBJECTS = {
    "tides": "The tide at the harbour rises with the moon. Spring tides come at full moon and neap tides at half moon.",
    "bread": "Bread dough is kneaded and left to rise. The baker folds flour, water, salt and yeast into a loaf.",
    "trains": "The night train leaves the station at nine. Passengers sleep in the second carriage behind the engine.",
    "bees": "Honey bees dance to show where flowers are. The queen lays eggs in the comb all summer.",
    "glass": "Glass is blown from molten sand at the furnace. The blower turns the pipe so that the vessel stays round.",
}


def page(name: str, paragraphs: int = 6) -> str:
    text = SUBJECTS[name]
    body = "".join(
        f"<h2>Part {i} of {name}</h2><p>{text} This is note {i} about {name}.</p>" for i in range(paragraphs)
    )
    return f"<html lang=en><title>{name}</title><h1>All about {name}</h1>{body}</html>"


def source(name: str, paragraphs: int = 6) -> DocumentSource:
    return DocumentSource(name, tree=clean_tree(page(name, paragraphs)))


def builder(folder: Path, settings: BuildSettings | None = None, **engines: Any) -> Builder:
    store = Store(folder / "index", EMBEDDER.identity, EMBEDDER.dimension, create=True)
    clusterer = engines.get("clusterer") or ward.Engine()
    summarizer = engines.get("summarizer") or extractive.Engine(EMBEDDER, COUNTER)
    settings = settings or BuildSettings(chunk_tokens=40, summary_tokens=60)
    return Builder(store, EMBEDDER, COUNTER, clusterer, summarizer, settings)


def built(folder: Path, settings: BuildSettings | None = None, **engines: Any) -> Builder:
    made = builder(folder, settings, **engines)
    made.add(source(name) for name in SUBJECTS)
    asyncio.run(made.build())
    return made
