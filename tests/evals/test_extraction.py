"""Tasks ``extraction`` and ``mixed``: their measures and their data."""

from __future__ import annotations

import pytest

from prunus.answer.rank_pages import by_hybrid
from prunus.core.registry import make_engine
from prunus_evals import extraction, mixed, records, stats
from prunus_evals.errors import UnknownName
from prunus_evals.extraction import Choice, Question, covered, score
from prunus_evals.records import Span
from prunus_evals.tasks.dureader import shuffled

PAGES = (("Harrow bridge", ("The Harrow bridge opened in 1932.", " It is of steel.")), ("Trams", ("Trams run daily.",)))
ASKED = Question("q1", "When did the Harrow bridge open?", PAGES, frozenset({(0, 0)}))


def pool_of(question: str, texts: list[tuple[str, str]], gold: int) -> mixed.Pool:
    documents, urls = shuffled("k", question, texts)
    return mixed.pool_of(records.Question("1", "t", "k", documents, question, gold=(Span(urls[gold], 0, 9),)))


def test_precision_recall_and_f1_of_a_choice() -> None:
    found = score(Choice(frozenset({(0, 0), (0, 1)}), strays=2), frozenset({(0, 0), (1, 0)}))
    assert found == {"f1": pytest.approx(1 / 3), "precision": 0.25, "recall": 0.5}
    assert score(Choice(frozenset()), frozenset({(0, 0)}))["f1"] == 0.0


def test_a_sentence_is_chosen_when_half_of_its_letters_are() -> None:
    assert covered("The Harrow bridge opened in 1932. It", PAGES[0][1]) == [0]
    assert covered("bridge opened in 1932. It is of steel.", PAGES[0][1]) == [0, 1]
    assert covered("Harrow bridge of old", PAGES[0][1]) == []


def test_every_system_chooses_sentences_of_the_pages() -> None:
    found = extraction.run([ASKED], ["prunus", "bm25:1", "bm25title:1", "everything"])
    numbers = {one.system: one.by_question["q1"] for one in found}
    assert numbers["prunus"]["recall"] == numbers["bm25:1"]["f1"] == numbers["bm25title:1"]["f1"] == 1.0
    assert numbers["everything"]["precision"] == pytest.approx(1 / 3)
    assert "everything" in extraction.table(extraction.summary(found, "dev"))
    with pytest.raises(UnknownName):
        extraction.make("bm25:many")


def test_a_model_by_prompt_alone_is_scored_and_its_nonsense_is_counted() -> None:
    found = extraction.run([ASKED], ["everything", "tags:scripted:TAG-0, TAG-9", "tags:scripted:Harrow"])
    right, nonsense = (one.by_question["q1"] for one in found[1:])
    assert right == {"f1": pytest.approx(2 / 3), "precision": 0.5, "recall": 1.0}
    assert (nonsense["f1"], found[2].nonsense) == (0.0, 1)
    shown = extraction.table(extraction.summary(found, "dev"))
    assert "1 replies that could not be read" in shown and shown.count("scripted: no model answered") == 2
    with pytest.raises(UnknownName, match="nothing"):
        extraction.make("tags:nothing:at-all")


@pytest.mark.data
def test_the_default_is_better_than_bm25_and_than_everything_on_the_report_half() -> None:
    from tests.conftest import data_folder

    data_folder()  # skips without it
    found = extraction.run(extraction.load("report"), ["prunus", "bm25:3", "bm25title:3", "everything"])
    f1 = [stats.mean({key: [one["f1"]] for key, one in system.by_question.items()}).mean for system in found]
    assert f1[0] >= 0.54
    assert f1[0] > max(f1[1:])


def test_pools_are_shuffled_the_same_way_on_every_run_and_the_snippet_is_a_proxy() -> None:
    texts = [(f"Title {number}", "word " * 50) for number in range(8)]
    pool = pool_of("which?", texts, 3)
    assert pool == pool_of("which?", texts, 3)
    assert [one.hit.title for one in pool.candidates] != [title for title, _ in texts]
    [good] = [one for one in pool.candidates if one.hit.url in pool.good]
    assert good.hit.snippet == "Title 3 " + ("word " * 50)[:100]


def test_measures_of_an_order() -> None:
    assert mixed.measures(["a", "b"], frozenset({"a"})) == {"ndcg": 1.0, "hit@1": 1.0, "hit@3": 1.0}
    assert mixed.measures(["b", "a"], frozenset({"a"}))["ndcg"] == pytest.approx(0.6309, abs=1e-4)


def test_each_system_sees_only_its_own_part() -> None:
    texts = [
        ("Trams", "Trams run daily."),
        ("Harrow", "Of steel." + " It stands." * 20 + " The bridge opened in 1932."),
    ]
    pool = pool_of("When was the bridge opened?", texts, 1)
    scores = by_hybrid(make_engine("embedder", "static"))
    for system in ("mixed", "content"):
        assert mixed.order_of(pool, system, scores)[0] in pool.good
    assert set(mixed.order_of(pool, "shuffled", scores)) == {one.hit.url for one in pool.candidates}
    with pytest.raises(UnknownName):
        mixed.order_of(pool, "provider", scores)
