"""Formats: one kind of document to HTML each. One engine, one file."""
