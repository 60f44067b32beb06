"""Studies of RAPTOR: the paper's rows and columns, cited numbers apart, layers that add up, judgements that go round."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import prunus
from prunus_evals import harness, metrics, readers, studies, suites, systems, tasks
from prunus_evals.errors import EvalError, UnknownName, Unreachable
from prunus_evals.metrics.evidence import span_recall
from prunus_evals.records import Document, Outcome, Output, Question, Reading, Reply, Span
from prunus_evals.studies import Choice, Study, Table, _raptor_published, raptor, raptor_trees
from prunus_evals.systems import _trees, tree
from prunus_evals.systems._trees import Cost, Recipe, grown
from prunus_evals.systems._variants import read
from prunus_evals.tasks.task import Task
from prunus_evals.tokens import llama2

WORDS = "harbour bridge river castle market garden winter school letter doctor engine island".split()
TEXT = "\n\n".join(
    f"The {word} of the town was built by {other} people in {1800 + 7 * n}. It stands near the {other}, and many come."
    for n, (word, other) in enumerate((a, b) for a in WORDS for b in WORDS if a != b)
)
GOLD = TEXT.index("The castle of the town was built by garden")
DOCUMENT = Document("town", TEXT, "text/plain")
PAGES = [
    [
        Question(
            "q1",
            "qmsum:specific",
            "town",
            [DOCUMENT],
            "Which castle was built by garden people?",
            kind="long",
            references=("a castle",),
            answers=("The castle of the town was built by garden people",),
            gold=(Span("town", GOLD, GOLD + 60),),
        )
    ]
]
STAND_INS = Choice(stand_ins=True)


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every task has one question about one text."""
    monkeypatch.setenv("PRUNUS_DATA", str(tmp_path))
    about = Task("own", "a town", ("rouge_l",), (), "made up", lambda use, variant: iter(()))
    monkeypatch.setattr(tasks, "about", lambda name: about)
    monkeypatch.setattr(
        tasks, "groups", lambda name, *_, **__: iter([[replace(question, task=name) for question in PAGES[0]]])
    )


def made_up(**fields: object) -> Outcome:
    plain = Outcome("narrativeqa:test", "s", "page", "q", 400, {}, 300, 0.1)
    return replace(plain, **fields)  # type: ignore[arg-type]


def ours(table: Table) -> dict[str, list[float | None]]:
    return {r.label: [n.value if n else None for n in r.numbers] for r in table.rows if not r.cited}


def printed(table: Table) -> dict[str, list[float | None]]:
    return {r.label: [n.value if n else None for n in r.numbers] for r in table.rows if r.cited}


@pytest.mark.usefixtures("town")
def test_a_table_has_the_papers_columns_and_keeps_cited_rows_apart() -> None:
    study, choice = studies.named("raptor:1"), Choice(readers=("scripted:a",))
    frame = raptor.FRAMES["1"]
    columns = raptor.columns_of(study, choice, frame)
    scores = {"rouge_l_stem": 0.5, "bleu1": 0.25, "bleu4": 0.125, "meteor_exact_stem": 0.75}
    names = {label: f"s{place}" for place, (label, _) in enumerate(frame.rows)} | {frame.rows[-1][0]: ""}
    outcomes = [
        made_up(system=name, page=page, reader="scripted:a", scores=scores)
        for name in names.values()
        if name
        for page in ("a", "b")
    ]
    (table,) = raptor.framed(study, choice, frame, columns, names, outcomes)
    assert table.columns == ("ROUGE-L", "BLEU-1", "BLEU-4", "METEOR", "METEOR without synonyms")
    assert ours(table)["{dense} with {tree} tree"] == [50, 25, 12.5, None, 75]
    assert ours(table)["DPR without tree"] == [None] * 5
    assert printed(table)["SBERT with RAPTOR"] == [30.87, 23.5, 6.42, 19.2, None]
    assert len(printed(table)) == 6
    assert "name an embedder that holds it" in " ".join(table.notes)


def test_cited_numbers_are_those_of_the_paper_alone() -> None:
    published = [frame.published for frame in raptor.FRAMES.values()]
    published += [*_raptor_published.LAYERS.values(), _raptor_published.TABLE_10, _raptor_published.TABLE_18]
    published += [own for _, own in _raptor_published.SOURCES.values()]
    for own in published:
        table = raptor.cited("title", own)
        assert table.columns == own.columns
        assert printed(table) == {label: [*values] for label, values in own.rows}
        assert all(len(values) == len(own.columns) for _, values in own.rows)
        assert not ours(table)


