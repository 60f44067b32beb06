"""Checks summaries against what they were made of, and keeps what was found (RAPTOR, Appendix E).

A sentence that a child says word for word is supported; that is checked by code. The others go to a judge:
a language model, or a cross-encoder that scores (sentence, child). Without one they stay unchecked, and people
can judge them: an export goes out, and comes back with their verdicts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct

from ..core.errors import BadInput, OutsideFailed
from ..core.ports import LLM, Reranker
from ..core.text.words import normalise, sentences
from ..models.json_reply import read_json, repair, text_of
from ..models.prompts.render import Quoted, render
from .nodes import Node, NodeStore

Verdict = Literal["supported", "unsupported", "unchecked"]

_PREFIX: Final = "verify:"
_TOKENS: Final = 2048
_LONGEST_REPLY: Final = 40_000


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """One sentence of a summary, and what was found.

    :param by: ``words`` (a child says it word for word), the judge's name, ``people``, or '' where nobody has.
    :param score: of a cross-encoder; 0 otherwise.
    """

    node: int
    layer: int
    number: int
    sentence: str
    verdict: Verdict
    by: str = ""
    score: float = 0.0


class _Verdict(Struct):
    number: int
    supported: bool


class _Reply(Struct):
    """What a model replies."""

    verdicts: list[_Verdict]


class Judge:
    """Tells what of a summary its children bear out.

    :param llm: judges what no child says word for word; or
    :param reranker: a cross-encoder does, where ``threshold`` says what counts as borne out.
    :param threshold: least score of the best child; what a cross-encoder's numbers mean is its own affair.
    """

    def __init__(self, llm: LLM | None = None, reranker: Reranker | None = None, threshold: float = 0.5) -> None:
        self._llm, self._reranker, self._threshold = llm, reranker, threshold

    async def check(self, node: Node, children: Sequence[Node]) -> list[CheckedSentence]:
        """Return the sentences of a summary with their verdicts.

        :raises OutsideFailed: the model failed, or twice gave no verdicts.
        """
        said = [" ".join(one.split()) for one in sentences(node.text) if one.strip()]
        texts = [child.text for child in children]
        whole = [normalise(text) for text in texts]
        own = {normalise(one) for text in texts for one in sentences(text)} - {""}
        found: list[CheckedSentence] = []
        for number, sentence in enumerate(said, 1):
            line = normalise(sentence)
            literal = any(line in text for text in whole) or _made_of(line, own)
            verdict: Verdict = "supported" if literal else "unchecked"
            found.append(CheckedSentence(node.id, node.layer, number, sentence, verdict, "words" if literal else ""))
        left = [one for one in found if one.verdict == "unchecked"]
        if left and self._llm is not None:
            judged = await self._asked(left, texts)
        elif left and self._reranker is not None:
            judged = self._scored(left, texts)
        else:
            judged = {}
        return [judged.get(one.number, one) for one in found]

    def _scored(self, left: Sequence[CheckedSentence], texts: Sequence[str]) -> dict[int, CheckedSentence]:
        assert self._reranker is not None
        found = {}
        for one in left:
            best = float(np.max(self._reranker.rerank(one.sentence, texts))) if texts else -np.inf
            found[one.number] = _judged(one, best >= self._threshold, "reranker", best)
        return found

    async def _asked(self, left: Sequence[CheckedSentence], texts: Sequence[str]) -> dict[int, CheckedSentence]:
        assert self._llm is not None
        messages = render(
            "verify",
            texts=[Quoted(text) for text in texts],
            sentences=[Quoted(one.sentence, f"sentence {place}") for place, one in enumerate(left, 1)],
        )
        fault = ""
        for _ in range(2):
            stream = self._llm.stream(messages, max_tokens=_TOKENS, temperature=0.0)
            reply, _usage = await text_of(stream, _LONGEST_REPLY)
            parsed, fault = read_json(reply, _Reply)
            said = {one.number: one.supported for one in parsed.verdicts} if parsed is not None else {}
            if not fault and said.keys() >= {*range(1, len(left) + 1)}:
                return {one.number: _judged(one, said[place], "llm") for place, one in enumerate(left, 1)}
            fault = fault or "a sentence has no verdict"
            messages = repair(messages, reply, fault)
        raise OutsideFailed(f"the judge gave no verdicts ({fault})", subject="llm")


def _made_of(line: str, parts: set[str]) -> bool:
    """Tell whether a line is nothing but whole sentences, one after the other."""
    reached, todo = {0}, [0]
    while todo:
        place = todo.pop()
        for part in parts:
            end = place + len(part)
            if line.startswith(part, place) and (end == len(line) or line[end] == " "):
                if end == len(line):
                    return True
                if end + 1 not in reached:
                    reached.add(end + 1)
                    todo.append(end + 1)
    return False


def _judged(one: CheckedSentence, supported: bool, by: str, score: float = 0.0) -> CheckedSentence:
    verdict: Verdict = "supported" if supported else "unsupported"
    return CheckedSentence(one.node, one.layer, one.number, one.sentence, verdict, by, score)


def sample(store: NodeStore, count: int, seed: int = 0) -> list[Node]:
    """Draw nodes that have a summary, the same ones for the same index and seed; 0 takes all."""
    view = store.view()
    said = view.ids[(view.layer > 0) & (view.tokens > 0)].tolist()
    if count and count < len(said):
        said = sorted(np.random.default_rng(seed).choice(said, count, replace=False).tolist())
    return store.get([int(one) for one in said])


def keep(store: NodeStore, node: Node, found: Sequence[CheckedSentence]) -> None:
    """Keep the verdicts on a node's summary with the index."""
    said = {"text": _digest(node.text), "sentences": [asdict(one) for one in found]}
    store.put_notes({f"{_PREFIX}{node.id}:": json.dumps(said, ensure_ascii=False)})


