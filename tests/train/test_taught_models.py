"""From made data to the pipeline: one tiny model learns a few samples of each maker, and changes what Prunus answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.extras import need
from tests.train import tiny_llm

import prunus
from prunus.answer.plan.llm import Engine as Planner
from prunus.core.settings import Settings
from prunus.core.sync import run
from prunus.core.types import Message
from prunus.engines import EngineSet
from prunus.models.llm.transformers import Engine

pytest.importorskip("selectolax")
from prunus_evals.labels import PrunerRecipe
from prunus_evals.records import Document, Question
from prunus_train.data import extractor, parser, pruner
from prunus_train.data.sample_file import KeptReplies, SampleFile, write_lines
from prunus_train.llm import base, measures, training
from prunus_train.llm.presets import TrainingRecipe
from prunus_train.llm.samples import read_samples

need("trl")
need("peft")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries below, which change by version

NOW = datetime(2026, 5, 4, 9)
PAGE = "<h1>Ferries</h1>" + "".join(f"<p>Line {n} calls at pier {n} and no other.</p>" for n in range(1, 5))
ASKED = {"Where does line 3 call?": "pier 3", "Which line turns at the first pier?": "pier 1"}
BLOCKS = PrunerRecipe(first_stage="bm25", coarse=9, fine=9, prompt="bare")
PLANNED = {"Is pier 3 open?": ["pier 3 opening hours"], "Write a poem.": []}


def pages() -> list[Question]:
    return [
        Question(f"q{number}", "own", "page", (Document("d", PAGE),), question, (answer,))
        for number, (question, answer) in enumerate(ASKED.items())
    ]


def truth(messages: Sequence[Message], call: Any) -> str:
    """Name the segment that answers, as a strong model would."""
    from tests.train.test_data_makers import segment_of

    text = "\n".join(message.content for message in messages)
    answer = next(answer for question, answer in ASKED.items() if question in text)
    return f"it says so <TAG-{segment_of(text, answer)}>"


def made(folder: Path) -> Path:
    """Make a few samples of each kind by the makers of data."""
    from prunus.models.llm.scripted import Engine as Scripted

    def quiet(done: int, total: int) -> None:
        assert done <= total

    rows: list[dict[str, Any]] = []
    with SampleFile(folder / "extractor", {}) as sheet:
        plan = extractor.ExtractorPlan(shortest=10, elsewhere=0)
        extractor.make(sheet, pages(), ("truth", Scripted(script=truth)), KeptReplies(folder / "replies"), plan, quiet)
    requests = []
    for request, queries in PLANNED.items():
        listed = [{"text": text, "language": "en", "time_range": ""} for text in queries]
        truth_of = json.dumps({"needs_search": bool(queries), "reason": "", "queries": listed})
        requests.append(parser.ParserRequest(request, (Message("user", request),), NOW, plan=truth_of))
    parser.make(folder / "parser", requests, None, 1, quiet, {})
    for name in ("extractor", "parser"):
        rows += [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]
    rows = [
        row for row in rows if not row["id"].endswith(" A")
    ]  # without the summaries, which an answer does not ask for
    rows += [row for unit in pruner.of_page(pages(), [2000], BLOCKS) for row in unit.kept]
    write_lines(folder / "all.jsonl", rows)
    return folder / "all.jsonl"


def taught_in(folder: Path) -> Path:
    recipe = TrainingRecipe(window=4096, rate=6e-3, schedule="cosine", batch=6, checkpointing=False)
    job = training.TrainingJob(
        "sft", made(folder), folder / "model", folder / "work", str(tiny_llm.base(folder / "base")), recipe,
        device="cpu", steps=130, every=130, micro=3,
    )  # fmt: skip
    training.train(job, lambda line: None)
    assert tiny_llm.log(folder / "work")[-1]["loss"] < 0.02
    return folder / "model"


def check_that_the_pruner_ranks_the_block_that_it_was_taught(taught: Path) -> None:
    settings = Settings(path_options={"prompt": "bare"})
    documents = prunus.read(prunus.Page(content=PAGE, media_type="text/html"))
    first = {}
    for name in (taught, taught.parent / "base"):
        scorer = EngineSet(settings).second_scorer(f"generative:{name}")
        for question in ASKED:
            blocks = documents.blocks(9)
            first[name, question] = blocks.texts[int(scorer.score(question, blocks).argmax())]
    assert [answer in first[taught, question] for question, answer in ASKED.items()] == [True, True]
    assert [answer in first[taught.parent / "base", question] for question, answer in ASKED.items()] != [True, True]


def check_that_the_pruner_decides_what_a_prompt_keeps(taught: Path) -> None:
    settings = Settings(path_options={"prompt": "bare"})
    question = "Which line turns at the first pier?"
    options = prunus.Options(scorer=f"generative:{taught}", max_words=9)
    assert "Line 1 calls" in prunus.prune(PAGE, question, 30, options=options, settings=settings).text


def check_that_the_extractor_names_the_segment_that_it_was_taught(taught: Path) -> None:
    for question, answer in ASKED.items():
        options = prunus.Options(extractor="tags", llm=Engine(str(taught)))
        [passage] = prunus.extract(question, PAGE, options=options, settings=Settings())
        assert answer in passage.text


class Served:
    """The model as a server runs it: the schema is a grammar there, and no text of the prompt."""

    def __init__(self, folder: Path) -> None:
        self._engine = Engine(str(folder))

    def stream(self, messages: Sequence[Message], schema: Any = None, **options: Any) -> Any:
        return self._engine.stream(messages, **options)


def check_that_the_parser_plans_what_it_was_taught(taught: Path) -> None:
    for request, queries in PLANNED.items():
        plan = run(lambda request=request: Planner(Served(taught)).plan([Message("user", request)], NOW))
        assert (plan.needs_search, [query.text for query in plan.queries]) == (bool(queries), queries)


def check_that_what_is_measured_during_training_is_perfect_of_what_was_learned(taught: Path) -> None:
    tokenizer = base.read_tokenizer(str(taught))
    model = base.read_model(str(taught), tokenizer)
    samples = read_samples(taught.parent / "all.jsonl")
    found = measures.measure(model, tokenizer, samples)
    wanted = ("hit@1", "mrr", "needs_search", "query_f1", "readable", "tags_exact", "tags_f1")
    assert found == dict.fromkeys(wanted, 1.0)
    assert not model.training


def test_one_model_learns_the_samples_of_every_maker_and_changes_what_prunus_answers(tmp_path: Path) -> None:
    taught = taught_in(tmp_path)  # once: it takes a minute
    check_that_the_pruner_ranks_the_block_that_it_was_taught(taught)
    check_that_the_pruner_decides_what_a_prompt_keeps(taught)
    check_that_the_extractor_names_the_segment_that_it_was_taught(taught)
    check_that_the_parser_plans_what_it_was_taught(taught)
    check_that_what_is_measured_during_training_is_perfect_of_what_was_learned(taught)
