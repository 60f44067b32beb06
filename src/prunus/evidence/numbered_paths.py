"""Numbered paths of blocks, the numbered HTML that a model reads, and the prompt that asks for a path.

HtmlRAG §3.4.2 names a block by the tags from the root down to it, ``<html1><body><div2><p>``, and
shows the model the page with the same names. Training and inference call the same functions, so that
both see the same numbers. The numbers are always those of the whole page, also after pruning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..core.errors import BadInput
from ..core.types import Message
from ..models.prompts.render import Quoted, harmless, render
from ..pages.clean import rules
from ..pages.write.markup import HtmlWriter
from ..pages.write.selection import Kept, Pieces
from ..pages.write.style import LEAN, escape
from .blocks import Block, Blocks, Step

PROMPTS: Final = ("paths", "htmlrag", "htmlrag_released", "bare")
"""Prompts that ask for a path: ``paths`` puts the page behind a fence, ``htmlrag`` is the published prompt (HtmlRAG,
Figure 4), ``htmlrag_released`` is the form of the authors' released models, ``bare`` has few words, for small models
that are trained on it."""

RELEASED: Final = "htmlrag_released"
"""The form of the models ``HTML-Pruner-Phi-3.8B`` and ``HTML-Pruner-Llama-1B``: the words of ``generate_html_tree`` in
``llm_modeling/`` and the numbers of ``build_block_tree`` in the package ``htmlrag`` 0.1.1, both of
github.com/plageon/HtmlRAG. Siblings of one tag are numbered from 0, and text has no step of its own."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """The blocks of a page, all or some, as a model reads them.

    :param html: the blocks in document order, each in the elements of its path.
    :param paths: the path of each block in ``html``, in the order of ``kept``.
    :param kept: the indices of these blocks.
    """

    html: str
    paths: list[str]
    kept: list[int]


def number(blocks: Blocks, kept: Sequence[int] | None = None, prompt: str = "paths") -> Numbered:
    """Return the numbered HTML and the numbered paths of blocks.

    :param kept: indices of the blocks to show; all blocks by default. The numbers do not depend on it.
    :param prompt: the prompt that will show them. In ``htmlrag_released`` a run of elements has the path of its longest
        element, and a run of text that of the element around it; such blocks may share a path.
    """
    released = prompt == RELEASED
    shown = list(range(len(blocks))) if kept is None else sorted(set(kept))
    paths: list[str] = []
    out: list[str] = []
    opened: list[tuple[int, int]] = []  # (document, node) of the elements that are open
    names: list[str] = []
    for index in shown:
        block = blocks.blocks[index]
        steps = [_tag_of(step, released) for step in blocks.steps(index)]
        above = _above(blocks, block)
        bare = released and not block.is_subtree
        paths.append("".join([*steps[:-1], *_longest(blocks, block)] if bare else steps))
        shared = _shared(opened, above)
        _close(out, names, shared)
        del opened[shared:]
        for node, step in zip(above[shared:], steps[shared:], strict=False):  # the last step is the block itself
            out.append(step)
            opened.append(node)
            names.append(step)
        if bare:
            if out and not out[-1].endswith(">"):
                out.append(" ")  # the text before is another block
            out.append(_numbered_run(blocks, index))
        else:
            out.append(f"{steps[-1]}{content_of(blocks, index)}{_end(steps[-1])}")
    _close(out, names, 0)
    return Numbered("".join(out), paths, shown)


def _tag_of(step: Step, released: bool) -> str:
    """Return a step of a path as a tag; ``<s>``, a special token of many tokenizers, gets a space."""
    name, number = step
    return harmless(f"<{name}{number - released}>" if number else f"<{name}>")


def content_of(blocks: Blocks, index: int) -> str:
    """Return the HTML inside a block, without the block's tag: the text that follows its path in a reply."""
    block = blocks.blocks[index]
    if block.is_subtree and blocks.trees[block.document].tag[block.node]:
        return _inside(blocks, block, block.node)
    return _run(blocks, block, block.lo, block.hi)


def _inside(blocks: Blocks, block: Block, node: int) -> str:
    """Return the HTML inside an element, without its tag."""
    tree = blocks.trees[block.document]
    inside = HtmlWriter(tree, LEAN).html(node + 1, tree.end[node]) if tree.end[node] > node + 1 else ""
    return f"{escape(tree.text[node])}{inside}"


