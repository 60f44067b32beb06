"""The request log: off by default; what a line holds; secrets and old days are gone."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from tests.serve.running import BRIDGE, QUESTION, model, running

pytestmark = pytest.mark.full

PAGE = {"html": BRIDGE, "url": "https://example.org/bridge?api_key=verysecret123"}


def lines_of(folder: Path) -> list[dict[str, object]]:
    """Return the lines of the log; read when the server has stopped, because lines are written beside the answers."""
    return [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()
    ]


def test_nothing_is_kept_by_default(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        assert server.post("/v1/ask", {"question": QUESTION, "pages": [PAGE]}).status_code == 200
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"1932" in path.read_bytes()]


def test_a_line_holds_what_training_needs(tmp_path: Path) -> None:
    settings = {"llm": model(tmp_path, "It opened in 1932 [1]."), "extractor": "sentences"}
    folder = tmp_path / "log"
    with running(tmp_path, settings, log=str(folder)) as server:
        chat = {"model": "prunus", "messages": [{"role": "user", "content": QUESTION}], "pages": [PAGE]}
        server.post("/v1/ask", {"question": QUESTION, "pages": [PAGE], "stream": True})
        server.post("/v1/chat/completions", chat)
    first, second = lines_of(folder)
    assert first["question"] == QUESTION and first["answer"] == "It opened in 1932 [1]." and first["ended"] == "done"
    texts = {one["tag"]: one["text"] for one in first["tagged"]}  # type: ignore[attr-defined]
    assert "The bridge opened in 1932." in [texts[tag] for tag in first["tags"]]  # type: ignore[attr-defined]
    assert len(texts) > len(first["tags"])  # type: ignore[arg-type]  # what was not taken is there, too
    assert first["citations"][0]["quote"] == "The bridge opened in 1932."  # type: ignore[index]
    assert second["tags"] == first["tags"]
    [path] = folder.glob("*.jsonl")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_secrets_and_personal_numbers_are_hidden(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    question = f"{QUESTION} Write to anna.b@example.org or call +49 170 1234567."
    with running(tmp_path, log=str(folder)) as server:
        server.post("/v1/ask", {"question": question, "pages": [PAGE]})
    text = next(folder.glob("*.jsonl")).read_text("utf-8")
    assert "verysecret" not in text and "anna.b" not in text and "1234567" not in text and "[email]" in text


def test_a_question_without_an_answer_is_noted_with_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with running(tmp_path, log=str(folder)) as server:
        reply = server.post("/v1/ask", {"question": "Who wrote the symphony?", "pages": [{"html": "<p>Soup."}]})
        assert reply.status_code == 404
    [line] = lines_of(folder)
    assert "answer" not in line and "likely to answer" in str(line["ended"])


def test_days_that_are_too_old_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    old, other = folder / "requests-2020-01-01.jsonl", folder / "notes.txt"
    old.write_text("{}\n")
    other.write_text("mine")
    with running(tmp_path, log=str(folder), log_days=7):
        assert not old.exists() and other.exists()
