"""Likeness: one scale for the cosines of every embedder in every language."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from prunus.core.ports import Embedder
from prunus.core.text.likeness import Likeness, dot_products, sample_of, upper_end
from prunus.models.embed.static import Engine as Static


def engine_of_wordllama() -> Embedder:
    pytest.importorskip("wordllama")
    from prunus.models.embed.wordllama import Engine

    return Engine()


BRIDGE = {
    "en": ("When was the bridge opened?", "The bridge was opened in 1932.", "Bees dance before their queen."),
    "de": ("Wann wurde die Brücke eröffnet?", "Die Brücke wurde 1932 eröffnet.", "Bienen tanzen vor ihrer Königin."),
    "zh": ("这座桥是什么时候通车的？", "这座桥于1932年通车。", "蜜蜂在蜂王面前跳舞。"),
    "ar": ("متى افتتح الجسر؟", "افتتح الجسر عام 1932.", "يرقص النحل أمام ملكته."),
}


@pytest.mark.parametrize("language", BRIDGE)
def test_texts_without_a_common_subject_are_less_alike_than_half(language: str) -> None:
    asked, bridge, bees = BRIDGE[language]
    near, far, same = Likeness(Static()).of(asked, [bridge, bees, asked])
    assert near > max(far, 0.2)
    assert far < 0.5
    assert same == pytest.approx(1, abs=1e-4)


def test_a_question_and_a_document_are_embedded_as_what_they_are() -> None:
    seen: list[tuple[str, int]] = []

    class Kinds(Static):
        def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
            seen.append((kind, len(texts)))
            return super().embed(texts)

    meaning = Likeness(Kinds())
    meaning.of("When?", ["now", "then"], "query")
    meaning.of("When?", ["now", "then"])
    assert seen == [("query", 1), ("document", 2), ("document", 6), ("document", 3)]  # the sample is kept


def test_an_embedder_that_says_the_same_of_all_texts_finds_nothing_alike() -> None:
    class Same(Static):
        def embed(self, texts: Sequence[str], kind: str = "document") -> np.ndarray:
            return np.eye(1, 256, dtype=np.float32).repeat(len(texts), 0)

    assert Likeness(Same()).of("a", ["b", "c"]).tolist() == [0, 0]


def test_weights_of_quotes_get_one_scale() -> None:
    wordllama = engine_of_wordllama()
    cosines = np.asarray([0.2, 0.5, 1.0])
    vector = wordllama.embed(["When did the bridge open?"])[0]
    assert Likeness(wordllama).as_learned("When did the bridge open?", vector, cosines).tolist() == cosines.tolist()
    vector = Static().embed(["When did the bridge open?"])[0]
    assert Likeness(Static()).as_learned("When did the bridge open?", vector, cosines) == pytest.approx(
        cosines, abs=0.1
    )


def test_weights_never_see_cosines_that_are_high_for_every_text() -> None:
    wordllama = engine_of_wordllama()
    asked, bridge, bees = BRIDGE["ar"]
    vectors = wordllama.embed([asked, bridge, bees])
    cosines = vectors[1:] @ vectors[0]
    assert cosines.min() > 0.7
    assert Likeness(wordllama).as_learned(asked, vectors[0], cosines)[1] < 0.4


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("When did the bridge open?", "The baker"),
        ("Kdy byl ten nový most otevřen pro vlaky?", "Pekař"),
        ("पुल कब खोला गया?", "नानबाई"),
        ("橋はいつ開通しましたか。", "パン屋"),
        ("", "The baker"),
    ],
)
def test_a_text_is_compared_with_sentences_of_its_own_language(text: str, start: str) -> None:
    assert sample_of(text).texts[0].startswith(start)


def test_the_stored_numbers_are_those_of_wordllama() -> None:
    wordllama = engine_of_wordllama()
    for text in ("When did the bridge open?", *(asked for asked, _, _ in BRIDGE.values())):
        sample = sample_of(text)
        vectors = wordllama.embed(sample.texts)
        pairs = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
        assert sample.static == pytest.approx(upper_end(pairs), abs=0.006)


@pytest.mark.parametrize("rows", [3, 5_001, 20_002])
def test_equal_rows_have_equal_products_wherever_threads_divide_them(rows: int) -> None:
    row, vector = np.random.default_rng(7).normal(size=(2, 256)).astype(np.float32)
    found = dot_products(np.tile(row, (rows, 1)), vector)
    assert len(set(found.tolist())) == 1
    assert found[0] == pytest.approx(float(row.astype(np.float64) @ vector.astype(np.float64)), abs=1e-3)
