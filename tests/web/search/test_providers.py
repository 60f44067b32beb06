"""The common behaviour of all network search providers, with sample responses from their documentation (no live calls)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.web.search.server import REPLIES, PlainDoor, Service, documented, serving

import prunus
from prunus.core.errors import BadInput, OutsideFailed
from prunus.core.types import Results, SearchRequest
from prunus.web.search._wire import Provider, SearchFailed

SECRET = "s3cret-key-0123456789"
FOLDER = Path(prunus.__file__).parent / "web" / "search"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py") if "(Provider)" in path.read_text("utf-8"))
every = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as state:
        yield state


def engine(name: str, service: Service, **options: Any) -> Provider:
    built = import_module(f"prunus.web.search.{name}").Engine
    given: dict[str, Any] = {"door": PlainDoor(), "endpoint": service.url}
    if name == "google":
        given["model"] = "cx-1"
    if name != "wikipedia":
        given["key"] = SECRET
    found: Provider = built(**{**given, **options})
    return found


def search(provider: Provider, query: str = "tide gauge", **fields: Any) -> Results:
    return asyncio.run(provider.search(SearchRequest(query, **fields)))


def test_the_providers_are_those_that_the_documentation_names() -> None:
    assert "brave exa google marginalia mojeek searxng serper tavily wikipedia".split() == NAMES


@every
def test_replies_say_where_they_are_from(name: str) -> None:
    given = documented(name)
    assert given["mark"] in ("recorded", "from docs")
    assert given["source"].startswith("https://")
    assert date.fromisoformat(given["date"])
    assert sorted(path.stem for path in REPLIES.glob("*.json")) == NAMES


@every
def test_hits_come_in_the_order_of_the_provider_as_plain_text(service: Service, name: str) -> None:
    service.respond(documented(name)["reply"])
    found = search(engine(name, service))
    assert [hit.rank for hit in found.hits] == [1, 2]
    assert {hit.engine for hit in found.hits} == {name}
    assert all(hit.url.startswith(("https://example.", service.url + "/wiki/")) for hit in found.hits)
    assert found.hits[0].title.lower().startswith("tide gauge")
    assert "measures" in found.hits[0].snippet
    assert not any(mark in hit.title + hit.snippet for hit in found.hits for mark in ("<", "&amp;"))
    assert not any(hit.text for hit in found.hits)
    assert found.warnings == ()


@every
def test_the_query_and_the_key_are_sent_and_the_key_is_shown_nowhere(service: Service, name: str) -> None:
    service.respond(documented(name)["reply"])
    provider = engine(name, service)
    found = search(provider, "Säntis “tide” & 潮 \ud800")
    asked = service.requests[0]
    assert any(value == "Säntis “tide” & 潮 ?" for value in asked.fields.values())
    if name != "wikipedia":
        assert SECRET in asked.target + "".join(asked.headers.values())
    assert SECRET not in repr(found) + repr(provider) + str(vars(provider).get("address"))


@every
def test_no_results_are_no_failure(service: Service, name: str) -> None:
    service.respond(documented(name)["empty"])
    assert search(engine(name, service)).hits == ()


@every
def test_the_second_page_is_another_request_or_a_warning(service: Service, name: str) -> None:
    service.respond(documented(name)["reply"])
    provider = engine(name, service)
    first, second = search(provider, count=5), search(provider, count=5, page=2)
    assert not any("page" in warning for warning in first.warnings)
    differs = service.requests[0].fields != service.requests[1].fields
    assert differs == ("page" in provider.filters)
    assert differs != any("has no filter page" in warning for warning in second.warnings)


PAGES = {
    "searxng": {"pageno": "3"}, "brave": {"offset": "2", "count": "5"}, "serper": {"page": 3, "num": 5},
    "google": {"start": "11", "num": "5"}, "mojeek": {"s": "11", "t": "5"}, "marginalia": {"page": "3", "count": "5"},
    "wikipedia": {"sroffset": "10", "srlimit": "5"}, "tavily": {"max_results": 5}, "exa": {"numResults": 5},
}  # fmt: skip


@every
def test_a_page_is_asked_for_in_the_provider_s_own_words(service: Service, name: str) -> None:
    service.respond(documented(name)["reply"])
    search(engine(name, service), count=5, page=3)
    assert {key: service.requests[0].fields.get(key) for key in PAGES[name]} == PAGES[name]


@every
def test_no_more_hits_come_than_were_asked_for(service: Service, name: str) -> None:
    service.respond(documented(name)["reply"])
    assert len(search(engine(name, service), count=1).hits) == 1


@every
def test_a_provider_that_is_asked_too_often_is_waited_for_once(service: Service, name: str) -> None:
    service.respond({"message": "slow down"}, 429, Retry_After="3").respond(documented(name)["reply"])
    provider = engine(name, service)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    provider._sleep = sleep
    assert len(search(provider).hits) == 2
    assert waited == [3.0]


@every
@pytest.mark.parametrize(("header", "tries"), [({"Retry_After": "2"}, 2), ({"Retry_After": "9999"}, 1), ({}, 1)])
def test_asked_too_often_is_one_line_that_says_so(
    service: Service, name: str, header: dict[str, str], tries: int
) -> None:
    provider = engine(name, service)
    service.respond({"message": f"too many for {provider._key}"}, 429, **header)

    async def sleep(seconds: float) -> None:
        pass

    provider._sleep = sleep
    with pytest.raises(SearchFailed, match=f"search {name}: too many requests") as caught:
        search(provider)
    assert caught.value.kind == "rate"
    assert len(service.requests) == tries
    one_line(caught.value)


@every
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_one_line_that_says_so(service: Service, name: str, status: int) -> None:
    service.respond(documented(name)["unauthorised"], status)
    with pytest.raises(SearchFailed, match=f"search {name}: refuses the (key|request)") as caught:
        search(engine(name, service))
    assert caught.value.kind == "key"
    one_line(caught.value)


MALFORMED = {
    "no json": b"<html>busy</html>",
    "nothing": b"",
    "a list": [],
    "a text": "busy",
    "another shape": {"surprise": 1},
    "deep": b"[" * 100_000,
    "cut off": b'{"results": [{"url": "https://exam',
    "results that are text": {
        "results": "x", "organic": "x", "items": "x", "web": {"results": "x"},
        "response": {"status": "OK", "results": "x"}, "query": {"search": "x"},
    },
}  # fmt: skip


@pytest.mark.slow
@every
@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_answer_is_one_line_that_says_so(service: Service, name: str, reply: Any) -> None:
    service.respond(reply)
    with pytest.raises(SearchFailed) as caught:
        search(engine(name, service))
    assert caught.value.kind == "malformed"
    one_line(caught.value)


@every
def test_results_without_a_usable_address_are_left_out_and_counted(service: Service, name: str) -> None:
    bad: list[Any] = [None, 3, "x", {}, {"url": "javascript:alert(1)", "link": "file:///etc/passwd", "title": 5}]
    bad += [{"url": "http://user:pass@example.org/", "link": "http://[::1"}, {"url": ["https://example.org"]}]
    service.respond(
        {"results": bad, "organic": bad, "items": bad, "web": {"results": bad}, "query": {"search": bad},
         "response": {"status": "OK", "results": bad}}
    )  # fmt: skip
    found = search(engine(name, service))
    assert found.hits == ()
    assert any(f"{len(bad)} of {len(bad)} results" in warning for warning in found.warnings)


@every
@pytest.mark.parametrize("status", [302, 400, 404, 500])
def test_another_status_is_one_line_with_its_number(service: Service, name: str, status: int) -> None:
    provider = engine(name, service)
    service.respond({"error": {"message": f"bad\nline {provider._key}"}}, status, Location="http://127.0.0.1:1/")
    with pytest.raises(SearchFailed, match=f"HTTP {status}") as caught:
        search(provider)
    one_line(caught.value)


@pytest.mark.slow
@every
def test_a_provider_that_drips_or_is_gone_ends_in_time(service: Service, name: str) -> None:
    service.answers = ["drip"]
    with pytest.raises(SearchFailed, match=r"within 0\.2 s") as caught:
        search(engine(name, service, seconds=0.2))
    one_line(caught.value)
    service.answers = ["drop"]
    with pytest.raises(SearchFailed, match="no connection, or it broke off") as caught:
        search(engine(name, service))
    assert caught.value.kind == "unreachable"
    one_line(caught.value)


def one_line(error: Exception) -> None:
    assert isinstance(error, OutsideFailed)
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    assert SECRET not in str(error) + repr(error) + repr(error.__cause__)


def test_an_endless_answer_is_given_up(service: Service) -> None:
    service.respond(b" " * (17 << 20))
    with pytest.raises(SearchFailed, match="over 16 MiB"):
        search(engine("searxng", service))


@every
def test_filters_are_passed_on_or_warned_about(service: Service, name: str) -> None:
    service.respond(documented(name)["reply"])
    provider = engine(name, service)
    found = search(
        provider, language="de", country="ch", time_range="week", include_domains=("example.org",), topic="news",
        exclude_domains=("example.com",), want_text=True,
    )  # fmt: skip
    asked = {"language", "country", "time_range", "include_domains", "exclude_domains", "topic", "want_text"}
    warned = {filter_ for filter_ in asked if any(f"no filter {filter_}" in warning for warning in found.warnings)}
    lacks = {"country"} if name == "tavily" else set()  # its news have no country
    assert warned == asked - provider.filters | lacks


@every
def test_domains_hold_whatever_the_provider_does(service: Service, name: str) -> None:
    if name == "wikipedia":
        pytest.skip("all of its hits are of one domain")
    service.respond(documented(name)["reply"])
    provider = engine(name, service)
    assert [hit.url for hit in search(provider, include_domains=("example.org",)).hits] == ["https://example.org/tides"]
    assert [hit.url for hit in search(provider, exclude_domains=("example.org",)).hits] == [
        "https://example.com/gauge?a=1"
    ]


DATES = {
    "brave": ("freshness", "2024-01-01to2024-06-30"), "serper": ("tbs", "cdr:1,cd_min:01/01/2024,cd_max:06/30/2024"),
    "google": ("sort", "date:r:20240101:20240630"), "tavily": ("end_date", "2024-06-30"),
    "exa": ("endPublishedDate", "2024-06-30T23:59:59.999Z"), "mojeek": ("before", "20240701"),
}  # fmt: skip


@pytest.mark.parametrize("name", DATES)
def test_two_days_are_a_range_in_the_provider_s_own_words(service: Service, name: str) -> None:
    service.respond(documented(name)["reply"])
    search(engine(name, service), time_range="2024-01-01..2024-06-30")
    key, value = DATES[name]
    assert service.requests[0].fields[key] == value


@pytest.mark.parametrize("name", ["tavily", "exa"])
def test_the_text_of_a_page_comes_apart_from_its_snippet(service: Service, name: str) -> None:
    service.respond(documented(name)["reply"])
    hit = search(engine(name, service), want_text=True).hits[0]
    assert hit.text.startswith("Tide gauges\n\nHow")
    assert hit.snippet.startswith("How a tide gauge")


def test_cost_is_what_the_answer_says_or_what_is_configured(service: Service) -> None:
    service.respond(documented("exa")["reply"])
    assert search(engine("exa", service, price=1.0)).usd == 0.005
    service.answers = []
    service.respond(documented("brave")["reply"], X_RateLimit_Remaining="1, 1234")
    found = search(engine("brave", service, price=0.003))
    assert (found.usd, found.remaining) == (0.003, 1234)


def test_mojeek_s_own_errors_come_with_status_200(service: Service) -> None:
    service.respond({"response": {"status": "ERROR: Daily Limit Reached"}})
    with pytest.raises(SearchFailed, match="Daily Limit") as caught:
        search(engine("mojeek", service))
    assert caught.value.kind == "rate"


def test_a_wikipedia_is_that_of_the_spec_or_of_the_request(service: Service) -> None:
    from prunus.web.search.wikipedia import Engine

    assert Engine("de")._base(SearchRequest("x")) == "https://de.wikipedia.org"
    assert Engine()._base(SearchRequest("x", language="fr-CH")) == "https://fr.wikipedia.org"
    assert Engine()._base(SearchRequest("x")) == "https://en.wikipedia.org"
    service.respond(documented("wikipedia")["reply"])
    assert search(engine("wikipedia", service)).hits[1].url == f"{service.url}/wiki/S%C3%A4ter_(gauge)%3F"
    with pytest.raises(BadInput, match="wikipedia:de"):
        Engine("../evil")


def test_searxng_without_json_says_what_to_switch_on(service: Service) -> None:
    service.respond(documented("searxng")["unauthorised"].encode(), 403)
    with pytest.raises(SearchFailed, match="add json to") as caught:
        search(engine("searxng", service))
    assert "<" not in str(caught.value)


def test_searxng_with_a_limiter_says_how_it_lets_a_program_pass(service: Service) -> None:
    service.respond(documented("searxng")["limited"].encode(), 429)
    with pytest.raises(SearchFailed, match=r"pass_ip in its limiter\.toml") as caught:
        search(engine("searxng", service))
    one_line(caught.value)


def test_where_every_engine_of_searxng_is_down_nothing_found_is_a_failure(service: Service) -> None:
    service.respond(documented("searxng")["all_down"])
    with pytest.raises(
        SearchFailed, match=r"broken \(CAPTCHA\), unreachable \(Suspended: unexpected crash\)"
    ) as caught:
        search(engine("searxng", service))
    assert caught.value.kind == "unreachable"
    one_line(caught.value)


def test_where_some_engines_of_searxng_are_down_a_warning_names_them(service: Service) -> None:
    service.respond(documented("searxng")["some_down"])
    found = search(engine("searxng", service))
    assert len(found.hits) == 2
    assert found.warnings == ("searxng: no answer came from broken (CAPTCHA), unreachable (unexpected crash)",)


def test_answers_and_infoboxes_of_searxng_are_hits_if_they_name_a_page(service: Service) -> None:
    service.respond(documented("searxng")["boxes"])
    answer, box, *results = search(engine("searxng", service)).hits
    assert (answer.url, answer.snippet) == (
        "https://example.org/history",
        "The first self-recording tide gauge was built in 1831.",
    )
    assert (box.url, box.title) == ("https://example.org/wiki/Tide_gauge", "Tide gauge")
    assert box.snippet == "A tide gauge measures the level of the sea. · Inventor: Henry Palmer"
    assert [hit.title for hit in results] == ["Tide gauges", "Gauge & level"]


ODD_EXTRAS: list[Any] = [
    {"answers": "x", "infoboxes": 3, "unresponsive_engines": {"a": 1}},
    {"answers": [None, {"url": 3}], "infoboxes": [{"id": "javascript:x", "urls": "x"}], "unresponsive_engines": [3]},
    {"infoboxes": [{"urls": [{"url": ["https://example.org"]}]}], "unresponsive_engines": [[], ["a"], "ab"]},
]


@pytest.mark.parametrize("extras", ODD_EXTRAS)
def test_odd_answers_infoboxes_and_engines_of_searxng_are_left_out(service: Service, extras: dict[str, Any]) -> None:
    service.respond({**documented("searxng")["reply"], **extras})
    found = search(engine("searxng", service))
    assert (len(found.hits), found.warnings) == (2, ())


CODES = {
    "brave": ("search_lang", {"de": "de", "zh": "zh-hans", "zh-TW": "zh-hant", "zh_Hant": "zh-hant", "ja": "jp",
              "pt": "pt-br", "pt-PT": "pt-pt", "pt-AO": "pt-pt", "nb": "nb", "no-NO": "nb", "en-GB": "en-gb",
              "en-US": "en", "iw": "he"}),
    "google": ("lr", {"de-CH": "lang_de", "zh": "lang_zh-CN", "zh-HK": "lang_zh-TW", "zh-Hans-HK": "lang_zh-CN",
               "he": "lang_iw", "nb": "lang_no", "ja": "lang_ja"}),
    "serper": ("hl", {"de": "de", "zh": "zh-cn", "zh-TW": "zh-tw", "he": "iw", "pt": "pt-br", "pt-PT": "pt-pt"}),
    "mojeek": ("lb", {"de": "DE", "zh-TW": "ZH", "pt-BR": "PT"}),
    "tavily": ("language", {"de": "de", "zh-TW": "zh", "pt-BR": "pt"}),
    "searxng": ("language", {"de": "de", "de-ch": "de-CH", "zh": "zh-CN", "zh-hant": "zh-TW", "pt_BR": "pt-BR"}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "field", "tag", "code"),
    [(name, field, tag, code) for name, (field, codes) in CODES.items() for tag, code in codes.items()],
)
def test_a_language_is_sent_in_the_provider_s_own_code(
    service: Service, name: str, field: str, tag: str, code: str
) -> None:
    service.respond(documented(name)["reply"])
    found = search(engine(name, service), language=tag)
    assert service.requests[0].fields[field] == code
    assert found.warnings == ()


COUNTRIES = {
    "brave": ("country", "GB"), "google": ("gl", "uk"), "serper": ("gl", "gb"), "mojeek": ("rb", "GB"),
    "exa": ("userLocation", "GB"), "tavily": ("country", "united kingdom"),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTRIES)
def test_a_country_is_sent_in_the_provider_s_own_code(service: Service, name: str) -> None:
    field, code = COUNTRIES[name]
    for written in ("gb", "GB", "uk"):
        service.respond(documented(name)["reply"])
        assert search(engine(name, service), country=written).warnings == ()
    assert {asked.fields[field] for asked in service.requests} == {code}


def test_a_country_tells_the_variant_of_a_language_and_is_part_of_searxng_s_language(service: Service) -> None:
    service.respond(documented("brave")["reply"])
    search(engine("brave", service), language="pt", country="PT")
    search(engine("brave", service), language="zh", country="TW")
    assert [asked.fields["search_lang"] for asked in service.requests] == ["pt-pt", "zh-hant"]
    service.answers = []
    service.respond(documented("searxng")["reply"])
    assert search(engine("searxng", service), language="de", country="CH").warnings == ()
    assert service.requests[2].fields["language"] == "de-CH"
    assert search(engine("searxng", service), country="CH").warnings == ("searxng: has no filter country 'CH'",)


@pytest.mark.parametrize(
    ("name", "fields", "warning"),
    [
        ("brave", {"language": "tlh"}, "brave: has no filter language 'tlh'"),
        ("brave", {"country": "IS"}, "brave: has no filter country 'IS'"),
        ("google", {"language": "hi"}, "google: has no filter language 'hi'"),
        ("mojeek", {"language": "haw"}, "mojeek: has no filter language 'haw'"),
        ("tavily", {"country": "VA"}, "tavily: has no filter country 'VA'"),
        ("tavily", {"country": "DE", "topic": "news"}, "tavily: has no filter country 'DE'"),
    ],
)
def test_a_code_that_the_provider_would_refuse_is_not_sent(
    service: Service, name: str, fields: dict[str, str], warning: str
) -> None:
    service.respond(documented(name)["reply"])
    found = search(engine(name, service), **fields)
    assert found.warnings == (warning,)
    sent = {str(value).lower() for value in service.requests[0].fields.values()}
    assert not sent & {"tlh", "is", "lang_hi", "haw", "va", "germany", "de"}


@pytest.mark.parametrize(
    "fields",
    [{"query": " "}, {"query": "x" * 3000}, {"count": 0}, {"count": 101}, {"page": 0}, {"time_range": "eon"},
     {"time_range": "2024-13-01..2024-14-01"}, {"time_range": "2024-02-01..2024-01-01"},
     {"include_domains": ("a b",)}, {"exclude_domains": ("x OR y",)}, {"language": "Klingon!"}, {"country": "Germany"}],
)  # fmt: skip
def test_a_request_that_cannot_be_asked_is_bad_input_and_nothing_is_sent(
    service: Service, fields: dict[str, Any]
) -> None:
    with pytest.raises(BadInput):
        asyncio.run(engine("brave", service).search(SearchRequest(**{"query": "x", **fields})))
    assert service.requests == []


@every
def test_without_a_key_or_a_door_nothing_is_asked(service: Service, name: str) -> None:
    with pytest.raises(BadInput, match="egress door"):
        search(engine(name, service, door=None))
    provider = engine(name, service)
    if provider.wants_key:
        with pytest.raises(BadInput, match="needs a key"):
            search(engine(name, service, key=""))
    assert service.requests == []


@every
@pytest.mark.parametrize("address", ["ftp://example.org", "http://user:pass@example.org", "nonsense", "http://"])
def test_an_endpoint_is_an_address(name: str, address: str) -> None:
    with pytest.raises(BadInput, match="https://host"):
        import_module(f"prunus.web.search.{name}").Engine(endpoint=address)
