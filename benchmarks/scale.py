"""Batches over an archive: pages a second, CPU and memory by the number of workers, beside a plain loop, and on Ray.

    python -m benchmarks.scale --pages 2000 --workers 1,2 --do clean --ray

The archive is made: pages of the shape of real ones (menus, tables, scripts, a long tail of sizes), the same at every
run. Wall time depends on what else the machine does; CPU seconds a page and their ratio do not. Memory is the largest
of the processes. ``late`` is the memory in the last third of a run against that in its second third: 1 is flat.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.report import json_line, table

PROGRAM = "import sys; from prunus.cli.main import main; sys.argv[0] = 'prunus'; main()"
LOOP = """
import sys
from pathlib import Path
from prunus.batch.rows import START
from prunus.batch.read import Reader
from prunus.batch.sources import sources_of
from prunus.batch.work import Task, Work
from prunus.core.errors import Failures
from prunus.core.settings import Settings
settings = Settings()
work = Work(Task(sys.argv[2], sys.argv[3]), settings)
[source] = sources_of([sys.argv[1]], Failures())
with open(sys.argv[4], "w") as out:
    for _, row in Reader(source, settings).rows(START):
        out.write(str(work.record(row)))
"""
QUESTION = "Which station measured the highest water level in November?"
WORDS = 4000


def page(number: int, words: list[str]) -> bytes:
    """Return a page: a head with scripts, menus, paragraphs and a table, footers; sizes have a long tail."""
    chance = random.Random(number)

    def text(count: int) -> str:
        return " ".join(chance.choices(words, k=count))

    menu = "".join(
        f'<li class="item"><a href="/{text(1)}/{n}">{text(2)}</a></li>' for n in range(chance.randint(20, 60))
    )
    script = "<script>" + "var a=" + repr([chance.random() for _ in range(chance.randint(50, 400))]) + ";</script>"
    body = []
    for _ in range(min(400, int(chance.lognormvariate(2.6, 0.9)) + 2)):
        body.append(
            f'<div class="p {text(1)}"><p>{text(chance.randint(20, 120))}. <b>{text(2)}</b> {text(8)}.</p></div>'
        )
        if chance.random() < 0.08:
            rows = "".join(
                f"<tr><td>{text(1)}<td>{chance.random():.3f}<td>{text(3)}" for _ in range(chance.randint(4, 40))
            )
            body.append(f"<h2>{text(4)}</h2><table><tr><th>Station<th>Level<th>Note{rows}</table>")
    return (
        f"<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>{text(5)}</title>{script}</head><body>"
        f"<nav><ul>{menu}</ul></nav><main><h1>{text(6)}</h1>{''.join(body)}</main><footer>{menu}{text(60)}</footer>{script}"
    ).encode()


def archive(path: Path, pages: int) -> int:
    """Write an archive with a compressed record for each page; return the bytes of the pages."""
    chance = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    words = ["".join(chance.choices(letters, weights=range(26, 0, -1), k=chance.randint(2, 11))) for _ in range(WORDS)]
    size = 0
    with path.open("wb") as file:
        for number in range(pages):
            html = page(number, words)
            size += len(html)
            http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + html
            head = (
                f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: https://example.org/{number}\r\n"
                f"WARC-Date: 2024-11-05T08:30:00Z\r\nWARC-Record-ID: <urn:uuid:{number:032}>\r\n"
                f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
            )
            file.write(gzip.compress(head.encode() + http + b"\r\n\r\n", 6))
    return size


class Watched:
    """A command that runs, with the CPU and the memory of its processes, read from /proc several times a second."""

    def __init__(self, command: list[str]) -> None:
        started = time.perf_counter()
        self.seen: list[int] = []
        self.cpu: dict[int, float] = {}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        watching = threading.Thread(target=self._watch, args=(process,), daemon=True)
        watching.start()
        _, told = process.communicate()
        watching.join()
        if process.returncode:
            raise SystemExit(f"{' '.join(command)[:300]}\n{told.decode()[-2000:]}")
        self.wall = time.perf_counter() - started

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            largest = 0
            for pid in family(process.pid):
                try:
                    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                except OSError:  # it has just ended
                    continue
                self.cpu[pid] = (int(fields[11]) + int(fields[12])) / 100
                largest = max(largest, int(fields[21]) * 4096)
            self.seen.append(largest)
            time.sleep(0.1)

    def row(self, name: str, pages: int) -> dict[str, object]:
        """Return the numbers of the run."""
        third = max(1, len(self.seen) // 3)
        late = max(self.seen[-third:]) / max(1, max(self.seen[third : 2 * third] or [1]))
        cpu = sum(self.cpu.values())
        return {
            "run": name, "wall_s": self.wall, "pages_s": pages / self.wall, "cpu_s": cpu,
            "cpu_ms_page": 1000 * cpu / pages, "memory_mb": max(self.seen, default=0) / 1e6, "late": late,
        }  # fmt: skip


def family(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in family(int(child)))]


def main(argv: list[str] | None = None) -> int:
    """Make the archive, run the batch by each number of workers, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--workers", default="1,2", help="numbers of workers, separated by commas")
    parser.add_argument("--do", choices=["clean", "prune"], default="clean")
    parser.add_argument("--part", type=int, default=100, help="pages of a part")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each, the one with the least CPU counts")
    parser.add_argument("--ray", action="store_true", help="also on Ray, with the largest number of workers")
    options = parser.parse_args(argv)
    numbers = [int(number) for number in options.workers.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "crawl.warc.gz", Path(folder) / "out"
        size = archive(path, options.pages)
        batch = [sys.executable, "-c", PROGRAM, "batch", str(path), "-o", str(out), "--do", options.do, "--quiet"]
        batch += ["--part", str(options.part), *(["-q", QUESTION] if options.do == "prune" else [])]
        runs = {"plain loop": [sys.executable, "-c", LOOP, str(path), options.do, QUESTION, str(Path(folder) / "loop")]}
        runs |= {f"{number} worker(s)": [*batch, "--workers", str(number)] for number in numbers}
        if options.ray:
            runs[f"Ray, {max(numbers)} worker(s)"] = [*batch, "--workers", str(max(numbers)), "--on", "ray"]
        best: dict[str, dict[str, object]] = {}
        for _ in range(options.rounds):  # in turns, so that a busy minute does not meet one of them alone
            for name, command in runs.items():
                row = Watched(command).row(name, options.pages)
                shutil.rmtree(out, ignore_errors=True)
                if name not in best or row["cpu_s"] < best[name]["cpu_s"]:  # type: ignore[operator]
                    best[name] = row
    rows = list(best.values())
    print(f"{options.pages:,} pages, {size / 1e6:.0f} MB of HTML, {options.do}")
    table("Batches", list(rows[0]), [list(row.values()) for row in rows])
    json_line("scale", {"pages": options.pages, "bytes": size, "do": options.do, "part": options.part, "runs": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
