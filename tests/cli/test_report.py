"""The report: self-contained, escaped, complete, and readable at two thousand blocks."""

from __future__ import annotations

import re
from pathlib import Path

import turbohtml
from tests.cli.command import SITE, Cli
from tests.clock import within

import prunus
from prunus.cli.report import write_report

QUESTION = "What does Harbour cost & is it <b>free</b>?"


def report(pages: object, budget: int = 300, **options: object) -> tuple[str, prunus.Context]:
    documents = prunus.read(pages, strict=False)  # type: ignore[arg-type]
    context = prunus.prune(documents, QUESTION, budget, options=prunus.Options(**options))  # type: ignore[arg-type]
    return write_report(context, documents, tokens_before=12345), context


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text, _ = report(SITE)
    page = turbohtml.parse(text)
    policy = page.find_all("meta")[1]
    assert policy.attrs["http-equiv"] == "Content-Security-Policy" and "script-src" not in policy.attrs["content"]
    assert policy.attrs["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    tags = {element.tag for element in page.find_all(True)}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "video", "audio", "svg"}
    for element in page.find_all(True):
        attributes = dict(element.attrs)
        assert not any(name.startswith("on") or name in ("src", "srcset") for name in attributes)
        assert str(attributes.get("href", "#")).startswith("#")
    style = page.find_all("style")[0].text
    assert "url(" not in style and "@import" not in style


def test_text_of_pages_is_only_ever_escaped() -> None:
    evil = (
        "<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>"
        "<h1>Harbour &quot; onmouseover=&quot;alert(2)</h1><p>&lt;img src=x onerror=alert(3)&gt; &lt;/span&gt;</p>"
    )
    text, _ = report([evil, "<p>Harbour costs nothing at all."])
    assert "<script" not in text and "<img" not in text
    assert {element.tag for element in turbohtml.parse(text).find_all(True)} <= {
        "html", "head", "meta", "title", "style", "body", "main", "p", "h1", "h2", "ul", "ol", "li", "b", "span", "i",
        "section", "div", "a", "nav", "header", "details", "summary",
    }  # fmt: skip
    assert not [element for element in turbohtml.parse(text).find_all(True) if "onmouseover" in dict(element.attrs)]


def test_every_block_is_there_once_with_its_fate() -> None:
    text, context = report(SITE)
    rows = re.findall(r'<div class="row (.)" id="b(\d+)"', text)
    assert rows == [("k" if block.kept else "d", str(block.index)) for block in context.blocks]
    assert text.count("✓ kept</span>") == len(context.kept)
    assert "12,345" in text and f"{context.tokens:,}" in text
    assert "header" in text and "<details" in text and "What does Harbour cost &amp; is it" in text


def test_pages_that_could_not_be_read_are_named(small_site: Path) -> None:
    text, _ = report([small_site])
    assert "Could not be read" in text and "picture.html" in text


def test_two_thousand_blocks_take_no_time() -> None:
    row = "<p>Harbour {0} costs {0} coins and has a long quay with many boats."
    documents = prunus.read("".join(row.format(number) for number in range(2000)))
    options = prunus.Options(scorer="bm25", tokenizer="approx", max_words=12)
    context = prunus.prune(documents, QUESTION, 200, options=options)
    assert within(2, lambda: write_report(context, documents))
    text = write_report(context, documents)
    assert len(context.blocks) >= 2000
    assert len(text) < 2_500_000


def test_the_command_writes_it_whole(cli: Cli, folder: Path) -> None:
    result = cli("prune", "examples/site", "-q", QUESTION, "--budget", 300, "--report", "made/report.html", "--quiet")
    assert result.exit_code == 0
    assert (folder / "made" / "report.html").read_text("utf-8").endswith("</html>\n")
