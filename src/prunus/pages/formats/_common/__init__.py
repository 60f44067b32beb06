"""Helpers that several formats share: reading archives, XML and formulas, and writing HTML."""
