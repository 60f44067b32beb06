"""Prompts for language models: one text file each, filled in by :mod:`prunus.models.prompts.render`."""
