"""Text models as ONNX graphs: token ids in, numbers out. Embedders and rerankers stand on it.

Texts are tokenised in slices, sorted by length, run in small batches of nearly equal length and
put back in order: padding is work for nothing, and large batches of mixed length are mostly padding.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadInput, MissingExtra

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Pairs: TypeAlias = Sequence[str] | Sequence[tuple[str, str]]
"""What a tokenizer takes: single texts, or pairs that are read together."""

SLICE: Final = 2048
"""Texts that are tokenised at once; what bounds the memory of a long list."""

BATCH_TOKENS: Final = 8192
"""Tokens of a batch, padding included; a single text may be longer."""

_POINTS_A_TOKEN: Final = 16
"""Code points read for each token that a model takes; no real text has longer tokens on average."""

_PROVIDED: Final = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class EncodedText:
    """One tokenised text: ids, and to which text of a pair each belongs."""

    ids: Sequence[int]
    types: Sequence[int]


class CuttingTokenizer:
    """A tokenizer that cuts at a number of tokens; special tokens are added and counted."""

    def __init__(self, path: Path, max_tokens: int, pairs: bool = False) -> None:
        self.max_tokens = max_tokens
        self._pairs = pairs
        changed = path.stat().st_mtime_ns
        self._tokenizer = _tokenizer(str(path), changed, max_tokens, pairs)
        self._single = _tokenizer(str(path), changed, max_tokens, False)

    def rows(self, texts: Pairs) -> list[EncodedText]:
        """Return the tokens of each text; lone surrogates, which no tokenizer takes, become '?'."""
        points = self.max_tokens * _POINTS_A_TOKEN
        short: list[Any]
        if self._pairs:
            # a question takes at most half of the room, so that the text is never crowded out
            heads = {question: self._head(question) for question in {one[0] for one in texts}}
            short = [(heads[one[0]], one[1][:points]) for one in texts]
        else:
            short = [str(text)[:points] for text in texts]
        try:
            found = self._tokenizer.encode_batch_fast(short)
        except TypeError:
            found = self._tokenizer.encode_batch_fast([_clean(one) for one in short])
        return [EncodedText(one.ids, one.type_ids) for one in found]

    def _head(self, question: str) -> str:
        """Return a question cut to half of the tokens that a pair has room for."""
        half = max(1, (self.max_tokens - self._tokenizer.num_special_tokens_to_add(True)) // 2)
        cut = str(_clean(question[: self.max_tokens * _POINTS_A_TOKEN]))
        places = self._single.encode(cut, add_special_tokens=False).offsets
        return cut if len(places) <= half else cut[: places[half - 1][1]]


def _clean(text: Any) -> Any:
    """Replace lone surrogates in a text or a pair."""
    if isinstance(text, tuple):
        return tuple(_clean(one) for one in text)
    return text.encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=8)
def _tokenizer(path: str, changed: int, max_tokens: int, pairs: bool) -> Tokenizer:
    """Load a tokenizer once for the process; ``changed`` makes a new file a new one."""
    from tokenizers import Tokenizer

    try:
        found = Tokenizer.from_file(path)
    except Exception as error:  # the package raises bare Exceptions
        raise BadInput(f"{path}: not a tokenizer ({str(error)[:120]})", subject=path) from error
    found.no_padding()
    room = max_tokens - found.num_special_tokens_to_add(pairs)
    if room < 1 + pairs:
        raise BadInput(f"{path}: {max_tokens} tokens leave no room for a text", subject=path)
    found.enable_truncation(max_tokens, strategy="only_second" if pairs else "longest_first")
    return found


class Graph:
    """An ONNX graph over token ids; threads may share it.

    :param source: the file, or the graph itself.
    :param threads: of one call; 0 is one a core.
    :param name: what messages call it.
    :raises BadInput: it cannot be loaded, or does not take token ids.
    :raises MissingExtra: onnxruntime is not installed.
    """

    def __init__(self, source: Path | bytes, *, threads: int, pad_id: int, name: str) -> None:
        self.name = name
        self._pad_id = pad_id
        self._session = _session(source, threads, name)
        self._inputs = {one.name: one.type for one in self._session.get_inputs()}
        self.outputs = {one.name: tuple(one.shape or ()) for one in self._session.get_outputs()}
        unknown = sorted(set(self._inputs) - set(_PROVIDED))
        if unknown or "input_ids" not in self._inputs:
            wrong = f"wants the input {unknown[0]!r}" if unknown else "has no input 'input_ids'"
            raise BadInput(f"{name}: the graph {wrong}; this is no text encoder", subject=name)

    def run(self, rows: Sequence[EncodedText], output: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return one output of the graph, and the mask of real tokens, int64 [n, longest].

        :raises BadInput: the graph does not run on these inputs.
        """
        width = max(1, max(len(row.ids) for row in rows))
        ids = np.full((len(rows), width), self._pad_id, np.int64)
        mask = np.zeros((len(rows), width), np.int64)
        types = np.zeros((len(rows), width), np.int64)
        for place, row in enumerate(rows):
            ids[place, : len(row.ids)] = row.ids
            types[place, : len(row.ids)] = row.types
            mask[place, : max(1, len(row.ids))] = 1  # nothing at all to attend to gives no numbers
        given = dict(zip(_PROVIDED, (ids, mask, types, np.maximum(mask.cumsum(1) - 1, 0)), strict=True))
        feed = {name: given[name].astype(_NUMBERS.get(kind, np.int64)) for name, kind in self._inputs.items()}
        try:
            (found,) = self._session.run([output], feed)
        except Exception as error:  # the package's errors share no public base
            raise BadInput(f"{self.name}: the graph does not run ({_short(error)})", subject=self.name) from error
        return np.asarray(found), mask


