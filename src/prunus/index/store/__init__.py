"""Stores: where the nodes of an index are kept."""
