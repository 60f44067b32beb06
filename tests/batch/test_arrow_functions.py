"""Arrow in, Arrow out: the functions for Ray, Spark and Dask give what the library gives, a record for each row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import SITE
from tests.extras import need

import prunus
from prunus.batch.arrow import Mapper, ask_arrow, clean_arrow, prune_arrow, schema_of, table_of
from prunus.batch.work import Task, Work
from prunus.core.errors import BadInput
from prunus.core.settings import Settings

pa = need("pyarrow")
QUESTION = "When is a value final?"
FAQ = (SITE / "faq.html").read_text("utf-8")
BRIDGE = "<title>Bridge</title><p>The bridge opened in 1932.<p>Trams run daily from the harbour."


def pages(*html: Any) -> Any:
    return pa.table({"url": [f"saved/{at}.html" for at in range(len(html))], "html": pa.array(html, pa.string())})


def test_each_function_gives_what_the_library_gives() -> None:
    table = pages(FAQ, BRIDGE)
    assert clean_arrow(table, "markdown").column("output").to_pylist() == [
        prunus.clean(prunus.Page(html, url), "markdown")
        for html, url in ((FAQ, "saved/0.html"), (BRIDGE, "saved/1.html"))
    ]
    chosen = clean_arrow(table, main=True)
    assert chosen.column("output")[0].as_py() == prunus.clean(FAQ, main=True)
    assert 0 < chosen.column("main_confidence")[0].as_py() <= 1 and chosen.column("warnings")[0].as_py() is not None
    pruned = prune_arrow(table, QUESTION, 200).to_pylist()
    expected = prunus.prune(prunus.Page(FAQ, "saved/0.html"), QUESTION, 200)
    assert (pruned[0]["output"], pruned[0]["tokens"]) == (expected.output, expected.tokens)
    [answer] = ask_arrow(table.slice(1), "When did the bridge open?").to_pylist()
    assert "1932" in answer["output"] and answer["citations"][0]["found"] is True
    assert answer["citations"][0]["quote"] == "The bridge opened in 1932."


def test_a_row_has_a_record_whatever_it_holds() -> None:
    table = pages(BRIDGE, None, "", "<p hidden>x", BRIDGE)
    found = clean_arrow(table).to_pylist()
    assert [row["status"] for row in found] == ["done", "failed", "failed", "failed", "done"]
    assert [row["kind"] for row in found] == [None, "page", "page", "page", None]
    nothing = ask_arrow(pages("<p>Trams run daily.</p>"), "Which enzymes does photosynthesis need?").to_pylist()
    assert nothing[0]["status"] == "nothing found" and nothing[0]["error"]


def test_a_question_of_a_row_goes_before_that_of_all() -> None:
    table = pages(BRIDGE, BRIDGE).append_column("question", pa.array(["When did the bridge open?", None]))
    found = prune_arrow(table, "How often do trams run?", 50).to_pylist()
    assert [row["question"] for row in found] == ["When did the bridge open?", "How often do trams run?"]
    missing = prune_arrow(table, "", 50).to_pylist()
    assert missing[1]["status"] == "failed" and "no question" in missing[1]["error"]


def test_a_table_without_pages_is_refused_and_an_empty_one_is_not() -> None:
    with pytest.raises(BadInput, match=r"no column called html.*it has: colour"):
        clean_arrow(pa.table({"colour": ["red"]}))
    for task in (Task("clean"), Task("prune", "q"), Task("ask", "q")):
        assert Mapper(task)(pages()).schema == schema_of(task)


def test_a_mapper_is_sent_to_another_process_and_makes_its_engines_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Task] = []

    class Counted(Work):
        def __init__(self, task: Task, settings: Settings | None = None) -> None:
            made.append(task)
            super().__init__(task, settings)

    monkeypatch.setattr("prunus.batch.arrow.Work", Counted)
    import pickle

    first = Mapper(Task("clean"))
    first(pages(BRIDGE))
    second = pickle.loads(pickle.dumps(first))
    assert second(pages(BRIDGE)) == second(pages(BRIDGE)) and len(made) == 2


def test_batches_and_frames_give_the_same_rows() -> None:
    need("pandas")
    table, mapper = pages(*[BRIDGE] * 5), Mapper(Task("prune", QUESTION, 60))
    whole = mapper(table)
    assert pa.Table.from_batches(mapper.batches(table.to_batches(max_chunksize=2))).to_pylist() == whole.to_pylist()
    assert mapper.frame(table.to_pandas())["output"].tolist() == whole.column("output").to_pylist()
    assert [len(frame) for frame in mapper.frames([table.to_pandas()] * 2)] == [5, 5]


def test_half_a_pair_of_surrogates_is_written_as_text() -> None:
    [row] = table_of([{"id": "\ud800", "status": "done", "output": "ä\udfff"}], Task()).to_pylist()
    assert (row["id"], row["output"]) == ("\\ud800", "ä\\udfff")


def test_a_task_that_cannot_be_done_is_refused() -> None:
    for wrong, reason in (
        ({"do": "burn"}, "clean, prune, ask"),
        ({"format": "pdf"}, "html, markdown, text"),
        ({"budget": -1}, "above 0"),
    ):
        with pytest.raises(BadInput, match=reason):
            Task(**wrong)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="names its engines"):
        Task("prune", "q", options=prunus.Options(scorer=object())).identity(Settings())
    assert json.dumps(Task("ask", "q").identity(Settings()))


def test_a_file_named_by_a_row_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(BRIDGE, "utf-8")
    found = clean_arrow(pa.table({"path": [str(tmp_path / "a.html"), str(tmp_path / "gone.html")]})).to_pylist()
    assert [row["status"] for row in found] == ["done", "failed"]
    assert found[1]["error"].endswith("gone.html: no such file")
