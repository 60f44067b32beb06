"""Measurements during training by the metrics of the evaluations: how right the replies to validation samples are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from prunus.answer.extract.tags import read_tags
from prunus.answer.plan.llm import read_plan
from prunus.evidence.score._trie import grow, log_probabilities, sum_along_paths
from prunus.evidence.score.paths.transformers.engine import Engine
from prunus.evidence.score.paths.transformers.loaded import Loaded
from prunus.models.chat_prompt import forged_marks
from prunus_evals.metrics.answers import token_f1
from prunus_evals.metrics.ranked import of_scores
from prunus_evals.metrics.tagged import precision_recall_f1
from prunus_train.llm.samples import ChatSample, SampleEncoder

LONGEST = 256
"""Tokens of a written reply at most."""


def measure(model: Any, tokenizer: Any, samples: Sequence[ChatSample]) -> dict[str, float]:
    """Return the mean of each metric over samples.

    A pruner ranks the blocks of each page (``hit@1``, ``mrr``); a parser and an extractor write their replies
    (``needs_search``, ``query_f1``; ``tags_f1``, ``tags_exact``; ``readable``). {} where the samples
    are of no kind that has a metric.
    """
    import torch

    training = model.training
    model.eval()
    try:
        with torch.inference_mode(), torch.random.fork_rng():
            rows = [_measured(model, tokenizer, sample) for sample in samples]
    finally:
        model.train(training)
    names = sorted({name for row in rows for name in row})
    return {name: round(float(np.mean([row[name] for row in rows if name in row])), 4) for name in names}


def _measured(model: Any, tokenizer: Any, sample: ChatSample) -> dict[str, float]:
    if sample.kind == "pruner":
        return _ranked(model, tokenizer, sample)
    if sample.kind == "parser":
        return _planned(_written(model, tokenizer, sample), sample.target[0])
    if sample.kind == "extractor":
        return _tagged(_written(model, tokenizer, sample), sample.target[0])
    return {}


def _ranked(model: Any, tokenizer: Any, sample: ChatSample) -> dict[str, float]:
    engine = Engine.of(Loaded(model, tokenizer, forged_marks(tokenizer), "the model in training"), {"mode": "tree"})
    tree, leaves = grow(engine.encode(sample.paths), engine.stop)
    scores = sum_along_paths(tree, log_probabilities(tree, engine.branches(sample.messages, tree)))[leaves]
    found = of_scores(scores.tolist(), sample.gold)
    return {name: found[name] for name in ("hit@1", "mrr")}


def _written(model: Any, tokenizer: Any, sample: ChatSample) -> str:
    import torch

    prompt = torch.tensor([SampleEncoder(tokenizer).prompt(sample.messages)], device=model.device)
    ends = tokenizer.eos_token_id
    written = model.generate(
        input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=LONGEST, do_sample=False,
        pad_token_id=ends, use_cache=True,
    )  # fmt: skip
    return str(tokenizer.decode(written[0, prompt.shape[1] :], skip_special_tokens=True))


def _planned(reply: str, target: str) -> dict[str, float]:
    plan, _ = read_plan(reply)
    wanted, fault = read_plan(target)
    if wanted is None:
        raise ValueError(f"a sample teaches no plan: {fault}")
    found = {"readable": float(plan is not None), "needs_search": 0.0}
    if plan is not None:
        found["needs_search"] = float(plan.needs_search == wanted.needs_search)
    if wanted.needs_search:
        texts = [" ".join(query.text for query in one.queries) if one else "" for one in (plan, wanted)]
        found["query_f1"] = token_f1(*texts)
    return found


def _tagged(reply: str, target: str) -> dict[str, float]:
    known = range(1_000)
    wanted, read = {*read_tags(target, known).tags}, read_tags(reply, known)
    named = {*read.tags}
    f1 = precision_recall_f1(len(named & wanted), len(named), len(wanted))[2] if wanted or named else 1.0
    return {"readable": float(bool(named) or read.none), "tags_f1": f1, "tags_exact": float(named == wanted)}
