"""Clusterers: which nodes of a layer get a common parent."""
