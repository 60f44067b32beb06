"""Write a trained cross-encoder as the files that the engine ``prunus`` loads: ONNX in int8, tokenizer, settings.

Matrix products take int8 weights with one scale a column; the products behind the activation function keep exact
inputs, as :mod:`prunus.models.onnx_encoder` explains, but their weights are stored as int8, too. The tokens' vectors
are int8 with one scale a token.
"""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from prunus.core.installation import pip_install
from prunus_train.data.reader import ABOVE
from prunus_train.errors import TrainError
from prunus_train.reader_model import CrossEncoder

GRAPH: Final = "model_int8.onnx"
_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_SMALL: Final = 4096
"""Weights of fewer numbers stay as they are."""


def write(model: CrossEncoder, tokenizer: Any, folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the model's files.

    :param tokenizer: a ``tokenizers.Tokenizer`` that gives each text of a pair its own [CLS].
    :param settings: ``max_tokens``, the most tokens of a pair, and the weights ``beside`` and ``added``.
    :raises TrainError: the packages of the extra ``onnx`` are missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    longest = int(settings["max_tokens"])
    graph = int8(exported(model, longest))
    part = folder / f"{GRAPH}.part"
    part.write_bytes(graph)
    part.replace(folder / GRAPH)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "model_type": "prunus-reader",
        "max_position_embeddings": longest,
        "pad_token_id": 0,
        "prunus": {"above": ABOVE, "beside": float(settings["beside"]), "added": float(settings["added"])},
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def exported(model: CrossEncoder, longest: int) -> bytes:
    """Return the model as an fp32 graph.

    :param longest: positions beyond this are left out.
    """
    model.eval()
    ids = torch.full((2, 9), model.shape.first_word)
    types = torch.zeros_like(ids)
    types[:, 4:] = 1
    kept = model.positions.weight.data
    model.positions.weight.data = kept[:longest]
    found = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter: this one needs no package but onnx
            torch.onnx.export(
                model,
                (ids, torch.ones_like(ids), types),
                found,
                dynamo=False,
                opset_version=17,
                input_names=list(_INPUTS),
                output_names=["logits"],
                dynamic_axes={name: {0: "rows", 1: "tokens"} for name in _INPUTS} | {"logits": {0: "rows"}},
            )
    except ImportError as error:
        raise TrainError(f"onnx is not installed; run: {pip_install('onnx')}") from error
    finally:
        model.positions.weight.data = kept
    return found.getvalue()


def int8(graph: bytes) -> bytes:
    """Return an fp32 graph with int8 weights."""
    try:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise TrainError(f"onnx and onnxruntime are not installed; run: {pip_install('onnx')}") from error
    model = onnx.load_from_string(graph)
    model.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")  # silences a warning
    shapes = {weight.name: tuple(weight.dims) for weight in model.graph.initializer}
    narrowing = [
        node.name
        for node in model.graph.node
        if node.op_type == "MatMul" and len(shape := shapes.get(node.input[1], ())) == 2 and shape[0] > shape[1]
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "int8.onnx")
        quantize_dynamic(
            model, path, op_types_to_quantize=["MatMul"], per_channel=True, weight_type=QuantType.QInt8,
            nodes_to_exclude=narrowing,
        )  # fmt: skip
        model = onnx.load(str(path))
    _store_small(model)
    return bytes(model.SerializeToString())


def _store_small(model: Any) -> None:
    """Store the large fp32 weights that are left as int8 with scales, in place."""
    from onnx import helper, numpy_helper

    used = {name: node for node in model.graph.node for name in node.input}
    before: list[Any] = []
    for weight in list(model.graph.initializer):
        values = numpy_helper.to_array(weight)
        if values.dtype != np.float32 or values.ndim != 2 or values.size < _SMALL:
            continue
        node = used[weight.name]
        model.graph.initializer.remove(weight)
        gathered = node.op_type == "Gather"
        stored, scales = _rounded(values, axis=1 if gathered else 0)
        name = weight.name
        model.graph.initializer.append(numpy_helper.from_array(stored, f"{name}.int8"))
        model.graph.initializer.append(numpy_helper.from_array(scales, f"{name}.scales"))
        if gathered:  # only the rows that a text has are made whole
            place, output = list(model.graph.node).index(node), node.output[0]
            parts = [
                helper.make_node("Gather", [f"{name}.int8", node.input[1]], [f"{name}.rows"]),
                helper.make_node("Gather", [f"{name}.scales", node.input[1]], [f"{name}.row_scales"]),
                helper.make_node("Cast", [f"{name}.rows"], [f"{name}.wide"], to=1),
                helper.make_node("Mul", [f"{name}.wide", f"{name}.row_scales"], [output]),
            ]
            model.graph.node.remove(node)
            for part in reversed(parts):
                model.graph.node.insert(place, part)
        else:
            before.append(helper.make_node("Cast", [f"{name}.int8"], [f"{name}.wide"], to=1))
            before.append(helper.make_node("Mul", [f"{name}.wide", f"{name}.scales"], [name]))
    for part in reversed(before):  # the runtime folds these when it loads the graph
        model.graph.node.insert(0, part)


def _rounded(values: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return int8 numbers and their scales, one for each slice along the other axis."""
    scales = np.maximum(np.abs(values).max(axis=axis, keepdims=True), 1e-12) / 127
    return np.clip(np.rint(values / scales), -127, 127).astype(np.int8), scales.astype(np.float32)
