"""The worker process in the reference's environment: reads calls and writes results as JSON lines.

It calls the package's own functions: ``clean_html``, ``build_block_tree``, ``trim_path``, ``simplify_html``, and its
BM25 ranking; but not its ``prune_HTML``, which deletes the best blocks instead of the worst. The package imports
torch, transformers and langchain, which these functions do not use: empty modules replace them.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from types import ModuleType
from typing import Any

UNUSED = (
    "anytree",
    "anytree.exporter",
    "langchain_community",
    "langchain_community.embeddings",
    "langchain_core",
    "langchain_core.documents",
    "langchain_text_splitters",
    "torch",
    "transformers",
)
MAX_NODE_WORDS = 256


class _Empty(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Worker:
    """One page at a time: prepared, ranked for a question, rendered with its best blocks."""

    def __init__(self) -> None:
        for name in UNUSED:
            sys.modules[name] = _Empty(name)
        self._reference = importlib.import_module("htmlrag")
        self._soup = importlib.import_module("bs4")
        self._okapi = importlib.import_module("rank_bm25").BM25Okapi
        self._html = ""
        self._paths: list[tuple[list[str], bool]] = []
        self._texts: list[str] = []
        self._ranking: list[int] = []

    def clean(self, html: str) -> str:
        """Clean a page."""
        cleaned: str = self._reference.clean_html(html)
        return cleaned

    def prepare(self, html: str) -> int:
        """Clean a page and cut it into blocks; return how many there are."""
        cleaned = self.clean(html)
        blocks, self._html = self._reference.build_block_tree(cleaned, max_node_words=MAX_NODE_WORDS)
        if not self._html.strip():
            # the package loses a small page with several roots; in its favour, such a page is kept whole
            blocks, self._html = [], cleaned
        self._paths = [(path, leaf) for _, path, leaf in blocks]
        self._texts = [tag.get_text() for tag, _, _ in blocks]
        return len(blocks)

    def rank(self, question: str, variant: str) -> int:
        """Rank the blocks, as the package does or over lower-case words; return their number."""
        self._ranking = []
        if not self._texts:
            return 0
        words = variant == "words"
        split = _words if words else str.split
        scores = self._okapi([split(text) for text in self._texts]).get_scores(split(question))
        if words:
            self._ranking = sorted(range(len(scores)), key=lambda index: -scores[index])
        else:
            self._ranking = [int(index) for index in scores.argsort()[::-1]]
        return len(self._ranking)

    def keep(self, count: int) -> str:
        """Delete all but the ``count`` best blocks from the tree and return its HTML."""
        soup = self._soup.BeautifulSoup(self._html, "html.parser")
        doomed = [(self._find(soup, index), index) for index in self._ranking[count:]]
        for tag, index in doomed:
            if tag is not None and not tag.decomposed:
                self._reference.trim_path({"tag": tag, "is_leaf": self._paths[index][1]})
        kept: str = self._reference.simplify_html(soup)
        return kept

    def _find(self, soup: Any, index: int) -> Any:
        tag = soup
        for name in self._paths[index][0]:
            for child in tag.contents:
                if child.name == name:
                    tag = child
                    break
        return None if tag is soup else tag


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def main() -> None:
    """Answer calls until standard input ends."""
    worker = Worker()
    for line in sys.stdin:
        call, *arguments = json.loads(line)
        start = time.process_time()
        try:
            result = {"result": getattr(worker, call)(*arguments)}
        except Exception as error:  # the calling process raises it again with this text
            result = {"error": f"{type(error).__name__}: {error}"}
        result["cpu"] = time.process_time() - start
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
