"""Cuts pages into blocks, scores them for a question, and keeps the best blocks that fit a token budget."""
