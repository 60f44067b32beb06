"""Samples of language models: reading them from JSON lines, and their tokens.

A sample is a conversation and the reply that is taught. The tokens of the conversation are those that inference would
send: of a pruner by :class:`prunus.evidence.score.paths.transformers.loaded.Loaded`, else by
:mod:`prunus.models.chat_prompt`. Only the tokens of the reply, and the mark that ends it, count in the loss.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from prunus.core.types import Message
from prunus.evidence.score.paths.transformers.loaded import Loaded
from prunus.models.chat_prompt import forged_marks, prompt_text
from prunus_train.errors import DataBroken

T = TypeVar("T")
ROLES = ("system", "user", "assistant")
KINDS = ("chat", "pruner", "parser", "extractor")
_MARK = "REPLY-STANDS-HERE"


@dataclass(frozen=True, slots=True)
class ChatSample:
    """A conversation and its reply.

    :param kind: one of :data:`KINDS`; it decides how the prompt is written and what is measured in training.
    :param target: the reply in pieces that are tokenized apart: of a pruner the path and the content, else one.
    :param paths, gold: of a pruner the paths of all blocks, and the indexes of the right ones.
    :param prompt: of a pruner the name of the prompt; '' where it is not known.
    """

    id: str
    kind: str
    messages: tuple[Message, ...]
    target: tuple[str, ...]
    paths: tuple[str, ...] = ()
    gold: tuple[int, ...] = ()
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Preference:
    """A conversation with a better and a worse reply."""

    id: str
    messages: tuple[Message, ...]
    chosen: str
    rejected: str


@dataclass(slots=True)
class EncodedSamples:
    """Tokens, ready for a trainer.

    :param rows: for SFT ``input_ids`` and ``labels`` (-100: does not count), for DPO ``prompt_ids``, ``chosen_ids`` and
        ``rejected_ids``.
    :param supervised: tokens that count in the loss, over all rows.
    :param long: ids of the samples that are over the window and left out.
    """

    rows: list[dict[str, list[int]]] = field(default_factory=list)
    supervised: int = 0
    long: list[str] = field(default_factory=list)


def read_samples(path: Path) -> list[ChatSample]:
    """Return the samples of a file.

    :raises DataBroken: the file is missing or empty, or a line is no sample; the message names the line.
    """
    return _read(path, _sample)


def read_preferences(path: Path) -> list[Preference]:
    """Return the preferences of a file.

    :raises DataBroken: the file is missing or empty, or a line is no preference; the message names the line.
    """
    return _read(path, _preference)


def digest_of(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path, make: Callable[[Mapping[str, Any]], T]) -> list[T]:
    try:
        found = [_one(line, f"{path}, line {number}", make) for number, line in _lines(path)]
    except OSError as error:
        raise DataBroken(f"{path} cannot be read: {error.strerror}") from error
    if not found:
        raise DataBroken(f"{path} holds no sample; `prunus train data` writes them")
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _one(line: bytes, place: str, make: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError("a sample is a JSON object")
        return make(row)
    except KeyError as error:
        raise DataBroken(f"{place}: the field {error} is missing") from error
    except (ValueError, TypeError, RecursionError) as error:  # bytes that are not UTF-8 are a ValueError, too
        raise DataBroken(f"{place}: {' '.join(str(error).split())[:200]}") from error


def _sample(row: Mapping[str, Any]) -> ChatSample:
    kind = row.get("kind", "chat")
    if kind not in KINDS:
        raise ValueError(f"'kind' is one of {', '.join(KINDS)}")
    pieces = [row["target"]] if isinstance(row["target"], str) else row["target"]
    target = tuple(_text(piece, "target") for piece in pieces)
    if not "".join(target).strip():
        raise ValueError("'target' is empty")
    paths, gold = tuple(_text(path, "paths") for path in row.get("paths", ())), tuple(row.get("gold", ()))
    if any(not isinstance(index, int) or not 0 <= index < len(paths) for index in gold):
        raise ValueError("'gold' are indexes of 'paths'")
    prompt = _text(row.get("prompt", ""), "prompt")
    return ChatSample(str(row["id"]), kind, _messages(row), target, paths, gold, prompt)


def _preference(row: Mapping[str, Any]) -> Preference:
    chosen, rejected = _text(row["chosen"], "chosen"), _text(row["rejected"], "rejected")
    if not chosen.strip() or not rejected.strip():
        raise ValueError("'chosen' and 'rejected' are not empty")
    if chosen == rejected:
        raise ValueError("'chosen' and 'rejected' are equal")
    return Preference(str(row["id"]), _messages(row), chosen, rejected)


def _messages(row: Mapping[str, Any]) -> tuple[Message, ...]:
    found = tuple(Message(turn["role"], _text(turn["content"], "content")) for turn in row["messages"])
    if not found or any(message.role not in ROLES for message in found) or found[-1].role == "assistant":
        raise ValueError("'messages' are turns of system, user and assistant, and the last is of the user")
    return found


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is a text")
    return value


def as_row(sample: ChatSample) -> dict[str, Any]:
    """Return a sample as a line of JSON holds it."""
    turns = [{"role": message.role, "content": message.content} for message in sample.messages]
    target = list(sample.target) if len(sample.target) > 1 else sample.target[0]
    row: dict[str, Any] = {"id": sample.id, "kind": sample.kind, "messages": turns, "target": target}
    if sample.paths:
        row |= {"paths": list(sample.paths), "gold": list(sample.gold), "prompt": sample.prompt}
    return row


class SampleEncoder:
    """Writes samples as tokens of a model.

    :param tokenizer: of ``transformers``.
    :param name: of the model, for errors.
    :raises DataBroken: the tokenizer has no token for the end of a text, or its chat template fails.
    """

    def __init__(self, tokenizer: Any, name: str = "the model") -> None:
        if tokenizer.eos_token_id is None:
            raise DataBroken(f"{name}: the tokenizer has no token for the end of a text, so that no reply would end")
        self.tokenizer = tokenizer
        self.name = name
        self._forged = forged_marks(tokenizer)
        self._paths = Loaded(None, tokenizer, self._forged, name)
        self.end = self._end()

    def prompt(self, messages: Sequence[Message], kind: str = "chat") -> list[int]:
        """Return the tokens of a conversation up to the reply, as inference writes them.

        :raises DataBroken: the chat template refuses the turns.
        """
        if kind == "pruner":
            return self._paths.prompt(messages)
        try:
            text, special = prompt_text(self.tokenizer, self._forged, messages)
        except Exception as error:  # a template is a program of the model, and may raise anything
            reason = " ".join(str(error).split())[:160]
            raise DataBroken(f"{self.name}: the chat template refuses a sample ({reason})") from error
        ids = list(self.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"])
        return ids[:-1] if special and ids and ids[-1] == self.tokenizer.eos_token_id else ids

    def reply(self, pieces: Sequence[str]) -> list[int]:
        """Return the tokens of a reply, each piece apart, with the mark that ends it."""
        return [token for ids in self._paths.encode([piece for piece in pieces if piece]) for token in ids] + self.end

    def supervised(self, samples: Sequence[ChatSample], window: int) -> EncodedSamples:
        """Return the tokens of samples for supervised training.

        :raises DataBroken: every sample is over the window.
        """
        found = EncodedSamples()
        for sample in samples:
            prompt, reply = self.prompt(sample.messages, sample.kind), self.reply(sample.target)
            if len(prompt) + len(reply) > window:
                found.long.append(sample.id)
                continue
            found.rows.append({"input_ids": prompt + reply, "labels": [-100] * len(prompt) + reply})
            found.supervised += len(reply)
        return self._checked(found, window)

    def preferred(self, pairs: Sequence[Preference], window: int) -> EncodedSamples:
        """Return the tokens of preferences for DPO.

        :raises DataBroken: every pair is over the window.
        """
        found = EncodedSamples()
        for pair in pairs:
            prompt, chosen, rejected = (
                self.prompt(pair.messages),
                self.reply([pair.chosen]),
                self.reply([pair.rejected]),
            )
            if len(prompt) + max(len(chosen), len(rejected)) > window:
                found.long.append(pair.id)
                continue
            found.rows.append({"prompt_ids": prompt, "chosen_ids": chosen, "rejected_ids": rejected})
            found.supervised += len(chosen) + len(rejected)
        return self._checked(found, window)

    def _checked(self, found: EncodedSamples, window: int) -> EncodedSamples:
        if not found.rows:
            raise DataBroken(f"all {len(found.long)} samples are over the window of {window} tokens; raise --window")
        return found

    def _end(self) -> list[int]:
        """Return the tokens that end a reply: what the chat template writes behind one, up to the end of the text."""
        ending = str(self.tokenizer.eos_token)
        if self.tokenizer.chat_template:
            turns = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": _MARK}]
            try:
                text = str(self.tokenizer.apply_chat_template(turns, tokenize=False))
            except Exception as error:  # a template is a program of the model, and may raise anything
                reason = " ".join(str(error).split())[:160]
                raise DataBroken(
                    f"{self.name}: the chat template fails ({reason}); name another: --template"
                ) from error
            behind = text.rpartition(_MARK)[2]
            if ending in behind:
                ending = behind[: behind.index(ending) + len(ending)]
        return list(self.tokenizer(ending, add_special_tokens=False)["input_ids"])
