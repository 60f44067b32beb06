"""Token trees drawn as lines and in the report: all probabilities, no external files, all text escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import turbohtml

import prunus
from prunus.cli.report import write_report
from prunus.cli.trees import as_html, as_lines, block_tree, notes_of, rows_of, token_tree
from prunus.core.options import Options
from prunus.core.ports import Branches, TokenTree
from prunus.core.registry import make_engine
from prunus.core.settings import Settings
from prunus.core.types import Message
from prunus.engines import prune_engines
from prunus.evidence.context import Context
from prunus.evidence.documents import Documents
from prunus.evidence.prune import prune as prune_with

PAGE = "<h1>Harbour</h1>" + "".join(
    f"<div><p>Pier {number} is open.</p><p>It is {number} m &lt;b&gt;deep&lt;/b&gt;.</p></div>" for number in range(6)
)


class Letters:
    """A path scorer whose tokens are letters, and to which a letter is the likelier the later it stands."""

    stop = 0

    def encode(self, paths: Sequence[str]) -> list[list[int]]:
        return [[ord(letter) for letter in path] for path in paths]

    def decode(self, tokens: Sequence[int]) -> list[str]:
        return [chr(token) if token else "" for token in tokens]

    def branches(self, prompt: Sequence[Message], tree: TokenTree) -> Branches:
        return Branches([np.asarray([float(tree.token[child]) / 9 for child in group]) for group in tree.children])


def pruned(page: str = PAGE, budget: int = 90, **options: object) -> tuple[Context, Documents]:
    documents = prunus.read(page)
    fine = make_engine("scorer", "generative", path_scorer=Letters())
    engines = replace(
        prune_engines(Settings()), second_scorer=fine, names={"scorer": "hybrid", "second_scorer": "generative"}
    )
    given = Options(**{"max_words": 6, **options})  # type: ignore[arg-type]
    return prune_with(documents, "Which pier is deep?", budget, "html", given, engines), documents


def both(context: Context) -> list[Any]:
    notes = notes_of(context)
    return [block_tree(context.tree, notes), token_tree(context.tree, notes)]


def test_siblings_share_what_their_parent_has() -> None:
    context, _ = pruned()
    for drawn in both(context):
        for parent in {*drawn.parents}:
            below = [node for node, above in enumerate(drawn.parents) if above == parent]
            assert math.isclose(sum(drawn.own[node] for node in below), 1.0, abs_tol=1e-9)
            whole = 1.0 if parent < 0 else drawn.mass[parent]
            assert math.isclose(sum(drawn.mass[node] for node in below), whole, abs_tol=1e-9)


def test_every_block_stands_at_a_leaf_with_its_fate_and_its_p() -> None:
    context, _ = pruned()
    for drawn in both(context):
        leaves = {note: drawn.mass[node] for node, note in enumerate(drawn.notes) if note}
        assert len(leaves) == len(context.blocks)
        for block in context.blocks:
            fate = "kept" if block.kept else "dropped"
            [p] = [mass for note, mass in leaves.items() if note == f"{fate}: {' '.join(block.text.split())}"]
            assert math.isclose(p, math.exp(block.score), rel_tol=1e-9)


def test_pieces_put_together_are_the_path() -> None:
    context, _ = pruned()
    paths = set(context.tree.numbered.paths)
    for drawn in both(context):
        for node, note in enumerate(drawn.notes):
            if note:
                way, above = "", node
                while above >= 0:
                    way, above = "".join(piece for piece, _ in drawn.pieces[above]) + way, drawn.parents[above]
                assert way in paths


def test_what_is_left_out_is_counted() -> None:
    context, _ = pruned()
    drawn = both(context)[1]
    rows = rows_of(drawn, 4)
    shown = [row for row in rows if row.node >= 0]
    assert len(shown) == 4
    assert {drawn.parents[row.node] for row in shown} <= {-1, *(row.node for row in shown)}
    whole = sum(drawn.mass[row.node] for row in shown if row.node not in drawn.parents)
    assert math.isclose(whole + sum(row.mass for row in rows if row.node < 0), 1.0, abs_tol=1e-9)
    assert [row.node for row in rows_of(drawn, 10**6)] == list(range(len(drawn.parents)))


def test_lines_for_a_terminal() -> None:
    context, _ = pruned()
    lines = as_lines(context)
    assert lines.startswith("block tree:")
    assert "token tree: P at every branch, P of the leaf; " in lines
    assert re.search(r"\d+ tokens, \d+ % of them without inference", lines)
    assert "<html><body>" in lines
    assert re.search(r"0\.\d{3}  <div6>", lines)


def test_control_letters_of_a_page_reach_no_terminal() -> None:
    context, _ = pruned(page="<p>One \x1b[31mred\x9b pier is deep.</p><p>Two piers are open.</p><p>Three are not.</p>")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", as_lines(context))


def test_the_report_draws_both_and_loads_nothing() -> None:
    context, documents = pruned()
    text = write_report(context, documents)
    assert text.count('class="panel tree"') == 2
    page = turbohtml.parse(text)
    tags = {element.tag for element in page.find_all(True)}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "svg"}
    for element in page.find_all(True):
        assert not any(name.startswith("on") or name in ("src", "srcset") for name in element.attrs)
        assert "url(" not in str(element.attrs.get("style", ""))


def test_text_of_pages_is_escaped_in_the_drawing() -> None:
    drawn = as_html(pruned()[0])
    assert "&lt;b&gt;deep&lt;/b&gt;" in drawn
    assert "<b>deep" not in drawn
    assert "&lt;div6&gt;" in drawn


def test_two_stages_draw_what_the_second_read() -> None:
    context, _ = pruned(stages=2, coarse_budget=90, coarse_words=12)
    engines = [one.stage for one in context.trace]
    assert engines[-1] == "second"
    drawn = both(context)[0]
    assert sum(bool(note) for note in drawn.notes) == sum(block.stage == 2 for block in context.blocks)


def test_a_block_that_was_cut_stands_at_its_leaf_once() -> None:
    long = "".join(f"<p>{'Deep water runs here. ' * 30}Pier {number}.</p>" for number in range(3))
    context, _ = pruned(page=long, budget=25, max_words=200)
    assert any(block.role == "cut" for block in context.blocks)
    assert len(notes_of(context)) == len(context.tree.leaves)
    assert as_lines(context)


def test_other_scorers_draw_nothing() -> None:
    context = prunus.prune(PAGE, "Which pier?", 90)
    assert (as_lines(context), as_html(context)) == ("", "")


def test_thousands_of_siblings_are_drawn_in_time() -> None:
    context, _ = pruned(page="<ul>" + "".join(f"<li>Pier {number}" for number in range(3000)) + "</ul>")
    assert len(as_lines(context).splitlines()) < 120
    assert as_html(context).count('class="branch') < 4000
