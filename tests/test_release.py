"""A release names what was unreleased, and every distribution has its version."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    found = importlib.util.spec_from_file_location("release", ROOT / "deploy" / "release.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def clone(release: ModuleType, tmp_path: Path) -> Path:
    for name in (*release.VERSIONED, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_version_is_written_everywhere_and_the_changelog_is_cut(release: ModuleType, clone: Path) -> None:
    before = (clone / "CHANGELOG.md").read_text("utf-8")
    release.cut(clone, "9.2.0", "2030-01-02")
    after = (clone / "CHANGELOG.md").read_text("utf-8")
    assert after.replace("\n## 9.2.0 (2030-01-02)\n", "", 1) == before
    assert after.index("## Unreleased\n\n## 9.2.0 (2030-01-02)\n") > 0
    for name in release.VERSIONED:
        old, new = (folder.joinpath(name).read_text("utf-8").splitlines() for folder in (ROOT, clone))
        changed = [line for line, other in zip(new, old, strict=True) if line != other]
        assert len(changed) == 1 and '"9.2.0"' in changed[0]
    assert release.version_of(clone) == "9.2.0"


def test_what_cannot_be_released_is_one_line(release: ModuleType, clone: Path) -> None:
    with pytest.raises(SystemExit, match="is no version"):
        release.cut(clone, "new", "2030-01-02")
    release.cut(clone, "9.2.0", "2030-01-02")
    with pytest.raises(SystemExit, match="in the changelog already"):
        release.cut(clone, "9.2.0", "2030-01-02")
    with pytest.raises(SystemExit, match="nothing is unreleased"):
        release.cut(clone, "9.3.0", "2030-01-02")
