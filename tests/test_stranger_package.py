"""A package of somebody else, installed in an environment of its own: its scorer, search and format are found and used."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import prunus

CODE = '''
import numpy as np
from prunus.core.types import Hit, Results


class Longest:
    """Scores a block by its words."""

    name = "longest"

    def score(self, query, blocks):
        return np.asarray([float(block.words) for block in blocks.blocks])


class Shelf:
    """Finds the one page that its spec names."""

    name = "shelf"

    def __init__(self, model=""):
        self.model = model

    async def search(self, request):
        return Results((Hit("https://example.org/" + self.model, request.query, "on the shelf", engine="shelf", rank=1),))


class Shouting:
    """Reads files of lines that are shouted."""

    name = "shouting"
    suffixes = (".shout",)
    media_types = ("text/x-shout",)

    def to_html(self, page):
        return "".join(f"<p>{line.lower()}" for line in page.content.decode().splitlines())
'''

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "prunus-stranger"
version = "1.0"

[project.entry-points."prunus.scorers"]
longest = "prunus_stranger:Longest"

[project.entry-points."prunus.search_providers"]
shelf = "prunus_stranger:Shelf"

[project.entry-points."prunus.formats"]
shouting = "prunus_stranger:Shouting"
"""

USE = """
import json
from pathlib import Path
import prunus
Path("notice.shout").write_text("THE FERRY LEAVES AT NOON.")
page = "<p>short one</p><p>this is by far the longest of both paragraphs</p>"
context = prunus.prune(page, "anything?", 14, options=prunus.Options(scorer="longest", max_words=9))
print(json.dumps({
    "kept": context.text,
    "scorer": context.engines["scorer"],
    "hit": prunus.search("tides", "shelf:almanac").hits[0].url,
    "read": prunus.clean(Path("notice.shout"), "text"),
}))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that sees this one's packages, and has the stranger's package installed."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "source" / "prunus_stranger").mkdir(parents=True)
    (folder / "source" / "prunus_stranger" / "__init__.py").write_text(CODE)
    (folder / "source" / "pyproject.toml").write_text(PROJECT)
    venv.create(folder / "env")
    python = next(path for path in (folder / "env").glob("*/python*") if path.stem == "python" and path.is_file())
    here = [str(Path(prunus.__file__).parents[1]), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    inside = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    (Path(inside) / "outside.pth").write_text("\n".join(dict.fromkeys(here)))
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--no-deps"]
    done = subprocess.run(
        [*install, "--no-build-isolation", str(folder / "source")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return python


def test_its_engines_are_found_and_used(environment: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(environment), "-c", USE], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "kept": "this is by far the longest of both paragraphs",
        "scorer": "longest",
        "hit": "https://example.org/almanac",
        "read": "the ferry leaves at noon.",
    }
