"""Path scorers on servers: their requests, the responses that they read, and their errors for incomplete responses.

Each response names the source of its shape. ``from docs``: written after the server's documentation or
source; ``stand-in``: made by ``standin.py`` over real sockets, from a tiny random model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evidence.generative.standin import routes
from tests.extras import need
from tests.models.embed.server import Answer, PlainDoor, Server, as_json, serve

from prunus.core.errors import BadInput, OutsideFailed, OverWindow
from prunus.core.ports import TokenTree
from prunus.core.registry import make_engine
from prunus.core.types import Message
from prunus.evidence.blocks import Blocks, cut
from prunus.evidence.score._trie import grow
from prunus.pages.clean.walk import clean_tree

ASKED = [Message("user", "Which?")]
PATHS = [[5, 6, 7], [5, 6, 8], [5, 9], [4]]
"""Three places branch: the root (5, 4), behind 5 (6, 9) and behind 5, 6 (7, 8)."""

LOGP = {4: -2.0, 5: -0.5, 6: -1.0, 7: -3.5, 8: -0.25, 9: -6.0}


def vllm(path: str, body: Any) -> Answer:
    """From docs: CompletionRequest and CompletionLogProbs of vLLM's OpenAI server, /tokenize of the same."""
    if path == "/tokenize":
        return as_json({"count": 3, "max_model_len": 4096, "tokens": [1, 2, 3], "token_strs": None})
    top = {f"token_id:{token}": LOGP[token] for token in body["logprob_token_ids"]} | {"token_id:99": -0.1}
    choice = {"index": 0, "text": "x", "finish_reason": "length", "logprobs": {
        "text_offset": [0], "token_logprobs": [-0.1], "tokens": ["token_id:99"], "top_logprobs": [top]}}  # fmt: skip
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2}}
    return as_json({"id": "cmpl-1", "object": "text_completion", "choices": [choice], "usage": usage})


def sglang(path: str, body: Any) -> Answer:
    """From docs: GenerateReqInput of SGLang, and meta_info as its tests of /generate read it."""
    rows = [[LOGP[token], token, None] for token in body["token_ids_logprob"]]
    meta = {"prompt_tokens": 3, "completion_tokens": 1, "cached_tokens": 2, "output_token_ids_logprobs": [rows]}
    return as_json({"text": "x", "output_ids": [99], "meta_info": meta})


def llamacpp(path: str, body: Any) -> Answer:
    """From docs: tools/server/README.md of llama.cpp, POST /completion, /tokenize and /apply-template."""
    if path == "/props":  # recorded, cut
        return as_json(
            {"default_generation_settings": {"n_ctx": 4096}, "bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
        )
    if path == "/apply-template":
        return as_json({"prompt": "<|user|>Which?"})
    if path == "/tokenize":
        return as_json({"tokens": [2] if body["content"] == "<|im_end|>" else [1, 2, 3]})
    others = {token: -0.001 * token for token in range(100, 400)}  # likelier than all that are asked for
    best = sorted({**others, **LOGP}.items(), key=lambda item: -item[1])[: body["n_probs"]]
    top = [{"id": token, "logprob": value, "token": "x", "bytes": [120]} for token, value in best]
    return as_json({"content": "x", "completion_probabilities": [{**top[0], "top_logprobs": top}]})


KINDS: dict[str, Callable[[str, Any], Answer]] = {"vllm": vllm, "sglang": sglang, "llamacpp": llamacpp}
every = pytest.mark.parametrize("kind", KINDS)


def tree() -> TokenTree:
    return grow(PATHS)[0]


def engine(kind: str, url: str, **options: Any) -> Any:
    spec = f"{kind}:{url}{'/v1#tiny' if kind == 'vllm' else ''}"
    made = make_engine("path_scorer", spec, door=PlainDoor(), key="secret", options={"at_once": 2, **options})
    made.sleep = lambda seconds: None  # no test waits between tries
    if kind == "sglang" and "tokenizer" not in options:
        made._prompt = lambda messages: [1, 2, 3]  # its tokenizer is read on this machine: see the stand-in's tests
    return made


@pytest.fixture(params=KINDS)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, Server]]:
    with serve(KINDS[request.param]) as server:
        yield request.param, server


# --- what is asked, and what is read -------------------------------------------------------------


def test_every_branching_node_gets_the_numbers_of_its_children(served: tuple[str, Server]) -> None:
    kind, server = served
    found = engine(kind, server.url).branches(ASKED, tree())
    assert [list(logits) for logits in found.logits] == [[-0.5, -2.0], [-1.0, -6.0], [-3.5, -0.25]]


