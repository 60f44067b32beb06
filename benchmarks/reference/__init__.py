"""The environment of the reference implementation and of the other tools, and the process that measures them."""
