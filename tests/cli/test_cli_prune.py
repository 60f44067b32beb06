"""``prunus prune``: evidence on stdout, everything else on stderr, all of it as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.command import SITE, Cli, lines_of

import prunus

PRICES = "examples/site/plans-and-prices.html"
QUESTION = "What does Harbour come to per month if I settle a whole year at once?"


def test_the_output_is_what_the_library_keeps(cli: Cli) -> None:
    result = cli("prune", PRICES, "-q", QUESTION, "--budget", 256, "--format", "markdown")
    context = prunus.prune(SITE / "plans-and-prices.html", QUESTION, 256, "markdown")
    assert result.exit_code == 0
    assert result.stdout == context.output + "\n"
    [line] = result.stderr.splitlines()
    assert f"-> {context.tokens} tokens (budget 256); {len(context.kept)} of {len(context.blocks)} blocks" in line


def test_quiet_says_nothing(cli: Cli) -> None:
    assert cli("prune", PRICES, "-q", QUESTION, "--quiet").stderr == ""


def test_json_holds_what_was_kept_and_is_small(cli: Cli) -> None:
    arguments = ("prune", "examples/site", "-q", QUESTION, "--budget", 300, "--quiet")
    small, full = cli(*arguments, "--json"), cli(*arguments, "--json=full")
    [record], [whole] = lines_of(small), lines_of(full)
    assert len(small.stdout) < 10_000 < len(full.stdout)
    assert record["blocks"] == [block for block in whole["blocks"] if block["kept"]]
    assert record["documents"] == [document for document in whole["documents"] if document["kept"]]
    assert {block["document"] for block in record["blocks"]} == {found["number"] for found in record["documents"]}


def test_full_json_holds_the_whole_context(cli: Cli) -> None:
    [record] = lines_of(cli("prune", "examples/site", "-q", QUESTION, "--budget", 300, "--json=full", "--quiet"))
    assert record["tokens"] <= record["budget"] == 300 < record["tokens_before"]
    assert len(record["documents"]) == 12
    assert (
        sum(block["kept"] for block in record["blocks"])
        == sum(document["kept"] for document in record["documents"])
        > 0
    )
    assert {"path", "score", "kept", "span", "role", "text", "words"} <= set(record["blocks"][0])
    assert record["engines"]["scorer"] == "trees"
    assert {"read", "blocks", "score", "prune"} <= set(record["seconds"])


def test_a_span_points_at_its_text(cli: Cli) -> None:
    [record] = lines_of(cli("prune", PRICES, "-q", QUESTION, "--json=full"))
    text = prunus.read(SITE / "plans-and-prices.html").trees[0].canonical
    for block in record["blocks"]:
        assert text[block["span"]["start"] : block["span"]["end"]] == block["text"]


def test_explain_ranks_the_blocks_on_stderr(cli: Cli) -> None:
    plain = cli("prune", PRICES, "-q", QUESTION, "--budget", 200)
    result = cli("prune", PRICES, "-q", QUESTION, "--budget", 200, "--explain")
    assert result.stdout == plain.stdout
    head, *rows, _ = result.stderr.splitlines()
    assert head.split() == ["score", "role", "words", "path", "first", "words"]
    scores = [float(row.split()[0]) for row in rows if not row.startswith("…")]
    assert scores == sorted(scores, reverse=True)
    assert any(" kept " in row for row in rows) and any(" dropped " in row for row in rows)


@pytest.mark.parametrize("scorer", ["bm25", "embedding", "hybrid", "trees"])
def test_every_scorer_can_be_chosen(cli: Cli, scorer: str) -> None:
    [record] = lines_of(cli("prune", PRICES, "-q", QUESTION, "--scorer", scorer, "--tokenizer", "approx", "--json"))
    assert (record["engines"]["scorer"], record["engines"]["tokenizer"]) == (scorer, "approx")


def test_shape_and_granularity_can_be_chosen(cli: Cli) -> None:
    fine = lines_of(cli("prune", PRICES, "-q", QUESTION, "--max-words", 16, "--units", "leaves", "--json"))[0]
    coarse = lines_of(cli("prune", PRICES, "-q", QUESTION, "--max-words", 400, "--full", "--links", "--json"))[0]
    assert len(fine["blocks"]) > len(coarse["blocks"])
    assert coarse["max_words"] == 400
    assert "</p>" in coarse["output"] and "href=" in coarse["output"]


def test_the_budget_comes_from_the_settings(cli: Cli, folder: Path) -> None:
    (folder / "prunus.toml").write_text("budget = 99\n", "utf-8")
    assert json.loads(cli("prune", PRICES, "-q", QUESTION, "--json").stdout)["budget"] == 99
    assert json.loads(cli("prune", PRICES, "-q", QUESTION, "--json", "--budget", 98).stdout)["budget"] == 98


def test_pages_that_cannot_be_read_are_listed(cli: Cli, small_site: Path) -> None:
    result = cli("prune", small_site, "missing.html", "-q", "When did the bridge open?", "--json", "--quiet")
    assert result.exit_code == 5
    [record] = lines_of(result)
    assert "1932" in record["output"]
    assert {Path(name).name for name in record["failures"]} == {"empty.html", "picture.html", "missing.html"}
    assert "missing.html: no such file" in result.stderr


def test_standard_input_beside_files(cli: Cli) -> None:
    result = cli("prune", "-", PRICES, "-q", "bridge", "--json", input="<title>Bridges</title><p>A bridge of stone.")
    assert [document["url"] for document in lines_of(result)[0]["documents"]] == ["stdin", PRICES]


def test_the_same_bytes_on_every_run(cli: Cli) -> None:
    runs = {cli("prune", "examples/site", "-q", QUESTION, "--budget", 400).stdout for _ in range(2)}
    assert len(runs) == 1


def test_a_page_is_written_with_what_was_kept_marked(cli: Cli, folder: Path) -> None:
    arguments = ("prune", PRICES, "-q", QUESTION, "--budget", 200, "--mark", "marked.html", "--json")
    assert "<style>[data-prunus=kept]" in cli(*arguments).stdout + (folder / "marked.html").read_text("utf-8")
    result = cli(*arguments, "--no-mark-style")
    marked = (folder / "marked.html").read_bytes().decode()
    plain = re.sub(r' data-prunus(?:-block|-score)?="[^"]*"', "", marked)
    assert plain == (SITE / "plans-and-prices.html").read_bytes().decode()
    numbers = {int(n) for found in re.findall(r'data-prunus-block="([^"]*)"', marked) for n in found.split()}
    assert numbers == {block["index"] for block in lines_of(result)[0]["blocks"] if block["kept"]}


def test_several_pages_are_marked_in_a_folder(cli: Cli, folder: Path, small_site: Path) -> None:
    question = ("-q", "When did the bridge open?", "--quiet")
    refused = cli("prune", small_site, *question, "--mark", "marked.html")
    assert refused.exit_code == 2
    assert "name a folder" in refused.stderr
    (folder / "marked").mkdir()
    assert cli("prune", small_site, *question, "--mark", "marked").exit_code == 5
    assert sorted(path.name for path in (folder / "marked").iterdir()) == ["001-note.html", "002-faq.html"]
    assert "data-prunus=" in (folder / "marked" / "001-note.html").read_text("utf-8")


def test_a_page_is_never_written_over_itself(cli: Cli, small_site: Path) -> None:
    page = small_site / "faq.html"
    before = page.read_bytes()
    assert cli("prune", page, "-q", "final values?", "--mark", page).exit_code == 2
    assert page.read_bytes() == before


def test_explain_shows_a_screen_or_two_and_says_how_many_more(cli: Cli, folder: Path) -> None:
    (folder / "long.html").write_text("".join(f"<p>The ferry number {n} leaves." for n in range(300)), "utf-8")
    result = cli("prune", "long.html", "-q", "When does the ferry leave?", "--explain", "--max-words", 8)
    *rows, more, _ = result.stderr.splitlines()
    assert len(rows) == 61
    assert re.search(r"… and 240 blocks with lower scores, 240 of them kept; --json", more)


def test_json_tells_what_each_page_says_about_itself(cli: Cli, folder: Path) -> None:
    (folder / "tides.html").write_text('<meta name=author content="Ada Moor"><title>Tides</title><p>High water at six.')
    (folder / "other.html").write_text("<title>Bread</title><p>Flour and water.")
    result = cli("prune", folder / "other.html", folder / "tides.html", "-q", "When is high water?", "--json")
    documents = {document["title"]: document["metadata"] for document in json.loads(result.stdout)["documents"]}
    assert documents["Tides"]["authors"] == ["Ada Moor"]


def test_strict_fails_where_nothing_is_likely_to_answer(cli: Cli) -> None:
    asked = ("prune", "examples/site/faq.html", "-q", "Who discovered penicillin?", "--budget", 600)
    told = cli(*asked)
    assert told.exit_code == 0 and "likely to answer" in told.stderr
    strict = cli(*asked, "--strict")
    assert strict.exit_code == 4 and not strict.stdout
    cost = cli("prune", PRICES, "-q", QUESTION, "--strict", "--json")
    assert cost.exit_code == 0 and lines_of(cost)[0]["confidence"] > 0.2


def test_json_tells_where_each_kept_block_stands(cli: Cli, folder: Path) -> None:
    (folder / "costs.csv").write_text("Pier,Cost\nNorth,40\nSouth,70\n")
    slides = "".join(
        f'<section><h2><data value="slide-{number}">Pier {number}</data></h2><p>{words}</section>'
        for number, words in enumerate(("The north pier cost 40 crowns.", "The south pier cost 70 crowns."), 1)
    )
    (folder / "talk.html").write_text(slides)
    [record] = lines_of(
        cli("prune", folder / "talk.html", "-q", "What did the south pier cost?", "--max-words", 8, "--json")
    )
    assert {block["place"] for block in record["blocks"] if "south" in block["text"]} == {"slide 2"}
    [plain] = lines_of(cli("prune", folder / "costs.csv", "-q", "What did the south pier cost?", "--json"))
    assert {block["place"] for block in plain["blocks"]} == {""}
