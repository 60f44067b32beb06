"""The published numbers of RAPTOR's tables, as they are printed; studies show them as cited rows."""

from __future__ import annotations

from dataclasses import dataclass

PAPER = "Sarthi and others, RAPTOR, ICLR 2024"


@dataclass(frozen=True, slots=True)
class Published:
    """A table of the paper.

    :param source: where it was printed, and with which reader.
    :param rows: labels and numbers; None where the paper has none.
    """

    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]


TABLE_1 = Published(
    f"{PAPER}, Table 1: UnifiedQA-3B, 400 tokens",
    ("ROUGE-L", "BLEU-1", "BLEU-4", "METEOR"),
    (
        ("SBERT with RAPTOR", (30.87, 23.50, 6.42, 19.20)),
        ("SBERT without RAPTOR", (29.26, 22.56, 5.95, 18.15)),
        ("BM25 with RAPTOR", (27.93, 21.17, 5.70, 17.03)),
        ("BM25 without RAPTOR", (23.52, 17.73, 4.65, 13.98)),
        ("DPR with RAPTOR", (30.94, 23.51, 6.45, 19.05)),
        ("DPR without RAPTOR", (29.56, 22.84, 6.12, 18.44)),
    ),
)
TABLE_2 = Published(
    f"{PAPER}, Table 2: UnifiedQA-3B, 400 tokens",
    ("Accuracy (QuALITY)", "Answer F1 (QASPER)"),
    (
        ("SBERT with RAPTOR", (56.6, 36.70)),
        ("SBERT without RAPTOR", (54.9, 36.23)),
        ("BM25 with RAPTOR", (52.1, 27.00)),
        ("BM25 without RAPTOR", (49.9, 26.47)),
        ("DPR with RAPTOR", (54.7, 32.23)),
        ("DPR without RAPTOR", (53.1, 31.70)),
    ),
)
TABLE_3 = Published(
    f"{PAPER}, Table 3",
    ("GPT-3 F-1 Match", "GPT-4 F-1 Match", "UnifiedQA F-1 Match"),
    (
        ("Title + Abstract", (25.2, 22.2, 17.5)),
        ("BM25", (46.6, 50.2, 26.4)),
        ("DPR", (51.3, 53.0, 32.1)),
        ("RAPTOR", (53.1, 55.7, 36.6)),
    ),
)
TABLE_4 = Published(
    f"{PAPER}, Table 4",
    ("GPT-3 Acc.", "UnifiedQA Acc."),
    (("BM25", (57.3, 49.9)), ("DPR", (60.4, 53.9)), ("RAPTOR", (62.4, 56.6))),
)
TABLE_5 = Published(
    f"{PAPER}, Table 5",
    ("F-1 Match",),
    (
        ("LongT5 XL (Guo et al., 2022)", (53.1,)),
        ("CoLT5 XL (Ainslie et al., 2023)", (53.9,)),
        ("RAPTOR + GPT-4", (55.7,)),
    ),
)
TABLE_6 = Published(
    f"{PAPER}, Table 6",
    ("ROUGE-L", "BLEU-1", "BLEU-4", "METEOR"),
    (
        ("BiDAF (Kočiský et al., 2018)", (6.2, 5.7, 0.3, 3.7)),
        ("BM25 + BERT (Mou et al., 2020)", (15.5, 14.5, 1.4, 5.0)),
        ("Recursively Summarizing Books (Wu et al., 2021)", (21.6, 22.3, 4.2, 10.6)),
        ("Retriever + Reader (Izacard & Grave, 2022)", (32.0, 35.3, 7.5, 11.1)),
        ("RAPTOR + UnifiedQA", (30.8, 23.5, 6.4, 19.1)),
    ),
)
TABLE_7 = Published(
    f"{PAPER}, Table 7",
    ("Test Set", "Hard Subset"),
    (
        ("Longformer-base (Beltagy et al., 2020)", (39.5, 35.3)),
        ("DPR and DeBERTaV3-large (Pang et al., 2022)", (55.4, 46.1)),
        ("CoLISA (DeBERTaV3-large) (Dong et al., 2023a)", (62.3, 54.7)),
        ("RAPTOR + GPT-4", (82.6, 76.2)),
    ),
)
TABLE_9 = Published(
    f"{PAPER}, Table 9: UnifiedQA-3B, QuALITY",
    ("Accuracy",),
    (
        ("RAPTOR + SBERT embeddings", (56.6,)),
        ("Recency-based tree + SBERT embeddings", (55.8,)),
    ),
)
TABLE_10 = Published(
    f"{PAPER}, Table 10: summaries by gpt-3.5-turbo",
    ("Summary length, tokens", "Child node length, tokens", "Child nodes per parent", "Compression ratio"),
    (
        ("All Datasets", (131.0, 85.6, 6.7, 0.28)),
        ("QuALITY", (124.4, 87.9, 5.7, 0.28)),
        ("NarrativeQA", (129.7, 85.5, 6.8, 0.27)),
        ("QASPER", (145.9, 86.2, 5.7, 0.35)),
    ),
)
HALLUCINATION = Published(
    f"{PAPER}, Appendix E: summaries by gpt-3.5-turbo, judged by hand, 40 stories",
    ("nodes", "with a hallucination", "share, %", "carried on by a parent"),
    (("RAPTOR", (150.0, 6.0, 4.0, 0.0)),),
)

