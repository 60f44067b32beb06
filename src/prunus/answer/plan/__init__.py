"""Planners: decide whether a question needs a search, and write its queries. Each engine is one file."""
