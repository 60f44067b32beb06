"""Real pages say the words that Chromium shows, in its order, but for differences that are meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests import extras, inner_text_run
from tests.extras import need

from prunus.core.errors import MissingExtra
from prunus.web.fetch.browser import find_browser


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.full
def test_real_pages_say_the_words_that_chromium_shows(rows: Callable[..., list[dict[str, Any]]]) -> None:
    need("playwright.sync_api")
    try:
        program = find_browser()
    except MissingExtra as error:
        if extras.ALL:
            pytest.fail(f"PRUNUS_ALL_EXTRAS is set, but {error}")
        pytest.skip(str(error))
    pages = [row["html"] for row in rows("clean/wcxb", 60)]
    differing = [page for page in inner_text_run.compared(pages, program) if page.unexplained]
    assert len(differing) <= 2, differing
