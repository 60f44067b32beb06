"""The published numbers of Internet-SAG's tables, as they are printed; studies show them as cited rows."""

from __future__ import annotations

from prunus_evals.studies._raptor_published import Published

PAPER = "He and others, Zero-Indexing Internet Search Augmented Generation, arXiv 2411.19478"

TABLE_1 = Published(
    f"{PAPER}, Table 1: 463 requests, judged by GPT-4o",
    ("WIN", "TIE", "LOSE", "P-BIA"),
    (
        ("Internet-SAG-Naive, YI-LARGE", (143, 22, 89, 209)),
        ("Internet-SAG-Naive, QWEN2-72B", (134, 20, 93, 216)),
        ("Internet-SAG-Naive, YI-34B", (137, 22, 85, 219)),
        ("VectorDB-RAG, YI-LARGE", (134, 15, 95, 219)),
        ("VectorDB-RAG, QWEN2-72B", (258, 23, 66, 116)),
        ("VectorDB-RAG, YI-34B", (185, 12, 61, 205)),
    ),
)
TABLE_2 = Published(
    f"{PAPER}, Table 2: 463 requests",
    ("#Input Token, M",),
    (("Internet-SAG-Ext", (2.04,)), ("Internet-SAG-Naive", (3.88,)), ("VectorDB-RAG", (2.59,))),
)
TABLE_3 = Published(
    f"{PAPER}, Table 3: average F1",
    ("Base", "Reasoning", "Multi-Ans", "Multi-Q"),
    (
        ("YI-9B-CHAT", (0.328, 0.147, 0.284, 0.166)),
        ("QWEN2-72B", (0.732, 0.346, 0.675, 0.946)),
        ("GPT-4O", (0.969, 0.904, 0.986, 1.0)),
        ("EXTRACTOR-LLM", (0.925, 0.803, 0.973, 1.0)),
    ),
)
TABLE_4 = Published(
    f"{PAPER}, Table 4: average F1",
    ("Reasoning", "Multi-Ans", "Multi-Q"),
    (
        ("YI-9B-CHAT", (0.361, 0.328, 0.439)),
        ("QWEN2-72B", (0.568, 0.441, 0.570)),
        ("GPT-4O", (0.591, 0.536, 0.755)),
        ("EXTRACTOR-LLM", (0.724, 0.581, 0.687)),
    ),
)
TABLE_5 = Published(
    f"{PAPER}, Table 5",
    ("Recall", "Precision", "F1", "EM"),
    (
        ("YI-9B-CHAT", (0.8383, 0.4722, 0.6041, 0.1729)),
        ("QWEN2-72B", (0.7145, 0.6482, 0.6797, 0.7078)),
        ("GPT-4O", (0.8357, 0.6691, 0.7431, 0.7563)),
        ("EXTRACTOR-LLM", (0.8353, 0.7139, 0.7698, 0.7985)),
    ),
)
