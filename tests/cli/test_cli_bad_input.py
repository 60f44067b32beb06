"""Bad input of any kind gives one line on stderr and the right exit code."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.cli.command import Cli, only_line

from prunus.cli import main
from prunus.core.installation import pip_install_folder

PAGE = "<h1>Bridge</h1><p>The bridge opened in 1932. It was built of stone and of iron in nine years.</p>"

COMMANDS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "clean": lambda page: ("clean", page),
    "prune": lambda page: ("prune", page, "-q", "When did the bridge open?"),
    "ask": lambda page: ("ask", "When did the bridge open?", page),
}

UNREADABLE: dict[str, tuple[bytes, str]] = {
    "empty.html": (b"", "the page is empty"),
    "white.html": (b" \n\t \r\n", "the page is empty"),
    "picture.html": (b"\x89PNG\r\n\x1a\n\0\0\0\0", "binary data"),
    "zeros.txt": (b"\0\1\0\2" * 400, "binary data"),
    "unseen.html": (b"<p hidden>secret</p><script>let a = 1</script>", "shows no text"),
}

READABLE: dict[str, bytes] = {
    "plain": b"The bridge opened in 1932.\n\nTrams run daily.",
    "plain.txt": b"The bridge opened in 1932.\n\nTrams run daily.",
    "plain.html": b"The bridge opened in 1932. Trams run daily.",
    "wrong.html": '<meta charset="utf-8"><p>The bridge of café Zoë opened in 1932.'.encode("latin-1"),
    "unknown.html": b'<meta charset="klingon"><p>The bridge opened in 1932.',
    "utf16.html": "<p>The bridge opened in 1932.".encode("utf-16"),
    "truncated.html": b'<div class="a"><p>The bridge opened in 1932. <a href="more.ht',
    "cut.html": "<p>The bridge opened in 1932. 橋".encode()[:-1],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_page_that_cannot_be_read(cli: Cli, folder: Path, command: str, name: str) -> None:
    content, reason = UNREADABLE[name]
    (folder / name).write_bytes(content)
    result = cli(*COMMANDS[command](name), "--quiet")
    assert result.exit_code == 2
    line = only_line(result)
    assert reason in line and name in line


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", READABLE)
def test_an_odd_page_still_gives_an_answer(cli: Cli, folder: Path, command: str, name: str) -> None:
    (folder / name).write_bytes(READABLE[name])
    result = cli(*COMMANDS[command](name), "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "1932" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("nowhere.html", "no such file"),
        ("", "empty name"),
        ("nothing", "no page in this folder"),
        ("http://127.0.0.1/page", "loopback"),
        ("a" * 300, "cannot be read"),
        ("/dev/null", "empty"),
    ],
)
def test_an_argument_that_is_no_page(cli: Cli, folder: Path, command: str, argument: str, reason: str) -> None:
    (folder / "nothing").mkdir()
    (folder / "nothing" / "picture.png").write_bytes(b"x")
    result = cli(*COMMANDS[command](argument), "--quiet")
    assert result.exit_code == 2
    assert reason in only_line(result)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_enormous_page(cli: Cli, folder: Path, command: str) -> None:
    (folder / "prunus.toml").write_text("max_file_mb = 1\n", "utf-8")
    with (folder / "big.html").open("wb") as file:
        file.truncate(3 << 20)
    result = cli(*COMMANDS[command]("big.html"))
    assert result.exit_code == 2
    assert "over the limit of 1 MiB" in only_line(result)


def test_a_device_without_end(cli: Cli, folder: Path) -> None:
    (folder / "prunus.toml").write_text("max_file_mb = 1\n", "utf-8")
    assert "over the limit" in only_line(cli("clean", "/dev/zero"))
    assert "over the limit" in only_line(cli("clean", "-", input=b"a" * (1 << 20) + b"b"))


def test_enormous_on_purpose(cli: Cli, folder: Path) -> None:
    (folder / "many").mkdir()
    for number in range(3):
        (folder / "many" / f"{number}.html").write_text(PAGE, "utf-8")
    (folder / "prunus.toml").write_text("max_files = 2\n", "utf-8")
    result = cli("clean", "many", "--json")
    assert result.exit_code == 2
    assert "more than 2 pages" in only_line(result)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_page_that_may_not_be_read(cli: Cli, folder: Path) -> None:
    (folder / "locked.html").write_text(PAGE, "utf-8")
    (folder / "locked.html").chmod(0)
    assert "cannot be read" in only_line(cli("clean", "locked.html"))


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (("--budget", "0"), "budget of 0"),
        (("--budget", "-5"), "budget of -5"),
        (("--budget", "1"), "below the smallest piece"),
        (("--budget", "many"), "not a valid integer"),
        (("--scorer", "bm52"), "did you mean 'bm25'?"),
        (("--scorer", "nobody"), "no scorer is called 'nobody'; there are: bm25, crossencoder"),
        (("--embedder", "nobody"), "no embedder is called 'nobody'"),
        (("--scorer", "bm25:huge"), "takes no model"),
    ],
)
@pytest.mark.parametrize("command", ["prune", "ask"])
def test_an_option_that_cannot_be_used(
    cli: Cli, folder: Path, command: str, extra: tuple[str, ...], reason: str
) -> None:
    (folder / "page.html").write_text(PAGE, "utf-8")
    result = cli(*COMMANDS[command]("page.html"), *extra)
    assert result.exit_code == 2
    assert reason in only_line(result)


@pytest.mark.parametrize("arguments", [("prune", "page.html", "-q", "  "), ("ask", "", "page.html")])
def test_an_empty_question(cli: Cli, folder: Path, arguments: tuple[str, ...]) -> None:
    (folder / "page.html").write_text(PAGE, "utf-8")
    result = cli(*arguments)
    assert result.exit_code == 2
    assert "the question is empty" in only_line(result)


@pytest.mark.parametrize(
    "arguments",
    [
        ("clean",),
        ("prune", "page.html"),
        ("clean", "page.html", "--format", "pdf"),
        ("clean", "--nonsense"),
        ("dance",),
    ],
)
def test_usage(cli: Cli, folder: Path, arguments: tuple[str, ...]) -> None:
    (folder / "page.html").write_text(PAGE, "utf-8")
    result = cli(*arguments)
    assert result.exit_code == 2
    assert "--help" in only_line(result)


@pytest.mark.parametrize(
    ("content", "reason"),
    [("budget = [", "not valid TOML"), ("budge = 1", "no such setting: budge"), ("budget = 'x'", "not a whole number")],
)
def test_a_settings_file_that_is_wrong(cli: Cli, folder: Path, content: str, reason: str) -> None:
    (folder / "page.html").write_text(PAGE, "utf-8")
    (folder / "prunus.toml").write_text(content, "utf-8")
    result = cli("clean", "page.html")
    assert result.exit_code == 2
    assert reason in only_line(result)


@pytest.mark.parametrize("option", [("-o", "/dev/null/x"), ("-o", "page.html")])
def test_a_place_that_cannot_be_written_to(cli: Cli, folder: Path, option: tuple[str, str]) -> None:
    (folder / "page.html").write_text(PAGE, "utf-8")
    result = cli("clean", "page.html", *option)
    assert result.exit_code == 2
    assert option[1] in only_line(result)
    assert (folder / "page.html").read_text("utf-8") == PAGE


def broken(value: str) -> Callable[[], dict[str, EntryPoint]]:
    name = "eval" if "evals" in value else "dance"
    return lambda: {name: EntryPoint(name, value, main.GROUP)}


def test_a_missing_extra_names_the_line_that_installs_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "foreign_commands", broken("prunus_evals_gone.cli:main"))
    assert cli("--help").exit_code == 0
    result = cli("eval", "gate", "--pin")
    assert result.exit_code == 2
    assert pip_install_folder("evals") in only_line(result)


def test_a_command_of_another_distribution_is_listed_where_it_is_missing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "foreign_commands", dict)
    assert "prunus-train" in cli("--help").stdout
    result = cli("train", "static", "--sets", "train/")
    assert result.exit_code == 2
    assert pip_install_folder("train") in only_line(result)


@pytest.mark.parametrize("value", ["prunus_evals.no_such_file:main", "prunus_evals.split:no_such_name"])
def test_a_name_that_is_missing_in_an_installed_package_is_no_missing_extra(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setattr(main, "foreign_commands", broken(value))
    result = cli("eval", "gate")
    assert result.exit_code == 1
    assert "eval: this command cannot be loaded" in only_line(result)
    assert "no_such" in result.stderr and "pip install" not in result.stderr


def test_a_file_that_cannot_be_imported_is_named_by_the_name_it_lacks(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "stranger_dance.py").write_text("from prunus_evals.split import no_such_name\n", "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(main, "foreign_commands", broken("stranger_dance:main"))
    result = cli("dance")
    assert result.exit_code == 1
    assert "no_such_name" in only_line(result)


def test_a_broken_command_of_a_stranger_is_one_line_and_only_when_called(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "foreign_commands", broken("json:no_such_thing"))
    assert "dance" in cli("--help").stdout
    result = cli("dance", "--fast")
    assert result.exit_code == 1
    assert "dance: this command cannot be loaded" in only_line(result)


def test_a_bug_shows_its_traceback(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prunus.cli.commands import clean

    def bug(*_: object, **__: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(clean, "pages_given", bug)
    (folder / "page.html").write_text(PAGE, "utf-8")
    result = cli("clean", "page.html")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr and "ZeroDivisionError: a bug" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("prun", "page.html"), "did you mean 'prune'?"),
        (("prune", "page.html", "-Q", "When?"), "Did you mean '-q'?"),
        (("prune", "page.html", "When?"), 'Write it as -q "'),
        (("clean", "page.html", "--format", "md"), "did you mean 'markdown'?"),
        (("clean", "page.html", "--formt", "html"), "--format"),
        (("ask", "When?", "page.html", "--llm", "gpt-4o"), "did you mean 'openai:gpt-4o'?"),
        (("ask", "When?", "page.html", "--llm", "ollama:llama3"), "http://HOST/v1#llama3"),
        (("ask", "When?", "--search", "wikpedia"), "did you mean 'wikipedia'?"),
        (("clean", "https://"), "no whole address"),
    ],
)
def test_a_typo_is_told_with_what_was_meant(cli: Cli, folder: Path, arguments: tuple[str, ...], hint: str) -> None:
    (folder / "page.html").write_text(PAGE, "utf-8")
    result = cli(*arguments)
    assert result.exit_code == 2
    assert hint in only_line(result)
