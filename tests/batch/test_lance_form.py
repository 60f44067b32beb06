"""``--to lance``: one dataset of exactly the parts that are noted, whatever stopped the runs before."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests import s3_server
from tests.cli.command import PROGRAM, environment
from tests.extras import need
from tests.web.archives import page

from prunus.batch.lance_form import NAME
from prunus.batch.output import Output
from prunus.batch.run import Batch
from prunus.batch.work import Task, Work
from prunus.cli.main import app
from prunus.core.errors import BadInput
from prunus.core.settings import Settings

lance = need("lance")
SETTINGS, TASK = Settings(), Task(format="text")


def rows(folder: Path, pages: int) -> str:
    path = folder / "pages.jsonl"
    path.write_text("".join(json.dumps({"id": n, "html": page(n).decode()}) + "\n" for n in range(pages)), "utf-8")
    return str(path)


def run(given: str, out: str, parts: int = 1000, finish: bool = True, unnoted: bool = False) -> None:
    """Do parts of the batch in this process.

    :param unnoted: end after the data of one more part are written, before its note.
    """
    batch, work = Batch([given], TASK, SETTINGS, rows=3), Work(TASK, SETTINGS)
    batch.find()
    output = Output(out, TASK, "lance")
    with closing(output):
        batch.begin(output)
        for number, part in enumerate(batch.parts()):
            records = [work.record(row) for row in part.rows]
            if number == parts:
                if unnoted:
                    output._fragments([{"source": part.name, **record} for record in records])
                break
            output.write(part, records)
        if finish:
            output.finish()


def ids(out: str, options: Any = None) -> list[str]:
    return list(lance.dataset(f"{out}/{NAME}", storage_options=options).to_table().column("id").to_pylist())


ALL = [str(number) for number in range(20)]


def test_a_run_that_was_stopped_is_resumed_and_nothing_is_lost_or_there_twice(tmp_path: Path) -> None:
    given, out = rows(tmp_path, 20), str(tmp_path / "out")
    run(given, out, parts=2, finish=False, unnoted=True)
    assert not (tmp_path / "out" / NAME / "_versions").exists()  # nothing is visible before the commit
    run(given, out, parts=2, unnoted=True)
    assert ids(out) == ALL[:12]
    run(given, out)
    assert ids(out) == ALL
    version = lance.dataset(f"{out}/{NAME}").version
    run(given, out)
    assert (ids(out), lance.dataset(f"{out}/{NAME}").version) == (ALL, version)
    (tmp_path / "out" / "_batch" / "00000-00002.json").unlink()
    run(given, out)
    assert ids(out) == ALL


@pytest.mark.usefixtures("in_this_process")
def test_the_command_line_writes_what_parquet_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("pyarrow.parquet")
    rows(tmp_path, 20)
    monkeypatch.chdir(tmp_path)
    for form in ("parquet", "lance"):
        command = ["batch", "pages.jsonl", "-o", form, "--do", "clean", "--to", form, "--part", "6", "--workers", "1"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.stderr
    from pyarrow.parquet import read_table

    assert lance.dataset(tmp_path / "lance" / NAME).to_table().equals(read_table(tmp_path / "parquet"))


def test_a_dataset_in_a_store_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prunus.batch import remote

    with s3_server.running() as server:
        for name, value in server.environment.items():
            if name != "AWS_ENDPOINT_URL":
                monkeypatch.setenv(name, value)
        remote._s3.cache_clear()
        given, name = rows(tmp_path, 20), server.bucket("records")
        out = f"s3://{name}/out?endpoint_override={server.address.removeprefix('http://')}&scheme=http"
        run(given, out, parts=3, finish=False)
        run(given, out)
        options = {"aws_endpoint": server.address, "allow_http": "true"}
        assert ids(f"s3://{name}/out", options) == ALL


def test_a_store_that_lance_does_not_reach_is_one_line(tmp_path: Path) -> None:
    need("fsspec")
    with pytest.raises(BadInput, match="Lance writes to this machine and to"):
        run(rows(tmp_path, 1), "memory://out")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow  # Lance has threads of its own: each run is a process from its start
def test_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    import subprocess
    import time

    rows(tmp_path, 20)
    chance, killed = random.Random(3), 0
    command = [*PROGRAM, "batch", "pages.jsonl", "-o", "out", "--do", "clean", "--to", "lance", "--part", "1"]
    for _ in range(8):
        before = len(list((tmp_path / "out").glob("_batch/0*.json")))
        process = subprocess.Popen([*command, "--workers", "1", "--quiet"], cwd=tmp_path, env=environment())
        while process.poll() is None and len(list((tmp_path / "out").glob("_batch/0*.json"))) < before + 2:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    done = subprocess.run([*command, "--workers", "1"], cwd=tmp_path, env=environment(), capture_output=True)
    assert done.returncode == 0 and killed >= 2, done.stderr.decode()
    assert ids(str(tmp_path / "out")) == ALL
    shutil.rmtree(tmp_path / "out")
