"""Find the files of a text model in a folder or in the hub's local cache, and read their settings.

A hub id (``owner/name``) is looked up in the local cache of ``huggingface_hub``. Nothing is downloaded
unless the caller sets ``download``; then that package fetches the missing files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ..core.errors import BadInput, MissingExtra, OutsideFailed
from ..core.installation import pip_install

_HUB_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SETTINGS_BYTES: Final = 8 << 20
"""Most bytes of a settings file."""

_SETTINGS: Final = ("*.json", "*.txt", "*/*.json", "*.model")
WEIGHTS: Final = (*_SETTINGS, "*.safetensors", "*/*.safetensors")
"""Files of a hub model that torch needs: never code, never pickles."""

_FP32: Final = ("model.onnx", "onnx/model.onnx")
_INT8: Final = (
    "model_int8.onnx",
    "onnx/model_int8.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
    "onnx/model_qint8_avx512_vnni.onnx",
    "onnx/model_qint8_avx512.onnx",
    "onnx/model_quint8_avx2.onnx",
    "onnx/model_qint8_arm64.onnx",
)

_OFFSET: Final = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})
"""Kinds of model whose positions begin after the padding index, so that two positions are never used."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The files of a model.

    :param path: the folder.
    :param graph: the ONNX file of the wanted precision, or the fp32 file where there is none.
    :param ready: whether ``graph`` has the wanted precision.
    :param settings: content of ``config.json``; empty where there is none.
    """

    path: Path
    graph: Path
    ready: bool
    settings: Mapping[str, Any] = field(default_factory=dict)

    def read(self, name: str) -> dict[str, Any]:
        """Return a JSON file of the folder; {} where there is none.

        :raises BadInput: the file holds no JSON object.
        """
        return read_json(self.path / name)

    @property
    def tokenizer(self) -> Path:
        """The tokenizer's file.

        :raises BadInput: there is none.
        """
        path = self.path / "tokenizer.json"
        if not path.is_file():
            raise BadInput(
                f"{self.path}: no tokenizer.json; save the model with a fast tokenizer", subject=str(self.path)
            )
        return path

    @property
    def pad_id(self) -> int:
        """The token id of padding."""
        token = self.settings.get("pad_token_id")
        return token if isinstance(token, int) and token >= 0 else 0

    def longest(self, *limits: int) -> int:
        """Return how many tokens the model reads: the least limit of its files and of ``limits``, else 512.

        :param limits: more limits; 0 is no limit.
        """
        stated = [*limits, self.read("sentence_bert_config.json").get("max_seq_length")]
        stated.append(self.read("tokenizer_config.json").get("model_max_length"))
        positions = self.settings.get("max_position_embeddings")
        if isinstance(positions, int):
            stated.append(positions - 2 if self.settings.get("model_type") in _OFFSET else positions)
        # a tokenizer without a limit states a huge number
        known = [int(limit) for limit in stated if isinstance(limit, int | float) and 0 < limit < 1_000_000]
        return min(known, default=512)


def find_model(model: str, *, precision: str = "fp32", download: bool = False, kind: str = "onnx") -> ModelFolder:
    """Return the files of a model.

    :param model: a folder, an ``.onnx`` file in it, or a hub id ``owner/name``.
    :param precision: ``fp32`` or ``int8``.
    :param download: let ``huggingface_hub`` fetch files that its cache lacks.
    :param kind: name of the engine, for messages.
    :raises BadInput: there is no such folder, or it lacks a file.
    :raises MissingExtra: ``model`` is a hub id, and the package ``huggingface_hub`` is not installed.
    :raises OutsideFailed: the hub cannot be reached, or does not have the model.
    """
    if not model:
        raise BadInput(f"{kind} needs a model: {kind}:FOLDER or {kind}:OWNER/NAME", subject=kind)
    path = Path(model).expanduser()
    graph = None
    if path.suffix == ".onnx":
        graph, path = path, path.parent.parent if path.parent.name == "onnx" else path.parent
        if not graph.is_file():
            raise BadInput(f"{model}: no such file", subject=model)
    elif not path.is_dir():
        path = hub_folder(model, [*_SETTINGS, *(_INT8 if precision == "int8" else ()), *_FP32, "*.onnx_data"], download)
    settings = read_json(path / "config.json")
    if graph is not None:
        return ModelFolder(path, graph, True, settings)
    names = (*_INT8, *_FP32) if precision == "int8" else _FP32
    for name in names:
        if (path / name).is_file():
            return ModelFolder(path, path / name, name in _INT8 or precision == "fp32", settings)
    raise BadInput(f"{path}: holds neither model.onnx nor onnx/model.onnx; export the model to ONNX", subject=str(path))


def hub_folder(model: str, patterns: Sequence[str], download: bool) -> Path:
    """Return the folder of a hub model in the local cache.

    :param patterns: names of the files, with wildcards.
    :param download: fetch files that the cache lacks.
    :raises BadInput: ``model`` is neither a folder nor a hub id, or is not in the cache.
    :raises MissingExtra: ``huggingface_hub`` is not installed.
    :raises OutsideFailed: fetching failed.
    """
    if not _HUB_ID.fullmatch(model) or model.startswith((".", "/", "~")):
        raise BadInput(f"{model}: no such folder, and no hub id either (OWNER/NAME)", subject=model)
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError as error:
        raise MissingExtra(
            f"{model}: no such folder; to look it up in the hub's cache, run: {pip_install('onnx')}", subject=model
        ) from error
    try:
        return Path(snapshot_download(model, allow_patterns=list(patterns), local_files_only=not download))
    except LocalEntryNotFoundError as error:
        if download:
            raise OutsideFailed(f"{model}: the model hub cannot be reached", subject=model) from error
        raise BadInput(
            f"{model}: no such folder, and not in the hub's local cache; fetch it with: hf download {model}",
            subject=model,
        ) from error
    except (OSError, ValueError) as error:
        raise OutsideFailed(f"{model}: the model hub refused it ({_first_line(error)})", subject=model) from error


def installed_file(package: str, *parts: str, missing: str) -> Path:
    """Return the path of a file inside of an installed package, which is not imported.

    :param missing: the error where it is not there, with the way out.
    :raises MissingExtra: the package is not installed, or lacks the file.
    """
    spec = find_spec(package)
    path = Path(spec.origin).parent.joinpath(*parts) if spec and spec.origin else None
    if path is None or not path.is_file():
        raise MissingExtra(missing, subject=package.replace("_", "-"))
    return path


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object from a file; {} where there is no such file.

    :raises BadInput: the file is over 8 MiB, or holds no JSON object.
    """
    if not path.is_file():
        return {}
    if path.stat().st_size > _SETTINGS_BYTES:
        raise BadInput(f"{path}: over 8 MiB, too large for a settings file", subject=str(path))
    try:
        value = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not valid JSON ({_first_line(error)})", subject=str(path)) from error
    if not isinstance(value, dict):
        raise BadInput(f"{path}: not a JSON object", subject=str(path))
    return value


def split_precision(model: str) -> tuple[str, str]:
    """Split ``PATH#int8`` into path and precision; the default is ``fp32``.

    :raises BadInput: there is no such precision.
    """
    path, _, precision = model.partition("#")
    if precision not in ("", "fp32", "int8"):
        raise BadInput(f"{model}: no such precision: {precision}; there are: fp32, int8", subject=model)
    return path, precision or "fp32"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
