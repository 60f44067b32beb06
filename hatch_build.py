"""Build hook: compile the hot modules into the wheel with mypyc, where a C compiler is available.

A wheel holds the compiled modules and their Python source. Without a compiler, or with ``PRUNUS_PURE=1``, the wheel is
pure Python; it behaves the same and is slower. Editable installs are never compiled, so that edits take effect.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = """
    evidence/blocks pages/clean/walk evidence/breadcrumbs evidence/cut
    pages/clean/elements pages/grid pages/clean/tree_builder pages/clean/hidden pages/clean/css pages/write/inline
    pages/write/markup pages/write/plain pages/clean/rules pages/write/style
    pages/node_arrays pages/tree evidence/greedy core/text/words
""".split()
"""The modules in which cleaning and pruning spend most of their time."""

_FLAGS = "-O3 -fvisibility=hidden -fno-semantic-interposition"
"""Compiler flags; the two visibility flags let the modules call each other directly, which saves 1.3 % of cleaning."""

_SETUP = """
import sys
from mypyc.build import mypycify
from setuptools import setup
modules = mypycify(
    ["--ignore-missing-imports", *sys.argv.pop().split(",")], opt_level="3", debug_level="0", group_name="prunus"
)
setup(name="prunus", packages=[], ext_modules=modules)
"""


class CompileHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the hot modules into the wheel."""

    def dependencies(self) -> list[str]:
        """Return the packages that compiling needs, besides a C compiler; without numpy's types it fails."""
        return [] if os.environ.get("PRUNUS_PURE") else ["mypy>=1.13", "numpy>=2", "setuptools"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the modules, and add the results to the wheel; on failure warn and leave the wheel pure Python."""
        if version == "editable" or os.environ.get("PRUNUS_PURE"):
            return
        self._folder = Path(tempfile.mkdtemp(prefix="prunus-"))
        shutil.copytree(Path(self.root) / "src" / "prunus", self._folder / "prunus")
        files = ",".join(f"prunus/{name}.py" for name in COMPILED)
        command = [sys.executable, "-c", _SETUP, "build_ext", "--inplace", files]
        cflags = os.environ.get("CFLAGS") or sysconfig.get_config_var("CFLAGS") or ""
        flags = {"CFLAGS": f"{cflags} {_FLAGS}"}  # replaces Python's own flags, so add to them; MSVC ignores CFLAGS
        done = subprocess.run(
            command, cwd=self._folder, env=os.environ | flags, capture_output=True, text=True, check=False
        )
        built = [path for path in self._folder.rglob("*") if path.suffix in (".so", ".pyd")]
        built = [path for path in built if "build" not in path.relative_to(self._folder).parts]
        if done.returncode or len(built) != len(COMPILED) + 1:  # mypyc adds one shared module
            last = ((done.stderr.strip() or done.stdout.strip()).splitlines() or ["nothing was built"])[-1]
            self.app.display_warning(f"the wheel is pure Python: compiling failed ({last})")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for path in built:
            build_data["force_include"][str(path)] = str(path.relative_to(self._folder))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the compiler's temporary folder."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
