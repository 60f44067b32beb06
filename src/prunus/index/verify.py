"""Check summaries against the texts of their children, and store the verdicts with the index (RAPTOR, Appendix E).

Code finds the sentences that a child holds word for word, and those that name the table and the ends of rows that the
children hold: they are supported. A judge decides about the others: a
language model, or a cross-encoder that scores (sentence, child). Without a judge they stay unchecked, and people can
judge them in an exported file that is imported again.
"""

from __future__ import annotations

import hashlib
import json
import re
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
from .nodes import Node, NodeStore, read_note

Verdict = Literal["supported", "unsupported", "unchecked"]

_PREFIX: Final = "verify:"
"""Names of the store's notes that hold verdicts begin with it."""
_WORD: Final = re.compile(r"\w+")
_TOKENS: Final = 2048
_LONGEST_REPLY: Final = 40_000


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """One sentence of a summary with its verdict.

    :param node, layer: the node of the summary.
    :param number: place of the sentence in the summary, from 1.
    :param by: ``words`` (a child holds it word for word), ``rows`` (it names rows of the children), ``llm``,
        ``reranker`` or ``people``; '' where unchecked.
    :param score: the cross-encoder's best score; 0 for other judges.
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
    """The reply of a model."""

    verdicts: list[_Verdict]


class Judge:
    """Judges which sentences of a summary its children support.

    :param llm: judges the sentences that no child holds word for word.
    :param reranker: a cross-encoder that judges them where ``llm`` is None.
    :param threshold: least score of the best child for "supported"; the right value depends on the cross-encoder.
    """

    def __init__(self, llm: LLM | None = None, reranker: Reranker | None = None, threshold: float = 0.5) -> None:
        self._llm, self._reranker, self._threshold = llm, reranker, threshold

    async def check(self, node: Node, children: Sequence[Node]) -> list[CheckedSentence]:
        """Return the sentences of a summary with their verdicts.

        :raises OutsideFailed: the model failed, or gave no usable verdicts in two replies.
        """
        lines = [" ".join(checked.split()) for checked in sentences(node.text) if checked.strip()]
        texts = [child.text for child in children]
        whole = [normalise(text) for text in texts]
        parts = {normalise(checked) for text in texts for checked in sentences(text)} - {""}
        checked_sentences: list[CheckedSentence] = []
        for number, sentence in enumerate(lines, 1):
            line = normalise(sentence)
            literal = any(line in text for text in whole) or _made_of(line, parts)
            by = "words" if literal else "rows" if _names_rows(sentence, texts) else ""
            verdict: Verdict = "supported" if by else "unchecked"
            checked_sentences.append(CheckedSentence(node.id, node.layer, number, sentence, verdict, by))
        unchecked = [checked for checked in checked_sentences if checked.verdict == "unchecked"]
        if unchecked and self._llm is not None:
            judged = await self._judge_by_llm(unchecked, texts)
        elif unchecked and self._reranker is not None:
            judged = self._judge_by_reranker(unchecked, texts)
        else:
            judged = {}
        return [judged.get(checked.number, checked) for checked in checked_sentences]

    def _judge_by_reranker(self, claims: Sequence[CheckedSentence], texts: Sequence[str]) -> dict[int, CheckedSentence]:
        assert self._reranker is not None
        judged = {}
        for checked in claims:
            best = float(np.max(self._reranker.rerank(checked.sentence, texts))) if texts else -np.inf
            judged[checked.number] = _judged(checked, best >= self._threshold, "reranker", best)
        return judged

    async def _judge_by_llm(
        self, claims: Sequence[CheckedSentence], texts: Sequence[str]
    ) -> dict[int, CheckedSentence]:
        assert self._llm is not None
        messages = render(
            "verify",
            texts=[Quoted(text) for text in texts],
            sentences=[Quoted(claim.sentence, f"sentence {place}") for place, claim in enumerate(claims, 1)],
        )
        fault = ""
        for _ in range(2):
            stream = self._llm.stream(messages, max_tokens=_TOKENS, temperature=0.0)
            reply, _usage = await text_of(stream, _LONGEST_REPLY)
            parsed, fault = read_json(reply, _Reply)
            verdicts = {claim.number: claim.supported for claim in parsed.verdicts} if parsed is not None else {}
            if not fault and verdicts.keys() >= {*range(1, len(claims) + 1)}:
                return {claim.number: _judged(claim, verdicts[place], "llm") for place, claim in enumerate(claims, 1)}
            fault = fault or "a sentence has no verdict"
            messages = repair(messages, reply, fault)
        raise OutsideFailed(f"the judge gave no verdicts ({fault})", subject="llm")


def _made_of(line: str, parts: set[str]) -> bool:
    """Tell whether a line is a concatenation of whole sentences of ``parts``, separated by spaces."""
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


def _names_rows(sentence: str, texts: Sequence[str]) -> bool:
    """Tell whether a sentence says a row's label and value, or a table and the first and last of rows (``T: A – B.``).

    Both ends begin rows of the children, or end ranges that these state, in this order, and each word of the table
    stands in the children. That rows lie between is not checked.
    """
    said, names = " ".join(sentence.split()), list[str]()
    for text in texts:
        for line in text.split("\n"):
            row = [" ".join(cell.split()) for cell in line.split("\t") if cell.strip()]
            if len(row) > 1 and said == f"{row[0].rstrip(': ')}: {' '.join(row[1:])}":
                return True
            names += row[:1] if len(row) > 1 else []
        stated = (each.rpartition(": ")[2].rstrip(". ") for each in sentences(text) if " – " in each)
        names += (end.strip() for each in stated for end in each.split(" – "))
    table, _, ends = said.removesuffix(".").rpartition(": ")
    first, dash, last = ends.partition(" – ")
    begins, stops = ([at for at, name in enumerate(names) if end and name.startswith(end)] for end in (first, last))
    held = {*_WORD.findall(" ".join(texts).casefold())}
    in_order = bool(dash and begins and stops) and begins[0] <= stops[-1]
    return in_order and held >= {*_WORD.findall(table.casefold())}


def _judged(checked: CheckedSentence, supported: bool, by: str, score: float = 0.0) -> CheckedSentence:
    verdict: Verdict = "supported" if supported else "unsupported"
    return CheckedSentence(checked.node, checked.layer, checked.number, checked.sentence, verdict, by, score)


def sample(store: NodeStore, count: int, seed: int = 0) -> list[Node]:
    """Return a random sample of the nodes with a summary, the same for the same index and seed; 0 takes all."""
    view = store.view()
    summarised = view.ids[(view.layer > 0) & (view.tokens > 0)].tolist()
    if count and count < len(summarised):
        summarised = sorted(np.random.default_rng(seed).choice(summarised, count, replace=False).tolist())
    return store.get([int(node) for node in summarised])


def keep(store: NodeStore, node: Node, checked_sentences: Sequence[CheckedSentence]) -> None:
    """Store the verdicts on a node's summary with the index."""
    note = {"text": _digest(node.text), "sentences": [asdict(checked) for checked in checked_sentences]}
    store.put_notes({f"{_PREFIX}{node.id}:": json.dumps(note, ensure_ascii=False)})


