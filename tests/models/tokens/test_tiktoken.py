"""``tiktoken``: a vocabulary is read from this machine, checked, and fetched only through the egress door."""

from __future__ import annotations

import hashlib
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.extras import need
from tests.models.tokens.vocabularies import URL, tiny_encoding, tiny_file, tiny_folder

from prunus.core.errors import BadInput, MissingExtra, OutsideFailed
from prunus.models.tokens.tiktoken import Engine, _parts

if TYPE_CHECKING:
    import httpx


class Door:
    """A door that answers from memory."""

    def __init__(self, content: bytes = b"", status: int = 200) -> None:
        self.content, self.status, self.asked = content, status, list[str]()

    def client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.Client:
        import httpx

        assert not endpoint, "no internal address is allowed for this"
        assert seconds > 0

        def reply(request: httpx.Request) -> httpx.Response:
            self.asked.append(str(request.url))
            return httpx.Response(self.status, content=self.content)

        return httpx.Client(transport=httpx.MockTransport(reply))

    def async_client(self, endpoint: str = "", *, seconds: float = 0.0) -> httpx.AsyncClient:
        raise AssertionError("a counter is not async")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """tiktoken knows one encoding more; nobody reaches the network; no cache of another run is seen."""
    known = need("tiktoken_ext.openai_public")
    monkeypatch.setitem(known.ENCODING_CONSTRUCTORS, "tiny", tiny_encoding())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    def nobody(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    monkeypatch.setattr(socket.socket, "connect", nobody)


pytestmark = pytest.mark.full


@pytest.mark.usefixtures("tiny")
def test_tokens_are_counted_by_the_vocabulary_in_the_folder(tmp_path: Path) -> None:
    engine = Engine("tiny", str(tiny_folder(tmp_path)))
    assert engine.count(["the", " the", "thing", "é", "潮"]).tolist() == [1, 2, 2, 2, 3]
    assert engine.count(["<|end|>"]).tolist() == [7], "what looks like a special token is plain text"


@pytest.mark.usefixtures("tiny")
def test_the_cache_of_tiktoken_itself_is_read(tmp_path: Path) -> None:
    cache = tmp_path / "temporary" / "data-gym-cache"
    cache.mkdir(parents=True)
    (cache / hashlib.sha1(URL.encode()).hexdigest()).write_bytes(tiny_file())
    assert Engine("tiny").count(["the"]).tolist() == [1]


@pytest.mark.usefixtures("tiny")
def test_without_the_file_it_says_that_it_needs_the_network_and_does_not_use_it(tmp_path: Path) -> None:
    for name in ("tiny", "gpt2", "o200k_harmony", "gpt-4o-mini"):
        with pytest.raises(BadInput, match=r"fetching it needs the network; put https://\S+ into ") as caught:
            Engine(name, str(tmp_path)).count(["x"])
        assert str(tmp_path) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("tiny")
def test_a_file_that_is_not_the_one_is_not_believed(tmp_path: Path) -> None:
    (tiny_folder(tmp_path) / "tiny.tiktoken").write_bytes(tiny_file().replace(b"dGg=", b"dGk="))
    with pytest.raises(BadInput, match="not on this machine"):
        Engine("tiny", str(tmp_path)).count(["x"])


@pytest.mark.usefixtures("tiny")
def test_it_is_fetched_once_through_the_door_and_kept(tmp_path: Path) -> None:
    door = Door(tiny_file())
    engine = Engine("tiny", str(tmp_path / "new"), door)
    assert door.asked == []
    assert engine.count(["the"]).tolist() == [1]
    engine.count(["the"])
    assert door.asked == [URL]
    assert Engine("tiny", str(tmp_path / "new")).count(["the"]).tolist() == [1]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("door", "said"),
    [(Door(b"x" * 100), "not the file that tiktoken expects"), (Door(b"gone", 404), "HTTP 404"),
     (Door(b"x" * (33 * 1024 * 1024)), "over 32 MiB")],
    ids=["other", "missing", "huge"],
)  # fmt: skip
def test_what_is_fetched_is_checked_before_it_is_kept(tmp_path: Path, door: Door, said: str) -> None:
    with pytest.raises(OutsideFailed, match=said):
        Engine("tiny", str(tmp_path), door).count(["x"])
    assert list(tmp_path.glob("*.tiktoken")) == []


def test_a_name_that_nobody_knows_is_answered_with_those_that_there_are() -> None:
    need("tiktoken")
    for name in ("", "nothing"):
        with pytest.raises(BadInput, match=r"no such encoding or model; encodings: cl100k_base, "):
            Engine(name)


def test_a_missing_package_is_named_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[tiktoken\]'"):
        Engine("cl100k_base")


def test_only_endless_runs_are_cut() -> None:
    text = "word " * 50_000
    assert list(_parts(text)) == [text]
    assert list(_parts("")) == [""]
    parts = list(_parts("a " + " " * 50_000 + "x" * 45_000))
    assert "".join(parts) == "a " + " " * 50_000 + "x" * 45_000
    assert max(len(part) for part in parts) <= 40_002
    assert len(parts) == 5