def test_a_table_with_readers_has_a_column_for_each() -> None:
    columns = raptor.columns_of(studies.named("raptor:4"), Choice(readers=("a", "b")), raptor.FRAMES["4"])
    assert [column.title for column in columns] == ["Acc., a", "Acc., b"]
    assert [column.budget for column in columns] == [2000, 2000]


@pytest.mark.usefixtures("town")
def test_evidence_has_one_column_whatever_the_readers() -> None:
    choice = replace(STAND_INS, readers=("a", "b"))
    for number in ("1", "4"):
        columns = raptor.columns_of(studies.named(f"raptor:{number}"), choice, raptor.FRAMES[number])
        titles = [column.title for column in columns if column.task == "qmsum:specific"]
        assert titles == ["recall", "rouge_l, a", "rouge_l, b"]


@pytest.mark.usefixtures("town")
@pytest.mark.parametrize("name", ["raptor:1", "raptor:9"])
def test_without_a_reader_stand_ins_show_recall_at_each_budget(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "missing", lambda name: "time" if "raptor" in name else "")  # umap compiles long
    tables = studies.run(studies.named(name), replace(STAND_INS, budgets=(256, 8192)), tmp_path)
    assert tables[0].columns == ("recall, 256 tokens", "recall, 8192 tokens")
    assert tables[1].columns == ("answer survives, 256 tokens", "answer survives, 8192 tokens")
    assert "a stand-in" in tables[0].title
    assert "Stand-ins for the sets of the paper: qmsum:specific (dev half: 1 question, 1 page)" in tables[0].notes[0]
    first = next(iter(ours(tables[0]).values()))
    assert all(value is not None and 0 <= value <= 100 for value in first)
    assert first[1] == 100
    assert not ours(tables[-1])
    assert printed(tables[-1])
    assert raptor.RECALL in tables[0].notes and raptor.SURVIVES not in tables[0].notes
    assert raptor.SURVIVES in tables[1].notes and raptor.RECALL not in tables[1].notes


@pytest.mark.usefixtures("town")
def test_both_groupings_stand_beside_each_other_and_what_is_not_installed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "missing", lambda name: "the extra x" if "minilm" in name else "")
    made: list[str] = []
    monkeypatch.setattr(raptor.Running, "measured", lambda run, names, *rest: made.extend(map(run.named, names)) or [])
    [first, *_] = studies.run(studies.named("raptor:9"), STAND_INS, tmp_path)
    assert "tree:raptor@embedder=static" in made and not any("minilm" in name for name in made)
    assert [row.label for row in first.rows][-1] == "Dense (static) with raptor tree"
    assert "Left out: Dense (minilm) with raptor tree; it needs the extra x." in first.notes


@pytest.mark.usefixtures("town")
def test_a_tree_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = grown([DOCUMENT], Recipe(), llama2(), tmp_path)
    assert first is not None
    assert first.cost.tokens > 1000
    assert first.cost.read >= first.cost.tokens
    assert first.cost.written > 0
    monkeypatch.setattr(_trees, "Builder", None)
    again = grown([DOCUMENT], Recipe(), llama2(), tmp_path)
    assert again is not None and again is not first
    assert again.cost == first.cost
    assert again.cost.at.startswith("20")
    assert sum(layer["nodes"] for layer in again.layers()) == len(again.index.store.view().ids)


def test_a_tree_of_other_code_or_other_versions_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grown([DOCUMENT], Recipe(), llama2(), tmp_path)
    assert len([*tmp_path.iterdir()]) == 1
    monkeypatch.setattr("prunus_evals.provenance.code", lambda: "other code")
    monkeypatch.setattr(_trees, "HELD", 0)
    _trees._held.cache_clear()
    grown([DOCUMENT], Recipe(), llama2(), tmp_path)
    assert len([*tmp_path.iterdir()]) == 2
    monkeypatch.setattr(_trees, "_versions", lambda: {"umap-learn": "1"})
    _trees._held.cache_clear()
    grown([DOCUMENT], Recipe(), llama2(), tmp_path)
    assert len([*tmp_path.iterdir()]) == 3


def test_a_tree_that_was_being_built_is_built_from_the_start(tmp_path: Path) -> None:
    first = grown([DOCUMENT], Recipe(), llama2(), tmp_path)
    assert first is not None
    (place,) = tmp_path.iterdir()
    (place / _trees.BUILT).unlink()
    _trees._held.cache_clear()
    again = grown([DOCUMENT], Recipe(), llama2(), tmp_path)
    assert again is not None
    assert again.layers() == first.layers()


