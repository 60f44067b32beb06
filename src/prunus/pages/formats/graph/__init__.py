"""Graphs: Turtle and its relatives, JSON-LD and GraphML become a section for each node with its relations."""
