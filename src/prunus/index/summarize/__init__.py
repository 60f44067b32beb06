"""Summarisers: what stands in a node above others."""
