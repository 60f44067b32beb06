"""HTML cleaning: parse a page, drop what a reader cannot see, build the tree."""