_THREE = ("Layer 0 (Leaf Nodes)", "Layer 1", "Layer 2")
_TWO = _THREE[:2]
LAYERS = {
    f"RAPTOR, Table {number}: {story} of QuALITY": Published(f"{PAPER}, Table {number}: {story}", columns, rows)
    for number, story, columns, rows in (
        (
            8,
            "Story 1",
            _THREE,
            (
                ("1 layer", (57.9, 57.8, 57.9)),
                ("2 layers", (None, 52.6, 63.15)),
                ("3 layers", (None, None, 73.68)),
            ),
        ),
        (
            14,
            "Story 2",
            _THREE,
            (("1 layer", (58.8, 47.1, 41.1)), ("2 layers", (None, 64.7, 52.9)), ("3 layers", (None, None, 47.1))),
        ),
        (
            15,
            "Story 3",
            _THREE,
            (("1 layer", (66.6, 61.1, 61.1)), ("2 layers", (None, 66.6, 66.6)), ("3 layers", (None, None, 83.3))),
        ),
        (16, "Story 4", _TWO, (("1 layer", (94.7, 84.2)), ("2 layers", (None, 89.4)))),
        (17, "Story 5", _TWO, (("1 layer", (57.9, 47.3)), ("2 layers", (None, 68.4)))),
    )
}
"""Tables 8 and 14 to 17, by title: rows are layers queried, columns the start layer."""

TABLE_18 = Published(
    f"{PAPER}, Table 18",
    ("DPR", "SBERT", "BM25"),
    (
        ("NarrativeQA", (57.36, 36.78, 34.96)),
        ("Quality", (32.28, 24.41, 32.36)),
        ("Qasper", (22.93, 18.49, 22.76)),
    ),
)
_SETS = ("NarrativeQA", "Quality", "Qasper")
SOURCES = {
    "DPR": (
        19,
        Published(
            f"{PAPER}, Table 19",
            _SETS,
            (
                ("layer 0", (42.64, 67.71, 77.07)),
                ("layer 1", (45.00, 29.43, 21.88)),
                ("layer 2", (10.57, 2.85, 1.05)),
                ("layer 3", (1.78, None, None)),
                ("layer 4", (0.003, None, None)),
            ),
        ),
    ),
    "SBERT": (
        20,
        Published(
            f"{PAPER}, Table 20",
            _SETS,
            (
                ("layer 0", (63.22, 75.59, 81.51)),
                ("layer 1", (31.51, 22.78, 17.84)),
                ("layer 2", (4.85, 1.63, 0.65)),
                ("layer 3", (0.42, None, None)),
            ),
        ),
    ),
    "BM25": (
        21,
        Published(
            f"{PAPER}, Table 21",
            _SETS,
            (
                ("layer 0", (65.04, 67.64, 77.24)),
                ("layer 1", (28.79, 28.85, 21.57)),
                ("layer 2", (5.36, 3.51, 1.19)),
                ("layer 3", (0.81, None, None)),
            ),
        ),
    ),
}
"""Tables 19 to 21, by retriever: the number of the table, and the percentage of nodes from each layer."""
