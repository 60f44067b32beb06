"""Run text models as ONNX graphs, for embedders and rerankers.

Texts are tokenised in slices, sorted by length, run in small batches of nearly equal length and put back
in order. Padding is wasted work, and large batches of mixed lengths are mostly padding.
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
from ..core.installation import pip_install

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Pairs: TypeAlias = Sequence[str] | Sequence[tuple[str, str]]
"""Input of a tokenizer: single texts, or pairs of texts that the model reads together."""

SLICE: Final = 2048
"""Texts that are tokenised at once; it bounds the memory of a long list."""

BATCH_TOKENS: Final = 8192
"""Most tokens of a batch, padding included; a single text may be longer."""

_POINTS_A_TOKEN: Final = 16
"""Code points that are read for each token of the limit; no real text has longer tokens on average."""

_PROVIDED: Final = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class EncodedText:
    """One tokenised text or pair.

    :param ids: token ids.
    :param types: for each token 0, or 1 if it belongs to the second text of a pair.
    """

    ids: Sequence[int]
    types: Sequence[int]


class CuttingTokenizer:
    """A tokenizer that cuts texts at a number of tokens; special tokens are added and counted."""

    def __init__(self, path: Path, max_tokens: int, pairs: bool = False) -> None:
        self.max_tokens = max_tokens
        self._pairs = pairs
        changed = path.stat().st_mtime_ns
        self._tokenizer = _tokenizer(str(path), changed, max_tokens, pairs)
        self._single = _tokenizer(str(path), changed, max_tokens, False)

    def rows(self, texts: Pairs) -> list[EncodedText]:
        """Return the tokens of each text; lone surrogates, which tokenizers refuse, become '?'."""
        points = self.max_tokens * _POINTS_A_TOKEN
        short: list[Any]
        if self._pairs:
            # a question takes at most half of the tokens, so that the text always has room
            heads = {question: self._head(question) for question in {pair[0] for pair in texts}}
            short = [(heads[pair[0]], pair[1][:points]) for pair in texts]
        else:
            short = [str(text)[:points] for text in texts]
        try:
            encodings = self._tokenizer.encode_batch_fast(short)
        except TypeError:
            encodings = self._tokenizer.encode_batch_fast([_clean(text) for text in short])
        return [EncodedText(encoding.ids, encoding.type_ids) for encoding in encodings]

    def _head(self, question: str) -> str:
        """Return a question cut to half of the tokens of a pair."""
        half = max(1, (self.max_tokens - self._tokenizer.num_special_tokens_to_add(True)) // 2)
        cut = str(_clean(question[: self.max_tokens * _POINTS_A_TOKEN]))
        places = self._single.encode(cut, add_special_tokens=False).offsets
        return cut if len(places) <= half else cut[: places[half - 1][1]]


def _clean(text: Any) -> Any:
    """Replace lone surrogates in a text or a pair."""
    if isinstance(text, tuple):
        return tuple(_clean(part) for part in text)
    return text.encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=8)
def _tokenizer(path: str, changed: int, max_tokens: int, pairs: bool) -> Tokenizer:
    """Load a tokenizer once for the process; a changed file, seen by its time ``changed``, is loaded again."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # the package raises bare Exceptions
        raise BadInput(f"{path}: not a tokenizer ({str(error)[:120]})", subject=path) from error
    tokenizer.no_padding()
    room = max_tokens - tokenizer.num_special_tokens_to_add(pairs)
    if room < 1 + pairs:
        raise BadInput(f"{path}: {max_tokens} tokens leave no room for a text; raise max_tokens", subject=path)
    tokenizer.enable_truncation(max_tokens, strategy="only_second" if pairs else "longest_first")
    return tokenizer


