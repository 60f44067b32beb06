"""Embedders turn texts into vectors. One engine per file."""
