"""Promise: a small document takes neither a gigabyte nor ten seconds; it is answered, or refused in one line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pages.formats.hostile import HOSTILE

from prunus.core.errors import BadPage
from prunus.pages.formats._common.allowance import Allowance

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells and limits the memory of a process")

PROGRAM = """
import resource, sys
import prunus

prunus.clean("<p>words")  # load what every page needs before the limits
used = resource.getrusage(resource.RUSAGE_SELF)
seconds = round(used.ru_utime + used.ru_stime) + 20
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (size, size))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
try:
    print("answered", len(prunus.clean(prunus.Page(sys.stdin.buffer.read(), url=sys.argv[1]))))
except prunus.BadPage as error:
    print("refused", error)
"""
"""Cleans one page with a GiB of memory and 20 seconds of the processor: ten, and room for a slow machine."""

QUICK = {Path(name).suffix: name for name in reversed(HOSTILE) if not name.endswith(".pdf")}
"""The first document of each format, for the quick run."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make"),
    [
        pytest.param(*case, id=case[0], marks=() if case[0] in QUICK.values() else pytest.mark.slow)
        for case in HOSTILE.items()
    ],
)
def test_a_small_hostile_document_is_answered_or_refused_in_one_line(name: str, make: Callable[[], bytes]) -> None:
    content = make()
    assert len(content) <= 600_000, "a large document may take more"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name], input=content, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    (line,) = done.stdout.decode().splitlines()
    assert line.startswith(("answered", f"refused {name}: ")), line


def test_an_allowance_that_is_spent_refuses_the_document_by_its_name() -> None:
    allowance = Allowance("a.ods", cells=3)
    allowance.spend("cells", 2)
    assert not allowance.take("cells", 2)
    assert allowance.take("cells"), "what does not fit is not charged"
    with pytest.raises(BadPage, match=r"^a\.ods: more than 3 cells; split the document$"):
        allowance.spend("cells")


def test_an_allowance_ends_with_its_time() -> None:
    with pytest.raises(BadPage, match="page: reading it takes over 0 s; split the document"):
        Allowance("", 0.0).spend("cells", 0)
