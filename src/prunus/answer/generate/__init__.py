"""Generators: the answer from passages. One engine, one file."""