def test_one_request_of_one_token_for_each_branching_node(served: tuple[str, Server]) -> None:
    kind, server = served
    found = engine(kind, server.url).branches(ASKED, tree())
    asked = [body for path, _, body in server.asked if path in ("/v1/completions", "/generate", "/completion")]
    prompts = sorted(tuple(body.get("prompt") or body.get("input_ids")) for body in asked)
    if kind == "llamacpp":  # the likeliest are not ours: each node is asked once more, for more
        assert prompts == sorted(2 * [(1, 2, 3), (1, 2, 3, 5), (1, 2, 3, 5, 6)])
    else:
        assert prompts == [(1, 2, 3), (1, 2, 3, 5), (1, 2, 3, 5, 6)]
    assert found.forwards == len(asked)
    for body in asked:
        limits = body | body.get("sampling_params", {})
        assert [limits[name] for name in ("max_tokens", "max_new_tokens", "n_predict") if name in limits] == [1]


def test_the_key_goes_into_the_header_alone(served: tuple[str, Server]) -> None:
    kind, server = served
    engine(kind, server.url).branches(ASKED, tree())
    assert all(headers["authorization"] == "Bearer secret" for _, headers, _ in server.asked)
    assert "secret" not in str([(path, body) for path, _, body in server.asked])


def test_a_tree_without_a_branch_asks_nothing(served: tuple[str, Server]) -> None:
    kind, server = served
    assert engine(kind, server.url).branches(ASKED, grow([[5, 6]])[0]).logits == []
    assert server.asked == []


def test_what_a_server_had_in_its_cache_is_told() -> None:
    with serve(vllm) as server:
        found = engine("vllm", server.url).branches(ASKED, tree())
    assert (found.reused, found.tokens) == (6, 12 - 6)


def test_vllm_is_asked_again_in_halves_where_it_finds_the_tokens_too_many() -> None:
    LOGS = {token: -0.1 * token for token in range(50)}

    def strict(path: str, body: Any) -> Answer:
        if path == "/tokenize":
            return as_json({"tokens": [1], "max_model_len": 4096})
        if len(body["logprob_token_ids"]) > 20:
            return as_json({"error": {"message": "Requested sample logprobs of 50, max is 20"}}, 400)
        top = {f"token_id:{token}": LOGS[token] for token in body["logprob_token_ids"]}
        return as_json({"choices": [{"logprobs": {"top_logprobs": [top]}}]})

    with serve(strict) as server:
        wide = grow([[token] for token in range(50)])[0]
        [found] = engine("vllm", server.url).branches(ASKED, wide).logits
    assert found == pytest.approx(list(LOGS.values()))


# --- what a server does not give -----------------------------------------------------------------


def failing(kind: str, *answers: Answer, **options: Any) -> str:
    """Return what is said when a server gives these answers to the questions (not to those of tokenising)."""
    left = list(answers)

    def route(path: str, body: Any) -> Answer:
        if path in ("/tokenize", "/apply-template"):
            return KINDS[kind](path, body)
        return left.pop(0) if len(left) > 1 else left[0]

    with serve(route) as server, pytest.raises((OutsideFailed, BadInput)) as raised:
        engine(kind, server.url, **options).branches(ASKED, tree())
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)
    return str(raised.value)


WITHOUT: dict[str, dict[str, Any]] = {
    "vllm": {"choices": [{"text": "x", "logprobs": None}]},
    "sglang": {"text": "x", "meta_info": {"completion_tokens": 1}},
    "llamacpp": {"content": "x"},
}


@every
def test_a_server_that_omits_log_probabilities_is_an_error(kind: str) -> None:
    said = failing(kind, as_json(WITHOUT[kind]))
    assert "no log probability for 2 of 2 tokens" in said


def test_an_old_vllm_that_leaves_the_tokens_unread_is_noticed() -> None:
    top = {"token_id:99": -0.1, "token_id:5": -0.5}
    said = failing("vllm", as_json({"choices": [{"logprobs": {"top_logprobs": [top]}}]}))
    assert "1 of 2 tokens" in said
    assert "logprob_token_ids" in said


def test_llamacpp_never_guesses_at_a_token_that_is_not_among_the_likeliest() -> None:
    def short(path: str, body: Any) -> Answer:
        if path != "/completion":
            return llamacpp(path, body)
        top = [{"id": 100 + place, "logprob": -1.0} for place in range(min(50, body["n_probs"]))]
        return as_json({"completion_probabilities": [{"top_logprobs": top}]})

    with serve(short) as server, pytest.raises(OutsideFailed, match="2 of 2 tokens; they are not among the likeliest"):
        engine("llamacpp", server.url).branches(ASKED, tree())


