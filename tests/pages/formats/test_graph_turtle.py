"""Turtle and its relatives: the same statements as rdflib reads, and faults with line and column."""

from __future__ import annotations

from random import Random

import pytest
from tests.extras import need
from tests.pages.formats.graphs import differences, statements_of
from tests.pages.formats.reading import survives_damage

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats.graph.engine import Engine
from prunus.pages.formats.graph.statements import FIRST, NIL, REST, TYPE, XSD, Literal, Ref

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # rdflib calls names of its own that it gave up

HEAD = "@prefix : <http://a.org/> .\n@prefix b-1: <http://b.org/x#> .\nPREFIX c: <http://c.org/>\n@base <http://a.org/d/e> .\n"


def test_each_part_of_a_statement_has_its_value() -> None:
    text = HEAD + ":s a b-1:T ; :p 1, -2.5, 1e3, true ; :q 'x'@EN-gb, \"7\"^^c:n .\n:s :r ( <f> ) ; :t [] ."
    assert [(item.subject, item.relation, item.value) for item in statements_of(text)] == [
        ("http://a.org/s", TYPE, Ref("http://b.org/x#T")),
        ("http://a.org/s", "http://a.org/p", Literal("1", "", f"{XSD}integer")),
        ("http://a.org/s", "http://a.org/p", Literal("-2.5", "", f"{XSD}decimal")),
        ("http://a.org/s", "http://a.org/p", Literal("1e3", "", f"{XSD}double")),
        ("http://a.org/s", "http://a.org/p", Literal("true", "", f"{XSD}boolean")),
        ("http://a.org/s", "http://a.org/q", Literal("x", "en-gb")),
        ("http://a.org/s", "http://a.org/q", Literal("7", "", "http://c.org/n")),
        ("http://a.org/s", "http://a.org/r", Ref("_:#1")),
        ("_:#1", FIRST, Ref("http://a.org/d/f")),
        ("_:#1", REST, Ref(NIL)),
        ("http://a.org/s", "http://a.org/t", Ref("_:#2")),
    ]


SAME = {
    "nothing but comments beside": f"{HEAD}# x\n:a :b :c . # y",
    "escapes in a string": HEAD + r""":a :b "t\tn\nr\rq\"'b\\ \u00e9\U0001F600", 'a"\'' .""",
    "long strings": HEAD + ':a :b """x\n"y" ""z"" \\" """, \'\'\'it\'\'s\'\'\', """""" .',
    "escapes in an address": HEAD + r"<http://a.org/\u00e9> :b <\U000000e9> .",
    "reserved letters in names": HEAD + r":a\.b\,c :p%20q :%41\~, b-1:a.b.c .",
    "names of digits, colons and accents": HEAD + ":1 :a:b:c :é-1, b-1:, : .",
    "numbers": HEAD + ":a :b 0, +7, -7, .5, -.5, 1.0, 1.e3, 1E-7, .5e+2, 12345678901234567890 .",
    "a number before the full stop": HEAD + ":a :b 5 .\n:a :c 5.5.\n:a :d 5.",
    "booleans": HEAD + ":a :b true, false .",
    "labels": HEAD + "_:a :b _:c.d, _:1 . _:a :c _:a.",
    "nested nodes": HEAD + ":a :b [ :c [ :d 1 ; :e [] ] ; a :T ], [ ] . [ :f :g ] :h :i . [ :only 1 ] .",
    "lists": HEAD + ":a :b (), (1), (1 (2 \"x\") [ :c :d ] :e) . (1 2) :p () .",
    "semicolons": HEAD + ":a :b 1 ; ; :c 2 ;; .",
    "a new base": HEAD + "@base <http://b.org/c/d/> . <> :p <../x>, <?q>, <#f>, <//h/i>, </j> . BASE <../k> <l> :p <> .",
    "a prefix that changes": HEAD + ":a :b :c . @prefix : <http://z.org/> . :a :b :c .",
    "prefixes in any case": "prefix a: <http://a.org/>\nBaSe <http://b.org/> a:x a:y <z> .",
    "languages": HEAD + ":a :b 'x'@en, 'x'@de-AT, 'x' .",
    "types of strings": HEAD + ":a :b 'x'^^<http://www.w3.org/2001/XMLSchema#string>, '2024-01-01'^^b-1:date .",
    "blanks of every kind": HEAD + ":a\t:b\r\n:c;:d(1),[:e 1].",
    "all letters of a string": HEAD + ":a :b 'é漢😀\u0001\t' .",
    "N-Triples": "<http://a/b> <http://a/c> \"x\\u00e9\"@en .\n_:a <http://a/c> _:b .\n",
}  # fmt: skip


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_rdflib_reads_the_same_statements(text: str) -> None:
    rdflib = need("rdflib")
    assert differences(rdflib, statements_of(text), text, "turtle") == ""


