"""Prunus inside other frameworks: one module for each, imported by nobody; each needs the extra of its name."""
