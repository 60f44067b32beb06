"""Language models that are served on this machine already: they are named as a hint, and never used unasked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..core.errors import PrunusError, one_line
from ..core.settings import Settings
from ..web.json_client import WRONG_SHAPE, Service
from ..web.reader import make_door

_SERVERS: Final = ("http://127.0.0.1:11434/v1", "http://127.0.0.1:8080/v1")
"""The usual addresses of Ollama and of llama.cpp."""
START: Final = (
    ("ollama run qwen3:4b", "http://127.0.0.1:11434/v1#qwen3:4b"),
    ("llama-server -m MODEL.gguf", "http://127.0.0.1:8080/v1#MODEL"),
)
"""How a model is started, and how it is then named."""
_SECONDS: Final = 0.5
_MOST: Final = 5


def local_models(settings: Settings, servers: Sequence[str] = _SERVERS) -> list[str]:
    """Return the specs of the models that servers of this machine list, those of Prunus itself left out.

    :param servers: addresses of OpenAI's API.
    """
    door = make_door(settings)
    specs: list[str] = []
    for server in servers:
        try:
            listed = Service(f"{server}/models", door, seconds=_SECONDS, tries=1).get()["data"]
            names = [str(model["id"]) for model in listed if model.get("owned_by") != "prunus"]
        except (PrunusError, *WRONG_SHAPE):  # nothing runs there, or something else
            continue
        specs += [f"{server}#{one_line(name, longest=100)}" for name in names[:_MOST]]
    return specs
