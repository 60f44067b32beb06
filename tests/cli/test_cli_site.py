"""A site as a unit: fetched into a folder, added to an index, and kept fresh at the price of what changed."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import PROGRAM, Cli, environment, lines_of, only_line
from tests.extras import need
from tests.web.site.made import MadePage, MadeSite

from prunus import Index
from prunus.web.site import walk
from prunus.web.warc import WarcArchive

CHAPTERS = [f"/guide/{n}.html" for n in range(1, 21)]
CALENDAR = [f"/calendar/2024/0{n}/" for n in range(1, 4)]
GUIDE = ["/guide/", *CHAPTERS]
PAGES = {"/", "/guide/", *CHAPTERS, "/about.html", "/moved.html", "/behind.html", "/plain.html", "/named.html",
         "/news/1.html", "/news/2.html", *CALENDAR}  # fmt: skip
"""What the made site has to read, each page once: no copy, no address of a moved page, nothing that asks to be left out."""

LISTS = {"/robots.txt", "/sitemaps.xml", "/guide.xml.gz", "/news.xml", "/plain.txt", "/feed.xml", "/llms.txt"}
FEW = ("--site", "--alike", "3")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[MadeSite]:
    with MadeSite() as site:
        del site.pages["/walled.html"]
        monkeypatch.setenv("PRUNUS_ALLOW_HOSTS", f"127.0.0.1:{site.port}")
        monkeypatch.setenv("PRUNUS_BROWSER", "never")
        monkeypatch.setenv("PRUNUS_RETRIES", "1")
        yield site


def documents(folder: str | Path, site: MadeSite) -> dict[str, str]:
    """Return the text of each document of an index by its path."""
    found = Index.open(folder, create=False).store.documents()
    store = Index.open(folder, create=False).store
    return {document.id.removeprefix(site.url("")): store.document(document.id).text for document in found}


# --- fetch ---------------------------------------------------------------------------------------


def test_a_site_is_fetched_each_page_once(cli: Cli, folder: Path, made: MadeSite) -> None:
    made.busy = {"/guide/3.html"}
    result = cli("fetch", made.url("/"), *FEW, "-o", "pages", "--json")
    assert result.exit_code == 0, result.stderr
    lines = lines_of(result)
    assert {line["url"].removeprefix(made.url("")) for line in lines} == PAGES
    assert made.asked.pop("/guide/3.html") == 2  # it was busy once, and said when to come again
    assert set(made.asked.values()) == {1}
    assert set(made.asked) == (PAGES - {"/guide/3.html"}) | LISTS | {
        "/copy.html", "/old", "/away", "/inside", "/quiet.html", "/missing.html", "/walled.html",
    }  # fmt: skip
    assert sorted(path.name for path in (folder / "pages").iterdir()) == sorted(
        Path(line["file"]).name for line in lines
    )
    assert "more than 3 alike" in result.stderr and "2 leads to a refused address" in result.stderr


def in_file(path: Path, site: MadeSite) -> list[str]:
    """Return the titles of the pages of a web archive, or of JSON lines, in their order."""
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return [line["url"].removeprefix(site.url("")) for line in lines if line["content"].startswith("<title>")]
    need("fastwarc")
    pages = [record.page for record in WarcArchive(path, 8, lambda kind: True).records()]
    assert all(
        page and page.media_type == "text/html" and page.charset == "utf-8" and page.fetched_at for page in pages
    )
    return [page.url.removeprefix(site.url("")) for page in pages if page and page.content.startswith(b"<title>")]


@pytest.mark.parametrize("name", ["site.jsonl", "site.warc", "site.warc.gz"])
def test_a_site_is_fetched_into_one_file_that_a_batch_reads(
    cli: Cli, folder: Path, made: MadeSite, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    need("fastwarc")
    monkeypatch.setattr(walk, "MOST_FAILURES", 2)
    made.down = {f"/guide/{n}.html" for n in range(4, 9)}
    command = ("fetch", made.url("/guide/"), "--site", "-o", name)
    assert cli(*command).exit_code == 3
    with open(name, "ab") as file:
        file.write(b"half a rec")
    made.down = set()
    assert cli(*command).exit_code == 0
    assert sorted(in_file(folder / name, made)) == sorted(GUIDE)
    assert [path.name for path in folder.iterdir() if "prunus-site" in path.name] == []
    result = cli("batch", name, "-o", "clean", "--do", "clean", "--format", "text", "--json")
    assert result.exit_code == 0, result.stderr
    lines = (folder / "clean" / "part-00000-00000.jsonl").read_text("utf-8").splitlines()
    texts = {record["url"].removeprefix(made.url("")): record["output"] for record in map(json.loads, lines)}
    assert sorted(texts) == sorted(GUIDE) and "Chapter 7 says:" in texts["/guide/7.html"]


def test_pages_that_are_no_text_do_not_fit_into_lines(cli: Cli, folder: Path, made: MadeSite) -> None:
    need("fastwarc")
    made.pages["/tides.pdf"] = MadePage("%PDF-1.4 \0\1\2", time.time(), "application/pdf")
    addresses = (made.url("/tides.pdf"), made.url("/about.html"))
    result = cli("fetch", *addresses, "-o", "two.jsonl")
    assert result.exit_code == 5 and "-o NAME.warc.gz" in result.stderr
    assert in_file(folder / "two.jsonl", made) == ["/about.html"]
    assert cli("fetch", *addresses, "-o", "two.warc.gz").exit_code == 0
    kinds = [
        record.page.media_type
        for record in WarcArchive(folder / "two.warc.gz", 8, lambda _: True).records()
        if record.page
    ]
    assert kinds == ["application/pdf", "text/html"]


def test_only_the_latest_version_of_a_documentation_is_read(cli: Cli, folder: Path, made: MadeSite) -> None:
    def versions(*names: str) -> None:
        links = "".join(f"<a href=/docs/{name}/a.html>{name}</a>" for name in names)
        made.pages["/docs/"] = MadePage(f"<title>Docs</title><p>All the versions there are. {links}", time.time())
        for name in names:
            body = f"<title>{name}</title><p>What is new in version {name}. <a href=b.html>b</a>{links}"
            same = "<title>b</title><p>Most pages say the same in each version. <a href=a.html>a</a>"
            made.pages[f"/docs/{name}/a.html"] = MadePage(body, time.time())
            made.pages[f"/docs/{name}/b.html"] = MadePage(same, time.time())

    made.lists = False
    versions("1.9", "2.0", "2.1", "3.0-rc1", "dev")
    found = json.loads(cli("map", made.url("/docs/"), "--latest", "--json").stdout)
    assert [one["url"] for one in found["addresses"]] == [made.url("/docs/"), made.url("/docs/2.1/a.html")]
    assert found["left_out"]["an older version"] == 4
    assert cli("index", "add", "handbook", made.url("/docs/"), "--site", "--latest").exit_code == 0
    assert set(documents("handbook", made)) == {"/docs/", "/docs/2.1/a.html", "/docs/2.1/b.html"}
    versions("2.0", "2.1", "2.10")
    report = json.loads(cli("index", "sync", "handbook", "--json").stdout)
    assert sorted(report["gone"]) == [made.url("/docs/2.1/a.html"), made.url("/docs/2.1/b.html")]
    assert set(documents("handbook", made)) == {"/docs/", "/docs/2.10/a.html", "/docs/2.10/b.html"}
    made.redirects |= {f"/docs/stable/{page}.html": f"/docs/2.0/{page}.html" for page in "ab"}
    versions("2.0", "2.1", "2.10", "stable")
    for path in [path for path in made.pages if path.startswith("/docs/stable/")]:
        del made.pages[path]
    assert cli("index", "sync", "handbook").exit_code == 0
    assert set(documents("handbook", made)) == {"/docs/", "/docs/2.0/a.html", "/docs/2.0/b.html"}
    versions("2.0", "2.1", "2.10")
    assert cli("index", "add", "all", made.url("/docs/"), "--site").exit_code == 0
    assert len(documents("all", made)) == 5  # the page that is the same in all three counts once


def test_the_most_promising_pages_come_first(cli: Cli, made: MadeSite) -> None:
    result = cli("fetch", made.url("/"), "--site", "-q", "What does chapter 7 say?", "--pages", "3", "--json")
    assert [line["url"] for line in lines_of(result)][:2] == [made.url("/"), made.url("/guide/7.html")]
    assert len(lines_of(result)) == 3


def test_what_does_not_go_together_is_one_line(cli: Cli, made: MadeSite) -> None:
    assert "one site" in only_line(cli("fetch", made.url("/"), made.url("/guide/"), "--site", "--json"))
    assert "-o FOLDER" in only_line(cli("fetch", made.url("/"), "--site"))
    assert "leave one out" in only_line(cli("fetch", made.url("/"), "--site", "--follow", "2", "-q", "x", "--json"))
    assert "give its address" in only_line(cli("index", "add", "handbook", "examples/site", "--site"))


def test_a_site_that_fails_page_after_page_is_left_alone_and_goes_on_later(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MadeSite(count=40) as site:
        monkeypatch.setenv("PRUNUS_ALLOW_HOSTS", f"127.0.0.1:{site.port}")
        monkeypatch.setenv("PRUNUS_RETRIES", "0")
        site.down = {f"/guide/{n}.html" for n in range(1, 41)}
        command = ("fetch", site.url("/guide/"), "--site", "-o", "pages")
        result = cli(*command)
        assert result.exit_code == 3 and "25 pages in a row" in result.stderr
        assert sum(site.asked[path] for path in site.down) < 45  # those that were under way come to an end
        site.down = set()
        assert cli(*command).exit_code == 0
        assert not (folder / "pages" / ".prunus-site.sqlite3").exists()


def test_slow_pages_are_given_up_in_time_and_the_others_come(
    cli: Cli, made: MadeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRUNUS_READ_SECONDS", "0.5")
    monkeypatch.setenv("PRUNUS_RETRIES", "0")
    made.slow = {"/guide/3.html": 4, "/guide/4.html": 4, "/guide.xml.gz": 4}
    began = time.monotonic()
    result = cli("fetch", made.url("/guide/"), "--site", "-o", "pages", "--json")
    lines = {line["url"].removeprefix(made.url("")): "error" in line for line in lines_of(result)}
    assert result.exit_code == 5 and set(lines) == set(GUIDE)
    assert [path for path, failed in lines.items() if failed] == ["/guide/3.html", "/guide/4.html"]
    assert time.monotonic() - began < 4 and "/guide.xml.gz" in result.stderr


# --- an index ------------------------------------------------------------------------------------


def test_a_site_is_added_and_kept_fresh(cli: Cli, made: MadeSite) -> None:
    result = cli("index", "add", "handbook", made.url("/"), *FEW)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith(f"{len(PAGES)} added, 0 changed, 0 gone, 0 unchanged; ")
    before = documents("handbook", made)
    assert set(before) == PAGES
    assert f"site {made.url('/')}" in cli("index", "info", "handbook").stdout
    made.since()

    assert json.loads(cli("index", "sync", "handbook", "--json").stdout)["unchanged"] != []
    asked = {path for path in PAGES if not path.startswith("/guide/")}
    assert set(made.asked) == LISTS | asked  # of the others a sitemap says that they have not changed
    made.since()

    made.change("/guide/7.html")
    made.change("/about.html")
    del made.pages["/guide/9.html"]
    made.redirects["/plain.html"] = "/level.html"
    made.pages["/level.html"] = made.pages.pop("/plain.html")
    made.pages["/pilot.html"] = MadePage("<title>Pilot</title><p>The pilot boat leaves at noon.", time.time())
    made.change("/", made.pages["/"].body + "<a href=/pilot.html>Pilot</a>")
    made.down = {"/named.html"}
    result = cli("index", "sync", "handbook", "--json")
    found = json.loads(result.stdout)
    kinds = {
        kind: sorted(url.removeprefix(made.url("")) for url in found[kind]) for kind in ("added", "changed", "gone")
    }
    assert kinds == {
        "added": ["/level.html", "/pilot.html"],
        "changed": ["/", "/about.html", "/guide/7.html"],
        "gone": ["/guide/9.html", "/plain.html"],
    }
    after = documents("handbook", made)
    assert set(after) == (PAGES - {"/guide/9.html", "/plain.html"}) | {"/level.html", "/pilot.html"}
    assert {path for path in after if before.get(path, after[path]) != after[path]} == {
        "/",
        "/about.html",
        "/guide/7.html",
    }
    assert "the gauge was moved" in after["/guide/7.html"]
    assert len(found["unchanged"]) == len(after) - 2 - 3 - 1
    assert (
        result.exit_code == 5
        and "/named.html: answered 503" in result.stderr
        and "kept as it was read on" in result.stderr
    )

    again = cli("index", "sync", "handbook")
    assert "failed 2 times in a row" in again.stderr and again.stderr.startswith("0 added, 0 changed, 0 gone")
    assert "/named.html" in documents("handbook", made)


def test_a_page_without_validators_is_compared_by_its_text(cli: Cli, made: MadeSite) -> None:
    made.validators = made.lists = False
    few = ("--site", "--alike", "30", "--exclude", "/calendar/")
    assert cli("index", "add", "handbook", made.url("/"), *few).exit_code == 0
    found = json.loads(cli("index", "sync", "handbook", "--json").stdout)
    assert (found["added"], found["changed"], found["gone"]) == ([], [], [])
    # each answer holds another session, so that no two of them are the same bytes
    assert len(found["unchanged"]) == len(PAGES) - len(CALENDAR) - len(
        {"/plain.html", "/named.html", "/news/1.html", "/news/2.html"}
    )


def test_a_copy_takes_the_place_of_a_page_that_is_gone(cli: Cli, made: MadeSite) -> None:
    cli("index", "add", "handbook", made.url("/"), *FEW)
    del made.pages["/about.html"]
    found = json.loads(cli("index", "sync", "handbook", "--json").stdout)
    assert ([made.url("/copy.html")], [made.url("/about.html")]) == (found["added"], found["gone"])


def test_sitemaps_are_not_believed_where_told_and_not_within_their_day(cli: Cli, made: MadeSite) -> None:
    made.change("/guide/5.html")  # today, so that it may change again today
    cli("index", "add", "handbook", made.url("/guide/"), "--site")
    made.since()
    made.pages["/guide/6.html"].body += "<p>Nobody told the sitemap."
    cli("index", "sync", "handbook")
    assert "/guide/6.html" not in made.asked
    assert json.loads(cli("index", "sync", "handbook", "--all", "--json").stdout)["changed"] == [
        made.url("/guide/6.html")
    ]


def test_a_copy_in_the_cache_that_is_still_fresh_is_not_taken_for_the_page(cli: Cli, made: MadeSite) -> None:
    made.fresh = "max-age=3600"
    cli("index", "add", "handbook", made.url("/guide/"), "--site")
    made.pages["/guide/6.html"].body += "<p>This is new."
    made.since()
    found = json.loads(cli("index", "sync", "handbook", "--all", "--json").stdout)
    assert found["changed"] == [made.url("/guide/6.html")] and "/guide/6.html" in made.asked


def test_what_the_index_lacks_is_read_again(cli: Cli, made: MadeSite) -> None:
    cli("index", "add", "handbook", made.url("/guide/"), "--site")
    cli("index", "remove", "handbook", made.url("/guide/6.html"))
    assert json.loads(cli("index", "sync", "handbook", "--json").stdout)["added"] == [made.url("/guide/6.html")]
    rebuilt = cli("index", "rebuild", "handbook")
    made.since()
    assert rebuilt.exit_code == 0
    assert json.loads(cli("index", "sync", "handbook", "--json").stdout)["added"] == []
    assert set(made.asked) == {
        "/robots.txt",
        "/sitemaps.xml",
        "/guide.xml.gz",
        "/news.xml",
        "/plain.txt",
        "/llms.txt",
        "/guide/llms.txt",
    }


def test_a_page_that_leads_out_of_the_site_is_kept_and_told(cli: Cli, made: MadeSite) -> None:
    cli("index", "add", "handbook", made.url("/guide/"), "--site")
    made.redirects["/guide/5.html"] = "/login.html"
    made.change("/guide/5.html")  # its sitemap says that it has changed
    for times in ("", ", failed 2 times in a row"):
        result = cli("index", "sync", "handbook")
        assert (
            f"/guide/5.html: it now leads out of the site, to {made.url('/login.html')}; kept as it was"
            in result.stderr
        )
        assert times in result.stderr and result.exit_code == 5
    assert "/guide/5.html" in documents("handbook", made)


def test_what_most_pages_repeat_is_in_no_chunk_but_the_start_s(cli: Cli, made: MadeSite) -> None:
    menu = (
        "<ul>" + "".join(f"<li><a href=/guide/{n}.html>Part {n} of the tide tables</a>" for n in range(1, 21)) + "</ul>"
    )
    licence = "<footer><p>The tables may be copied under the licence CC BY 4.0 for any purpose whatever.</footer>"
    for path in GUIDE:
        made.pages[path].body = f"<nav>{menu}</nav>{made.pages[path].body}{licence}"
    assert cli("index", "add", "handbook", made.url("/guide/"), "--site").exit_code == 0
    made.change("/guide/4.html", made.pages["/guide/4.html"].body.replace("says:", "says now:"))
    assert cli("index", "sync", "handbook").exit_code == 0
    store = Index.open("handbook", create=False).store
    view = store.view()
    leaves = store.get(view.ids[: view.leaves].tolist())
    texts = {path: "\n".join(leaf.text for leaf in leaves if leaf.document == made.url(path)) for path in GUIDE}
    assert [path for path, text in texts.items() if "licence" in text] == ["/guide/"]
    assert all("Part 12 of" not in texts[path] for path in GUIDE[1:]) and "Part 12 of" in texts["/guide/"]
    assert all(f"Chapter {n} says{' now' if n == 4 else ''}:" in texts[f"/guide/{n}.html"] for n in range(1, 21))
    assert "Part 12 of" in documents("handbook", made)["/guide/4.html"]  # the page itself is kept whole
    leaf_texts = sorted(leaf.text for leaf in leaves)
    assert cli("index", "rebuild", "handbook").exit_code == 0
    store = Index.open("handbook", create=False).store
    view = store.view()
    assert sorted(leaf.text for leaf in store.get(view.ids[: view.leaves].tolist())) == leaf_texts


def test_a_part_of_a_site_is_asked_alone(cli: Cli, made: MadeSite) -> None:
    cli("index", "add", "handbook", made.url("/"), *FEW)
    asked = ("index", "retrieve", "handbook", "-q", "What does chapter 7 say?", "--json", "--document")
    found = json.loads(cli(*asked, made.url("/news/*")).stdout)
    assert {document["url"] for document in found["documents"]} <= {made.url("/news/1.html"), made.url("/news/2.html")}
    assert "no document is like" in only_line(cli(*asked, made.url("/old/*")))
    gone = json.loads(cli("index", "remove", "handbook", made.url("/guide/1*.html"), "--json").stdout)["removed"]
    assert sorted(gone) == sorted(made.url(path) for path in CHAPTERS if path.startswith("/guide/1"))


def test_notes_that_say_nothing_are_one_line_or_cost_a_page(cli: Cli, made: MadeSite) -> None:
    cli("index", "add", "handbook", made.url("/guide/"), "--site")
    store = Index.open("handbook", create=False).store
    [page] = [name for name in store.notes("page ") if name.endswith("/guide/3.html")]
    store.put_notes({page: "[]"})
    made.since()
    assert len(json.loads(cli("index", "sync", "handbook", "--json").stdout)["unchanged"]) == 21
    assert made.asked["/guide/3.html"] == 1
    store.put_notes({f"site {made.url('/guide/')}": '{"rules": {"pages": "many"}}'})
    assert "damaged" in only_line(cli("index", "sync", "handbook"))


def test_a_damaged_queue_is_one_line(cli: Cli, folder: Path, made: MadeSite) -> None:
    (folder / "pages").mkdir()
    (folder / "pages" / ".prunus-site.sqlite3").write_bytes(b"SQLite format 3\0" + b"\xff" * 4_000)
    assert "remove it" in only_line(cli("fetch", made.url("/"), "--site", "-o", "pages"))


def test_an_index_without_a_site_says_so(cli: Cli, made: MadeSite) -> None:
    cli("index", "add", "handbook", "examples/site/faq.html")
    assert "this index has no site" in only_line(cli("index", "sync", "handbook"))
    assert "404" in only_line(cli("index", "add", "handbook", made.url("/nothing/"), "--site"))


# --- kills, and two thousand pages ---------------------------------------------------------------


def asked_for(site: MadeSite, number: int) -> bool:
    return sum(site.asked.values()) >= number


def killed(arguments: list[str], enough: Callable[[], bool], settings: dict[str, str]) -> int | None:
    """Run a command and kill it when it has done enough; return its exit code if it had ended by then."""
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment() | settings
    )
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        if enough():
            process.send_signal(signal.SIGKILL)
            process.wait()
            return None
        time.sleep(0.005)
    return process.wait(1)


@pytest.mark.parametrize(
    ("kind", "count", "least"),
    [("fetch", 60, 1), ("index", 60, 1), pytest.param("fetch", 600, 20, marks=pytest.mark.slow), pytest.param("index", 600, 20, marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_killed_run_goes_on_without_asking_again(folder: Path, kind: str, count: int, least: int) -> None:
    with MadeSite(count, seconds=0.05 if count < 100 else 0.15) as site:
        settings = {
            "PRUNUS_ALLOW_HOSTS": f"127.0.0.1:{site.port}",
            "PRUNUS_HOME": str(folder / "home"),
            "PRUNUS_BROWSER": "never",
        }
        settings |= {"PRUNUS_CACHE_MB": "0", "PRUNUS_RERANKER": "none"}
        command = ["fetch", site.url("/guide/"), "--site", "-o", "pages"]
        command = command if kind == "fetch" else ["index", "add", "handbook", site.url("/guide/"), "--site"]
        kills = 0
        enough = [*(number * count // (least + 2) for number in range(1, least + 1)), 10**9]
        while killed(command, partial(asked_for, site, enough[min(kills, least)]), settings) is None:
            kills += 1
        assert kills == least
        # what was under way at a kill is asked for again, at most 8 pages; nothing else is
        twice = sum(
            number - 1 for path, number in site.asked.items() if path.startswith("/guide/") and path.endswith(".html")
        )
        print(f"{kind}: {count} pages, {kills} kills, {twice} pages asked for again")
        assert twice <= 8 * kills
        if kind == "fetch":
            kept = [path for path in (folder / "pages").iterdir() if not path.name.endswith(".tmp")]  # of a kill
            texts = [path.read_text("utf-8") for path in kept]
            assert len(texts) == count + 1 == len({text.partition("</title>")[0] for text in texts})
        else:
            assert set(documents(folder / "handbook", site)) == {
                "/guide/",
                *(f"/guide/{n}.html" for n in range(1, count + 1)),
            }


@pytest.mark.slow
def test_two_thousand_pages_cost_what_changed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with MadeSite(count=2_000, words=600) as site:
        monkeypatch.setenv("PRUNUS_ALLOW_HOSTS", f"127.0.0.1:{site.port}")
        monkeypatch.setenv("PRUNUS_BROWSER", "never")
        result = cli("index", "add", "handbook", site.url("/guide/"), "--site", "--no-summaries")
        assert result.exit_code == 0, result.stderr
        asked, whole = site.since()
        assert asked == 2_001 + 7  # each page once, robots.txt, and the lists
        for n in range(100, 2_100, 100):  # one in a hundred
            site.change(f"/guide/{n}.html")
        found: dict[str, Any] = json.loads(cli("index", "sync", "handbook", "--no-summaries", "--json").stdout)
        asked, part = site.since()
        print(
            f"{whole:,} bytes at first, {part:,} = {part / whole:.2%} in {asked} requests and {found['seconds']} s afterwards"
        )
        assert (len(found["changed"]), len(found["unchanged"]), found["gone"], found["added"]) == (20, 1_981, [], [])
        assert asked == 20 + 7 and part <= 0.03 * whole


@pytest.mark.slow
def test_a_host_is_asked_no_faster_than_it_wants(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with MadeSite(count=30) as site:
        site.robots += "Crawl-delay: 0.2\n"
        monkeypatch.setenv("PRUNUS_ALLOW_HOSTS", f"127.0.0.1:{site.port}")
        assert cli("index", "add", "handbook", site.url("/guide/"), "--site").exit_code == 0
        assert 4 <= site.most_in_a_second() <= 7  # five, robots.txt, and one for the clock
