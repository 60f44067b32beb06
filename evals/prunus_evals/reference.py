"""The reference package ``htmlrag``, in a separate environment and process, called by JSON lines."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import weakref
from pathlib import Path
from typing import Any

from prunus_evals.errors import DataMissing, EvalError

# installed with --no-deps: the functions that are called need neither torch nor transformers nor langchain
BARE = ("htmlrag==0.1.1",)
NEEDED = ("beautifulsoup4==4.15.0", "rank-bm25==0.2.2", "numpy")
WORKER = Path(__file__).parent / "systems" / "_reference_worker.py"


class ReferenceFailed(EvalError):
    """The reference failed on a page."""


def python_of(folder: Path) -> Path:
    """Return the interpreter of an environment."""
    inside = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    return folder / inside


def make_environment(folder: Path) -> Path:
    """Make the reference's environment in a folder, unless it exists, and return the folder."""
    done = folder / "reference-ready"
    if done.is_file():
        return folder
    venv.create(folder, with_pip=True, clear=folder.exists())
    install = [str(python_of(folder)), "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, "--no-deps", *BARE], check=True)
    subprocess.run([*install, *NEEDED], check=True)
    done.write_text("\n".join([*BARE, *NEEDED]) + "\n", encoding="utf-8")
    return folder


class Reference:
    """A running worker; ``cpu_seconds`` is the CPU time that it has used.

    :raises DataMissing: the folder does not hold the reference's environment.
    """

    def __init__(self, folder: Path) -> None:
        python = python_of(folder)
        if not python.is_file():
            raise DataMissing(f"{folder} has no reference package; run: prunus eval reference {folder}")
        self.cpu_seconds = 0.0
        self._process = subprocess.Popen(
            [str(python), str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._close = weakref.finalize(self, _stop, self._process)

    def call(self, name: str, *arguments: str | int) -> Any:
        """Call a method of :class:`.systems._reference_worker.Worker` and return its result.

        :raises ReferenceFailed: the worker ended, or the method raised an error.
        """
        source, sink = self._process.stdin, self._process.stdout
        if source is None or sink is None:
            raise ReferenceFailed("the reference's worker has no pipes")
        source.write(json.dumps([name, *arguments]) + "\n")
        source.flush()
        line = sink.readline()
        if not line:
            raise ReferenceFailed(f"the reference's worker ended during {name}")
        reply = json.loads(line)
        self.cpu_seconds += float(reply["cpu"])
        if "error" in reply:
            raise ReferenceFailed(f"the reference's {name} failed: {reply['error']}")
        return reply["result"]

    def close(self) -> None:
        """End the worker."""
        self._close()


def _stop(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait(timeout=10)
    if process.stdout is not None:
        process.stdout.close()