NAMED = {
    "trig": HEAD + ":a :b :c . :g { :a :b 1 . :d :e [ :f 2 ] } GRAPH <h> { } { :x :y :z } <h> { :a :b (3) . }",
    "nquads": '<http://a/s> <http://a/p> "x" <http://a/g> .\n<http://a/s> <http://a/p> <http://a/o> .\n'
    '_:a <http://a/p> "y"@en <http://a/g> .\n',
}  # fmt: skip


@pytest.mark.parametrize("form", NAMED)
def test_rdflib_reads_the_same_named_graphs(form: str) -> None:
    rdflib = need("rdflib")
    assert differences(rdflib, statements_of(NAMED[form], f"x.{form}"), NAMED[form], form) == ""


# --- any document that the grammar allows ------------------------------------------------------------

ADDRESSES = (":a", ":b.c", "b-1:d", "<http://e.org/f>", "<../h>", "<#i>", "c:", r":j\-k", "c:%20", ":é")
LETTERS = "ab \\\"'\n\t<>{}é漢😀.#@"


def written_text(chance: Random) -> str:
    """Return a string in one of its forms."""
    text = "".join(chance.choice(LETTERS) for _ in range(chance.randrange(9)))
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    forms = (
        '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"',
        f'"""{escaped}"""',
        "'" + "".join(f"\\U{ord(letter):08X}" for letter in text) + "'",
    )
    return chance.choice(forms) + chance.choice(("", "", "@en", "@de-CH", "^^b-1:unit", "^^<http://e.org/t>"))


def written_value(chance: Random, depth: int) -> str:
    """Return a value in one of its forms."""
    match chance.randrange(7 if depth < 3 else 5):
        case 0:
            return chance.choice(ADDRESSES)
        case 1:
            return chance.choice(("_:x", "_:y.z", "[]", "()"))
        case 2 | 3:
            return written_text(chance)
        case 4:
            number = chance.uniform(-1e6, 1e6)
            return chance.choice((str(int(number)), f"{number:.3f}", f"{number:e}", "true", "false"))
        case 5:
            return f"({' '.join(written_value(chance, depth + 1) for _ in range(chance.randrange(4)))} )"
    return f"[ {written_relations(chance, depth + 1)} ]"


def written_relations(chance: Random, depth: int) -> str:
    """Return relations with their values."""
    parts = []
    for _ in range(chance.randint(1, 3)):
        values = " , ".join(written_value(chance, depth) for _ in range(chance.randint(1, 3)))
        parts.append(f"{chance.choice((*ADDRESSES, 'a'))}{chance.choice((' ', chr(10), ' # x' + chr(10)))}{values} ")
    return chance.choice((";", "; ;\n")).join(parts)


@pytest.mark.parametrize("seed", range(10))
def test_rdflib_reads_the_same_in_any_document(seed: int) -> None:
    rdflib = need("rdflib")
    chance = Random(seed)
    for _ in range(10):
        subjects = (*ADDRESSES, "_:x", "[]", "(1 :a)", f"[{written_relations(chance, 2)}]")
        lines = [f"{chance.choice(subjects)} {written_relations(chance, 0)}.\n" for _ in range(chance.randint(1, 3))]
        text = HEAD + "".join(lines)
        assert differences(rdflib, statements_of(text), text, "turtle") == "", text


# --- faults ------------------------------------------------------------------------------------------

