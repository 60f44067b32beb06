"""The edges: where people and programs meet Prunus."""