def test_a_tree_for_costs_is_never_one_that_was_built_before(tmp_path: Path) -> None:
    recipe, counter = Recipe(llm="scripted:A town by the sea."), llama2()
    kept = [grown([DOCUMENT], recipe, counter, tmp_path, costs) for costs in (False, True)]
    assert kept[0] is not None and kept[1] is not None
    assert kept[0].index.store.folder != kept[1].index.store.folder
    assert kept[0].layers() == kept[1].layers()
    alone = [grown([DOCUMENT], recipe, counter, None, costs) for costs in (False, False, True, True)]
    assert alone[0] is alone[1]
    assert len({id(one) for one in alone}) == 3


@pytest.mark.usefixtures("town")
def test_layers_of_retrieved_nodes_add_up(tmp_path: Path) -> None:
    tables = studies.run(studies.named("raptor:18"), STAND_INS, tmp_path)
    assert [table.title.split(":")[0] for table in tables] == [
        "RAPTOR, Table 18",
        "RAPTOR, Table 20 and Figure 7",
        "RAPTOR, Table 21 and Figure 7",
        *(f"RAPTOR, Table {number}" for number in (18, 19, 20, 21)),
    ]
    assert not any(printed(table) for table in tables[:3])
    assert not any(ours(table) for table in tables[3:])
    assert all(
        number is None or number.low is None for table in tables[:3] for row in table.rows for number in row.numbers
    )
    assert tables[0].columns == ("DPR", "Dense (static)", "BM25")
    assert "within 2000 tokens, stand-ins" in tables[0].title
    for table, ranker in ((tables[1], 1), (tables[2], 2)):
        place = table.columns.index("qmsum:specific")
        layers = [values[place] or 0 for values in ours(table).values()]
        assert sum(layers) == pytest.approx(100)
        assert sum(layers[1:]) == pytest.approx(ours(tables[0])["qmsum:specific"][ranker])
    assert printed(tables[4])["layer 4"][0] == 0.003
    assert "0.003" in studies.text(tables[4])


@pytest.mark.usefixtures("town")
def test_cited_rows_stand_below_ours_on_the_papers_own_sets(tmp_path: Path) -> None:
    choice = Choice(budgets=(300, 600), options={"tree": "ward", "embedder": "static"})
    tables = studies.run(studies.named("raptor:18"), choice, tmp_path)
    assert [table.title.split(":")[0][:16] for table in tables] == [f"RAPTOR, Table {n}" for n in (18, 19, 20, 21)] * 2
    assert ["within 300 tokens" in table.title for table in tables] == [True] * 4 + [False] * 4
    assert printed(tables[0])["NarrativeQA"] == [57.36, 36.78, 34.96]
    assert ours(tables[0])["NarrativeQA"][1] is not None
    (lengths,) = studies.run(studies.named("raptor:10"), choice, tmp_path)
    assert [*ours(lengths)] == ["All Datasets", "NarrativeQA", "QuALITY", "QASPER"]


def test_a_suite_keeps_the_papers_budgets_of_a_study_unless_the_user_names_some() -> None:
    suite = suites.named("offline")
    chosen = {name: suites.chosen(suite, studies.named(name), STAND_INS).budgets for name in ("raptor:1", "raptor:8")}
    assert chosen == {"raptor:1": suite.choice.budgets, "raptor:8": (2000,)}
    assert suites.chosen(suite, studies.named("raptor:18"), STAND_INS).budgets == (2000,)
    assert suites.chosen(suite, studies.named("raptor:8"), replace(STAND_INS, budgets=(300,))).budgets == (300,)


def test_the_layer_study_retrieves_from_the_layers_of_its_cell() -> None:
    found = {}
    for cell, system in raptor.layer_systems(2).items():
        found[cell] = tree.layers_of(read("tree", system, tree.OPTIONS).options, 3)
    assert found == {
        (1, 0): (0,),
        (1, 1): (1,),
        (2, 1): (0, 1),
        (1, 2): (2,),
        (2, 2): (1, 2),
        (3, 2): (0, 1, 2),
    }


