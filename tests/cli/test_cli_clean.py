"""``prunus clean``: one page, several, a folder; files, standard input, JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.command import SITE, Cli, lines_of, only_line

import prunus


def test_a_page_goes_to_stdout_as_the_library_cleans_it(cli: Cli) -> None:
    for format in ("html", "markdown", "text"):
        result = cli("clean", "examples/site/faq.html", "--format", format)
        assert result.exit_code == 0
        assert result.stdout == prunus.clean(SITE / "faq.html", format) + "\n"
        assert result.stderr == ""


def test_standard_input_is_a_page(cli: Cli) -> None:
    html = (SITE / "install-guide-zh.html").read_bytes()
    assert cli("clean", "-", input=html).stdout == cli("clean", SITE / "install-guide-zh.html").stdout


def test_plain_text_on_standard_input_keeps_its_paragraphs_and_lines(cli: Cli) -> None:
    assert cli("clean", "-", "--format", "text", input="One\nline.\n\nTwo lines.").stdout == "One\nline.\nTwo lines.\n"


def test_links_and_pictures_can_be_left_out(cli: Cli) -> None:
    page = "examples/site/gallery.html"
    everything, less = cli("clean", page).stdout, cli("clean", page, "--no-links", "--no-images").stdout
    assert "href=" in everything and "src=" in everything
    assert "href=" not in less and "src=" not in less


def test_full_and_pretty_write_every_end_tag(cli: Cli) -> None:
    assert "</p>" not in cli("clean", "-", input="<p>one</p><p>two</p>").stdout
    assert "</p>" in cli("clean", "-", "--full", input="<p>one</p><p>two</p>").stdout
    assert "\n" in cli("clean", "-", "--pretty", input="<p>one</p><p>two</p>").stdout.strip()


def test_one_page_into_a_file(cli: Cli, folder: Path) -> None:
    result = cli("clean", "examples/site/faq.html", "-o", "out.md", "--format", "markdown")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (folder / "out.md").read_text("utf-8") == prunus.clean(SITE / "faq.html", "markdown") + "\n"


def test_a_folder_is_mirrored(cli: Cli, small_site: Path) -> None:
    result = cli("clean", small_site, "-o", "out", "--format", "text")
    assert result.exit_code == 5
    written = sorted(str(path.relative_to("out")) for path in Path("out").rglob("*") if path.is_file())
    assert written == ["below/note.txt", "faq.txt"]
    assert Path("out/below/note.txt").read_text("utf-8") == "Note\nThe bridge opened in 1932.\n"
    assert "2 of 4 pages cleaned" in result.stderr
    assert "empty.html: the page is empty" in result.stderr
    assert "picture.html: this is binary data" in result.stderr
    assert result.stderr.splitlines()[-1] == "prunus: 2 of 4 pages could not be read"


def test_a_folder_as_json_is_one_line_a_page(cli: Cli, small_site: Path) -> None:
    result = cli("clean", small_site, "--json", "--quiet")
    assert result.exit_code == 5
    records = {Path(record["page"]).name: record for record in lines_of(result)}
    assert set(records) == {"faq.html", "note.html", "empty.html", "picture.html"}
    assert records["note.html"]["output"] == "<h1>Note</h1><p>The bridge opened in 1932."
    assert records["note.html"]["words"] == 6
    assert "empty" in records["empty.html"]["error"]


def test_all_pages_failing_is_bad_input(cli: Cli, folder: Path) -> None:
    (folder / "a.html").touch()
    (folder / "b.html").touch()
    result = cli("clean", "a.html", "b.html", "--json")
    assert result.exit_code == 2
    assert "none of 2 pages could be read" in result.stderr


def test_several_pages_need_a_place(cli: Cli) -> None:
    result = cli("clean", "examples/site")
    assert result.exit_code == 2
    assert "-o FOLDER" in only_line(result)


def test_pages_of_one_name_do_not_overwrite_each_other(cli: Cli, folder: Path) -> None:
    for name, word in (("one/page.html", "one"), ("two/page.html", "two"), ("page.htm", "three")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"<p>{word} word", "utf-8")
    assert cli("clean", "one/page.html", "two/page.html", "page.htm", "-o", "out", "--format", "text").exit_code == 0
    texts = sorted(path.read_text("utf-8").strip() for path in Path("out").iterdir())
    assert texts == ["one word", "three word", "two word"]


def test_a_page_that_is_read_is_never_overwritten(cli: Cli, small_site: Path) -> None:
    before = (small_site / "faq.html").read_bytes()
    result = cli("clean", small_site, "-o", small_site)
    assert result.exit_code == 2
    assert "would overwrite" in only_line(result)
    assert (small_site / "faq.html").read_bytes() == before


def test_what_was_written_below_the_folder_is_not_read_again(cli: Cli, folder: Path) -> None:
    (folder / "pages").mkdir()
    (folder / "pages" / "a.html").write_text("<p>some words", "utf-8")
    for _ in range(2):
        assert cli("clean", "pages", "-o", "pages/clean").exit_code == 0
    assert [path.name for path in (folder / "pages" / "clean").rglob("*")] == ["a.html"]


def test_skip_existing_goes_on_where_it_stopped(cli: Cli, folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "faq.html").write_text("mine", "utf-8")
    result = cli("clean", "examples/site", "-o", "out", "--skip-existing")
    assert result.exit_code == 0
    assert "11 of 12 pages cleaned, 1 skipped" in result.stderr
    assert (folder / "out" / "faq.html").read_text("utf-8") == "mine"


def test_a_device_is_written_to_and_not_replaced(cli: Cli) -> None:
    assert cli("clean", "examples/site/faq.html", "-o", "/dev/null").exit_code == 0
    assert not Path("/dev/null").is_file()


def test_no_temporary_file_stays(cli: Cli, folder: Path) -> None:
    cli("clean", "examples/site", "-o", "out", "--quiet")
    assert not list(folder.rglob("*.tmp"))


def test_standard_input_and_saved_pages_can_name_their_address_and_type(cli: Cli, folder: Path) -> None:
    page = '<p>See <a href="../b?x=1#y">that</a> and <a href="#z">this</a>.'
    for arguments in (("-",), ("saved.html",)):
        (folder / "saved.html").write_text(page, "utf-8")
        written = cli("clean", *arguments, "--url", "https://example.org/a/c", input=page).stdout
        assert "https://example.org/b?x=1#y" in written and "#z" in written and "org/a/c#z" not in written
    for name in ("csv", ".csv", "text/csv"):
        assert "<table" in cli("clean", "-", "--type", name, input="name,level\nPell,1").stdout
    for name, written in (("tsv", "<table"), ("md", "<h1>")):
        assert written in cli("clean", "-", "--type", name, input="# name\tlevel\n\nPell\t1").stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("examples/site", "--url", "https://example.org/"), "one saved page"),
        (("-", "--url", "example.org"), "no address"),
        (("-", "--type", "markdwon"), "did you mean 'markdown'"),
        (("https://example.org/", "--url", "https://example.org/"), "one saved page"),
    ],
)
def test_an_origin_that_cannot_be_is_one_line(cli: Cli, arguments: tuple[str, ...], reason: str) -> None:
    result = cli("clean", *arguments, "--json", input="<p>x")
    assert result.exit_code == 2 and reason in only_line(result)
