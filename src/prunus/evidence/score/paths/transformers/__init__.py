"""Scores the branches of a token tree with a model on this machine."""
