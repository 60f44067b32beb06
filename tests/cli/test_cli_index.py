"""``prunus index``: adding, changing and removing documents; failures are named; acknowledged documents stay."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import PROGRAM, Cli, environment, lines_of, only_line
from tests.extras import need
from tests.index.library import SUBJECTS, page

from prunus import Index
from prunus.cli.tree_page import TreeDrawing, TreeMatches, write_tree
from prunus.index.store.file import engine as store_file

TALE = Path(__file__).parents[2] / "docs" / "examples" / "cinderella.txt"


@pytest.fixture
def docs(folder: Path) -> Path:
    """A folder with one page of each subject."""
    (folder / "docs").mkdir()
    for name in SUBJECTS:
        (folder / "docs" / f"{name}.html").write_text(page(name), "utf-8")
    return folder / "docs"


def test_documents_are_added_asked_changed_and_removed(cli: Cli, docs: Path) -> None:
    added = cli("index", "add", "I", docs, "--json")
    assert added.exit_code == 0
    assert len(json.loads(added.stdout)["added"]) == 5
    answer = cli("ask", "Where do passengers of the night train sleep?", "--index", "I", "--json")
    [first, *_] = json.loads(answer.stdout)["citations"]
    assert first["document"] == str(docs / "trains.html") and first["found"]
    (docs / "bees.html").unlink()
    synced = json.loads(cli("index", "sync", "I", docs, "--json").stdout)
    assert synced["removed"] == [str(docs / "bees.html")] and len(synced["unchanged"]) == 4
    assert cli("index", "remove", "I", "docs/glass.html").exit_code == 0
    found = json.loads(cli("index", "info", "I", "--documents", "--json").stdout)
    assert found["documents"] == 3 and {Path(one["id"]).stem for one in found["list"]} == {"tides", "bread", "trains"}
    assert "glass" in only_line(cli("index", "remove", "I", "docs/glass.html"))


def test_only_documents_since_a_day_are_asked(cli: Cli, folder: Path) -> None:
    for year, metres in ((2024, "two"), (2025, "three")):
        meta = f'<meta property="article:published_time" content="{year}-05-01">'
        text = f"<title>Flood</title>{meta}<h1>Flood</h1><p>The river rose {metres} metres at the bridge."
        (folder / f"{metres}.html").write_text(text, "utf-8")
    assert cli("index", "add", "I", "two.html", "three.html").exit_code == 0
    asked = ("ask", "How high did the river rise at the bridge?", "--index", "I", "--json")
    found = json.loads(cli(*asked, "--since", "2025").stdout)["citations"]
    assert [Path(one["document"]).stem for one in found] == ["three"]
    assert "--max-age chooses documents of an --index" in only_line(cli("ask", "Why?", "two.html", "--max-age", "7d"))
    assert "since: 'soon' is no time" in only_line(cli(*asked, "--since", "soon"))
    assert "no document was fetched since" in only_line(cli(*asked, "--max-age", "7d"))  # files were never fetched


@pytest.mark.slow
def test_an_unreadable_document_among_many_is_named_and_the_rest_goes_in(cli: Cli, folder: Path) -> None:
    (folder / "many").mkdir()
    for n in range(1000):
        text = f"<p>Note {n} of {n * 7} boats." if n != 500 else "\x89PNG\r\n\x1a\n\0\0"
        (folder / "many" / f"{n:04}.html").write_text(text, "latin-1")
    result = cli("index", "add", "I", "many", "--json")
    assert result.exit_code == 5
    found = json.loads(result.stdout)
    assert len(found["added"]) == 999 and [Path(failure).name for failure in found["failures"]] == ["0500.html"]
    assert "0500.html" in result.stderr and "1 of 1000 documents could not be read" in result.stderr


def test_questions_combine_indexes_and_pages(cli: Cli, docs: Path) -> None:
    cli("index", "add", "A", docs / "bees.html")
    cli("index", "add", "B", docs / "bread.html")
    asked = ["ask", "How is a loaf of bread folded, and where do bees show that flowers are?"]
    answer = json.loads(cli(*asked, docs / "glass.html", "--index", "A", "--index", "B", "--json").stdout)
    assert {Path(citation["document"]).stem for citation in answer["citations"]} >= {"bees", "bread"}
    assert only_line(cli("ask", "What?")).count("--index") == 1
    assert "there is no index" in only_line(cli("ask", "What?", "--index", "C"))


def test_an_index_is_asked_beside_pages_and_a_search(cli: Cli, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page, an index and a searched folder each contribute evidence to one question within one budget."""
    cli("index", "add", "I", docs / "bees.html")
    (docs / "web").mkdir()
    (docs / "glass.html").rename(docs / "web" / "glass.html")
    question = "Where do bees show that flowers are, how is bread dough kneaded, and where is glass blown?"
    command = ["ask", question, docs / "bread.html", "--index", "I", "--search", f"local:{docs / 'web'}", "--json"]
    found = cli(*command)
    answer = json.loads(found.stdout)
    assert found.exit_code == 0 and answer["failures"] == {}
    assert {Path(citation["url"]).stem for citation in answer["citations"]} >= {"bees", "bread", "glass"}
    assert all(citation["found"] for citation in answer["citations"])
    events = lines_of(cli(*command, "--events", "--budget", "100"))
    assert next(event for event in events if event["event"] == "kept")["tokens"] <= 100
    monkeypatch.setenv("PRUNUS_PLANNER", "rules")
    monkeypatch.setenv("PRUNUS_EXTRACTOR", "sentences")
    modelled = json.loads(cli(*command, "--llm", "scripted:Bees dance to show where flowers are [2].").stdout)
    assert modelled["engines"]["generator"] == "llm" and modelled["citations"][0]["found"]


