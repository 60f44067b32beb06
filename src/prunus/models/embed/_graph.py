"""Build an ONNX graph from a BERT encoder's weights, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadInput, MissingExtra
from ...core.installation import pip_install

OPSET = 20
"""The first operator set that has ``Gelu``."""


def bert_graph(weights: Path, settings: Mapping[str, Any]) -> bytes:
    """Return a serialised graph: input_ids, attention_mask, token_type_ids → last_hidden_state.

    For speed, the three projections of attention are one matrix product, and the scale of the attention
    scores is multiplied into the query weights.

    :param weights: a safetensors file with the weight names of Hugging Face's BertModel.
    :param settings: the content of the model's ``config.json``.
    :raises MissingExtra: the package ``onnx`` is not installed.
    :raises BadInput: the model is of another kind, or a weight is missing.
    """
    try:
        from onnx import helper
    except ImportError as error:
        raise MissingExtra(f"onnx is not installed; run: {pip_install('onnx')}", subject="onnx") from error
    if settings.get("model_type") != "bert" or settings.get("hidden_act") != "gelu":
        raise BadInput(f"{weights}: not a BERT model with gelu; no other kind is supported", subject=str(weights))
    build = _Builder(weights)
    try:
        out = build.encoder(settings)
    except KeyError as error:
        raise BadInput(f"{weights}: lacks the weight {error}", subject=str(weights)) from error
    int64, float32 = 7, 1  # TensorProto's own numbers
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        build.nodes,
        "bert",
        [helper.make_tensor_value_info(name, int64, ["batch", "tokens"]) for name in names],
        [helper.make_tensor_value_info(out, float32, ["batch", "tokens", int(settings["hidden_size"])])],
        build.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    return bytes(model.SerializeToString())


class _Builder:
    """Collects nodes and constants; every method returns the name of its output."""

    def __init__(self, weights: Path) -> None:
        from safetensors.numpy import load_file

        try:
            self._weights: dict[str, NDArray[Any]] = load_file(str(weights))
        except Exception as error:  # the package's errors share no public base
            raise BadInput(f"{weights}: not a safetensors file ({error})", subject=str(weights)) from error
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def weight(self, name: str) -> NDArray[np.float32]:
        return self._weights[name].astype(np.float32)

    def constant(self, value: NDArray[Any], name: str = "") -> str:
        from onnx import numpy_helper

        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def node(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        from onnx import helper

        out = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [out], name=out, **attributes))
        return out

    def dense(self, x: str, matrix: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        return self.node("Add", self.node("MatMul", x, self.constant(matrix)), self.constant(bias))

    def named(self, x: str, name: str) -> str:
        return self.dense(x, self.weight(f"{name}.weight").T, self.weight(f"{name}.bias"))

    def norm(self, x: str, name: str, epsilon: float, out: str = "") -> str:
        scale, bias = (self.constant(self.weight(f"{name}.{part}")) for part in ("weight", "bias"))
        return self.node("LayerNormalization", x, scale, bias, out=out, axis=-1, epsilon=epsilon)

    def encoder(self, settings: Mapping[str, Any]) -> str:
        """Add the whole encoder."""
        epsilon, layers = float(settings["layer_norm_eps"]), int(settings["num_hidden_layers"])
        table = {part: self.weight(f"embeddings.{part}_embeddings.weight") for part in _TABLES}
        words = self.node("Gather", self.constant(table["word"]), "input_ids")
        kinds = self.node("Gather", self.constant(table["token_type"]), "token_type_ids")
        length = self.node("Shape", "input_ids", start=1, end=2)
        start, axes = self.constant(np.array([0])), self.constant(np.array([0]))
        places = self.node("Slice", self.constant(table["position"]), start, length, axes)
        x = self.node("Add", self.node("Add", words, kinds), places)
        x = self.norm(x, "embeddings.LayerNorm", epsilon)
        visible = self.node("Cast", self.node("Unsqueeze", "attention_mask", self.constant(np.array([1, 2]))), to=1)
        hidden = self.node("Sub", self.constant(np.array(1, np.float32)), visible)
        mask = self.node("Mul", hidden, self.constant(np.array(-1e9, np.float32)))
        for number in range(layers):
            x = self.layer(x, mask, number, settings, "last_hidden_state" if number == layers - 1 else "")
        return x

    def layer(self, x: str, mask: str, number: int, settings: Mapping[str, Any], out: str) -> str:
        """Add one layer: attention, then two dense steps, each with its residual and norm."""
        name, epsilon = f"encoder.layer.{number}", float(settings["layer_norm_eps"])
        heads, size = int(settings["num_attention_heads"]), int(settings["hidden_size"])
        scale = np.float32((size // heads) ** -0.5)
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        factor = (scale, np.float32(1), np.float32(1))
        matrix = np.concatenate([self.weight(f"{p}.weight").T * f for p, f in zip(parts, factor, strict=True)], 1)
        bias = np.concatenate([self.weight(f"{p}.bias") * f for p, f in zip(parts, factor, strict=True)])
        shape = self.constant(np.array([0, 0, 3, heads, size // heads]))
        both = self.node("Reshape", self.dense(x, matrix, bias), shape)
        both = self.node("Transpose", both, perm=[2, 0, 3, 1, 4])
        query, key, value = (self.node("Gather", both, self.constant(np.array(i)), axis=0) for i in range(3))
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 1, 3, 2]))
        weights = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        mixed = self.node("Reshape", mixed, self.constant(np.array([0, 0, size])))
        mixed = self.named(mixed, f"{name}.attention.output.dense")
        x = self.norm(self.node("Add", x, mixed), f"{name}.attention.output.LayerNorm", epsilon)
        wide = self.node("Gelu", self.named(x, f"{name}.intermediate.dense"))
        wide = self.named(wide, f"{name}.output.dense")
        return self.norm(self.node("Add", x, wide), f"{name}.output.LayerNorm", epsilon, out)


_TABLES = ("word", "token_type", "position")
