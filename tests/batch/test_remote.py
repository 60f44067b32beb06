"""Inputs and output of a batch behind an address: fsspec's memory, and S3's protocol on the loopback address."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests import s3_server
from tests.extras import need
from tests.web.archives import packed, page, record, write_archive, write_wacz

from prunus.batch import remote
from prunus.batch.folder import folder_at
from prunus.batch.output import Counts, Output
from prunus.batch.remote import Remote, is_remote
from prunus.batch.run import Batch
from prunus.batch.sources import sources_of
from prunus.batch.work import Task, Work
from prunus.core.errors import BadInput, Failures, OutsideFailed
from prunus.core.settings import Settings

need("pyarrow")
SETTINGS = Settings()


@pytest.fixture(scope="module")
def server() -> Iterator[s3_server.Server]:
    with s3_server.running() as found:
        yield found


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Yield the beginning and the end of addresses in an empty store."""
    if request.param == "memory":
        memory = need("fsspec").filesystem("memory")
        yield "memory://crawls", ""
        memory.rm("/", recursive=True)
        return
    server: s3_server.Server = request.getfixturevalue("server")
    for name, value in server.environment.items():
        if name != "AWS_ENDPOINT_URL":
            monkeypatch.setenv(name, value)
    name = server.bucket(f"crawls-{time.monotonic_ns()}")
    remote._s3.cache_clear()  # it has the keys of the last test
    yield f"s3://{name}", f"?endpoint_override={server.address.removeprefix('http://')}&scheme=http"


def put(address: str, content: bytes, tmp_path: Path) -> str:
    (tmp_path / "sent").write_bytes(content)
    Remote.of(address).put(tmp_path / "sent")
    return address


def run(
    inputs: list[str], out: str, form: Any = "jsonl", parts: int = 1000, task: Task | None = None
) -> tuple[Batch, Counts]:
    """Do a batch in this process, up to a number of parts."""
    task = task or Task(format="text")
    batch = Batch(inputs, task, SETTINGS, rows=4)
    batch.find()
    output, counts, work = Output(out, task, form), Counts(), Work(task, SETTINGS)
    with closing(output):
        batch.begin(output)
        for part in batch.parts():
            if counts.parts == parts:
                break
            counts.add(output.write(part, [work.record(row) for row in part.rows]))
    return batch, counts


def written(out: str) -> list[dict[str, Any]]:
    files = [file.remote for file in Remote.of(out).files() if file.remote.name.startswith("part-")]
    return [json.loads(line) for place in files for line in place.read(1 << 20).splitlines()]


def test_every_kind_of_input_is_read_from_a_store_and_the_output_is_there(
    store: tuple[str, str], tmp_path: Path
) -> None:
    start, end = store
    arrow, parquet = need("pyarrow"), need("pyarrow.parquet")
    need("fastwarc")
    table = io.BytesIO()
    parquet.write_table(arrow.table({"html": [page(n).decode() for n in range(20, 26)]}), table)
    archive = write_archive(tmp_path / "a.warc.gz", 9).read_bytes()
    wacz = write_wacz(tmp_path / "b.wacz", [packed([record(n, page(n)) for n in range(9, 12)])]).read_bytes()
    lines = "".join(json.dumps({"html": page(n).decode()}) + "\n" for n in range(12, 20)).encode()
    held = [
        ("in/a.warc.gz", archive), ("in/b.wacz", wacz), ("in/deep/c.jsonl", lines), ("in/d.parquet", table.getvalue()),
        ("in/site/e.html", page(26)), ("in/site/f.html", page(27)), ("in/left.bin", b"\0"),
    ]  # fmt: skip
    for name, content in held:
        put(f"{start}/{name}{end}", content, tmp_path)
    put(f"{start}/list.txt{end}", b"https://example.org/a\n", tmp_path)
    listed = sources_of([f"{start}/list.txt{end}", f"{start}/in/site/e.html{end}"], Failures())
    assert [source.kind for source in listed] == ["urls", "files"]
    out = f"{start}/out{end}"
    _, half = run([f"{start}/in{end}"], out, parts=3)
    assert half.parts == 3
    batch, rest = run([f"{start}/in{end}"], out)
    assert not batch.failures and rest.parts > 3
    found = written(out)
    assert [row for row in found if row["status"] != "done"] == []
    assert sorted(int(row["output"].split()[1]) for row in found) == list(range(28))
    assert run([f"{start}/in{end}"], out)[1].pages == 0


def test_parquet_is_written_there_too(store: tuple[str, str], tmp_path: Path) -> None:
    start, end = store
    parquet = need("pyarrow.parquet")
    put(f"{start}/a.jsonl{end}", b'{"text": "Trams run daily."}\n', tmp_path)
    run([f"{start}/a.jsonl{end}"], f"{start}/out{end}", "parquet")
    with Remote.of(f"{start}/out/part-00000-00000.parquet{end}").open() as file:
        assert parquet.read_table(file).column("output").to_pylist() == ["Trams run daily."]


