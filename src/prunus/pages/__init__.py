"""A document becomes a tree: sources, formats, cleaning, the tree, and what writes it."""
