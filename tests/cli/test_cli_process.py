"""The command line as a process: streams, signals, pipes that close."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import PROGRAM, SITE, Cli, Shell, environment

import prunus

PARAGRAPH = "<p>" + "The tide came in over the flats and went out again before noon. " * 12 + "</p>"


def test_stdin_to_stdout_as_utf_8_whatever_the_locale(shell: Shell) -> None:
    with (SITE / "install-guide-zh.html").open("rb") as page:
        done = shell("clean", "-", "--format", "text", stdin=page)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("utf-8") == prunus.clean(SITE / "install-guide-zh.html", "text") + "\n"


def test_an_error_is_one_line(shell: Shell) -> None:
    done = shell("prune", SITE, "-q", "What?", "--scorer", "nobody")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1 and done.stderr.startswith(b"prunus: no scorer is called")


def test_usage_of_the_group_is_one_line(shell: Shell) -> None:
    done = shell("--nonsense")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


def test_a_name_that_is_not_unicode(shell: Shell, folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.html")
    try:
        (folder / name).write_text("<p>The bridge opened in 1932.", "utf-8")
    except OSError:
        pytest.skip("this file system wants Unicode")
    (folder / "other.html").write_text("<p>The tram came later.", "utf-8")
    done = shell("prune", name, "other.html", "-q", os.fsdecode(b"bridge \xff"), "--quiet")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"1932" in done.stdout


def test_a_reader_that_has_seen_enough(folder: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "clean", "--json", str(SITE)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_line(folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAM, "clean", str(SITE / "faq.html")], stdout=full, stderr=subprocess.PIPE, env=environment()
        )
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1 and b"cannot be written" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
def test_ctrl_c_loses_nothing_that_is_written(cli: Cli, folder: Path) -> None:
    pages, out = folder / "pages", folder / "out"
    pages.mkdir()
    for number in range(3000):
        (pages / f"{number:04}.html").write_text(
            f"<h1>Page {number}</h1>{PARAGRAPH * 30}", "utf-8"
        )  # long enough to be interrupted on a busy machine
    command = [*PROGRAM, "clean", str(pages), "-o", str(out), "--format", "text"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not (out.is_dir() and len(os.listdir(out)) > 30):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    [line] = told.decode().splitlines()
    assert "interrupted" in line and "of 3000 pages" in line and "--skip-existing" in line
    written = sorted(out.iterdir())
    assert 20 < len(written) < 3000
    assert {path.suffix for path in written} == {".txt"}
    for path in written:
        text = path.read_text("utf-8")
        assert text.startswith(f"Page {int(path.stem)}\n") and text.endswith("before noon.\n")
    for page in sorted(pages.iterdir())[len(written) + 5 :]:
        page.unlink()
    resumed = cli("clean", pages, "-o", out, "--format", "text", "--skip-existing")
    assert resumed.exit_code == 0
    assert len(list(out.iterdir())) == len(written) + 5


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="children's times are not counted there")
def test_a_small_page_is_clean_in_about_half_a_second(shell: Shell) -> None:
    import resource

    def seconds(run: Callable[[], Any]) -> float:
        """Return the processor's time of a process: a shared machine lets it wait."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run().returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    clean = min(seconds(lambda: shell("clean", SITE / "faq.html")) for _ in range(5))
    packages = [sys.executable, "-c", "import numpy, turbohtml, click"]
    alone = min(seconds(lambda: subprocess.run(packages, timeout=60)) for _ in range(5))
    # a neighbour on the same core slows both: numpy and the parser take .2 s of it
    assert clean < max(0.65, 3.5 * alone)
