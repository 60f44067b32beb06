"""Writes trees, or parts of them, as HTML, Markdown and text."""
