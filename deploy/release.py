"""Build all distributions into ``dist/release``, check them with twine, and write their SHA-256 sums.

    python deploy/release.py            # of the version that the repository has
    python deploy/release.py 0.2.0      # first writes the version, and gives its name to "Unreleased" in the changelog

It needs hatchling and twine. The wheel of ``prunus`` is built twice: compiled for this platform, and pure.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "dist" / "release"
VERSIONED = ("src/prunus/core/version.py", "evals/pyproject.toml", "train/pyproject.toml")
"""Files with a version; the first says that of the others."""
_VERSION = re.compile(r'^(__version__|version) = "([^"]+)"$', re.MULTILINE)


def version_of(root: Path) -> str:
    """Return the version of a clone."""
    found = _VERSION.search((root / VERSIONED[0]).read_text("utf-8"))
    assert found is not None
    return found[2]


def cut(root: Path, version: str, day: str) -> None:
    """Write a version into a clone, and name what the changelog calls unreleased.

    :raises SystemExit: it is no version, it is in the changelog already, or nothing is unreleased.
    """
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text("utf-8")
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        sys.exit(f"{version} is no version; write it as 0.2.0")
    if f"\n## {version} " in text:
        sys.exit(f"{version} is in the changelog already")
    head, mark, rest = text.partition("## Unreleased\n")
    if not mark or not rest.partition("\n## ")[0].strip():
        sys.exit("CHANGELOG.md: nothing is unreleased")
    changelog.write_text(f"{head}{mark}\n## {version} ({day})\n{rest}", "utf-8")
    for name in VERSIONED:
        path = root / name
        path.write_text(_VERSION.sub(rf'\1 = "{version}"', path.read_text("utf-8"), count=1), "utf-8")


def built() -> list[Path]:
    """Build the distributions and return them."""
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir(parents=True)
    hatchling = [sys.executable, "-m", "hatchling", "build", "-d", str(RELEASE)]
    pure = {**os.environ, "PRUNUS_PURE": "1"}
    subprocess.run([*hatchling, "-t", "wheel"], cwd=ROOT, check=True)
    for folder in (ROOT, ROOT / "evals", ROOT / "train"):
        subprocess.run([*hatchling, "-t", "sdist", "-t", "wheel"], cwd=folder, env=pure, check=True)
    return sorted(RELEASE.iterdir())


def main(given: list[str]) -> None:
    """Build a release."""
    if given:
        cut(ROOT, given[0], datetime.now(UTC).date().isoformat())
    files = built()
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (RELEASE / "SHA256SUMS").write_text("".join(sums), "utf-8")
    print(f"Prunus {version_of(ROOT)}: {len(files)} files in {RELEASE.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
