"""Graphs as pages: a section for each node, with readable names, in the order of the file."""

from __future__ import annotations

import pytest
from tests.pages.formats.reading import cleaned, tree_of

import prunus
from prunus.core.types import Page
from prunus.pages.formats.graph.engine import Engine
from prunus.pages.formats.graph.html import local_name, node_name, relation_name, type_name

HEAD = "@prefix : <http://a.org/> . @prefix s: <https://schema.org/> . @prefix l: <http://www.w3.org/2000/01/rdf-schema#> .\n"

PORTS = """@prefix ex: <https://example.org/> .
@prefix s: <https://schema.org/> .
@prefix l: <http://www.w3.org/2000/01/rdf-schema#> .

ex:pell a s:Harbour ; l:label "Pell Harbour"@en, "Pellhafen"@de ;
    ex:maximumDepth 7.90 ; ex:operatedBy ex:linden_trust ;
    s:address [ a s:PostalAddress ; s:streetAddress "Quay 1" ; s:addressLocality "Pell" ] ;
    ex:stops ( "Ito" "Brin" ex:vel ) ; s:url <https://pell.example.org/> ; ex:area "12.5"^^ex:hectare .
ex:linden_trust ex:founded "1901" ; ex:chair _:ines .
_:ines s:name "Ines Tarrowby" ; ex:worksAt ex:pell, ex:linden_trust .
ex:vel ex:near _:ines .
"""


def test_a_graph_is_a_section_for_each_node_with_its_relations() -> None:
    assert prunus.clean(Page(PORTS.encode(), url="ports.ttl"), format="markdown") == (
        "## [Pell Harbour](https://example.org/pell)\n"
        "\n"
        "- type: Harbour\n"
        "- label: Pellhafen (de)\n"
        "- maximum depth: 7.90\n"
        "- operated by: [linden trust](#graph-node-2)\n"
        "- address:\n"
        "  - type: Postal Address\n"
        "  - street address: Quay 1\n"
        "  - address locality: Pell\n"
        "- stops: Ito, Brin, [vel](#graph-node-4)\n"
        "- url: [https://pell.example.org/](https://pell.example.org/)\n"
        "- area: 12.5 (hectare)\n"
        "\n"
        "## [linden trust](https://example.org/linden_trust)\n"
        "\n"
        "- founded: 1901\n"
        "- chair: [Ines Tarrowby](#graph-node-3)\n"
        "\n"
        "## Ines Tarrowby\n"
        "\n"
        "- works at: [Pell Harbour](#graph-node-1), [linden trust](#graph-node-2)\n"
        "\n"
        "## [vel](https://example.org/vel)\n"
        "\n"
        "- near: [Ines Tarrowby](#graph-node-3)"
    )