@every
@pytest.mark.parametrize(
    "content", ["[]", "3", '{"choices": 5}', '{"choices": [], "meta_info": 7, "probs": 1}', "null"]
)
def test_wrong_shapes_are_one_clear_error(kind: str, content: str) -> None:
    said = failing(kind, (200, {}, content.encode()))
    assert "shape" in said or "no log probability" in said


@every
def test_what_is_no_json_is_an_error(kind: str) -> None:
    assert "not JSON" in failing(kind, (200, {}, b"<html>"))


@every
@pytest.mark.parametrize("bad", ["NaN", "-Infinity", "Infinity"])
def test_numbers_that_are_not_finite_are_an_error(kind: str, bad: str) -> None:
    whole = {
        "vllm": f'{{"choices": [{{"logprobs": {{"top_logprobs": [{{"token_id:4": {bad}, "token_id:5": -1}}]}}}}]}}',
        "sglang": f'{{"meta_info": {{"output_token_ids_logprobs": [[[{bad}, 4, null], [-1, 5, null]]]}}}}',
        "llamacpp": f'{{"probs": [{{"top_logprobs": [{{"id": 4, "logprob": {bad}}}, {{"id": 5, "logprob": -1}}]}}]}}',
    }[kind]
    assert "1 of 2 tokens" in failing(kind, (200, {}, whole.encode()))


@every
def test_a_busy_server_is_asked_again(kind: str) -> None:
    with serve(KINDS[kind]) as server:
        server.first = [as_json({}, 429), as_json({}, 503)]
        found = engine(kind, server.url).branches(ASKED, tree())
    assert len(found.logits) == 3


@every
def test_a_server_that_stays_busy_is_an_error(kind: str) -> None:
    assert "429: slow down" in failing(kind, as_json({"error": "slow down"}, 429))


@every
def test_a_refused_key_is_said(kind: str) -> None:
    assert "refuses the key" in failing(kind, as_json({"error": "no secret"}, 401))


@pytest.mark.slow
@every
def test_a_server_that_hangs_is_left(kind: str) -> None:
    assert "within 0.1 s" in failing(kind, "hang", seconds=0.1)


@pytest.mark.slow
@every
def test_a_server_that_drips_is_left(kind: str) -> None:
    assert "within" in failing(kind, "drip", seconds=0.3)


@every
def test_a_question_ends_after_its_time(kind: str) -> None:
    with serve(KINDS[kind]) as server, pytest.raises(OutsideFailed, match="not done within 0 s"):
        engine(kind, server.url, total=0.0).branches(ASKED, tree())


LONG = {
    "vllm": {"error": {"message": "This model's maximum context length is 1024 tokens, but 3998 were given"}},
    "sglang": {
        "error": {"message": "The input (3998 tokens) is longer than the model's context length (1024 tokens)."}
    },
    "llamacpp": {  # recorded, with other numbers
        "error": {
            "code": 400,
            "message": "request (3998 tokens) exceeds the available context size (1024 tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 3998,
            "n_ctx": 1024,
        }
    },
}
"""The request of the first node, of 3,998 tokens, is shorter than the longest path needs."""


@every
def test_a_prompt_that_the_server_finds_too_long_is_over_the_window(kind: str) -> None:
    def long(path: str, body: Any) -> Answer:
        return KINDS[kind](path, body) if path in ("/tokenize", "/apply-template") else as_json(LONG[kind], 400)

    with serve(long) as server:
        made = engine(kind, server.url)
        made._prompt = lambda messages: [1] * 3997
        if kind == "vllm":
            made._longest = 0  # what older servers do not say
        if kind == "llamacpp":
            made._properties = {}
        with pytest.raises(OverWindow) as raised:
            made.branches(ASKED, tree())
    assert (raised.value.window, raised.value.needed) == (1024, 4000)


def test_a_window_that_is_known_is_kept_before_anything_is_sent(served: tuple[str, Server]) -> None:
    kind, server = served
    with pytest.raises(OverWindow):
        engine(kind, server.url, context_window=5).branches(ASKED, tree())
    assert all(path in ("/tokenize", "/apply-template") for path, _, _ in server.asked)


def test_a_refusal_that_states_no_window_halves_the_need() -> None:
    def long(path: str, body: Any) -> Answer:
        return llamacpp(path, body) if path != "/completion" else as_json({"error": "the prompt is too long"}, 400)

    with serve(long) as server, pytest.raises(OverWindow) as raised:
        engine("llamacpp", server.url).branches(ASKED, tree())
    assert raised.value.window == raised.value.needed // 2


