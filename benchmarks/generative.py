"""Generative pruning: the cost of scoring a token tree after the prompt, for several ways of reading it.

python -m benchmarks.generative [--device cuda] [--shape small|llama-1b|phi-4b] [--quick]

Ways: `prefill` reads only the prompt; `one pass` is the default; `depth-first` is the paper's Algorithm 3; `again`
reads the prompt again for every branching node, as the reference does; `brute force` reads it for every block. Then
follows a second question about the same page. The weights are random, which costs the same as trained weights. The
page is made up, and its tokenizer is trained here. A way that would read more tokens than --most is counted and not
run. Seconds are the least of all rounds: CPU time without a GPU, wall time on a GPU. MB is the peak above the memory
held before. It needs torch, transformers, tokenizers, numpy and turbohtml.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.protocol import forget_peak, peak_mb
from benchmarks.report import finish, json_line, parser, say, table, verdict
from benchmarks.workers import BenchError
from prunus.core.installation import pip_install

LARGEST = 1.25
"""Time of one pass over that of the prefill, at most."""

FEWER = 10.0
"""Tokens of the reference's way over those of one pass, at least."""

QUESTIONS = ("Which harbour did the ferry leave at noon?", "Who built the lighthouse behind the market, and when?")
WORDS = """harbour ferry noon lighthouse built keeper tide table market street coins inner outer zone ticket winter
summer bridge station railway museum painting council election river flood record height metres captain island
school teacher garden orchard plum apple recipe sugar flour oven minutes hours price euros open visitors""".split()

SHAPES: dict[str, dict[str, Any]] = {
    "small": {
        "kind": "Llama", "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 6, "num_attention_heads": 8,
        "num_key_value_heads": 2, "vocab_size": 8192, "max_position_embeddings": 131_072, "tie_word_embeddings": True,
    },
    "llama-1b": {
        "kind": "Llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128_256,
        "max_position_embeddings": 131_072, "tie_word_embeddings": True,
        "rope_parameters": {
            "rope_type": "llama3", "rope_theta": 500_000.0, "factor": 32.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
        },
    },
    "phi-4b": {
        "kind": "Phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32_064, "max_position_embeddings": 131_072,
        "original_max_position_embeddings": 4096, "sliding_window": 262_144,
        "rope_parameters": {
            "rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 4096,
            "short_factor": [1.0 + 0.03 * step for step in range(48)],
            "long_factor": [1.0 + 1.3 * step for step in range(48)],
        },
    },
}  # fmt: skip
"""Shapes of models; the large ones are those of the published HTML-Pruner-Llama-1B and HTML-Pruner-Phi-3.8B."""


@dataclass(frozen=True, slots=True)
class Task:
    """A page with its token tree, and the prompts of the questions."""

    prompts: Sequence[Any]
    ids: Sequence[Sequence[int]]
    tree: Any
    leaves: Any
    blocks: int
    tree_ms: float


def sentences(seed: int) -> Iterator[str]:
    """Yield pieces of ten words of a made-up text, the same for the same seed."""
    drawn = random.Random(seed)
    while True:
        yield " ".join(drawn.choice(WORDS) for _ in range(10))


