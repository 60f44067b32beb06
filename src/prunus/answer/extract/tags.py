"""``tags``: a model names the segments that bear on a question, by their tags or None (Internet-SAG §4)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...core.errors import BadInput, OutsideFailed
from ...core.ports import LLM, Tagged
from ...models.json_reply import text_of
from ...models.prompts.render import Quoted, render

_TAG: Final = re.compile(r"TAG[ \t]{0,4}[-_ ]?[ \t]{0,4}(\d{1,9})", re.I)
_RANGE: Final = re.compile(
    r"TAG[ \t]{0,4}[-_ ]?[ \t]{0,4}(\d{1,9})[ \t]{0,4}>?[ \t]{0,4}(?:-|\u2013|\u2014|\.\.\.?|to|until)"
    r"[ \t]{0,4}<?[ \t]{0,4}(?:TAG[ \t]{0,4}[-_ ]?[ \t]{0,4})?(\d{1,9})",
    re.I,
)
"""On one line: a dash at the head of the next line is that of a list."""

_NONE: Final = re.compile(r"[\s\"'`*_.(\[{<]*(?:none|null|no relevant \w+)\b", re.I)
_WRITTEN: Final = re.compile(r"<(?=/?\s{0,9}TAG\s{0,9}[-_]?\s{0,9}\d)", re.I)
"""A page's own words that look like one of our tags."""

_LONGEST_REPLY: Final = 40_000
_LONGEST_SEGMENT: Final = 4_000
_LONGEST_QUESTION: Final = 8_000
_PART: Final = 24_000
"""Code points of tagged text in one call; about 6,000 tokens of English."""

_SUMMARY: Final = (
    "- Before each tag write, on the same line, a summary of its segment in a few words, as: "
    "the price of the harbour plan <TAG-3>. Write no tag in a summary."
)


@dataclass(frozen=True, slots=True)
class Read:
    """What a reply says.

    :param tags: in the order of the page, each once.
    :param unknown: tags that were named and are not there; each range end counts once.
    :param none: it says outright that nothing bears on the question.
    """

    tags: tuple[int, ...]
    unknown: int = 0
    none: bool = False


def read_tags(reply: str, known: Sequence[int]) -> Read:
    """Read the tags of a reply; words around them are passed over, tags that the page has not are counted.

    A range takes the known tags between its ends; one that runs backwards, or from or to an unknown tag, is
    only its known ends.
    """
    there = set(known)
    chosen: set[int] = set()
    unknown: set[int] = set()

    def ranged(match: re.Match[str]) -> str:
        first, last = int(match.group(1)), int(match.group(2))
        ends = {first, last}
        unknown.update(ends - there)
        chosen.update(ends & there)
        if ends <= there and first <= last:
            chosen.update(tag for tag in there if first <= tag <= last)
        return " "

    for match in _TAG.finditer(_RANGE.sub(ranged, reply)):
        (chosen if int(match.group(1)) in there else unknown).add(int(match.group(1)))
    none = not chosen and not unknown and bool(_NONE.match(reply))
    return Read(tuple(tag for tag in known if tag in chosen), len(unknown), none)


class Engine:
    """Asks a model for tags, a long page in parts, several of them at once.

    A reply with neither a tag nor None, a model that fails, or one that is slow loses its part only; where
    every part is lost, that is a failure.

    :param llm: the model.
    :param summaries: whether it writes a summary before each tag (the paper's Instruction-A), which costs more
        tokens and may make small models more careful; the summaries are not kept.
    :param at_once: parts that are asked about at the same time.
    :param seconds: for each part.
    :param max_tokens: of each reply.
    """

    name = "tags"
    per_page = True

    def __init__(
        self,
        llm: LLM,
        summaries: bool = False,
        at_once: int = 4,
        seconds: float = 60.0,
        max_tokens: int = 512,
    ) -> None:
        if at_once < 1 or seconds <= 0:
            raise BadInput("extractor tags: at_once and seconds are positive", subject="tags")
        self._llm = llm
        self._summaries = summaries
        self._at_once = at_once
        self._seconds = seconds
        self._max_tokens = max_tokens

    async def extract(self, query: str, tagged: Sequence[Tagged]) -> list[int] | None:
        """Return the chosen tags in the order of the page, or None when nothing bears on the question.

        :raises OutsideFailed: no part of the page could be asked about.
        :raises BadBudget: a limit on tokens or money is reached.
        """
        if not tagged:
            return None
        gate = asyncio.Semaphore(self._at_once)
        parts = _parts(tagged)
        found = await asyncio.gather(*(self._part(query, part, gate) for part in parts))
        failed = [one for one in found if isinstance(one, OutsideFailed)]
        if len(failed) == len(parts):
            raise failed[0]
        return [tag for one in found if isinstance(one, Read) for tag in one.tags] or None

    async def _part(self, query: str, part: Sequence[Tagged], gate: asyncio.Semaphore) -> Read | OutsideFailed:
        """Ask about one part; what the model fails with is returned."""
        messages = render(
            "extract",
            how=_SUMMARY if self._summaries else "",
            page=Quoted(_page(part), "a page, in segments"),
            question=Quoted(query[:_LONGEST_QUESTION], "the question"),
        )
        async with gate:
            try:
                async with asyncio.timeout(self._seconds):
                    stream = self._llm.stream(messages, max_tokens=self._max_tokens, temperature=0.0)
                    reply, _usage = await text_of(stream, _LONGEST_REPLY)
            except TimeoutError:
                return OutsideFailed(f"extractor tags: no reply within {self._seconds:g} s", subject="tags")
            except OutsideFailed as error:
                return error
        read = read_tags(reply, [one.tag for one in part])
        if not read.tags and not read.none and not read.unknown:
            return OutsideFailed("extractor tags: the model named neither tags nor None", subject="tags")
        return read


def _parts(tagged: Sequence[Tagged]) -> list[list[Tagged]]:
    """Cut a page into parts that a model can read at once."""
    parts: list[list[Tagged]] = [[]]
    size = 0
    for one in tagged:
        length = min(len(one.text), _LONGEST_SEGMENT) + len(one.above[:200]) + 24
        if parts[-1] and size + length > _PART:
            parts.append([])
            size = 0
        parts[-1].append(one)
        size += length
    return parts


def _page(part: Sequence[Tagged]) -> str:
    """Return segments with their tags; a heading stands once, above the segments under it."""
    lines: list[str] = []
    above = ""
    for one in part:
        if one.above != above:
            above = one.above
            if above:
                lines.append(f"# {_own(above)[:200]}")
        lines.append(f"<TAG-{one.tag}>{_own(one.text)[:_LONGEST_SEGMENT]}</TAG-{one.tag}>")
    return "\n".join(lines)


def _own(text: str) -> str:
    """Return a page's words on one line, without what would pass for a tag of ours."""
    return _WRITTEN.sub("< ", " ".join(text.split()))
