"""What a page or a model writes cannot control the terminal."""

from __future__ import annotations

import sys
import time

import pytest

from prunus.cli.output import emit, emit_json, emit_piece, say, working

HOSTILE = "a\x1b]0;title\x07\x1b[2Jb\x9b31m\u202ec\u2066d\r\x08e\x7f\tf\n"
SHOWN = "a]0;title[2Jb31mcde\tf\n"


@pytest.mark.parametrize("write", [emit, emit_piece])
def test_a_terminal_gets_no_control_characters(
    write: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(write)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write(HOSTILE)
    assert capsys.readouterr().out.rstrip("\n") == SHOWN.rstrip("\n")


def test_json_on_a_terminal_and_messages_hold_none_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    emit_json({"text": HOSTILE})
    say(HOSTILE)
    shown = capsys.readouterr()
    assert not set("\x1b\x9b\x07\u202e\u2066\x08\x7f") & set(shown.out + shown.err)


@pytest.mark.parametrize("seconds", [0.0, 1.3])
def test_long_work_is_told_on_a_terminal(
    seconds: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with working("pruning", quiet=False):
        time.sleep(seconds)
    told = capsys.readouterr()
    assert ("pruning" in told.err) == bool(seconds) and not told.out
