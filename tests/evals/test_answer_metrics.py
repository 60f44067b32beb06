"""Metrics of answers, tags, rankings and quotes: each equals a trusted implementation, and its hard cases are right."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extras import need

from prunus.core.errors import MissingExtra
from prunus_evals import harness, metrics, stats, systems, tasks
from prunus_evals.errors import MetricError
from prunus_evals.metrics import Metric, matching, ranked, tagged
from prunus_evals.metrics.answers import read_choice, token_f1
from prunus_evals.records import Outcome, Output, Question, Reading, Reply, Span, one_page
from prunus_evals.report import numbers
from prunus_evals.store import Store
from prunus_evals.tasks import wrong_page
from prunus_evals.tokens import TokenizerCounter

TEXTS = st.lists(st.sampled_from("the a cat cats sat sitting on mat. and Paris, 12 ! ?".split()), max_size=12).map(
    " ".join
)


def asked(**facts: Any) -> Question:
    return Question("q", "task", "page", one_page("<p>x"), "Which?", **facts)


def said(answer: str | None = None, visible: str = "", **reply: Any) -> Output:
    return Output(Reply(visible, "text", **reply), visible, answer)


def score(name: str, question: Question, output: Output) -> float | None:
    (metric,) = metrics.named([name])
    return harness.scores_of(question, output, [metric]).get(name)


# --- short answers -------------------------------------------------------------------------------


def test_em_is_the_share_of_answers_and_hit_is_any_of_them() -> None:
    question = asked(answers=("The Harrow Bridge", "1932", "Ann"), aliases={"1932": ("nineteen thirty-two",)})
    output = said("It's the harrow-bridge? No: Harrow bridge, of Nineteen Thirty-Two!", visible="Ann")
    assert score("em_share", question, output) == pytest.approx(2 / 3)
    assert score("hit1", question, output) == 1
    assert score("evidence_em_share", question, output) == pytest.approx(1 / 3)
    assert score("evidence_hit1", question, output) == 1
    assert score("hit1", question, said("nothing")) == score("evidence_hit1", question, said("1932")) == 0


def test_em_needs_no_word_boundary_as_in_the_released_script() -> None:
    assert score("em_share", asked(answers=("12",)), said("in 1912")) == 1


def test_an_answer_of_articles_alone_is_not_found_in_every_text() -> None:
    question = asked(answers=("The The",))
    assert score("em_share", question, said("A band of London")) == 0
    assert score("em_share", question, said("The band was The The.")) == 1
    with pytest.raises(MetricError, match="em_share of task, question q: an empty answer"):
        score("em_share", asked(answers=(" ",)), said("x"))


def test_metrics_of_answers_do_not_apply_without_answers_or_without_a_reader() -> None:
    for name in ("em_share", "hit1", "exact_match", "token_f1", "rouge_l", "bleu1", "meteor_exact_stem", "accuracy"):
        (metric,) = [metrics.known()[name]]
        assert metric.score(asked(), said("x")) is None
        assert metric.score(asked(answers=("x",), choices=("x",), correct=0), said(None)) is None


# --- SQuAD and QASPER ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "truth", "exact", "f1"),
    [
        ("the Denver Broncos", "Denver Broncos!", 1, 1),
        ("Denver Broncos of 2016", "Denver Broncos", 0, 2 * 1 * 0.5 / 1.5),
        ("Carolina Panthers", "Denver Broncos", 0, 0),
        ("x-ray", "xray", 1, 1),
        ("to be to", "to be", 0, 0.8),
        ("The", "a", 1, 1),
        ("", "Denver", 0, 0),
    ],
)
def test_squad(answer: str, truth: str, exact: float, f1: float) -> None:
    question = asked(answers=("nothing of this",), aliases={"nothing of this": (truth,)})
    assert score("exact_match", question, said(answer)) == exact
    assert score("token_f1", question, said(answer)) == pytest.approx(f1)


@given(TEXTS, TEXTS)
def test_token_f1_is_symmetric_and_one_for_equals(first: str, second: str) -> None:
    value = token_f1(first, second)
    assert 0 <= value <= 1
    assert value == token_f1(second, first)
    assert token_f1(first, first) == 1
    if matching.squad_normalise(first) == matching.squad_normalise(second):
        assert value == 1


def test_qasper_counts_for_the_type_of_the_best_annotator() -> None:
    question = asked(references=("Unanswerable", "BERT base", "Yes"), reference_kinds=("none", "extractive", "boolean"))
    assert score("qasper_f1", question, said("BERT")) == pytest.approx(2 / 3)
    assert score("qasper_f1_extractive", question, said("BERT")) == pytest.approx(2 / 3)
    assert score("qasper_f1_boolean", question, said("yes.")) == 1
    assert score("qasper_f1_boolean", question, said("BERT")) is None
    assert score("qasper_f1_none", question, said("no word of it")) == 0
    with pytest.raises(MetricError, match="3 references have 1 kinds"):
        score("qasper_f1", asked(references=("a b", "b", "c"), reference_kinds=("none",)), said("b"))
    with pytest.raises(MetricError, match="unknown kind of reference guess"):
        score("qasper_f1", asked(references=("b",), reference_kinds=("guess",)), said("b"))


# --- ROUGE, BLEU, METEOR -------------------------------------------------------------------------


def test_rouge_is_that_of_rouge_score_with_the_best_reference() -> None:
    scorer = need("rouge_score.rouge_scorer").RougeScorer(["rougeL"], use_stemmer=False)
    question = asked(references=("the cat sat on the mat", "cats were sitting on a mat"))
    expected = scorer.score_multi(question.references, "cats sat on mats")["rougeL"].fmeasure
    assert score("rouge_l", question, said("cats sat on mats")) == pytest.approx(expected)
    assert score("rouge_l_stem", question, said("cats sat on mats")) > expected  # type: ignore[operator]
    assert score("rouge_l", question, said("")) == 0


def test_other_scripts_have_words_too() -> None:
    for module in ("nltk", "rouge_score"):
        need(module)
    question = asked(references=("東京は首都です。",), answers=("東京",))
    assert score("rouge_l", question, said("首都は東京です")) == pytest.approx(2 * 4 / 14)
    assert score("bleu1", question, said("東京")) > 0.04  # type: ignore[operator]
    assert score("token_f1", question, said("東京都")) == pytest.approx(0.8)
    assert score("rouge_l", asked(references=("Москва столица",)), said("столица Москва")) == 0.5
    with pytest.raises(MetricError, match="no reference has a word"):
        score("rouge_l", asked(references=("?!",)), said("x"))


PAIRS = [
    ("the cat sat on the mat today", ["the cat sat on a mat today", "a cat was on the mat"]),
    ("Paris is the capital of France.", ["The capital of France is Paris."]),
    ("no idea", ["Nobody knows, though many have asked."]),
]


def test_bleu_of_all_answers_is_that_of_sacrebleu() -> None:
    sacrebleu = need("sacrebleu")
    references = [[pair[1][0] for pair in PAIRS], [pair[1][-1] for pair in PAIRS]]
    expected = sacrebleu.corpus_bleu([answer for answer, _ in PAIRS], references).score / 100
    (metric,) = metrics.named(["bleu"])
    assert metric.combine is not None
    found = [
        harness.counts_of(asked(references=(truths[0], truths[-1])), said(answer), [metric])["bleu"]
        for answer, truths in PAIRS
    ]
    assert metric.combine([sum(column) for column in zip(*found, strict=True)]) == pytest.approx(expected)
    estimate = stats.combined({str(page): found for page in range(10)}, metric.combine, samples=200)
    assert estimate.mean == pytest.approx(expected)
    assert estimate.low == pytest.approx(expected)
    assert score("bleu", asked(references=("a b c d e",)), said("a b c d e")) == pytest.approx(1)
    assert harness.counts_of(asked(references=("a",)), said(None), [metric]) == {}
    with pytest.raises(MetricError, match="no counts"):
        stats.combined({}, metric.combine)


def test_reports_show_the_bleu_of_all_answers_not_a_mean() -> None:
    need("sacrebleu")
    (metric,) = metrics.named(["bleu"])
    assert metric.combine is not None

    def outcome(system: str, number: int, answer: str, truth: str) -> Outcome:
        question, output = asked(references=(truth,)), said(answer)
        return Outcome(
            "eli5", system, f"page {number}", f"q{number}", 512, harness.scores_of(question, output, [metric]), 1, 0.1,
            counts=harness.counts_of(question, output, [metric]), reading=Reading(answer),
        )  # fmt: skip

    mine = [outcome("prunus", number, answer, truths[0]) for number, (answer, truths) in enumerate(PAIRS)]
    other = [outcome("other", number, truths[0], truths[0]) for number, (_, truths) in enumerate(PAIRS)]
    cell = numbers.cell([*mine, *other], "eli5", "prunus", 512, "other")
    whole = metric.combine([sum(column) for column in zip(*(one.counts["bleu"] for one in mine), strict=True)])
    assert cell["bleu"][0] == pytest.approx(whole, abs=1e-4)
    assert cell["bleu"][0] != pytest.approx(sum(one.scores["bleu"] for one in mine) / 3, abs=1e-3)
    assert cell["default_minus_this"][0] == pytest.approx(1 - whole, abs=1e-4)
    with pytest.raises(MetricError, match="same questions"):
        stats.combined_difference({"a": [[1.0]]}, {"b": [[1.0]]}, sum)


def test_sentence_bleu_is_that_of_nltk_with_raptors_changes() -> None:
    bleu = need("nltk.translate.bleu_score")
    question = asked(references=("The cat sat on the mat.", "A cat was there"))
    answer = "The cat sat there."
    words = ["The", "cat", "sat", "there", "."]
    truths = [["The", "cat", "sat", "on", "the", "mat", "."], ["A", "cat", "was", "there"]]
    smoothing = bleu.SmoothingFunction().method1
    for name, weights in (("bleu1", (1.0,)), ("bleu4", (0.25,) * 4)):
        expected = max(
            bleu.sentence_bleu([truth], words, weights=weights, smoothing_function=smoothing) for truth in truths
        )
        assert score(name, question, said(answer)) == pytest.approx(expected)
        assert score(name, question, said("")) == 0
    assert score("bleu4", asked(references=("one two three four",)), said("one two")) > 0  # type: ignore[operator]


def test_meteor_without_synonyms_is_the_published_example() -> None:
    need("nltk")
    hypothesis = "It is a guide to action which ensures that the military always obeys the commands of the party"
    reference = "It is a guide to action that ensures that the military will forever heed Party commands"
    # the example of NLTK's documentation, in which no synonym matches
    value = score("meteor_exact_stem", asked(references=(reference, "unlike")), said(hypothesis))
    assert value == pytest.approx(0.6944, abs=5e-5)
    assert score("meteor_exact_stem", asked(references=("cats",)), said("cat")) == 0.5
    assert score("meteor_exact_stem", asked(references=("feline",)), said("cat")) == 0


@settings(deadline=None, max_examples=25)
@given(TEXTS, st.lists(TEXTS.filter(lambda text: any(map(str.isalnum, text))), min_size=1, max_size=3))
def test_overlap_is_between_0_and_1_and_best_for_a_reference(answer: str, references: list[str]) -> None:
    for module in ("nltk", "rouge_score", "sacrebleu"):
        need(module)
    question = asked(references=tuple(references))
    for name in ("rouge_l", "rouge_l_stem", "bleu1", "bleu4", "bleu", "meteor_exact_stem"):
        value = score(name, question, said(answer))
        same = score(name, question, said(references[0]))
        assert value is not None and same is not None
        assert 0 <= value <= 1 + 1e-9
        assert score(name, question, said("zebra")) <= same + 1e-9  # type: ignore[operator]


def test_a_metric_without_its_package_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Metric("gone", "answer", "needs what nobody has", lambda question, output: 1.0, packages=("no_such_module",))
    monkeypatch.setitem(metrics.known(), "gone", gone)
    with pytest.raises(MissingExtra, match=r"gone needs the package no_such_module; run: pip install .*evals"):
        metrics.named(["answer", "gone"])


def test_a_package_that_is_broken_ends_the_run_with_one_line() -> None:
    def broken(question: Question, output: Output) -> float:
        raise ModuleNotFoundError("No module named 'colorama'")

    with pytest.raises(MetricError, match="gone of task, question q: No module named 'colorama'"):
        harness.scores_of(asked(), said(), [Metric("gone", "evidence", "broken", broken)])


# --- choices -------------------------------------------------------------------------------------

CHOICES = ("A dog", "The cat", "The cat and the dog", "Nobody")


@pytest.mark.parametrize(
    ("reply", "place"),
    [
        ("B", 1),
        ("(b)", 1),
        ("**C**", 2),
        ("B. The cat", 1),
        ("(D) Nobody", 3),
        ("A\nbecause it barks", 0),
        ("The answer is C.", 2),
        ("answer: (D)", 3),
        ("I think it is (B), since it purrs.", 1),
        ("the cat", 1),
        ("Nobody.", 3),
        ("It must have been the cat and the dog", 2),
        ("Surely nobody, since the house was empty", 3),
        ("(B) or (C)", None),
        ("The answer is A. No, the answer is B.", None),
        ("The best option is a thing that I forgot", None),
        ("A thing that I forgot", None),
        ("E", None),
        ("", None),
        ("I do not know", None),
        ("a dog, or else nobody", None),
    ],
)
def test_a_choice_is_read_out_of_a_reply(reply: str, place: int | None) -> None:
    assert read_choice(reply, CHOICES) == place


def test_a_reply_that_cannot_be_read_is_wrong_and_counted_apart() -> None:
    question = asked(kind="choice", choices=CHOICES, correct=1)
    found = {reply: (score("accuracy", question, said(reply)), score("readable", question, said(reply)))
             for reply in ("B", "C", "no idea")}  # fmt: skip
    assert found == {"B": (1, 1), "C": (0, 1), "no idea": (0, 0)}
    assert score("readable", replace(question, correct=-1), said("B")) == 1
    with pytest.raises(MetricError, match="not published"):
        score("accuracy", replace(question, correct=-1), said("B"))
    assert score("accuracy", asked(choices=("yes", "no"), correct=0, kind="yes_no"), said("Yes, see (b).")) == 1
    with pytest.raises(MetricError, match="choice number 5 is right, of 4"):
        score("accuracy", asked(choices=CHOICES, correct=4), said("B"))


@pytest.mark.parametrize(
    ("reply", "place"),
    [
        ("Yes, there is no doubt.", 0),
        ("no", 1),
        ("**No**, it is not", 1),
        ("yes or no", None),
        ("It (a) is unclear", None),
        ("The answer is yes", 0),
        ("nothing", None),
    ],
)
def test_yes_and_no_are_read_without_letters(reply: str, place: int | None) -> None:
    assert read_choice(reply, ("yes", "no"), letters=False) == place


@given(st.integers(0, 3), st.sampled_from(["{}", "({})", "{}.", "Answer: {}", "The answer is ({}), I think."]))
def test_every_way_to_write_a_letter_is_read(place: int, form: str) -> None:
    assert read_choice(form.format("ABCD"[place]), CHOICES) == place


# --- tags ----------------------------------------------------------------------------------------

TAGS = st.sets(st.integers(0, 7), min_size=1)


@given(TAGS, TAGS)
def test_tags_are_scored_as_by_sklearn(found: set[int], wanted: set[int]) -> None:
    measures = need("sklearn.metrics")
    truth, guess = ([[int(tag in tags) for tag in range(8)]] for tags in (wanted, found))
    precision, recall, f1, _ = measures.precision_recall_fscore_support(
        truth, guess, average="samples", zero_division=0
    )
    expected = {"precision": precision, "recall": recall, "f1": f1, "exact": measures.accuracy_score(truth, guess)}
    assert tagged.scores(found, wanted) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("found", "wanted", "f1", "exact"),
    [(None, None, 1, 1), (None, (1,), 0, 0), ((1,), None, 0, 0), ((1, 2), (1,), 2 / 3, 0), ((2, 1), (1, 2), 1, 1)],
)
def test_where_no_sentence_answers_only_none_is_right(
    found: tuple[int, ...] | None, wanted: tuple[int, ...] | None, f1: float, exact: float
) -> None:
    question = asked(kind="tags", tags=wanted, sentences=("a",) * 4)
    output = said(tags=found)
    assert score("tags_f1", question, output) == pytest.approx(f1)
    assert score("tags_exact", question, output) == exact
    assert score("tags_f1", question, said()) is None  # a system that names no tags
    assert score("tags_f1", asked(), output) is None


@pytest.mark.parametrize(
    ("reply", "wanted", "f1", "readable"),
    [
        ("<TAG-1> and <TAG-2>", (1, 2), 1, 1),
        ("TAG-1 to TAG-3", (1, 2, 3), 1, 1),
        ("None", None, 1, 1),
        ("None", (1,), 0, 1),
        ("<TAG-1> <TAG-9>", (1,), 2 / 3, 1),
        ("<TAG-9>", None, 0, 1),
        ("I like trains", (1,), 0, 0),
        ("I like trains", None, 0, 0),
    ],
)
def test_the_tags_of_a_readers_reply_count(
    reply: str, wanted: tuple[int, ...] | None, f1: float, readable: int
) -> None:
    question = asked(kind="tags", tags=wanted, sentences=("a",) * 4)
    assert score("tags_f1", question, said(reply)) == pytest.approx(f1)
    assert score("tags_readable", question, said(reply)) == readable


# --- rankings ------------------------------------------------------------------------------------


def test_rankings_are_scored_as_by_trec_eval() -> None:
    trec = need("pytrec_eval")
    draw = random.Random(7)
    for _ in range(50):
        items = [f"d{number}" for number in range(draw.randint(1, 30))]
        gold = draw.sample(items, draw.randint(1, len(items)))
        ranking = draw.sample(items, draw.randint(1, len(items)))
        run = {"q": {item: float(-place) for place, item in enumerate(ranking)}}
        evaluator = trec.RelevanceEvaluator(
            {"q": dict.fromkeys(gold, 1)}, {"ndcg", "recip_rank", "recall.5,10", "success.1,5,10"}
        )
        expected = evaluator.evaluate(run)["q"]
        question = asked(gold=tuple(Span(item, 0, 1) for item in gold))
        output = said(ranking=tuple(ranking))
        for name, key in (("ndcg", "ndcg"), ("mrr", "recip_rank"), ("recall@5", "recall_5"), ("recall@10", "recall_10"),
                          ("hit@1", "success_1"), ("hit@5", "success_5"), ("hit@10", "success_10")):  # fmt: skip
            assert score(name, question, output) == pytest.approx(expected[key]), name


def test_rankings_by_hand() -> None:
    question = asked(gold=(Span("b", 0, 3), Span("b", 5, 9), Span("z", 0, 1)))
    output = said(ranking=("a", "b", "c"))
    assert score("mrr", question, output) == 0.5
    assert score("ndcg", question, output) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert score("recall@3", question, output) == 0.5
    assert score("mrr", question, said()) is None
    assert score("mrr", asked(), output) is None
    with pytest.raises(MetricError, match="a document twice"):
        score("mrr", question, said(ranking=("a", "a")))
    assert ranked.of_rank(3)["hit@3"] == ranked.hit(["x", "y", "g"], {"g"}, 3) == 1


@given(st.lists(st.integers(0, 20), unique=True, min_size=1), st.sets(st.integers(0, 20), min_size=1))
def test_a_right_document_moved_up_never_costs(order: list[int], gold: set[int]) -> None:
    ranking, right = [str(item) for item in order], {str(item) for item in gold}
    for place in range(1, len(ranking)):
        if ranking[place] in right:
            better = [ranking[place], *ranking[:place], *ranking[place + 1 :]]
            assert ranked.ndcg(better, right) >= ranked.ndcg(ranking, right) - 1e-12
            assert ranked.reciprocal_rank(better, right) == 1


# --- quotes --------------------------------------------------------------------------------------


def test_quotes() -> None:
    question = asked(answers=("Otter",), aliases={"Otter": ("Lutra",)})
    output = said(quotes=("A badger.", "Lutra lives here.", "The otter swims."))
    names = ("quote_first", "quote_any", "quote_share", "quote_answered", "turned_away")
    assert [score(name, question, output) for name in names] == [0, 1, pytest.approx(2 / 3), 1, None]
    assert [score(name, question, said(quotes=())) for name in names] == [0, 0, None, 0, None]
    assert [score(name, question, said()) for name in names] == [None] * 5  # a system that does not quote


def test_the_quotes_of_prunus_are_measured_from_right_and_wrong_pages(counter: TokenizerCounter) -> None:
    system = systems.make("prunus:ask", counter)
    page = "<h1>Otters</h1><p>The otter of Riverton was born in 1987 in the town zoo.</p><p>Trams run daily.</p>"
    wrong = "<h1>Taxes</h1><p>Income tax forms must be sent by post.</p>"
    for html, labels in ((page, {}), (wrong, {"page": "wrong"})):
        question = Question("q", "task", "page", one_page(html), "When was the otter born?", ("1987",), labels=labels)
        reply = system.prepare(question.documents).ask(question.question, 200)
        output = harness.output_of(reply)
        names = ("quote_first", "quote_any", "turned_away")
        found = harness.scores_of(question, output, metrics.named(names))
        assert found == ({"turned_away": 1} if labels else {"quote_first": 1, "quote_any": 1})
        assert counter.count([reply.text])[0] <= 200
    assert system.prepare(one_page(" ")).ask("When?", 200).quotes == ()


def test_a_question_of_a_wrong_page_is_best_turned_away() -> None:
    question = asked(answers=("Otter",), labels={"page": "wrong"})
    assert score("turned_away", question, said(quotes=("An otter.",))) == 0
    assert score("turned_away", question, said(quotes=())) == 1
    assert score("quote_first", question, said(quotes=("An otter.",))) is None


def test_the_task_of_wrong_pages_asks_each_question_of_the_next_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [
        [Question(f"{page}{n}", "nq", page, one_page(f"<p>page {page}"), "Who?", ("Ann",)) for n in range(2)]
        for page in "abc"
    ]
    monkeypatch.setattr(tasks, "groups", lambda name, half: iter(pages))
    found = list(wrong_page(lambda key: True, "nq"))
    assert [(question.id, question.html) for question in found] == [
        ("a0", "<p>page b"), ("a1", "<p>page b"), ("b0", "<p>page c"), ("b1", "<p>page c"), ("c0", "<p>page a"),
        ("c1", "<p>page a"),
    ]  # fmt: skip
    assert {(question.task, question.page, question.labels["page"]) for question in found[:2]} == {
        ("wrong_page:nq", "a", "wrong")
    }
    assert list(wrong_page(lambda key: key == "a", "nq")) == []


def test_a_quote_with_han_letters_needs_no_word_boundary() -> None:
    assert score("quote_first", asked(answers=("東京",)), said(quotes=("首都は東京です",))) == 1
    assert score("quote_first", asked(answers=("Ann",)), said(quotes=("Anna",))) == 0


def test_every_metric_has_a_title_and_its_packages_are_of_the_extra() -> None:
    known = metrics.known()
    assert all(metric.title for metric in known.values())
    assert {package for metric in known.values() for package in metric.packages} == {"nltk", "rouge_score", "sacrebleu"}


def test_a_question_whose_truth_changed_is_measured_again() -> None:
    store = Store(None)
    facts: list[dict[str, Any]] = [
        {}, {"answers": ("a",)}, {"answers": ("a",), "aliases": {"a": ("b",)}}, {"tags": (1,)}, {"tags": None},
        {"correct": 1}, {"references": ("a",)}, {"references": ("a",), "reference_kinds": ("none",)},
        {"gold": (Span("page", 0, 1),)}, {"gold": (Span("page", 0, 2),)}, {"gold_table": "<table><tr><td>1</table>"},
    ]  # fmt: skip
    keys = {store.key(asked(**one), "system", 512, "none", "", []) for one in facts}
    assert len(keys) == len(facts)
