"""Fixtures for all tests: an isolated home and environment, the example site, real pages from ``PRUNUS_DATA``."""

from __future__ import annotations

import faulthandler
import json
import lzma
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings

SITE = Path(__file__).parents[1] / "examples" / "site"

_CALM = {
    "deadline": None,  # a shared machine stalls now and then; other tests check the time limits
    "derandomize": True,  # the same examples on every machine and every run
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
}
settings.register_profile("short", max_examples=10, **_CALM)
settings.register_profile("long", max_examples=2000, **{**_CALM, "derandomize": False})
settings.register_profile("hunt", max_examples=600, **{**_CALM, "derandomize": False})
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))

PASSED = os.environ.get("TESTS_PASSED", "")
"""A file of the tests that have passed: a run adds its own, and leaves out those that are there. ``.ci/run`` names one,
so that no test runs twice."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that passed in an earlier run."""
    before = set(Path(PASSED).read_text("utf-8").splitlines()) if PASSED and Path(PASSED).is_file() else set()
    again = [item for item in items if item.nodeid in before]
    config.hook.pytest_deselected(items=again)
    items[:] = [item for item in items if item.nodeid not in before]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Note the tests that pass, in the process that hears of all."""
    if PASSED and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Passed(), "passed")


class _Passed:
    """Collects the names of the tests that pass, and writes them when the run ends."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.names.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        with open(PASSED, "a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in self.names)


_HANGS = 600.0
"""Seconds after which a test hangs: its process says where, and ends; pytest-xdist names the test and goes on."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process of a test that hangs, even in code of C that lets no thread of Python run."""
    stderr = item.config.stash[fault_handler_stderr_fd_key]  # the terminal: file descriptor 2 is a test's own
    faulthandler.dump_traceback_later(_HANGS, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty home and no settings of the person who runs it."""
    for name in list(os.environ):
        if name.startswith("PRUNUS_") and name != "PRUNUS_DATA":
            monkeypatch.delenv(name)
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "0")  # no test may call a real model
    monkeypatch.setenv("PRUNUS_RERANKER", "none")  # fast, and the same on every processor
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)  # else Ray keeps that of the first home, and starts in no other
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    if not (Path.cwd() / "pyproject.toml").is_file() or (Path.cwd() / "prunus.toml").exists():
        monkeypatch.chdir(home)  # a prunus.toml of the working folder must not change a test


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def site() -> dict[str, str]:
    """The pages of the example site by file name."""
    return {path.name: path.read_text("utf-8") for path in sorted(SITE.glob("*.html"))}


@pytest.fixture(scope="session")
def questions() -> list[dict[str, Any]]:
    """The questions of the example site, each with its answers, its pages, and words that must not come out."""
    return [json.loads(line) for line in (SITE.parent / "questions.jsonl").read_text("utf-8").splitlines()]


Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def rows() -> Rows:
    """Load the first rows of a data file: ``rows("clean/articles", 10)``."""

    def load(name: str, limit: int = 0) -> list[dict[str, Any]]:
        path = data_folder() / f"{name}.jsonl.xz"
        if not path.is_file():
            pytest.fail(f"PRUNUS_DATA is set, but {path} is missing")
        loaded = []
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                loaded.append(json.loads(line))
                if limit and len(loaded) == limit:
                    break
        return loaded

    return load


@pytest.fixture(scope="session")
def pages(rows: Rows) -> list[str]:
    """Some real pages of different kinds and sizes, as HTML."""
    chosen: list[str] = []
    for name, column, taken in (("clean/articles", "html", 12), ("clean/readability", "html", 12)):
        several = sorted((row[column] for row in rows(name, 40)), key=lambda html: (len(html), html))
        chosen += several[:: max(1, len(several) // taken)][:taken]
    tables = sorted((row["html"] for row in rows("table_qa/pages", 40)), key=lambda html: (len(html), html))
    return chosen + tables[:6]


def data_folder() -> Path:
    """Return the folder of real pages; skip the test where none is named, fail where it does not exist."""
    folder = os.environ.get("PRUNUS_DATA")
    if not folder:
        pytest.skip("PRUNUS_DATA is not set: no real pages")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"PRUNUS_DATA names {folder}, which is not a folder")
    return path


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what a batch with one worker does in the test's process: processes take a second to start."""

    from prunus.core.worker_pool import WorkerPool

    class Here(WorkerPool[Any, Any]):
        def run(self, parts: Any) -> Any:
            if self.workers > 1:
                yield from super().run(parts)
                return
            do = self.make()
            for part in parts:
                if part is None:
                    time.sleep(0.001)
                else:
                    yield part[0], [do(item) for item in part[1]]

    monkeypatch.setattr("prunus.batch.run.WorkerPool", Here)