def test_llamacpp_says_its_window_and_the_token_that_ends_a_text() -> None:
    with serve(llamacpp) as server:
        made = engine("llamacpp", server.url)
        assert (made.stop, made.stop) == (2, 2)
        made._prompt = lambda messages: [1] * 4096
        with pytest.raises(OverWindow) as raised:
            made.branches(ASKED, tree())
        assert raised.value.window == 4096
        assert [path for path, _, _ in server.asked] == ["/props", "/tokenize"]
        assert server.asked[1][2] == {"content": "<|im_end|>", "add_special": False, "parse_special": True}
        assert engine("llamacpp", server.url, stop=7).stop == 7


PROPS = [
    as_json({"error": {"message": "File Not Found"}}, 404), as_json([]), as_json({"eos_token": 3}),
    as_json({"default_generation_settings": 3, "eos_token": ""}), as_json({"eos_token": "two tokens"}),
]  # fmt: skip


@pytest.mark.parametrize("props", PROPS)
def test_llamacpp_without_such_properties_works_without_a_window_and_an_end(props: Answer) -> None:
    with serve(lambda path, body: props if path == "/props" else llamacpp(path, body)) as server:
        made = engine("llamacpp", server.url)
        assert made.stop == -1
        assert len(made.branches(ASKED, tree()).logits) == 3


def test_sglang_needs_the_models_tokenizer() -> None:
    made = make_engine("path_scorer", "sglang:http://127.0.0.1:1", door=PlainDoor())
    with pytest.raises(BadInput, match="tokenizer"):
        made.branches(ASKED, tree())
    with pytest.raises(BadInput, match="tokenizer"):
        made.encode(["<html>"])


@every
@pytest.mark.parametrize("bad", [{"tokens": "abc"}, {"tokens": [1, "2"]}, {"tokens": [-1]}, {}, []])
def test_tokens_of_a_wrong_shape_are_an_error(kind: str, bad: Any) -> None:
    if kind == "sglang":
        pytest.skip("its tokenizer is read on this machine")
    with serve(lambda path, body: as_json(bad)) as server, pytest.raises(OutsideFailed, match="shape"):
        engine(kind, server.url).encode(["<html>"])


@every
def test_bad_specs_and_options_are_one_line(kind: str) -> None:
    for spec, options in (
        (kind, {}),
        (f"{kind}:ftp://x", {}),
        (f"{kind}:http://a:b@x", {}),
        (f"{kind}:http://x", {"y": 1}),
    ):
        with pytest.raises(BadInput) as raised:
            make_engine("path_scorer", spec, door=PlainDoor(), options=options)
        assert "\n" not in str(raised.value)
    made = make_engine("path_scorer", f"{kind}:http://x", options={"context_window": 99})
    made._prompt = lambda messages: [1]
    with pytest.raises(BadInput, match="egress door"):
        made.branches(ASKED, tree())


# --- the same numbers as on this machine ---------------------------------------------------------


def page() -> Blocks:
    text = "".join(f"<div><p>Pier {number} opens at {number}.<p>It is {number} m long.</div>" for number in range(2, 5))
    return cut([clean_tree(f"<h1>Harbour</h1>{text}")], 5)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A random Llama, in a folder and loaded."""
    need("transformers")
    from tests.models.llm.tiny import causal

    from prunus.evidence.score.paths.transformers.loaded import load

    folder = causal(tmp_path_factory.mktemp("tiny"), window=4096)
    return folder, load(str(folder), "cpu", "float32")


@pytest.mark.full
@pytest.mark.parametrize("kind", ["vllm", "sglang", "llamacpp"])
def test_a_server_scores_as_the_model_on_this_machine(tiny: tuple[Path, Any], kind: str) -> None:
    folder, loaded = tiny
    local = make_engine("path_scorer", f"transformers:{folder}", options={"device": "cpu"})
    want = make_engine("scorer", "generative", path_scorer=local).score("When does pier 3 open?", page())
    options = {"tokenizer": str(folder)} if kind == "sglang" else {"stop": loaded.stop}
    with serve(routes(loaded)) as server:
        asked = make_engine("scorer", "generative", path_scorer=engine(kind, server.url, **options))
        found = asked.score("When does pier 3 open?", page())
    assert np.ptp(want) > 1e-3
    assert found == pytest.approx(want, abs=2e-5)
    assert math.fsum(np.exp(found)) == pytest.approx(1.0)
