"""Reports of a run: its numbers, and the text tables, Markdown, JSON and the page that show them."""

from prunus_evals.report.numbers import cell, row_of, summary, value_of
from prunus_evals.report.tables import json_line, table

__all__ = ["cell", "json_line", "row_of", "summary", "table", "value_of"]