_NUMBERS: Final = {"tensor(int32)": np.int32, "tensor(float)": np.float32}


def open_graph(path: Path, *, threads: int, pad_id: int, quantise: bool = False) -> Graph:
    """Return the graph of a file, loaded once for the process; at most four are kept.

    :param quantise: make it int8 first (:func:`quantised`).
    """
    with _LOCK:
        return _graph(path, path.stat().st_mtime_ns, threads, pad_id, quantise)


@lru_cache(maxsize=4)
def _graph(path: Path, changed: int, threads: int, pad_id: int, quantise: bool) -> Graph:
    source = quantised(path) if quantise else path
    return Graph(source, threads=threads, pad_id=pad_id, name=str(path))


def _session(source: Path | bytes, threads: int, name: str) -> Any:
    onnxruntime = need_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    given = source if isinstance(source, bytes) else str(source)
    try:
        return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the package's errors share no public base
        raise BadInput(f"{name}: not an ONNX graph that can be run ({_short(error)})", subject=name) from error


def quantised(source: Path | bytes) -> bytes:
    """Return an fp32 graph with int8 weights: matrix products only, with a scale for each column.

    Activations are quantised as they come. A product that narrows stays fp32: it follows the
    activation function, whose few large values leave no room for the small ones. (MiniLM on passages:
    mean cosine to fp32 .9945 with them, .9972 without, for an eighth more time.)

    :raises MissingExtra: ``onnx`` is not installed.
    :raises BadInput: the graph cannot be read.
    """
    need_onnxruntime()
    try:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise MissingExtra("onnx is not installed; run: pip install 'prunus[onnx]'", subject="onnx") from error
    try:
        model = onnx.load_from_string(source) if isinstance(source, bytes) else onnx.load(str(source))
    except Exception as error:  # protobuf's errors share no public base
        name = "the graph" if isinstance(source, bytes) else str(source)
        raise BadInput(f"{name}: not an ONNX graph ({_short(error)})", subject=name) from error
    # what the quantiser looks for to leave out a warning; shapes are not needed for matrix products
    model.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "int8.onnx")
        quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=_narrowing(model),
        )
        return path.read_bytes()


def need_onnxruntime() -> Any:
    """Return the package ``onnxruntime``.

    :raises MissingExtra: it is not installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra(
            "onnxruntime is not installed; run: pip install 'prunus[onnx]'", subject="onnxruntime"
        ) from error
    return onnxruntime


def _narrowing(model: Any) -> list[str]:
    """Return the names of the matrix products with more columns in than out."""
    shapes = {one.name: tuple(one.dims) for one in model.graph.initializer}
    products = [node for node in model.graph.node if node.op_type == "MatMul"]
    found = [(node.name, shapes.get(node.input[1], ())) for node in products]
    return [name for name, shape in found if len(shape) == 2 and shape[0] > shape[1]]


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]


def in_batches(
    texts: Pairs,
    encode: Callable[[Any], list[EncodedText]],
    batch: int,
    ordered: bool = True,
) -> Iterator[tuple[NDArray[np.int64], list[EncodedText]]]:
    """Yield (places in the list, tokenised texts) in batches of at most ``batch`` texts and BATCH_TOKENS tokens.

    :param ordered: sort a slice by length first; only a benchmark wants it otherwise.
    """
    for start in range(0, len(texts), SLICE):
        rows = encode(texts[start : start + SLICE])
        lengths = np.fromiter((len(row.ids) for row in rows), np.int64, len(rows))
        order = np.argsort(-lengths, kind="stable") if ordered else np.arange(len(rows))
        first = 0
        while first < len(order):
            last, widest = first, 1
            while last < len(order) and last - first < max(1, batch):
                widest = max(widest, int(lengths[order[last]]))
                if last > first and widest * (last - first + 1) > BATCH_TOKENS:
                    break
                last += 1
            places = order[first:last]
            yield start + places, [rows[place] for place in places]
            first = last
