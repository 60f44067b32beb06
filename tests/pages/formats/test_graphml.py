"""GraphML: the nodes, edges and data that networkx reads; faults with line and column."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.extras import need
from tests.pages.formats.graphs import statements_of
from tests.pages.formats.reading import cleaned, survives_damage

from prunus.core.errors import BadPage
from prunus.pages.formats.graph.engine import Engine
from prunus.pages.formats.graph.statements import Literal, Ref

GRAPH = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="name" attr.type="string"/>
<key id="d1" for="node" attr.name="maximumDepth" attr.type="double"><default>5</default></key>
<key id="d2" for="edge" attr.name="relationship" attr.type="string"/>
<key id="d3" for="edge" attr.name="since" attr.type="int"/>
<graph id="G" edgedefault="directed"><data key="d0">Coast</data>
<node id="n0"><data key="d0">Pell Harbour</data><data key="d1">7.9</data></node>
<node id="n1"><data key="d0">Linden Trust</data></node><node id="n2"/>
<edge source="n0" target="n1"><data key="d2">operatedBy</data><data key="d3">1932</data></edge>
<edge source="n1" target="n2"/>
</graph></graphml>"""


def test_a_graph_is_a_section_for_each_node_with_its_edges() -> None:
    assert cleaned(Engine(), GRAPH) == (
        "<title>Coast</title><h1>Coast</h1>"
        "<section><h2>Pell Harbour <small>(n0)</small></h2><ul><li>maximum depth: 7.9"
        "<li>operated by: <a href=#graph-node-2>Linden Trust</a> (since: 1932)</ul></section>"
        "<section><h2>Linden Trust <small>(n1)</small></h2><ul><li>linked to: <a href=#graph-node-3>n2</a><li>maximum depth: 5</ul></section>"
        "<section><h2>n2</h2><ul><li>maximum depth: 5</ul></section>"
    )


def written(chance: random.Random) -> Any:
    """Return a graph of networkx with data of every kind."""
    networkx = need("networkx")
    graph = chance.choice((networkx.DiGraph, networkx.MultiDiGraph, networkx.Graph))()
    names = [f"n{number}" for number in range(chance.randint(1, 9))]
    data = {"name": "Pell & <b>", "depth": 7.25, "count": 3, "open": True, "note": "two\nlines é"}
    for name in names:
        graph.add_node(name, **{key: data[key] for key in chance.sample(list(data), chance.randrange(4))})
    for _ in range(chance.randrange(12)):
        graph.add_edge(chance.choice(names), chance.choice(names), **({"weight": 2.5} if chance.random() < 0.5 else {}))
    return graph


@pytest.mark.parametrize("seed", range(40))
def test_networkx_writes_what_is_read(seed: int) -> None:
    networkx = need("networkx")
    graph = written(random.Random(seed))
    text = "\n".join(networkx.generate_graphml(graph))
    found = Engine().graph_of(_page(text))
    edges = [
        (item.subject, item.value.key, dict(item.notes)) for item in found.statements if isinstance(item.value, Ref)
    ]
    data = sorted(
        (item.subject, item.relation, item.value.text) for item in found.statements if isinstance(item.value, Literal)
    )
    expected = [
        (node, key, _shown(member)) for node, members in graph.nodes(data=True) for key, member in members.items()
    ]
    assert data == sorted(expected)
    if graph.is_directed():
        pairs = [(start, end, {key: _shown(member) for key, member in members.items() if key != "key"}) for start, end, members in graph.edges(data=True)]  # fmt: skip
        assert sorted(edge[:2] for edge in edges) == sorted(pair[:2] for pair in pairs)
        assert sorted(str(edge[2].get("weight")) for edge in edges) == sorted(
            str(pair[2].get("weight")) for pair in pairs
        )
    else:
        joined = sorted(
            tuple(sorted((item.subject, item.value.key))) for item in found.statements if isinstance(item.value, Ref)
        )
        assert joined == sorted(tuple(sorted(edge)) for edge in graph.edges())
    assert {*graph.nodes} == {item.subject for item in found.statements} | {
        item.value.key for item in found.statements if isinstance(item.value, Ref)
    } | {*found.nodes}


def _shown(member: object) -> str:
    return str(member)


def _page(text: str) -> Any:
    from prunus.core.types import Page

    return Page(text, url="x.graphml")


def test_labels_that_are_drawn_name_their_nodes() -> None:
    text = (
        '<graphml><key id="d6" for="node" yfiles.type="nodegraphics"/><graph><node id="n0"><data key="d6"><y:ShapeNode xmlns:y="y">'
        '<y:Fill color="red"/><y:NodeLabel>Pell\nHarbour</y:NodeLabel></y:ShapeNode></data></node></graph></graphml>'
    )
    (item,) = statements_of(text, "x.graphml")
    assert item == ("n0", "label", Literal("Pell Harbour"), "", ())


def test_nodes_inside_nodes_and_edges_of_several_ends_are_read() -> None:
    text = (
        '<graphml><graph><node id="a"><graph><node id="b"/></graph></node><hyperedge id="h"><endpoint node="a"/><endpoint node="b"/>'
        '</hyperedge><node id="c" labels=":Port:Town"/></graph></graphml>'
    )
    found = [
        (item.subject, item.relation.rpartition("#")[2], item.value[0]) for item in statements_of(text, "x.graphml")
    ]
    assert found == [
        ("b", "part of", "a"),
        ("h", "linked to", "a"),
        ("h", "linked to", "b"),
        ("c", "type", "Port"),
        ("c", "type", "Town"),
    ]


BAD = {
    "an open element": ("<graphml><graph>", r"no valid XML \(no element found: line 1, column 16\)"),
    "a fault of XML": ("<graphml>\n<node id=a/>", r"not well-formed \(invalid token\): line 2, column 9"),
    "entities": ('<!DOCTYPE a [<!ENTITY x "y">]><graphml/>', "declares a document type or entities, which are never read"),
    "another root": ("<?xml version='1.0'?><svg/>", "the root element is 'svg', not 'graphml'"),
    "nothing": ("<graphml><graph/></graphml>", "the graph holds no statement"),
    "too deep": ("<graphml>" + "<graph><node id='a'>" * 80, "nested too deep"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
def test_a_fault_is_one_line_that_says_where(text: str, reason: str) -> None:
    with pytest.raises(BadPage, match=f"^x.graphml: .*{reason}"):
        statements_of(text, "x.graphml")


def test_damage_gives_html_or_one_clear_line() -> None:
    assert survives_damage(Engine(), GRAPH.encode()) > 3


def test_an_edge_without_a_label_is_an_edge() -> None:
    assert "linked to" in cleaned(Engine(), GRAPH.replace('target="n2"/>', 'target="n2" label=""/>'))


def test_defaults_that_are_written_again_and_again_are_refused() -> None:
    key = f'<key id="k" for="all" attr.name="note"><default>{"x" * 100_000}</default></key>'
    nodes = "".join(f'<node id="m{number}"/>' for number in range(600))
    with pytest.raises(BadPage, match="letters"):
        cleaned(Engine(), GRAPH.replace("<graph ", f"{key}<graph ").replace("</graph>", f"{nodes}</graph>"))
