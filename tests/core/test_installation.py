"""The pip command that adds a missing extra fits how Prunus was installed, and works."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from prunus.core import installation
from prunus.core.installation import pip_install, pip_install_folder


class Installed(Distribution):
    """A distribution whose origin is given."""

    def __init__(self, origin: object) -> None:
        self.origin = origin

    def read_text(self, filename: str) -> str | None:
        if filename == "direct_url.json":
            return json.dumps(self.origin) if self.origin else None
        return "Requires-Dist: httpx<1\nRequires-Dist: fastapi>=0.115; (os_name == 'posix') and extra == 'server'\n"

    def locate_file(self, path: object) -> Path:
        return Path("nowhere")


@pytest.mark.parametrize(
    ("origin", "extra", "folder"),
    [
        (None, "'prunus[server]'", "./evals (in a clone of Prunus)"),
        ({"url": "file://CLONE", "dir_info": {"editable": True}}, "-e 'CLONE[server]'", "-e CLONE/evals"),
        ({"url": "file://CLONE", "dir_info": {}}, "'CLONE[server]'", "CLONE/evals"),
        ({"url": "file://WHEEL", "archive_info": {}}, "'WHEEL[server]'", "./evals (in a clone of Prunus)"),
        ({"url": "file:///gone/prunus.whl", "archive_info": {}}, "'fastapi>=0.115'", "./evals (in a clone of Prunus)"),
        (
            {"url": "https://git.example/p", "vcs_info": {"vcs": "git", "commit_id": "0f", "requested_revision": "v1"}},
            "'prunus[server] @ git+https://git.example/p@v1'",
            "'prunus-evals @ git+https://git.example/p@v1#subdirectory=evals'",
        ),
    ],
)
def test_the_command_names_what_prunus_was_installed_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: dict[str, str] | None, extra: str, folder: str
) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "pyproject.toml").touch()
    wheel = tmp_path / "prunus-1-py3-none-any.whl"
    wheel.touch()

    def at_home(text: str) -> str:
        return text.replace("CLONE", str(tmp_path)).replace("WHEEL", str(wheel))

    installed = Installed(json.loads(at_home(json.dumps(origin))))
    monkeypatch.setattr(installation, "distribution", lambda _: installed)
    assert pip_install("server") == at_home(f"pip install {extra}")
    assert pip_install_folder("evals") == at_home(f"pip install {folder}")


@pytest.mark.skipif(distribution("prunus").read_text("direct_url.json") is None, reason="installed from a registry")
def test_pip_accepts_the_command_here() -> None:
    for command in (pip_install("otel", "zstd"), pip_install_folder("evals")):
        program, *arguments = shlex.split(command)
        assert program == "pip"
        options = ["--dry-run", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
        done = subprocess.run([sys.executable, "-m", "pip", *arguments, *options], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "Would install prunus-" in done.stdout and "does not provide the extra" not in done.stderr
