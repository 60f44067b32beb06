"""LLM: the fragment loader through LLM's plugin manager and its command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.conftest import SITE
from tests.extras import need

llm = need("llm")
adapter = need("prunus.adapters.llm")

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

DATA = SITE / "station-data.html"
QUESTION = "What was the average water level at Withy Bend in November 2024?"


@pytest.fixture(autouse=True)
def _plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register the loader and a model that says what it is asked, as plugins of packages are."""
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    plugins = need("llm.plugins")
    monkeypatch.setattr(plugins, "LLM_LOAD_PLUGINS", "prunus")  # others may lack what they import
    plugins.load_plugins()
    registered = plugins.pm.has_plugin("prunus")  # by its entry point, where the package is installed
    if not registered:
        plugins.pm.register(adapter, "prunus")
    plugins.pm.register(Echoes(), "echoes")
    yield
    plugins.pm.unregister(name="echoes")
    if not registered:
        plugins.pm.unregister(name="prunus")


class Echoes:
    @llm.hookimpl
    def register_models(self, register: Any) -> None:
        class Echo(llm.Model):  # type: ignore[misc]
            model_id = "echo"
            can_stream = False

            def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
                yield prompt.prompt

        register(Echo())


def asked(fragment: str) -> Any:
    cli = need("llm.cli").cli
    return CliRunner().invoke(cli, ["-m", "echo", "--no-log", "-f", fragment, "What?"])


def test_a_page_is_a_fragment() -> None:
    result = asked(f"prunus:{DATA}")
    assert result.exit_code == 0, result.output
    assert "# Station data" in result.output and "<script" not in result.output
    assert result.output.rstrip().endswith("What?")


def test_words_after_the_page_are_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_BUDGET", "300")
    result = asked(f"prunus:{SITE} {QUESTION}")
    assert result.exit_code == 0, result.output
    assert "1.307" in result.output and len(result.output) < 3_000


def test_the_name_of_a_file_may_hold_spaces(folder: Path) -> None:
    (folder / "the two quinces.html").write_text("<p>Quinces are yellow.</p><p>Medlars are brown.</p>")
    [whole] = adapter.load_fragments("the two quinces.html")
    assert (str(whole), whole.source) == ("Quinces are yellow.\n\nMedlars are brown.", "the two quinces.html")
    [part] = adapter.load_fragments("the two quinces.html Which fruit is yellow?")
    assert "Quinces" in part


def test_a_page_that_is_missing_is_an_error_of_one_line() -> None:
    result = asked("prunus:no-such-page.html")
    assert result.exit_code == 1
    assert "no-such-page.html: no such file" in result.output and "Traceback" not in result.output
