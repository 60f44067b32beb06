"""Tables that a page builds of other elements, and names by roles, are tables."""

from __future__ import annotations

import pytest

import prunus


def row(*cells: str, role: str = "cell", tag: str = "span") -> str:
    return f"<{tag} role=row>" + "".join(f"<span role={role}>{cell}</span>" for cell in cells) + f"</{tag}>"


HEADER = row("Port", "Depth", role="columnheader")
TABLES = {
    "a table": (f"<div role=table>{HEADER}{row('Kiel', '7.9 m')}</div>", "|Port|Depth|\n|-|-|\n|Kiel|7.9 m|"),
    "a grid in groups": (
        f"<div role=grid><div role=rowgroup>{HEADER}</div><div role=rowgroup>{row('Kiel', '7.9 m', role='gridcell')}</div>"
        "</div>",
        "|Port|Depth|\n|-|-|\n|Kiel|7.9 m|",
    ),
    "wrappers around rows and cells": (
        "<div role=table><div><div>"
        f"{HEADER}<div role=row><div><i role=rowheader>Kiel</i></div><div role=cell><p>7.9 m</p></div></div></div></div></div>",
        "|Port|Depth|\n|-|-|\n|Kiel|7.9 m|",
    ),
    "an empty cell": (f"<div role=table>{HEADER}{row('', '7.9 m')}</div>", "|Port|Depth|\n|-|-|\n||7.9 m|"),
    "a link that is a cell": (
        f"<div role=table>{HEADER}<div role=row><a role=cell href=/k>Kiel</a><span role=cell>7.9 m</span></div></div>",
        "|Port|Depth|\n|-|-|\n|[Kiel](/k)|7.9 m|",
    ),
    "words around the rows": (
        f"<div role=table><p>Ports</p>{HEADER}{row('Kiel', '7.9 m')}<p>As of May</p></div>",
        "Ports\n\n|Port|Depth|\n|-|-|\n|Kiel|7.9 m|\n\nAs of May",
    ),
    "a hidden row": (
        f"<div role=table>{HEADER}<div role=row hidden><i role=cell>Bonn</i></div>{row('Kiel', '7.9 m')}</div>",
        "|Port|Depth|\n|-|-|\n|Kiel|7.9 m|",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_roles_make_a_table(case: str) -> None:
    page, expected = TABLES[case]
    assert prunus.clean(page, format="markdown") == expected
    cleaned = prunus.clean(page)
    assert "<table>" in cleaned
    assert prunus.clean(cleaned) == cleaned


def test_cells_keep_their_spans() -> None:
    page = (
        f"<div role=table>{HEADER}<p role=row><span role=cell aria-colspan=2>Closed</span></p>{row('Kiel', '7')}</div>"
    )
    assert "<td colspan=2>Closed" in prunus.clean(page)


@pytest.mark.parametrize(
    "page",
    [
        f"<div role=grid>{row('One card')}{row('Another card')}</div>",
        f"<div role=table>{HEADER}</div>",
        f"<div role=table>{HEADER}<div role=row>Kiel <i role=cell>7.9 m</i></div></div>",
        f"<div role=grid><table><tr><td>Kiel<td>7.9 m</table>{HEADER}{HEADER}</div>",
        f"<div role=presentation>{HEADER}{HEADER}</div>",
    ],
)
def test_what_is_no_table_keeps_its_words(page: str) -> None:
    cleaned = prunus.clean(page)
    assert "<tr><th>Port" not in cleaned
    assert "card" in cleaned or "Port" in cleaned