def kept(store: NodeStore, nodes: Iterable[Node]) -> list[CheckedSentence]:
    """Return what is kept on summaries; verdicts on a text that has changed since count no more."""
    notes = store.notes(_PREFIX)
    found = []
    for node in nodes:
        said = json.loads(notes.get(f"{_PREFIX}{node.id}:", "{}"))
        if said.get("text") == _digest(node.text):
            found += [CheckedSentence(**one) for one in said["sentences"]]
    return found


def is_doubted(store: NodeStore, node: Node, sentence: str) -> bool:
    """Tell whether a check has found a sentence of a summary unsupported."""
    said = json.loads(store.notes(f"{_PREFIX}{node.id}:").get(f"{_PREFIX}{node.id}:", "{}"))
    if said.get("text") != _digest(node.text):
        return False
    wanted = normalise(sentence)
    return any(one["verdict"] == "unsupported" and normalise(one["sentence"]) in wanted for one in said["sentences"])


def exported(node: Node, children: Sequence[Node], found: Sequence[CheckedSentence]) -> list[dict[str, Any]]:
    """Return a summary's sentences as rows for people: they fill in ``verdict``."""
    texts = [child.text for child in children]
    return [{**asdict(one), "text": _digest(node.text), "children": texts} for one in found]


def imported(store: NodeStore, lines: Iterable[str]) -> list[CheckedSentence]:
    """Take in verdicts of people, one JSON object a line as :func:`exported` wrote them; return and keep them.

    :raises BadInput: a line is no such row, or its summary has changed since.
    """
    rows: dict[int, list[CheckedSentence]] = {}
    digests: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            one = CheckedSentence(
                int(row["node"]), int(row["layer"]), int(row["number"]), str(row["sentence"]), row["verdict"],
                str(row["by"]) or "people", float(row["score"]),
            )  # fmt: skip
            digests[one.node] = str(row["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"line {number}: this is no row of an export", subject=str(number)) from error
        if one.verdict not in ("supported", "unsupported", "unchecked"):
            raise BadInput(
                f"line {number}: a verdict is supported, unsupported or unchecked, not {one.verdict!r}",
                subject=str(number),
            )
        if one.verdict == "unchecked":
            one = CheckedSentence(one.node, one.layer, one.number, one.sentence, "unchecked")
        rows.setdefault(one.node, []).append(one)
    nodes = {node.id: node for node in store.get(list(rows))}
    for id in rows:
        if id not in nodes or _digest(nodes[id].text) != digests[id]:
            raise BadInput(f"node {id}: its summary has changed since the export", subject=str(id))
    for id, found in rows.items():
        keep(store, nodes[id], found)
    return [one for found in rows.values() for one in found]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
