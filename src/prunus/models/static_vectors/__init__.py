"""The vectors and the vocabulary of the embedder ``static``."""
