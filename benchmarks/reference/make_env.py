"""Make the environment of the reference and of the other tools, unless it exists.

python -m benchmarks.reference.make_env [--env FOLDER] [--force]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
TORCH = "torch==2.13.0"
CACHE = HERE.parent.parent / ".bench"
DEFAULT_ENV = CACHE / "reference"
COMMAND = "python -m benchmarks.reference.make_env"


class MissingEnvironmentError(Exception):
    """The reference environment is missing, or was made with other pins."""


def python_of(env: Path) -> Path:
    """Return the interpreter of an environment."""
    return env / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _wanted() -> str:
    """Return the stamp of a complete environment; it changes with each pin, so that the environment is made anew."""
    text = f"{sys.version_info[:2]} {TORCH}\n{REQUIREMENTS.read_text(encoding='utf-8')}"
    return hashlib.sha256(text.encode()).hexdigest()


def _stamp(env: Path) -> Path:
    return env / "prunus-bench.stamp"


def is_ready(env: Path) -> bool:
    """Return whether the environment is complete, from this version of Python and with these pins."""
    stamp = _stamp(env)
    return python_of(env).exists() and stamp.exists() and stamp.read_text() == _wanted()


def require(env: Path) -> None:
    """Check that the environment is ready.

    :raises MissingEnvironmentError: it is not; the message has the command that makes it.
    """
    if not is_ready(env):
        where = "" if env == DEFAULT_ENV else f" --env {env}"
        raise MissingEnvironmentError(f"no reference environment in {env}: run '{COMMAND}{where}', or pass --make-env")


def make(env: Path = DEFAULT_ENV, force: bool = False) -> None:
    """Make the environment, unless it is ready. It takes about 1.8 GB and two minutes.

    :raises MissingEnvironmentError: the folder holds other files.
    """
    if is_ready(env) and not force:
        print(f"reference environment is ready: {env}", file=sys.stderr)
        return
    if env.exists() and not (env / "pyvenv.cfg").exists() and any(env.iterdir()):
        raise MissingEnvironmentError(f"{env} holds other files; name another folder")
    shutil.rmtree(env, ignore_errors=True)
    env.parent.mkdir(parents=True, exist_ok=True)
    if env.parent == CACHE:
        (CACHE / ".gitignore").write_text("*\n")
    venv.create(env, with_pip=True, symlinks=os.name != "nt")
    pip = [str(python_of(env)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # torch first and alone, so that no package that depends on it can choose another build
    for arguments in ([TORCH], ["--no-deps", "-r", str(REQUIREMENTS)]):
        print("pip install", *arguments, file=sys.stderr)
        subprocess.run([*pip, *arguments], check=True, stdout=sys.stderr)
    _stamp(env).write_text(_wanted())


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--env", type=Path, default=DEFAULT_ENV, help="folder of the environment")
    parser.add_argument("--force", action="store_true", help="make the environment anew even if it is ready")
    options = parser.parse_args(argv)
    try:
        make(options.env.resolve(), options.force)
    except MissingEnvironmentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"error: pip ended with exit status {error.returncode}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
