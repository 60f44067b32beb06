"""Documents of an index by when they were published and when they were fetched."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from prunus import Index, Page, Retrieval
from prunus.core.errors import BadInput
from prunus.index.terms import moment

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
QUESTION = "How high did the river rise at the bridge?"


def dated(day: str, fetched: str, metres: str) -> Page:
    meta = f'<meta property="article:published_time" content="{day}T08:00:00Z">' if day else ""
    html = f"<title>Flood of {metres}</title>{meta}<h1>Flood</h1><p>The river rose {metres} metres at the bridge."
    return Page(html.encode(), f"https://river.example/{metres}", fetched_at=fetched)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    index = Index.open(tmp_path / "floods")
    old, new = "2026-01-01T10:00:00+00:00", datetime.now(UTC).isoformat(timespec="seconds")
    index.add([dated("2024-05-01", old, "two"), dated("2025-06-01", new, "three"), dated("", new, "four")])
    return index


def test_a_time_is_a_day_or_how_long_ago() -> None:
    assert moment("2026-01-31", "since", NOW) == "2026-01-31" and moment("2026", "since", NOW) == "2026"
    assert moment("24h", "since", NOW) == "2026-03-09T12:00:00" and moment("2w", "since", NOW) == "2026-02-24T12:00:00"
    assert moment("2026-01-31T12:00Z", "since", NOW) == "2026-01-31T12:00"
    for text in ("yesterday", "7", "31.1.2026", "-7d", "7 y", "2026-1-1"):
        with pytest.raises(BadInput, match=r"since: .* is no time"):
            moment(text, "since", NOW)


def found_in(index: Index, **how: str) -> set[str]:
    found = index.retrieved(QUESTION, 2000, Retrieval(**how))  # type: ignore[arg-type]
    return {node.document.rpartition("/")[2] for node in found.nodes if not node.layer}


def test_only_documents_of_that_time_are_used(index: Index) -> None:
    assert found_in(index) == {"two", "three", "four"}
    assert found_in(index, since="2024") == {"two", "three"}  # one does not say when
    assert found_in(index, since="2025-01-31") == {"three"}
    assert found_in(index, max_age="7d") == {"three", "four"}
    assert found_in(index, since="2024-02", max_age="24h") == {"three"}
    with pytest.raises(BadInput, match="no document was published since 2026-01-01"):
        found_in(index, since="2026-01-01")
    with pytest.raises(BadInput, match="no document was fetched since"):
        index.retrieve(QUESTION, retrieval=Retrieval(documents=("*/two",), max_age="1d"))
