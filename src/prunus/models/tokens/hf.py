"""``hf:PATH``: any tokenizer saved as ``tokenizer.json`` (a file, or a folder that holds one)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput
from ..encoding import encode


class Engine:
    """Counts tokens with a tokenizer file of the Hugging Face ``tokenizers`` format.

    :param model: path of ``tokenizer.json``, or of a folder that holds it.
    :raises BadInput: there is no such file, or it holds no tokenizer.
    """

    name = "hf"

    def __init__(self, model: str = "") -> None:
        from tokenizers import Tokenizer

        path = Path(model)
        path = path / "tokenizer.json" if path.is_dir() else path
        if not model or not path.is_file():
            raise BadInput(
                f"tokenizer hf:{model}: no such file; give hf:PATH of a tokenizer.json", subject=f"hf:{model}"
            )
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for a malformed file
            raise BadInput(f"tokenizer hf:{model}: not a tokenizer file ({error})", subject=f"hf:{model}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of tokens of each text, shape [n]."""
        encodings = encode(self._tokenizer, texts)
        return np.fromiter((len(encoding) for encoding in encodings), np.int64, len(texts))
