"""Rerankers score pairs of a question and a text. One engine per file."""