@pytest.mark.usefixtures("town")
def test_the_layer_study_has_a_table_for_each_height_and_story(tmp_path: Path) -> None:
    tables = studies.run(studies.named("raptor:8"), STAND_INS, tmp_path)
    town = grown([DOCUMENT], Recipe(), llama2(), tmp_path / "trees")
    assert town is not None
    height = town.height
    assert tables[0].columns[0] == "Layer 0 (Leaf Nodes)"
    assert len(tables[0].columns) == height + 1 == len(tables[0].rows)
    assert "the document town, recall of the gold evidence, %, 2000 tokens" in tables[1].title
    cells = [number is not None for number in tables[0].rows[1].numbers]
    assert cells == [False, *[True] * height]
    assert [table.title[:16] for table in tables[-5:]] == ["RAPTOR, Table 8:"] + [
        f"RAPTOR, Table {number}" for number in (14, 15, 16, 17)
    ]


@pytest.mark.usefixtures("town")
def test_the_layer_study_and_figure_3_show_every_budget_and_reader_that_is_named(tmp_path: Path) -> None:
    pytest.importorskip("rouge_score")
    choice = replace(STAND_INS, readers=("scripted:a castle", "scripted:no"), budgets=(300, 600))
    tables = studies.run(studies.named("raptor:8"), choice, tmp_path)
    ends = [f"{budget} tokens, {reader}" for budget in (300, 600) for reader in choice.readers for _ in range(2)]
    assert [table.title.endswith(end) for table, end in zip(tables, ends, strict=False)] == [True] * 8
    right = ours(tables[0])["1 layer"], ours(tables[2])["1 layer"]
    assert right[0][0] == 100 and right[1][0] == 0
    (table,) = studies.run(studies.named("raptor:figure-3"), choice, tmp_path)
    assert table.columns == ("tokens of context", *(f"rouge_l, %, {reader}" for reader in choice.readers))
    assert ours(table)["Collapsed tree, 600 tokens"][1:] == [100, 0]


@pytest.mark.usefixtures("town")
def test_figure_3_shows_the_tokens_that_each_way_takes(tmp_path: Path) -> None:
    (table,) = studies.run(studies.named("raptor:figure-3"), STAND_INS, tmp_path)
    found = ours(table)
    tokens = [found[f"Tree traversal, top-{top}"][0] or 0 for top in raptor.TOPS]
    assert tokens == sorted(tokens)
    assert 0 < (found["Collapsed tree, 500 tokens"][0] or 0) <= 500


@pytest.mark.usefixtures("town")
def test_compression_and_cost_are_measured_without_a_model(tmp_path: Path) -> None:
    table, paper = studies.run(studies.named("raptor:10"), STAND_INS, tmp_path)
    assert not printed(table) and not ours(paper)
    summary, child, children, ratio = ours(table)["qmsum:specific"]
    assert ratio is not None and 0 < ratio < 1
    assert summary is not None and child is not None and children is not None and children >= 2
    assert table.columns == _raptor_published.TABLE_10.columns
    tables = studies.run(studies.named("raptor:figure-5"), STAND_INS, tmp_path)
    assert "estimates" in " ".join(tables[0].notes)
    town = grown([DOCUMENT], Recipe(), llama2(), tmp_path / "trees", costs=True)
    assert town is not None
    read, written, seconds = ours(tables[2])[f"qmsum:specific, {town.cost.tokens} tokens"]
    assert (read, written, seconds) == (town.cost.read / 1000, town.cost.written / 1000, town.cost.seconds)
    assert f"measured from {town.cost.at[:4]}" in " ".join(tables[1].notes)


def test_a_line_fits_costs_that_grow_linearly() -> None:
    costs = [Cost(length, 2 * length + 100, 0, 0.001 * length) for length in (1000, 2000, 5000)]
    tokens, seconds, points = raptor_trees.cost_tables({"qasper": costs}, ())
    assert ours(tokens)["qasper: 3 texts of 1000 to 5000 tokens"] == pytest.approx([2, 100, 1])
    assert ours(seconds)["all texts: 3 texts of 1000 to 5000 tokens"] == pytest.approx([1, 0, 1], abs=1e-6)
    assert len(points.rows) == 3
    alone, *_ = raptor_trees.cost_tables({"qasper": costs[:1]}, ())
    assert ours(alone)["qasper: 1 text of 1000 to 1000 tokens"] == [None] * 3


