"""The check of an answer: which sentences the evidence supports, and what they cite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import prunus
from prunus.answer.check import LEAST_SUPPORT, Claim, Reference, check_support, split_claims
from prunus.core.types import Passage, Span
from prunus.models.embed.static import Engine as Static

PAGE = (
    "<title>Bridge</title><p>The Orrel bridge opened in 1932.</p><p>It cost 1,200 crowns to build.</p>"
    "<p>Its architect called it \u201cthe best of my poor children\u201d in a letter.</p>"
)


def reference(number: int = 1, html: str = PAGE) -> Reference:
    tree = prunus.read(html).trees[0]
    span = Span(tree.document, 0, len(tree.canonical))
    return Reference(number, tree, (Passage(tree.canonical, (span,)),))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It opened in 1932 [1]. Trams ran [2][3].", [Claim("It opened in 1932.", (1,)), Claim("Trams ran.", (2, 3))]),
        ("It opened in 1932. [1] Trams ran. [2]", [Claim("It opened in 1932.", (1,)), Claim("Trams ran.", (2,))]),
        ("# A heading\n\n- **One** item [1]\n2. Two\n", [Claim("One item", (1,)), Claim("Two")]),
        ("| a | b |\n|---|---|\n| 1932 | open [1] |", [Claim("a b"), Claim("1932 open", (1,))]),
        ("```\ncode = [1]\n```\nProse.", [Claim("Prose.")]),
        ("[1]", []),
        ("", []),
    ],
)
def test_an_answer_is_cut_into_claims(text: str, found: list[Claim]) -> None:
    assert split_claims(text) == found


@pytest.mark.parametrize(
    ("sentence", "supported"),
    [
        ("The Orrel bridge opened in 1932 [1].", True),
        ("In 1932 the bridge was opened [1].", True),
        ("The Orrel bridge opened in 1941 [1].", False),  # another number
        ("It cost 1200 crowns [1].", True),  # thousands written another way
        ("It cost 1,300 crowns [1].", False),
        ("Penguins breed on the southern ice shelf [1].", False),
        ('The architect called it "the best of my poor children" [1].', True),  # quotes of another kind
        ('The architect called it "the worst of my rich uncles" [1].', False),
        ("The Orrel bridge opened in 1932 [9].", True),  # no such source: nothing is cited, yet it stands there
        ("Penguins breed on the southern ice shelf.", False),
        ("Here is what the sources say:", True),  # states nothing
    ],
)
@pytest.mark.parametrize("embedder", [None, Static()], ids=["words", "meaning"])
def test_sentences_that_the_page_supports(sentence: str, supported: bool, embedder: Static | None) -> None:
    found = check_support(sentence, [reference()], embedder)
    assert (found.unsupported == []) is supported
    assert {citation.number for citation in found.citations} <= {1}
    for citation in found.citations:
        assert citation.found or citation.support == 0
        assert not supported or citation.support >= LEAST_SUPPORT


def test_every_citation_is_a_slice_of_its_page() -> None:
    first, second = (
        reference(1),
        reference(2, "<title>Ferry</title><p>A ferry crossed until 1932, when the bridge opened.</p>"),
    )
    found = check_support(
        "The bridge opened in 1932 [1][2]. The ferry crossed until then [2].", [first, second], Static()
    )
    assert [citation.number for citation in found.citations] == [1, 2]  # the same words are cited once
    for citation in found.citations:
        tree = {1: first.tree, 2: second.tree}[citation.number]
        assert citation.quote == tree.canonical[citation.span.start : citation.span.end]
        assert citation.xpath.startswith("/html/body")


def test_a_reference_without_words_supports_nothing() -> None:
    tree = reference().tree
    found = check_support("The bridge opened in 1932 [1].", [Reference(1, tree, ())])
    assert found.citations == [] and len(found.unsupported) == 1


class HighCosines:
    """An embedder as E5: the cosine of any two texts is .75 and more."""

    identity = "high"
    dimension = 257

    def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
        own = Static().embed(texts)
        return np.hstack([np.full((len(texts), 1), 3**0.5), own]).astype(np.float32) / 2


GERMAN = (
    "<title>Brücke</title><p>Die Brücke über die Orrel wurde 1932 eröffnet.</p><p>Ein Dichter schrieb ein Lied.</p>"
)
ARABIC = "<title>جسر</title><p>افتتح الجسر فوق النهر عام 1932.</p><p>كتب شاعر أغنية عنه.</p>"


@pytest.mark.parametrize("embedder", [Static(), HighCosines()], ids=["static", "high"])
@pytest.mark.parametrize(
    ("page", "sentence", "supported"),
    [
        (PAGE, "Penguins breed on the southern ice shelf [1].", False),
        (PAGE, "The ministry of finance raised the income tax [1].", False),
        (PAGE, "The Orrel bridge was opened [1].", True),
        (GERMAN, "Pinguine brüten auf dem südlichen Schelfeis [1].", False),
        (GERMAN, "Die Brücke wurde eröffnet [1].", True),
        (ARABIC, "تتكاثر طيور البطريق على الجليد الجنوبي [1].", False),
        (ARABIC, "افتتح الجسر عام 1932 [1].", True),
    ],
)
def test_a_false_sentence_is_listed_however_high_the_cosines_are(
    page: str, sentence: str, supported: bool, embedder: Any
) -> None:
    found = check_support(sentence, [reference(html=page)], embedder)
    assert (found.unsupported == []) is supported


@pytest.mark.parametrize("page", [PAGE, ARABIC])
def test_nothing_bears_on_a_question_however_high_the_cosines_are(page: str) -> None:
    with pytest.raises(prunus.NothingFound):
        prunus.ask("Where do penguins breed?", page, options=prunus.Options(embedder=HighCosines()))


@pytest.mark.parametrize(
    ("answer", "listed"),
    [
        ("The answer is 10.", ["The answer is 10."]),
        ("It is gold.", ["It is gold."]),
        ("Yes.\n\nI hope this helps! I do not know.\n\n**History**", []),  # they state nothing
        ("The bridge opened in 1932.\n\n```python\nopen_bridge(1932)\nclose()\n```", ["open_bridge(1932)\nclose()"]),
        ("```\nThe Orrel bridge   opened\n```", []),  # the page's own words
    ],
)
def test_short_claims_and_code_that_no_page_holds_are_listed(answer: str, listed: list[str]) -> None:
    assert check_support(answer, [reference()], Static()).unsupported == listed


@pytest.mark.parametrize(
    ("answer", "borne_out"),
    [
        ("The Orrel bridge opened in 1932 [1]. Penguins breed on the ice shelf [1].", True),
        ("The Orrel bridge opened in 1932.", True),  # not cited, yet it stands there
        ("Penguins breed on the southern ice shelf [1].", False),
        ("Here is what the sources say:", False),
    ],
)
def test_whether_anything_is_borne_out(answer: str, borne_out: bool) -> None:
    assert check_support(answer, [reference()], Static()).borne_out is borne_out


@pytest.mark.parametrize("answer", ["1932", "**1932**", "Sure! Here it is:\n\n1932", "| Opened |\n| --- |\n| 1932 |"])
def test_an_answer_of_one_word_that_a_page_holds_is_borne_out(answer: str) -> None:
    checked = check_support(answer, [reference()])
    assert checked.borne_out and checked.unsupported == []
