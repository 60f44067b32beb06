"""Rerankers, and the ranking of pages. One engine, one file."""
