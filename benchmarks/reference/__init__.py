"""The reference implementation and the rivals, in an environment of their own."""
