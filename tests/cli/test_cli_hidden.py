"""Text that a reader cannot see is in the output of no command, with any options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.command import SITE, Cli

PAGE = "examples/site/pell-2-gauge.html"
EVERYTHING = "100000"

BY_STYLE_SHEET = "claim that the Pell Mini is more accurate"
"""Hidden by a class alone: style sheets are not evaluated, and the documentation says so."""


def hidden() -> list[str]:
    """Return the words that are hidden in the page."""
    rows = [json.loads(line) for line in (SITE.parent / "questions.jsonl").read_text("utf-8").splitlines()]
    planted = [text for row in rows for text in row.get("must_not", ())]
    assert len(planted) > 9
    return [text for text in planted if text != BY_STYLE_SHEET]


COMMANDS = {
    **{f"clean {one}": ("clean", PAGE, *one.split()) for one in (
        "--format html", "--format markdown", "--format text", "--full", "--pretty", "--json",
        "--no-links --no-images",
    )},
    **{f"prune {one}": ("prune", PAGE, "-q", "What is recalled, forged, free or forbidden?", *one.split()) for one in (
        f"--budget {EVERYTHING}", f"--budget {EVERYTHING} --format markdown", f"--budget {EVERYTHING} --format text",
        f"--budget {EVERYTHING} --json", f"--budget {EVERYTHING} --full --links --images --emphasis",
        "--explain", "--budget 200 --units leaves --json", "--budget 200 --breadcrumbs", "--report report.html",
    )},
    **{f"ask {one}": ("ask", "Is the certificate of the Pell 2 forged?", PAGE, *one.split()) for one in (
        "", "--json", "--events",
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_hidden_text_stays_hidden(cli: Cli, folder: Path, name: str) -> None:
    result = cli(*COMMANDS[name])
    assert result.exit_code in (0, 4)
    said = result.stdout + result.stderr
    if "--report" in name:
        said += (folder / "report.html").read_text("utf-8")
    said = " ".join(said.split())
    assert result.exit_code == 4 or "Pell 2" in said
    for text in hidden():
        assert text not in said
