"""Helpers that spreadsheet formats share: cells, number formats, regions of a sheet."""
