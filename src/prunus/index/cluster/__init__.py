"""Clusterers: decide which nodes of a layer get a common parent. Each engine is one file."""
