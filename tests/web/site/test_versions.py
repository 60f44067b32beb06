"""Versions of a documentation: which addresses are of older ones."""

from __future__ import annotations

import random

import pytest

from prunus.web.door.url import parse_url
from prunus.web.site.versions import Versions


def latest(*paths: str) -> list[str]:
    """Return the paths that are of no older version, whatever the order in which they became known."""
    results = set()
    for seed in range(5):
        versions, order = Versions(), list(paths)
        random.Random(seed).shuffle(order)
        for path in order:
            versions.note(parse_url(f"https://docs.example.org{path}"))
        results.add(
            tuple(path for path in paths if not versions.is_older(parse_url(f"https://www.docs.example.org{path}")))
        )
    [result] = results
    return list(result)


@pytest.mark.parametrize(
    ("newest", "older"),
    [
        (["/en/stable/a.html", "/about"], ["/en/latest/a.html", "/en/v4.2/a.html", "/en/5.0/", "/en/latest"]),
        (["/en/stable/a", "/de/4.0/a"], ["/en/4.0/a", "/de/3.9/a", "/de/3.10/"]),  # a language may lag behind
        (["/3/library/a", "/3/"], ["/3.12/library/a", "/3.15/library/a", "/2/library/a", "/2.7/"]),
        (["/docs/current/a"], ["/docs/17/a", "/docs/9/a", "/docs/9.6/a", "/docs/devel/a"]),
        (["/v10/a", "/v10/b"], ["/v9/a", "/v2/c"]),
        (["/1.10/a"], ["/1.9.3/a", "/2.0-rc1/a", "/2.0.0b2/a", "/next/a", "/main/a"]),
        (["/2.x/a"], ["/2.4/a", "/1.x/a", "/main/a"]),
        (["/docs/a", "/docs/b/c"], ["/docs/2.x/a", "/docs/3.1/old", "/docs/next/b/c"]),  # the latest has no name
    ],
)
def test_only_the_latest_of_several_versions_stays(newest: list[str], older: list[str]) -> None:
    assert latest(*newest, *older) == newest


def test_a_version_that_the_latest_leads_to_is_the_latest() -> None:
    versions = Versions()
    address = "https://docs.example.org{}".format
    for path in ("/latest/a", "/2.1/a", "/3.0/a", "/docs/a", "/docs/1.0/a", "/docs/2.0/a"):
        versions.note(parse_url(address(path)))
    assert versions.is_older(parse_url(address("/2.1/a"))) and versions.is_older(parse_url(address("/docs/2.0/a")))
    assert versions.lead(parse_url(address("/latest/a")), parse_url(address("/2.1/a")))
    assert versions.lead(parse_url(address("/docs/a")), parse_url(address("/docs/2.0/a")))
    assert not versions.lead(parse_url(address("/latest/b")), parse_url(address("/2.1/b")))
    assert not versions.lead(parse_url(address("/3.0/a")), parse_url(address("/2.1/a")))
    older = [
        path
        for path in ("/2.1/b", "/3.0/b", "/docs/1.0/b", "/docs/2.0/b")
        if versions.is_older(parse_url(address(path)))
    ]
    assert older == ["/3.0/b", "/docs/1.0/b"]


@pytest.mark.parametrize(
    "paths",
    [
        ["/chapter/3/a", "/chapter/4/a", "/page/2", "/blog/2024/a", "/blog/2023/b"],
        ["/releases/4.2/", "/releases/4.1", "/changelog/v1.0", "/changelog/v2.0"],
        ["/main/a", "/of/stable/a/b", "/only/1.2/a"],
        ["/doi/10.1000/182", "/doi/10.10386/x"],
        ["/a/1.2.3.4.5/b", "/a/1.2.3.4.6/b", "/a/v/b", "/a/x.y/b"],
    ],
)
def test_what_is_no_version_stays(paths: list[str]) -> None:
    assert latest(*paths) == paths
