"""The pip command that adds a missing part to this installation of Prunus.

The name ``prunus`` alone is right only where it was installed from a registry. A clone, a wheel file or a repository is
named by its path or address, as pip wrote it down in ``direct_url.json``.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote
from typing import Final
from urllib.parse import unquote, urlsplit

_REPOSITORY: Final = Path(__file__).parents[3]
"""The clone that holds this file, where Prunus runs from its sources."""


def pip_install(*extras: str) -> str:
    """Return the command that installs extras, as ``pip install -e '/clone[server]'``.

    Where the folder or wheel that Prunus was installed from is gone, the command names the extras' packages.
    """
    option, source = installed_from()
    named = f"[{','.join(extras)}]"
    if not source:
        return f"pip install {quote(f'prunus{named}')}"
    if "://" in source:
        return f"pip install {quote(f'prunus{named} @ {source}')}"
    if Path(source).exists():
        return f"pip install {option}{quote(source + named)}"
    return f"pip install {' '.join(map(quote, _packages(extras)))}"


def pip_install_folder(folder: str) -> str:
    """Return the command that installs a distribution of this repository: ``evals`` or ``train``."""
    option, source = installed_from()
    if "+" in source.partition("://")[0]:
        separator = "&" if "#" in source else "#"
        return f"pip install {quote(f'prunus-{folder} @ {source}{separator}subdirectory={folder}')}"
    path = Path(source, folder)
    if source and (path / "pyproject.toml").is_file():
        return f"pip install {option}{quote(str(path))}"
    return f"pip install ./{folder} (in a clone of Prunus)"


def installed_from() -> tuple[str, str]:
    """Return pip's option ``-e`` or nothing, and the path or address that pip installed; '' for a registry."""
    try:
        text = distribution("prunus").read_text("direct_url.json")
    except PackageNotFoundError:
        return ("-e ", str(_REPOSITORY)) if (_REPOSITORY / "pyproject.toml").is_file() else ("", "")
    if not text:
        return "", ""
    origin = json.loads(text)
    if "vcs_info" in origin:
        control, revision = origin["vcs_info"]["vcs"], origin["vcs_info"].get("requested_revision")
        return "", f"{control}+{origin['url']}" + (f"@{revision}" if revision else "")
    if not origin["url"].startswith("file:"):
        return "", origin["url"]
    option = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return option, str(Path(unquote(urlsplit(origin["url"]).path)))


def _packages(extras: tuple[str, ...]) -> list[str]:
    """Return what extras require, without conditions, from the metadata of the installation."""
    wanted = re.compile(rf"""extra == ['"]({"|".join(map(re.escape, extras))})['"]""")
    lines = [line.partition(";") for line in distribution("prunus").requires or ()]
    return list(dict.fromkeys(package.strip() for package, _, condition in lines if wanted.search(condition)))
