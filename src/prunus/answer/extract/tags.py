"""``tags``: a model replies with the tags of the segments that bear on a question, or None (Internet-SAG §4)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...core.errors import BadInput, OutsideFailed, UnreadableReply
from ...core.ports import LLM, Chosen, Segment
from ...core.text.numbers import bounded_int, in_ascii
from ...core.types import Message
from ...models.json_reply import text_of
from ...models.prompts.render import Quoted, render

_TAG: Final = re.compile(r"TAG[ \t]{0,4}[-_ ]?[ \t]{0,4}(\d{1,9})", re.I)
_RANGE: Final = re.compile(
    r"TAG[ \t]{0,4}[-_ ]?[ \t]{0,4}(\d{1,9})[ \t]{0,4}>?[ \t]{0,4}(?:-|\u2013|\u2014|\.\.\.?|to|until)"
    r"[ \t]{0,4}<?[ \t]{0,4}(?:TAG[ \t]{0,4}[-_ ]?[ \t]{0,4})?(\d{1,9})",
    re.I,
)
"""A range of tags on one line; a dash at the head of the next line is a list's."""

_NONE: Final = re.compile(
    r"[\s\"'`*_.(\[{<\u201c\u300c\u300e]*(?:"
    r"(?:none|null|nothing|(?:there (?:is|are) )?no (?:relevant|segments?|tags?|answer)"
    r"|kein(?:e[rs]?)?|nichts|aucune?|rien|ninguno?|ninguna|nada|nessuno?|nessuna|niente|nenhuma?|geen|niets"
    r"|ing(?:en|et|a)|нет|ничего|لا (?:شيء|يوجد)|لا توجد|없음|없습니다)\b"
    r"|(?:(?:该|本|此)?(?:页面?|文)[中里上]?)?(?:[并均都]?[没沒]有(?![问問])|[并並]?[无無](?!法)|未找到|未发现|未發現|找不到|不存在)"
    r"|(?:該当|関連)(?:する[^\s\u3002]{1,12})?(?:は|が)?(?:なし|無し|ありません|見つかり|ない)|なし|ありません"
    r"|관련(?:된)? ?내용(?:이)? ?없)",
    re.I,
)
"""A reply that says, in a language of the questions, that nothing bears on one. It counts only without a tag."""

_WRITTEN: Final = re.compile(r"<(?=/?\s{0,9}TAG\s{0,9}[-_]?\s{0,9}\d)", re.I)
"""The start of text in a page that looks like one of our tags."""

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
class TagReply:
    """The content of a model's reply.

    :param tags: the known tags that it names, in the order of the page, each once.
    :param unknown: how many tags it names that the page does not have.
    :param none: whether it says that nothing bears on the question.
    """

    tags: tuple[int, ...]
    unknown: int = 0
    none: bool = False


def read_tags(reply: str, known: Sequence[int]) -> TagReply:
    """Read the tags of a reply; words around them are ignored, tags that the page does not have are counted.

    A range stands for the known tags between its ends. A range that runs backwards, or has an unknown end, stands only
    for its known ends.
    """
    known_tags = set(known)
    chosen: set[int] = set()
    unknown: set[int] = set()

    def expand(match: re.Match[str]) -> str:
        first, last = _number(match.group(1)), _number(match.group(2))
        ends = {first, last}
        unknown.update(ends - known_tags)
        chosen.update(ends & known_tags)
        if ends <= known_tags and first <= last:
            chosen.update(tag for tag in known_tags if first <= tag <= last)
        return " "

    for match in _TAG.finditer(_RANGE.sub(expand, reply)):
        tag = _number(match.group(1))
        (chosen if tag in known_tags else unknown).add(tag)
    none = not chosen and not unknown and bool(_NONE.match(reply))
    return TagReply(tuple(tag for tag in known if tag in chosen), len(unknown), none)


def _number(digits: str) -> int:
    return bounded_int(in_ascii(digits), 0, most=10**9)


