"""Chooses blocks within a budget."""