def test_what_is_not_there_is_one_line_and_the_rest_goes_on(store: tuple[str, str], tmp_path: Path) -> None:
    start, end = store
    put(f"{start}/a.jsonl{end}", b'{"text": "Trams run daily."}\n', tmp_path)
    batch, counts = run([f"{start}/gone.jsonl{end}", f"{start}/a.jsonl{end}"], str(tmp_path / "out"))
    assert counts.done == 1
    assert list(batch.failures.values()) == [f"{start}/gone.jsonl{end}: no such file or folder"]


def test_a_folder_that_is_no_output_is_refused_and_a_run_that_did_not_end_is_told(
    store: tuple[str, str], tmp_path: Path
) -> None:
    start, end = store
    put(f"{start}/a.jsonl{end}", b'{"text": "Trams run daily."}\n', tmp_path)
    with pytest.raises(BadInput, match="is not the output of a batch"):
        run([str(tmp_path / "sent")], f"{start}{end}")
    with pytest.raises(BadInput, match="within the input"):
        run([f"{start}{end}"], f"{start}/out{end}")
    first, second = folder_at(f"{start}/out{end}"), folder_at(f"{start}/out{end}")
    first.begin()
    second.begin()
    assert not first.warning and "has not ended or was killed" in second.warning
    second.close()


@pytest.mark.parametrize("name", ["a.warc.gz", "b.jsonl"])
def test_a_store_that_ends_in_the_middle_is_read_on_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    memory = need("fsspec").filesystem("memory")
    need("fastwarc")
    lines = b"".join(json.dumps({"html": page(n).decode()}).encode() + b"\n" for n in range(900))
    content = lines if name == "b.jsonl" else write_archive(tmp_path / name, 900).read_bytes()
    put(f"memory://in/{name}", content, tmp_path)
    read = remote._Raw.readinto

    def dying(self: Any, buffer: Any) -> int:
        if self.tell() > len(content) // 2:
            raise OutsideFailed("the store is gone", subject="store")
        return read(self, buffer)

    monkeypatch.setattr(remote, "_BUFFER", 1 << 14)
    monkeypatch.setattr(remote._Raw, "readinto", dying)
    batch, first = run([f"memory://in/{name}"], str(tmp_path / "out"))
    assert list(batch.failures.values()) == ["the store is gone"] and first.pages > 0 and not first.failed
    monkeypatch.setattr(remote._Raw, "readinto", read)
    batch, second = run([f"memory://in/{name}"], str(tmp_path / "out"))
    assert not batch.failures and first.pages + second.pages == 900 and not second.failed
    memory.rm("/", recursive=True)


def test_a_dead_store_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = Failures()
    monkeypatch.setattr(remote, "SECONDS", 0.2)
    monkeypatch.setattr(Remote, "_reach", lambda self: (Silent(), self.path))
    started = time.monotonic()
    with pytest.raises(OSError, match="no answer within"):
        remote.limited(lambda: time.sleep(60), Remote.of("memory://x"), 0.2)
    assert sources_of(["memory://dead/a.jsonl"], failures) == [] and time.monotonic() - started < 30
    assert "memory://dead/a.jsonl: cannot be read" in failures["memory://dead/a.jsonl"]


class Silent:
    def get_file_info(self, path: Any) -> Any:
        raise TimeoutError(110, "no answer within 60 seconds")


def test_an_s3_store_that_nobody_serves_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    failures = Failures()
    assert sources_of(["s3://b/a.jsonl?endpoint_override=127.0.0.1:9&scheme=http&region=x"], failures) == []
    [line] = failures.values()
    assert "cannot be read" in line and "\n" not in line


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("s3://key:secret@bucket/x", "leave the key out of the address"),
        ("abfss://files@account.example/x?account_key=secret", "leave the key out of the address"),
        ("s3://bucket/x?colour=red", "an address of s3 takes endpoint_override, region, scheme"),
        ("nosuch://bucket/x", "nosuch"),
    ],
)
def test_an_address_that_cannot_be_used_is_one_line(address: str, reason: str) -> None:
    failures = Failures()
    assert sources_of([address], failures) == []
    [line] = failures.values()
    assert reason in line and "secret" not in line


def test_addresses_of_pages_and_paths_are_no_stores() -> None:
    names = ["https://example.org/a", "a/b.html", "C:\\pages", "/tmp/x", "postgresql://h/d", "a:b", "s3:/x"]
    assert [name for name in names if is_remote(name)] == []
    assert is_remote("s3://bucket/x") and is_remote("memory://x") and is_remote("hdfs://host:9000/x")


def test_a_row_that_names_a_file_in_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"path": "ftp://inner/secret"}\n')
    run([str(tmp_path / "a.jsonl")], str(tmp_path / "out"))
    [row] = [json.loads(line) for line in (tmp_path / "out" / "part-00000-00000.jsonl").read_text().splitlines()]
    assert row["status"] == "failed" and "path is an address" in row["error"]
