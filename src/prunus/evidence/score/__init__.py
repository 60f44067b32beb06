"""Scorers: how well each block answers a question. One engine, one file."""
