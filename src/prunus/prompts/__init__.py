"""Prompts: one text file each, filled in by :mod:`prunus.prompts.render`."""
