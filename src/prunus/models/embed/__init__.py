"""Embedders: texts to vectors. One engine, one file."""
