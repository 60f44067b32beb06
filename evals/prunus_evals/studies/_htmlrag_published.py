"""The published numbers of HtmlRAG: Tan et al., WWW 2025, https://doi.org/10.1145/3696410.3714546."""

from __future__ import annotations

from collections.abc import Sequence

from prunus_evals.studies import Number, Row, Table

PAPER = "Tan et al., HtmlRAG, WWW 2025"

QA_COLUMNS = (
    "ASQA Hit@1",
    "ASQA EM",
    "HotpotQA EM",
    "NQ Hit@1",
    "NQ EM",
    "TriviaQA Hit@1",
    "TriviaQA EM",
    "MuSiQue EM",
    "ELI5 ROUGE-L",
    "ELI5 BLEU",
)
"""The columns of Tables 1, 2 and 6; Table 3 has the first eight."""

TABLE_1 = {
    "Llama-3.1-8B-Instruct-4K": """
        BM25           45.00 19.84 36.25 40.75 30.66 84.75 26.17  5.75 15.90 6.56
        BGE            68.50 31.47 43.25 59.00 44.59 92.25 27.50 10.00 15.87 6.30
        E5-Mistral     62.50 28.51 38.50 56.50 41.73 90.00 27.05  9.00 15.77 5.85
        LongLLMLingua  59.25 26.34 40.75 55.25 41.82 90.00 27.02  9.00 16.08 6.45
        JinaAI Reader  53.50 23.14 34.00 47.25 34.41 84.75 24.83  6.75 15.80 5.65
        HtmlRAG        71.75 33.31 43.75 61.75 45.90 91.75 27.82  8.75 15.51 5.84""",
    "Llama-3.1-70B-Instruct-4K": """
        BM25           49.50 21.95 38.25 47.00 35.56 88.00 25.63  9.50 16.15 6.99
        BGE            68.00 30.57 41.75 59.50 45.05 93.00 27.04 12.50 16.20 6.64
        E5-Mistral     63.00 28.75 36.75 59.50 44.07 90.75 26.27 11.00 16.17 6.72
        LongLLMLingua  62.50 27.74 45.00 56.75 42.89 92.50 27.23 10.25 15.84 6.39
        JinaAI Reader  55.25 23.73 34.25 48.25 35.40 90.00 25.35  9.25 16.06 6.41
        HtmlRAG        68.50 30.53 46.25 60.50 45.26 93.50 27.03 13.25 16.33 6.77""",
}
TABLE_2 = {
    "Llama-3.1-70B-Instruct-128K": """
        Vanilla HTML       44.00 17.52 28.00 46.75 36.06 81.50 22.58  3.25 15.69 5.16
        Plain Text         59.75 25.16 41.00 59.75 44.11 93.50 26.75  8.75 16.88 7.44
        Markdown           56.00 24.00 39.00 57.00 42.00 92.00 26.43  8.25 16.91 6.74
        HtmlRAG w/o Prune  58.75 25.28 42.25 58.00 43.65 95.00 27.21 10.75 16.57 6.32"""
}
TABLE_6 = {
    "Llama-3.1-8B-Instruct-128K": """
        Vanilla HTML       47.75 20.08 28.75 47.25 36.09 85.00 24.85  6.00 16.13 6.28
        Plain Text         61.50 27.82 39.25 59.25 44.31 94.00 28.23  7.75 16.02 6.35
        Markdown           61.75 26.70 37.50 57.50 42.85 91.50 26.67  7.50 16.12 5.91
        HtmlRAG w/o Prune  61.00 26.70 39.50 59.00 43.46 92.00 27.50  8.75 15.62 5.87"""
}
TABLE_3 = {
    "Llama-3.1-70B-Instruct-4K": """
        HtmlRAG          68.50 30.53 46.25 60.50 45.26 93.50 27.03 13.25
        w/o Block Tree   59.50 25.50 40.25 56.25 42.07 92.00 26.59  8.00
        w/o Prune-Embed  56.75 24.05 37.50 49.50 37.27 91.75 26.02  9.75
        w/o Prune-Gen    62.00 26.74 38.75 57.75 42.91 89.50 25.55  7.00"""
}

TABLE_4_COLUMNS = ("parameters, M", "storage, GB", "tokens in", "tokens out", "latency, ms")
TABLE_4 = {
    "20 pages, ELI5": """
        BGE          200   2.5  93540  740.3 10.5
        Prune-Embed  200   2.5 152500   2653 30.8
        Prune-Gen    3000  7.2   6750  28.70 6.15
        LLM Chat     70000 131   3661  182.9  915"""
}

TABLE_5_COLUMNS = (
    "Plain Text, 128k",
    "Markdown, 128k",
    "HtmlRAG w/o Prune, 128k",
    "HtmlRAG w/o Gen, 8k",
    "BM25, 4k",
    "BGE, 4k",
    "E5-Mistral, 4k",
    "LongLLMLingua, 4k",
    "JinaAI Reader, 4k",
    "HtmlRAG, 4k",
)
TABLE_5 = {
    "": """
        ASQA      70.90 67.72 69.49 59.72 25.99 52.17 50.65 35.77 38.39 52.80
        HotpotQA  70.00 65.75 66.75 54.75 37.50 48.75 49.00 43.75 38.25 51.00"""
}

TABLE_7_COLUMNS = ("ASQA Hit@1", "HotpotQA EM", "NQ Hit@1", "TriviaQA Hit@1", "MuSiQue EM", "ELI5 ROUGE-L")
"""The paper heads all but the last with EM; for ASQA, NQ and TriviaQA its numbers are those of Hit@1 in Table 1."""
TABLE_7 = {
    "": """
        Pruner of 3.8B  68.50 46.25 60.50 93.50 13.25 16.33
        Pruner of 1.5B  66.50 45.00 60.75 93.00 10.00 16.25"""
}

TOKENS_COLUMNS = ("original", "cleaned", "after the embedding stage", "after the generative stage")
TOKENS = {"": "20 pages  1600000 135000 8000 4000"}
CLEANING_COLUMNS = ("HTML-Clean", "plain text", "Markdown")
CLEANING = {"": "tokens removed  94.07 96.71 90.32"}


def rows(numbers: dict[str, str], where: str) -> list[Row]:
    """Return the rows of published numbers, marked as cited.

    :param numbers: rows by the reader; a row is a label, two spaces or more, and numbers.
    :param where: the table, as ``Table 1``.
    """
    found: list[Row] = []
    for reader, lines in numbers.items():
        for line in lines.strip().splitlines():
            label, _, values = line.strip().partition("  ")
            name = f"{label} ({reader})" if reader else label
            cells = tuple(Number(float(value)) for value in values.split())
            found.append(Row(name, cells, cited=f"{PAPER}, {where}"))
    return found


def table(title: str, columns: Sequence[str], numbers: dict[str, str], where: str, digits: int = 2) -> Table:
    """Return a table that holds nothing but published numbers."""
    return Table(f"{title}, as published", tuple(columns), tuple(rows(numbers, where)), digits=digits)
