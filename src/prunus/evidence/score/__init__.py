"""Scorers: each rates how well blocks answer a question. One engine per file."""
