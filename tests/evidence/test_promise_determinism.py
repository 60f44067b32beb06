"""Promise 5: the same input and settings give the same output, on every face and every run."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import articles

import prunus
from prunus.cli.main import app

QUESTION = "How many old tide recordings turned up in the attic?"
FORMATS = ("html", "markdown", "text")

RUN = """
import hashlib, json, sys, pathlib, prunus
documents = prunus.read(pathlib.Path(sys.argv[1]))
found = []
for format in ("html", "markdown", "text"):
    for scorer in ("hybrid", "bm25", "embedding"):
        context = prunus.prune(documents, sys.argv[2], 700, format, prunus.Options(scorer=scorer))
        found.append([context.output, [[block.score, block.path] for block in context.blocks]])
answer = prunus.ask("How long does the drum take to use up a roll?", documents)
found.append([answer.text, [[c.quote, c.xpath, c.snapshot] for c in answer.citations]])
print(hashlib.sha256(json.dumps(found).encode()).hexdigest())
"""


@pytest.mark.slow
def test_every_process_says_the_same_whatever_its_hash_seed(site: dict[str, str], tmp_path: Path) -> None:
    for name in ("tide-rolls-story.html", "plans-and-prices.html", "install-guide-zh.html"):
        (tmp_path / name).write_text(site[name], "utf-8")
    found = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(tmp_path), QUESTION],
            capture_output=True, text=True, check=True, timeout=120, env=environment,
        )  # fmt: skip
        found.add(done.stdout)
    assert len(found) == 1


@given(articles(), st.integers(20, 300))
def test_the_same_call_twice_gives_the_same(html: str, budget: int) -> None:
    for format in FORMATS:
        assert prunus.clean(html, format) == prunus.clean(html, format)
    one, other = (prunus.prune(html, "When did the canal open?", budget) for _ in range(2))
    assert (one.output, one.blocks) == (other.output, other.blocks)


@given(st.lists(articles(), min_size=1, max_size=3), st.integers(20, 300))
def test_what_was_asked_before_changes_nothing(pages: list[str], budget: int) -> None:
    documents = prunus.read(pages)
    questions = ("When did the canal open?", "Which ferry?", "museum 1850", "When did the canal open?")
    for question in questions:
        asked, fresh = prunus.prune(documents, question, budget), prunus.prune(pages, question, budget)
        assert (asked.output, asked.blocks) == (fresh.output, fresh.blocks)


def test_bytes_text_and_file_are_one_page(site: dict[str, str], tmp_path: Path) -> None:
    for name, html in site.items():
        (tmp_path / name).write_bytes(html.encode())
        for format in FORMATS:
            assert (
                prunus.clean(html, format)
                == prunus.clean(html.encode(), format)
                == prunus.clean(tmp_path / name, format)
            )


def test_a_page_is_cleaned_the_same_alone_and_among_others(site: dict[str, str]) -> None:
    together = prunus.read(list(site.values()))
    for tree, html in zip(together.trees, site.values(), strict=True):
        (alone,) = prunus.read(html).trees
        assert (tree.tag, tree.text, tree.attrs, tree.end) == (alone.tag, alone.text, alone.attrs, alone.end)


def test_threads_say_what_one_thread_says(site: dict[str, str]) -> None:
    pages = list(site.values())[:6]
    expected = [prunus.prune(page, QUESTION, 300).output for page in pages]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda page: prunus.prune(page, QUESTION, 300).output, pages)) == expected


@pytest.mark.parametrize("format", FORMATS)
def test_command_line_and_library_say_the_same(site: dict[str, str], folder: Path, format: str) -> None:
    for name in ("tide-rolls-story.html", "gallery.html"):
        (folder / name).write_text(site[name], "utf-8")
        cleaned = CliRunner().invoke(app, ["clean", name, "--format", format])
        assert cleaned.stdout == prunus.clean(folder / name, format) + "\n"
        arguments = ["prune", name, "-q", QUESTION, "--budget", "300", "--format", format]
        pruned = CliRunner().invoke(app, arguments)
        assert pruned.stdout == prunus.prune(folder / name, QUESTION, 300, format).output + "\n"