SHAPES = {
    "a label of a relation and of a type": (
        ":x a :T1 ; :p9 1 . :T1 l:label 'Port' . :p9 l:label 'Depth in m' .",
        "<section><h2><a href=http://a.org/x>x</a></h2><ul><li>type: <a href=#graph-node-2>Port</a><li>Depth in m: 1</ul></section>"
        "<section><h2><a href=http://a.org/T1>Port</a></h2></section><section><h2><a href=http://a.org/p9>Depth in m</a></h2></section>",
    ),
    "the best label": (
        ":x s:title 'c' ; s:name 'b'@fr, 'a'@en ; :k 1 .",
        "<section><h2><a href=http://a.org/x>a</a></h2><ul><li>title: c<li>name: b (fr)<li>k: 1</ul></section>",
    ),
    "a node without a name": ("[] a :Port ; :p 1 . [] :p 2 .", "<section><h2>Port 1</h2><ul><li>type: Port<li>p: 1</ul></section><section><h2>unnamed 2</h2><ul><li>p: 2</ul></section>"),
    "many values": (":x :p " + ", ".join(f"'v{n}'" for n in range(13)) + " .", "<section><h2><a href=http://a.org/x>x</a></h2><ul><li>p:<ul>" + "".join(f"<li>v{n}" for n in range(13)) + "</ul></ul></section>"),
    "a list": (":x :p (1 2), () .", "<section><h2><a href=http://a.org/x>x</a></h2><ul><li>p: 1, 2, (empty list)</ul></section>"),
    "a circle of nodes without address": ("_:a :p _:b . _:b :p _:a .", "<section><h2>unnamed 1</h2><ul><li>p:<ul><li>p: <a href=#graph-node-1>unnamed 1</a></ul></ul></section>"),
    "an address that is no web page": ("<urn:isbn:12> :p <urn:x:y> .", "<section><h2>12 <small>(urn:isbn:12)</small></h2><ul><li>p: y</ul></section>"),
    "a text of several lines": (":x :p 'a\\nb' .", "<section><h2><a href=http://a.org/x>x</a></h2><ul><li>p: a<br>b</ul></section>"),
    "markup is text": (":x :p '<b>y</b> & z' .", "<section><h2><a href=http://a.org/x>x</a></h2><ul><li>p: &lt;b>y&lt;/b> & z</ul></section>"),
    "one statement twice": (":x :p 1, 1 . :x :p 1 .", "<section><h2><a href=http://a.org/x>x</a></h2><ul><li>p: 1</ul></section>"),
    "a named graph": (":g { :x :p 1 }", "<section><h2><a href=http://a.org/x>x</a></h2><ul><li>p: 1<li>graph: <a href=http://a.org/g>g</a></ul></section>"),
    "a title": (":d a :Dataset ; l:label 'Ports' .", "<title>Ports</title><section><h2><a href=http://a.org/d>Ports</a></h2><ul><li>type: Dataset</ul></section>"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SHAPES.values(), ids=SHAPES)
def test_each_shape_of_a_graph_has_its_html(text: str, expected: str) -> None:
    assert cleaned(Engine(), HEAD + text) == expected


def test_nodes_that_are_nested_deep_get_sections_of_their_own() -> None:
    text = HEAD + ":x :p " + "[ :p " * 12 + "'end'" + " ]" * 12 + " ."
    found = cleaned(Engine(), text)
    assert found.count("<section>") == 3 and found.count("end") == 1


@pytest.mark.parametrize(
    "text", [PORTS, HEAD + "_:a :p _:b . _:b :p _:c . _:c :p _:a, 'é' . :l :q ( [ :p ( 7 ) ] 'é' ) ."]
)
def test_every_text_is_shown_once_and_always_alike(text: str) -> None:
    page = tree_of(Engine(), text)
    graph = Engine().graph_of(Page(text))
    for item in graph.statements:
        if len(item.value) > 1:
            assert item.value[0] in page.canonical, item
    assert tree_of(Engine(), text).canonical == page.canonical


NAMES = [
    ("https://schema.org/birthPlace", "birth place", "birth Place"),
    ("http://a.org/x#has_ISBN", "has ISBN", "has ISBN"),
    ("http://a.org/PostalAddress/", "postal address", "Postal Address"),
    ("urn:x:is-part-of", "is part of", "is part of"),
    ("knows", "knows", "knows"),
    ("http://a.org/", "http://a.org/", "http://a.org/"),
]


@pytest.mark.parametrize(("address", "relation", "kind"), NAMES)
def test_the_names_of_relations_and_types_are_words(address: str, relation: str, kind: str) -> None:
    assert (relation_name(address), type_name(address)) == (relation, kind)


def test_the_name_of_a_node_is_the_last_part_of_its_address() -> None:
    assert node_name("https://a.org/wiki/Pell_Harbour%21") == "Pell Harbour!"
    assert local_name("https://a.org/x?y#z") == "z"
    assert node_name("https://a.org") == "https://a.org"


def test_a_page_from_the_web_resolves_its_addresses() -> None:
    found = Engine().graph_of(Page(b"<x> <#y> </z> .", url="https://a.org/b/c.ttl"))
    assert found.statements[0][:2] == ("https://a.org/b/x", "https://a.org/b/c.ttl#y")
    assert found.statements[0].value.key == "https://a.org/z"