def kept(store: NodeStore, nodes: Iterable[Node]) -> list[CheckedSentence]:
    """Return the stored verdicts on the summaries of nodes; verdicts on an older text of a summary are left out."""
    notes = store.notes(_PREFIX)
    found = []
    for node in nodes:
        note = json.loads(notes.get(f"{_PREFIX}{node.id}:", "{}"))
        if note.get("text") == _digest(node.text):
            found += [CheckedSentence(**row) for row in note["sentences"]]
    return found


def is_unsupported(store: NodeStore, node: Node, sentence: str) -> bool:
    """Tell whether a stored verdict says that a sentence of a summary is unsupported."""
    note = read_note(store, f"{_PREFIX}{node.id}:")
    if note.get("text") != _digest(node.text):
        return False
    wanted = normalise(sentence)
    return any(row["verdict"] == "unsupported" and normalise(row["sentence"]) in wanted for row in note["sentences"])


def exported(
    node: Node, children: Sequence[Node], checked_sentences: Sequence[CheckedSentence]
) -> list[dict[str, Any]]:
    """Return a summary's sentences as rows of an export, in which people fill in ``verdict``."""
    texts = [child.text for child in children]
    return [{**asdict(checked), "text": _digest(node.text), "children": texts} for checked in checked_sentences]


def imported(store: NodeStore, lines: Iterable[str]) -> list[CheckedSentence]:
    """Read people's verdicts, store them with the index, and return them.

    :param lines: one JSON object a line, the rows of :func:`exported`.
    :raises BadInput: a line is no row of an export, or the summary has changed since the export.
    """
    rows: dict[int, list[CheckedSentence]] = {}
    digests: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            checked = CheckedSentence(
                int(row["node"]), int(row["layer"]), int(row["number"]), str(row["sentence"]), row["verdict"],
                str(row["by"]) or "people", float(row["score"]),
            )  # fmt: skip
            digests[checked.node] = str(row["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"line {number}: not a row of an export", subject=str(number)) from error
        if checked.verdict not in ("supported", "unsupported", "unchecked"):
            raise BadInput(
                f"line {number}: a verdict is supported, unsupported or unchecked, not {checked.verdict!r}",
                subject=str(number),
            )
        if checked.verdict == "unchecked":
            checked = CheckedSentence(checked.node, checked.layer, checked.number, checked.sentence, "unchecked")
        rows.setdefault(checked.node, []).append(checked)
    nodes = {node.id: node for node in store.get(list(rows))}
    for id in rows:
        if id not in nodes or _digest(nodes[id].text) != digests[id]:
            raise BadInput(f"node {id}: its summary has changed since the export", subject=str(id))
    for id, checked_sentences in rows.items():
        keep(store, nodes[id], checked_sentences)
    return [checked for checked_sentences in rows.values() for checked in checked_sentences]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
