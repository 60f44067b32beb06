"""Summarisers: write the text of a parent node from the texts of its children. Each engine is one file."""
