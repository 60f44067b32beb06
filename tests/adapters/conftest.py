"""An index of the example site, and no telemetry of the frameworks: what they send is the user's choice, not ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.conftest import SITE

import prunus

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "false"  # read when Haystack is imported


@pytest.fixture(scope="session")
def site_index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of an index of the example site."""
    folder = tmp_path_factory.mktemp("index") / "site"
    prunus.Index.open(folder).add(SITE)
    return str(folder)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def quoted(metadata: dict[str, object]) -> list[str]:
    """Return the text at the places that metadata names, from the page itself."""
    [tree] = prunus.read(Path(str(metadata["url"]))).trees
    blocks = metadata["blocks"]
    assert isinstance(blocks, list) and blocks
    return [tree.canonical[block["start"] : block["end"]] for block in blocks]
