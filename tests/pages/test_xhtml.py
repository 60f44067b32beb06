"""XHTML is read as XML means it; entities of its document type are never expanded."""

from __future__ import annotations

import time

import pytest

from prunus.core.types import Page
from prunus.engines import formats
from prunus.pages.clean.parse import parse, source_text
from prunus.pages.clean.walk import clean_tree
from prunus.pages.read import clean_page

DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'
DOCTYPE = (
    '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">'
)
ROOT = '<html xmlns="http://www.w3.org/1999/xhtml">'
BODIES = {
    "<head><script src='a.js'/></head><body><p>Tide</p></body>": "Tide",
    "<head><title/><style/></head><body><p>Tide</p></body>": "Tide",
    "<head><title>T</title></head><body><iframe src='x'/><textarea/><p>Tide</p></body>": "T\nTide",
    "<body><p><a id='x' title='a > b'/>High <del/>water<b />, <video src='v'/>low</p><h2/><p>Tide</p></body>": "High water, low\nTide",
    "<body><p><![CDATA[a < b & <i>]]></p><br></br><p>1<br></br>2&nbsp;&#181;</p></body>": "a < b & <i>\n1\n2 µ",
    "<body><?php echo 1 ?><p>Tide</p><!-- <script/> --></body>": "Tide",
    "<body><script>if (a &lt; b) x('<div/>')</script><p>Tide</p></body>": "Tide",
    "<body><p>Half a page<div/>": "Half a page",
}


def words(page: Page) -> str:
    return clean_page(page, formats().to_html).canonical


@pytest.mark.parametrize("body", BODIES)
def test_what_follows_an_empty_element_is_not_swallowed(body: str) -> None:
    page = f"{DECLARATION}{DOCTYPE}{ROOT}{body}</html>"
    assert clean_tree(page.encode()).canonical == clean_tree(page).canonical == BODIES[body]
    assert words(Page(f"{ROOT}{body}</html>", "page.xhtml")) == BODIES[body]
    assert (
        words(Page(f"<html>{body}</html>".encode(), "https://x.org/a", media_type="application/xhtml+xml"))
        == BODIES[body]
    )
    assert clean_tree(source_text(page)).canonical == BODIES[body]


def test_a_page_that_is_html_is_read_as_html() -> None:
    body = "<div/><p>High <del/>water</p><a href=https://x.org/>link</a>"
    for start in ("<!doctype html><html>", "<html>", ROOT):
        assert clean_tree(f"{start}<body>{body}").canonical.startswith("High ~~water~~")
    assert "link" in clean_tree(f"{DECLARATION}<html><a href=https://x.org/>link</a>").canonical


def test_prefixes_are_those_of_their_name_space() -> None:
    page = '<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:body><h:h1>Tide</h:h1><h:p>at <h:b>nine</h:b></h:p></h:body></h:html>'
    assert clean_tree(DECLARATION + page).tag[2:5] == ["h1", "", "p"]


@pytest.mark.parametrize(
    ("encoding", "text"), [("iso-8859-1", "Größe"), ("windows-1251", "Погода в Велмаре, ветер с моря")]
)
def test_the_declaration_names_the_encoding(encoding: str, text: str) -> None:
    page = f'<?xml version="1.0" encoding="{encoding}"?>{ROOT}<body><p>{text}</p></body></html>'
    assert clean_tree(page.encode(encoding)).canonical == text


def test_entities_of_a_document_type_are_neither_expanded_nor_fetched_nor_shown() -> None:
    entities = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(20))
    doctype = f'<!DOCTYPE html [<!ENTITY file SYSTEM "file:///etc/passwd"><!ENTITY a0 "ha]>">{entities}]>'
    text = clean_tree(f"{DECLARATION}{doctype}{ROOT}<body><p>&file; &a20; &eacute;</p></body></html>").canonical
    assert text == "&file; &a20; é"


@pytest.mark.parametrize(
    "part", ["<a ", "<!--", "<![CDATA[", "<?a ", "<a b='", "<script>", "<!DOCTYPE a [", "<a/>", "<a:b "]
)
def test_hostile_xhtml_takes_linear_time(part: str) -> None:
    started = time.process_time()
    parse(DECLARATION + ROOT + part * 100_000)
    assert time.process_time() - started < 5