def test_a_conversation_asks_an_index(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs)
    found = cli("ask", "Where do passengers of the night train sleep?", "--index", "I", "--chat", "--json",
                input="Who lays eggs in the comb?\n")  # fmt: skip
    first, second = lines_of(found)
    assert "second carriage" in first["text"] and "queen lays eggs" in second["text"]


def test_retrieval_can_be_chosen_and_limited_to_documents(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs)
    for way in ("hybrid", "collapsed", "traversal", "flat"):
        result = cli("index", "retrieve", "I", "-q", "What is it about?", "--retrieval", way, "--document",
                     "docs/bees.html", "--budget", "300", "--json")  # fmt: skip
        found = json.loads(result.stdout)
        assert found["tokens"] <= 300 and {Path(row["url"]).stem for row in found["documents"] if row["url"]} == {
            "bees"
        }
    layers = cli(
        "index", "retrieve", "I", "-q", "What is it about?", "--retrieval", "collapsed", "--layers", "1,2", "--json"
    )
    assert {document["title"] for document in json.loads(layers.stdout)["documents"]} == {"Summaries of I"}
    assert "not a list of layers" in only_line(cli("index", "retrieve", "I", "-q", "x", "--layers", "one"))


def test_what_holds_for_good_cannot_be_changed(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs, "--chunk-tokens", "40", "--clusterer", "contiguous")
    assert cli("index", "add", "I", docs, "--chunk-tokens", "40").exit_code == 0
    assert "was built with chunk tokens 40" in only_line(cli("index", "add", "I", docs, "--chunk-tokens", "50"))


