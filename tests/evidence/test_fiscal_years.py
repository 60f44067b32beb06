"""Years that a question abbreviates (FY2019) and pages write out."""

from __future__ import annotations

import pytest

import prunus

ROWS = "".join(f"<tr><td>Net sales<td>{year}<td>{year * 7}" for year in range(1990, 2030))
PAGE = f"<h1>Weir Works</h1><table><tr><th>Item<th>Year<th>Amount{ROWS}</table>"


@pytest.mark.parametrize("year", ["FY2019", "FY 2019", "FY19"])
def test_an_abbreviated_year_finds_the_rows_of_the_year(year: str) -> None:
    found = [prunus.prune(PAGE, f"What were net sales in {name}?", 40).text for name in ("2019", year)]
    assert found[0] == found[1]
    assert str(2019 * 7) in found[1]


def test_a_page_that_abbreviates_years_itself_is_asked_as_it_is() -> None:
    page = PAGE.replace(">2019<", ">FY2019<").replace(">2018<", ">FY2018<")
    assert str(2019 * 7) in prunus.prune(page, "What were net sales in FY2019?", 40).text
