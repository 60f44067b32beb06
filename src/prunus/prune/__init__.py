"""Pruning: the best blocks that fit a budget."""
