"""The same function runs plain, on Ray and on Spark, with the same records; and ``--on ray`` writes what one machine writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import PROGRAM, environment
from tests.extras import need
from tests.index.test_store_contract import server  # noqa: F401
from tests.web.archives import page, write_archive

from prunus.batch.arrow import Mapper
from prunus.batch.on_ray import package, started
from prunus.batch.work import Task

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::FutureWarning"),
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_batch.py"
TASK = Task("prune", "Which year did bridge number 3 open?", 40)


def pages(count: int) -> Any:
    return need("pyarrow").table(
        {"id": [str(number) for number in range(count)], "html": [page(n).decode() for n in range(count)]}
    )


@pytest.fixture
def ray() -> Iterator[Any]:
    need("ray")
    found = package()
    with started(found, "", 1):
        yield found


def test_ray_gives_what_the_plain_call_gives(ray: Any) -> None:
    table = pages(20)
    data = ray.data.from_arrow(table).map_batches(
        Mapper,
        fn_constructor_args=(TASK,),
        batch_size=6,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=1),
    )
    found = sorted(data.take_all(), key=lambda row: int(row["id"]))
    assert found == Mapper(TASK)(table).to_pylist()


def test_spark_gives_what_the_plain_call_gives(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="Spark and Java are large: install pyspark and a JRE to run this")
    if not shutil.which("java"):
        pytest.skip("Spark needs Java")
    parquet = need("pyarrow.parquet")
    parquet.write_table(pages(8), tmp_path / "pages.parquet")
    command = [sys.executable, str(EXAMPLE), "pages.parquet", "out.parquet", TASK.question]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment() | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    rows = sorted(parquet.read_table(tmp_path / "out.parquet").to_pylist(), key=lambda row: int(row["id"]))
    expected = Mapper(Task("prune", TASK.question, 512))(pages(8)).to_pylist()
    assert rows == expected and "1803" in rows[3]["output"]


def batch(folder: Path, *choices: str) -> subprocess.CompletedProcess[bytes]:
    command = [
        *PROGRAM, "batch", "a.warc.gz", "b.jsonl", "bad.parquet", *choices, "--do", "clean", "--part", "4",
        "--workers", "2",
    ]  # fmt: skip
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, timeout=1500)


def test_a_batch_on_ray_writes_what_this_machine_writes(tmp_path: Path) -> None:
    need("ray")
    need("fastwarc")
    write_archive(tmp_path / "a.warc.gz", 21)
    (tmp_path / "b.jsonl").write_text(
        "".join(json.dumps({"html": page(n).decode()}) + "\n" for n in range(9)) + "{broken\n"
    )
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    here = batch(tmp_path, "-o", "here", "--json")
    there = batch(tmp_path, "-o", "there", "--json", "--on", "ray")
    assert (here.returncode, there.returncode) == (5, 5), there.stderr.decode()[-2000:]
    names = sorted(path.name for path in (tmp_path / "here").glob("part-*"))
    assert len(names) == 6 + 3 and names == sorted(path.name for path in (tmp_path / "there").glob("part-*"))
    for name in names:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    told = [
        {key: row[key] for key in ("pages", "failed_by_kind", "inputs_failed")}
        for row in map(json.loads, (here.stdout, there.stdout))
    ]
    assert told[0] == told[1] and b"Traceback" not in there.stderr
    (tmp_path / "there" / "_batch" / "00000-00002.json").unlink()
    again = batch(tmp_path, "-o", "there", "--json", "--on", "ray")
    assert json.loads(again.stdout)["pages"] == 4


def test_jobs_on_ray_have_the_records_of_this_machine(tmp_path: Path) -> None:
    need("ray")
    jobs = [{"id": n, "command": "clean", "html": f"<p>Page {n}."} for n in range(5)]
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs) + "{broken\n")
    command = [*PROGRAM, "batch", "jobs.jsonl", "--workers", "2", "--quiet", "-o"]
    for choices in (["here"], ["there", "--on", "ray"], ["there", "--on", "ray"]):
        done = subprocess.run([*command, *choices], cwd=tmp_path, env=environment(), capture_output=True, timeout=600)
        assert done.returncode == 5, done.stderr
    here, there = (sorted((tmp_path / name).read_bytes().splitlines()) for name in ("here", "there"))
    assert here == there and len(here) == 6


def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    need("ray")
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    command = [*PROGRAM, "batch", "a.jsonl", "-o", "out", "--do", "clean", "--on", "ray:127.0.0.1:1"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, timeout=100)
    assert done.returncode == 3 and done.stderr.count(b"\n") == 1
    assert b"cannot be reached" in done.stderr

    for place in ("ray:", "ray:no-port", "spark"):
        done = subprocess.run([*command[:-1], place], cwd=tmp_path, env=environment(), capture_output=True, timeout=100)
        assert done.returncode == 2 and done.stderr.count(b"\n") == 1, done.stderr


def build_index(folder: Path, name: str, *choices: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    command = [*PROGRAM, "batch", "a.warc.gz", "-o", name, "--do", "index", "--part", "4", "--json", *choices]
    return subprocess.run(command, cwd=folder, env=environment() | settings, capture_output=True, timeout=1500)


def asked(folder: Path, name: str, **settings: str) -> list[str]:
    """Return the lines of the evidence without the numbers of documents: Ray adds parts in the order in which they end."""
    command = [*PROGRAM, "index", "retrieve", name, "-q", TASK.question, "--json"]
    done = subprocess.run(command, cwd=folder, env=environment() | settings, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return sorted(re.sub(r"^<!-- \d+ ", "<!-- ", line) for line in json.loads(done.stdout)["output"].splitlines())


def test_an_index_that_ray_builds_answers_as_that_of_one_process(
    tmp_path: Path,
    server: str,  # noqa: F811
) -> None:
    need("ray")
    need("fastwarc")
    write_archive(tmp_path / "a.warc.gz", 21)
    with_postgres = {"PRUNUS_STORE": f"postgres:{server}"}
    here = build_index(tmp_path, "here", "--workers", "1")
    there = build_index(tmp_path, "there", "--on", "ray")
    served = build_index(tmp_path, "served", "--on", "ray", **with_postgres)
    assert [run.returncode for run in (here, there, served)] == [0, 0, 0], there.stderr + served.stderr
    assert all(json.loads(run.stdout)["done"] == 21 for run in (here, there, served))
    answer = asked(tmp_path, "here")
    assert any("1803" in line for line in answer)
    assert answer == asked(tmp_path, "there") == asked(tmp_path, "served", **with_postgres)
    again = build_index(tmp_path, "served", "--on", "ray", **with_postgres)
    assert again.returncode == 0 and json.loads(again.stdout)["done"] == 0
