"""JSON-LD: the same statements as rdflib reads, by the contexts in the document alone; no context is fetched."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from tests.extras import need
from tests.pages.formats.graphs import differences, statements_of
from tests.pages.formats.reading import cleaned, survives_damage

from prunus.core.errors import BadPage
from prunus.pages.formats.graph.engine import Engine
from prunus.pages.formats.graph.statements import NIL, Literal, Ref

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # rdflib's own

V = {"@vocab": "http://v.org/"}
TERMS = {
    "ex": "http://e.org/",
    "name": "http://v.org/name",
    "knows": {"@id": "ex:knows", "@type": "@id"},
    "kind": {"@id": "ex:kind", "@type": "@vocab"},
    "born": {"@id": "ex:born", "@type": "http://www.w3.org/2001/XMLSchema#date"},
    "stops": {"@id": "ex:stops", "@container": "@list"},
    "label": {"@id": "ex:label", "@container": "@language"},
    "said": {"@id": "ex:said", "@language": "de"},
    "plain": {"@id": "ex:plain", "@language": None},
    "parts": {"@id": "ex:parts", "@container": "@index"},
    "byId": {"@id": "ex:byId", "@container": "@id"},
    "byType": {"@id": "ex:byType", "@container": "@type"},
    "isKnownBy": {"@reverse": "ex:knows"},
    "off": None,
    "id": "@id",
    "type": "@type",
}

SAME: dict[str, Any] = {
    "values": {"@context": V, "@id": "http://a.org/s", "a": "x", "b": 7, "c": 1.5, "d": True, "e": ["x", "y"], "f": None},
    "value objects": {"@context": V, "a": [{"@value": "x", "@language": "EN"}, {"@value": "1", "@type": "http://t.org/t"}, {"@value": 5}, {"@value": None}]},
    "types": {"@context": V, "@id": "http://a.org/s", "@type": ["T", "http://t.org/U"]},
    "terms": {"@context": TERMS, "id": "ex:s", "type": "ex:T", "name": "Ann", "knows": ["ex:t", "http://u.org/"], "kind": "name", "born": "1932-05-01"},
    "lists": {"@context": TERMS, "id": "ex:s", "stops": ["a", "b", {"id": "ex:c"}], "ex:l": {"@list": [1, 2]}, "ex:m": {"@list": []}},
    "languages": {"@context": {**TERMS, "@language": "en"}, "id": "ex:s", "name": "x", "label": {"de": ["a", "b"], "fr": "c", "@none": "d"}, "said": "e", "plain": "f"},
    "maps": {"@context": TERMS, "id": "ex:s", "parts": {"a": {"name": "x"}, "b": [{"name": "y"}]}, "byId": {"ex:i": {"name": "z"}}, "byType": {"ex:T": {"name": "w"}}},
    "turned relations": {"@context": TERMS, "id": "ex:s", "isKnownBy": [{"id": "ex:t"}, {"id": "ex:u"}], "@reverse": {"knows": {"id": "ex:v", "name": "V"}}},
    "switched off": {"@context": TERMS, "id": "ex:s", "off": "x", "name": "y"},
    "nodes inside": {"@context": TERMS, "id": "ex:s", "knows": {"name": "B", "knows": {"id": "ex:c", "name": "C"}}},
    "a graph": {"@context": TERMS, "@graph": [{"id": "ex:s", "name": "A"}, {"id": "ex:t", "name": "B"}]},
    "a named graph": {"@context": TERMS, "id": "ex:g", "name": "G", "@graph": [{"id": "ex:s", "name": "A"}]},
    "a list of objects": [{"@context": TERMS, "id": "ex:s", "name": "A"}, {"@context": V, "@id": "http://a.org/t", "name": "B"}],
    "a list of contexts": {"@context": [V, {"x": "y"}, {"z": {"@id": "x", "@type": "@id"}}], "@id": "http://a.org/s", "x": "1", "z": "http://a.org/t"},
    "a context inside": {"@context": V, "@id": "http://a.org/s", "a": {"@context": {"b": "http://o.org/b"}, "b": "x", "c": "y"}, "b": "z"},
    "no context inside": {"@context": {"a": "http://v.org/a"}, "@id": "http://a.org/s", "a": {"@context": None, "a": "x", "http://v.org/b": "y"}},
    "contexts of terms": {"@context": {"a": {"@id": "http://v.org/a", "@context": {"b": "http://w.org/b"}}}, "@id": "http://a.org/s", "a": {"b": "x"}},
    "contexts of types": {"@context": {"T": {"@id": "http://v.org/T", "@context": {"b": "http://w.org/b"}}, "c": "http://v.org/c"}, "@id": "http://a.org/s", "@type": "T", "b": "x", "c": {"@id": "http://a.org/t", "b": "lost"}},
    "a base": {"@context": {"@base": "http://a.org/d/", "knows": {"@id": "http://v.org/k", "@type": "@id"}}, "@id": "x", "knows": ["../y", "#z", ""]},
    "expanded": [{"@id": "http://a.org/s", "@type": ["http://v.org/T"], "http://v.org/a": [{"@value": "x"}, {"@id": "http://a.org/t"}]}],
    "sets": {"@context": V, "@id": "http://a.org/s", "a": {"@set": ["x", {"@value": "y"}]}},
    "labels": {"@context": V, "@id": "_:b", "a": {"@id": "_:c"}, "d": {"@id": "_:b"}},
    "nested": {"@context": {**V, "more": "@nest"}, "@id": "http://a.org/s", "more": {"a": "x"}},
}  # fmt: skip


@pytest.mark.parametrize("document", SAME.values(), ids=SAME)
def test_rdflib_reads_the_same_statements(document: Any) -> None:
    rdflib = need("rdflib")
    text = json.dumps(document)
    ours = [item for item in statements_of(text, "x.jsonld") if "lost" not in item.value]
    assert differences(rdflib, ours, text, "json-ld") == ""


NAMES = ("ex:a", "ex:b", "http://o.org/c", "_:d")
KEYS = ("name", "ex:free", "ex:more", "http://o.org/p", "said", "plain")


def written_value(chance: Random, depth: int) -> Any:
    """Return a value of any kind that JSON-LD has."""
    plain = chance.choice(("x", "", 'é<"\\', 7, -3, True, False, "2024-01-01"))
    match chance.randrange(6 if depth < 3 else 5):
        case 0:
            return {"@value": plain}
        case 1:
            return {"@value": "x", "@language": chance.choice(("en", "de-AT"))}
        case 2:
            return {"@id": chance.choice(NAMES)}
        case 3:
            return {"@list": [chance.choice(("x", 1, True)) for _ in range(chance.randrange(4))]}
        case 4:
            return plain
    return written_node(chance, depth + 1)


def written_node(chance: Random, depth: int) -> dict[str, Any]:
    """Return a node with some relations."""
    node: dict[str, Any] = {}
    if chance.random() < 0.6:
        node["id"] = chance.choice(NAMES)
    if chance.random() < 0.4:
        node["type"] = chance.sample(NAMES, chance.randrange(3))
    for key in chance.sample(KEYS, chance.randint(1, 3)):
        several = [written_value(chance, depth) for _ in range(chance.randrange(4))]
        node[key] = several if len(several) != 1 or chance.random() < 0.5 else several[0]
    if chance.random() < 0.2:
        node["stops"] = ["x", 5][: chance.randrange(3)]
    return node


@pytest.mark.parametrize("seed", range(8))
def test_rdflib_reads_the_same_in_any_document(seed: int) -> None:
    rdflib = need("rdflib")
    chance = Random(seed)
    for _ in range(10):
        text = json.dumps(
            {
                "@context": TERMS,
                "@graph": [
                    {"id": "ex:z", "name": "Z"},
                    *(written_node(chance, 0) for _ in range(chance.randint(1, 2))),
                ],
            }
        )
        assert differences(rdflib, statements_of(text, "x.jsonld"), text, "json-ld") == "", text


def test_a_key_without_a_meaning_is_a_relation_of_its_own_name() -> None:
    (item,) = statements_of('{"@context": {}, "@id": "http://a.org/s", "depth": 7.90}', "x.jsonld")
    assert (item.subject, item.relation, item.value[0]) == ("http://a.org/s", "depth", "7.90"), (
        "numbers stay as written"
    )


def test_a_context_that_is_an_address_is_not_fetched_and_named() -> None:
    text = '{"@context": "https://w3id.org/x/v1", "id": "http://a.org/s", "type": "Port", "name": "Pell"}'
    assert cleaned(Engine(), text) == (
        "<p><em>The context https://w3id.org/x/v1 is not fetched: its names stand as written.</em>"
        "<section><h2><a href=http://a.org/s>Pell</a></h2><ul><li>type: Port</ul></section>"
    )


def test_the_vocabulary_of_schema_org_is_known() -> None:
    found = statements_of('{"@context": "https://schema.org/", "@type": "Place", "name": "Pell"}', "x.jsonld")
    assert [item.value for item in found] == [Ref("http://schema.org/Place"), Literal("Pell")]


def test_a_list_may_hold_lists() -> None:
    found = statements_of('{"@id": "http://a.org/s", "http://a.org/p": {"@list": [1, [2]]}}', "x.jsonld")
    values = [item.value[0] for item in found]
    assert values == ["_:#1", "1", "_:#2", "_:#3", "2", NIL, NIL], "the inner list is the second value of the outer"


BAD = {
    "a fault of JSON": ('{"@context": {},\n "a": }', r"not valid JSON \(line 2, column 7: "),
    "cut off": ('{"@id": "a", "b": [1', r"line 1, column 21"),
    "deep objects": ('{"a":' * 300 + "1" + "}" * 300, "objects and lists are nested more than 100 levels deep"),
    "deep lists": ('{"http://a.org/b":' + "[" * 300 + "]" * 300 + "}", "nested more than 100 levels deep"),
    "very deep": ("[" * 200_000, "nested too deep|not valid JSON"),
    "nothing": ("{}", "the graph holds no statement"),
    "plain values": ("[1, 2]", "the graph holds no statement"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
def test_a_fault_is_one_line(text: str, reason: str) -> None:
    with pytest.raises(BadPage, match=f"^x.jsonld: .*(?:{reason})"):
        statements_of(text, "x.jsonld")


HOSTILE = {
    "a context for each object": {"@context": {f"t{n}": f"http://a.org/{n}" for n in range(3_000)}, "@graph": [{"@context": {"x": f"http://b.org/{n}"}, "x": 1} for n in range(3_000)]},
    "terms that need each other": {"@context": {f"t{n}": f"t{n + 1}:x" for n in range(5_000)}, "t0": 1},
    "terms in a circle": {"@context": {"a": "b:x", "b": "c:x", "c": "a:x"}, "a": 1, "b": 2},
    "a long vocabulary": {"@context": {"@vocab": "http://a.org/" + "x" * 100_000}, **{f"k{n}": n for n in range(3_000)}},
    "odd keywords": {"@context": {"@base": 7, "@vocab": [], "@language": {}, "a": 5, "b": {"@id": []}, "c": {"@container": 7}}, "@id": 5, "@type": [7, {}], "@graph": 3, "@reverse": 1, "b": 1},
    "a type with a context for each object": {"@context": {"T": {"@id": "http://a.org/T", "@context": {f"t{n}": f"http://b.org/{n}" for n in range(2_000)}}}, "@graph": [{"@type": "T", "t1": n} for n in range(5_000)]},
}  # fmt: skip


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_context_is_answered_or_refused_in_one_line(document: Any) -> None:
    try:
        assert Engine().to_html(_page(json.dumps(document)))
    except BadPage as error:
        assert "\n" not in str(error), error  # noqa: PT017 - a refusal is a valid result


def _page(text: str) -> Any:
    from prunus.core.types import Page

    return Page(text, url="x.jsonld")


def test_damage_gives_html_or_one_clear_line() -> None:
    assert survives_damage(Engine(), json.dumps(SAME["maps"], indent=1).encode() * 1) > 3


def test_nests_within_nests_are_refused_in_one_line() -> None:
    nested = '{"x": {"@id": "http://a/x"}, "n": ' * 985 + "1" + "}" * 985
    text = '{"@context": {"n": "@nest", "x": "http://a/y"}, "@id": "http://a/z", "n": ' + nested + "}"
    with pytest.raises(BadPage, match="deep"):
        cleaned(Engine(), text)
