"""The vocabulary of the token counter ``smollm2``."""