class OnnxGraph:
    """An ONNX graph over token ids; threads may share it.

    :param source: the file, or the serialised graph.
    :param threads: threads per call; 0 is one per core.
    :param pad_id: token id of padding.
    :param name: name of the graph in messages.
    :raises BadInput: the graph cannot be loaded, or does not take token ids.
    :raises MissingExtra: onnxruntime is not installed.
    """

    def __init__(self, source: Path | bytes, *, threads: int, pad_id: int, name: str) -> None:
        self.name = name
        self._pad_id = pad_id
        self._session = _session(source, threads, name)
        self._inputs = {node.name: node.type for node in self._session.get_inputs()}
        self.outputs = {node.name: tuple(node.shape or ()) for node in self._session.get_outputs()}
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
        for index, row in enumerate(rows):
            ids[index, : len(row.ids)] = row.ids
            types[index, : len(row.ids)] = row.types
            mask[index, : max(1, len(row.ids))] = 1  # an empty mask would give NaN
        provided = dict(zip(_PROVIDED, (ids, mask, types, np.maximum(mask.cumsum(1) - 1, 0)), strict=True))
        feed = {name: provided[name].astype(_NUMBERS.get(kind, np.int64)) for name, kind in self._inputs.items()}
        try:
            (values,) = self._session.run([output], feed)
        except Exception as error:  # the package's errors share no public base
            raise BadInput(f"{self.name}: the graph does not run ({_short(error)})", subject=self.name) from error
        return np.asarray(values), mask


_NUMBERS: Final = {"tensor(int32)": np.int32, "tensor(float)": np.float32}


def open_graph(path: Path, *, threads: int, pad_id: int, quantise: bool = False) -> OnnxGraph:
    """Return the graph of a file; it is loaded once for the process, and at most four graphs are kept.

    :param quantise: convert it to int8 first (:func:`quantised`).
    """
    with _LOCK:
        return _graph(path, path.stat().st_mtime_ns, threads, pad_id, quantise)


@lru_cache(maxsize=4)
def _graph(path: Path, changed: int, threads: int, pad_id: int, quantise: bool) -> OnnxGraph:
    source = quantised(path) if quantise else path
    return OnnxGraph(source, threads=threads, pad_id=pad_id, name=str(path))


def _session(source: Path | bytes, threads: int, name: str) -> Any:
    onnxruntime = need_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # threads that spin while they wait take thrice the time where other work is running
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    model = source if isinstance(source, bytes) else str(source)
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the package's errors share no public base
        raise BadInput(f"{name}: not an ONNX graph that can be run ({_short(error)})", subject=name) from error


def quantised(source: Path | bytes) -> bytes:
    """Return an fp32 graph with int8 weights in its matrix products, with one scale per column.

    Activations are quantised dynamically. A product with more inputs than outputs stays fp32: it follows
    the activation function, whose few large values would take the whole int8 range. (MiniLM on passages:
    mean cosine to fp32 is .9945 with these products in int8, .9972 without, for an eighth more time.)

    :raises MissingExtra: ``onnx`` or ``onnxruntime`` is not installed.
    :raises BadInput: the graph cannot be read.
    """
    need_onnxruntime()
    try:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise MissingExtra(f"onnx is not installed; run: {pip_install('onnx')}", subject="onnx") from error
    try:
        model = onnx.load_from_string(source) if isinstance(source, bytes) else onnx.load(str(source))
    except Exception as error:  # protobuf's errors share no public base
        name = "the graph" if isinstance(source, bytes) else str(source)
        raise BadInput(f"{name}: not an ONNX graph ({_short(error)})", subject=name) from error
    # this mark silences a warning of the quantiser: matrix products need no shape inference
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
            f"onnxruntime is not installed; run: {pip_install('onnx')}", subject="onnxruntime"
        ) from error
    return onnxruntime


def _narrowing(model: Any) -> list[str]:
    """Return the names of the matrix products with more inputs than outputs."""
    shapes = {weight.name: tuple(weight.dims) for weight in model.graph.initializer}
    products = [node for node in model.graph.node if node.op_type == "MatMul"]
    named = [(node.name, shapes.get(node.input[1], ())) for node in products]
    return [name for name, shape in named if len(shape) == 2 and shape[0] > shape[1]]


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]


def in_batches(
    texts: Pairs,
    encode: Callable[[Any], list[EncodedText]],
    batch: int,
    ordered: bool = True,
) -> Iterator[tuple[NDArray[np.int64], list[EncodedText]]]:
    """Yield (indices of the texts, tokenised texts) in batches of at most ``batch`` texts and BATCH_TOKENS tokens.

    :param ordered: sort each slice by length first; only a benchmark turns this off.
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
