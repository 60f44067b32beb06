"""Generators: write the answer from passages. Each engine is one file."""
