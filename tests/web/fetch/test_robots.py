"""robots.txt: parsed by RFC 9309, obeyed by default, bounded in time and memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import at_most
from tests.web.fetch.server import Answer, Server, door_to, in_turn, redirect_to, respond
from tests.web.fetch.test_http import SleepClock, fetch_all

import prunus
from prunus.core.errors import PrunusError
from prunus.core.types import Page
from prunus.web.door.egress import FetchFailed, RefusedUrl
from prunus.web.fetch.http import FetchRules, HttpFetcher
from prunus.web.fetch.robots import MAX_BYTES, Policy, Robots, read_policy

# --- what a file says ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "yes", "no"),
    [
        ("", ["/", "/a"], []),
        ("Disallow:", ["/", "/a"], []),
        ("Disallow: /", ["/robots.txt"], ["/", "/a", "/?q"]),
        ("Disallow: /private", ["/", "/Private", "/a/private"], ["/private", "/private/", "/privates", "/private?x"]),
        ("Disallow: /private/", ["/private"], ["/private/", "/private/x"]),
        ("Disallow: /\nAllow: /public", ["/public", "/public/x"], ["/", "/pub"]),
        ("Allow: /a\nDisallow: /a", ["/a"], []),  # the least restrictive of equals
        ("Disallow: /a\nAllow: /a/b\nDisallow: /a/b/c", ["/a/b", "/a/b/x", "/"], ["/a", "/a/x", "/a/b/c"]),
        ("Disallow: /*.pdf", ["/a.html"], ["/a.pdf", "/a.pdf?x", "/.pdf"]),
        ("Disallow: /*.pdf$", ["/a.pdf?x", "/a.pdfs"], ["/a.pdf", "/b/c.pdf"]),
        ("Disallow: /a$", ["/ab", "/a/"], ["/a"]),
        ("Disallow: /*a*b$", ["/a", "/abc"], ["/ab", "/xaxb", "/abab"]),
        ("Disallow: *", [], ["/", "/x"]),
        ("Disallow: /a%3cd", ["/a"], ["/a%3Cd", "/a%3cd"]),
        ("Disallow: /ü", ["/u"], ["/%C3%BC", "/%c3%bcx"]),
        ("Disallow: /%7Ejoe", [], ["/~joe/", "/%7ejoe/"]),
        ("Disallow: /a%2Fb", ["/a/b"], ["/a%2fb"]),
        ("disALLOW : /a # for a reason", ["/"], ["/a"]),
    ],
)
def test_the_longest_rule_that_matches_decides(rules: str, yes: list[str], no: list[str]) -> None:
    policy = read_policy(f"User-agent: *\n{rules}\n", "Prunus")
    assert [path for path in yes if not policy.allows(path)] == []
    assert [path for path in no if policy.allows(path)] == []


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("User-agent: *\nDisallow: /", False),
        ("User-agent: other\nDisallow: /", True),
        ("User-agent: prunus\nDisallow: /\n\nUser-agent: *\nAllow: /", False),
        ("User-agent: PRUNUS/2.0\nDisallow: /", False),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Prunus\nAllow: /", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Prunus", True),
        ("User-agent: a\nUser-agent: Prunus\nUser-agent: b\nDisallow: /", False),
        ("User-agent: Prunus\nAllow: /b\nUser-agent: x\nDisallow: /a\nUser-agent: Prunus\nDisallow: /a", False),
        ("User-agent: *\nAllow: /b\nUser-agent: *\nDisallow: /", False),
        ("User-agent: *\n\n\nSitemap: /s.xml\n\nDisallow: /", False),
        ("Disallow: /", True),  # belongs to no group
        ("\ufeffUser-agent: *\rDisallow: /\r", False),
        ("<html><p>not found</p></html>", True),
        ("User-agent: Prunusbot\nDisallow: /", True),
        ("User-agent:\nDisallow: /", True),
    ],
)
def test_the_group_that_names_us_holds_else_that_for_everyone(text: str, allowed: bool) -> None:
    assert read_policy(text, "Prunus").allows("/a") is allowed


@pytest.mark.parametrize(
    ("value", "delay"),
    [("5", 5.0), ("0.5", 0.5), ("-1", 0.0), ("nan", 0.0), ("1e9", 0.0), ("inf", 0.0), ("x", 0.0), ("", 0.0)],
)
def test_a_crawl_delay_is_a_plain_number_of_seconds(value: str, delay: float) -> None:
    assert read_policy(f"User-agent: *\nCrawl-delay: {value}", "Prunus").delay == delay


@given(st.text(max_size=300), st.text(max_size=50))
def test_any_text_is_read(text: str, path: str) -> None:
    assert isinstance(read_policy(text, "Prunus").allows("/" + path), bool)
    assert isinstance(read_policy("User-agent: *\nDisallow: /" + text, "Prunus"), Policy)


def test_hostile_rules_take_no_time() -> None:
    with at_most(5):
        stars = "User-agent: *\nDisallow: /" + "*a" * (MAX_BYTES // 2)
        many = "User-agent: *\n" + "Disallow: *zz\n" * (MAX_BYTES // 14)
        for text in (
            stars,
            many,
            "User-agent: *\nDisallow: /" + "%41" * (MAX_BYTES // 3),
            "User-agent: a\n" * (MAX_BYTES // 14),
            "".join(f"User-agent: x{number}\n" for number in range(15_000))  # rules for each would be 200 million
            + "Allow: /a\n" * 15_000,
        ):
            assert read_policy(text, "Prunus").allows("/" + "a" * 8000)


# --- how it is obeyed ----------------------------------------------------------------------------


def serving(robots: Answer, **more: Answer) -> Server:
    return Server(
        {
            "/robots.txt": robots,
            "/": respond("page"),
            "/private": respond("hidden"),
            **{f"/{name}": one for name, one in more.items()},
        }
    )


def fetch(server: Server, path: str = "/", rules: FetchRules | None = None, **others: Any) -> Page:
    door = door_to(server, total_seconds=2.0)
    robots = Robots(door, seconds=0.5)
    others.setdefault("clock", SleepClock().clock())
    return asyncio.run(HttpFetcher(door, rules, robots=robots, **others).fetch(server.url(path)))


def test_what_is_forbidden_is_not_asked_for_and_the_message_names_the_switch() -> None:
    with serving(respond("User-agent: *\nDisallow: /private")) as server:
        assert fetch(server).content == b"page"
        with pytest.raises(RefusedUrl, match="robots = false") as refused:
            fetch(server, "/private")
        assert refused.value.kind == "robots"
        assert "/private" not in server.targets()


def test_a_redirect_to_what_is_forbidden_is_not_followed() -> None:
    with serving(respond("User-agent: *\nDisallow: /private"), away=redirect_to("/private")) as server:
        with pytest.raises(RefusedUrl) as refused:
            fetch(server, "/away")
        assert refused.value.kind == "robots" and "/private" not in server.targets()


@pytest.mark.parametrize("status", ["400 Bad", "401 No", "403 No", "404 No", "410 Gone", "418 Teapot"])
def test_a_file_that_is_not_there_allows_everything(status: str) -> None:
    with serving(respond("User-agent: *\nDisallow: /", status=status)) as server:
        assert fetch(server).content == b"page"


def slow(server: list[Server]) -> Answer:
    return lambda request, connection: server[0].wait(30) and None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    "case", ["500 Broken", "503 Busy", "429 Slow down", "silence", "no http", "a bomb", "a redirect inside"]
)
def test_a_file_that_cannot_be_read_forbids_everything_and_the_message_names_the_switch(case: str) -> None:
    held: list[Server] = []
    answers: dict[str, Answer] = {
        "silence": slow(held), "no http": lambda request, connection: connection.sendall(b"x" * 50 + b"\r\n\r\n"),
        "a bomb": respond(b"\x1f\x8bdamaged", "Content-Encoding: gzip"), "a redirect inside": redirect_to("http://127.0.0.2/robots.txt"),
    }  # fmt: skip
    with serving(answers.get(case) or respond(status=case)) as server:
        held.append(server)
        with pytest.raises(FetchFailed, match="robots = false") as failed:
            fetch(server)
        assert failed.value.kind == "robots"
        assert "/" not in server.targets()


def test_a_host_that_is_not_there_is_said_to_be_so() -> None:
    door = door_to()
    with pytest.raises(FetchFailed) as failed:
        asyncio.run(HttpFetcher(door, robots=Robots(door)).fetch("http://nowhere.example.org/"))
    assert failed.value.kind == "dns" and "robots" not in str(failed.value)


def test_a_host_inside_is_refused_before_its_robots_are_asked() -> None:
    with Server() as trap:
        door = door_to(names={"public.org": ["127.0.0.1"]}, ports=(trap.port,))
        with pytest.raises(RefusedUrl) as refused:
            asyncio.run(HttpFetcher(door, robots=Robots(door)).fetch(f"http://public.org:{trap.port}/"))
        assert refused.value.kind == "loopback" and trap.connections == 0


def test_redirects_of_the_file_are_followed_five_times() -> None:
    with (
        serving(redirect_to("/r1"), r1=redirect_to("/r2"), r2=respond("User-agent: *\nDisallow: /")) as server,
        pytest.raises(RefusedUrl),
    ):
        fetch(server)
    with serving(redirect_to("/robots.txt")) as server:
        assert fetch(server).content == b"page"  # more than five: as if there were none
        assert server.targets().count("/robots.txt") == 6


def test_only_the_beginning_of_a_huge_file_is_read() -> None:
    text = "User-agent: *\nDisallow: /private\n" + "# filler\n" * MAX_BYTES + "Disallow: /\n"
    with serving(respond(text)) as server:
        assert fetch(server).content == b"page"
        with pytest.raises(RefusedUrl):
            fetch(server, "/private")


def test_the_file_is_read_once_for_many_pages_and_again_after_its_time() -> None:
    now = [0.0]

    async def run(door_robots: Robots) -> list[Page | PrunusError]:
        async with HttpFetcher(door, robots=door_robots) as fetcher:
            return await fetch_all(fetcher, [server.url(f"/?{number}") for number in range(20)])

    with serving(respond("User-agent: *\nDisallow: /private")) as server:
        door = door_to(server)
        robots = Robots(door, keep=100.0, clock=lambda: now[0])
        for later in (0.0, 99.0, 101.0):
            now[0] = later
            assert all(isinstance(page, Page) for page in asyncio.run(run(robots)))
        assert server.targets().count("/robots.txt") == 2


def test_a_failure_is_remembered_for_a_shorter_time() -> None:
    now = [0.0]
    with serving(in_turn(respond(status="500 No"), respond(""))) as server:
        door = door_to(server)
        robots = Robots(door, keep_failed=60.0, clock=lambda: now[0])
        for later, good in ((0.0, False), (59.0, False), (61.0, True)):
            now[0] = later
            found = asyncio.run(fetch_all(HttpFetcher(door, robots=robots), [server.url()]))
            assert isinstance(found[0], Page) is good


def test_what_is_remembered_is_bounded() -> None:
    with serving(respond("User-agent: *\n" + "Disallow: /x\n" * 100)) as server:
        door = door_to(server, names={f"h{number}.corp": ["127.0.0.1"] for number in range(20)},
                       allow_hosts=[f"h{number}.corp:{server.port}" for number in range(20)])  # fmt: skip
        robots = Robots(door)
        robots._most, robots._most_rules = 10, 500
        found = asyncio.run(
            fetch_all(HttpFetcher(door, robots=robots), [server.url(host=f"h{number}.corp") for number in range(20)])
        )
    assert all(isinstance(page, Page) for page in found)
    assert len(robots._cache) <= 5


def test_a_crawl_delay_is_the_pause_between_two_requests() -> None:
    slept = SleepClock()
    with serving(respond("User-agent: *\nCrawl-delay: 7")) as server:
        door = door_to(server)
        fetcher = HttpFetcher(door, robots=Robots(door), clock=slept.clock())
        asyncio.run(fetch_all(fetcher, [server.url()] * 3))
    assert slept.naps == [7.0, 14.0] or slept.naps == [7.0, 7.0]


def test_a_crawl_delay_that_is_too_long_is_obeyed_by_leaving() -> None:
    with (
        serving(respond("User-agent: *\nCrawl-delay: 3600")) as server,
        pytest.raises(FetchFailed, match="3600") as failed,
    ):
        fetch(server)
    assert failed.value.kind == "robots" and server.targets() == ["/robots.txt"]


def test_the_operator_may_leave_it_out() -> None:
    with serving(respond("User-agent: *\nDisallow: /")) as server:
        assert asyncio.run(HttpFetcher(door_to(server)).fetch(server.url())).content == b"page"
        assert server.targets() == ["/"]


def test_the_robot_answers_to_its_own_name() -> None:
    with serving(respond("User-agent: Reader\nDisallow: /")) as server:
        door = door_to(server, user_agent="Reader/1 (+https://example.org)")
        with pytest.raises(RefusedUrl):
            asyncio.run(HttpFetcher(door, robots=Robots(door)).fetch(server.url()))


def test_what_a_site_asks_of_who_uses_its_pages_is_told_with_each_page() -> None:
    signals = "User-agent: *\nContent-Signal: search=yes, AI-Input = no\nAllow: /"
    with serving(respond(signals)) as server:
        page = fetch(server)
    assert page.headers["content-signal"] == "search=yes, AI-Input = no"
    [tree] = prunus.read(page).trees
    assert ["Content-Signal" in warning for warning in tree.warnings] == [True]
    with serving(respond(signals.replace("no", "yes"))) as server:
        assert not prunus.read(fetch(server)).trees[0].warnings
    with serving(respond("User-agent: *\nAllow: /")) as server:
        assert "content-signal" not in fetch(server).headers
