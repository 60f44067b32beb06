"""Compare the figures of the documentation with what their commands print: a check of a release, for it takes long.

    PRUNUS_DATA=/path/to/data .venv/bin/python docs/measured.py [WORD ...]

A part of a page between ``<!-- measured: COMMAND -->`` and ``<!-- end -->`` holds decimals that the command prints, as
figures or within its JSON; each is compared at its own number of places, without its sign. WORDs choose the commands
that hold one of them. The exit code is 1 where a figure is not printed: it is out of date, or comes from elsewhere.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent

_PART = re.compile(r"<!-- measured: (?P<command>[^>]+?) -->\n(?P<text>.*?)<!-- end -->", re.DOTALL)
_DECIMAL = re.compile(r"(?<![\w.])\d*\.\d+(?![\w.]*\d)")


def parts() -> Iterator[tuple[Path, str, str]]:
    """Yield each measured part of README and docs: its page, the command and the text."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for part in _PART.finditer(page.read_text(encoding="utf-8")):
            yield page.relative_to(ROOT), " ".join(part["command"].split()), part["text"]


def unprinted(text: str, output: str) -> list[str]:
    """Return the decimals of a text that an output does not hold, rounded to as many places."""
    printed = [float(number) for number in _DECIMAL.findall(output)]
    places = {figure: len(figure.partition(".")[2]) for figure in _DECIMAL.findall(text)}
    # a figure is the printed number, rounded: they differ by half of its last place at most
    return [
        figure
        for figure, count in places.items()
        if not any(abs(float(figure) - number) <= 0.5000001 * 10**-count for number in printed)
    ]


def main(words: list[str]) -> int:
    """Run the commands and print what differs; return the exit code."""
    chosen = [part for part in parts() if not words or any(word in part[1] for word in words)]
    wrong = 0
    for page, command, text in chosen:
        program, *arguments = shlex.split(command)
        asked = [str(Path(sys.executable).parent / program), *arguments]
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - of our pages
        missing = unprinted(text, done.stdout) if done.returncode == 0 else ["it fails: " + done.stderr.strip()[-200:]]
        wrong += bool(missing)
        click.echo(f"{'differs' if missing else 'ok'}: {page}: {command}{': ' if missing else ''}{', '.join(missing)}")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
