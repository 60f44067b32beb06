"""JSON by a schema: what a page labels or says fills a field with its words; a model's reply is checked and looked up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.extras import need

import prunus
from prunus.answer.fields.schema import fault_of, fields_of, plain_schema
from prunus.answer.fields.values import dates_in, numbers_in
from prunus.core.errors import UnreadableReply
from prunus.models.llm.scripted import Engine

SHOP = """<html lang=en><title>The lamp</title><meta name=author content="Ada Moor">
<script type="application/ld+json">{"@type": "Product", "sku": "LMP-7", "offers": {"price": "48.50"}}</script>
<h1>The lamp</h1><p>A brass lamp for a desk.</p><p><s>€ 60</s> € 48.50 with VAT</p>
<dl><dt>Weight<dd>1.2 kg<dt>Height<dd>40 cm</dl><p>Released: 4 March 2024</p>
<table><caption>Spare parts</caption><tr><th>Part<th>Price<th>In stock<tr><td>Shade<td>€9<td>12<tr><td>Bulb<td>€1,250<td>0</table>
<h2>Opening hours</h2><p>Monday to Friday, 9 to 17</p><p>Saturday, 9 to 12</p><h2>Author</h2><p>The author</p>"""


def schema(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def filled(page: str = SHOP, **fields: Any) -> prunus.Filled:
    need("jsonschema")
    return prunus.fill(schema(**fields), page)


@pytest.mark.parametrize(
    ("name", "field", "value", "quote"),
    [
        ("weight", {"type": "string"}, "1.2 kg", "Weight\n1.2 kg"),
        ("released", {"type": "string", "format": "date"}, "2024-03-04", "Released: 4 March 2024"),
        ("price", {"type": "number"}, 48.5, "~~€ 60~~ € 48.50 with VAT"),
        ("shadeCost", {"type": "number", "description": "Price of the part Shade"}, 9, "Shade\t€9\t12"),
        ("bulb_price", {"type": ["integer", "null"], "title": "Price of the part Bulb"}, 1250, "Bulb\t€1,250\t0"),
        ("shades", {"type": "integer", "description": "Shade in stock"}, 12, "Shade\t€9\t12"),
        ("opening_hours", {"type": "string"}, "Monday to Friday, 9 to 17\nSaturday, 9 to 12", None),
        ("author", {"type": "string"}, "Ada Moor", "Ada Moor"),
        ("authors", {"type": "array", "items": {"type": "string"}}, ["Ada Moor"], "Ada Moor"),
        ("height", {"anyOf": [{"type": "number"}, {"type": "null"}]}, 40, "Height\n40 cm"),
        ("height", {"anyOf": [{"type": "number"}, True]}, 40, "Height\n40 cm"),
        ("metal", {"enum": ["Steel", "Brass"], "description": "Which metal is the lamp of?"}, "Brass", None),
        ("voltage", {"type": "string"}, None, None),
    ],
)
def test_a_field_is_filled_with_the_words_that_say_it(name: str, field: Any, value: Any, quote: str | None) -> None:
    result = filled(**{name: field})
    [one] = result.fields
    assert result.data == {name: value} and one.path == name and one.value == value
    if value is None:
        assert one.citation is None and "no passage" in one.reason
    else:
        assert one.citation is not None and (quote is None or one.citation.quote == quote)
        assert one.citation.found == (name not in ("author", "authors")) and one.reason == ""


def test_what_only_the_data_of_a_page_say_is_not_found_in_its_text() -> None:
    [one] = filled(sku={"type": "string"}).fields
    assert one.value == "LMP-7" and one.citation is not None
    assert not one.citation.found and one.citation.place == "data of the page for programs"


def test_of_several_pages_that_of_the_question_counts() -> None:
    need("jsonschema")
    pages = [f"<title>{name}</title><h1>The {name}</h1><p>A {name} of brass.</p><dl><dt>Weight<dd>{weight} kg</dl>"
             for name, weight in (("lamp", 1), ("anchor", 40), ("bell", 7))]  # fmt: skip
    for name, weight in (("bell", 7), ("lamp", 1), ("anchor", 40)):
        assert prunus.fill(schema(weight={"type": "number"}), pages, f"The brass {name}").data == {"weight": weight}


def test_nothing_is_invented_and_objects_nest() -> None:
    inner = {"type": "object", "properties": {"weight": {"type": "string"}, "voltage": {"type": "number"}}}
    result = filled(lamp=inner, colours={"type": "array", "items": {"type": "string"}}, bright={"type": "boolean"})
    assert result.data == {"lamp": {"weight": "1.2 kg", "voltage": None}, "colours": [], "bright": None}
    assert [one.path for one in result.fields] == ["lamp.weight", "lamp.voltage", "colours", "bright"]
    assert "without a model" in result.fields[3].reason


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "no JSON schema"),
        ({"type": "object"}, "no properties"),
        (schema(a={"type": "nonsense"}), "properties.a.type"),
        (schema(a={"type": "string", "pattern": "(a+)+$"}), "pattern is not supported"),
        (schema(a={"$ref": "https://evil.example/schema.json"}), "nothing is fetched"),
        (schema(a={"$ref": "#"}), "refers to itself"),
        (schema(a={"$ref": "#/$defs/none"}), "there is no"),
        (schema(**{f"f{n}": {"type": "string"} for n in range(101)}), "101 fields"),
        (schema(a={"enum": list(range(6_000))}), "over 5,000 values"),
    ],
)
def test_a_schema_that_cannot_be_used_is_one_line(wrong: Any, message: str) -> None:
    need("jsonschema")
    with pytest.raises(prunus.BadInput, match=message.replace(".", r"\.")) as error:
        fields_of(plain_schema(wrong))
    assert "\n" not in str(error.value)


def test_without_the_extra_the_command_to_install_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("jsonschema", "jsonschema.exceptions"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(prunus.MissingExtra, match="schema"):
        prunus.fill(schema(a={"type": "string"}), SHOP)


def test_references_are_put_in_place_and_may_not_multiply() -> None:
    need("jsonschema")
    plain = plain_schema({**schema(a={"$ref": "#/$defs/day"}), "$defs": {"day": {"type": "string", "format": "date"}}})
    assert plain == schema(a={"type": "string", "format": "date"})
    assert plain_schema(schema(pattern={"type": "string"}))  # the name of a field
    doubled = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(30)} | {"l30": {"type": "string"}}
    with pytest.raises(prunus.BadInput, match="over 5,000 values"):
        plain_schema({**schema(a={"$ref": "#/$defs/l0"}), "$defs": doubled})


def test_the_first_fault_is_told() -> None:
    need("jsonschema")
    assert fault_of({"a": 1}, schema(a={"type": "number"})) == ""
    assert fault_of({"a": "x"}, schema(a={"type": "number"})) == "a: 'x' is not of type 'number'"


def test_numbers_and_dates_are_read_as_the_page_writes_them() -> None:
    assert [value for value, _, _ in numbers_in("1,250.50 and 1.250,50 and −3, 10⁹, ~~99~~, v3.4.1")] == [
        1250.5,
        1250.5,
        -3,
    ]
    assert [value for value, _, _ in numbers_in("1.250 und 2,5", "de")] == [1250, 2.5]
    assert [value for value, _, _ in numbers_in("1,250 and 2.5", "en")] == [1250, 2.5]
    assert [value for value, _, _ in numbers_in("6 for €48", money=True)] == [48, 6]
    assert [day for day, _, _ in dates_in("On 4 March 2024, March 5th, 2024, 2024-03-06; in May 2024")] == [
        "2024-03-04", "2024-03-05", "2024-03-06",
    ]  # fmt: skip


LAMP = schema(weight={"type": "string"}, price={"type": "number"}, maker={"type": "string"}, day={"type": "string"})


def by_model(*replies: Any) -> tuple[prunus.Filled, Engine]:
    need("jsonschema")
    model = Engine(script=[reply if isinstance(reply, str) else json.dumps(reply) for reply in replies])
    return prunus.fill(LAMP, SHOP, "Which lamp?", options=prunus.Options(llm=model)), model


def test_a_models_values_are_looked_up_in_the_pages() -> None:
    reply = {"weight": "1.2 kg", "price": 48.5, "maker": "Acme", "day": None}
    result, model = by_model("Here it is:\n```json\n" + json.dumps(reply) + "\n```")
    weight, price, maker, day = result.fields
    assert result.data == reply and len(model.calls) == 1
    assert weight.citation is not None and weight.citation.quote == "Weight\n1.2 kg" and weight.citation.found
    assert price.citation is not None and "48.50" in price.citation.quote
    assert maker.citation is None and "no page does" in maker.reason  # the model made it up, or says it in other words
    assert day.value is None and day.reason


def test_a_reply_that_does_not_fit_is_sent_back_once() -> None:
    result, model = by_model({"price": "forty-eight"}, {"price": 48.5})
    assert result.data == {"price": 48.5} and len(model.calls) == 2
    assert "price: 'forty-eight' is not" in model.calls[1].messages[-1].content
    with pytest.raises(UnreadableReply, match="does not fit the schema, on a second try either: price"):
        by_model({"price": "forty-eight"}, {"price": "fifty"})


def test_the_schema_of_the_example_fills_the_page_of_the_example() -> None:
    need("jsonschema")
    given = json.loads(Path("examples/gauge.schema.json").read_text("utf-8"))
    data = prunus.fill(given, Path("examples/site/pell-2-gauge.html")).data
    assert (data["price"], data["in_stock"], data["warranty"], data["designer"]) == (289, 41, "4 years", None)
