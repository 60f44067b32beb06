"""The text of a sample: the numbered page, the prompt and the paths, made by the functions that inference calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prunus.evidence.blocks import Blocks
from prunus.evidence.numbered_paths import content_of, number, path_prompt

_MARK = "QUESTION-STANDS-HERE"


@dataclass(frozen=True, slots=True)
class Form:
    """A page as a model reads it.

    :param html: the numbered page.
    :param page_part: the prompt up to the question; the same for every question about the page.
    :param paths: the numbered path of each block.
    :param prompt: name of the prompt.
    """

    html: str
    page_part: str
    paths: Sequence[str]
    prompt: str

    def question_part(self, question: str) -> str:
        """Return the prompt from the question on; it is tokenized separately, so that a page is read once.

        :raises ValueError: the prompt does not begin with the page.
        """
        whole = _text(question, self.html, self.prompt)
        if not whole.startswith(self.page_part):
            raise ValueError("the prompt does not begin with the page")
        return whole[len(self.page_part) :]


def form_of(blocks: Blocks, prompt: str = "paths") -> Form:
    """Number a page, and return its prompt and its paths."""
    numbered = number(blocks, prompt=prompt)
    page_part = _text(_MARK, numbered.html, prompt).rpartition(_MARK)[0]
    return Form(numbered.html, page_part, numbered.paths, prompt)


def content(blocks: Blocks, index: int) -> str:
    """Return the content of a block, which follows its path in a reply."""
    return content_of(blocks, index)


def _text(question: str, html: str, prompt: str) -> str:
    return "\n".join(message.content for message in path_prompt(question, html, prompt))