def test_wrong_folders_versions_and_disks_are_one_line(cli: Cli, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (("info", "docs"), ("add", "docs", "docs"), ("tree", "nowhere"), ("verify", "nowhere")):
        assert "there is no index" in only_line(cli("index", *arguments))
    assert "no such file" in cli("index", "add", "I", "nothing.html").stderr
    cli("index", "add", "I", docs / "bees.html")
    import sqlite3

    with sqlite3.connect("I/index.sqlite3") as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    assert "layout 99" in only_line(cli("index", "info", "I"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    cli("index", "add", "J", docs / "bees.html")
    with monkeypatch.context() as patch:
        patch.setattr("prunus.index.store.file.vectors.os.fsync", full)
        result = cli("index", "add", "J", docs / "bread.html")
    assert result.exit_code == 3 and "No space left on device" in only_line(result)
    assert [document.id for document in Index.open(Path.cwd() / "J").store.documents()] == [str(docs / "bees.html")]


def test_summaries_wait_for_a_model_and_the_bill_is_shown_first(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs, "--no-summaries")
    assert "no language model" in only_line(cli("index", "summarize", "I"))
    model = ("index", "summarize", "I", "--llm", "scripted:They rest behind the engine.")
    asked = cli(*model)
    assert asked.exit_code == 2 and "at most" in asked.stderr and "--yes" in asked.stderr
    stopped = cli(*model, "--yes", "--max-tokens", "500")
    assert stopped.exit_code == 2 and "over the limit of 500" in stopped.stderr
    done = json.loads(cli(*model, "--yes", "--json").stdout)
    assert done["left"] == 0 and done["bill"]["calls"] > 0 and done["cost"]["completion_tokens"] > 0
    assert "have cost" in cli("index", "info", "I").stdout
    assert "0 summaries written" in cli(*model, "--yes").stderr
    cli("index", "summarize", "I", "--extractive", "--anew")
    assert "rest behind" not in cli("index", "tree", "I").stdout


def test_summaries_are_checked_marked_and_the_marks_reach_answers(cli: Cli, docs: Path) -> None:
    cli("index", "add", "I", docs)
    literal = json.loads(cli("index", "verify", "I", "--json").stdout)
    assert literal["supported"] == literal["sentences"] > 0  # sentences of the pages, word for word
    claim = "Passengers of the night train pay with golden coins."
    cli("index", "summarize", "I", "--anew", "--yes", "--llm", f"scripted:{claim}")
    assert json.loads(cli("index", "verify", "I", "--json").stdout)["unchecked"] > 0
    verdict = 'scripted:{"verdicts": [{"number": 1, "supported": false}]}'
    judged = json.loads(cli("index", "verify", "I", "--sample", "2", "--llm", verdict, "--json").stdout)
    assert judged["unsupported"] and judged["summaries"] == 2 and judged["marked"][0]["by"] == "llm"
    again = json.loads(cli("index", "verify", "I", "--sample", "2", "--json").stdout)
    assert again["unsupported"] == judged["unsupported"]  # kept with the index
    cli("index", "verify", "I", "--export", "rows.jsonl")
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text("utf-8").splitlines()]
    assert rows[0]["children"] and {"unsupported", "unchecked"} <= {row["verdict"] for row in rows}
    people = [{**row, "verdict": "unsupported", "by": "people"} for row in rows]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in people), "utf-8")
    back = json.loads(cli("index", "verify", "I", "--import", "rows.jsonl", "--json").stdout)
    assert back["unsupported"] == len(rows)
    Path("bad.jsonl").write_text('{"node": 1}\n', "utf-8")
    assert "line 1" in only_line(cli("index", "verify", "I", "--import", "bad.jsonl"))
    asked = ["ask", "What do passengers of the night train pay with, golden coins?", "--retrieval", "collapsed"]
    answer = json.loads(cli(*asked, "--index", "I", "--budget", "400", "--json").stdout)
    assert claim in answer["unsupported"] and claim not in answer["text"]


# --- drawing -------------------------------------------------------------------------------------


def test_the_tree_is_drawn_as_text_with_what_a_question_takes(cli: Cli) -> None:
    cli("index", "add", "tale", TALE)
    result = cli("index", "tree", "tale", "-q", "How did she lose her slipper?", "--budget", "300")
    assert result.stdout.startswith("• ") and "[F]" in result.stdout and "[T]" in result.stdout
    assert "Found by tree retrieval" in result.stdout and "Found by flat dense retrieval" in result.stdout
    found = json.loads(cli("index", "tree", "tale", "-q", "Who is it about?", "--layers", "1", "--json").stdout)
    layers = {node["id"]: node["layer"] for node in found["nodes"]}
    assert {layers[id] for id in found["tree"]["nodes"]} == {1} and {layers[id] for id in found["flat"]["nodes"]} == {0}


