"""From document to tree and back: sources, formats, cleaning, the tree, and its output formats."""
