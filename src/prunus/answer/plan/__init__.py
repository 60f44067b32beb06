"""Planners: whether a question needs a search, and for what."""