class Reader(HTMLParser):
    """Gathers tags and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [
            f"{name}={value}" for name, value in attrs if name in ("src", "href", "style") or name[:2] == "on"
        ]


def test_the_page_of_a_tree_loads_nothing_and_texts_stay_texts(cli: Cli, folder: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)> & 'quotes' \"too\""
    cli("index", "add", "tale", TALE)
    (folder / "evil.txt").write_text(evil + " The slipper was of gold.", "utf-8")
    cli("index", "add", "tale", "evil.txt")
    result = cli(
        "index", "tree", "tale", "--html", "tree.html", "-q", f"Was the slipper of gold? {evil}", "--budget", "300"
    )
    assert result.exit_code == 0
    text = Path("tree.html").read_text("utf-8")
    reader = Reader(text)
    assert reader.tags.count("script") == 2 and "img" not in reader.tags and not reader.links
    assert "default-src 'none'" in text and "http://" not in text and "https://" not in text
    data = data_of(text)
    assert data["found"]["tree"] and data["found"]["flat"] and len(data["roots"]) == 1
    assert evil in "".join("".join(row[3]) for row in data["nodes"].values())
    assert "Found by tree retrieval" in text and 'id="search"' in text


def data_of(page: str) -> Any:
    """Return the data in the page of a tree."""
    [found] = re.findall(r'<script type="application/json" id="nodes">(.*?)</script>', page)
    return json.loads(found)


def test_a_node_under_two_parents_and_a_tree_without_leaves_are_written() -> None:
    nodes = [
        {"id": 1, "layer": 0, "document": "a", "tokens": 1, "text": "One. Two.", "children": [], "root": False},
        {"id": 2, "layer": 1, "document": "", "tokens": 1, "text": "", "children": [1], "root": True},
        {"id": 3, "layer": 2, "document": "", "tokens": 1, "text": "A. B.", "children": [1], "root": True},
    ]
    text = write_tree(TreeDrawing("I", nodes, True), "q", [TreeMatches("tree", [1, 9], "one", 1)])
    data = data_of(text)
    assert "left out" in text and data["roots"] == [3, 2], "the highest layer comes first"
    assert data["nodes"]["2"][4] == data["nodes"]["3"][4] == [1]
    assert data["nodes"]["1"][3] == ["One. ", "Two."] and data["nodes"]["3"][3] == ["A. B."], "a leaf is its sentences"
    assert data["found"] == {"tree": [1]}, "a node that is left out is not marked"


# --- processes -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_that_add_at_once_lose_nothing(folder: Path, docs: Path) -> None:
    files = sorted(docs.glob("*.html"))
    (folder / "more").mkdir()
    for n in range(30):
        (folder / "more" / f"{n}.html").write_text(f"<p>Note {n} about {n * 7} boats.", "utf-8")
    jobs = [["index", "add", "I", str(docs), "--json"], ["index", "add", "I", "more", "--json"]]
    running = [
        subprocess.Popen([*PROGRAM, *job], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for job in jobs
    ]
    said = [process.communicate(timeout=100) for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    index = Index.open(folder / "I")
    assert len(index.store.documents()) == len(files) + 30
    edges = index.store.edges()
    assert len({*edges} - {child for children in edges.values() for child in children}) == 1


@pytest.mark.slow
def test_workers_make_the_same_index_and_name_the_same_failures(cli: Cli, docs: Path) -> None:
    for number in range(40):
        (docs / f"{number:02}.html").write_text(page("bees").replace("note", f"note {number}"), "utf-8")
    (docs / "07.html").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    told = [cli("index", "add", name, docs, "--json", *more) for name, *more in (("I",), ("J", "--workers", "2"))]
    assert [result.exit_code for result in told] == [5, 5]
    assert told[0].stdout == told[1].stdout
    one, other = (Index.open(name, create=False).store for name in "IJ")
    assert one.edges() == other.edges() and one.view().matrix.tobytes() == other.view().matrix.tobytes()
    again = json.loads(cli("index", "sync", "J", docs, "--json", "--workers", "2").stdout)
    assert len(again["unchanged"]) == 44 and not again["added"]


def test_a_place_to_work_that_is_none_is_one_line(cli: Cli, docs: Path) -> None:
    assert "--on spark" in only_line(cli("index", "add", "I", docs, "--on", "spark"))
    assert not Path("I").exists()


@pytest.mark.slow
def test_killed_at_any_moment_an_index_holds_what_was_acknowledged(folder: Path) -> None:
    """SIGKILL at 8 random moments; each run resumes the last."""
    (folder / "docs").mkdir()
    for n in range(300):
        text = " ".join(f"The {n * 31 + k} boats of bay {k} carry {n} tons of salt." for k in range(8))
        (folder / "docs" / f"{n:03}.html").write_text(f"<h1>Bay {n}</h1><p>{text}", "utf-8")
    run = "import prunus.index.build as b; b._BATCH_LEAVES = 8; from prunus.cli.main import main; main()"
    job = [PROGRAM[0], "-c", run, "index", "add", "I", "docs", "--events", "--quiet"]
    acknowledged: set[str] = set()
    draw = random.Random(7)
    kills = 0
    while kills < 8:
        process = subprocess.Popen(job, env=environment(), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        first = process.stdout.readline()  # the first event: it is at work
        time.sleep(draw.uniform(0.0, 0.25))
        process.send_signal(signal.SIGKILL)
        said = [first, *process.stdout.read().splitlines(keepends=True)]
        process.stdout.close()
        process.wait()
        kills += 1
        events = [json.loads(line) for line in said if line.endswith("\n")]
        acknowledged |= {event["document"] for event in events if event["event"] in ("added", "unchanged")}
        store = store_file.Engine(folder / "I")
        assert acknowledged <= {document.id for document in store.documents()}
        if len(acknowledged) == 300:
            (folder / "I").rename(folder / f"I{kills}")
            acknowledged = set()
    subprocess.run(job, env=environment(), check=True, capture_output=True, timeout=100)
    index = Index.open(folder / "I")
    assert len(index.store.documents()) == 300 and not index.store.unsummarised()


def test_ctrl_c_says_what_is_kept(cli: Cli, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Index) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Index, "update", stop)
        result = cli("index", "add", "I", docs)
    assert result.exit_code == 130 and "5 documents of this run are stored" in only_line(result)


def test_events_come_as_soon_as_a_document_is_on_the_disk(cli: Cli, docs: Path) -> None:
    events = lines_of(cli("index", "add", "I", docs, "--events"))
    assert [event["event"] for event in events] == ["added"] * 5
    assert {one["event"] for one in lines_of(cli("index", "add", "I", docs, "--events"))} == {"unchanged"}


def test_a_saved_page_is_stored_under_its_address(cli: Cli, folder: Path) -> None:
    url = "https://example.org/tides"
    refused = cli("index", "add", "made", "-", "--json", input="<p>x")
    assert refused.exit_code == 2 and "--url" in only_line(refused)
    assert cli("index", "add", "made", "-", "--url", url, input="<p>The harbour opened in 1932.").exit_code == 0
    (folder / "saved.dat").write_text("Port,Opened\nPell,1951\n", "utf-8")
    assert cli("index", "add", "made", "saved.dat", "--type", "csv").exit_code == 0
    found = lines_of(cli("index", "info", "made", "--documents", "--json"))[0]["list"]
    assert {row["id"]: row["url"] for row in found}[url] == url
    assert {Path(row["id"]).name for row in found} == {"tides", "saved.dat"}


def test_an_index_is_asked_with_the_embedder_that_it_names(cli: Cli, docs: Path, folder: Path) -> None:
    assert cli("index", "add", "I", docs, "--embedder", "static").exit_code == 0
    (folder / "prunus.toml").write_text('embedder = "onnx:/no/such/folder"\n', "utf-8")
    question = "Where do passengers of the night train sleep?"
    for words in (["retrieve", "I", "-q", question], ["tree", "I", "-q", question], ["info", "I"]):
        assert cli("index", *words).exit_code == 0
    for command in ("retrieve", "tree"):
        refused = only_line(cli("index", command, "I", "-q", question, "--embedder", "onnx:/no/such/folder"))
        assert "/no/such/folder" in refused


@pytest.mark.full
@pytest.mark.filterwarnings("default")  # umap and numba warn when they are loaded
def test_the_papers_tree_with_another_embedder_is_asked_with_that_one(cli: Cli, docs: Path) -> None:
    need("umap")
    need("sklearn")
    assert cli("index", "add", "I", docs, "--preset", "raptor", "--embedder", "static").exit_code == 0
    question = "Where do passengers of the night train sleep?"
    assert "sleep" in cli("index", "retrieve", "I", "-q", question).stdout
    assert "[T]" in cli("index", "tree", "I", "-q", question).stdout