FAULTS = {
    "no full stop": (":a :b :c", r"line 5, column 9: the text ends too early"),
    "no relation": (":a .", r"line 5, column 4: '\.' is no relation"),
    "no value": (":a :b ; :c 1 .", r"column 7: '; :c 1 \.' is no value"),
    "a literal that is a subject": ("'x' :b :c .", "column 1: .* names no node"),
    "a prefix that is not declared": (":a z:b 1 .", r"line 5, column 4: 'z:b 1 \.' has a prefix that is not declared"),
    "an open string": (":a :b 'x .", "column 7: .* is not understood"),
    "a line end in a short string": (":a :b 'x\ny' .", "line 5, column 7"),
    "an open address": (":a :b <http://x .", "column 7"),
    "a space in an address": (":a :b <http://x y> .", "column 7"),
    "an escaped space in an address": (r":a :b <http://x\u0020y> .", "column 7: .* holds a letter that no address may hold"),
    "no escape": (r":a :b 'x\z' .", "column 9: .* is no escape"),
    "half a letter": (r":a :b '\uD800' .", "column 8: .* is no escape"),
    "an open bracket": (":a :b [ :c 1 .", "column 14: .* stands where ']' belongs"),
    "an open list": (":a :b (1 2 .", "is no value"),
    "a forgotten comma": (":a :b 1 2 .", r"column 9: '2 \.' stands where '\.' belongs"),
    "a forgotten comma between nodes": (":a :b :c :d .", "stands where"),
    "a statement about a statement": ("<<:a :b :c>> :d :e .", "is not read|names no node"),
    "an open graph": (":g { :a :b 1 .", "ends too early"),
    "no directive": ("@prefixes x: <y> .", "is no directive"),
    "no prefix": ("@prefix <y> .", "is no prefix"),
    "words": ("These are words.", "names no node"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_line_that_says_where(text: str, reason: str) -> None:
    with pytest.raises(BadPage, match=f"^x.ttl: .*{reason}"):
        statements_of(HEAD + text)


LENIENT = (r"\uD800", r"\u0020", ":a .", "'x' :b", "http://x y")


@pytest.mark.parametrize("text", [text for text, _ in FAULTS.values()])
def test_what_is_a_fault_is_one_for_rdflib_too(text: str) -> None:
    rdflib = need("rdflib")
    if any(part in text for part in LENIENT):
        pytest.skip("the grammar forbids it, and rdflib allows it")
    with pytest.raises(Exception):  # noqa: B017, PT011 - it has an error for each fault
        rdflib.Graph().parse(data=HEAD + text, format="turtle")


def test_limits_are_one_line() -> None:
    with pytest.raises(BadPage, match="more than 2 statements; split the graph"):
        Engine(max_statements=2).to_html(Page(HEAD + ":a :b 1, 2, 3 ."))
    with pytest.raises(BadPage, match="over the limit of 9; split the file"):
        Engine(max_chars=9).to_html(Page(HEAD))
    with pytest.raises(BadPage, match="nested more than 100 levels deep"):
        statements_of(HEAD + ":a :b " + "[ :c " * 200)
    with pytest.raises(BadPage, match="nested more than 100 levels deep"):
        statements_of(HEAD + ":a :b " + "(" * 5_000)
    with pytest.raises(BadPage, match="the graph holds no statement"):
        statements_of(HEAD)


def test_a_long_prefix_under_many_names_is_refused() -> None:
    text = f"@prefix p: <http://a.org/{'x' * 100_000}> .\n" + "p:a p:b p:c .\n" * 1_000
    with pytest.raises(BadPage, match="letters; split the document"):
        statements_of(text)


def test_a_long_list_is_read_without_recursion() -> None:
    assert len(statements_of(f"{HEAD}:a :b ({'1 ' * 20_000}) .")) == 40_001


def test_damage_gives_html_or_one_clear_line() -> None:
    text = HEAD + "".join(
        f':s{n} a :T ; :name "Port {n}"@en ; :next :s{n + 1} ; :at [ :x {n}.5 ; :y (1 2) ] .\n' for n in range(9)
    )
    assert survives_damage(Engine(), text.encode()) > 3