class Engine:
    """Asks a model for the tags of a page; a long page is sent in parts, several at the same time.

    A part is lost where the model fails, is slow, or replies with neither a tag nor None. The extraction fails only
    where every part is lost.

    :param llm: the model.
    :param summaries: whether the model writes a summary before each tag (the paper's Instruction-A; without, it is
        Instruction-B). It costs more tokens; the summaries are not kept. Set by ``extract_summaries``.
    :param at_once: parts that are sent at the same time.
    :param seconds: time limit of each part.
    :param max_tokens: limit of each reply.
    :raises BadInput: ``at_once`` or ``seconds`` is not positive.
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
            raise BadInput("extractor tags: at_once and extract_seconds are positive", subject="tags")
        self._llm = llm
        self._summaries = summaries
        self._at_once = at_once
        self._seconds = seconds
        self._max_tokens = max_tokens

    async def extract(self, query: str, tagged: Sequence[Segment]) -> list[Chosen] | None:
        """Return the chosen segments in the order of the page, or None when nothing bears on the question.

        :raises OutsideFailed: the model failed on every part of the page.
        :raises BadBudget: a limit on tokens or money is reached.
        """
        if not tagged:
            return None
        gate = asyncio.Semaphore(self._at_once)
        parts = parts_of(tagged)
        replies = await asyncio.gather(*(self._read_part(query, part, gate) for part in parts))
        failed = [reply for reply in replies if isinstance(reply, OutsideFailed)]
        if len(failed) == len(parts):
            raise failed[0]
        return [Chosen(tag) for reply in replies if isinstance(reply, TagReply) for tag in reply.tags] or None

    async def _read_part(
        self, query: str, part: Sequence[Segment], gate: asyncio.Semaphore
    ) -> TagReply | OutsideFailed:
        """Return the model's reply about one part, or the error with which it failed."""
        messages = question_about(query, part, self._summaries)
        async with gate:
            try:
                async with asyncio.timeout(self._seconds):
                    stream = self._llm.stream(messages, max_tokens=self._max_tokens, temperature=0.0)
                    reply, _usage = await text_of(stream, _LONGEST_REPLY)
            except TimeoutError:
                return OutsideFailed(f"extractor tags: no reply within {self._seconds:g} s", subject="tags")
            except OutsideFailed as error:
                return error
        read = read_tags(reply, [segment.tag for segment in part])
        if not read.tags and not read.none and not read.unknown:
            return UnreadableReply("extractor tags: the model named neither tags nor None", subject="tags")
        return read


def question_about(query: str, part: Sequence[Segment], summaries: bool = False) -> list[Message]:
    """Return the messages that ask which segments of a part of a page bear on a question; training asks the same.

    :param summaries: ask for a summary before each tag (Instruction-A); without, for tags alone (Instruction-B).
    """
    return render(
        "extract",
        how=_SUMMARY if summaries else "",
        page=Quoted(_page(part), "a page, in segments"),
        question=Quoted(query[:_LONGEST_QUESTION], "the question"),
    )


def written_tags(tags: Sequence[int]) -> str:
    """Return the reply that names some tags, or says that there are none."""
    return ", ".join(f"<TAG-{tag}>" for tag in tags) or "None"


def parts_of(tagged: Sequence[Segment]) -> list[list[Segment]]:
    """Cut a page into parts of at most ``_PART`` code points, one for each call of the model."""
    parts: list[list[Segment]] = [[]]
    size = 0
    for segment in tagged:
        length = min(len(segment.text), _LONGEST_SEGMENT) + len(segment.above[:200]) + 24
        if parts[-1] and size + length > _PART:
            parts.append([])
            size = 0
        parts[-1].append(segment)
        size += length
    return parts


def _page(part: Sequence[Segment]) -> str:
    """Return segments with their tags; each heading is written once, above its segments."""
    lines: list[str] = []
    above = ""
    for segment in part:
        if segment.above != above:
            above = segment.above
            if above:
                lines.append(f"# {_without_tags(above)[:200]}")
        lines.append(f"<TAG-{segment.tag}>{_without_tags(segment.text)[:_LONGEST_SEGMENT]}</TAG-{segment.tag}>")
    return "\n".join(lines)


def _without_tags(text: str) -> str:
    """Return a page's text on one line; text that looks like one of our tags is broken up.

    A page must not be able to add or close a segment.
    """
    return _WRITTEN.sub("< ", " ".join(text.split()))