def _run(blocks: Blocks, block: Block, lo: int, hi: int) -> str:
    """Return the HTML of the nodes ``[lo, hi)`` of a run."""
    return HtmlWriter(blocks.trees[block.document], LEAN, Kept(None, _pieces(blocks, block), {})).html(lo, hi)


def _numbered_run(blocks: Blocks, index: int) -> str:
    """Return the HTML of a run in the released form: its elements have their numbers, and no tag is around it."""
    block = blocks.blocks[index]
    end = blocks.trees[block.document].end
    out: list[str] = []
    done = block.lo
    for node in _elements(blocks, block):
        if done < node:
            out.append(_run(blocks, block, done, node))
        step = _tag_of(blocks.step_of(block.document, node), released=True)
        out.append(f"{step}{_inside(blocks, block, node)}{_end(step)}")
        done = end[node]
    if done < block.hi:
        out.append(_run(blocks, block, done, block.hi))
    return "".join(out)


def _longest(blocks: Blocks, block: Block) -> list[str]:
    """Return the step of the longest element of a run, in the released form; [] for a run of text."""
    tree = blocks.trees[block.document]
    elements = _elements(blocks, block)
    if not elements:
        return []
    longest = max(elements, key=lambda node: (tree.words[tree.end[node]] - tree.words[node], -node))
    return [_tag_of(blocks.step_of(block.document, longest), released=True)]


def _elements(blocks: Blocks, block: Block) -> list[int]:
    """Return the whole child elements in a run that hold words, without those within lines of text."""
    tree = blocks.trees[block.document]
    words, end = tree.words, tree.end
    result: list[int] = []
    node = block.lo
    while node < block.hi and tree.parent[node] == block.node:
        own = tree.tag[node] and tree.tag[node] not in rules.INLINE
        if own and end[node] <= block.hi and words[end[node]] > words[node]:
            result.append(node)
        node = end[node]
    return result


def path_prompt(query: str, html: str, prompt: str = "paths") -> list[Message]:
    """Return the messages that ask which block answers a question.

    The page comes first and the question last: the part before the question is the same for every
    question on a page, so that a model reads it once.

    :param html: numbered HTML, from :func:`number` for the same prompt.
    :param prompt: one of ``PROMPTS``. Only ``paths`` has a fence around the page: the others are worded as models were
        trained. An instruction in a page has no effect with any prompt: the model's reply is never read, only the
        probabilities of the page's paths.
    :raises BadInput: there is no such prompt.
    """
    if prompt not in PROMPTS:
        raise BadInput(f"no prompt for paths is called {prompt!r}; there are: {', '.join(PROMPTS)}", subject=prompt)
    if prompt != "paths":
        return render(prompt, html=harmless(html), question=query)
    return render(prompt, html=Quoted(html), question=query)


def _above(blocks: Blocks, block: Block) -> list[tuple[int, int]]:
    """Return the elements above a block from the root down, as (document, node)."""
    parents = blocks.trees[block.document].parent
    node = parents[block.node] if block.is_subtree else block.node
    chain: list[tuple[int, int]] = []
    while node >= 0:
        chain.append((block.document, node))
        node = parents[node]
    return chain[::-1]


def _shared(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> int:
    """Return how many elements two chains of ancestors share from the root."""
    count = 0
    for left, right in zip(first, second, strict=False):  # the chains may differ in length
        if left != right:
            break
        count += 1
    return count


def _close(out: list[str], names: list[str], until: int) -> None:
    """Close the open elements below a depth."""
    while len(names) > until:
        out.append(_end(names.pop()))


def _end(step: str) -> str:
    return f"</{step[1:].lstrip()}"


def _pieces(blocks: Blocks, block: Block) -> Pieces:
    """Return the kept ranges of the text nodes inside which a run begins or ends."""
    texts = blocks.trees[block.document].text
    last = block.hi - 1
    pieces: Pieces = {}
    if block.first or block.last >= 0:
        end = block.last if block.last >= 0 else len(texts[last])
        if block.lo == last:
            return {last: [(block.first, end)]}
        if block.first:
            pieces[block.lo] = [(block.first, len(texts[block.lo]))]
        if block.last >= 0:
            pieces[last] = [(0, end)]
    return pieces