@pytest.mark.usefixtures("town")
def test_judgements_of_people_go_round(tmp_path: Path) -> None:
    study, place = studies.named("raptor:hallucination"), tmp_path / "sample.jsonl"
    table, _ = studies.run(study, replace(STAND_INS, options={"export": str(place), "sample": "4"}), tmp_path)
    assert "4 of 4 sampled summaries are not judged yet." in table.notes
    assert not ours(table)
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    assert all(line["children"] and line["summary"] and line["hallucinated"] is None for line in lines)
    with pytest.raises(EvalError, match=r"line 1: `hallucinated` must be true or false"):
        raptor_trees.read_sample(place)
    judged = [line | {"hallucinated": number == 0} for number, line in enumerate(lines)]
    place.write_text("\n".join(map(json.dumps, judged)))
    table, paper = studies.run(study, replace(STAND_INS, options={"import": str(place)}), tmp_path)
    assert ours(table) == {"judged by people": [4, 1, 25, 0]}
    assert "Sets: squality:text (1 document). The file does not say of which half." in table.notes
    assert printed(paper) == {"RAPTOR": [150, 6, 4, 0]}


def test_a_hallucination_that_the_parent_repeats_is_carried_on() -> None:
    one = raptor_trees.Judged("a", "quality", "d", 1, "s", ("c",), parent="b", hallucinated=True, judge="people")
    two = replace(one, id="b", layer=2, parent="")
    assert ours(raptor_trees.hallucination_table("t", [one, two]))["judged by people"] == [2, 2, 100, 1]


@pytest.mark.usefixtures("town")
def test_a_judge_that_answers_nonsense_is_told_and_counts_as_no_judgement(tmp_path: Path) -> None:
    study = studies.named("raptor:hallucination")
    table, _ = studies.run(study, replace(STAND_INS, options={"judge": "scripted:perhaps", "sample": "4"}), tmp_path)
    assert not ours(table)
    assert "4 of 4 replies of the judge could not be read or failed, and are left out." in table.notes
    table, _ = studies.run(study, replace(STAND_INS, options={"judge": "scripted:No."}), tmp_path)
    assert [*ours(table)] == ["judged by scripted:No. (scripted)"]


@pytest.mark.usefixtures("town")
def test_one_nonsense_reply_of_a_judge_is_counted_and_no_summary_is_judged_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def ask(name: str, llm: object, messages: object, most: int) -> Reading:
        asked.append(messages)
        return Reading("perhaps" if len(asked) in (2, 3) else "Yes.")  # and once more, asked to be short

    monkeypatch.setattr(readers, "ask", ask)
    study = studies.named("raptor:hallucination")
    choice = replace(STAND_INS, options={"judge": "scripted:x", "sample": "4"})
    for _ in range(2):
        table, _ = studies.run(study, choice, tmp_path)
        assert ours(table)["judged by scripted:x (scripted)"][:2] == [3, 3]
        assert "1 of 4 replies of the judge could not be read or failed, and are left out." in table.notes
    assert len(asked) == 5


@pytest.mark.usefixtures("town")
def test_what_people_filled_in_is_never_written_over(tmp_path: Path) -> None:
    study, place = studies.named("raptor:hallucination"), tmp_path / "hallucination.jsonl"
    choice = replace(STAND_INS, options={"sample": "4"})
    for _ in range(2):  # a sample that nobody touched is made again
        studies.run(study, choice, tmp_path)
    lines = [json.loads(line) for line in place.read_text().splitlines()]
    place.write_text("\n".join(json.dumps(line | {"hallucinated": False}) for line in lines))
    before = place.read_text()
    table, _ = studies.run(study, choice, tmp_path)
    assert any("holds judgements of people, and was left as it was" in note for note in table.notes)
    with pytest.raises(EvalError, match="holds judgements of people"):
        studies.run(study, replace(STAND_INS, options={"export": str(place)}), tmp_path)
    assert place.read_text() == before


@pytest.mark.usefixtures("town")
def test_a_dead_server_of_summaries_is_told_from_other_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRUNUS_MODEL_CALLS", "1")
    settings = replace(prunus.load_settings(), llm_options={"backoff": 0.01})
    monkeypatch.setattr(readers, "load_settings", lambda: settings)
    with socket.create_server(("127.0.0.1", 0)) as server:
        dead = f"http://127.0.0.1:{server.getsockname()[1]}/v1#m"  # nothing listens there once it is closed
    study, choice = studies.named("raptor:10"), replace(STAND_INS, options={"summarizer": dead})
    with pytest.raises(Unreachable, match=r"summaries by .* of town: "):
        studies.run(study, choice, tmp_path)


