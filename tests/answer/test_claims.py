"""The claims of a text from anywhere, checked against pages: verdicts, reasons, and what must never pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.command import Cli, only_line
from tests.cli.conftest import cli as cli

import prunus
from prunus.answer.check import Claim, Reference
from prunus.answer.claims import check_statements, names_of
from prunus.core.types import Message
from prunus.models.llm.scripted import Engine as Scripted

PAGE = (
    "<title>Saltern Gate</title><h1>Saltern Gate</h1><p>The barrier at Saltern Gate opened in October 2023.</p>"
    "<p>It was planned by Mara Lindqvist of the harbour board.</p><p>The crest was raised to 6.55 metres.</p>"
    "<p>The museum moved to the quay in 2022.</p><p>The ferry does not run on Sundays.</p>"
    "<table><tr><th>Vehicle<th>Toll<tr><td>bicycle<td>3 coins<tr><td>lorry<td>12 coins</table>"
)


def verdicts(text: str, *pages: str) -> list[tuple[str, str]]:
    return [(claim.verdict, claim.reason) for claim in prunus.check(text, list(pages) or PAGE).claims]


@pytest.mark.parametrize(
    ("claim", "verdict", "reason"),
    [
        ("The barrier at Saltern Gate opened in October 2023.", "supported", ""),
        ("In October 2023 the Saltern Gate barrier was opened.", "supported", ""),
        ("A lorry pays a toll of 12 coins.", "supported", ""),
        ("The ferry does not run on Sundays.", "supported", ""),
        ("The barrier at Saltern Gate opened in October 2024.", "partly", "the page does not have: 2024"),
        ("The barrier was planned by Mara Lindholm of the harbour board.", "partly", "the page does not have: Lindholm"),
        ("The crest was raised to 6.55 metres by Ann.", "partly", "the page does not have: Ann"),
        ("Mara Lindqvist's barrier was planned at the Saltern-Gate harbour board.", "supported", ""),
        ("The barrier opened in October 2022.", "partly", "the page says 2023 where the claim says 2022"),
        ("A lorry pays a toll of 3 coins.", "partly", "the page says 12 where the claim says 3"),
        ("The ferry does run on Sundays.", "partly", "one of them says “not”, and the other does not"),
        ("Penguins sleep upright during blizzards.", "not supported", "the page says nothing of it"),
        ("The board said “the gate will never be closed again”.", "not supported", "no page has the words “the gate will never be closed again”"),
    ],
)  # fmt: skip
def test_a_claim_and_what_is_told_of_it(claim: str, verdict: str, reason: str) -> None:
    assert verdicts(claim) == [(verdict, reason)]


def test_the_sentence_that_decides_is_cited_first_and_found() -> None:
    [claim] = prunus.check("The crest of the barrier was raised to 6.55 metres.", PAGE).claims
    first = claim.citations[0]
    assert first.quote == "The crest was raised to 6.55 metres." and first.found and first.xpath.endswith("p[3]")
    assert 0.5 < first.support <= 1
    [quoted] = prunus.check("It was planned by “Mara Lindqvist of the harbour board”.", PAGE).claims
    assert quoted.verdict == "supported"


JUDGED = {
    ("The ferry stops on the seventh day.", "supported"): "supported",
    ("Penguins sleep upright.", "supported"): "not supported",  # nothing to ask about
    ("The barrier at Saltern Gate opened in October 2024.", "supported"): "partly",
    ("The barrier at Saltern Gate opened in October 2024.", "not supported"): "not supported",
    ("The barrier at Saltern Gate opened in October 2023.", "not supported"): "not supported",
    ("The board said “the gate will never be closed again”.", "supported"): "not supported",
}
"""A claim, the verdict of a model, and what is made of both."""


@pytest.mark.parametrize(("claim", "said"), JUDGED)
def test_a_model_judges_but_for_what_code_knows(claim: str, said: str, cli: Cli) -> None:
    model = f'scripted:{{"verdict": "{said}"}}'
    [found] = prunus.check(claim, PAGE, llm=model).claims
    assert (found.verdict, found.by) == (JUDGED[claim, said], "model")
    Path("claim.txt").write_text(claim, "utf-8")
    Path("page.html").write_text(PAGE, "utf-8")
    [shown] = json.loads(cli("check", "claim.txt", "page.html", "--json", "--llm", model).stdout)["claims"]
    assert (shown["verdict"], shown["by"]) == (JUDGED[claim, said], "model")


def test_a_model_sees_what_is_near_to_the_claim_and_a_reply_that_is_none_is_an_error() -> None:
    asked: list[str] = []

    def reply(messages: Sequence[Message], options: object) -> str:
        asked.append(messages[-1].content)
        return "who knows" if len(asked) == 1 else '{"verdict": "partly"}'

    pages = [PAGE, *(f"<p>Room {number} is closed to visitors.</p>" * 200 for number in range(5))]
    [found] = prunus.check("The museum of the gate moved.", pages, llm=Scripted(script=reply)).claims
    assert found.verdict == "partly" and "The museum moved to the quay in 2022." in asked[0]
    assert len(asked[0].split()) < 500
    with pytest.raises(prunus.OutsideFailed, match="gave no verdict"):
        prunus.check("The museum moved.", PAGE, llm="scripted:who knows")


def test_each_statement_of_a_model_has_a_verdict_and_the_sentence_that_decides(cli: Cli) -> None:
    said = (
        "The crest was raised to 6.55 metres [1]. The barrier opened in October 2022 [1]. Penguins sleep upright [1]."
    )
    options = prunus.Options(llm=f"scripted:{said}", extractor="sentences")
    answer = prunus.ask("When did the barrier at Saltern Gate open?", PAGE, options=options)
    assert [(claim.verdict, claim.reason) for claim in answer.claims] == [
        ("supported", ""),
        ("partly", "the page says 2023 where the claim says 2022"),
        ("not supported", "the page says nothing of it"),
    ]
    assert answer.unsupported == ["The barrier opened in October 2022.", "Penguins sleep upright."]
    assert answer.claims[1].citations[0].quote == "The barrier at Saltern Gate opened in October 2023."
    assert prunus.ask("When did the barrier at Saltern Gate open?", PAGE).claims == []
    Path("page.html").write_text(PAGE)
    shown = cli("ask", "When did the barrier open?", "page.html", "--llm", f"scripted:{said}").stdout
    assert "  - The barrier opened in October 2022. (the page says 2023 where the claim says 2022)" in shown
    assert "  - Penguins sleep upright. (the page says nothing of it)" in shown


def test_what_only_the_meaning_supports_is_supported_in_part_and_says_so() -> None:
    [tree] = prunus.read(PAGE).trees
    [near] = check_statements([(Claim("Xyzzy plugh frotz."), True)], [Reference(1, tree, ())])
    assert (near.verdict, near.reason) == ("partly", "the page says it in other words, if at all")
    [far] = check_statements([(Claim("Xyzzy plugh frotz."), False)], [Reference(1, tree, ())])
    assert (far.verdict, far.reason) == ("not supported", "the page says nothing of it")


def test_a_number_behind_a_claim_names_the_page_that_must_bear_it_out() -> None:
    pages = ["<p>The bridge opened in 1932.</p>", "<p>Bees dance before their queen in summer.</p>"]
    assert verdicts("The bridge opened in 1932. [1]", *pages)[0][0] == "supported"
    assert verdicts("The bridge opened in 1932. [2]", *pages)[0][0] == "not supported"
    assert verdicts("The bridge opened in 1932.", *pages)[0][0] == "supported"
    assert verdicts("The bridge opened in 1932. [7]", *pages)[0][0] == "supported", "no such page: any may"


def test_headings_code_and_rules_hold_no_claim_and_a_text_without_one_is_refused() -> None:
    text = "# Saltern Gate\n\n```\nprint(2024)\n```\n\n- The crest was raised to **6.55 metres**.\n---\n"
    assert [claim.text for claim in prunus.check(text, PAGE).claims] == ["The crest was raised to 6.55 metres."]
    for nothing in ("", "   ", "# Title", "---"):
        with pytest.raises(prunus.BadInput):
            prunus.check(nothing, PAGE)
    with pytest.raises(prunus.BadInput, match="200,000"):
        prunus.check("word " * 50_000, PAGE)


def test_other_languages_are_checked_too() -> None:
    german = "<p>Die Brücke wurde 1932 eröffnet.</p><p>Die Fähre fährt sonntags nicht.</p>"
    assert verdicts("Die Brücke ist 1932 eröffnet worden.", german)[0][0] == "supported"
    assert verdicts("Die Brücke wurde 1933 eröffnet.", german) == [("not supported", "the page does not have: 1933")]
    chinese = "<p>这座桥于1932年通车。</p><p>渡轮星期天不开。</p>"
    assert verdicts("这座桥1932年通车。", chinese)[0][0] == "supported"
    assert verdicts("蜜蜂在蜂王面前跳舞。", chinese)[0][0] == "not supported"


def test_names_are_words_with_capitals_but_for_the_first_of_a_sentence() -> None:
    assert names_of("However the Linden Trust paid, and I saw it.", "en") == ["Linden", "Trust"]
    assert names_of("Mara Lindqvist planned it.", "en") == ["Mara", "Lindqvist"]
    assert names_of("It was Mara\u2019s, and the Lindens' too.", "en") == ["Mara", "Lindens"]
    assert names_of("Die Brücke der Stadt.", "de") == []


def test_a_sentence_without_end_is_checked_in_bounds() -> None:
    page = "".join(f"<p>The word{n} stands here.</p>" for n in range(3_000))
    [claim] = prunus.check(" ".join(f"word{n}" for n in range(20_000)), page).claims
    assert claim.verdict == "not supported"


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_and_page_give_verdicts_with_quotes_of_the_page(text: str, words: str) -> None:
    page = f"<p>The bridge opened in 1932.</p><p>{words.replace('<', ' ').replace('&', ' ')}</p>"
    try:
        result = prunus.check(text, page)
    except prunus.BadInput:
        return
    [tree] = prunus.read(page).trees
    for claim in result.claims:
        assert 0 <= claim.support <= 1
        for citation in claim.citations:
            assert citation.found and tree.canonical[citation.span.start : citation.span.end] == citation.quote


# --- the command --------------------------------------------------------------------------------


def test_the_command_prints_verdicts_and_its_exit_code_says_that_a_claim_is_not_supported(cli: Cli) -> None:
    Path("page.html").write_text(PAGE)
    Path("answer.md").write_text("The crest was raised to 6.55 metres. Penguins sleep upright during blizzards.")
    result = cli("check", "answer.md", "page.html")
    assert result.exit_code == 4
    assert "supported     " in result.stdout and "“The crest was raised to 6.55 metres.”" in result.stdout
    assert result.stderr.splitlines()[-1].endswith("2 claims: 1 supported, 0 partly, 1 not supported")
    Path("answer.md").write_text("The crest was raised to 6.55 metres.")
    right = cli("check", "answer.md", "page.html", "--json")
    assert right.exit_code == 0
    [claim] = json.loads(right.stdout)["claims"]
    assert claim["verdict"] == "supported" and claim["citations"][0]["found"]
    piped = cli("check", "-", "page.html", input="The crest was raised to 6.55 metres.")
    assert piped.exit_code == 0
    missing = cli("check", "nothing.md", "page.html")
    assert missing.exit_code == 2 and "nothing.md" in only_line(missing)
