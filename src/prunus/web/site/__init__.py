"""A site as a unit: which addresses it has, in which order they are read, and what is kept of them."""