@pytest.mark.usefixtures("town")
def test_wrong_choices_are_one_clear_line(tmp_path: Path) -> None:
    wrong: Mapping[str, tuple[str, Sequence[tuple[str, str]]]] = {
        "raptor:1": ("unknown tree oak; the trees are: ward", [("tree", "oak")]),
        "raptor:10": ("unknown embedder|there is no embedder|nothing", [("embedder", "nothing")]),
        "raptor:hallucination": ("sample=many is no number", [("sample", "many")]),
        "raptor:8": ("has no choice speed; it takes: tree", [("speed", "1")]),
    }
    for name, (message, options) in wrong.items():
        with pytest.raises((EvalError, UnknownName), match=message):
            studies.run(studies.named(name), replace(STAND_INS, options=dict(options)), tmp_path)


@pytest.mark.usefixtures("town")
def test_summaries_of_a_scripted_model_are_labelled(tmp_path: Path) -> None:
    spec = "scripted:A town by the sea."
    system = tree.make(llama2(), f"ward@llm={spec}@start=1@count=1", tmp_path)
    assert getattr(system, "caveat", "") == "scripted"
    assert system.prepare([DOCUMENT]).ask("What stands there?", 200).text.startswith("A town by the sea.")
    choice = replace(STAND_INS, options={"summarizer": spec}, budgets=(400,))
    for name in ("raptor:1", "raptor:8", "raptor:10", "raptor:18", "raptor:figure-3", "raptor:figure-5"):
        (table, *_) = studies.run(studies.named(name), choice, tmp_path)
        labels = [line for line in table.notes if "no model answered" in line]
        assert len(labels) == 1 and labels[0].startswith("Summaries: no model answered"), name
    plan = harness.Plan(
        ("qmsum:specific",), (f"tree:ward@llm={spec}", "tree:ward"), budgets=(400,), metrics=("answer",)
    )
    assert [outcome.caveat for outcome in harness.run(plan)] == ["scripted", ""]


@pytest.mark.usefixtures("town")
def test_an_answer_is_measured_where_a_reader_is_named(tmp_path: Path) -> None:
    pytest.importorskip("rouge_score")
    choice = replace(STAND_INS, readers=("scripted:a castle",), budgets=(400,))
    tables = studies.run(studies.named("raptor:6"), choice, tmp_path)
    assert tables[0].columns == ("recall", "rouge_l")
    assert next(iter(ours(tables[0]).values()))[1] == 100
    assert any("no model answered" in line for line in tables[0].notes)


def test_recall_counts_letters_once_and_by_place() -> None:
    question = Question("q", "t", "p", [Document("d", "ab cd ef", "text/plain")], "?", gold=(Span("d", 0, 5),))
    kept = [["d", 0, 2], ["d", 1, 4], ["other", 0, 8]]
    assert span_recall(question, Output(Reply("", "text", facts={"spans": kept}), "")) == 0.75
    assert span_recall(question, Output(Reply("", "text", facts={"spans": []}), "")) == 0
    assert span_recall(question, Output(Reply("", "text"), "")) is None
    assert span_recall(replace(question, gold=()), Output(Reply("", "text", facts={"spans": kept}), "")) is None


def all_studies() -> list[Study]:
    return [study for study in studies.known().values() if study.paper == "raptor"]


def test_every_study_runs_without_a_model_or_says_what_it_needs() -> None:
    found = all_studies()
    assert len(found) == 14
    for study in found:
        assert not study.reader
        assert study.stand_ins
        for task in (*study.paper_tasks, *study.stand_ins):
            assert tasks.about(task).title
    for frame in raptor.FRAMES.values():
        for _, task, metric in frame.columns:
            assert metric in metrics.known()
            assert metric in tasks.about(task).metrics
    assert {raptor.EVIDENCE, *(metric for _, metric in raptor.OF_EVIDENCE.values())} <= {*metrics.known()}


def test_a_kept_tree_of_another_model_of_the_same_name_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, places = Recipe(llm="scripted:A pier."), []
    for parameters in (7, 1, 7):
        monkeypatch.setattr(readers, "served", lambda spec, size=parameters: {"n_params": size})
        _trees._held.cache_clear()
        grown([DOCUMENT], recipe, llama2(), tmp_path)
        places.append({path.parent.name for path in tmp_path.glob(f"*/{_trees.BUILT}")})
        assert len([*tmp_path.glob("summaries-*.sqlite")]) == len(places[-1])
    assert [len(found) for found in places] == [1, 2, 2]