def page(blocks: int, words: int) -> str:
    """Return a page of `blocks` paragraphs and list items, in sections, of `words` words each."""
    text, parts = sentences(blocks), []
    for number in range(blocks):
        if number % 10 == 0:
            parts.append("<section><div>" if not parts else "</ul></div></section><section><div>")
        if number % 10 == 5:
            parts.append("</div><div><ul>")
        block = " ".join(" ".join(next(text) for _ in range(words // 10 + 1)).split()[:words])
        parts.append(f"<li>{block}</li>" if number % 10 >= 5 else f"<p>{block}</p>")
    return f"<main>{''.join(parts)}</ul></div></section></main>"


def tokenizer() -> Any:
    """Train a tokenizer in the style of GPT-2 on a made-up page."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    marks = ["<|pad|>", "<|begin|>", "<|end|>"]
    trainer = trainers.BpeTrainer(vocab_size=1500, special_tokens=marks, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([page(40, 40), "<html1><body><main><section12><div2><ul3><li45>"], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>")


def engine(shape: str, device: str, dtype: str) -> Any:
    """Return the back-end with a model of a shape, with random weights."""
    import torch
    import transformers

    from prunus.evidence.score.paths.transformers.engine import Engine
    from prunus.evidence.score.paths.transformers.loaded import Loaded, forged_marks

    sizes = dict(SHAPES[shape])
    made = tokenizer()
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = getattr(transformers, f"{sizes.pop('kind')}Config")(**sizes, **ids)
    torch.manual_seed(7)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, dtype), attn_implementation="sdpa"
        )
    return Engine.of(Loaded(model.eval(), made, forged_marks(made), shape))


def task(back_end: Any, tokens: int, blocks: int) -> Task:
    """Make a page of `blocks` blocks whose prompt has at most `tokens` tokens."""
    from prunus.evidence.blocks import cut
    from prunus.evidence.numbered_paths import number, path_prompt
    from prunus.evidence.score._trie import grow
    from prunus.pages.clean.walk import clean_tree

    low, high = 1, max(2, tokens)
    while high - low > 1:  # find the most words per block that keep the prompt within the limit
        words = (low + high) // 2
        numbered = number(cut([clean_tree(page(blocks, words))], words))
        size = len(back_end.prompt_ids(path_prompt(QUESTIONS[0], numbered.html)))
        low, high = (words, high) if size <= tokens else (low, words)
    numbered = number(cut([clean_tree(page(blocks, low))], low))
    started = time.perf_counter()
    tree, leaves = grow(back_end.encode(numbered.paths), back_end.stop)
    spent = 1000 * (time.perf_counter() - started)
    prompts = [path_prompt(query, numbered.html) for query in QUESTIONS]
    return Task(prompts, [back_end.prompt_ids(prompt) for prompt in prompts], tree, leaves, len(numbered.paths), spent)


def trim_memory() -> None:
    """Return freed memory to the system, so that memory allocated next shows in the peak."""
    with contextlib.suppress(OSError, AttributeError):  # other C libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)


class Meter:
    """Measures the seconds and the memory of calls on a device."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch, self.cuda = torch, device.startswith("cuda")

    def measure(self, call: Callable[[], Any], before: Callable[[], Any]) -> tuple[float, float, Any]:
        """Return the seconds of a call (CPU time, on a GPU wall time), the MB of its peak above before, its result.

        :param before: called first, not measured.
        """
        before()
        gc.collect()
        if self.cuda:
            self.torch.cuda.synchronize()
            self.torch.cuda.reset_peak_memory_stats()
            held = self.torch.cuda.memory_allocated()
        else:
            trim_memory()
            forget_peak()
            held = peak_mb()
        started = self._now()
        found = call()
        seconds = self._now() - started
        peak = (self.torch.cuda.max_memory_allocated() - held) / (1 << 20) if self.cuda else peak_mb() - held
        return seconds, max(0.0, peak), found

    def _now(self) -> float:
        if self.cuda:
            self.torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()


def planned(work: Task, tokens: int) -> dict[str, tuple[int, int]]:
    """Return (forwards, tokens) of the ways that read the prompt more than once, by counting."""
    tree = work.tree
    parents = set(tree.parent.tolist())
    ends = [int(tree.depth[node]) - 1 for node in range(1, len(tree)) if node not in parents]
    again = [int(tree.depth[node]) for node in tree.branching.tolist()]
    return {
        "again": (len(again), len(again) * tokens + sum(again)),
        "brute force": (len(ends), len(ends) * tokens + sum(ends)),
    }


def prefill(back_end: Any, work: Task) -> Any:
    """Read only the prompt."""
    import torch
    from transformers import DynamicCache

    from prunus.core.ports import Branches
    from prunus.evidence.score._trie import grow
    from prunus.evidence.score.paths.transformers.engine import hold_frequencies
    from prunus.evidence.score.paths.transformers.passes import CountingModel

    reader = CountingModel(back_end._model().model)
    ids = work.ids[0]
    with torch.inference_mode(), hold_frequencies(reader.model, len(ids) + work.tree.deepest):
        reader.prefill(ids, 0, DynamicCache(), grow([])[0], back_end._options["prefill_chunk"])
    return Branches([], reader.forwards, reader.tokens)


def ways(back_end: Any, work: Task, most: int, brute: bool) -> Mapping[str, Any]:
    """Return the calls of the ways by name; None for a way that is only counted."""
    from prunus.evidence.score.paths.transformers.engine import Engine

    loaded = back_end._model()
    counted = planned(work, len(work.ids[0]))
    found: dict[str, Any] = {"prefill": partial(prefill, back_end, work)}
    found["one pass"] = partial(_score_unread, back_end, work)
    for name, mode in (("depth-first", "depth"), ("again", "again"), ("brute force", "brute")):
        other = Engine.of(loaded, {"mode": mode})
        other._way()  # chosen here, so that choosing is not measured
        runs = name == "depth-first" or (counted[name][1] <= most and (brute or name != "brute force"))
        found[name] = partial(_score_unread, other, work) if runs else None
    return found


def _score_unread(back_end: Any, work: Task) -> Any:
    """Score the first question, with nothing of the page in the cache."""
    back_end.forget()
    return back_end.branches(work.prompts[0], work.tree)


def measure(back_end: Any, work: Task, options: argparse.Namespace, brute: bool) -> list[dict[str, Any]]:
    """Measure every way on one page, in turns; return the rows of the table."""
    meter, counted = Meter(options.device), planned(work, len(work.ids[0]))
    calls = ways(back_end, work, options.most, brute)
    best: dict[str, tuple[float, float, Any]] = {}
    for turn in range(options.rounds):
        for name, call in calls.items():
            if call is None or (turn and name in counted):  # these are long enough to be measured once
                continue
            found = meter.measure(call, call.args[0].forget)
            best[name] = min(best.get(name, found), found, key=lambda measured: measured[0])
        back_end.forget()
        back_end.branches(work.prompts[0], work.tree)
        found = meter.measure(lambda: back_end.branches(work.prompts[1], work.tree), lambda: None)
        best["second question"] = min(best.get("second question", found), found, key=lambda measured: measured[0])
    rows = []
    for name in [*calls, "second question"]:
        row: dict[str, Any] = {"prompt": len(work.ids[0]), "blocks": work.blocks, "way": name}
        if name in best:
            seconds, memory, branches = best[name]
            row |= {"forwards": branches.forwards, "tokens": branches.tokens, "seconds": seconds, "mb": memory}
            row["of_prefill"] = seconds / best["prefill"][0]
            row["apart"] = (
                apart(work, best["one pass"][2], branches) if name not in ("prefill", "second question") else None
            )
        else:
            row |= {"forwards": counted[name][0], "tokens": counted[name][1], "seconds": None, "mb": None}
            row |= {"of_prefill": None, "apart": None}
        rows.append(row)
    return rows


def apart(work: Task, first: Any, second: Any) -> float:
    """Return the greatest difference between the scores of two ways."""
    import numpy as np

    from prunus.evidence.score._trie import log_probabilities, sum_along_paths

    scores = [sum_along_paths(work.tree, log_probabilities(work.tree, way))[work.leaves] for way in (first, second)]
    return float(np.abs(scores[0] - scores[1]).max())


def run(options: argparse.Namespace) -> bool:
    """Run the benchmark; return whether the targets were met."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise BenchError(f"{error}; run: {pip_install('transformers')}") from error
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        raise BenchError("torch finds no CUDA device; use --device cpu")
    if not options.device.startswith("cuda"):
        torch.set_num_threads(options.threads)
    back_end = engine(options.shape, options.device, options.dtype)
    say(f"{options.shape} in {options.dtype} on {options.device}: read by {back_end.mode}")
    rows: list[dict[str, Any]] = []
    trees: list[dict[str, Any]] = []
    for tokens in options.prompts:
        for blocks in options.blocks:
            work = task(back_end, tokens, blocks)
            back_end.branches(work.prompts[0], work.tree)  # warm
            trees.append({
                "prompt": len(work.ids[0]), "blocks": work.blocks, "nodes": len(work.tree) - 1,
                "branching": len(work.tree.branching), "read": len(work.tree.read), "skipped": work.tree.skipped,
                "tokenise_and_merge_ms": work.tree_ms,
            })  # fmt: skip
            rows += measure(back_end, work, options, (tokens, blocks) == (options.prompts[0], options.blocks[0]))
            say(f"{len(work.ids[0])} tokens, {work.blocks} blocks: done")
    table("Token trees", list(trees[0]), [list(row.values()) for row in trees])
    unit = "s" if options.device.startswith("cuda") else "CPU s"
    head = ["prompt", "blocks", "way", "forwards", "tokens", unit, "MB", "x prefill", "scores apart"]
    table(f"{options.shape}, {options.dtype}, {options.device}", head, [list(row.values()) for row in rows])
    print()
    met = judge(rows)
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else f"{options.threads} thread(s)"
    about = {"shape": options.shape, "dtype": options.dtype, "device": options.device, "device_name": name}
    about |= {"torch": torch.__version__, "transformers": transformers.__version__, "rounds": options.rounds}
    json_line("generative", about | {"trees": trees, "rows": rows, "met": met})
    return met


def judge(rows: Sequence[dict[str, Any]]) -> bool:
    """Check every page against the targets; return whether all are met."""
    met = True
    cells = {(row["prompt"], row["blocks"], row["way"]): row for row in rows}
    for prompt, blocks in dict.fromkeys((row["prompt"], row["blocks"]) for row in rows):
        single, again = cells[prompt, blocks, "one pass"], cells[prompt, blocks, "again"]
        name = f"{prompt} tokens, {blocks} blocks"
        met &= verdict(
            f"{name}: one pass is {single['of_prefill']:.2f} x the prefill; at most {LARGEST}",
            single["of_prefill"] <= LARGEST,
        )
        fewer = again["tokens"] / single["tokens"]
        met &= verdict(f"{name}: {fewer:.1f} x fewer tokens than the prompt again; at least {FEWER:g}", fewer >= FEWER)
    return met


def main(argv: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    options = parser("generative", __doc__)
    options.add_argument("--device", default="cpu", help="cpu or cuda")
    options.add_argument("--shape", choices=list(SHAPES), help="small on the processor, llama-1b on a GPU")
    options.add_argument("--dtype", help="float32 on the processor, bfloat16 on a GPU")
    options.add_argument("--threads", type=int, default=1, help="threads of the processor (1)")
    options.add_argument("--prompts", type=int, nargs="+", help="tokens of the prompts (2048 6144; quick 2048)")
    options.add_argument("--blocks", type=int, nargs="+", help="blocks (40 100 300; quick 40 100)")
    options.add_argument("--rounds", type=int, help="rounds (3; quick 1)")
    options.add_argument("--most", type=int, help="run a way up to this many tokens (250,000; GPU 3,000,000)")
    chosen = options.parse_args(argv)
    on_gpu = chosen.device.startswith("cuda")
    chosen.shape = chosen.shape or ("llama-1b" if on_gpu else "small")
    chosen.dtype = chosen.dtype or ("bfloat16" if on_gpu else "float32")
    chosen.prompts = chosen.prompts or ([2048] if chosen.quick else [2048, 6144])
    chosen.blocks = chosen.blocks or ([40, 100] if chosen.quick else [40, 100, 300])
    chosen.rounds = chosen.rounds or (1 if chosen.quick else 3)
    chosen.most = chosen.most or (3_000_000 if on_gpu else 250_000)
    return finish(run, chosen)


if __name__ == "__main__":
    sys.exit(main())
