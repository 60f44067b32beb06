"""Results that a person has read: what cleaning, ranking, cutting and quoting give for small pages and the example site.

Each function with ``@known`` gives one result as text; the file of its name in this folder holds what it gave when it
was last read. After a change that is meant, ``python -m tests.golden.results`` writes the files anew: read the diff.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import prunus
from prunus.answer.extract._features import Question
from prunus.answer.extract._weights import weights
from prunus.answer.extract.sentences import cosines
from prunus.answer.plan.rules import Engine as Rules
from prunus.answer.rank_pages import Candidate, by_hybrid, rank
from prunus.core.text.bm25 import BM25
from prunus.core.text.likeness import Likeness
from prunus.core.text.words import count_words, guess_language, normalise
from prunus.evidence.blocks import max_words_for
from prunus.evidence.segments import segments
from prunus.index.chunk import chunk_tree
from prunus.models.embed.static import Engine as Static
from prunus.models.llm.scripted import Engine as Scripted
from prunus.models.tokens.smollm2 import Engine as SmolLM2
from prunus.pages.links import page_key
from prunus.web.fetch.links import promising_links
from prunus.web.search._merge import fuse

FOLDER: Final = Path(__file__).parent
SITE: Final = FOLDER.parents[1] / "examples" / "site"
PAGES: Final = {
    path.stem: prunus.Page(path.read_bytes(), f"https://tide.example/{path.name}")
    for path in sorted(SITE.glob("*.html"))
}
"""Addresses take part: the path of a checkout would count in budgets."""

STORY, PRICES, DOCS, DATA, FAQ, PELL, VISIT = (
    PAGES[name]
    for name in (
        "tide-rolls-story", "plans-and-prices", "levelcast-docs", "station-data", "faq", "pell-2-gauge", "visit-and-events",
    )
)  # fmt: skip
NOW: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)

RESULTS: Final[dict[str, Callable[[], str]]] = {}


def known(function: Callable[[], str]) -> Callable[[], str]:
    """Register a function whose result is known."""
    RESULTS[function.__name__.replace("_", "-")] = function
    return function


# --- cleaning --------------------------------------------------------------------------------------

SMALL: Final = """<html><head><title>Ferry | Quay</title><style>.x{display:none}</style></head><body>
<nav><a href=/>Home</a><a href=/map>Map</a></nav><main><h1>Ferry <em>times</em></h1>
<p>The <b>ferry</b> crosses<br>daily. <span class=x>secret</span><span hidden>also</span><a href="/fares">Fares</a> apply.</p>
<table><caption>Winter</caption><tr><th>Day<th colspan=2>Hours<tr><td rowspan=2>Sat<td>9<td>17<tr><td>10<td><tr><td>Sun<td colspan=2>closed</table>
<ul><li>One<ul><li>Nested</ul><li>Two</ul><ol start=3><li>Third<li>Fourth</ol><dl><dt>Term<dd>Meaning</dl>
<pre>if a:\n    b()\n</pre><figure><img alt="A pier" src=p.png><figcaption>The pier</figcaption></figure>
<details><summary>More</summary><p>Inside</p></details><script>x()</script></main></body></html>"""


@known
def clean_small_page() -> str:
    return "\n\n".join(
        f"--- {format}\n{prunus.clean(SMALL, format)}"
        for format in ("html", "markdown", "text")  # type: ignore[arg-type]
    )


@known
def clean_styles() -> str:
    return prunus.clean(SMALL, style=prunus.Style(full=True, pretty=True)) + prunus.clean(SMALL, style=prunus.LEAN)


@known
def main_content() -> str:
    lines = []
    for name, page in PAGES.items():
        whole, main = prunus.clean(page, "text"), prunus.clean(page, "text", main=True)
        first = main.splitlines()
        lines.append(
            f"{name}.html: {count_words(main)} of {count_words(whole)} words\n  {first[0]}\n  {first[-1][:100]}"
        )
    return "\n".join(lines)


@known
def metadata() -> str:
    return "\n\n".join(
        f"{name}.html\n{prunus.metadata(PAGES[name])}"
        for name in ("tide-rolls-story", "levelcast-docs", "old-bulletin")
    )


# --- blocks and scores -----------------------------------------------------------------------------

TIDE: Final = "What was the average water level at Withy Bend in November 2024?"
ROLLS: Final = "How much did the Linden Trust pay towards reading the rolls?"


@known
def blocks_of_a_page() -> str:
    context = prunus.prune(VISIT, "When does the boat leave?", budget=200)
    return "\n".join(f"{block.words:4} {block.path}" for block in context.blocks)


def _best(page: prunus.Page, question: str, scorer: str, count: int = 8, **options: Any) -> str:
    context = prunus.prune(page, question, budget=400, options=prunus.Options(scorer=scorer, **options))
    ranked = sorted(context.blocks, key=lambda block: -block.score)[:count]
    lines = [f"{block.score:9.3f} {'kept' if block.kept else '    '} {block.text[:70]!r}" for block in ranked]
    return "\n".join([f"--- {scorer}: {question}", *lines])


@known
def sizes_of_blocks() -> str:
    asked = ("When does the boat leave?", "Give an overview of the prices.")
    sizes = [
        (words, budget, question)
        for question in asked
        for words, budget in ((9_000, 4096), (9_000, 300), (300_000, 4096))
    ]
    return "\n".join(f"{max_words_for(*size):4} words: {size}" for size in sizes)


@known
def scores_of_the_default() -> str:
    default = prunus.Settings().scorer
    return "\n".join(_best(page, question, default) for page, question in ((STORY, ROLLS), (DATA, TIDE)))


@known
def scores_of_other_scorers() -> str:
    ways = [_best(STORY, ROLLS, scorer, 5) for scorer in ("bm25", "embedding", "hybrid")]
    return "\n".join([*ways, _best(FAQ, "Readings and data", "hybrid", 5)])


@known
def bm25() -> str:
    texts = ["the tide gauge", "a gauge of tides and tides", "rolls of paper", "gauges gauge the gauging gauge"]
    scores = BM25(texts).scores("tide gauge"), BM25(texts, language="de").scores("tide gauge")
    return "\n".join(" ".join(f"{value:.4f}" for value in row) for row in scores)


@known
def likeness() -> str:
    embedder = Static()
    texts = ["The ferry leaves at nine.", "Boats depart in the morning.", "Prices of bread rose.", "ferry"]
    question = "When does the ferry leave?"
    vector = embedder.embed([question], "query")[0]
    cosines = embedder.embed(texts) @ vector
    beside = Likeness(embedder).beside_words(question, vector, cosines)
    return "\n".join(
        f"{plain:.3f} {scaled:.3f} {text}" for plain, scaled, text in zip(cosines, beside, texts, strict=True)
    )


# --- what the budget keeps ---------------------------------------------------------------------------


def _pruned(
    pages: prunus.Page | list[prunus.Page], question: str, budget: int, format: str = "html", **options: Any
) -> str:
    context = prunus.prune(pages, question, budget, format, prunus.Options(**options))  # type: ignore[arg-type]
    return f"--- {question} [{budget} tokens, {format}: {context.tokens}]\n{context}"


@known
def prune_row_of_a_table() -> str:
    return "\n".join([_pruned(DATA, TIDE, 120), _pruned(DATA, TIDE, 120, "markdown"), _pruned(DATA, TIDE, 90, "text")])


@known
def prune_prose() -> str:
    return "\n".join([_pruned(STORY, ROLLS, 60, "text"), _pruned(STORY, ROLLS, 250, "text")])


@known
def prune_list_and_code() -> str:
    steps = "What did each pair of scanning helpers have to do with a roll?"
    return "\n".join(
        [_pruned(STORY, steps, 150), _pruned(DOCS, "How do I set up an alarm above 5.20 m?", 200, "markdown")]
    )


@known
def prune_a_site() -> str:
    return _pruned([*PAGES.values()], "What do I have to pay for one Pell 2?", 300, breadcrumbs=True)


@known
def prune_one_block_too_large() -> str:
    page = (
        "<p>"
        + " ".join(f"Gauge {i} stands at kilometre {i * 7}. It was read in {1900 + i}." for i in range(60))
        + "</p>"
    )
    context = prunus.prune(page, "When was gauge 31 read?", 60, "text")
    return f"[{context.tokens}]\n{context}"


@known
def prune_in_two_stages() -> str:
    options = prunus.Options(scorer="bm25", second_scorer="embedding", stages=2, coarse_budget=600, coarse_words=256)
    context = prunus.prune(STORY, ROLLS, 150, "text", options)
    return f"{context}\n\n" + "\n".join(f"{trace.stage}: {dict(trace.detail)}" for trace in context.trace)


@known
def prune_links_and_emphasis() -> str:
    return _pruned(FAQ, "What is a stilling well?", 120, "markdown", links=True, emphasis=True)


# --- quotes ------------------------------------------------------------------------------------------


def _asked(question: str, *pages: prunus.Page) -> str:
    try:
        answer = prunus.ask(question, list(pages))
    except prunus.NothingFound as nothing:
        return f"--- {question}\n{nothing}"
    lines = [
        f"[{c.number}] {c.support:.2f} {c.xpath} {c.span.start}-{c.span.end} {c.quote!r}" for c in answer.citations
    ]
    return "\n".join([f"--- {question}", answer.text, *lines])


@known
def quote_facts() -> str:
    asked = (
        (ROLLS, STORY),
        ("How long is the Pell 2 guaranteed?", PELL),
        ("How far down does the stilling well go?", FAQ),
    )
    return "\n".join(_asked(question, page) for question, page in asked)


@known
def quote_rows() -> str:
    asked = (TIDE, DATA), ("For how long does the Estuary subscription store my data?", PRICES)
    return "\n".join(_asked(question, page) for question, page in asked)


@known
def quote_lists_and_code() -> str:
    asked = ("Which groups of customers get a discount?", PRICES), ("How can I back up the Levelcast store?", DOCS)
    return "\n".join(_asked(question, page) for question, page in asked)


@known
def quote_from_the_site() -> str:
    return _asked("What is the all-time record of the flood?", *PAGES.values())


@known
def quote_nothing() -> str:
    return "\n".join(
        _asked(question, FAQ) for question in ("Who discovered penicillin?", "What is the capital of Peru?")
    )


@known
def passages() -> str:
    return "\n".join(
        f"{passage.score:8.3f} {passage.label!r} {passage.text!r}"
        for passage in prunus.extract("What does Harbour cost per month?", PRICES, 600)
    )


@known
def scores_of_quotes() -> str:
    """What the extractor without a model makes of the segments of evidence, before it chooses."""
    documents = prunus.read(STORY)
    tagged = segments(prunus.prune(documents, ROLLS, 600).kept, {tree.document: tree for tree in documents.trees})
    question = Question(ROLLS, tagged, cosines(Static(), ROLLS, tagged))
    scores = weights().scores(question.features)
    return "\n".join(f"{scores[index]:8.3f} {tagged[index].text[:70]!r}" for index in (-scores).argsort()[:8])


@known
def support_of_claims() -> str:
    """The citations of an answer that a model wrote, and which of its sentences no page supports."""
    text = (
        "A stilling well damps waves [1]. Slack water lasts about 22 minutes at neaps [1]. The moon is made of cheese "
        "[1]. At springs it is nine minutes. The bolt lies 4.21 m below the quay [1]. Ferries are yellow."
    )
    model = Scripted(text)
    answer = prunus.ask("What is a stilling well?", FAQ, options=prunus.Options(llm=model, extractor="sentences"))
    return "\n".join([_citations(answer), *(f"unsupported: {sentence}" for sentence in answer.unsupported)])


@known
def sentences() -> str:
    text = (
        "Dr. Moor met J. R. Tarrowby at 5 p.m. in St. Ives. The level was 3.5 m (approx. 11 ft.). “Is it?” she asked. "
        "See Fig. 3, e.g. the left part. Es kostet 3,5 Mio. Euro. Am 3. Oktober war es so. 水位很高。今天不高。 Done!"
    )
    return "\n".join(prunus.sentences(text))


@known
def words() -> str:
    texts = [
        "Plain words here.",
        "水位计很准",
        "ทะเลขึ้นสูง",
        "Der Pegel steigt und die Brücke ist zu.",
        "“Curly”\u00a0quotes – and…",
    ]
    return "\n".join(f"{count_words(text)} {guess_language(text)} {normalise(text)}" for text in texts)


# --- indexes -----------------------------------------------------------------------------------------


@known
def chunks_of_a_page() -> str:
    [tree] = prunus.read(FAQ).trees
    chunks = [*chunk_tree(tree, SmolLM2(), 60)[:14], *chunk_tree(tree, SmolLM2())[:4]]
    return "\n".join(
        f"{chunk.tokens:4} {chunk.start}-{chunk.end} {chunk.above} {chunk.text[:60]!r}" for chunk in chunks
    )


@known
def retrieval() -> str:
    """Leaves and summaries that an index of the site gives, by every way of retrieving."""
    with tempfile.TemporaryDirectory() as folder:
        index = prunus.Index.open(Path(folder) / "index")
        index.add(PAGES.values())
        retriever = index.retriever
        ways = {
            "hybrid": retriever.hybrid(ROLLS, 300),
            "broad": retriever.hybrid("Give an overview of the whole site.", 800),
            "collapsed": retriever.collapsed(ROLLS, 300),
            "traversal": retriever.traversal(ROLLS, 2),
        }
        layers = [f"layer {layer}" for layer in sorted({int(layer) for layer in index.store.view().layer})]
    lines = [" ".join(layers)]
    for way, result in ways.items():
        lines.append(f"--- {way}: {result.tokens} tokens")
        pairs = zip(result.nodes, result.scores, strict=True)
        lines += [f"{score:7.3f} layer {node.layer} {' '.join(node.text.split())[:70]!r}" for node, score in pairs]
    return "\n".join(lines)


# --- the web -----------------------------------------------------------------------------------------


def _hit(url: str, title: str, snippet: str = "", rank: int = 0, published: str = "") -> prunus.Hit:
    return prunus.Hit(url, title, snippet, published=published, rank=rank)


@known
def plans() -> str:
    asked = (
        "hello", "What is 12 * (3 + 4)?", "Who won the regatta yesterday?", "How tall is the Orrel flood barrier?",
        "Compare the prices of the Pell 2 and the Pell Mini in 2025", "Translate this text into German: the tide is high",
        "What are the best ways to read a tide gauge in 2025?", "What are the best ways to read a tide gauge in 2021?",
        "Wie hoch ist die Zugspitze?", "What did the council decide about the bridge last week, and who voted against it?",
    )  # fmt: skip
    lines = []
    for question in asked:
        plan = asyncio.run(Rules().plan([prunus.Message("user", question)], NOW))
        queries = [f"{query.text} [{query.language} {query.time_range}]" for query in plan.queries]
        lines.append(f"{question}\n  {plan.needs_search}: {plan.reason}\n  {queries}")
    return "\n".join(lines)


@known
def merged_hits() -> str:
    alike = "The barrier on the Orrel was built to a height of six metres after the great flood of that year in spring"
    first = [
        _hit("https://a.org/x?utm_source=n", "A"),
        _hit("https://b.org/", "B", alike),
        _hit("https://c.org/p", "C"),
    ]
    second = [_hit("https://c.org/p/", "C2"), _hit("http://www.a.org/x#top", "A2"), _hit("https://d.org/", "B", alike)]
    third = [
        _hit("https://e.org", "E"),
        _hit("https://f.org", "F"),
        _hit("https://g.org", "G"),
        _hit("https://b.org", "B"),
    ]
    for hits in (first, second):  # far down in two lists beats the first place of one
        hits += [_hit(f"https://once.org/{len(first)}-{number}", "") for number in range(3)] + [
            _hit("https://twice.org", "")
        ]
    lines = [f"{hit.rank} {hit.url} {hit.title}" for hit in fuse([first, second, third])]
    return "\n".join([*lines, page_key("https://www.Shop.org:443/a%20b/?b=2&a=1&gclid=9#x")])


def _ranked(candidates: Sequence[Candidate], question: str) -> list[str]:
    ranked = rank([question], candidates, by_hybrid(Static()))
    return [f"{page.score:.4f} by {page.by}: {page.hit.url}" for page in ranked]


@known
def ranked_pages() -> str:
    texts = {Path(page.url).name: prunus.clean(page, "text") for page in (STORY, PRICES, DOCS, DATA, FAQ)}
    candidates = [Candidate(_hit(f"https://site/{name}", name, text[:200]), text) for name, text in texts.items()]
    candidates.append(Candidate(_hit("https://other/", "Linden Trust", "The Linden Trust pays for reading the rolls.")))
    return "\n".join(_ranked(candidates, ROLLS))


@known
def local_search() -> str:
    lines = []
    for query in ("stilling well", "price of a Pell Mini", "when is new moon"):
        hits = prunus.search(query, f"local:{SITE}").hits[:3]
        lines += [f"--- {query}", *(f"{hit.rank} {Path(hit.url).name}: {hit.snippet}" for hit in hits)]
    return "\n".join(lines)


@known
def links_to_follow() -> str:
    [tree] = prunus.read(PAGES["index"]).trees
    return "\n".join(
        f"{link.score:.3f} {Path(link.url).name} {link.text!r}"
        for link in promising_links(tree, "What does a Pell 2 cost?", 4, Static())
    )


@known
def prompt_of_an_answer() -> str:
    """What a language model is sent: pages, their order, their length, and what is asked of it."""
    model = Scripted("It paid €74,400 [1].")
    answer = prunus.ask(ROLLS, [STORY, FAQ], options=prunus.Options(llm=model, extractor="sentences"), budget=300)
    messages = [f"<{message.role}>\n{message.content}" for call in model.calls for message in call.messages]
    return "\n".join([*messages, "", _citations(answer)])


def _citations(answer: prunus.Answer) -> str:
    return "\n".join([answer.text, *(f"[{c.number}] {c.found} {c.support:.2f} {c.quote!r}" for c in answer.citations)])


def main() -> None:
    """Write the file of every result anew."""
    for name, result in RESULTS.items():
        (FOLDER / f"{name}.txt").write_text(result().rstrip("\n") + "\n", "utf-8")


if __name__ == "__main__":
    main()
