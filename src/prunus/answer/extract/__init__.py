"""Extractors: the passages that bear on a question. One engine, one file."""
