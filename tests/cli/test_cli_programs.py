"""What `prunus doctor` tells to paste into other programs leads somewhere."""

from __future__ import annotations

import re

from tests.cli.command import Cli
from tests.extras import need

from prunus.cli.programs import programs
from prunus.core.settings import load_settings
from prunus.serve.options import SHAPES


def test_every_address_is_one_of_the_server() -> None:
    need("fastapi")
    from prunus.serve.app import create_app
    from prunus.serve.options import ServeOptions

    paths = ["/mcp", *create_app(load_settings(), ServeOptions(shapes=SHAPES)).openapi()["paths"]]
    for row in programs(load_settings()):
        for path in re.findall(r"http://127\.0\.0\.1:8080(/[a-z0-9/]+)", row["paste"]):
            assert any(known.startswith(path.rstrip("/")) for known in paths), path


def test_it_says_which_shape_is_needed_and_which_is_on() -> None:
    off = {row["needs"].rpartition(" ")[2] for row in programs(load_settings()) if row["needs"]}
    assert off == set(SHAPES)
    on = load_settings({"serve": {"shapes": ["tavily"], "port": 9000}})
    rows = {row["program"]: row for row in programs(on)}
    assert rows["Tavily's clients"]["needs"] == "" and ":9000/tavily" in rows["Tavily's clients"]["paste"]
    assert not any(row["needs"] for row in programs(load_settings({"serve": {"shapes": ["all"]}})))


def test_doctor_prints_it(cli: Cli) -> None:
    assert "claude mcp add prunus" in cli("doctor").stdout
